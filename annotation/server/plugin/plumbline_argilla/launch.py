"""Start the server: lock, port, settings, database, application, in this order.

Argilla reads its settings when it is imported, so nothing here imports it before they are set.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import json
import os
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .errors import MigrationNeededError, StartError
from .hosts import Hosts
from .imports import leave_out_the_unused, silence_deprecations
from .journal import Journal, inherit
from .workers import Workers, stop_at_the_end

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .handing import Handing
    from .recent import Recent

ENGINE_NAME = "plumbline"
JOBS = Path("jobs.db")
#: What several processes remember together, until the server ends.
RECENT, HANDED = Path("tmp", "recent.db"), Path("tmp", "handed.db")
IN_USE_EXIT = 3
MIGRATION_EXIT = 4
FAILED_EXIT = 1
ERROR_MARK = "plumbline-argilla: error: "
#: What a full disk is called by the system and by SQLite, in errors of all kinds (of copying the pages: one a file).
FULL = (os.strerror(errno.ENOSPC), "database or disk is full")
BUSY_SECONDS = 30
MOST_FILES = 8192
BACKLOG = 2048
LOCK_TRIES, LOCK_PAUSE = 20, 0.05


def main(
    home: Path, host: str, port: int, *, addresses: Sequence[str] = (), workers: int = 1, may_migrate: bool
) -> int:
    """Run the server on `home` until standard input closes or a signal ends it; the exit status.

    `addresses` are those under which others reach it, through a proxy: it answers under no other names then. More than
    one of `workers`, the processes that serve, needs PostgreSQL. A database of an older version is migrated only if
    `may_migrate`, else the status is MIGRATION_EXIT.
    """
    os.umask(0o077)
    os.chdir(home)  # file names in the database's address are relative, so that no character of the path matters there
    with Path("server.lock").open("a", encoding="utf-8") as lock:
        if not hold(lock):
            return IN_USE_EXIT
        try:
            with scratch(home), contextlib.ExitStack() as stack:
                listening = [stack.enter_context(one) for one in listen(host, port, workers)]
                run(listening, Hosts(host, addresses, Path("crowd", "rooms.json")), may_migrate)
        except MigrationNeededError:
            return MIGRATION_EXIT
        except StartError as error:
            print(f"{ERROR_MARK}{' '.join(str(error).split())}", file=sys.stderr)
            return FAILED_EXIT
        except Exception as error:
            if not any(words in str(error) for words in FULL):
                raise
            print(f"{ERROR_MARK}{home}: there is no room left on this disk; make room and start again", file=sys.stderr)
            return FAILED_EXIT
    return 0


def hold(lock: TextIO) -> bool:
    """Take the home's lock for as long as this process lives; whether it was free."""
    # More than once, for the platform takes it for an instant when it looks whether a server is there.
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE)
        else:
            return True
    return False


@contextlib.contextmanager
def scratch(home: Path) -> Iterator[None]:
    """A temporary folder inside the home, for Argilla copies its pages at every start and never removes the copy."""
    folder = home / "tmp"
    # The state and the folder are those of a server that was killed: we hold the lock.
    Path("server.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        Path("server.json").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def listen(host: str, port: int, number: int = 1) -> list[socket.socket]:
    """So many sockets on one port, among which the system divides connections; port 0 takes a free one.

    Linux alone divides them (SO_REUSEPORT): elsewhere they are one socket, from which any process takes the next.
    Raises StartError.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        first = socket.create_server((host, port), family=family, backlog=BACKLOG)
        if number == 1:
            return [first]
        if sys.platform != "linux":
            return [first, *(first.dup() for _ in range(number - 1))]
        port = first.getsockname()[1]
        first.close()  # it has shown that nobody else listens there
        return [
            socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=True) for _ in range(number)
        ]
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StartError(
            f"port {port} on {host} cannot be used ({reason}); stop what uses it or choose another port (--port N)"
        ) from error


def address(listening: socket.socket) -> str:
    """The URL under which this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # told apart, not bound
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"


def settings(url: str, secret: str) -> dict[str, str]:
    """Argilla's settings, which it reads from its environment; set inside the process, no listing shows them."""
    return {
        "ARGILLA_HOME_PATH": ".",
        "ARGILLA_DATABASE_URL": database_url(),
        "ARGILLA_DATABASE_SQLITE_TIMEOUT": str(BUSY_SECONDS),
        "ARGILLA_SEARCH_ENGINE": ENGINE_NAME,
        "ARGILLA_AUTH_SECRET_KEY": secret,
        "ARGILLA_CORS_ORIGINS": json.dumps([url]),
        "ARGILLA_SHOW_HUGGINGFACE_SPACE_PERSISTENT_STORAGE_WARNING": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
    }


def database_url() -> str:
    """The database's address: what the home's file says, which may hold a password, else SQLite in the home."""
    file = Path("database-url")
    if file.exists():
        return file.read_text(encoding="utf-8").strip()
    return "sqlite+aiosqlite:///argilla.db?check_same_thread=False"


def run(listening: Sequence[socket.socket], hosts: Hosts, may_migrate: bool) -> None:
    """Configure Argilla, bring the database up to date, and serve: in this process, or in one for each socket."""
    url = address(listening[0])
    os.environ.update(settings(url, Path("secret").read_text(encoding="utf-8").strip()))

    inherit(JOBS)
    leave_out_the_unused()
    silence_deprecations()
    gc.disable()  # what is imported stays: looking through it takes a sixth of a start, and a share of each request

    from . import database, handing, hardening  # noqa: PLC0415
    from .recent import Recent  # noqa: PLC0415

    several = len(listening) > 1
    app = assembled(os.environ["ARGILLA_AUTH_SECRET_KEY"], Recent(time.monotonic, RECENT if several else None))
    policy = hardening.page_policy(app)
    owner = json.loads(Path("credentials.json").read_text(encoding="utf-8"))["owner"]
    handed = handing.Handing(HANDED if several else None)
    held, sessions = database.prepare(owner, may_migrate, len(listening))
    gc.freeze()

    def look(cut_off: bool = False) -> None:
        if held is not None:
            held.look(cut_off)

    def serve_as(
        worker: int, ending: int, on_ready: Callable[[], object], look: Callable[[], None] | None = None
    ) -> None:
        for number, other in enumerate(listening):
            if number != worker:
                other.close()
        serve(app, policy, listening[worker], hosts, sessions, handed, worker, ending, on_ready, look)

    try:
        if several:
            Workers(len(listening), serve_as, lambda: write_state(url), look).run()
        else:
            serve_as(0, 0, lambda: write_state(url), look)
    finally:
        if held is not None:
            held.close()


def serve(  # noqa: PLR0913  # the parts of one process
    app: FastAPI, policy: str, listening: socket.socket, hosts: Hosts, sessions: int, handed: Handing, worker: int,
    ending: int, on_ready: Callable[[], object], look: Callable[[], None] | None,
) -> None:  # fmt: skip
    """Serve until a file (`ending`, its descriptor) closes or a signal comes.

    `policy` is the content security policy of the pages; `sessions` the most connections of Argilla's sessions;
    `look` is called at times where this is the only process, and ends the server by raising StartError.
    """
    import uvicorn  # noqa: PLC0415

    from . import database, engine, gate, jobs, protocol, signing_in  # noqa: PLC0415
    from .guard import Guard  # noqa: PLC0415
    from .turns import Turns  # noqa: PLC0415

    bound = database.open_sessions(sessions)
    engine.register(ENGINE_NAME, handed)
    jobs.apply(Journal(JOBS, worker))
    gc.freeze()
    gc.enable()

    class Server(uvicorn.Server):
        """Says that it answers, and closes its connections to the database at last."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            await bound.close()

    gated = gate.WriteGate(app, Turns(Path("tmp")), answers_together=not bound.are_sqlite)
    guarded = Guard(gated, hosts, policy, signing_in.role_of)
    server = Server(
        uvicorn.Config(
            guarded, access_log=False, log_level="error", timeout_graceful_shutdown=10, **protocol.settings()
        )
    )
    allow_many_connections()
    troubles: list[StartError] = []
    threading.Thread(target=stop_at_the_end, args=(server, ending, look, troubles), daemon=True).start()
    server.run(sockets=[listening])
    for trouble in troubles:
        raise trouble


def assembled(secret: str, recent: Recent) -> FastAPI:
    """Argilla's application as it is served: hardened, private, with the pages of the crowd and of annotators.

    `secret` signs the crowd's tickets; `recent` remembers who came and who guessed passwords. Call it once, with
    Argilla's settings set and the home as working folder.
    """
    from argilla_server._app import app  # noqa: PLC0415

    from . import crowd, entries, hardening, privacy, work_page  # noqa: PLC0415

    hardening.apply(app, recent)
    privacy.apply()
    entries.apply(app)
    crowd.mount(app, secret, recent)
    work_page.mount(app)
    return app


def allow_many_connections() -> None:
    """Let this process have as many open files as it may: a connection is one, to a browser or to the database."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def write_state(url: str) -> None:
    """Leave the address for the platform; in one step, so that no rater reads half of it."""
    new = Path("server.json.new")
    new.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    new.replace("server.json")
