"""A server's folder (its database, its secrets, its log, its lock), and the server that runs on it.

Only the user who owns the folder can read it.

None of its secrets is ever a default: the owner's password and key and the secret that signs sessions are drawn here,
before the server first runs, and written with mode 0600 from the first byte.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from plumbline.errors import DataError, ServiceError
from plumbline.importing import httpx
from plumbline.reading import read_json
from plumbline.resources import private, working

OWNER = "owner"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


@dataclass(frozen=True)
class User:
    """A person (or simulated rater) with an account on the server."""

    username: str  #: the name to sign in with; unique on a server
    password: str = field(repr=False)  #: generated; the server has only its hash
    api_key: str = field(repr=False)  #: the value of `X-Argilla-Api-Key` for Argilla's API


@dataclass(frozen=True)
class Credentials:
    """All accounts that this platform created on a home's server."""

    owner: User  #: may do everything; is in no workspace, because its admins could read the owner's key
    annotators: tuple[User, ...] = ()  #: everyone else, in the order of creation

    def find(self, username: str) -> User | None:
        """Return the user of this name, or None."""
        return next((user for user in (self.owner, *self.annotators) if user.username == username), None)


@dataclass(frozen=True)
class Home:
    """The folder of one server. Two servers never share a home; a lock held by the server prevents it."""

    path: Path = field(default_factory=lambda: working(".argilla"))  #: made when first used, mode 0700

    @property
    def database(self) -> Path:
        """SQLite's file; its -wal and -shm lie beside it while the server runs."""
        return self.path / "argilla.db"

    @property
    def credentials_file(self) -> Path:
        """JSON: {"owner": {username, password, api_key}, "annotators": [...]}; mode 0600."""
        return self.path / "credentials.json"

    @property
    def languages_file(self) -> Path:
        """JSON: which languages each annotator reads, {server: {username: ["en", "de"]}}; mode 0600."""
        return self.path / "languages.json"

    @property
    def blocks_file(self) -> Path:
        """JSON: the studies whose blocks of pairs are opened while the server runs, [{study, exports}]."""
        return self.path / "blocks.json"

    @property
    def database_url_file(self) -> Path:
        """The file with the PostgreSQL database's address, if it replaces SQLite's; mode 0600."""
        return self.path / "database-url"

    @property
    def backups(self) -> Path:
        """The default folder for backups; mode 0700."""
        return self.path / "backups"

    @property
    def secret_file(self) -> Path:
        """The key that signs web sessions, kept so that a restart signs nobody out; mode 0600."""
        return self.path / "secret"

    @property
    def log(self) -> Path:
        """The server's log; the previous one, once it has grown, is `server.log.1`."""
        return self.path / "server.log"

    @property
    def lock(self) -> Path:
        """The file that the running server locks (flock) until it ends, even by `kill -9`."""
        return self.path / "server.lock"

    @property
    def command_lock(self) -> Path:
        """The file that a command locks as long as the server that it started for itself."""
        return self.path / "command.lock"

    @property
    def state(self) -> Path:
        """JSON {"url", "pid"}, written by the server once it answers; only true while the lock is held."""
        return self.path / "server.json"


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` in one step, with mode 0600 from creation on. Raises ServiceError if it cannot."""
    try:
        # mkstemp makes the file with mode 0600, whatever the umask is.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ServiceError(
            f"{path}: cannot be written ({error.strerror}); free disk space or choose another home"
        ) from error


def prepare(home: Home) -> bool:
    """Create the folder, the secret and the owner's credentials if missing.

    Returns whether the owner is new (then the caller shows the password once). Raises ServiceError when the folder
    cannot be written, DataError when a file in it is damaged.
    """
    make_folder(home)
    with changing(home):
        if not home.secret_file.exists():
            write_private(home.secret_file, secrets.token_urlsafe(48))
        if home.credentials_file.exists():
            credentials(home)
            return False
        save(home, Credentials(owner=new_user(OWNER)))
        return True


def make_folder(home: Home) -> None:
    """Create the home's folder if it is missing, readable only by its user. Raises ServiceError."""
    try:
        home.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        home.path.chmod(PRIVATE_FOLDER)
    except OSError as error:
        raise ServiceError(
            f"{home.path}: not usable as the server's folder ({error.strerror}); choose another or fix its permissions"
        ) from error


def new_user(username: str, api_key: str | None = None) -> User:
    """Return a user with a drawn password (and key, unless given): 16 and 32 bytes of randomness."""
    return User(username, secrets.token_urlsafe(16), api_key or secrets.token_urlsafe(32))


def credentials(home: Home) -> Credentials:
    """Read the home's accounts from its file. Raises DataError if it is missing or damaged."""
    path = home.credentials_file
    try:
        content: Any = read_json(path)
        return Credentials(User(**content["owner"]), tuple(User(**user) for user in content["annotators"]))
    except FileNotFoundError as error:
        raise DataError(f"{path}: there are no credentials yet; start the server once (plumbline serve)") from error
    except (DataError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: damaged ({error}); move it away and start the server again: the owner gets a new password"
        ) from error


def save(home: Home, content: Credentials) -> None:
    """Replace the credentials file.

    Call it under `changing`, with content read in the same block.
    """
    write_private(home.credentials_file, json.dumps(asdict(content), indent=2, ensure_ascii=False) + "\n")


def remember(home: Home, user: User) -> None:
    """Add `user` to the file, replacing an entry of the same name."""
    with changing(home):
        present = credentials(home)
        if user.username == present.owner.username:
            save(home, replace(present, owner=user))
            return
        remaining = [present_user for present_user in present.annotators if present_user.username != user.username]
        save(home, replace(present, annotators=(*remaining, user)))


def forget(home: Home, username: str) -> None:
    """Remove an annotator from the file, if listed."""
    with changing(home):
        present = credentials(home)
        save(home, replace(present, annotators=tuple(user for user in present.annotators if user.username != username)))


@contextlib.contextmanager
def changing(home: Home) -> Iterator[None]:
    """Lock the files of `home` against other processes."""
    lock = home.path / ".files.lock"
    try:
        stream = open(lock, "a", opener=private)  # noqa: SIM115  # Path.open has no opener; closed below
    except OSError as error:
        raise ServiceError(f"{lock}: cannot be written ({error.strerror}); fix the folder's permissions") from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


START_SECONDS = 90.0  #: the first start migrates an empty database; later ones take a few seconds
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Connection:
    """A server that answers, and the key for it."""

    url: str  #: for example http://127.0.0.1:6900, without a slash at the end
    api_key: str = field(repr=False)  #: the owner's
    home: Home | None = None  #: None for an Argilla that runs elsewhere


def is_loopback(host: str) -> bool:
    """Return whether `host` can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find(home: Home) -> Connection | None:
    """Return the running server on `home`, waiting for one that is starting; None if none runs. Raises ServiceError."""
    return wait_for(home) if is_locked(home) else None


def is_locked(home: Home) -> bool:
    """Return whether a server, ready or not, holds `home`."""
    return _is_held(home.lock)


def is_of_command(home: Home) -> bool:
    """Return whether a command has started a server on `home` that ends with it."""
    return _is_held(home.command_lock)


def _is_held(lock: Path) -> bool:
    try:
        with open(lock, "a", opener=private) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise ServiceError(f"{lock}: cannot be opened ({error.strerror}); fix the folder's permissions") from error
    return False


def wait_for(home: Home) -> Connection | None:
    """Wait until another process's server on `home` answers; return None if it ends.

    Raises ServiceError if it does neither in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not is_locked(home):
            return None
        if (connection := probe(home)) is not None:
            return connection
        time.sleep(POLL_SECONDS)
    raise ServiceError(f"{home.path}: in use by a server that does not answer; see {home.log}, or stop that server")


def probe(home: Home) -> Connection | None:
    """Return the server that `home`'s state names, if it accepts the owner's key now."""
    try:
        state: Any = read_json(home.state)
        url = str(state["url"])
    except (DataError, OSError, KeyError, TypeError):
        return None  # not written yet, or left behind by a server that was killed
    owner = credentials(home).owner
    try:
        # trust_env: a proxy of the user's environment must not see the key of a server on this machine.
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            answer = client.get(f"{url}/api/v1/me", headers={"X-Argilla-Api-Key": owner.api_key})
    except httpx.HTTPError:
        return None
    return Connection(url, owner.api_key, home) if answer.status_code == httpx.codes.OK else None


Role = Literal["annotator", "admin", "owner"]


def ensure_user(server: Connection, username: str, first_name: str, role: Role = "annotator") -> User:
    """Return the account `username`, created if missing.

    On our own server the account is kept in the home's credentials file; an existing account whose password is not
    in the file gets a new password. On an Argilla elsewhere, an existing account is left as it is and returned with
    an empty password. Nothing is printed. Raises ServiceError if the server refuses or the account has another role.
    """
    home = server.home
    account = next((user for user in call(server, "GET", "users")["items"] if user["username"] == username), None)
    if account is not None and account["role"] != role:
        raise ServiceError(
            f"the account {username} exists with the role {account['role']}, not {role}; choose another name"
        )
    credential = credentials(home).find(username) if home is not None else None
    if account is not None and credential is not None and credential.api_key == account["api_key"]:
        return credential
    if account is not None and home is None:
        return User(username, "", str(account["api_key"]))
    drawn = new_user(username)
    if account is None:
        body = {"username": username, "first_name": first_name, "role": role, "password": drawn.password}
        account = call(server, "POST", "users", body)
    else:
        account = call(server, "PATCH", f"users/{account['id']}", {"password": drawn.password})
    user = User(username, drawn.password, str(account["api_key"]))
    if home is not None:
        remember(home, user)
    return user


def call(server: Connection, method: str, path: str, body: dict[str, str] | None = None, timeout: float = 30.0) -> Any:
    """Call Argilla's API; return its JSON. Raises ServiceError, in one line without the body that was sent."""
    ours = server.home is not None
    try:
        # Our own server is on this machine: no proxy of the user's environment shall be used.
        with httpx.Client(trust_env=not ours, timeout=timeout) as client:
            answer = client.request(
                method, f"{server.url}/api/v1/{path}", json=body, headers={"X-Argilla-Api-Key": server.api_key}
            )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServiceError(
            f"{server.url}: Argilla does not answer ({str(error) or type(error).__name__}); is it running?"
        ) from error
    if answer.is_error:
        # Not the answer's text: for an invalid body it repeats the body, and with it the password.
        unknown = answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
        advice = "check that the key is an owner's" if unknown else "the server's log has the reason"
        raise ServiceError(f"{server.url}: Argilla refused {method} {path} ({answer.status_code}); {advice}")
    try:
        return answer.json()
    except ValueError as error:
        raise ServiceError(f"{server.url}: the reply is not an Argilla response; check the address") from error
