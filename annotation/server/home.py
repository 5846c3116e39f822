"""A server's folder: its database, its secrets, its log, its lock. Only the user who owns it can read it.

Nothing in it is ever a default: the owner's password and key and the secret that signs sessions are drawn here,
before the server has run once, and written with mode 0600 from the first byte on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from plumbline.errors import DataError, ServiceError
from plumbline.reading import read_json
from plumbline.resources import working

OWNER = "owner"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


@dataclass(frozen=True)
class User:
    """A person (or simulated rater) with an account on the server."""

    username: str  #: what is typed to sign in; unique on a server
    password: str = field(repr=False)  #: generated; the server knows only its hash
    api_key: str = field(repr=False)  #: what Argilla's API takes in `X-Argilla-Api-Key`


@dataclass(frozen=True)
class Credentials:
    """Everyone whom this platform gave an account on one home's server."""

    owner: User  #: may do everything; belongs to no workspace, for its admins could read the owner's key
    annotators: tuple[User, ...] = ()  #: everyone else, in the order in which they were made

    def find(self, username: str) -> User | None:
        """The user of this name, or None."""
        return next((user for user in (self.owner, *self.annotators) if user.username == username), None)


@dataclass(frozen=True)
class Home:
    """Where one server keeps everything. Two servers never share a home; a lock held by the server sees to it."""

    path: Path = field(default_factory=lambda: working(".argilla"))  #: made when first used, mode 0700

    @property
    def database(self) -> Path:
        """SQLite's file; its -wal and -shm stand beside it while the server runs."""
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
        """The address of the PostgreSQL database in place of SQLite's file, if there is one; mode 0600."""
        return self.path / "database-url"

    @property
    def backups(self) -> Path:
        """Where backups go unless told otherwise; mode 0700."""
        return self.path / "backups"

    @property
    def secret_file(self) -> Path:
        """What signs the web pages' sessions; kept, so that a restart signs nobody out; mode 0600."""
        return self.path / "secret"

    @property
    def log(self) -> Path:
        """What the server says; the one before it, once it has grown, is `server.log.1`."""
        return self.path / "server.log"

    @property
    def lock(self) -> Path:
        """Locked (flock) by the running server for as long as it lives, even if it is killed."""
        return self.path / "server.lock"

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
            f"{path}: cannot be written ({error.strerror}); free the disk or choose another home"
        ) from error


def prepare(home: Home) -> bool:
    """Make the folder, the secret and the owner's credentials where they are missing.

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
    """See that the home's folder is there and only its user's. Raises ServiceError."""
    try:
        home.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        home.path.chmod(PRIVATE_FOLDER)
    except OSError as error:
        raise ServiceError(
            f"{home.path}: not usable as the server's folder ({error.strerror}); choose another or mend its permissions"
        ) from error


def new_user(username: str, api_key: str | None = None) -> User:
    """A user with a drawn password (and key, unless the server has drawn one): 16 and 32 bytes of randomness."""
    return User(username, secrets.token_urlsafe(16), api_key or secrets.token_urlsafe(32))


def credentials(home: Home) -> Credentials:
    """Who has an account here, read from the home's file. Raises DataError when it is missing or damaged."""
    path = home.credentials_file
    try:
        content: Any = read_json(path)
        return Credentials(User(**content["owner"]), tuple(User(**user) for user in content["annotators"]))
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: there are no credentials yet; start the server once (python -m annotation serve)"
        ) from error
    except (DataError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: damaged ({error}); move it away and start the server again: the owner gets a new password"
        ) from error


def save(home: Home, content: Credentials) -> None:
    """Replace the credentials file. Call it under `changing`, with what was read under the same hold."""
    write_private(home.credentials_file, json.dumps(asdict(content), indent=2, ensure_ascii=False) + "\n")


def remember(home: Home, user: User) -> None:
    """Put `user` into the file, in place of an older entry of the same name."""
    with changing(home):
        present = credentials(home)
        if user.username == present.owner.username:
            save(home, replace(present, owner=user))
            return
        others = [present_user for present_user in present.annotators if present_user.username != user.username]
        save(home, replace(present, annotators=(*others, user)))


def forget(home: Home, username: str) -> None:
    """Take an annotator out of the file; nothing happens when it is not there."""
    with changing(home):
        present = credentials(home)
        save(home, replace(present, annotators=tuple(user for user in present.annotators if user.username != username)))


@contextlib.contextmanager
def changing(home: Home) -> Iterator[None]:
    """Hold the files of `home` against other processes that would change them at the same time."""
    lock = home.path / ".files.lock"
    try:
        stream = open(lock, "a", opener=private)  # noqa: SIM115  # Path.open has no opener; closed below
    except OSError as error:
        raise ServiceError(f"{lock}: cannot be written ({error.strerror}); mend the folder's permissions") from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def private(path: str, flags: int) -> int:
    """An `opener` for `open` whose new files only their owner can read."""
    return os.open(path, flags, PRIVATE_FILE)
