"""Files of JSON lines that people or other programs wrote: one value a line, complaints with the line's number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from plumbline.errors import DataError
from plumbline.reading import MalformedError, parse_json, read_text
from plumbline.records import Record
from plumbline.study.base import first_complaint

R = TypeVar("R", bound=Record)


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The value of each line that is not blank, with its number as editors count.

    Raises DataError for a file that is not there, and for a line that is no JSON.
    """
    try:
        lines = read_text(path).split("\n")  # not splitlines: texts may hold U+2028
    except FileNotFoundError:
        raise DataError(f"no file {path}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, parse_json(line)
        except MalformedError as error:
            raise DataError(f"{path}: line {number} is not JSON: {error}") from None


def record_lines(path: Path, record: type[R]) -> Iterator[tuple[int, R]]:
    """The same as records. Raises as `json_lines`, and DataError for a line that is no such record."""
    for number, value in json_lines(path):
        try:
            yield number, record.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{path}: line {number}: {first_complaint(error)}") from None
