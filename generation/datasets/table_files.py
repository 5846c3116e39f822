"""Tables of local data sets as they stand on disk, and the complaints about what cannot be used, with file and row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from generation.exceptions import DataError


def read_frame(path: Path) -> pd.DataFrame:
    """The rows of a CSV, TSV, JSONL or Parquet file, every cell as it stands there; lists are lists.

    Raises DataError for a file of another kind and for one that cannot be read.
    """
    kind = path.suffix.lower()
    try:
        if kind in (".csv", ".tsv"):
            separator = "," if kind == ".csv" else "\t"
            frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8")
            if not isinstance(frame.index, pd.RangeIndex):  # pandas then takes the first column for row names
                raise DataError(f"{path} cannot be read: rows have more cells than the header")
            return frame
        if kind == ".jsonl":
            return pd.DataFrame(list(json_lines(path)))
        if kind == ".parquet":
            return pd.read_parquet(path).map(lambda cell: cell.tolist() if isinstance(cell, np.ndarray) else cell)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    raise DataError(f"{path} is not a .csv, .tsv, .jsonl or .parquet file")


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file with one a line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: texts may hold U+2028
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            raise DataError(f"{path}: line {number + 1} is not JSON: {error}") from None
        except UnicodeEncodeError:  # JSON may escape one half of a surrogate pair; no other format can hold it
            raise DataError(f"{path}: line {number + 1} holds half a character (\\ud8.. alone); correct it") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number + 1} is not a JSON object")
        yield row


def numbers(column: pd.Series[Any], path: Path) -> pd.Series[Any]:
    """A column as numbers; refuses what is none."""
    values = pd.to_numeric(column, errors="coerce")
    wrong = ~np.isfinite(values.to_numpy(float))
    if wrong.any():
        row = values.index[wrong][0]
        raise DataError(f"{path}: row {line(row)}, field {column.name!r} is not a number: {column[row]!r}")
    return values


def refuse_empty(value: Any, path: Path, row: Any, column: str) -> None:
    """Refuse what is no text, or a blank one."""
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{path}: row {line(row)}, field {column!r} is empty; give it a text or remove the row")


def texts_of(value: Any, path: Path, row: Any, column: str) -> list[str]:
    """A list of texts; refuses what is none."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{path}: row {line(row)}, field {column!r} is not a list of texts")
    for text in value:
        if not isinstance(text, str):
            where = f"{path}: row {line(row)}, field {column!r}"
            raise DataError(f"{where} holds {text!r}, which is no text; it takes the texts themselves")
        refuse_empty(text, path, row, column)
    return value


def line(row: Any) -> int:
    """Rows as people count them: the first after the header is 1."""
    return int(row) + 1
