from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import hypothesis.strategies as st
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from generation.datasets.tables import read_frame as read_local_frame
from plumbline.errors import DataError
from plumbline.journal import Journal
from plumbline.records import Number, Rating, Record
from plumbline.store import (
    BATCH,
    atomic,
    joined,
    read_batches,
    read_frame,
    read_json,
    read_records,
    read_table,
    write_json,
    write_table,
)


def modes(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_what_is_written_is_its_users_alone_until_others_are_let_in(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # as folders are by themselves
    folder = tmp_path / "exports" / "study"
    journal, text, beside, bundle = folder / "a.journal", folder / "a.json", tmp_path / "a.json", folder / "a.zip"
    kept = Journal(journal)
    kept.append(row())
    kept.close()
    for path in (text, beside):
        write_json(path, 1)
    with atomic(bundle, public=True) as file:
        file.write(b"1")
    assert modes(folder.parent, folder, journal, text, beside, bundle) == [0o700, 0o700, 0o600, 0o600, 0o600, 0o644]
    folder.chmod(0o750)  # its user lets a group in
    text.chmod(0o664)  # and everybody read this
    for path in (text, folder / "b.json", folder / "c" / "c.json"):
        write_json(path, 2)
    assert modes(folder, text, folder / "b.json", folder / "c") == [0o750, 0o664, 0o640, 0o700]
    os.umask(0o077)
    with atomic(folder / "private.plumb", public=True) as file:
        file.write(b"1")
    assert modes(folder / "private.plumb") == [0o600]


class Row(Record):
    KEY: ClassVar[tuple[str, ...]] = ("key",)
    key: str
    note: str | None
    count: int | None
    score: Number
    at: datetime


NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def row(key: str = "a", note: str | None = None, count: int | None = None, score: float = math.nan) -> Row:
    return Row(key=key, note=note, count=count, score=score, at=NOW)


ROWS = st.lists(
    st.builds(
        row,
        TEXTS,
        st.none() | TEXTS,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=True, allow_infinity=False),
    ),
    unique_by=lambda row: row.key,
)


def plain(rows: list[Row]) -> list[dict[str, object]]:
    """What rows hold; the score by its repr, as NaN is not equal to itself."""
    return [{**row.model_dump(), "score": repr(row.score)} for row in rows]


@given(rows=ROWS)
def test_a_table_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    write_table(path, rows, Row)
    assert plain(read_records(path, Row, "make it")) == plain(rows)


def test_undefined_numbers_of_a_frame_stay_nan_and_missing_texts_stay_none(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": ["a"], "note": [None], "count": [None], "score": [math.nan], "at": [NOW]})
    write_table(tmp_path / "t.parquet", frame, Row)
    read = read_records(tmp_path / "t.parquet", Row, "make it")[0]
    assert math.isnan(read.score)
    assert (read.note, read.count, read.at) == (None, None, NOW)
    assert read_frame(tmp_path / "t.parquet", Row, "make it")["score"].isna().all()


def write_half(path: Path) -> None:
    with atomic(path) as file:
        file.write(b"new")
        raise RuntimeError("half way")


def test_arrow_gets_files_of_its_own_to_read_and_never_a_python_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow's that lets go of a Python file while the interpreter ends aborts the process (arrow 34314)."""
    path, sources = tmp_path / "t.parquet", []
    write_table(path, [row()], Row)

    class Spied(pq.ParquetFile):
        def __init__(self, source: object, **options: object) -> None:
            sources.append(source)
            super().__init__(source, **options)

    monkeypatch.setattr(pq, "ParquetFile", Spied)
    read_table(path, Row, "make it")
    list(read_batches(path, Row, "make it"))
    read_local_frame(path)
    assert len(sources) == 3
    assert all(isinstance(source, pa.OSFile) for source in sources)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        write_half(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "j.json", {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "j.json", {"a": math.nan})
    assert read_json(tmp_path / "j.json", "make it") == {"a": 1}


def test_duplicate_keys_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="appears twice"):
        write_table(tmp_path / "t.parquet", [row(), row()], Row)
    assert list(tmp_path.iterdir()) == []


def test_a_table_in_pieces_is_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = (row(key=str(number), count=number) for number in range(2 * BATCH + 1))  # an iterator: never all in memory
    write_table(path, rows, Row)
    pieces = list(read_batches(path, Row, "make it", ["count"]))
    assert [piece.num_rows for piece in pieces] == [BATCH, BATCH, 1]
    assert [value for piece in pieces for value in piece["count"].to_pylist()] == list(range(2 * BATCH + 1))
    assert pieces[0].schema.names == ["count"]


def test_a_key_that_comes_again_in_a_later_piece_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    rows = [*(row(key=str(number)) for number in range(BATCH)), row(key="7")]
    with pytest.raises(DataError, match=r"key \{'key': '7'\} appears twice"):
        write_table(tmp_path / "t.parquet", rows, Row)
    assert list(tmp_path.iterdir()) == []


def test_words_are_read_as_categories_in_their_order(tmp_path: Path) -> None:
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    row = {"transformation": "paraphrasing", "language": "en", "question": "quality", "value": 3, "status": "submitted"}
    more = {"submitted_at": datetime(2026, 1, 1, tzinfo=UTC), "source": "argilla", "simulated": False}
    for path, pair_id in zip(paths, ("z", "a"), strict=True):
        write_table(path, [Rating(pair_id=pair_id, rater_id=rater, **row, **more) for rater in ("r2", "r1")], Rating)
    words = ("pair_id", "rater_id", "excluded")
    frame = joined((read_table(path, Rating, "x", words=words) for path in paths), Rating, words)
    plain = joined((read_table(path, Rating, "x") for path in paths), Rating)
    assert list(frame["pair_id"].cat.categories) == ["a", "z"]
    assert list(frame["rater_id"].cat.categories) == ["r1", "r2"]
    pd.testing.assert_frame_equal(frame.astype(dict.fromkeys(words, "str")), plain)
    assert joined([], Rating, words)["pair_id"].cat.categories.empty
