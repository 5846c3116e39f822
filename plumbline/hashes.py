"""Hold millions of hashes, and texts by hash, in little memory: 16 bytes for a hash, not 81 as text."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import tempfile
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.errors import DataError
from plumbline.records import Record, cast_table, refuse_duplicate_keys
from plumbline.store import BATCH, asked_of, open_parquet

Packed = NDArray[np.bytes_]
_PIECE = 4096
_DIGITS = re.compile("[0-9a-fA-F]{32}")
_TEXT = pa.large_string()  # Arrow cannot sort a `string` array of more than 2 GB


def packed(hashes: Sequence[str], location: str) -> Packed:
    """Pack hashes of 32 hexadecimal digits into 16 bytes each; DataError for others begins with `location`."""
    if isinstance(hashes, Hashes):
        return hashes.packed
    try:
        keys = np.frombuffer(bytes.fromhex("".join(hashes)), "S16")
    except ValueError:
        keys = np.empty(0, "S16")
    if len(keys) != len(hashes) or set(map(len, hashes)) - {32}:
        invalid = next(text for text in hashes if not _DIGITS.fullmatch(text))
        raise DataError(f"{location}: {invalid[:40]!r} is not 32 hexadecimal digits; restore the file from a copy")
    return keys


class Hashes(Sequence[str]):
    """Hashes of 32 hexadecimal digits, stored in 16 bytes each and read as text."""

    def __init__(self, packed_hashes: Packed) -> None:
        self.packed = packed_hashes

    @classmethod
    def of(cls, hashes: Iterable[str], location: str) -> Hashes:
        """Pack these hashes; raises DataError as `packed` does."""
        rest, pieces = iter(hashes), [np.empty(0, "S16")]
        while some := list(itertools.islice(rest, _PIECE)):
            pieces.append(packed(some, location))
        return cls(np.concatenate(pieces))

    def __len__(self) -> int:
        return len(self.packed)

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self.packed), _PIECE):
            digits = self.packed[first : first + _PIECE].tobytes().hex()
            yield from (digits[at : at + 32] for at in range(0, len(digits), 32))

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Hashes: ...

    def __getitem__(self, at: int | slice) -> str | Hashes:
        if isinstance(at, slice):
            return Hashes(self.packed[at])
        return self.packed[[at]].tobytes().hex()


def set_hash(hashes: Packed) -> str:
    """Return the hash of a set of hashes, whatever their order.

    >>> import numpy as np
    >>> set_hash(np.array([b"b", b"a", b"b"], "S16")) == set_hash(np.array([b"a", b"b"], "S16"))
    True
    """
    return hashlib.sha256(np.unique(hashes).tobytes()).hexdigest()[:32]


def numbered(hashes: Packed) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each distinct hash first appears, and each hash's number in that order.

    >>> import numpy as np
    >>> [found.tolist() for found in numbered(np.array([b"b", b"a", b"b", b"c"], "S16"))]
    [[0, 1, 3], [0, 1, 0, 2]]
    """
    _, firsts, of_sorted = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return firsts[order], numbers[of_sorted]


class TextsByHash(Mapping[str, str]):
    """Texts by hashes of 32 hexadecimal digits, no two of them equal; iterated in the hashes' order.

    A text takes 24 bytes more than its characters; a look-up takes about a microsecond.
    """

    def __init__(self, hashes: Packed, texts: pa.Array) -> None:
        order = np.argsort(hashes, kind="stable")
        halves = hashes[order].view(">u8").reshape(-1, 2)
        self._heads, self._tails = (np.ascontiguousarray(halves[:, side], np.uint64).data for side in (0, 1))
        self._texts = texts.cast(_TEXT).take(pa.array(order))

    @staticmethod
    def array(texts: Iterable[str]) -> pa.Array:
        """Return texts in the form that `__init__` takes."""
        return pa.array(texts, _TEXT)

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[str]:
        for head, tail in zip(self._heads, self._tails, strict=True):
            yield f"{head:016x}{tail:016x}"

    def __getitem__(self, key: str) -> str:
        head, tail = int(key[:16], 16), int(key[16:], 16)
        at = bisect_left(self._heads, head)
        while at < len(self._heads) and self._heads[at] == head:
            if self._tails[at] == tail:
                text: str = self._texts[at].as_py()
                return text
            at += 1
        raise KeyError(key)


_AT_ONCE = 16 * BATCH  # rows of row groups that are read together


class KeyedTable:
    """The rows of a table whose record has one key, a hash (column `key`); `made_by` is the command that makes it.

    Only rows for which `counts` is true are kept: it gets a piece with the key and the columns `looks`, and returns a
    mask. Raises DataError for a damaged file and for a repeated key.
    """

    def __init__(
        self,
        path: Path,
        record: type[Record],
        made_by: str,
        looks: Sequence[str] = (),
        counts: Callable[[pa.Table], NDArray[np.bool_]] | None = None,
    ) -> None:
        self._path, self._record, self._made_by = path, record, made_by
        stack = contextlib.ExitStack()
        self._file: pq.ParquetFile = stack.enter_context(open_parquet(path, made_by))
        self._index: Any = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        self._closed = weakref.finalize(self, stack.close)
        meta = self._file.metadata
        sizes = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])
        self._sort(looks, counts)

    def __len__(self) -> int:
        """The number of rows that count."""
        return self._counting

    def close(self) -> None:
        """Close the file."""
        self._closed()

    def find(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each key; -1 for a key without a row that counts."""
        if not self._rows or not len(keys):
            return np.full(len(keys), -1)
        sorted_keys = np.memmap(self._index, "S16", "r", 0, (self._rows,))
        places = np.memmap(self._index, np.int64, "r", 16 * self._rows, (self._rows,))
        wanted = packed(keys, str(self._path))
        at = np.minimum(np.searchsorted(sorted_keys, wanted), self._rows - 1)
        return np.where(sorted_keys[at] == wanted, places[at], -1)

    def rows(self, rows: NDArray[np.int64], columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
        """Yield these rows in pieces, in file order: positions in `rows`, and the rows there."""
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self._starts)
        pending: list[int] = []
        for group, (first, end) in enumerate(pairwise(ends.tolist())):
            if first < end:
                pending.append(group)
            full = sum(int(self._starts[group + 1] - self._starts[group]) for group in pending) >= _AT_ONCE
            if pending and (full or group == len(ends) - 2):
                some = order[int(ends[pending[0]]) : int(ends[pending[-1] + 1])]
                yield some, self._groups(pending, columns).take(self._within(rows[some], pending))
                pending = []

    def _within(self, rows: NDArray[np.int64], groups: Sequence[int]) -> NDArray[np.int64]:
        """Return the positions of rows in a table of these row groups."""
        firsts = self._starts[list(groups)]
        offsets = np.cumsum([0, *(self._starts[[group + 1 for group in groups]] - firsts)])
        group_of_row = np.searchsorted(firsts, rows, side="right") - 1
        return np.asarray(rows - firsts[group_of_row] + offsets[group_of_row], np.int64)

    def _groups(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        schema = asked_of(self._file, self._path, self._record, self._made_by, columns)
        try:
            table = self._file.read_row_groups(groups, columns=schema.names)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self._path} is damaged ({error}); delete it and run `{self._made_by}` again") from None
        return cast_table(table, schema, self._record, self._path, self._made_by)

    def _sort(self, looks: Sequence[str], counts: Callable[[pa.Table], NDArray[np.bool_]] | None) -> None:
        """Write keys in order, each with its row number."""
        keys, places = [np.empty(0, "S16")], [np.empty(0, np.int64)]
        for group, first in enumerate(self._starts[:-1].tolist()):
            piece = self._groups([group], ["key", *looks])
            mask = counts(piece) if counts else np.ones(piece.num_rows, np.bool_)
            keys.append(packed(piece["key"].to_pylist(), str(self._path)))
            places.append(np.where(mask, first + np.arange(piece.num_rows), -1))
        every, rows = np.concatenate(keys), np.concatenate(places)
        order = np.argsort(every, kind="stable")
        every = every[order]
        if (every[1:] == every[:-1]).any():
            refuse_duplicate_keys(self._groups(range(len(self._starts) - 1), ["key"]), self._record, self._path)
        self._rows, self._counting = len(every), int((rows >= 0).sum())
        self._index.write(every.tobytes())
        self._index.write(rows[order].tobytes())
        self._index.flush()


def return_unused() -> None:
    """Hand unused memory of Arrow's back to the operating system."""
    pa.default_memory_pool().release_unused()
