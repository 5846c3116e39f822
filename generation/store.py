"""Files that survive: atomic writes, typed Parquet tables, and journals that outlive `kill -9`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import types
import typing
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from generation.exceptions import DataError, StudyError
from generation.records import Record
from generation.study import first_complaint

R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)


@contextlib.contextmanager
def atomic(path: Path, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A file that appears under its name whole or not at all (temporary file, fsync, rename)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say where it is
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def only_one(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file while a stage works; refuse with StudyError(`busy`) where another process holds it.

    The lock goes with the process, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{busy}; wait until it has ended") from None
        yield


def write_json(path: Path, value: Any) -> None:
    """Write JSON (pydantic models among it, NaN as null), atomically."""

    def plain(item: Any) -> Any:
        return json.loads(item.model_dump_json()) if isinstance(item, BaseModel) else str(item)

    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=plain)
    with atomic(path) as file:
        file.write(text.encode() + b"\n")


def read_json(path: Path, made_by: str) -> Any:
    """The JSON in a file; `made_by` is the command that makes the file, for the error's advice."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run `{made_by}` again") from None


def read_models(path: Path, model: type[M], made_by: str) -> list[M]:
    """A JSON list of models."""
    data = read_json(path, made_by)
    try:
        return [model.model_validate(item) for item in data]
    except (ValidationError, TypeError) as error:
        what = first_complaint(error) if isinstance(error, ValidationError) else str(error)
        raise DataError(f"{path} does not hold what it should ({what}); run `{made_by}` again") from None


def write_table(path: Path, rows: Iterable[Record] | pd.DataFrame, record: type[Record]) -> None:
    """Write records, or a frame with a record's columns, as Parquet, atomically; refuses duplicate keys."""
    schema = arrow_schema(record)
    try:
        if isinstance(rows, pd.DataFrame):
            table = _nan(pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False))
        else:
            table = pa.Table.from_pylist([row.model_dump() for row in rows], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
        raise DataError(f"{path.name}: rows do not fit {record.__name__}: {error}") from None
    _refuse_duplicate_keys(table, record, path)
    with atomic(path) as file:
        pq.write_table(table, file, compression="zstd")


def read_table(path: Path, record: type[Record], made_by: str) -> pa.Table:
    """A Parquet file of records, checked for its columns, types and keys."""
    try:
        table = pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run `{made_by}` again") from None
    schema = arrow_schema(record)
    missing = [name for name in schema.names if name not in table.schema.names]
    if missing:
        raise DataError(f"{path} lacks column {missing[0]!r}; it is of another version: run `{made_by}` again")
    try:
        table = table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{path} has a column of another type ({error}); run `{made_by}` again") from None
    _refuse_duplicate_keys(table, record, path)
    return table


def read_frame(path: Path, record: type[Record], made_by: str) -> pd.DataFrame:
    """A table of records as a pandas frame."""
    frame: pd.DataFrame = read_table(path, record, made_by).to_pandas()
    return frame


def read_records(path: Path, record: type[R], made_by: str) -> list[R]:
    """A table of records as records."""
    rows: list[dict[str, Any]] = read_table(path, record, made_by).to_pylist()
    return [typing.cast("R", record.model_construct(**row)) for row in rows]


class Journal:
    """Records appended one by one, each on disk when `append` returns; a torn last line is ignored.

    A journal outlives `kill -9` of the process: whatever was appended is there at the next start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def append(self, record: Record) -> None:
        """Write one record and hand it to the operating system."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _end_last_line(self.path)
            self._file = self.path.open("ab", buffering=0)
        rest = memoryview(record.model_dump_json().encode() + b"\n")
        try:
            while rest:  # a disk that fills up takes a part, and refuses the next one
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.close()  # so that the next record does not become part of the torn line
            error.filename = str(self.path)
            raise

    def read(self, record: type[R]) -> list[R]:
        """Everything appended so far, later records after earlier ones; lines cut off by a crash are left out."""
        if not self.path.exists():
            return []
        rows: list[R] = []
        for line in self.path.read_bytes().split(b"\n"):
            with contextlib.suppress(ValidationError):  # a torn line: its output was never acknowledged
                rows.append(record.model_validate_json(line))
        return rows

    def close(self) -> None:
        """Close the file; what it holds stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Delete the journal, once its records stand in a table."""
        self.close()
        self.path.unlink(missing_ok=True)


def arrow_schema(record: type[Record]) -> pa.Schema:
    """The Parquet columns of a record, from its annotations."""
    return pa.schema([pa.field(name, *_arrow_type(field.annotation)) for name, field in record.model_fields.items()])


def _arrow_type(annotation: Any) -> tuple[pa.DataType, bool]:
    """(Arrow type, nullable) of a field's annotation."""
    if isinstance(annotation, types.UnionType):
        inner = [part for part in typing.get_args(annotation) if part is not type(None)]
        return _arrow_type(inner[0])[0], True
    if typing.get_origin(annotation) is Literal:
        annotation = type(typing.get_args(annotation)[0])
    plain = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", tz="UTC"),
    }
    # A float may be undefined: NaN in the program, and Parquet keeps it as NaN.
    return plain[annotation], annotation is float


def _nan(table: pa.Table) -> pa.Table:
    """The table with NaN where pandas' NaN became null on its way to Arrow."""
    columns = [pc.fill_null(c, math.nan) if pa.types.is_floating(c.type) else c for c in table.columns]
    return pa.table(columns, schema=table.schema)


def _refuse_duplicate_keys(table: pa.Table, record: type[Record], path: Path) -> None:
    keys = table.select(list(record.KEY))
    if keys.num_rows != keys.group_by(list(record.KEY)).aggregate([]).num_rows:
        frame = keys.to_pandas()
        first = frame[frame.duplicated()].iloc[0].to_dict()
        raise DataError(f"{path}: the key {first} stands there twice; each {record.__name__} has one row")


def _end_last_line(path: Path) -> None:
    """Close a line that a crash cut off, so that the next record does not become part of it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
