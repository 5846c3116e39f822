"""Read tables of local data sets, and refuse unusable cells with file and row."""

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

from plumbline.errors import DataError, read_each
from plumbline.journal import json_lines
from plumbline.reading import encoding_of, list_in
from plumbline.spreadsheets import EXCEL, excel_rows, one_file, refuse_sheet, unpacked
from plumbline.store import fetched, native_file
from plumbline.study.datasets import TaskType
from plumbline.words import count, shows


def read_frame(path: Path, sheet: str = "") -> pd.DataFrame:
    """Return the rows of a CSV, TSV, JSONL, Parquet or Excel file, every cell as it is; lists are lists.

    The index counts all rows, of which blank ones are left out: from 0, which is the row below a header. The file may
    be packed by gzip or zip; `sheet` names one of an Excel file's. Raises DataError for a file of another kind or one
    that cannot be read.
    """
    with unpacked(path) as files:
        if (inner := one_file(path, files)) != path:
            return read_frame(inner, sheet)
    kind = path.suffix.lower()
    if kind not in EXCEL:
        refuse_sheet(path, sheet)
    try:
        if kind in (".csv", ".tsv"):
            return _headed(_csv_rows(path, "," if kind == ".csv" else "\t"), path)
        if kind in EXCEL:
            rows = dict(excel_rows(path, sheet)[1])
            return _headed(pd.DataFrame([*rows.values()], index=[*rows]), path)
        if kind == ".jsonl":
            objects = dict(json_rows(path))
            return pd.DataFrame([*objects.values()], index=[*objects])
        if kind == ".parquet":
            with fetched(path) as here, native_file(here) as file:
                table = pq.ParquetFile(file)
                _refuse_twice(table.schema_arrow.names, path)
                frame: pd.DataFrame = table.read().to_pandas()
            return frame.map(lambda cell: cell.tolist() if isinstance(cell, np.ndarray) else cell)
    except (OSError, ValueError, pd.errors.ParserError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {_why(error)}") from None
    raise DataError(f"{path} is not a .csv, .tsv, .jsonl, .parquet or .xlsx file")


def encoding_remark(path: Path) -> str:
    """Return a remark on the encoding in which `read_frame` reads a CSV or TSV file; empty for UTF-8."""
    with unpacked(path) as files:
        file = one_file(path, files)
        return encoding_of(file)[1] if file.suffix.lower() in (".csv", ".tsv") else ""


def _why(error: Exception) -> str:
    """Return the reason why a file cannot be read, in our words instead of pandas's."""
    message = str(error)
    if isinstance(error, pd.errors.EmptyDataError):
        return "the file is empty; add a line of column names, and rows"
    if counts := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        cells = f"line {counts[2]} has {counts[3]} cells, but the header has {counts[1]}"
        return f"{cells}; quote the cells that contain the separator"
    if "EOF inside string" in message:
        return "a cell opens a quotation mark that is never closed; close it"
    return message


def _csv_rows(path: Path, separator: str) -> pd.DataFrame:
    """Return the rows of a CSV file that are not blank, the header among them, with their numbers from 1."""
    with path.open(encoding=encoding_of(path)[0], newline="") as file:
        above, start = 0, 0
        while (line := file.readline()) and not line.strip():  # pandas cannot begin with a blank row
            above, start = above + 1, file.tell()
        file.seek(start)
        # Read the header as a row: pandas renames columns of equal names and takes an extra column for row names.
        how: dict[str, Any] = {"header": None, "dtype": str, "keep_default_na": False, "skip_blank_lines": False}
        cells = pd.read_csv(file, sep=separator, **how)
    cells.index += above + 1
    rows: pd.DataFrame = cells[cells.apply(lambda column: column.str.strip() != "").any(axis=1)]
    if rows.empty:
        raise pd.errors.EmptyDataError
    return rows


def _headed(cells: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the rows below the header by number in the file, from 1. Raises DataError for two equal names."""
    header = [str(name) for name in cells.iloc[0]]
    _refuse_twice(header, path, ", or, if the first line is a row, put a line of column names above it")
    rows = cells.iloc[1:].set_axis(header, axis=1)
    return rows.set_axis(rows.index - 2)


def _refuse_twice(names: Sequence[str], path: Path, or_else: str = "") -> None:
    """Raise DataError for two columns of one name: it would be unclear which is meant."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{path}: two columns are called {twice[0]!r}; rename one{or_else}")


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with one object a line, each with its row for `row_of`."""
    for number, row in json_lines(path):
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number} is not a JSON object")
        yield number - 1, row


def numbers(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    """Return a column as numbers; refuse cells that are not numbers."""
    values = pd.to_numeric(column.astype(object).where(column.map(_numeric)), errors="coerce").astype(float)
    undefined = ~np.isfinite(values.to_numpy(float))
    if undefined.any():
        faults = []
        for row, cell in column[undefined].items():
            missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
            trouble = "is missing; add a number or remove the row" if missing else f"is not a number: {cell!r}"
            faults.append(f"{row_of(path, row)}, field {column.name!r} {trouble}")
        raise DataError(*faults)
    return values


def _numeric(value: Any) -> bool:
    """Return whether a cell may be a number: not a Boolean or a time, which pandas would count in nanoseconds."""
    if isinstance(value, int) and abs(value) > 10**300:  # beyond the range of floats
        return False
    return isinstance(value, (int, float, str, Decimal, np.number)) and not isinstance(value, (bool, np.bool_))


def label_of(value: Any, path: Path, row: Any) -> str:
    """Return a label as a text; refuse null, NaN, lists, times and blanks."""
    number = isinstance(value, (bool, np.bool_)) or (_numeric(value) and not isinstance(value, str))
    if not (isinstance(value, str) or (number and np.isfinite(float(value)))):
        raise DataError(f"{row_of(path, row)}, field 'label' is not a label: {value!r:.60}; write a word or a number")
    refuse_empty(str(value), path, row, "label")
    return str(value)


def refuse_empty(value: Any, path: Path, row: Any, column: str) -> None:
    """Refuse a cell that is no text, shows as nothing (white space, zero-width characters), or contains a null."""
    if isinstance(value, str) and "\0" in value:
        raise DataError(f"{row_of(path, row)}, field {column!r} holds a null character; remove it")
    if not isinstance(value, str) or not shows(value):
        raise DataError(f"{row_of(path, row)}, field {column!r} is empty; add a text or remove the row")


def texts_of(value: Any, path: Path, row: Any, column: str) -> list[str]:
    """Return a list of texts; refuse anything else."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{row_of(path, row)}, field {column!r} is not a list of texts")
    for text in value:
        if not isinstance(text, str):
            location = f"{row_of(path, row)}, field {column!r}"
            raise DataError(f"{location} holds {text!r}, which is not text; list the texts themselves")
        refuse_empty(text, path, row, column)
    return value


def unpacked_list(cell: Any) -> Any:
    """Return the list that a cell is written as, as CSV must; any other cell unchanged."""
    listed = list_in(cell.strip()) if isinstance(cell, str) else None
    return cell if listed is None else listed


def refuse_lists(column: pd.Series[Any], path: Path) -> None:
    """Refuse a column most of whose cells hold lists of texts, of which each would count as a single text."""
    lists = [(cell, unpacked_list(cell)) for cell in column]
    cells = [cell for cell, texts in lists if isinstance(texts, list) and {*map(type, texts)} == {str}]
    if 2 * len(cells) > len(column):
        raise DataError(
            f"{path}: field {column.name!r} holds lists, such as {cells[0]!r:.60}, in {len(cells)} of"
            f" {count(len(column), 'row')}; write one text a row, in pandas with frame.explode({column.name!r})"
        )


def row_of(path: Path, row: Any) -> str:
    """Return a file and a row's number in it as spreadsheets and all error messages count it, with blank rows.

    `row` is its index in `read_frame`. A header is row 1; rows of files without one (JSONL, Parquet) begin with 1.
    """
    return f"{path}: row {int(row) + (1 if {'.jsonl', '.parquet'} & {*path.suffixes} else 2)}"


def _labels(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Return lists of labels as texts; a text may have no label."""

    def read(cell: tuple[Any, Any]) -> list[str]:
        row, labels = cell
        if not isinstance(labels, list):
            raise DataError(f"{row_of(path, row)}, field 'label' is not a list of labels: {labels!r}")
        return [label_of(label, path, row) for label in labels]

    return pd.Series(read_each(frame["label"].items(), read), index=frame.index, dtype=object)


def _changed(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Return for each positive passage whether the changed instruction makes it irrelevant."""

    def read(cells: tuple[Any, Any, list[str]]) -> list[bool]:
        row, changed, positive = cells
        if foreign := [text for text in texts_of(changed, path, row, "changed") if text not in positive]:
            location = f"{row_of(path, row)}, field 'changed'"
            raise DataError(f"{location} holds a text that is not in 'positive': {foreign[0][:60]!r}")
        return [text in changed for text in positive]

    rows = zip(frame.index, frame["changed"], frame["positive"], strict=True)
    return pd.Series(read_each(rows, read), index=frame.index, dtype=object)


def _relevance(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Return lists of numbers, one for each machine summary."""

    def read(row: tuple[Any, Any, list[str]]) -> list[float]:
        values, wanted = row[1], len(row[2])
        cells = values if isinstance(values, list) else []
        if len(cells) != wanted or not all(
            _numeric(cell) and not isinstance(cell, str) and math.isfinite(cell) for cell in cells
        ):
            raise DataError(
                f"{row_of(path, row[0])}, field 'relevance' is not a list of {wanted} numbers, one"
                " for each machine summary"
            )
        return [float(value) for value in cells]

    rows = zip(frame.index, frame["relevance"], frame["machine_summaries"], strict=True)
    return pd.Series(read_each(rows, read), index=frame.index, dtype=object)


# Each task's column of lists, and its check, which returns the column or raises DataError with file, row and field.
LISTS: Mapping[TaskType, tuple[str, Callable[[pd.DataFrame, Path], pd.Series[Any]]]] = {
    "multilabel_classification": ("label", _labels),
    "summarisation": ("relevance", _relevance),
    "instruction_reranking": ("changed", _changed),
}
