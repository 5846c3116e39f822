"""What a spreadsheet gets."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from plumbline.exhibits.csv import csv_bytes


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
