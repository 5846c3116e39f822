"""Backups of everything that a server has: one file with the database, the accounts and the secret.

    backup(home)                      # -> .argilla/backups/argilla-20261120T121500Z-manual.tar.gz
    restore(home, file)               # the server must be stopped; the old data are moved aside

A backup is taken while people rate, from one consistent state of the database, and checked after writing. It is a
tar.gz of `manifest.json` (time, kind, numbers of rows, sums), `argilla.db` (SQLite) or `argilla.dump` (pg_dump's custom
format), `credentials.json`, `secret`, and `languages.json` if there is one; mode 0600.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from annotation.server import database
from annotation.server.home import PRIVATE_FOLDER, Home, changing, make_folder
from plumbline.errors import DataError, PlumblineError, ServiceError, is_full
from plumbline.reading import parse_json
from plumbline.resources import private

Reason = Literal["manual", "scheduled", "upgrade"]
FORMAT = 1
SUFFIX = ".tar.gz"
MANIFEST = "manifest.json"
DATABASES = {"sqlite": "argilla.db", "postgresql": "argilla.dump"}
#: The other files of a backup, if they exist: their names in it, and their places in the home.
BESIDE = {
    "credentials.json": "credentials.json",
    "secret": "secret",
    "languages.json": "languages.json",
    "pseudonyms.key": "pseudonyms.key",
    "rooms.json": "crowd/rooms.json",
    "entries.db": "crowd/entries.db",
}
CHUNK = 1 << 20
_MISFITS = (ValueError, KeyError, TypeError, AttributeError)  # errors of a manifest that is not ours


@dataclass(frozen=True)
class BackupManifest:
    """A backup's description of itself."""

    format: int  #: of the file; this code reads FORMAT
    made: str  #: when it was made, ISO 8601, UTC
    kind: str  #: "sqlite" or "postgresql"
    counts: dict[str, int]  #: rows by table: users, workspaces, datasets, records, responses
    files: dict[str, str]  #: name to SHA-256

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        return f"{counts}; taken {self.made}"


def backup(home: Home, folder: Path | None = None, reason: Reason = "manual") -> tuple[Path, BackupManifest]:
    """Write a checked backup of `home` into `folder` (default: the home's); return its path and manifest.

    Raises DataError if there is nothing to back up or the database is damaged, ServiceError if the backup cannot be
    written; then nothing is left behind.
    """
    if not database.has_database(home):
        raise DataError(
            f"{home.path}: there is no database to back up; start the server once, or choose another --data"
        )
    address, folder = database.address_of(home), (folder or home.backups).absolute()
    at = datetime.now(UTC)
    target = folder / f"argilla-{at:%Y%m%dT%H%M%SZ}-{reason}{SUFFIX}"
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=folder) as scratch:
            work = Path(scratch)
            kind = "sqlite" if address is None else "postgresql"
            copy = work / DATABASES[kind]
            counts = database.copy_sqlite(home.database, copy) if address is None else database.dump(address, copy)
            with changing(home):
                for name, path in BESIDE.items():
                    if (home.path / path).exists() and name.endswith(".db"):
                        database.copy_sqlite(home.path / path, work / name, tables=())
                    elif (home.path / path).exists():
                        shutil.copyfile(home.path / path, work / name)
            files = {file.name: digest(file) for file in sorted(work.iterdir())}
            manifest = BackupManifest(FORMAT, at.isoformat(timespec="seconds"), kind, counts, files)
            (work / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
            packed = work / target.name
            pack(packed, [work / MANIFEST, *(work / name for name in files)])
            with unpacked(packed, folder):
                packed.replace(target)
    except OSError as error:
        raise ServiceError(f"{folder}: no backup can be written there ({error.strerror}); free disk space or choose "
                           "another folder") from error  # fmt: skip
    return target, manifest


def restore(home: Home, file: Path) -> tuple[BackupManifest, str]:
    """Replace the data of `home` by a backup; return its manifest and the location of the old data.

    The backup is checked before anything changes, and the database again afterwards. Nothing is ever deleted. Raises
    ServiceError while a server runs on `home`, DataError for a damaged backup or another kind of database.
    """
    if not file.is_file():
        raise DataError(f"{file}: there is no such backup; list them with: ls {home.backups}")
    make_folder(home)
    address = database.address_of(home)
    with stopped(home), unpacked(file, home.path) as (work, manifest):
        kind = "sqlite" if address is None else "postgresql"
        if manifest.kind != kind:
            raise DataError(f"{file}: this backup is of {manifest.kind}, but {home.path} uses {kind}; restore it to a "
                            f"server that uses {manifest.kind}")  # fmt: skip
        replaced = home.path / f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        try:
            replaced.mkdir(mode=PRIVATE_FOLDER)
            kept_at = str(replaced)
            if address is not None:
                kept_at += f" and schema {database.load(address, work / DATABASES[kind], manifest.counts)}"
            swap(home, work, replaced, [name for name in manifest.files if name != DATABASES["postgresql"]])
        except OSError as error:
            raise ServiceError(f"{home.path}: cannot be changed ({error.strerror}, {error.filename}); its old "
                               f"files are still there or in {replaced}") from error  # fmt: skip
        if address is None:
            database.check_sqlite(home.database, manifest.counts)
    return manifest, kept_at


def swap(home: Home, work: Path, replaced: Path, names: list[str]) -> None:
    """Move the home's files aside and the backup's into their place."""
    places = [*BESIDE.values(), "argilla.db", "jobs.db"]
    logs = [f"{path}{log}" for path in places if path.endswith(".db") for log in ("-wal", "-shm")]
    with changing(home):
        for path in (*places, *logs):
            if (home.path / path).exists():
                (home.path / path).replace(replaced / Path(path).name)
        for name in names:
            target = home.path / BESIDE.get(name, name)
            target.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            (work / name).replace(target)


@contextlib.contextmanager
def stopped(home: Home) -> Iterator[None]:
    """Lock the home as a server does, so that no server starts. Raises ServiceError if one runs."""
    with open(home.lock, "a", opener=private) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ServiceError(f"{home.path}: its server is running; stop it (Ctrl-C), then restore") from error
        yield


def pack(target: Path, files: list[Path]) -> None:
    """Write a tar.gz that only its user can read, down to the disk."""
    with open(target, "xb", opener=private) as stream:
        with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
            for file in files:
                member = tarfile.TarInfo(file.name)
                member.size, member.mode = file.stat().st_size, 0o600
                with file.open("rb") as content:
                    archive.addfile(member, content)
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def unpacked(file: Path, near: Path) -> Iterator[tuple[Path, BackupManifest]]:
    """Provide a temporary folder in `near` with a backup's files, each checked by its sum. Raises DataError."""
    with tempfile.TemporaryDirectory(prefix=".unpacked-", dir=near) as scratch:
        work = Path(scratch)
        try:
            manifest = unpack(file, work)
        except (DataError, tarfile.TarError, EOFError, zlib.error, OSError, *_MISFITS) as error:
            if isinstance(error, OSError) and (error.filename or is_full(error)):
                error.filename = error.filename or str(near)
                raise  # the folder is at fault, not the file
            raise DataError(
                f"{file}: this backup cannot be restored ({type(error).__name__}: {error}); use another"
            ) from error
        if manifest.kind == "sqlite":
            try:
                database.check_sqlite(work / DATABASES["sqlite"], manifest.counts)
            except PlumblineError as error:
                raise DataError(f"{file}: this backup is damaged ({error}); use another") from error
        yield work, manifest


def unpack(file: Path, work: Path) -> BackupManifest:
    """Write the files that the manifest names into `work`; ValueError or KeyError if they do not match it."""
    with tarfile.open(file, mode="r:gz") as archive:
        members = {member.name: member for member in archive.getmembers() if member.isfile()}
        content: Any = parse_json(stream_of(archive, members[MANIFEST]).read(CHUNK))
        if content["format"] != FORMAT:
            raise ValueError(f"it has format {content['format']}, but this platform reads format {FORMAT}")
        manifest = BackupManifest(**content)
        allowed = {DATABASES[manifest.kind], *BESIDE}
        if not {DATABASES[manifest.kind], "credentials.json", "secret"} <= manifest.files.keys() <= allowed:
            raise ValueError("it lacks files of a backup or has unexpected ones")
        for name, expected in manifest.files.items():
            with open(work / name, "wb", opener=private) as target:
                shutil.copyfileobj(stream_of(archive, members[name]), target, CHUNK)
            if digest(work / name) != expected:
                raise ValueError(f"the content of {name} has changed")
    return manifest


def stream_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    """Open a regular file in an archive."""
    stream = archive.extractfile(member)
    if stream is None:
        raise ValueError(f"{member.name} is not a file")
    return stream


def digest(file: Path) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


EVERY = timedelta(hours=6)
KEEP = 28  #: the newest scheduled backups kept: a week at six hours; of older ones, one a week is kept
LOOK_SECONDS = 60.0
WARN_AGAIN = timedelta(hours=1)
LEAST_FREE = 500_000_000  #: bytes
SCHEDULED = re.compile(rf"argilla-(\d{{8}}T\d{{6}}Z)-scheduled{re.escape(SUFFIX)}")


@dataclass
class Keeper:
    """A watch on a home's disk that also takes backups while the server runs; call `look` often."""

    home: Home
    every: timedelta | None = EVERY  #: between scheduled backups; None: none
    keep: int = KEEP
    say: Callable[[str], None] = print
    next_look: float = field(default=0.0, init=False)  # by time.monotonic
    tried: datetime | None = field(default=None, init=False)  # the last attempt at a backup, done or failed
    warned: datetime | None = field(default=None, init=False)

    def look(self) -> None:
        """Once a minute, warn about a full disk and write a due backup; print troubles, and raise nothing."""
        if time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_SECONDS
        at = datetime.now(UTC)
        trouble = disk_trouble(self.home)
        if trouble and (self.warned is None or not timedelta() <= at - self.warned < WARN_AGAIN):
            self.warned = at
            self.tell(f"Warning: {trouble}")
        if self.every is not None and self.due(at, self.every):
            self.tried = at
            try:
                backup(self.home, reason="scheduled")
                thin(self.home.backups, self.keep, datetime.now(UTC))
            except (PlumblineError, OSError) as error:
                self.tell(f"Warning: the scheduled backup failed: {error}")

    def due(self, at: datetime, every: timedelta) -> bool:
        """Return whether the last scheduled backup (of an earlier start, too) is older than the schedule allows.

        Times in the future come from a wrong clock and are ignored.
        """
        times = [made_at for made_at, _ in scheduled(self.home.backups)] + ([self.tried] if self.tried else [])
        last = max((made_at for made_at in times if made_at <= at), default=None)
        return last is None or at - last >= every

    def tell(self, line: str) -> None:
        """Print a line on the console, and add it to the log if the disk has room."""
        self.say(line)
        with contextlib.suppress(OSError), open(self.home.log, "a", encoding="utf-8", opener=private) as log:
            log.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")


def disk_trouble(home: Home) -> str | None:
    """Return a warning about the home's disk, or None; a backup needs room for a copy and an archive."""
    size = home.database.stat().st_size if home.database.exists() else 0
    free = shutil.disk_usage(home.path).free
    least = max(LEAST_FREE, 2 * size)
    if free >= least:
        return None
    return (
        f"{home.path}: only {free / 1e6:,.0f} MB are free on this disk and the database takes {size / 1e6:,.0f} MB; "
        f"make room for at least {least / 1e6:,.0f} MB, because answers cannot be stored on a full disk"
    )


def scheduled(folder: Path) -> list[tuple[datetime, Path]]:
    """Return the scheduled backups in a folder with their times, newest first."""
    if not folder.is_dir():
        return []
    matches = [(match[1], file) for file in folder.iterdir() if (match := SCHEDULED.fullmatch(file.name))]
    return sorted(((datetime.strptime(made_at, "%Y%m%dT%H%M%S%z"), file) for made_at, file in matches), reverse=True)


def thin(folder: Path, keep: int, at: datetime) -> None:
    """Remove scheduled backups that are neither among the `keep` newest nor the newest of a week.

    Other backups stay. Backups with a time in the future (from a wrong clock) stay as well, and do not count.
    """
    newest: dict[tuple[int, int], Path] = {}
    files = [(made_at, file) for made_at, file in scheduled(folder) if made_at <= at]
    for made_at, file in files:
        newest.setdefault(made_at.isocalendar()[:2], file)
    for _, file in files[keep:]:
        if file not in newest.values():
            file.unlink()
