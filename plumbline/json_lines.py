"""Files of JSON lines that people or other programs wrote: one value a line, complaints with the line's number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from plumbline.errors import DataError
from plumbline.reading import MalformedError, parse_json, text_lines
from plumbline.records import Record
from plumbline.study.base import first_complaint

R = TypeVar("R", bound=Record)


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The value of each line that is not blank, with its number as editors count.

    Raises DataError for a file that is not there, and for a line that is no JSON.
    """
    try:
        for number, line in enumerate(text_lines(path), start=1):
            if line.strip():
                yield number, parse_json(line)
    except FileNotFoundError:
        raise DataError(f"no file {path}") from None
    except MalformedError as error:
        raise DataError(f"{path}: line {number} is not JSON: {error}") from None


def record_lines(path: Path, record: type[R]) -> Iterator[tuple[int, R]]:
    """The same as records. Raises as `json_lines`, and DataError for a line that is no such record."""
    for number, value in json_lines(path):
        try:
            yield number, record.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{path}: line {number}: {first_complaint(error)}") from None
