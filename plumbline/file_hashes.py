"""SHA-256 of large files: read once, in pieces, and kept for as long as the file is the one that was read.

What tells one state of a file from another is its path, inode, size and times; the time of the last change of any kind
(`st_ctime`) is among them, because a program can put the time of writing back and not that one.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from tqdm import tqdm

from plumbline.reading import refuse_no_file
from plumbline.remembered import read_sealed, write_sealed
from plumbline.resources import user_cache

LARGE = 1_000_000  # bytes; smaller files are read each time
_PIECE = 1 << 22
_SHOWN = 1 << 30  # bytes that take long enough for a line of progress
_SETTLED = 2.0  # seconds; what changed later may change again within the same tick of the file system's clock
_MOST = 10_000  # files that are remembered


def cache_file() -> Path:
    """Where hashes are kept: the user's cache folder, or the folder that PLUMBLINE_CACHE names."""
    return user_cache() / "file_hashes.json"


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes; of a large one from the cache, where it is the file that was read. Raises OSError."""
    return _cached(path, b"")


def cached_file_hash(path: Path) -> str:
    """What `plumbline.study.file_hash` says of a file, from the cache likewise."""
    return _cached(path, b".\0")


def _cached(path: Path, prefix: bytes) -> str:
    """The hash of a prefix and a file's bytes."""
    path = path.resolve()
    if path.stat().st_size <= LARGE:
        return _read(path, prefix)
    name = f"{prefix.decode()}{path}"
    state, kept = _state(path), _kept()
    if kept.get(name, [None])[0] == state:
        return str(kept[name][1])
    found = _read(path, prefix)
    status = path.stat()
    if _state(path) == state and time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED:
        _keep({**_kept(), name: [state, found]})
    return found


def _state(path: Path) -> list[int]:
    """What is another once the file is."""
    status = path.stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _read(path: Path, prefix: bytes) -> str:
    refuse_no_file(path)
    digest, size = hashlib.sha256(prefix), path.stat().st_size
    hidden = size < _SHOWN
    said = f"hashing {path.name}"
    with path.open("rb") as file, tqdm(total=size, unit="B", unit_scale=True, desc=said, disable=hidden) as bar:
        while piece := file.read(_PIECE):
            digest.update(piece)
            bar.update(len(piece))
    return digest.hexdigest()


def _kept() -> dict[str, list[object]]:
    """What is remembered; nothing where there is no cache, or another than was written."""
    return read_sealed(cache_file())


def _keep(kept: dict[str, list[object]]) -> None:
    """Remember it, where there is a place to; the file is read again otherwise."""
    write_sealed(cache_file(), dict(list(kept.items())[-_MOST:]))
