"""Check frames that users pass in; each fault is a one-line error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.errors import nearest
from plumbline.records import Rating
from plumbline.words import count

_NO_NUMBERS = "cmM"  # NumPy's kinds: complex numbers, spans of time, dates
_STATUSES = get_args(Rating.model_fields["status"].annotation)
_REASONS = ("excluded", "withdrawn")  # columns that say why a rating does not count


def need(frame: pd.DataFrame, columns: Sequence[str], table: str) -> None:
    """Raise ValueError if a frame lacks columns, or has one twice. `table` names the frame in the message."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"{table} must be a pandas DataFrame, not a {type(frame).__name__}")
    if columns and frame.columns.nlevels > 1:
        raise ValueError(f"{table}: the columns have {frame.columns.nlevels} levels; they must have one")
    if missing := [name for name in columns if name not in frame]:
        present = ", ".join(map(str, frame.columns)) or "none"
        raise ValueError(f"{table} lack the column {missing[0]!r} (required: {', '.join(columns)}; present: {present})")
    if double := [name for name in columns if (frame.columns == name).sum() > 1]:
        raise ValueError(f"{table} have more than one column {double[0]!r}")


def with_names(frame: pd.DataFrame, table: str, **columns: str) -> pd.DataFrame:
    """Return a frame with our column names: `rater_id="worker"` says that `worker` holds the raters.

    Raises ValueError as `need` does, and if two of our names are given one column.
    """
    if len(set(columns.values())) < len(columns):
        raise ValueError(f"{table}: {', '.join(columns)} must name different columns")
    need(frame, list(columns.values()), table)
    names = {source: name for name, source in columns.items() if source != name}
    replaced = [name for name in names.values() if name in frame and name not in names]
    return frame.drop(columns=replaced).rename(columns=names) if names else frame


def is_among(column: pd.Series, values: Iterable[str]) -> NDArray[np.bool_]:
    """Tell which names of a column are among others; `Series.isin` takes a hundred times as long on many strings.

    >>> is_among(pd.Series(["a", "b", "a"]), ["a", "c"]).tolist()
    [True, False, True]
    """
    return column.astype("category").isin(pd.Index(values)).to_numpy()


def rows_where(frame: pd.DataFrame, mask: NDArray[np.bool_]) -> pd.DataFrame:
    """Return the rows that a mask chooses; where they come first, as all do, they are not copied.

    >>> rows_where(pd.DataFrame({"x": [1, 2, 3]}), np.array([True, True, False]))["x"].tolist()
    [1, 2]
    """
    number = int(mask.sum())
    return frame[:number] if mask[:number].all() else frame[mask]


def filled(frame: pd.DataFrame, columns: Sequence[str], table: str) -> None:
    """Raise ValueError if a frame lacks columns, or a value is missing in them."""
    need(frame, columns, table)
    for name in columns:
        if (empty := frame[name].isna().to_numpy(bool)).any():
            raise ValueError(
                f"{table}: {name!r} is missing in {count(empty.sum(), 'row')} (the first: row {empty.argmax()})"
            )


def once(frame: pd.DataFrame, key: Sequence[str], table: str) -> None:
    """Raise ValueError if two rows of a frame have the same key."""
    try:
        twice = frame.duplicated(list(key)).to_numpy(bool)
    except TypeError:
        raise ValueError(f"{table}: {', '.join(key)} must be names or numbers, not lists") from None
    if twice.any():
        row = frame.iloc[int(twice.argmax())]
        named = ", ".join(f"{name} {row[name]!s}" for name in key)
        raise ValueError(f"{table}: {named} appears more than once")


def numbers(column: pd.Series, table: str) -> NDArray[np.float64]:
    """Return a column's numbers, NaN where one is missing. Raises ValueError if it holds anything else."""
    if getattr(column.dtype, "kind", "O") in _NO_NUMBERS:  # NumPy would convert them to numbers
        raise ValueError(f"{table}: column {column.name!r} must hold numbers, not {column.dtype}")
    values = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if (invalid := np.isnan(values) & column.notna().to_numpy(bool)).any():
        raise ValueError(f"{table}: {column.iloc[int(invalid.argmax())]!r} in column {column.name!r} is not a number")
    return values


def same_index(first: object, second: object, noun: str) -> None:
    """Raise ValueError if two pandas objects have different indexes: pairing by position would mix up rows."""
    frames = (pd.Series, pd.DataFrame)
    if isinstance(first, frames) and isinstance(second, frames) and not first.index.equals(second.index):
        raise ValueError(
            f"the two {noun} have different indexes; align them, or pass `.to_numpy()` to pair by position"
        )


def marked(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return ratings with `status`, `excluded`, `withdrawn` and `surplus` checked and filled, as far as present.

    An empty cell of a CSV file means that nobody excluded the rating. Raises ValueError for a cell that leaves open
    whether a rating counts.
    """
    if "status" in ratings and (
        invalid := [status for status in ratings["status"].unique() if status not in _STATUSES]
    ):
        raise ValueError(f"ratings: unknown status {invalid[0]!r}; {nearest(str(invalid[0]), list(_STATUSES))}")
    for name in filter(ratings.columns.__contains__, _REASONS):
        reasons = ratings[name].astype(object)
        ratings = ratings.assign(**{name: reasons.where(reasons.notna(), "")})
        if invalid := [mark for mark in ratings[name].unique() if not isinstance(mark, str)]:
            rule = "must hold the reason why a rating does not count, or be empty if it counts"
            raise ValueError(f"ratings: column {name!r} {rule}, not {invalid[0]!r}")
    if "surplus" in ratings and not ratings["surplus"].isin([True, False]).all():
        raise ValueError("ratings: column 'surplus' must hold true or false")
    return ratings


def that_count(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings that count by the frame's status columns; all ratings if it has none of these.

    A rating counts if it was submitted, nobody excluded its rater or withdrew its pair, and it is not `surplus`. Raises
    ValueError as `marked` does.
    """
    need(ratings, (), "ratings")
    checked = marked(ratings)
    counts = np.ones(len(checked), np.bool_)
    for name, value in (("status", "submitted"), ("excluded", ""), ("withdrawn", ""), ("surplus", False)):
        if name in checked:
            counts &= (checked[name] == value).to_numpy(np.bool_)
    return ratings if counts.all() else ratings[counts]
