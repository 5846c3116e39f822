"""Ctrl-C while a command does not run yet, or no longer: one line and exit status 130, at once.

While libraries are imported there is nothing to save, and an exception that is thrown into an import is turned into
another one or lost. While a command runs an interrupt is KeyboardInterrupt, so that what is open is closed.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

STATUS = 130
LINE = "interrupted; what was written stays, run the same command to go on"


PACKAGES = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app")
SCRIPTS = ("plumbline", "plumbline-embeddings")  # one command, also as `pipx run` and `uvx` call it
_COMMANDS = (*PACKAGES, "benchmarks")
_state = {"command": False}  # whether this process is one of our commands


def arm() -> None:
    """Let an interrupt end this process at once, if it is one of our commands that has just been started."""
    # `-m` is Python's word for `python -m` while it looks for the module, which imports the packages that the module
    # is in; that may be somebody else's, who imports us. An interrupt that is ignored (`nohup`, `&` in a script) stays
    # so.
    by_module = sys.argv[:1] == ["-m"] and started_module(sys.orig_argv).split(".")[0] in _COMMANDS
    ours = by_module or "".join(sys.argv[:1]).rpartition(os.sep)[2] in SCRIPTS
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        _state["command"] = True


def started_module(words: list[str]) -> str:
    """The module that Python was started with (`-m`), by its whole command line; empty where there is none."""
    rest = iter(words[1:])
    for word in rest:
        if word in ("-X", "-W"):
            next(rest, "")  # what they set is a word of its own
            continue
        options, m, module = word.partition("m")
        if m and options.startswith("-") and not set(options[1:]) & set("-XWc"):
            return module or next(rest, "")
    return ""


def begin() -> None:
    """From here on an interrupt is KeyboardInterrupt."""
    if _state["command"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave_at_once() -> None:
    """From here on an interrupt ends this process at once: nothing of it is to be saved."""
    if _state["command"]:
        signal.signal(signal.SIGINT, _leave)


def end(*, explained: bool) -> None:
    """The command has ended, and has `explained` a failure: an interrupt while Python clears up ends it at once."""
    if _state["command"]:
        signal.signal(signal.SIGINT, _leave_silently if explained else _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(STATUS)


def _leave_silently(number: int, frame: FrameType | None) -> None:
    os._exit(STATUS)  # the command has had its last word
