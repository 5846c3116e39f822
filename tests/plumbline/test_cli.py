"""How commands end."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from tqdm import tqdm

from plumbline import cli
from plumbline.errors import DataError
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
