"""A table of which rows are read by their keys: neither it nor its keys stand in memory.

The keys are sorted once, into a temporary file that is gone with the process; of the table those row groups are read
that hold what is asked for. It stays the table that it was when it was opened, whatever is put in its place meanwhile.
"""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.errors import DataError
from plumbline.hashes import packed
from plumbline.records import Record
from plumbline.schemas import cast_table, refuse_duplicate_keys
from plumbline.store import BATCH, among, asked_of, open_parquet

_AT_ONCE = 16 * BATCH  # rows of row groups that are read together


class KeyedTable:
    """The rows of a table whose record has one key, a hash (column `key`); `made_by` is the command that makes it.

    Only rows that `counts` are there: it is given a piece with the key and the columns that it `looks` at, and returns
    a mask. Raises DataError for a file that is damaged and for a key that stands twice.
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
        held = contextlib.ExitStack()
        self._file: pq.ParquetFile = held.enter_context(open_parquet(path, made_by))
        self._index: Any = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        self._closed = weakref.finalize(self, held.close)
        meta = self._file.metadata
        sizes = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])
        self._sort(looks, counts)

    def __len__(self) -> int:
        """How many rows there are that count."""
        return self._counting

    def close(self) -> None:
        """Let go of the file."""
        self._closed()

    def find(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The row of each key; -1 where it has none that counts."""
        if not self._rows or not len(keys):
            return np.full(len(keys), -1)
        known = np.memmap(self._index, "S16", "r", 0, (self._rows,))
        places = np.memmap(self._index, np.int64, "r", 16 * self._rows, (self._rows,))
        wanted = packed(keys, str(self._path))
        at = np.minimum(np.searchsorted(known, wanted), self._rows - 1)
        return np.where(known[at] == wanted, places[at], -1)

    def rows(self, rows: NDArray[np.int64], columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
        """These rows in pieces, in the file's order: the places in `rows` that a piece has, and the piece."""
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self._starts)
        due: list[int] = []
        for group, (first, end) in enumerate(pairwise(ends.tolist())):
            if first < end:
                due.append(group)
            full = sum(int(self._starts[one + 1] - self._starts[one]) for one in due) >= _AT_ONCE
            if due and (full or group == len(ends) - 2):
                some = order[int(ends[due[0]]) : int(ends[due[-1] + 1])]
                yield some, self._groups(due, columns).take(self._within(rows[some], due))
                due = []

    def _within(self, rows: NDArray[np.int64], groups: Sequence[int]) -> NDArray[np.int64]:
        """The places of rows in a table of these row groups."""
        firsts = self._starts[list(groups)]
        before = np.cumsum([0, *(self._starts[[one + 1 for one in groups]] - firsts)])
        own = np.searchsorted(firsts, rows, side="right") - 1
        return np.asarray(rows - firsts[own] + before[own], np.int64)

    def _groups(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        schema = asked_of(self._file, self._path, self._record, self._made_by, columns)
        try:
            found = self._file.read_row_groups(groups, columns=among(self._file, schema))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self._path} is damaged ({error}); delete it and run `{self._made_by}` again") from None
        return cast_table(found, schema, self._record, self._path, self._made_by)

    def _sort(self, looks: Sequence[str], counts: Callable[[pa.Table], NDArray[np.bool_]] | None) -> None:
        """Write keys in order, and their rows behind them."""
        keys, places = [np.empty(0, "S16")], [np.empty(0, np.int64)]
        for group, first in enumerate(self._starts[:-1].tolist()):
            piece = self._groups([group], ["key", *looks])
            mask = counts(piece) if counts else np.ones(piece.num_rows, np.bool_)
            keys.append(packed(piece["key"].to_pylist(), str(self._path)))
            places.append(np.where(mask, first + np.arange(piece.num_rows), -1))
        whole, rows = np.concatenate(keys), np.concatenate(places)
        order = np.argsort(whole, kind="stable")
        whole = whole[order]
        if (whole[1:] == whole[:-1]).any():
            refuse_duplicate_keys(self._groups(range(len(self._starts) - 1), ["key"]), self._record, self._path)
        self._rows, self._counting = len(whole), int((rows >= 0).sum())
        self._index.write(whole.tobytes())
        self._index.write(rows[order].tobytes())
        self._index.flush()
