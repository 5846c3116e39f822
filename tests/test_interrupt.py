"""Ctrl-C from the first moment of each command on: one line and exit status 130, whatever is being imported."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.interrupt import LINE
from plumbline.study import ROOT
from tests.ports import free_port
from tests.scale import scaled

COMMANDS = [
    ["plumbline", "--help"],
    ["plumbline", "serve", "--prepare"],
    ["plumbline", "dashboard", "--help"],
    ["evaluation.run", "--help"],
]
#: Python reads this before anything else. It counts what is imported once Ctrl-C is heeded, and sends one at a number
#: or a name.
SENDER = """
import atexit, os, signal, sys

class Sender:
    seen = 0

    def find_spec(self, name, path=None, target=None):
        if Sender.seen or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            Sender.seen += 1
            if os.environ["SEND_AT"] in (str(Sender.seen), name):
                signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Sender())
if os.environ["SEND_AT"] == "never":
    atexit.register(lambda: os.write(2, str(Sender.seen).encode()))
"""


def run(folder: Path, arguments: list[str], at: str, script: str = "") -> tuple[int, str]:
    """Exit status and stderr of a command, or of a script, that gets Ctrl-C at its import of this number."""
    (folder / "sitecustomize.py").write_text(SENDER, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, script or "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "SEND_AT": at},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_ctrl_c_while_libraries_are_imported_is_130_and_one_line(tmp_path: Path, command: list[str]) -> None:
    assert run(tmp_path, command, "1") == (130, f"{LINE}\n")
    status, said = run(tmp_path, command, "never")
    assert status == 0
    number = int(said.splitlines()[-1])
    assert number > 10  # it is libraries that take the time
    for at in random.Random(" ".join(command)).sample(range(2, number + 1), scaled(1, 5)):
        assert run(tmp_path, command, str(at)) == (130, f"{LINE}\n"), at


@pytest.mark.parametrize("module", ["streamlit_app.views.answer", "uvicorn.lifespan.on"])
def test_ctrl_c_while_the_dashboard_starts_is_130_and_one_line(tmp_path: Path, module: str) -> None:
    """The second is imported by the server while it starts, which has handlers of its own for Ctrl-C."""
    place = ["--study", "studies/demo.yaml", "--exports", str(tmp_path), "--port", str(free_port())]
    command = ["plumbline", "dashboard", *place]
    assert run(tmp_path, command, module) == (130, f"{LINE}\n")


def test_ctrl_c_is_heeded_by_the_script_plumbline_too(tmp_path: Path) -> None:
    script = tmp_path / "plumbline"  # as pip makes it
    script.write_text("import sys\nfrom plumbline.__main__ import main\nsys.exit(main())\n", encoding="utf-8")
    assert run(tmp_path, ["generate", "--help"], "20", str(script)) == (130, f"{LINE}\n")


def test_ctrl_c_stays_as_it_was_in_a_program_of_somebody_else(tmp_path: Path) -> None:
    """Who imports us in a package of their own, started as a module, still gets KeyboardInterrupt."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("import annotation, evaluation\n", encoding="utf-8")
    said = "import signal\nprint(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    (tmp_path / "theirs" / "__main__.py").write_text(said, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "theirs"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


SCRIPT = """
import os, signal
from plumbline import cli

class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT):
        kill(pid, number)

def through_exec():
    exec("import signal; signal.raise_signal(signal.SIGINT)")

def in_a_destructor():
    del [Late()][0]
    signal.pause()

def at_the_end():
    global late
    late = Late()

cli.run(COMMAND)
"""


@pytest.mark.parametrize(
    ("command", "ends"),
    [("through_exec", (130, f"{LINE}\n")), ("in_a_destructor", (130, f"{LINE}\n")), ("at_the_end", (0, ""))],
)
def test_ctrl_c_is_one_line_wherever_it_comes(tmp_path: Path, command: str, ends: tuple[int, str]) -> None:
    """Python would end the process by the signal in the first and the last, and print a traceback in the second."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("import plumbline", encoding="utf-8")
    (tmp_path / "benchmarks" / "__main__.py").write_text(SCRIPT.replace("COMMAND", command), encoding="utf-8")
    assert run(tmp_path, ["-m", "benchmarks"], "never at an import", "-P") == ends
