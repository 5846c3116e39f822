"""Tables as CSV that a spreadsheet reads and cannot run."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import pandas as pd

from plumbline.store import atomic
from plumbline.words import readable

# A spreadsheet takes a cell that starts with one of these for a formula (full-width ones too).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as CSV (UTF-8 with mark, as spreadsheets want it); texts that would run get a leading apostrophe.

    What no reader of CSV gets through (a null, say) is U+FFFD.
    """
    safe, returns = frame.copy(), False
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_inert)
            returns |= any("\r" in cell for cell in safe[column] if isinstance(cell, str))
    # A carriage return ends a row, and Python's writer sees no need to quote it.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    text: str = safe.rename(columns=_inert).to_csv(index=False, quoting=quoting)
    return text.encode("utf-8-sig")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, atomically."""
    with atomic(path) as file:
        file.write(csv_bytes(frame))


def _inert(value: object) -> object:
    if not isinstance(value, str):
        return value
    return readable(f"'{value}" if value.startswith(_FORMULA) else value)
