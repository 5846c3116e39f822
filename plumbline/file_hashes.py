"""SHA-256 of large files, read once in pieces and cached for as long as the file stays the same.

Path, inode, size and times identify the state of a file. The time of the last change of any kind (`st_ctime`) is among
them, because a program can set back the time of writing but not that one.
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
from plumbline.resources import installed_versions, user_cache
from plumbline.store import json_bytes, read_json, write_json
from plumbline.study import Study
from plumbline.study.places import file_state

_MOST_FACTS = 50_000  # cached findings
_CODE = ("evaluation", "generation", "plumbline")
_PACKAGES = ("mteb", "numpy", "pandas", "pyarrow", "rapidfuzz")  # packages that read data sets or count


def read_sealed(path: Path) -> dict[str, Any]:
    """Return what `write_sealed` wrote; nothing if it is missing, damaged, or changed by anybody else."""
    with contextlib.suppress(DataError, ServiceError, OSError, ValueError):  # ValueError: a NaN, which we never write
        read = read_json(path, "")
        facts = read.get("found") if isinstance(read, dict) else None
        if isinstance(facts, dict) and read.get("sha256") == _seal(facts):
            return facts
    return {}


def write_sealed(path: Path, facts: dict[str, Any]) -> None:
    """Cache plain values that can be computed again at any time; skip this if there is no cache."""
    with contextlib.suppress(OSError, UnicodeEncodeError):  # UnicodeError: a file name that is not text
        write_json(path, {"sha256": _seal(facts), "found": facts})


def _seal(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json_bytes(facts)).hexdigest()


class FactCache:
    """Findings of a study by the identity of their input, cached in a file of this name; `keep` writes new ones.

    Without a study nothing is cached.
    """

    def __init__(self, study: Study | None, file: str) -> None:
        self._path, self._new = study.scratch / file if study else None, False
        self._known = read_sealed(self._path) if self._path else {}

    @staticmethod
    def key(*parts: Any) -> str:
        """Return the identity of a finding's whole input; empty, which is never cached, if any part is empty."""
        return "" if "" in parts else identity("found-v1", _code(), *parts)

    def found(self, key: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the finding cached under a key, or what `find` returns: plain values, as JSON has them."""
        if not key or not self._path:
            return find()
        fact = self._known.pop(key, None)
        self._new = self._new or fact is None
        self._known[key] = fact = fact if fact is not None else find()  # moved to the end, so that it is dropped last
        return dict(fact)

    def keep(self) -> None:
        """Write new findings to disk, if there is a cache."""
        if self._new and self._path:
            write_sealed(self._path, dict(list(self._known.items())[-_MOST_FACTS:]))
            self._new = False


@functools.cache
def _code() -> str:
    """Return the identity of the code that finds: our sources, and versions of Python and of packages that read."""
    digest, here = hashlib.sha256(), Path(__file__).resolve().parents[1]
    for file in sorted(file for name in _CODE for file in (here / name).rglob("*.py")):
        digest.update(f"{file.relative_to(here)}\0".encode() + file.read_bytes())
    digest.update(sys.version.encode())
    for package, version in installed_versions(_PACKAGES).items():
        digest.update(f"{package} {version}\0".encode())
    return digest.hexdigest()


LARGE = 1_000_000  # bytes; smaller files are read each time
_PIECE = 1 << 22
_SHOWN = 1 << 30  # bytes from which a line of progress is shown
_SETTLED = 2.0  # seconds; a file changed more recently may change again within the same tick of the clock
_MOST = 10_000  # files in the cache


def cache_file() -> Path:
    """Return the cache file: in the user's cache folder, or in the folder that PLUMBLINE_CACHE names."""
    return user_cache() / "file_hashes.json"


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes, from the cache for a large unchanged file. Raises OSError."""
    return _cached(path, b"")


def cached_file_hash(path: Path) -> str:
    """Return `plumbline.study.file_hash` of a file, cached in the same way."""
    return _cached(path, b".\0")


def _cached(path: Path, prefix: bytes) -> str:
    """Return the hash of a prefix and a file's bytes."""
    path = path.resolve()
    if path.stat().st_size <= LARGE:
        return _read(path, prefix)
    name = f"{prefix.decode()}{path}"
    state, cached = list(file_state(path) or ()), read_sealed(cache_file()).get(name, [None, ""])
    if state and cached[0] == state:
        return str(cached[1])
    digest = _read(path, prefix)
    status = path.stat()
    if list(file_state(path) or ()) == state and time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED:
        hashes = read_sealed(cache_file()) | {name: [state, digest]}
        write_sealed(cache_file(), dict(list(hashes.items())[-_MOST:]))
    return digest


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
