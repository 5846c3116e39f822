"""Outputs that somebody made elsewhere: one file for a transformation, with a row for each text.

What stands there is an output as it is, for every seed and data set. A text that the file does not have has no output.
"""

from __future__ import annotations

from pathlib import Path

from generation.datasets.table_files import read_frame, row_number
from plumbline.errors import DataError
from plumbline.records import nfc
from plumbline.study.transformations import Transformation


def outputs_path(kind: Transformation) -> Path:
    """Where a transformation's outputs stand. Raises DataError where there is no file."""
    path = kind.base / (kind.outputs.path if kind.outputs else "")
    if not path.is_file():
        raise DataError(f"transformation {kind.name!r}: no file {path}; correct `outputs.path`")
    return path


def load_outputs(kind: Transformation) -> dict[str, str]:
    """Each text (in NFC) with its output; an empty cell is one that is not there.

    Raises DataError for a column that is missing, a cell that holds no text, and two outputs for a text.
    """
    path, columns = outputs_path(kind), kind.outputs_columns
    frame = read_frame(path)
    for column in columns:
        if column not in frame.columns:
            there = ", ".join(map(str, frame.columns)) or "none"
            raise DataError(f"{path}: no column {column!r}; there are: {there}; name yours under `outputs`")
    found: dict[str, str] = {}
    for row, cells in zip(frame.index, zip(*(frame[column] for column in columns), strict=True), strict=True):
        text, output = ("" if cell is None or cell != cell else cell for cell in cells)  # noqa: PLR0124 (NaN)
        if wrong := next((cell for cell in (text, output) if not isinstance(cell, str)), None):
            raise DataError(f"{path}: row {row_number(row)} holds {wrong!r:.60}, which is no text")
        if found.setdefault(nfc(text), output) != output:
            raise DataError(f"{path}: row {row_number(row)} is a second output for {text[:60]!r}; keep one")
    return found
