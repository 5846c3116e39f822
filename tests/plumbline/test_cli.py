"""How commands end."""

from __future__ import annotations

import contextlib
import io
import logging
import subprocess
import sys

import pytest
from tqdm import tqdm

from plumbline import __main__, cli
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT

EVIL = "ev\x1b[1A\x1b[2K\x9bil\u202e\x07\r\u2028wrong\x7f"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = "from plumbline.cli import run; run(lambda: [print(n) for n in range(100_000)] and 0)"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert (process.wait(120), process.stderr.read()) == (141, "")


def test_nothing_that_a_command_prints_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    kept, log = sys.stderr, logging.StreamHandler(sys.stderr)

    def command() -> int:
        print(EVIL, f"two\n{EVIL}", cli.columns(["name"], [[f"a\nb {EVIL}"]]), sep="\n")
        print(EVIL, file=kept)
        log.emit(logging.makeLogRecord({"msg": EVIL}))
        with tqdm(total=2, desc=EVIL, mininterval=0) as bar:
            bar.update()
            tqdm.write(EVIL, file=sys.stderr)
        raise DataError(f"a\nb {EVIL}")

    with pytest.raises(SystemExit):
        cli.run(command)
    out, err = capsys.readouterr()
    assert not set(out + err) & set("\x1b\x9b\x07\x7f\u202e\u2028") and "\r" not in out
    assert "\r" in err  # of the bar, which moves
    assert r"ev\x1b[1A\x1b[2K\x9bil\u202e\x07\r\u2028wrong\x7f" in out and "\na b ev" in out
    assert err.splitlines()[-1].startswith("error: a b ev") and err.count("wrong") >= 4


def test_what_was_guarded_before_is_guarded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    for _ in range(2):
        with pytest.raises(SystemExit):
            cli.run(lambda: print("a\\x1b\x1b"))
    assert stream.getvalue() == "a\\x1b\\x1b\n" * 2


def test_help_is_that_of_the_command_that_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["board"], ["crowd"], ["crowd", "plan"], []):
        shown = []
        for line in ([*words, "--help"], ["help", *words]):
            with contextlib.suppress(SystemExit):
                __main__.run(line)
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1] and shown[0]
    with pytest.raises(StudyError, match="no command 'bord'"):
        __main__.run(["help", "bord"])
    for word, hint in (("helpp", "did you mean 'help'?"), ("nonsense", "list")):
        with pytest.raises(StudyError) as error:
            __main__.run([word])
        assert hint in str(error.value) and "scores-report" not in str(error.value)
