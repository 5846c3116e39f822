"""Tables of local data sets as they stand on disk, and the complaints about what cannot be used, with file and row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.errors import DataError
from plumbline.journal import json_lines
from plumbline.reading import text_lines
from plumbline.store import fetched, native_file
from plumbline.study.datasets import TaskType
from plumbline.words import shows


def read_frame(path: Path) -> pd.DataFrame:
    """The rows of a CSV, TSV, JSONL or Parquet file, every cell as it stands there; lists are lists.

    Raises DataError for a file of another kind and for one that cannot be read.
    """
    kind = path.suffix.lower()
    try:
        if kind in (".csv", ".tsv"):
            separator = "," if kind == ".csv" else "\t"
            for _ in text_lines(path):  # what is no text is refused with its line, which pandas does not know
                pass
            # Without a header, for pandas renames columns of one name and takes a column too many for row names.
            how: dict[str, Any] = {"header": None, "dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
            with path.open("rb") as file:
                return _headed(pd.read_csv(file, sep=separator, **how), path)
        if kind == ".jsonl":
            return pd.DataFrame(list(json_rows(path)))
        if kind == ".parquet":
            with fetched(path) as here, native_file(here) as file:
                table = pq.ParquetFile(file)
                _refuse_twice(table.schema_arrow.names, path)
                frame: pd.DataFrame = table.read().to_pandas()
            return frame.map(lambda cell: cell.tolist() if isinstance(cell, np.ndarray) else cell)
    except (OSError, ValueError, pd.errors.ParserError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {_why(error)}") from None
    raise DataError(f"{path} is not a .csv, .tsv, .jsonl or .parquet file")


def _why(error: Exception) -> str:
    """What is wrong with a file, in words of ours where pandas has its own."""
    message = str(error)
    if isinstance(error, pd.errors.EmptyDataError):
        return "it is empty; give it a line of column names, and rows"
    if counts := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        cells = f"line {counts[2]} has {counts[3]} cells, the header {counts[1]}"
        return f"{cells}; put cells that hold the separator into quotes"
    if "EOF inside string" in message:
        return "a cell begins with a quotation mark and no other one ends it; close it"
    return message


def _headed(cells: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows below the first, which names the columns. Raises DataError where two have one name."""
    header = [str(name) for name in cells.iloc[0]]
    _refuse_twice(header, path, ", or, where the first line is a row already, put a line of column names above it")
    return cells.iloc[1:].reset_index(drop=True).set_axis(header, axis=1)


def _refuse_twice(names: Sequence[str], path: Path, or_else: str = "") -> None:
    """Raise DataError for two columns of one name, of which nobody can tell which is meant."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: two columns are called {twice[0]!r}; rename one{or_else}")


def json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file with one a line."""
    for number, row in json_lines(path):
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number} is not a JSON object")
        yield row


def numbers(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    """A column as numbers; refuses what is none."""
    values = pd.to_numeric(column.astype(object).where(column.map(_numeric)), errors="coerce").astype(float)
    wrong = ~np.isfinite(values.to_numpy(float))
    if wrong.any():
        row = values.index[wrong][0]
        cell = column[row]
        missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
        trouble = "is missing; give it a number or remove the row" if missing else f"is not a number: {cell!r}"
        raise DataError(f"{path}: row {row_number(row)}, field {column.name!r} {trouble}")
    return values


def _numeric(value: Any) -> bool:
    """Whether a cell may be a number: not true or false, and no time, which pandas would count in nanoseconds."""
    if isinstance(value, int) and abs(value) > 10**300:  # more than a float can be
        return False
    return isinstance(value, (int, float, str, Decimal, np.number)) and not isinstance(value, (bool, np.bool_))


def label_of(value: Any, path: Path, row: Any) -> str:
    """A label as a text; refuses null, NaN, lists, times and blank ones."""
    number = isinstance(value, (bool, np.bool_)) or (_numeric(value) and not isinstance(value, str))
    if not (isinstance(value, str) or (number and np.isfinite(float(value)))):
        raise DataError(
            f"{path}: row {row_number(row)}, field 'label' is not a label: {value!r:.60}; write a word or a number"
        )
    refuse_empty(str(value), path, row, "label")
    return str(value)


def refuse_empty(value: Any, path: Path, row: Any, column: str) -> None:
    """Refuse what is no text, one that shows as nothing (white space, zero-width characters), and a null in it."""
    if isinstance(value, str) and "\0" in value:
        raise DataError(f"{path}: row {row_number(row)}, field {column!r} holds a null character; take it out")
    if not isinstance(value, str) or not shows(value):
        raise DataError(f"{path}: row {row_number(row)}, field {column!r} is empty; give it a text or remove the row")


def texts_of(value: Any, path: Path, row: Any, column: str) -> list[str]:
    """A list of texts; refuses what is none."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{path}: row {row_number(row)}, field {column!r} is not a list of texts")
    for text in value:
        if not isinstance(text, str):
            where = f"{path}: row {row_number(row)}, field {column!r}"
            raise DataError(f"{where} holds {text!r}, which is not text; it takes the texts themselves")
        refuse_empty(text, path, row, column)
    return value


def row_number(row: Any) -> int:
    """Rows as every complaint counts them, of a place from 0: the first below the header is 1, empty lines are none.

    A "line" is a file's own, as editors count them.
    """
    return int(row) + 1


def _labels(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Lists of labels as texts; a text may have none."""
    column = frame["label"]
    for row, value in column.items():
        if not isinstance(value, list):
            raise DataError(f"{path}: row {row_number(row)}, field 'label' is not a list of labels: {value!r}")
    rows = [[label_of(label, path, row) for label in labels] for row, labels in column.items()]
    return pd.Series(rows, index=column.index, dtype=object)


def _changed(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Of each positive passage whether the changed instruction makes it irrelevant."""
    rows = []
    for row, changed, positive in zip(frame.index, frame["changed"], frame["positive"], strict=True):
        foreign = [text for text in texts_of(changed, path, row, "changed") if text not in positive]
        if foreign:
            where = f"{path}: row {row_number(row)}, field 'changed'"
            raise DataError(f"{where} holds a text that 'positive' does not: {foreign[0][:60]!r}")
        rows.append([text in changed for text in positive])
    return pd.Series(rows, index=frame.index, dtype=object)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _relevance(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Lists of numbers, one for each machine summary."""
    rows = []
    for row, values, summaries in zip(frame.index, frame["relevance"], frame["machine_summaries"], strict=True):
        wanted = len(summaries)
        cells = values if isinstance(values, list) else []
        if len(cells) != wanted or not all(map(_finite, cells)):
            raise DataError(
                f"{path}: row {row_number(row)}, field 'relevance' is not a list of {wanted} numbers, one"
                " a machine summary"
            )
        rows.append([float(value) for value in cells])
    return pd.Series(rows, index=frame.index, dtype=object)


# The column of each task that has one, and what makes it of a frame, or raises DataError with file, row and field.
LISTS: Mapping[TaskType, tuple[str, Callable[[pd.DataFrame, Path], pd.Series[Any]]]] = {
    "multilabel_classification": ("label", _labels),
    "summarisation": ("relevance", _relevance),
    "instruction_reranking": ("changed", _changed),
}
