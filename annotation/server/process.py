"""Starting, finding and stopping the server: one process for each home, never two.

The server is a child that holds the home's lock for as long as it lives and that stops when its standard input
closes, so it outlives neither a Ctrl-C nor a killed parent. No secret is ever in its arguments or its environment:
it reads them from the home's files.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from generation.exceptions import ServiceError

from .environment import clean, ensure_environment
from .home import Home, credentials, prepare, private

PLUGIN = Path(__file__).parent / "plugin"
START_SECONDS = 90.0  #: the first start migrates an empty database; later ones take a few seconds
STOP_SECONDS = 15.0
POLL_SECONDS = 0.1
LOG_BYTES = 5_000_000
#: What the child's own last word starts with; `plumbline_argilla.launch` writes it.
ERROR_MARK = "plumbline-argilla: error: "
IN_USE_EXIT = 3  #: the child's exit status when another server holds the home
#: The only variables of ours that the server gets: settings of Argilla or the hub in a user's shell shall not bend it.
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Connection:
    """A server that answers, and the key with which to talk to it."""

    url: str  #: for example http://127.0.0.1:6900, without a slash at the end
    api_key: str = field(repr=False)  #: the owner's
    home: Home | None = None  #: None for an Argilla that runs elsewhere


@contextlib.contextmanager
def running(
    home: Home | None = None, port: int | None = None, progress: Callable[[str], None] = print
) -> Iterator[Connection]:
    """A ready server on `home`: the one that runs there already, else one of our own that stops at exit.

    `port` matters only for a new one (None: any free port). "Ready" means: migrated, the owner's key accepted.
    Raises ServiceError (port taken, folder not writable, no environment, or whatever the server's log says last).
    """
    home = home or Home()
    prepare(home)
    if (found := find(home)) is not None:
        yield found
        return
    python = ensure_environment(progress)
    try:
        child = Child(home, python, "127.0.0.1", port or 0)
    except InUseError:
        # Another process was quicker between our look and our start; its server is as good as ours.
        yield wait_for(home)
        return
    try:
        yield child.connection
    finally:
        child.stop()


def serve(
    home: Home | None = None,
    host: str = "127.0.0.1",
    port: int = 6900,
    progress: Callable[[str], None] = print,
    on_ready: Callable[[Connection], None] | None = None,
) -> None:
    """Run the server until Ctrl-C or SIGTERM, which end it cleanly and then raise KeyboardInterrupt.

    Prints the address, and on a home's first start the owner's generated password, once; then calls `on_ready`.
    Raises ServiceError when a server already runs on this home, when it does not come up, and when it ends by itself.
    """
    home = home or Home()
    first = prepare(home)
    if (found := find(home)) is not None:
        raise ServiceError(f"{home.path}: its server already runs at {found.url}; use that one, or stop it first")
    python = ensure_environment(progress)
    with terminating():
        try:
            child = Child(home, python, host, port)
        except InUseError as error:
            raise ServiceError(f"{home.path}: another server has just started on this folder; use that one") from error
        try:
            announce(child.connection.url, home, host, first, progress)
            if on_ready is not None:
                on_ready(child.connection)
            status = child.until_ended()
        finally:
            child.stop()
    raise ServiceError(f"the Argilla server ended by itself (exit {status}): {child.last_words()}; see {home.log}")


def announce(url: str, home: Home, host: str, first: bool, progress: Callable[[str], None]) -> None:
    """Say where the server is and how to sign in; the password only on the first start of a home."""
    progress(f"Argilla runs at {url}   (Ctrl-C stops it)")
    if first:
        owner = credentials(home).owner
        progress(f"Sign in as {owner.username} with the password {owner.password}   (shown this once)")
    progress(f"Accounts and passwords: {home.credentials_file}")
    if not is_loopback(host):
        progress(
            f"Warning: {host} is open to the network and not encrypted; put a TLS proxy in front, or use 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether `host` can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find(home: Home) -> Connection | None:
    """The ready server on `home`, or None when none runs; waits for one that is starting. Raises ServiceError."""
    return wait_for(home) if is_locked(home) else None


def is_locked(home: Home) -> bool:
    """Whether a server, ready or not, holds `home`."""
    try:
        with open(home.lock, "a", opener=private) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise ServiceError(
            f"{home.lock}: cannot be opened ({error.strerror}); mend the folder's permissions"
        ) from error
    return False


def wait_for(home: Home) -> Connection:
    """Another process's server on `home`, once it answers. Raises ServiceError when it does not in time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and is_locked(home):
        if (found := probe(home)) is not None:
            return found
        time.sleep(POLL_SECONDS)
    raise ServiceError(f"{home.path}: in use by a server that does not come up; see {home.log}, or stop that server")


def probe(home: Home) -> Connection | None:
    """The server that `home`'s state names, if it accepts the owner's key now."""
    try:
        state: Any = json.loads(home.state.read_text(encoding="utf-8"))
        url = str(state["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not written yet, or left behind by a server that was killed
    owner = credentials(home).owner
    try:
        # trust_env: a proxy of the user's environment must not see the key of a server on this machine.
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            answer = client.get(f"{url}/api/v1/me", headers={"X-Argilla-Api-Key": owner.api_key})
    except httpx.HTTPError:
        return None
    return Connection(url, owner.api_key, home) if answer.status_code == httpx.codes.OK else None


class InUseError(Exception):
    """Another server took the home's lock first."""


class Child:
    """A server of our own. The constructor returns once it is ready, and leaves no process behind when it raises."""

    def __init__(self, home: Home, python: Path, host: str, port: int) -> None:
        self.home = home
        if home.log.exists() and home.log.stat().st_size > LOG_BYTES:
            home.log.replace(home.log.with_name(home.log.name + ".1"))
        with open(home.log, "ab", opener=private) as log:
            self.log_start = log.tell()
            # -P: the working folder is the home, and no module shall ever be read from there.
            command = [str(python), "-P", "-m", "plumbline_argilla", "--home", str(home.path.absolute()),
                       "--host", host, "--port", str(port)]  # fmt: skip
            passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            environment = clean(passed) | {"PYTHONPATH": str(PLUGIN), "PYTHONUNBUFFERED": "1"}
            try:
                # A session of its own: a Ctrl-C in the terminal reaches us, and we end the server in order.
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
        """Wait for the child to answer; InUseError or ServiceError with its reason when it ends or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            status = self.process.poll()
            if status == IN_USE_EXIT:
                raise InUseError
            if status is not None:
                raise ServiceError(f"the Argilla server did not start: {self.last_words()} (log: {self.home.log})")
            if self.has_state() and (found := probe(self.home)) is not None:
                return found
            time.sleep(POLL_SECONDS)
        raise ServiceError(f"the Argilla server did not answer within {START_SECONDS:.0f} s; see {self.home.log}")

    def until_ended(self) -> int:
        """Wait for the child to end by itself; its exit status."""
        # Not process.wait(): a signal that comes just before it blocks would be heeded only once the child has ended.
        while (status := self.process.poll()) is None:
            time.sleep(POLL_SECONDS)
        return status

    def has_state(self) -> bool:
        """Whether the state file is this child's, and not one that a killed server left behind."""
        try:
            state: Any = json.loads(self.home.state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(state, dict) and state.get("pid") == self.process.pid

    def last_words(self) -> str:
        """The reason that the child gave in its log, else its log's last line."""
        with self.home.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self.log_start)
            lines = [line.strip() for line in log if line.strip()]
        reasons = [line.removeprefix(ERROR_MARK) for line in lines if line.startswith(ERROR_MARK)]
        return (reasons or lines or ["it said nothing"])[-1]

    def stop(self) -> None:
        """End the child: in order first, by force when it does not heed."""
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


@contextlib.contextmanager
def terminating() -> Iterator[None]:
    """Let SIGTERM end what runs inside as Ctrl-C does: by KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; there SIGTERM keeps its meaning
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
