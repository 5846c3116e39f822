"""What a frame that somebody brings must hold: said in one line where it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_NO_NUMBERS = "cmM"  # NumPy's kinds: complex numbers, spans of time, dates


def need(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise ValueError where a frame lacks columns, or has one twice. `what` is the frame's name in the message."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"{what}: a pandas DataFrame is needed, not a {type(frame).__name__}")
    if columns and frame.columns.nlevels > 1:
        raise ValueError(f"{what}: the columns have {frame.columns.nlevels} levels; one is needed")
    if missing := [name for name in columns if name not in frame]:
        there = ", ".join(map(str, frame.columns)) or "none"
        raise ValueError(f"{what} lack the column {missing[0]!r}; needed are {', '.join(columns)}, there are {there}")
    if double := [name for name in columns if (frame.columns == name).sum() > 1]:
        raise ValueError(f"{what}: there is more than one column {double[0]!r}")


def filled(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise ValueError where a frame lacks columns, or where something is missing in them."""
    need(frame, columns, what)
    for name in columns:
        if (empty := frame[name].isna().to_numpy(bool)).any():
            raise ValueError(f"{what}: {name!r} is missing in {empty.sum()} rows (the first: row {empty.argmax()})")


def once(frame: pd.DataFrame, key: Sequence[str], what: str) -> None:
    """Raise ValueError where two rows of a frame have the same key."""
    try:
        twice = frame.duplicated(list(key)).to_numpy(bool)
    except TypeError:
        raise ValueError(f"{what}: {', '.join(key)} are names or numbers, not lists") from None
    if twice.any():
        row = frame.iloc[int(twice.argmax())]
        named = ", ".join(f"{name} {row[name]!s}" for name in key)
        raise ValueError(f"{what}: {named} stands there more than once")


def numbers(column: pd.Series, what: str) -> NDArray[np.float64]:
    """A column's numbers, NaN where one is missing. Raises ValueError where something else stands in it."""
    if getattr(column.dtype, "kind", "O") in _NO_NUMBERS:  # NumPy would make numbers of them
        raise ValueError(f"{what}: column {column.name!r} holds no numbers but {column.dtype}")
    found = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if (strange := np.isnan(found) & column.notna().to_numpy(bool)).any():
        raise ValueError(f"{what}: {column.iloc[int(strange.argmax())]!r} in column {column.name!r} is no number")
    return found


def same_index(first: object, second: object, what: str) -> None:
    """Raise ValueError for two of pandas with different indexes: by place, rows would be paired with other rows."""
    frames = (pd.Series, pd.DataFrame)
    if isinstance(first, frames) and isinstance(second, frames) and not first.index.equals(second.index):
        raise ValueError(f"the two {what} have different indexes; align them, or pass `.to_numpy()` to pair by place")
