"""Rows of a table by their keys, with neither the table nor its keys in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from pydantic import Field

from plumbline.errors import DataError
from plumbline.hashes import KeyedTable
from plumbline.records import Record
from plumbline.store import BATCH, write_table

N = BATCH + 100  # two row groups


class Row(Record):
    """A row."""

    KEY = ("key",)
    key: str = Field(description="a hash")
    number: int = Field(description="its place")


def key(number: int) -> str:
    return hashlib.sha256(f"{number}".encode()).hexdigest()[:32]


def table(path: Path, numbers: range = range(N), **options: object) -> KeyedTable:
    write_table(path, (Row(key=key(number), number=number) for number in numbers), Row)
    return KeyedTable(path, Row, "make it", **options)  # type: ignore[arg-type]


def test_rows_are_found_by_their_keys_in_any_order(tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.parquet")
    asked = [N - 1, 3, N + 5, BATCH, 3, BATCH - 1, -1]
    found = rows.find([key(number) for number in asked])
    assert len(rows) == N and found.tolist() == [N - 1, 3, -1, BATCH, 3, BATCH - 1, -1]
    there = np.flatnonzero(found >= 0)
    read = np.full(len(asked), -1)
    for places, piece in rows.rows(found[there], ["number"]):
        assert piece.column_names == ["number"]
        read[there[places]] = piece["number"].to_numpy()
    assert read.tolist() == found.tolist()
    assert rows.find([]).tolist() == [] and list(rows.rows(np.empty(0, np.int64), ["number"])) == []


def test_rows_that_do_not_count_are_not_there(tmp_path: Path) -> None:
    even = lambda piece: np.asarray(pc.equal(pc.bit_wise_and(piece["number"], 1), 0))  # noqa: E731
    rows = table(tmp_path / "rows.parquet", looks=["number"], counts=even)
    assert len(rows) == N // 2 and rows.find([key(2), key(3)]).tolist() == [2, -1]
    assert table(tmp_path / "none.parquet", range(0)).find([key(2)]).tolist() == [-1]


def test_it_stays_the_table_that_was_opened(tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.parquet")
    write_table(tmp_path / "rows.parquet", [Row(key=key(1), number=77)], Row)
    ((_, piece),) = rows.rows(rows.find([key(1)]), ["number"])
    assert piece["number"].to_pylist() == [1]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Row, "KEY", ())  # so that it can be written
    write_table(tmp_path / "twice.parquet", [Row(key=key(1), number=number) for number in (1, 2)], Row)
    monkeypatch.setattr(Row, "KEY", ("key",))
    with pytest.raises(DataError, match=r"the key .* appears twice; each Row has one row"):
        KeyedTable(tmp_path / "twice.parquet", Row, "make it")
