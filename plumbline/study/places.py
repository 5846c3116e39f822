"""The places of a study's records and files: folders of this machine, or remote ones."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from pathlib import Path
from typing import cast

from plumbline.errors import DataError, StudyError
from plumbline.importing import upath
from plumbline.reading import refuse_no_file

_PIECE = 1 << 20  # bytes of a file that are in memory while it is hashed
_MOST_FILES = 20_000  # of a folder that is read as a whole; models and published outputs have hundreds
_MOST_BYTES = 4 * 2**40  # of such a folder; the largest models have a terabyte and a half
_ADDRESS = re.compile(r"[a-z0-9][a-z0-9+.-]*://([^:@/?]+@)?[^:@/?]*(:\d+)?(/[^@?]*)?")


def place(named: str | Path, option: str) -> Path:
    """Return the path or address that an option names. Raises StudyError."""
    if "://" not in str(named):
        return Path(named)
    if not _ADDRESS.fullmatch(str(named)):  # not quoted: it may hold a key
        raise StudyError(
            f"{option}: write an address like s3://bucket/folder, without keys, passwords or options: the protocol's"
            " package reads them from the environment (docs/howto/s3.md)"
        )
    protocol, _, rest = str(named).partition("://")
    if protocol not in ("file", "local", "memory") and not rest.strip("/"):
        raise StudyError(f"{option} {named}: has no bucket or host; write {protocol}://bucket/folder")
    try:
        far = upath.UPath(named)  # imported here: most studies stay on their machine
        far.exists()  # asks for the protocol's package and for rights, before any work is done
    except ImportError as error:
        raise StudyError(f"{option} {named}: {error}; `pip install` the package that it names") from None
    except Exception as error:  # each protocol has errors of its own
        raise StudyError(f"{option} {named}: {error or type(error).__name__}") from None
    return Path(far.path) if far.protocol in ("file", "local") else cast("Path", far)


def output_folder(named: str | Path | None, default: str | Path) -> Path:
    """Return the folder that --out names, or the default. Raises StudyError if it is a file."""
    folder = place(named, "--out") if named else Path(default) if isinstance(default, str) else default
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"--out {folder}: this is a file; name a folder")
    return folder


def resolved(path: Path, location: str) -> Path:
    """Return a path without links and dots. Raises StudyError for circular links and invalid paths."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle, before Python 3.13
        raise StudyError(f"{location}: {path} cannot be resolved ({error}); correct the link") from None
    except ValueError:
        raise StudyError(f"{location}: {str(path)!r} is not a valid path; correct it, or set LC_ALL=C.UTF-8") from None


def files_in(folder: Path) -> list[Path]:
    """Return all files of a folder and its subfolders, without pipes, devices and sockets.

    Raises DataError for a folder that is too large to be read as a whole.
    """
    if folder.resolve() == Path(folder.resolve().anchor):
        raise DataError(f"{folder} is the root of the file system; correct the path")
    listed = list(itertools.islice(folder.rglob("*"), _MOST_FILES + 1))
    if len(listed) > _MOST_FILES:
        raise DataError(
            f"{folder} contains more than {_MOST_FILES:,} files, too many for a model or outputs; correct the path"
        )
    files = [path for path in listed if path.is_file()]
    if (size := sum(path.stat().st_size for path in files)) > _MOST_BYTES:
        raise DataError(f"{folder} contains {size:,} bytes, too many for a model or outputs; correct the path")
    return files


FileState = tuple[int, int, int, int, int]
_TICK = 0.01  # seconds within which the file system's clock may stand still, so that a second change shows in nothing
_hashes: dict[Path, tuple[FileState, str]] = {}


def file_state(path: Path) -> FileState | None:
    """Return the facts that reveal a changed local file: device, inode, size and times.

    Return None if they are not reliable: for remote files, and for files that changed at this very moment.
    """
    if not isinstance(path, Path):  # a far path (`plumbline.store.is_remote`)
        return None
    status = path.stat()
    if time.time() - max(status.st_mtime, status.st_ctime) < _TICK:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, or of a folder's files with their names, in order.

    A process reads a file once for it, until the file changes.
    """
    if path.is_dir():
        return _hash(path, sorted(files_in(path), key=lambda file: file.parts))
    state = file_state(path)
    if state is None or _hashes.get(path, (None, ""))[0] != state:
        digest = _hash(path, [path])
        if state is None or file_state(path) != state:  # it changed while it was read
            return digest
        _hashes[path] = state, digest
    return _hashes[path][1]


def note_hash(path: Path, state: FileState | None, content: bytes) -> str:
    """The hash of a file's `content`, kept for `file_hash` where the file's `state` is that of before the reading."""
    digest = hashlib.sha256(b".\0")
    digest.update(content)
    if state is not None and file_state(path) == state:
        _hashes[path] = state, digest.hexdigest()
    return digest.hexdigest()


def _hash(path: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        refuse_no_file(file)
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as content:
            while piece := content.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()
