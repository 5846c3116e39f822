"""Hashes, texts and rows by their keys, in little memory, are what they would be in lists and dictionaries."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from pydantic import Field

from plumbline import hashes as module
from plumbline.errors import DataError
from plumbline.hashes import Hashes, KeyedTable, TextsByHash, numbered, packed
from plumbline.records import Record
from plumbline.store import BATCH, write_table

DRAW = random.Random(1337)
DIGITS = [f"{DRAW.getrandbits(128):032x}" for _ in range(500)]
ODD = ["0" * 32, "f" * 32, f"{1:032x}", f"{1:x}{'0' * 31}", f"{'a' * 16}{'0' * 16}", f"{'a' * 16}{'0' * 15}1"]
ALL = [*DIGITS, *ODD]  # that end in bytes of 0, which numpy takes off; that share their first half


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 7)


def test_hashes_are_read_as_they_were() -> None:
    made = Hashes.of(iter(ALL), "here")
    assert list(made) == ALL and len(made) == len(ALL) and made.packed.nbytes == 16 * len(ALL)
    assert [made[place] for place in range(len(ALL))] == ALL and list(made[3:9]) == ALL[3:9] and made[-1] == ALL[-1]
    assert packed(made, "here") is made.packed and list(Hashes.of([], "here")) == []


def test_distinct_hashes_have_numbers_in_the_order_in_which_they_come() -> None:
    drawn = [DRAW.choice(ALL) for _ in range(2_000)]
    firsts, places = numbered(Hashes.of(drawn, "here").packed)
    distinct = list(dict.fromkeys(drawn))
    assert firsts.tolist() == [drawn.index(one) for one in distinct]
    assert [distinct[place] for place in places.tolist()] == drawn
    assert [found.tolist() for found in numbered(np.empty(0, "S16"))] == [[], []]


def test_texts_by_hash_are_those_of_a_dictionary() -> None:
    known = {one: f"text \U0001f600 {place}" if place % 9 else "" for place, one in enumerate(ALL)}
    made = TextsByHash(Hashes.of(known, "here").packed, TextsByHash.array(known.values()))
    assert made == known and list(made) == sorted(known) and len(made) == len(known)
    near = [f"{(int(one, 16) ^ 1):032x}" for one in ALL if f"{(int(one, 16) ^ 1):032x}" not in known]
    assert len(near) > 400 and not any(one in made or made.get(one) for one in near)
    nothing = TextsByHash(np.empty(0, "S16"), TextsByHash.array([]))
    assert not nothing and "a" * 32 not in nothing


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
