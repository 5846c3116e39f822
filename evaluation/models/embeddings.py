"""Embeddings on disk: each text of each model is encoded once in a study, whatever asks for it and in whatever run.

A model's rows stand one after the other in `vectors.f32`, and `keys.sqlite` says which row is whose. Rows are on the
disk itself before their keys are, so a killed process leaves rows that nobody points to, and never a key without its
row. Nothing of it is held in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from plumbline.disk import writing
from plumbline.errors import DataError, StudyError

Embeddings = NDArray[np.float32]

_ASK = 500  # keys in one query; SQLite's limit on variables was 999 for long
_RUN = 4096  # rows that are read at once
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


class EmbeddingStore:
    """One model's rows in a folder (its model's id is the folder's name), or, without one, for as long as this lives.

    `limit` is in bytes, for all models that have folders beside this one: of those the one that was used least recently
    goes first, and when there is no other, this one begins anew. Raises DataError for a folder that is damaged.
    """

    def __init__(self, folder: Path | None = None, limit: float = float("inf")) -> None:
        self.folder, self._limit = folder, limit
        self._open()

    def missing(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those keys that have no row yet."""
        return set(keys) - self._places(keys).keys()

    def add(self, keys: Sequence[bytes], rows: Embeddings) -> None:
        """Keep rows (keys by dimensions) under keys that have none."""
        with writing(self.folder or tempfile.gettempdir()):
            self._add(keys, rows)

    def _add(self, keys: Sequence[bytes], rows: Embeddings) -> None:
        width = self._fact("dimensions")
        if width is None:
            width = rows.shape[1]
            self._keys.execute("INSERT INTO facts VALUES ('dimensions', ?)", (width,))
        if rows.shape != (len(keys), width):
            raise DataError(f"{self.folder}: rows of {rows.shape[1]} dimensions, it has {width}; delete it, run again")
        first = self._count
        self._file.seek(first * width * 4)
        self._file.write(np.ascontiguousarray(rows, np.float32).tobytes())
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._keys.executemany(
            "INSERT INTO keys VALUES (?, ?)", zip(keys, range(first, first + len(keys)), strict=True)
        )
        self._keys.commit()
        self._count += len(keys)

    def rows(self, keys: Sequence[bytes]) -> Embeddings:
        """The rows of keys that have one, in the keys' order (keys by dimensions)."""
        found = self._places(keys)
        width = self._fact("dimensions") or 0
        places = np.array([found[key] for key in keys], dtype=np.int64)
        made = np.empty((len(keys), width), np.float32)
        order = np.argsort(places, kind="stable")
        for run in _runs(places[order]):
            at = order[run]
            low, high = int(places[at[0]]), int(places[at[-1]]) + 1
            data = os.pread(self._file.fileno(), (high - low) * width * 4, low * width * 4)
            if len(data) < (high - low) * width * 4:
                raise DataError(f"{self.folder}: vectors.f32 is cut off; delete the folder and run again")
            made[at] = np.frombuffer(data, np.float32).reshape(-1, width)[places[at] - low]
        return made

    @property
    def width(self) -> int | None:
        """How long rows are; None before the first."""
        return self._fact("dimensions")

    def fits(self, rows: int, width: int) -> bool:
        """Whether so many rows may stand here at once."""
        return self.folder is None or rows * width * 4 <= self._limit

    def make_room(self, rows: int, width: int) -> bool:
        """See that so many more rows fit within the limit; true where this store had to begin anew for it.

        Raises StudyError for rows that never fit.
        """
        wanted = rows * width * 4
        if self.folder is None:
            return False
        if not self.fits(rows, width):
            raise StudyError(
                f"evaluation.embeddings_gb is too small: one data set takes {wanted / 1e9:.1f} GB; raise it"
            )
        others = [path for path in self.folder.parent.iterdir() if path.is_dir() and path != self.folder]
        others.sort(key=lambda path: path.stat().st_mtime)
        while _size(self.folder.parent) + wanted > self._limit and others:
            _remove(others.pop(0))
        if _size(self.folder.parent) + wanted <= self._limit:
            return False
        self.close()
        shutil.rmtree(self.folder)
        self._open()
        return True

    def close(self) -> None:
        """Close the files; what they hold stays in the folder."""
        self._closed()

    def _open(self) -> None:
        self._file: IO[bytes]
        if self.folder is None:
            self._file, keys = tempfile.TemporaryFile(), ""  # noqa: SIM115 (closed below)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.folder)  # when it was used last
            vectors, keys = self.folder / "vectors.f32", str(self.folder / "keys.sqlite")
            vectors.touch()
            self._file = vectors.open("r+b")
            fcntl.flock(self._file, fcntl.LOCK_SH)  # nobody makes room by what is in use (`_remove`)
        # The garbage collector may close it, in whatever thread it runs.
        self._keys = sqlite3.connect(keys, check_same_thread=False)
        self._closed = weakref.finalize(self, _close, self._file, self._keys)
        try:
            with writing(self.folder or tempfile.gettempdir()):
                self._keys.executescript(_SCHEMA)
            (self._count,) = self._keys.execute("SELECT count(*) FROM keys").fetchone()
            if self._count * (self._fact("dimensions") or 0) * 4 > os.fstat(self._file.fileno()).st_size:
                raise sqlite3.DatabaseError("vectors.f32 is cut off")
        except sqlite3.DatabaseError as error:
            self.close()
            raise DataError(f"{self.folder} is damaged ({error}); delete it (it is made again) and run again") from None

    def _fact(self, name: str) -> int | None:
        row = self._keys.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    def _places(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """The row of each key that has one."""
        found: dict[bytes, int] = {}
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), _ASK):
            some = wanted[start : start + _ASK]
            marks = ",".join("?" * len(some))
            found |= dict(self._keys.execute(f"SELECT key, place FROM keys WHERE key IN ({marks})", some))  # noqa: S608
        return found


def _runs(places: NDArray[np.int64]) -> Iterator[slice]:
    """Slices of sorted places that lie close together, to be read at once."""
    gaps = np.flatnonzero(np.diff(places) > 1) + 1
    for first, end in pairwise([0, *gaps.tolist(), len(places)]):
        for start in range(first, end, _RUN):
            yield slice(start, min(start + _RUN, end))


def _remove(folder: Path) -> None:
    """Remove another model's store, unless a process uses it."""
    with contextlib.suppress(OSError), (folder / "vectors.f32").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _close(file: IO[bytes], keys: sqlite3.Connection) -> None:
    keys.close()
    with contextlib.suppress(OSError):  # on a full disk: rows that no key points to yet
        file.close()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
