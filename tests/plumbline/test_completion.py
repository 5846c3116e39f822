"""Tab in a real bash completes commands, options, choices and files, by the script of `plumbline completion`."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from pathlib import Path

import pytest

from tests.commands import here

TYPED = {
    "plumbline samp": "plumbline sample ",
    "plumbline crowd pla": "plumbline crowd plan ",
    "plumbline sample --stu": "plumbline sample --study ",
    "plumbline crowd plan --platform reh": "plumbline crowd plan --platform rehearsal ",
    "plumbline sample --study studies/mi": "plumbline sample --study studies/mine.yaml ",
    "plumbline collect --csv answ": "plumbline collect --csv answers.csv ",
    "plumbline init answ": "plumbline init answers.csv ",
}


class Terminal:
    """An interactive bash at a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.process, self.file = pty.fork()
        if not self.process:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> "})  # noqa: S606

    def shows(self, ending: str) -> str:
        """What the terminal shows until it ends as expected, or two minutes have passed."""
        shown, until = "", time.monotonic() + 120
        while not shown.endswith(ending) and time.monotonic() < until:
            if select.select([self.file], [], [], 0.2)[0]:
                shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x07\r]", "", os.read(self.file, 4096).decode())
        return shown

    def types(self, text: str) -> None:
        os.write(self.file, text.encode())

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


@pytest.mark.timeout(300)
def test_tab_completes_commands_options_choices_and_files(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(here("completion", "bash").stdout, encoding="utf-8")
    (tmp_path / "studies").mkdir()
    for name in ("studies/mine.yaml", "answers.csv"):
        (tmp_path / name).touch()
    terminal = Terminal(tmp_path)
    try:
        assert terminal.shows("> ")
        terminal.types(". ./script\n")
        assert terminal.shows("script\n> ").endswith("> ")
        for typed, completed in TYPED.items():
            terminal.types(f"{typed}\t")
            assert terminal.shows(completed).endswith(completed), typed
            terminal.types("\x15")  # the line is emptied
            terminal.types("\n")
            terminal.shows("\n> ")
    finally:
        terminal.close()


def test_scripts_of_other_shells_complete_files_too() -> None:
    zsh = here("completion", "zsh").stdout
    assert "]:study:_files'" in zsh and "'1:The file of texts, one text per row.:_files'" in zsh
    assert "]:study' " not in zsh and zsh.rstrip().endswith("compdef _cyclopts_plumbline plumbline")
    assert "-l study -r -d" in here("completion", "fish").stdout  # which completes files unless it is told not to
