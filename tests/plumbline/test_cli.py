"""How commands end."""

from __future__ import annotations

import subprocess
import sys

from plumbline.study import ROOT


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = "from plumbline.cli import run; run(lambda: [print(n) for n in range(100_000)] and 0)"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert (process.wait(120), process.stderr.read()) == (141, "")
