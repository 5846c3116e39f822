"""Starting and stopping the server, one for each home and never two, in a Python environment of its own.

The environment is created once, from exact versions with hashes. It is separate because argilla-server 2.8.0 pins
pydantic, httpx and SQLAlchemy to versions that the platform cannot use. The platform's interpreter creates it, but
nothing of the platform's environment leaks in.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from annotation.server import database
from annotation.server.backup import Keeper, backup
from annotation.server.home import (
    POLL_SECONDS,
    START_SECONDS,
    Connection,
    Home,
    credentials,
    find,
    is_locked,
    is_loopback,
    is_of_command,
    prepare,
    probe,
)
from plumbline.environments import clean, finish, make_venv
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.reading import read_json
from plumbline.resources import IN_CHECKOUT, ROOT, private, resource, user_cache


@contextlib.contextmanager
def running(
    home: Home | None = None,
    port: int | None = None,
    progress: Callable[[str], None] = print,
    database_url: str | None = None,
    workers: int = 1,
    hosts: Sequence[str] = ("127.0.0.1",),
) -> Iterator[Connection]:
    """Provide a ready server on `home`: the running one, or a new one that is stopped at exit.

    `port` (None: any free one), `database_url`, `workers` and `hosts` (host and addresses, as in `serve`) matter only
    for a new one. "Ready" means: migrated, the owner's key accepted. Raises ServiceError (port taken, folder not
    writable, no environment, or the last words of the server's log).
    """
    home = home or Home()
    _refuse_taken(home, hosts[0], port or 0)
    prepare(home)
    if (connection := find(home)) is not None:
        yield connection
        return
    can_share(workers, database.choose(home, database_url))
    python = ensure_environment(progress)
    with contextlib.suppress(InUseError), open(home.command_lock, "a", opener=private) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        child = start(home, python, hosts, port or 0, progress, workers)
        try:
            yield child.connection
        finally:
            child.stop()
        return
    # Another process started a server between our look and our start; its server is as good as ours.
    if (connection := find(home)) is None:
        raise ServiceError(f"{home.path}: another server has just started and ended; run the command again")
    yield connection


def serve(  # noqa: PLR0913  # a command's options
    home: Home | None = None,
    host: str = "127.0.0.1",
    port: int = 6900,
    progress: Callable[[str], None] = print,
    on_ready: Callable[[Connection], None] | None = None,
    database_url: str | None = None,
    keeper: Keeper | None = None,
    addresses: Sequence[str] = (),
    workers: int = 1,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Run the server until Ctrl-C or SIGTERM, which end it cleanly and then raise KeyboardInterrupt.

    Prints the address, and on a home's first start the owner's generated password, once; then calls `on_ready`.
    `database_url` is a PostgreSQL database's (database.choose). `keeper` takes backups and watches the disk meanwhile,
    and `meanwhile` is called as often, several times a second. `addresses` are those under which others reach the
    server: with them, requests under any other name but this machine's are refused. `workers` is the number of
    serving processes; more than one needs PostgreSQL, otherwise StudyError is raised. Waits for a server that another
    command started for itself. Raises ServiceError if another already runs on this home, if the new one does not start,
    and if it ends by itself.
    """
    home = home or Home()
    _refuse_taken(home, host, port)
    first = prepare(home)
    address = database.choose(home, database_url)
    can_share(workers, address)
    python = ensure_environment(progress)
    with terminating():
        child = None
        while child is None:
            _wait_for_command(home, progress)
            if (connection := find(home)) is not None:
                raise ServiceError(
                    f"{home.path}: its server already runs at {connection.url}; use that one, or stop it first"
                )
            with contextlib.suppress(InUseError):  # another one started between our look and our start
                child = start(home, python, (host, *addresses), port, progress, workers)
        try:
            announce(child.connection.url, home, host, first, progress)
            if address is not None:
                progress(f"Database: {database.named(address)}")
            if on_ready is not None:
                on_ready(child.connection)
            status = watch(child, keeper, meanwhile)
        finally:
            child.stop()
    how = f"was killed (signal {-status})" if status < 0 else f"ended by itself (exit {status}): {child.last_words()}"
    raise ServiceError(f"the Argilla server {how}; no submitted answer is lost: start it again, or see {home.log}")


def _wait_for_command(home: Home, progress: Callable[[str], None]) -> None:
    """Wait for the end of a server that ends with the command that started it."""
    if is_of_command(home):
        progress(f"{home.path}: waiting for another command, which runs a server of its own on this folder")
    while is_of_command(home):
        time.sleep(POLL_SECONDS)


def _refuse_taken(home: Home, host: str, port: int) -> None:
    """Raise ServiceError if another program has the port, before creating a home, whose password is shown once."""
    if not port or (home.path.is_dir() and is_locked(home)):
        return  # any free port will do; or the home's own server runs
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:  # the server reports any other trouble
            if error.errno == errno.EADDRINUSE:
                raise ServiceError(
                    f"port {port} on {host} is used by another program; choose another port (--port)"
                ) from None


def can_share(workers: int, address: str | None) -> None:
    """Raise StudyError if several processes would share a SQLite file, which has one writer."""
    if workers > 1 and address is None:
        raise StudyError(
            f"--workers {workers}: SQLite has one writer, so one process serves it; leave --workers out, or use"
            f" PostgreSQL (--database-url {database.EXAMPLE})"
        )


def start(  # a server's options
    home: Home, python: Path, hosts: Sequence[str], port: int, progress: Callable[[str], None], workers: int = 1
) -> Child:
    """Start a server on the first of `hosts`, reached under the others. Raises as Child.

    A database of an older version is backed up before it is migrated.
    """
    try:
        return Child(home, python, hosts, port, workers=workers)
    except MigrationNeededError:
        file, _ = backup(home, reason="upgrade")
        progress(f"The database is of an older version; it was backed up to {file} and is now migrated")
        return Child(home, python, hosts, port, workers=workers, may_migrate=True)


def watch(child: Child, keeper: Keeper | None, meanwhile: Callable[[], None] | None = None) -> int:
    """Run `keeper` and call `meanwhile` until the child ends by itself; return its exit status."""
    # Not process.wait(): a signal just before it blocks would take effect only once the child has ended.
    while (status := child.process.poll()) is None:
        if keeper is not None:
            keeper.look()
        if meanwhile is not None:
            meanwhile()
        time.sleep(POLL_SECONDS)
    return status


def announce(url: str, home: Home, host: str, first: bool, progress: Callable[[str], None]) -> None:
    """Print the server's address and the sign-in; the password only on a home's first start."""
    progress(f"Argilla runs at {url}   (Ctrl-C stops it)")
    progress(f"Annotators begin at {url}/work")
    if first:
        owner = credentials(home).owner
        progress(f"Sign in as {owner.username} with the password {owner.password}   (shown this once)")
    progress(f"Accounts and passwords: {home.credentials_file}")
    if not is_loopback(host):
        progress(
            f"Warning: {host} is open to the network and not encrypted; put a TLS proxy in front, or use 127.0.0.1"
        )


@contextlib.contextmanager
def terminating() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, by KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; there SIGTERM keeps its meaning
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


#: The server itself, which is independent of Plumbline, and Plumbline's additions. Both run in the environment but are
#: not installed there: they always belong to the Plumbline that starts them.
PATHS = (resource("packages/argilla-embedded"), Path(__file__).parent / "plugin")
#: The server's options beyond Argilla itself.
ASKED = ("--hand-out", "--private", "--hardened", "--plugin", "plumbline_argilla.install:install")
STOP_SECONDS = 15.0
LOG_BYTES = 5_000_000
#: The start of the child's own last message; `argilla_embedded.launch` writes it.
ERROR_MARK = "argilla-embedded: error: "
#: The child's exit status if another server holds the home, and if its database must be migrated first.
IN_USE_EXIT, MIGRATION_EXIT = 3, 4
#: The only variables that the server inherits: a user's settings of Argilla or the hub shall not affect it.
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY")


class InUseError(Exception):
    """Another server took the home's lock first."""


class MigrationNeededError(Exception):
    """The database has an older Argilla's tables, and migration was not allowed."""


class Child:
    """A server of our own: ready once constructed; no process is left behind if that fails."""

    def __init__(  # a server's options
        self, home: Home, python: Path, hosts: Sequence[str], port: int, *, workers: int = 1, may_migrate: bool = False
    ) -> None:
        """Listen on the first of `hosts`; the others are the addresses under which the server is reached."""
        self.home = home
        if home.log.exists() and home.log.stat().st_size > LOG_BYTES:
            home.log.replace(home.log.with_name(home.log.name + ".1"))
        with open(home.log, "ab", opener=private) as log:
            self.log_start = log.tell()
            # -P: the working folder is the home, and no module shall be imported from there.
            command = [str(python), "-P", "-m", "argilla_embedded", "serve", "--supervised", *ASKED,
                       "--home", str(home.path.absolute()), "--host", hosts[0],
                       "--port", str(port), "--workers", str(workers),
                       *(["--migrate"] if may_migrate else []),
                       *(f"--address={address}" for address in hosts[1:])]  # fmt: skip
            passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            environment = clean(passed) | {"PYTHONPATH": os.pathsep.join(map(str, PATHS)), "PYTHONUNBUFFERED": "1"}
            try:
                # A session of its own: a Ctrl-C in the terminal reaches only us, and we stop the server cleanly.
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
                )
            except OSError as error:
                raise ServiceError(
                    f"{python}: cannot be run ({error.strerror}); remove {python.parents[1]} and try again"
                ) from error
        try:
            self.connection = self.until_ready()
        except BaseException:
            self.stop()
            raise

    def until_ready(self) -> Connection:
        """Wait for the child to answer; InUseError, MigrationNeededError or ServiceError if it does not."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            status = self.process.poll()
            if status == IN_USE_EXIT:
                raise InUseError
            if status == MIGRATION_EXIT:
                raise MigrationNeededError
            if status is not None:
                raise ServiceError(f"the Argilla server did not start: {self.last_words()} (log: {self.home.log})")
            if self.has_state() and (connection := probe(self.home)) is not None:
                return connection
            time.sleep(POLL_SECONDS)
        raise ServiceError(f"the Argilla server did not answer within {START_SECONDS:.0f} s; see {self.home.log}")

    def has_state(self) -> bool:
        """Return whether this child wrote the state file, and not a killed server."""
        try:
            state: Any = read_json(self.home.state)
        except (OSError, DataError):
            return False
        return isinstance(state, dict) and state.get("pid") == self.process.pid

    def last_words(self) -> str:
        """Return the child's reason in its log, or else the log's last line."""
        with self.home.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self.log_start)
            lines = [line.strip() for line in log if line.strip()]
        reasons = [line.removeprefix(ERROR_MARK) for line in lines if line.startswith(ERROR_MARK)]
        return (reasons or lines or ["no message"])[-1]

    def stop(self) -> None:
        """Stop the child: cleanly at first, then by force."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                self.process.stdin.close()
        harder: list[Callable[[], None]] = [self.process.terminate, self.process.kill]
        while True:
            try:
                self.process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                if not harder:
                    raise
                harder.pop(0)()
            else:
                return


CONSTRAINTS = resource("constraints/argilla-server.txt")
WITHOUT_NETWORK = (
    f"pip could not install {CONSTRAINTS}; check the network, or pip's configured index. Without a "
    "network: on an online machine with the same Python, run `pip download --no-deps --only-binary :all: -d wheels -r "
    f"{CONSTRAINTS}`, copy the folder here, and start with PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels"
)
LOCATION_VARIABLE = "PLUMBLINE_ARGILLA_ENV"
STAMP = "plumbline-stamp"
SUPPORTED = ((3, 11), (3, 13))


def location() -> Path:
    """Return the environment's folder: PLUMBLINE_ARGILLA_ENV, or `.venv-argilla` in the checkout; homes share it.

    For a wheel it is in the user's cache, and named by a hash of its content: two versions of Plumbline on one machine
    do not replace each other's environment under a running server.
    """
    if folder := os.environ.get(LOCATION_VARIABLE):
        return Path(folder).absolute()
    if IN_CHECKOUT:
        return ROOT / ".venv-argilla"
    return user_cache().absolute() / f"argilla-{hashlib.sha256(stamp().encode()).hexdigest()[:12]}"


def ensure_environment(progress: Callable[[str], None] = print) -> Path:
    """Create the environment if it is missing or the constraints have changed; return its interpreter.

    `progress` gets a line before a long wait. An environment counts only once its stamp is written, so an interrupted
    one is created anew. Raises ServiceError, in one line, if it cannot be created.
    """
    folder = location()
    wanted = stamp()
    if is_made(folder, wanted):
        return folder / "bin" / "python"
    if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        raise ServiceError(
            f"the Argilla server needs Python 3.11 to 3.13, but this is {sys.version_info[0]}.{sys.version_info[1]}; "
            "run the platform with one of these versions, or set ARGILLA_API_URL to an Argilla that runs elsewhere"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(folder.name + ".lock"), "a", opener=private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made(folder, wanted):
                make(folder, wanted, progress)
    except OSError as error:
        raise ServiceError(
            f"{folder}: the Argilla server's environment cannot be created ({error.strerror or error}); "
            f"free disk space or set {LOCATION_VARIABLE} to another folder"
        ) from error
    return folder / "bin" / "python"


def stamp() -> str:
    """Return the identity of an environment: the constraints' hash and the Python version."""
    try:
        digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()
    except OSError as error:
        raise ServiceError(
            f"{CONSTRAINTS}: cannot be read ({error.strerror}); install Plumbline again or restore the file"
        ) from error
    return f"{digest} python-{sys.version_info[0]}.{sys.version_info[1]}\n"


def is_made(folder: Path, wanted: str) -> bool:
    """Return whether `folder` holds a finished environment of this stamp with its interpreter."""
    marker = folder / STAMP
    return marker.is_file() and marker.read_text(encoding="utf-8") == wanted and (folder / "bin" / "python").exists()


def make(folder: Path, wanted: str, progress: Callable[[str], None]) -> None:
    """Create the environment from scratch; the stamp comes last."""
    progress(f"Creating the Argilla server's Python environment in {folder} (once; about a minute) ...")
    if folder.exists():
        if not (folder / "pyvenv.cfg").exists() and any(folder.iterdir()):
            raise ServiceError(f"{folder}: not a Python environment, so it is not replaced; move it away or change "
                               f"{LOCATION_VARIABLE}")  # fmt: skip
        shutil.rmtree(folder)
    make_venv(folder)
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--no-compile", "--only-binary", ":all:",
               "--require-hashes", "-r", str(CONSTRAINTS)]  # fmt: skip
    finish(install, clean(os.environ), WITHOUT_NETWORK)
    marker = folder / (STAMP + ".new")
    marker.write_text(wanted, encoding="utf-8")
    marker.replace(folder / STAMP)
