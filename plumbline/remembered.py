"""What was found out of many texts, kept until something changes that it rests on: JSON in a study's scratch folder.

What is kept stands under the identity of all that it was found in (hashes of files, settings, and the code that finds),
so that nothing that was changed is ever asked for. It can be deleted at any time, and is found out again; so is all of
a file that is not as it was written, whoever changed it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumbline.errors import DataError, ServiceError
from plumbline.identity import identity
from plumbline.store import json_bytes, read_json, write_json
from plumbline.study import Study

_MOST = 50_000  # findings that are kept
_CODE = ("evaluation", "generation", "plumbline")
_PACKAGES = ("mteb", "numpy", "pandas", "pyarrow", "rapidfuzz")  # that read data sets, and count


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote; nothing where it is gone, damaged, or changed by anybody else."""
    with contextlib.suppress(DataError, ServiceError, OSError, ValueError):  # the last: NaN, which we never write
        read = read_json(path, "")
        known = read.get("found") if isinstance(read, dict) else None
        if isinstance(known, dict) and read.get("sha256") == _seal(known):
            return known
    return {}


def write_sealed(path: Path, found: dict[str, Any]) -> None:
    """Write plain values that may be found out again at any time, where there is a place to."""
    with contextlib.suppress(OSError, UnicodeEncodeError):  # the latter: a file's name that is no text
        write_json(path, {"sha256": _seal(found), "found": found})


def _seal(found: dict[str, Any]) -> str:
    return hashlib.sha256(json_bytes(found)).hexdigest()


class Remembered:
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
        known = self._known.pop(key, None)
        self._new = self._new or known is None
        self._known[key] = known = known if known is not None else find()  # the last, so that it is kept longest
        return dict(known)

    def has(self, key: str) -> bool:
        """Whether something is kept under a key."""
        return key in self._known

    def forget(self, key: str) -> None:
        """Keep nothing under a key: what it names changed while it was looked at."""
        self._known.pop(key, None)

    def keep(self) -> None:
        """Put what is new on disk, where there is a place to."""
        if self._new and self._path:
            write_sealed(self._path, dict(list(self._known.items())[-_MOST:]))
            self._new = False


@functools.cache
def _code() -> str:
    """What finds things out: our sources, and the versions of Python and of packages that read and count."""
    digest, here = hashlib.sha256(), Path(__file__).resolve().parents[1]
    for file in sorted(file for name in _CODE for file in (here / name).rglob("*.py")):
        digest.update(f"{file.relative_to(here)}\0".encode() + file.read_bytes())
    digest.update(sys.version.encode())
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{package} {importlib.metadata.version(package)}\0".encode())
    return digest.hexdigest()
