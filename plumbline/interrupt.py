"""Handle Ctrl-C before and after a command runs: one line and exit status 130, at once.

During imports there is nothing to save, and an exception raised there becomes another one or is lost. While a command
runs an interrupt is KeyboardInterrupt, so that open files and servers are closed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from types import FrameType

STATUS = 130
LINE = "interrupted; the files written so far are kept: run the same command to continue"


PACKAGES = ("plumbline", "generation", "annotation", "evaluation", "streamlit_app")
SCRIPTS = ("plumbline", "plumbline-embeddings")  # one command, also as `pipx run` and `uvx` call it
_COMMANDS = (*PACKAGES, "benchmarks")
_state = {"command": False, "interrupted": False}  # whether this process is one of our commands, and interrupted


def arm() -> None:
    """End this process at once on an interrupt, if it is a command of ours that has just started."""
    # `-m` is Python's word for `python -m` while it looks for the module, which imports the packages that the module
    # is in; that may be somebody else's, who imports us. An interrupt that is ignored (`nohup`, `&` in a script) stays
    # so.
    by_module = sys.argv[:1] == ["-m"] and started_module(sys.orig_argv).split(".")[0] in _COMMANDS
    ours = by_module or "".join(sys.argv[:1]).rpartition(os.sep)[2] in SCRIPTS
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        atexit.register(_finish)  # the first, which runs last
        _state["command"] = True


def _finish() -> None:
    """End an interrupted command with its status, and let no later interrupt end another one by a signal.

    Python would end the process by a signal if KeyboardInterrupt ever passed through `exec` (of dataclasses, say).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _state["interrupted"]:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # the reader closed the pipe
                stream.flush()
        os._exit(STATUS)


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
        sys.unraisablehook = _repeat


def _repeat(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt, a moment later, that came where nothing can be raised, as in a destructor."""
    if unraisable.exc_type is KeyboardInterrupt:
        main = threading.main_thread().ident
        threading.Timer(0.05, signal.pthread_kill, [main, signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(unraisable)


def leave_at_once() -> None:
    """End this process at once on an interrupt from here on: it has nothing left to save."""
    if _state["command"]:
        signal.signal(signal.SIGINT, _leave)


def end(status: int) -> None:
    """Mark the command's end: an interrupt now ends the process at once, without a line if one explained a failure."""
    _state["interrupted"] = status == STATUS
    if _state["command"]:
        # after a failure the command has already printed its last line
        signal.signal(signal.SIGINT, (lambda number, frame: os._exit(STATUS)) if status else _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(STATUS)
