"""Tables as CSV that a spreadsheet reads and cannot run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from plumbline.store import atomic

# A spreadsheet takes a cell that starts with one of these for a formula (full-width ones too).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as CSV (UTF-8 with mark, as spreadsheets want it); texts that would run get a leading apostrophe."""
    safe = frame.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_inert)
    return safe.rename(columns=_inert).to_csv(index=False).encode("utf-8-sig")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, atomically."""
    with atomic(path) as file:
        file.write(csv_bytes(frame))


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
