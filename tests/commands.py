"""Commands in this process, which has imported what a new one would take seconds to import."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
from pathlib import Path

import pytest

from plumbline import cli
from plumbline.__main__ import run
from plumbline.study import ROOT


def words_of(line: str) -> list[str]:
    """The words of a command line after `plumbline`."""
    return shlex.split(line, comments=True)[1:]


def here(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """`plumbline WORDS`, run from the repository, or from another folder."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            cli.run(lambda: run(words))
    return subprocess.CompletedProcess(words, int(ended.value.code or 0), out.getvalue(), err.getvalue())
