"""What a spreadsheet gets; what is a report's own in its folder goes with the next one, all else stays."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.errors import DataError
from plumbline.exhibits.table import LIST, csv_bytes, write_files
from plumbline.store import atomic, write_json
from plumbline.words import readable


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_texts_that_a_spreadsheet_would_run_are_neutralised(start: str) -> None:
    text = f'{start}HYPERLINK("http://192.0.2.1/")'
    read = pd.read_csv(io.BytesIO(csv_bytes(pd.DataFrame({"text": [text, "plain", None], "n": [-1.5, 2, 3]}))))
    assert read["text"].iloc[0].startswith("'")
    assert read["text"].iloc[1] == "plain"
    assert pd.isna(read["text"].iloc[2])
    assert list(read["n"]) == [-1.5, 2, 3]  # numbers stay numbers


def test_csv_keeps_every_script_and_line() -> None:
    frame = pd.DataFrame({"text": ['one "two", three', "İstanbul\nمرحبا", "🙂"]})
    data = csv_bytes(frame)
    assert data.startswith(b"\xef\xbb\xbf")
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(data)), frame)


def test_names_of_columns_run_in_no_spreadsheet() -> None:
    data = csv_bytes(pd.DataFrame({"=1+1": [1], "task": ["a"]}))
    assert data.decode("utf-8-sig").splitlines()[0] == "'=1+1,task"


@given(
    st.lists(st.text(st.characters() | st.sampled_from("\0\r\n\x1a\x85\u2028\ud800,\"';\t"), max_size=20), min_size=1)
)
def test_every_reader_gets_through_whatever_is_in_a_cell(texts: list[str]) -> None:
    data = csv_bytes(pd.DataFrame({"text": pd.Series(texts, dtype=object), "n": range(len(texts))}))
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    frame = pd.read_csv(io.BytesIO(data), keep_default_na=False, dtype={"text": str})
    for read in ([row["text"] for row in rows], list(frame["text"])):
        assert [cell.removeprefix("'") for cell in read] == [readable(text).removeprefix("'") for text in texts]
    assert [int(row["n"]) for row in rows] == list(frame["n"]) == list(range(len(texts)))
    assert not set(data) & {0, 0x1A, 0x1B}


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {LIST}


def test_only_what_the_last_report_wrote_goes(tmp_path: Path) -> None:
    user_files = {"notes.md": "mine", "tables/my.csv": "mine", "tables/draft.tex": "mine"}
    for name, text in user_files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    write_files(tmp_path, {"tables/a.csv": b"1", "tables/b.csv": b"2", "figures/c.svg": b"3"})
    (tmp_path / "tables" / "b.csv").write_text("with my remarks", encoding="utf-8")
    write_files(tmp_path, {"tables/a.csv": b"4"})
    assert there(tmp_path) == {*user_files, "tables/a.csv", "tables/b.csv"}
    assert (tmp_path / "tables" / "a.csv").read_bytes() == b"4"
    assert (tmp_path / "tables" / "b.csv").read_text(encoding="utf-8") == "with my remarks"


def test_a_report_that_was_killed_leaves_nothing_to_the_one_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path) -> object:
        if path.name == "b.csv":
            raise KeyboardInterrupt
        return atomic(path)

    with monkeypatch.context() as patched:
        patched.setattr("plumbline.exhibits.table.atomic", killed)
        with pytest.raises(KeyboardInterrupt):
            write_files(tmp_path, {"a.csv": b"1", "b.csv": b"2"})
    write_files(tmp_path, {"c.csv": b"3"})
    assert there(tmp_path) == {"c.csv"}


@pytest.mark.parametrize("listed", [{"../outside.csv": ""}, {"/etc/none": ""}, ["a.csv"], "no list"])
def test_a_list_that_is_not_the_reports_removes_nothing(tmp_path: Path, listed: object) -> None:
    folder = tmp_path / "report"
    outside = tmp_path / "outside.csv"
    outside.write_bytes(b"")
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"")
    if listed == "no list":
        (folder / LIST).write_bytes(b"\xff[")
    else:
        if isinstance(listed, dict):  # with the hash of nothing, so that the name alone keeps it
            listed = dict.fromkeys(listed, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        write_json(folder / LIST, listed)
    write_files(folder, {"b.csv": b"1"})
    assert outside.exists() and there(folder) == {"a.csv", "b.csv"}


@pytest.mark.parametrize(("taken", "said"), [("a.csv", "a folder has the name"), ("rows", "a file has the name")])
def test_what_cannot_be_written_is_said_before_anything_is(tmp_path: Path, taken: str, said: str) -> None:
    (tmp_path / taken).mkdir() if taken == "a.csv" else (tmp_path / taken).write_text("mine")
    with pytest.raises(DataError, match=f"{taken}: {said}"):
        write_files(tmp_path, {"first.csv": b"1", "a.csv": b"2", "rows/b.csv": b"3"})
    assert [path.name for path in tmp_path.iterdir()] == [taken]
