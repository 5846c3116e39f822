"""Append records to a file one by one, as JSON lines, each handed to the system when received.

A journal survives `kill -9` of its process: every appended record is there at the next start. A line that a crash cut
off was never acknowledged, and is skipped. A power cut loses at most the records after the last `sync`. Threads may
share a journal.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from plumbline.errors import DataError, read_each
from plumbline.reading import MalformedError, parse_json, refuse_no_file, text_lines
from plumbline.records import Record
from plumbline.resources import private
from plumbline.store import make_folder, to_disk
from plumbline.study.base import first_complaint

R = TypeVar("R", bound=Record)


class Journal:
    """A file of JSON lines; a record's place is the offset of its line in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._end = 0
        self._synced = 0
        self._lock = threading.Lock()

    def append(self, record: Record) -> int:
        """Write a record, hand it to the operating system, and return its place."""
        with self._lock:
            if self._file is None:
                make_folder(self.path.parent)
                self._file = open(self.path, "ab", buffering=0, opener=private)  # noqa: SIM115 (closed by `close`)
                self._end = self._synced = _end_last_line(self._file, self.path)
            offset, line = self._end, record.model_dump_json().encode() + b"\n"
            rest = memoryview(line)
            try:
                while rest:  # a disk that fills up writes part of a line, then refuses
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                self._close()  # so that the next record does not become part of the torn line
                error.filename = str(self.path)
                raise
            self._end += len(line)
            return offset

    def sync(self) -> None:
        """Force the appended records onto the disk. Raises OSError, which names the journal."""
        with self._lock:
            if self._file is None or self._synced == self._end:
                return
            # A separate handle: the file may be closed meanwhile, and appending does not wait for the disk.
            handle, end = os.dup(self._file.fileno()), self._end
        try:
            to_disk(handle, data_alone=True)
        except OSError as error:
            error.filename = str(self.path)
            raise
        finally:
            os.close(handle)
        with self._lock:
            self._synced = max(self._synced, end)

    def lines(self, record: type[Record] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the place and content of every whole line, in the order of appending.

        Raises DataError for a line that is not a `record`, if that type is given.
        """
        if not self.path.exists():
            return
        offset = 0
        refuse_no_file(self.path)
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = from_json(line)
                except ValueError:  # cut off
                    row = None
                if isinstance(row, dict) and record is not None:
                    try:
                        record.model_validate(row)
                    except ValidationError as error:
                        fault = f"not a {record.__name__} ({first_complaint(error)})"
                        advice = "move the journal to another folder, then run again"
                        raise DataError(f"{self.path}, line {number}: {fault}; {advice}") from None
                if isinstance(row, dict):
                    yield offset, row
                offset += len(line)

    def records(self, places: Iterable[int], record: type[R]) -> Iterator[R]:
        """Yield the records at these places, as `append` and `lines` returned them."""
        with self.path.open("rb") as file:
            for offset in places:
                file.seek(offset)
                yield record.model_validate_json(file.readline())

    def take_over(self, path: Path) -> None:
        """Append the lines of another journal and delete it. A kill in between leaves them in both."""
        self.close()
        with open(self.path, "ab", opener=private) as file, path.open("rb") as lines:
            _end_last_line(file, self.path)
            shutil.copyfileobj(lines, file)
            file.flush()
            to_disk(file.fileno())
        path.unlink()

    def close(self) -> None:
        """Close the file; its records stay."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Delete the journal once its records are in a table."""
        with self._lock:
            self._close()
            self.path.unlink(missing_ok=True)


def _end_last_line(file: IO[bytes], path: Path) -> int:
    """Close a line that a crash cut off, so that the next record starts a new one; return the end."""
    size = path.stat().st_size
    with path.open("rb") as written:
        written.seek(max(size - 1, 0))
        if size and written.read(1) != b"\n":
            return size + file.write(b"\n")
    return size


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the value of each line that is not blank, with its line number.

    Raises DataError for a missing file, and for a line that is not JSON.
    """
    try:
        for number, line in enumerate(text_lines(path), start=1):
            if line.strip():
                yield number, parse_json(line)
    except FileNotFoundError:
        raise DataError(f"no file {path}") from None
    except MalformedError as error:
        raise DataError(f"{path}: line {number} is not JSON: {error}") from None


def record_lines(path: Path, record: type[R]) -> list[tuple[int, R]]:
    """Return each line as a record. Raises as `json_lines`, and DataError for all lines that are not such records."""

    def read(line: tuple[int, Any]) -> tuple[int, R]:
        number, value = line
        try:
            return number, record.model_validate(value)
        except ValidationError as error:
            raise DataError(f"{path}: line {number}: {first_complaint(error)}") from None

    return read_each(json_lines(path), read)
