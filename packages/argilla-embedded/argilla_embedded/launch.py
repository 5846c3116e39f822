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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from . import home
from .errors import MigrationNeededError, StartError
from .hosts import Hosts, path_in, under
from .imports import leave_out_the_unused, silence_deprecations
from .journal import Journal, inherit
from .setup import Setup, Switches, api_of, load
from .workers import Workers, stop_at_the_end

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .engine import Queues
    from .holding import Holder
    from .recent import Recent

ENGINE_NAME = "sql"
JOBS = Path("jobs.db")
#: What several processes remember together, until the server ends.
RECENT, HANDED = Path("tmp", "recent.db"), Path("tmp", "handed.db")
IN_USE_EXIT = 3
MIGRATION_EXIT = 4
FAILED_EXIT = 1
ERROR_MARK = "argilla-embedded: error: "
#: What a full disk is called by the system and by SQLite, in errors of all kinds (of copying the pages: one a file).
FULL = (os.strerror(errno.ENOSPC), "database or disk is full")
BUSY_SECONDS = 30
MOST_FILES = 8192
BACKLOG = 2048
LOCK_TRIES, LOCK_PAUSE = 20, 0.05


@dataclass(frozen=True)
class Order:
    """The settings of a server's start."""

    host: str = "127.0.0.1"
    port: int = 6900  #: 0 takes a free one
    #: Under which others reach it, through a proxy: it answers under no other names then. All have the same path.
    addresses: Sequence[str] = ()
    workers: int = 1  #: processes that serve; more than one needs PostgreSQL
    may_migrate: bool = False  #: whether a database of an older Argilla is migrated
    switches: Switches = field(default_factory=Switches)
    plugins: Sequence[str] = ()  #: functions to call, as `module:function`


def main(folder: Path, order: Order, on_ready: Callable[[str], None] | None = None) -> int:
    """Run the server on `folder` until standard input closes or a signal ends it; return the exit status.

    `folder` has what `home.prepare` makes; `on_ready` is called once with the server's address.
    """
    os.umask(0o077)
    os.chdir(
        folder
    )  # file names in the database's address are relative, so that no character of the path matters there
    with Path("server.lock").open("a", encoding="utf-8") as lock:
        if not hold(lock):
            return failed(
                f"{folder}: another server runs on this folder; use that server, or stop it first", IN_USE_EXIT
            )
        try:
            with scratch(folder), contextlib.ExitStack() as stack:
                listening = [stack.enter_context(one) for one in listen(order.host, order.port, order.workers)]
                run(listening, order, on_ready)
        except MigrationNeededError:
            return failed(
                f"{folder}: its database is from an older Argilla; back it up, then start once with --migrate",
                MIGRATION_EXIT,
            )
        except StartError as error:
            return failed(str(error))
        except Exception as error:
            if not any(words in str(error) for words in FULL):
                raise
            return failed(f"{folder}: the disk is full; make room and start again")
    return 0


def failed(words: str, status: int = FAILED_EXIT) -> int:
    """Print why the server does not start, in one line; return the exit status."""
    print(f"{ERROR_MARK}{' '.join(words.split())}", file=sys.stderr)
    return status


def hold(lock: TextIO) -> bool:
    """Take the home's lock for as long as this process lives; return whether it was free."""
    # More than once, for who looks whether a server is there takes it for an instant.
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE)
        else:
            return True
    return False


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[None]:
    """Use a temporary folder in the home: Argilla copies its pages there at every start and never removes them."""
    temporary = folder / "tmp"
    # The state and the folder are those of a server that was killed: we hold the lock.
    Path("server.json").unlink(missing_ok=True)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700)
    tempfile.tempdir = str(temporary)
    try:
        yield
    finally:
        Path("server.json").unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)


def listen(host: str, port: int, number: int = 1) -> list[socket.socket]:
    """Return `number` sockets on one port, among which the system divides connections; port 0: a free one.

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
            f"port {port} on {host} cannot be used ({reason}); stop the program that uses it or choose another port"
            " (--port N)"
        ) from error


def address(listening: socket.socket) -> str:
    """The URL under which this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # told apart, not bound
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"


def settings(origin: str, path: str, secret: str, hardened: bool) -> dict[str, str]:
    """Argilla's settings, which it reads from its environment; set inside the process, no listing shows them."""
    origins = {"ARGILLA_CORS_ORIGINS": json.dumps([origin])} if hardened else {}
    return origins | {
        "ARGILLA_HOME_PATH": ".",
        "ARGILLA_BASE_URL": f"{path}/",
        "ARGILLA_DATABASE_URL": database_url(),
        "ARGILLA_DATABASE_SQLITE_TIMEOUT": str(BUSY_SECONDS),
        "ARGILLA_SEARCH_ENGINE": ENGINE_NAME,
        "ARGILLA_AUTH_SECRET_KEY": secret,
        "ARGILLA_SHOW_HUGGINGFACE_SPACE_PERSISTENT_STORAGE_WARNING": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
    }


def database_url() -> str:
    """Return the database's address: that in the home's file, which may have a password, else SQLite in the home."""
    file = home.DATABASE
    if file.exists():
        return file.read_text(encoding="utf-8").strip()
    return "sqlite+aiosqlite:///argilla.db?check_same_thread=False"


def run(listening: Sequence[socket.socket], order: Order, on_ready: Callable[[str], None] | None) -> None:
    """Configure Argilla, bring the database up to date, and serve: in this process, or in one for each socket."""
    origin, path, several = address(listening[0]), path_in(order.addresses), len(listening) > 1
    os.environ.update(settings(origin, path, home.SECRET.read_text(encoding="utf-8").strip(), order.switches.hardened))

    inherit(JOBS)
    leave_out_the_unused()
    silence_deprecations()
    gc.disable()  # what is imported stays: looking through it takes a sixth of a start, and a share of each request
    process, held = prepared(order, several)
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
        serve(process, listening[worker], worker, ending, on_ready, look)

    def ready() -> None:
        write_state(f"{origin}{path}")
        if on_ready is not None:
            on_ready(f"{origin}{path}")

    try:
        if several:
            Workers(len(listening), serve_as, ready, look).run()
        else:
            serve_as(0, 0, ready, look)
    finally:
        if held is not None:
            held.close()


def prepared(order: Order, several: bool) -> tuple[Process, Holder | None]:
    """Return the state that all processes share, and the lock of a PostgreSQL database; after the settings are set."""
    from . import database, engine, handing, hardening  # noqa: PLC0415
    from .recent import Recent  # noqa: PLC0415

    switches, recent = order.switches, Recent(time.monotonic, RECENT if several else None)
    setup = assembled(os.environ["ARGILLA_AUTH_SECRET_KEY"], recent, switches, order.plugins)
    policy = hardening.page_policy(setup.app) if switches.hardened else None
    handed = handing.Handing(HANDED if several else None) if switches.hand_out else None
    held, sessions = database.prepare(home.owner(Path()), order.may_migrate, order.workers, switches.hardened)
    hosts = Hosts(order.host, order.addresses, setup.host_names)
    return Process(setup.app, policy, hosts, sessions, engine.Queues(handed, setup.grouping, switches.private)), held


@dataclass(frozen=True)
class Process:
    """The state that all processes of a server share, created before they fork."""

    app: FastAPI
    policy: str | None  #: the content security policy of the pages; None: neither headers nor limits
    hosts: Hosts
    sessions: int  #: the most connections of Argilla's sessions
    queues: Queues


def serve(  # what one process has for itself
    process: Process, listening: socket.socket, worker: int, ending: int, on_ready: Callable[[], object],
    look: Callable[[], None] | None,
) -> None:  # fmt: skip
    """Serve until a file (`ending`, its descriptor) closes or a signal comes.

    If this is the only process, `look` is called now and then; it ends the server by raising StartError.
    """
    import uvicorn  # noqa: PLC0415

    from . import answering, database, engine, gate, jobs, protocol, signing_in  # noqa: PLC0415
    from .connections import WRITERS  # noqa: PLC0415
    from .guard import Guard  # noqa: PLC0415
    from .turns import Turns  # noqa: PLC0415

    bound = database.open_sessions(process.sessions)
    searches = engine.register(ENGINE_NAME, process.queues)
    turns = Turns(Path("tmp"), WRITERS[searches.dialect.name])
    answering.apply(api_of(process.app), searches, turns)
    jobs.apply(Journal(JOBS, worker))
    gc.freeze()
    gc.enable()

    class Server(uvicorn.Server):
        """A server that reports when it answers, and closes its connections to the database at the end."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            await bound.close()

    guarded = Guard(gate.Gate(process.app, turns), process.hosts, process.policy, signing_in.role_of)
    server = Server(
        uvicorn.Config(
            under(process.hosts.path, guarded),
            access_log=False,
            log_level="error",
            timeout_graceful_shutdown=10,
            **protocol.settings(),
        )
    )
    allow_many_connections()
    troubles: list[StartError] = []
    threading.Thread(target=stop_at_the_end, args=(server, ending, look, troubles), daemon=True).start()
    try:
        server.run(sockets=[listening])
    finally:
        searches.dispose()  # SQLite's log is then gone, and all is in the one file
    for trouble in troubles:
        raise trouble


def assembled(secret: str, recent: Recent, switches: Switches, plugins: Sequence[str]) -> Setup:
    """Argilla's application as it is served, with what the switches ask for, and then what the plugins make of it.

    `secret` signs sessions; `recent` remembers who guessed passwords. Call it once, with Argilla's settings set and the
    home as working folder. Raises StartError for a plugin that cannot be loaded.
    """
    from argilla_server import _app  # noqa: PLC0415

    from . import hardening, privacy, signing_in  # noqa: PLC0415
    from .throttle import Throttle  # noqa: PLC0415

    # Under a path, Argilla mounts its application in an empty one; here `hosts.under` stands before the guard instead.
    app = _app.app if os.environ["ARGILLA_BASE_URL"] == "/" else _app.app.routes[0].app
    setup = Setup(app, secret, recent, switches)
    hardening.mend(app)
    privacy.know_readers()
    signing_in.apply(Throttle(recent) if switches.hardened else None)
    if switches.hardened:
        hardening.apply(app)
    if switches.private:
        privacy.apply()
    for install in load(plugins):
        install(setup)
    return setup


def allow_many_connections() -> None:
    """Raise this process's limit of open files to the maximum: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def write_state(url: str) -> None:
    """Write the address for the program that started the server, in one step, so that nobody reads half of it."""
    new = Path("server.json.new")
    new.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    new.replace("server.json")
