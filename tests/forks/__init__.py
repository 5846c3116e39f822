"""Processes that are forked where they would spend most of their time on importing libraries.

    with forks.Popen([sys.executable, "-m", "plumbline", "generate", ...], cwd=ROOT, stdout=PIPE, text=True) as process:
        process.send_signal(signal.SIGKILL)

What comes back is as `subprocess.Popen` makes it: a child of this process, with an id, signals, streams, an exit
status, a folder and an environment of its own. It is forked from a process that has imported others' libraries and
nothing of ours (`prepared`): our modules are imported in the child, as ever.

A test that is about starting (imports, `--help`, an interrupt at once, a package that was installed) starts a process:
`tests/test_layout.py`, `tests/test_interrupt.py` and `tests/release/test_package.py` do so for each command,
`tests/test_flow.py` for one that needs Argilla, `tests/annotation/server/test_server.py` for Argilla.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_PREPARED = Path(__file__).with_name("prepared.py")
_PR_SET_CHILD_SUBREAPER = 36
_COMMANDS = ("numpy", "pandas", "pyarrow.parquet", "pydantic", "yaml", "langcodes", "tqdm", "scipy.stats", "httpx")
_ARGILLA = (
    *(
        "fastapi.openapi.models",
        "sqlalchemy.ext.asyncio",
        "aiosqlite",
        "alembic.command",
        "uvicorn",
        "redis.asyncio",
        "rq",
    ),
    *("httpx", "numpy", "cryptography", "pydantic.v1", "yaml", "rich.progress"),
    *("markdown_it", "oauthlib", "jose.jwt", "bcrypt", "backoff", "standardwebhooks"),
    *("social_core.backends.open_id_connect", "psutil", "pydantic_settings"),
    *("sqlalchemy.dialects.sqlite.aiosqlite", "uvicorn.protocols.http.httptools_impl"),
)
#: What Python and these libraries read from the environment when they start; for other values another one is prepared.
_READ = ("PYTHON", "LANG", "LC_", "HOME", "XDG_", "HF_", "OMP_", "OPENBLAS_", "TORCH", "CUDA_")
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_asked: dict[tuple[object, ...], socket.socket] = {}
_lock = threading.Lock()


class Popen(subprocess.Popen[str]):
    """`python -m` or `python -c`, forked. Options that no test gives to such a process are refused."""

    libraries: Sequence[str] = _COMMANDS

    def _execute_child(
        self, args: Sequence[str], executable: object, preexec_fn: object, close_fds: bool, pass_fds: Sequence[int],
        cwd: str | Path | None, env: Mapping[str, str] | None, startupinfo: object, creationflags: int, shell: bool,
        p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int, errread: int, errwrite: int, restore_signals: bool,
        gid: object, gids: object, uid: object, umask: int, start_new_session: bool, process_group: int,
    ) -> None:  # fmt: skip
        odd = (executable, preexec_fn, pass_fds, startupinfo, creationflags, shell, gid, gids, uid)
        assert not any(odd) and close_fds and restore_signals and umask == process_group == -1
        environment = dict(os.environ if env is None else env)
        python, *words = map(str, args)
        start = next(place for place, word in enumerate(words) if word in {"-m", "-c"})
        options, words = words[:start], words[start:]
        request = {
            "command": list(map(str, args)),
            "words": words,
            "safe": "-P" in options,
            "folder": os.path.abspath(cwd or os.curdir),  # noqa: PTH100 (as a child finds it: links stay)
            "environment": environment,
            "session": start_new_session,
            "limits": [(one, resource.getrlimit(one)) for one in _LIMITS],
        }
        streams = [own if own != -1 else usual for usual, own in enumerate((p2cread, c2pwrite, errwrite))]
        self.pid = _fork((python, *options), environment, self.libraries, json.dumps(request).encode(), streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


class PopenArgilla(Popen):
    """The same for the server, in the environment of its own."""

    libraries = _ARGILLA


def run(command: Sequence[str], timeout: float | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with both streams captured as text."""
    pipe = subprocess.PIPE
    with Popen(command, stdout=pipe, stderr=pipe, text=True, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _fork(
    interpreter: tuple[str, ...], environment: Mapping[str, str], libraries: Sequence[str], request: bytes,
    streams: Sequence[int],
) -> int:  # fmt: skip
    """The id of a new child of this process."""
    kept = {name: value for name, value in environment.items() if name.startswith(_READ)}
    key = (interpreter, tuple(sorted(kept.items())), tuple(libraries))
    with _lock, _adopting():
        if key not in _asked:
            _asked[key] = _prepare(interpreter, environment, libraries)
        try:
            socket.send_fds(_asked[key], [request], list(streams))
            return int(_asked[key].recv(20))
        except (OSError, ValueError) as error:
            raise RuntimeError("what is forked from has ended; its last words are on stderr") from error


def _prepare(interpreter: Sequence[str], environment: Mapping[str, str], libraries: Sequence[str]) -> socket.socket:
    """A new process to fork from, by the socket on which it is asked."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    safe = [] if "-P" in interpreter else ["-P"]
    command = [*interpreter, *safe, str(_PREPARED), str(theirs.fileno()), *libraries]
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    process = subprocess.Popen(
        command,
        env={**environment, **single},
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


def _end(asked: socket.socket, process: subprocess.Popen[bytes]) -> None:
    asked.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)


@contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile, orphans among the processes below this one become its children."""
    system = ctypes.CDLL(None, use_errno=True)
    assert system.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        system.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
