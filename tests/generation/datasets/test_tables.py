"""Files of texts are read line by line, and not whole: what a data set takes is its rows."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from generation.datasets.tables import json_rows, read_frame

ROWS, TEXT = 6_000, "a text of two hundred letters, of which one is not in ASCII: é" * 3


def of_csv(path: Path) -> tuple[int, str]:
    frame = read_frame(path)
    return len(frame), str(frame["text"].iloc[-1])


def of_json_lines(path: Path) -> tuple[int, str]:
    number, last = 0, ""
    for row in json_rows(path):
        number, last = number + 1, row["text"]
    return number, last


@pytest.mark.parametrize(
    ("name", "line", "read", "share"),
    [
        ("texts.csv", f'"{TEXT}",1\n', of_csv, 2.0),
        ("texts.jsonl", json.dumps({"text": TEXT, "label": 1}) + "\n", of_json_lines, 0.2),
    ],
)
def test_a_file_is_never_in_memory_as_a_whole_text(
    tmp_path: Path, name: str, line: str, read: Callable[[Path], tuple[int, str]], share: float
) -> None:
    path = tmp_path / name
    path.write_text(("text,label\n" if name.endswith("csv") else "") + line * ROWS, encoding="utf-8")
    tracemalloc.start()
    try:
        assert read(path) == (ROWS, TEXT)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < share * path.stat().st_size
