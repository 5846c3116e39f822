"""What planning found out, kept until something changes that it rests on: a study's scratch folder has it as JSON.

What is kept stands under the identity of all that it was found in (hashes of files, settings, versions of packages), so
that nothing that was changed is ever asked for. It can be deleted at any time, and is found out again.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable
from typing import Any

from plumbline.errors import DataError, ServiceError
from plumbline.identity import identity
from plumbline.store import read_json, write_json
from plumbline.study import Study

FILE = "planned.json"
_MOST = 50_000  # findings that are kept
_PACKAGES = ("plumbline", "mteb")


class Remembered:
    """Findings of a study by what they were found in; `keep` puts new ones on disk."""

    def __init__(self, study: Study | None) -> None:
        """Without a study nothing is kept."""
        self._path, self._new = study.scratch / FILE if study else None, False
        self._versions = [importlib.metadata.version(name) for name in _PACKAGES]
        found: Any = {}
        if self._path:
            with contextlib.suppress(DataError, ServiceError, OSError):
                found = read_json(self._path, "")
        self._known: dict[str, Any] = found if isinstance(found, dict) else {}

    def key(self, *parts: Any) -> str:
        """The identity of all that something is found in; empty, which is never kept, where a part is an empty text."""
        return "" if "" in parts else identity("planned-v1", self._versions, *parts)

    def found(self, key: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is kept under a key, or else what `find` finds: plain values, as JSON has them."""
        if not key or not self._path:
            return find()
        known = self._known.pop(key, None)
        self._new = self._new or known is None
        self._known[key] = known = known if known is not None else find()  # the last, so that it is kept longest
        return dict(known)

    def keep(self) -> None:
        """Put what is new on disk, where there is a place to."""
        if self._new and self._path:
            with contextlib.suppress(OSError):
                write_json(self._path, dict(list(self._known.items())[-_MOST:]))
            self._new = False
