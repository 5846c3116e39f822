"""What a spreadsheet gets."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.exhibits.files import csv_bytes
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
