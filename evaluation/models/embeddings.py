"""Embeddings on disk: in a study each model encodes each text once, across all uses and runs.

A model's rows are stored one after the other in `vectors.f32`, and `keys.sqlite` maps keys to rows. Rows are synced to
disk before their keys, so a killed process may leave rows without keys, but never a key without its row. Nothing of it
is held in memory.

Rows made by another engine than torch's own (oneDNN) have keys of that engine. They are read if a text has no row of
torch's.

`keys.sqlite` also has a checksum of each row, over its numbers, its key, its model and its length, which is verified
whenever the row is read. A row that is damaged, or belongs to another text or model, is encoded again.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import sqlite3
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from plumbline.errors import DataError, StudyError
from plumbline.frames import same_index
from plumbline.statistics.estimates import Floats
from plumbline.store import make_folder, to_disk, writing
from plumbline.words import count

Embeddings = NDArray[np.float32]

_ASK = 500  # keys in one query; SQLite's limit on variables was 999 for long
_RUN = 4096  # rows read at once
_ENGINE = "engine "  # prefix of the facts that name engines of rows
_WIDEST = 1 << 20  # most numbers in a row; more means damage
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY, place INTEGER NOT NULL, digest INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


class _Row(NamedTuple):
    """A row: its position in the file, its checksum, its stored key, and its engine."""

    row: int
    digest: int
    key: bytes
    engine: str


class RowsLost(DataError):  # noqa: N818 (the caller encodes them again)
    """Requested rows are missing, or not as they were written; they count as missing from now on."""


class EmbeddingStore:
    """One model's rows in a folder (named by the model's id), or, without one, for the life of this object.

    `limit` is in bytes, for the folders of all models beside this one: the least recently used one is deleted first,
    and if there is no other, this one starts again from empty. It also starts again, with a message, if its index is
    damaged or cannot be verified. Raises DataError for a folder that cannot be read.
    """

    def __init__(self, folder: Path | None = None, limit: float = float("inf")) -> None:
        self.folder, self._limit = folder, limit
        self._lost = self._first_lost = 0
        self.engines: set[str] = set()
        """Engines other than torch's own that made some of the rows read."""
        self._open()

    def missing(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys that have no row yet."""
        return set(keys) - self._places(keys).keys()

    def add(self, keys: Sequence[bytes], rows: Embeddings, engine: str = "") -> None:
        """Store rows (keys by dimensions) of new keys; `engine` made them, if not torch's own."""
        keys = _of_engine(engine, keys)
        with writing(self.folder or tempfile.gettempdir()):
            try:
                self._add(keys, rows, engine)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._doubted(f"its index is damaged ({error})")
                self._add(keys, rows, engine)

    def _add(self, keys: Sequence[bytes], rows: Embeddings, engine: str) -> None:
        if engine:
            self._keys.execute("INSERT OR REPLACE INTO facts VALUES (?, 1)", (_ENGINE + engine,))
        width = self._fact("dimensions")
        if width is None:
            width = rows.shape[1]
            facts = [("dimensions", width), ("checksum", fingerprint(self.model_id, width))]
            self._keys.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts)
        if rows.shape != (len(keys), width):
            raise DataError(
                f"{self.folder}: its embeddings have {width} dimensions, but new ones have {rows.shape[1]};"
                " delete it and run again"
            )
        first, rows = self._end, np.ascontiguousarray(rows, np.float32)
        self._file.seek(first * width * 4)
        self._file.write(rows.tobytes())
        self._file.flush()
        to_disk(self._file.fileno(), data_alone=True)
        places, checksums = range(first, first + len(keys)), digests(self.model_id, keys, rows).tolist()
        self._keys.executemany(
            "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", zip(keys, places, checksums, strict=True)
        )
        self._keys.commit()
        self._end += len(keys)

    def rows(self, keys: Sequence[bytes]) -> Embeddings:
        """Return the rows of keys (keys by dimensions), in order, each verified by its checksum.

        Raises RowsLost for a key without a row, or with a row that is not the one written; such a row is dropped.
        """
        stored = self._places(keys)
        if not stored.keys() >= set(keys):
            raise RowsLost(f"{self.folder}: embeddings are missing; run again")
        distinct = list(stored)
        rows = self._read(np.array([stored[key].row for key in distinct], dtype=np.int64))
        written = np.array([stored[key].digest for key in distinct], dtype=np.int64)
        stored_keys = [stored[key].key for key in distinct]
        damaged = np.flatnonzero(digests(self.model_id, stored_keys, rows) != written)
        if len(damaged):
            self._forget([stored_keys[index] for index in damaged])
            raise RowsLost(f"{self.folder}: embeddings changed on disk after they were written; check the disk")
        self.engines.update(row.engine for row in stored.values() if row.engine)
        if distinct == list(keys):
            return rows
        order = {key: index for index, key in enumerate(distinct)}
        return np.asarray(rows[[order[key] for key in keys]])

    def _read(self, places: NDArray[np.int64]) -> Embeddings:
        """Return the rows at positions of the file; zeros after its end."""
        width = self._fact("dimensions") or 0
        vectors = np.empty((len(places), width), np.float32)
        order = np.argsort(places, kind="stable")
        for run in _runs(places[order]):
            at = order[run]
            low, high = int(places[at[0]]), int(places[at[-1]]) + 1
            size = (high - low) * width * 4
            data = os.pread(self._file.fileno(), size, low * width * 4).ljust(size, b"\0")
            vectors[at] = np.frombuffer(data, np.float32).reshape(-1, width)[places[at] - low]
        return vectors

    def _forget(self, keys: Sequence[bytes]) -> None:
        """Drop rows, so that they are encoded again; report the first time now, and the total at closing."""
        try:
            self._keys.executemany("DELETE FROM keys WHERE key = ?", [(key,) for key in keys])
            self._keys.commit()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._doubted(f"its index is damaged ({error})")
            return
        if not self._lost:
            _say(
                f"{self.folder}: checksums do not match for {count(len(keys), 'embedding')} (damaged, or of another"
                " text or model); these texts are encoded again"
            )
            self._first_lost = len(keys)
        self._lost += len(keys)

    @property
    def model_id(self) -> str:
        """The id of its model; empty for one that is not kept."""
        return self.folder.name if self.folder else ""

    @property
    def width(self) -> int | None:
        """The length of rows; None before the first."""
        return self._fact("dimensions")

    def fits(self, rows: int, width: int) -> bool:
        """Return whether this many rows are within the limit."""
        return self.folder is None or rows * width * 4 <= self._limit

    def make_room(self, rows: int, width: int) -> bool:
        """Make room for this many more rows within the limit; return whether this store was emptied for it.

        Raises StudyError for more rows than the limit allows.
        """
        wanted = rows * width * 4
        if self.folder is None:
            return False
        if not self.fits(rows, width):
            raise StudyError(
                f"{self.folder.parent}: the disk is too small: one data set needs {wanted / 1e9:.1f} GB of embeddings,"
                f" and all may take {self._limit / 1e9:.1f} GB"
            )
        folders = [path for path in self.folder.parent.iterdir() if path.is_dir() and path != self.folder]
        folders.sort(key=lambda path: path.stat().st_mtime)
        while _size(self.folder.parent) + wanted > self._limit and folders:
            folder = folders.pop(0)
            with contextlib.suppress(OSError), (folder / "vectors.f32").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        if _size(self.folder.parent) + wanted <= self._limit:
            return False
        self._begin_anew()
        return True

    def _begin_anew(self) -> None:
        self.close()
        if self.folder is not None:
            shutil.rmtree(self.folder)
        self._open()

    def close(self) -> None:
        """Close the files, which stay in the folder."""
        if self._lost and self._lost > self._first_lost:
            _say(f"{self.folder}: checksums did not match for {count(self._lost, 'embedding')} in all")
        self._lost = 0
        self._closed()

    def _open(self) -> None:
        self._file: IO[bytes]
        if self.folder is None:
            self._file, keys = tempfile.TemporaryFile(), ""  # noqa: SIM115 (closed below)
        else:
            make_folder(self.folder)
            os.utime(self.folder)  # the time of last use
            vectors, keys = self.folder / "vectors.f32", str(self.folder / "keys.sqlite")
            try:
                vectors.touch(0o600)
                self._file = vectors.open("r+b")
            except FileNotFoundError:
                raise DataError(f"{vectors} is a broken link; restore its target, or delete the link") from None
            fcntl.flock(self._file, fcntl.LOCK_SH)  # others must not delete it while it is used (`_remove`)
        self._keys = _connected(keys, self._file)
        self._closed = weakref.finalize(self, _close, self._file, self._keys)
        try:
            with writing(self.folder or tempfile.gettempdir()):
                self._keys.executescript(_SCHEMA)
            doubt = self._doubt()
            self._end = 0 if doubt else self._drop_cut_off()
        except sqlite3.OperationalError as error:  # locked, or an unreadable disk: the store itself may be intact
            self.close()
            raise DataError(
                f"{self.folder} cannot be read ({error}); correct the cause, or delete the folder, and run again"
            ) from None
        except sqlite3.DatabaseError as error:
            doubt = f"its index is damaged ({error})"
        if doubt:
            self._doubted(doubt)

    def _doubted(self, reason: str) -> None:
        _say(f"{self.folder}: {reason}; the folder is deleted, and its texts are encoded again")
        self._begin_anew()

    def _doubt(self) -> str:
        """Return why the rows cannot be verified; empty if they can, or if there are none."""
        (rows,) = self._keys.execute("SELECT count(*) FROM keys").fetchone()
        width = self._fact("dimensions")
        if not rows and width is None:
            return ""
        if not 0 < (width or 0) <= _WIDEST or self._fact("checksum") != fingerprint(self.model_id, width or 0):
            return f"its content ({count(rows, 'embedding')}) belongs to another model, or its index is damaged"
        return ""

    def _drop_cut_off(self) -> int:
        """Drop rows beyond the end of the file; return the position after the last row."""
        n_rows = os.fstat(self._file.fileno()).st_size // (4 * (self._fact("dimensions") or 1))
        cut = (
            "FROM keys WHERE typeof(place) <> 'integer' OR typeof(digest) <> 'integer'"
            f" OR place NOT BETWEEN 0 AND {n_rows - 1}"
        )
        (rows,) = self._keys.execute(f"SELECT count(*) {cut}").fetchone()
        if rows:
            self._keys.execute(f"DELETE {cut}")
            self._keys.commit()
            _say(f"{self.folder}: vectors.f32 is cut off; {count(rows, 'embedding')} will be encoded again")
        (last,) = self._keys.execute("SELECT max(place) FROM keys").fetchone()
        return 0 if last is None else int(last) + 1

    def _fact(self, name: str) -> int | None:
        query = "SELECT value FROM facts WHERE name = ? AND typeof(value) = 'integer'"
        row = self._keys.execute(query, (name,)).fetchone()
        return None if row is None else int(row[0])

    def _places(self, keys: Sequence[bytes]) -> dict[bytes, _Row]:
        """Return the rows of the keys that have one: torch's own before another engine's."""
        wanted = list(dict.fromkeys(keys))
        try:
            names = self._keys.execute("SELECT name FROM facts WHERE name LIKE ? ORDER BY name", (_ENGINE + "%",))
            rows_by_key: dict[bytes, _Row] = {}
            for engine in ["", *(str(name).removeprefix(_ENGINE) for (name,) in names.fetchall())]:
                missing = [key for key in wanted if key not in rows_by_key]
                keys_by_stored = dict(zip(_of_engine(engine, missing), missing, strict=True))
                for stored, row, digest in self._stored(list(keys_by_stored)):
                    rows_by_key[keys_by_stored[stored]] = _Row(row, digest, stored, engine)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            self._doubted(f"its index is damaged ({error})")
            return {}
        return {key: rows_by_key[key] for key in wanted if key in rows_by_key}

    def _stored(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, int, int]]:
        """Yield the keys in the index, with position and checksum."""
        for start in range(0, len(keys), _ASK):
            some = keys[start : start + _ASK]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, place, digest FROM keys WHERE key IN ({marks})"  # noqa: S608 (question marks)
            yield from (row for row in self._keys.execute(query, some) if isinstance(row[0], bytes))


def _of_engine(engine: str, keys: Sequence[bytes]) -> list[bytes]:
    """Return the stored keys of an engine's rows: unchanged for torch's own, masked for others."""
    if not engine or not keys:
        return list(keys)
    mask = np.frombuffer(hashlib.sha256(engine.encode()).digest()[:16], np.uint8)
    masked = (np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16) ^ mask).tobytes()
    return [masked[start : start + 16] for start in range(0, len(masked), 16)]


def _connected(keys: str, file: IO[bytes]) -> sqlite3.Connection:
    """Open the index beside a file of vectors."""
    try:
        if keys:
            Path(keys).touch(0o600)  # SQLite would let everybody read it
        # The garbage collector may close it, in whatever thread it runs.
        opened = sqlite3.connect(keys, check_same_thread=False)
    except (sqlite3.OperationalError, OSError) as error:
        file.close()
        raise DataError(f"{keys} cannot be opened ({error}); move it away, and run again") from None
    opened.text_factory = lambda text: text.decode(errors="replace")  # a damaged type may call anything a text
    return opened


def _say(line: str) -> None:
    tqdm.write(line, file=sys.stderr)


def _runs(places: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of sorted positions that are close together, to be read at once."""
    gaps = np.flatnonzero(np.diff(places) > 1) + 1
    for first, end in pairwise([0, *gaps.tolist(), len(places)]):
        for start in range(first, end, _RUN):
            yield slice(start, min(start + _RUN, end))


def _close(file: IO[bytes], keys: sqlite3.Connection) -> None:
    keys.close()
    with contextlib.suppress(OSError):  # on a full disk: rows that no key points to yet
        file.close()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def keys_of(texts: Iterable[str], prompt: str, role: str) -> list[bytes]:
    """Return the store's key of each text: 16 bytes of a hash over prompt, text, and role if that counts."""
    start, keys = hashlib.sha256(f"{prompt}\0{role}\0".encode()), []
    for text in texts:
        digest = start.copy()
        digest.update(text.encode())
        keys.append(bytes(digest.digest()[:16]))
    return keys


def fingerprint(model: str, width: int) -> int:
    """Return the mark of an index with checksums of this model's rows, of this length."""
    return int(_coefficients(model, width)[0].view(np.int64))


def digests(model: str, keys: Sequence[bytes], rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the checksum of each row with its key: its 32-bit words times fixed random numbers, modulo 2^64.

    Two different rows have equal checksums with a probability of at most 2^-32.

    Source: Lemire and Kaser 2014, "Strongly Universal String Hashing is Fast" (Multilinear).
    """
    drawn = _coefficients(model, rows.shape[1])
    heads = np.frombuffer(b"".join(keys), "<u4").reshape(len(rows), 4)
    sums: NDArray[np.uint64] = np.einsum("ij,j->i", heads, drawn[1:5])
    sums = sums + np.einsum("ij,j->i", rows.view(np.uint32), drawn[5:])
    return sums.view(np.int64)


@functools.lru_cache(maxsize=16)
def _coefficients(model: str, width: int) -> NDArray[np.uint64]:
    """Return fixed random numbers for a model and a length of rows: for the length, a key (four), and a row."""
    drawn = hashlib.shake_256(f"embeddings-v1\0{model}\0{width}".encode()).digest(8 * (width + 5))
    return np.frombuffer(drawn, "<u8").astype(np.uint64)


def drift(originals: ArrayLike, transformed: ArrayLike) -> Floats:
    """Return 1 - cos of each original's and its transformation's embedding: 0 for one direction, 2 for opposite ones.

    Both tables have a text a row, in the same order; the result has a number for each row. Raises ValueError if their
    shapes differ, if they are frames with different indexes, if a number is not finite, or if a row has length 0 and so
    no direction.

    Source: HTEB, Figure 3.

    >>> from evaluation import drift
    >>> drift([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    array([0., 1., 2.])
    """
    same_index(originals, transformed, "tables")
    first, second = (np.asarray(embeddings, dtype=np.float64) for embeddings in (originals, transformed))
    if first.shape != second.shape or first.ndim != 2:
        raise ValueError(
            f"both tables must have the same shape, texts by dimensions, not {first.shape} and {second.shape}"
        )
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    if not np.isfinite(lengths).all():
        raise ValueError(f"the embeddings of row {int(np.isfinite(lengths).argmin())} are not finite")
    if (lengths == 0).any():
        raise ValueError(f"an embedding of row {int(lengths.argmin())} has length 0, so its cosine is undefined")
    # Rounding can leave the cosine of equal texts slightly above 1.
    distances: Floats = 1.0 - np.clip((first * second).sum(axis=1) / lengths, -1.0, 1.0)
    return distances
