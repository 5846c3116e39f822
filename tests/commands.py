"""Commands in this process, which has imported what a new one would take seconds to import."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from plumbline import cli
from plumbline.commands import COMMANDS
from plumbline.study import ROOT


def main_of(module: str) -> Callable[[], int]:
    """What `python -m MODULE` runs."""
    found = importlib.util.find_spec(module)
    assert found is not None, f"there is no module {module}"
    name = f"{module}.__main__" if found.submodule_search_locations else module
    main: Callable[[], int] = importlib.import_module(name).main
    return main


def module_words(line: str) -> list[str]:
    """The module and the words of a command line: `plumbline NAME ...` or `python -m MODULE ...`."""
    words = shlex.split(line, comments=True)
    if words[0] == "plumbline":
        command = COMMANDS[words[1]]
        return [command.module, *command.word.split(), *words[2:]]
    return words[2:]


def here(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE WORDS`, run from the repository."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", [module, *words])
        with pytest.raises(SystemExit) as ended:
            cli.run(main_of(module))
    return subprocess.CompletedProcess([module, *words], int(ended.value.code or 0), out.getvalue(), err.getvalue())
