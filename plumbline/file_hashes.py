"""SHA-256 of large files: read once, in pieces, and kept for as long as the file is the one that was read.

What tells one state of a file from another is its path, inode, size and times; the time of the last change of any kind
(`st_ctime`) is among them, because a program can put the time of writing back and not that one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from plumbline.errors import DataError, ServiceError
from plumbline.identity import identity
from plumbline.reading import refuse_no_file
from plumbline.resources import user_cache
from plumbline.store import json_bytes, read_json, write_json
from plumbline.study import Study
from plumbline.versions import installed_versions

_MOST_FACTS = 50_000  # findings that are kept
_CODE = ("evaluation", "generation", "plumbline")
_PACKAGES = ("mteb", "numpy", "pandas", "pyarrow", "rapidfuzz")  # that read data sets, and count


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote; nothing where it is gone, damaged, or changed by anybody else."""
    with contextlib.suppress(DataError, ServiceError, OSError, ValueError):  # the last: NaN, which we never write
        read = read_json(path, "")
        facts = read.get("found") if isinstance(read, dict) else None
        if isinstance(facts, dict) and read.get("sha256") == _seal(facts):
            return facts
    return {}


def write_sealed(path: Path, facts: dict[str, Any]) -> None:
    """Write plain values that may be found out again at any time, where there is a place to."""
    with contextlib.suppress(OSError, UnicodeEncodeError):  # the latter: a file's name that is no text
        write_json(path, {"sha256": _seal(facts), "found": facts})


def _seal(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json_bytes(facts)).hexdigest()


class FactCache:
    """Findings of a study by what they were found in, in a file of this name; `keep` puts new ones on disk.

    Without a study nothing is kept.
    """

    def __init__(self, study: Study | None, file: str) -> None:
        self._path, self._new = study.scratch / file if study else None, False
        self._known = read_sealed(self._path) if self._path else {}

    @staticmethod
    def key(*parts: Any) -> str:
        """The identity of all that something is found in; empty, which is never kept, where a part is an empty text."""
        return "" if "" in parts else identity("found-v1", _code(), *parts)

    def found(self, key: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is kept under a key, or else what `find` finds: plain values, as JSON has them."""
        if not key or not self._path:
            return find()
        fact = self._known.pop(key, None)
        self._new = self._new or fact is None
        self._known[key] = fact = fact if fact is not None else find()  # the last, so that it is kept longest
        return dict(fact)

    def has(self, key: str) -> bool:
        """Whether something is kept under a key."""
        return key in self._known

    def forget(self, key: str) -> None:
        """Keep nothing under a key: what it names changed while it was looked at."""
        self._known.pop(key, None)

    def keep(self) -> None:
        """Put what is new on disk, where there is a place to."""
        if self._new and self._path:
            write_sealed(self._path, dict(list(self._known.items())[-_MOST_FACTS:]))
            self._new = False


@functools.cache
def _code() -> str:
    """What finds things out: our sources, and the versions of Python and of packages that read and count."""
    digest, here = hashlib.sha256(), Path(__file__).resolve().parents[1]
    for file in sorted(file for name in _CODE for file in (here / name).rglob("*.py")):
        digest.update(f"{file.relative_to(here)}\0".encode() + file.read_bytes())
    digest.update(sys.version.encode())
    for package, version in installed_versions(_PACKAGES).items():
        digest.update(f"{package} {version}\0".encode())
    return digest.hexdigest()


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
    state, hashes = _state(path), _kept()
    if hashes.get(name, [None])[0] == state:
        return str(hashes[name][1])
    digest = _read(path, prefix)
    status = path.stat()
    if _state(path) == state and time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED:
        _keep({**_kept(), name: [state, digest]})
    return digest


def _state(path: Path) -> list[int]:
    """What is another once the file is."""
    status = path.stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _read(path: Path, prefix: bytes) -> str:
    refuse_no_file(path)
    digest, size = hashlib.sha256(prefix), path.stat().st_size
    hidden = size < _SHOWN
    label = f"hashing {path.name}"
    with path.open("rb") as file, tqdm(total=size, unit="B", unit_scale=True, desc=label, disable=hidden) as bar:
        while piece := file.read(_PIECE):
            digest.update(piece)
            bar.update(len(piece))
    return digest.hexdigest()


def _kept() -> dict[str, list[object]]:
    """What is remembered; nothing where there is no cache, or another than was written."""
    return read_sealed(cache_file())


def _keep(hashes: dict[str, list[object]]) -> None:
    """Remember it, where there is a place to; the file is read again otherwise."""
    write_sealed(cache_file(), dict(list(hashes.items())[-_MOST:]))
