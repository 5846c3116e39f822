"""`python prepared.py DESCRIPTOR LIBRARY...`: import libraries once, then fork a process for each request.

Each request is one message: JSON, and the three descriptors that the process gets as its own. The answer is its id.
It is forked twice, so that it belongs to whoever asked (`tests.forks`). Standard library alone: Argilla's environment
runs this too. It ends when the other side does.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import resource
import runpy
import signal
import socket
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

LONGEST = 1 << 20  # of a request, in bytes


def main(descriptor: int, libraries: list[str]) -> None:
    """Serve requests; in the process that was asked for, return what it is to be."""
    for name in libraries:
        importlib.import_module(name)
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        sys.exit(
            f"one of {', '.join(libraries)} starts a thread: what it holds when it is forked stays locked for ever"
        )
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for those that are forked, and for whoever asks
    with socket.socket(fileno=descriptor) as asking:
        while True:
            message, descriptors, _, _ = socket.recv_fds(asking, LONGEST, 3)
            if not message:
                os._exit(0)
            parent = os.getpid()
            reading, writing = os.pipe()
            middle = os.fork()
            if middle == 0:
                between = os.getpid()
                process = os.fork()
                if process == 0:
                    break
                os.write(writing, str(process).encode())
                os._exit(0)
            os.waitpid(middle, 0)
            asking.sendall(os.read(reading, 20))
            for one in (*descriptors, reading, writing):
                os.close(one)
    for one in (reading, writing):
        os.close(one)
    while os.getppid() in (between, parent):  # until it belongs to whoever asked
        time.sleep(0.0005)
    become(json.loads(message), descriptors)


def become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take on what the interpreter would have had at its start, and run the module or the code."""
    for place, one in enumerate(descriptors):
        os.dup2(one, place)
    for one in descriptors:
        os.close(one)
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, opened(getattr(sys, name)))
        setattr(sys, f"__{name}__", getattr(sys, name))
    if request["session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for limit, ends in request["limits"]:
        resource.setrlimit(limit, tuple(ends))
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    kind, what, *words = request["words"]
    sys.orig_argv[:] = request["command"]
    sys.argv[:] = [kind, *words]
    if not request["safe"]:
        sys.path.insert(0, request["folder"] if kind == "-m" else "")
    sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-m":
        runpy._run_module_as_main(what)  # type: ignore[attr-defined]
    else:
        exec(what, sys.modules["__main__"].__dict__)  # noqa: S102 (a test's own code)


def opened(stream: Any) -> io.TextIOWrapper:
    """The same stream on what its descriptor is now, which may be a pipe and no file."""
    place, through = stream.fileno(), stream.write_through
    buffer = open(place, "wb" if place else "rb", 0 if place and through else -1, closefd=False)  # noqa: SIM115
    how = {"encoding": stream.encoding, "errors": stream.errors, "newline": "\n" if place else None}
    return io.TextIOWrapper(buffer, line_buffering=stream.line_buffering, write_through=through, **how)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
