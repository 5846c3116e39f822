"""Handle Ctrl-C before and after a command runs: one line and exit status 130, at once.

During imports there is nothing to save, and an exception raised there becomes another one or is lost. While a command
runs an interrupt is KeyboardInterrupt, so that open files and servers are closed.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

STATUS = 130
LINE = "interrupted; the files written so far are kept: run the same command to continue"


PACKAGES = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app")
SCRIPTS = ("plumbline", "plumbline-embeddings")  # one command, also as `pipx run` and `uvx` call it
_COMMANDS = (*PACKAGES, "benchmarks")
_state = {"command": False}  # whether this process is one of our commands


def arm() -> None:
    """End this process at once on an interrupt, if it is a command of ours that has just started."""
    # `-m` is Python's word for `python -m` while it looks for the module, which imports the packages that the module
    # is in; that may be somebody else's, who imports us. An interrupt that is ignored (`nohup`, `&` in a script) stays
    # so.
    by_module = sys.argv[:1] == ["-m"] and started_module(sys.orig_argv).split(".")[0] in _COMMANDS
    ours = by_module or "".join(sys.argv[:1]).rpartition(os.sep)[2] in SCRIPTS
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        _state["command"] = True


def started_module(words: list[str]) -> str:
    """Return the module that Python was started with (`-m`), from its command line; empty if there is none."""
    rest = iter(words[1:])
    for word in rest:
        if word in ("-X", "-W"):
            next(rest, "")  # options whose value is a separate word
            continue
        options, m, module = word.partition("m")
        if m and options.startswith("-") and not set(options[1:]) & set("-XWc"):
            return module or next(rest, "")
    return ""


def begin() -> None:
    """Raise KeyboardInterrupt on an interrupt from here on."""
    if _state["command"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave_at_once() -> None:
    """End this process at once on an interrupt from here on: it has nothing left to save."""
    if _state["command"]:
        signal.signal(signal.SIGINT, _leave)


def end(*, explained: bool) -> None:
    """Mark the command's end, and whether it `explained` a failure: an interrupt now ends the process at once."""
    if _state["command"]:
        signal.signal(signal.SIGINT, _leave_silently if explained else _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(STATUS)


def _leave_silently(number: int, frame: FrameType | None) -> None:
    os._exit(STATUS)  # the command has already printed its last line
