"""Files that survive: atomic writes and typed Parquet tables, on this machine or on any fsspec path.

A remote path (`s3://...`) is a `UPath`, which has a `Path`'s methods; its files are written here first and then put
there whole, and fetched whole before they are read.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import itertools
import json
import math
import os
import tempfile
import types
import typing
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.reading import MalformedError, parse_json, read_bytes, refuse_no_file
from plumbline.records import Record
from plumbline.study.base import first_complaint
from plumbline.transformations import ORIGINAL, TRANSFORMATIONS

R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)

_TIMES = (0, 7_258_118_400_000_000)  # microseconds: 1970 to 2200
BATCH = 4096  # rows in memory at a time, where a table is read or written in pieces


def is_remote(path: Path) -> bool:
    """Whether a path is on another machine (an fsspec address)."""
    return not isinstance(path, Path)


@contextlib.contextmanager
def atomic(path: Path, mode: int = 0o644, wanted: Callable[[Path], bool] = lambda _: True) -> Iterator[IO[bytes]]:
    """A file that appears under its name whole or not at all (temporary file, fsync, rename).

    `wanted` is asked of the file when it is whole, and may leave what is there.
    A remote one is put when it is whole; object stores show it then, servers of files (SFTP, WebDAV) while it comes.
    """
    if is_remote(path):
        with tempfile.TemporaryDirectory(prefix="plumbline-") as here:
            with atomic(Path(here) / path.name, mode) as file:
                yield file
            if wanted(Path(here) / path.name):
                _put(Path(here) / path.name, path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not wanted(temporary):
            return
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


def _clear(path: Path) -> None:
    """Remove what killed processes left of their writing of a file."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = left.name.rsplit(".", 2)[1]
        if writer.isdecimal() and not Path("/proc", writer).exists():
            left.unlink(missing_ok=True)


def _put(local: Path, path: Path) -> None:
    """Copy a file to its address."""
    from upath.implementations.cloud import CloudPath  # noqa: PLC0415 (most studies stay on their machine)

    try:
        if not isinstance(path, CloudPath):  # these have no folders, and s3fs would make a missing bucket
            path.parent.mkdir(parents=True, exist_ok=True)
        path.fs.put_file(str(local), path.path)  # type: ignore[attr-defined]  # UPath's
    except Exception as error:  # each protocol has errors of its own
        line = f"{path} cannot be written ({error or type(error).__name__})"
        raise ServiceError(f"{line}; correct --exports or your rights there, then run again") from None


@contextlib.contextmanager
def _here(path: Path) -> Iterator[Path]:
    """The file on this machine: itself, or a copy for as long as it is read. Raises FileNotFoundError."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        copy = Path(folder) / path.name
        try:
            path.fs.get_file(path.path, str(copy))  # type: ignore[attr-defined]  # UPath's
        except FileNotFoundError:
            raise
        except Exception as error:  # each protocol has errors of its own
            raise ServiceError(f"{path} cannot be read ({error or type(error).__name__}); run again") from None
        yield copy


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


def read_json(path: Path, made_by: str, advice: str = "") -> Any:
    """The JSON in a file; `made_by` is the command that makes the file, for the error's advice, or `advice` is that."""
    try:
        with _here(path) as file:
            return parse_json(read_bytes(file))
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    except MalformedError as error:
        raise DataError(f"{path} is damaged ({error}); {advice or f'delete it and run `{made_by}` again'}") from None


def read_models(path: Path, model: type[M], made_by: str) -> list[M]:
    """A JSON list of models."""
    return as_models(read_json(path, made_by), path, model, f"run `{made_by}` again")


def as_models(data: Any, path: Path, model: type[M], advice: str) -> list[M]:
    """What was read from a JSON file as models; `advice` ends the line where it is something else."""
    try:
        if not isinstance(data, list):
            raise DataError(f"{path} does not hold what it should (a list); {advice}")
        return [model.model_validate(item) for item in data]
    except ValidationError as error:
        raise DataError(f"{path} does not hold what it should ({first_complaint(error)}); {advice}") from None


def write_table(
    path: Path,
    rows: Iterable[Record] | pd.DataFrame,
    record: type[Record],
    wanted: Callable[[Path], bool] = lambda _: True,
) -> None:
    """Write records, or a frame with a record's columns, as Parquet, atomically; refuses duplicate keys.

    Records may come from an iterator: `BATCH` of them are in memory at a time. `wanted` is as for `atomic`.
    """
    schema = arrow_schema(record)
    with atomic(path, wanted=wanted) as file:
        hashes = array("q")  # of the rows' keys: 8 bytes a row tell that none stands twice
        try:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in _tables(rows, schema):
                    writer.write_table(table)
                    hashes.extend(map(hash, zip(*(table[name].to_pylist() for name in record.KEY), strict=True)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise DataError(f"{path.name}: rows do not fit {record.__name__}: {error}") from None
        if record.KEY and len(np.unique(np.frombuffer(hashes, np.int64))) < len(hashes):
            file.flush()
            _refuse_duplicate_keys(pq.read_table(file.name, columns=list(record.KEY)), record, path)


def _tables(rows: Iterable[Record] | pd.DataFrame, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in pieces that fit into memory."""
    if isinstance(rows, pd.DataFrame):
        yield _nan(pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False))
        return
    rest = iter(rows)
    while batch := [row.model_dump() for row in itertools.islice(rest, BATCH)]:
        yield pa.Table.from_pylist(batch, schema=schema)


def read_table(
    path: Path, record: type[Record], made_by: str, columns: Sequence[str] = (), words: Collection[str] = ()
) -> pa.Table:
    """A Parquet file of records (or some of its columns), checked for its columns, types and keys.

    `words` names columns of text whose cells are read as numbers into a dictionary of what stands there.
    """
    with _parquet(path, made_by, words) as file:
        schema = _encoded(_wanted(file, path, record, made_by, columns), words)
        table = _cast(file.read(columns=_there(file, schema)), schema, record, path, made_by)
    if set(record.KEY) <= set(schema.names):
        _refuse_duplicate_keys(table, record, path)
    return table


def read_batches(path: Path, record: type[Record], made_by: str, columns: Sequence[str] = ()) -> Iterator[pa.Table]:
    """The same in pieces of `BATCH` rows, which is all that is in memory at a time; keys are not checked."""
    with _parquet(path, made_by) as file:
        schema = _wanted(file, path, record, made_by, columns)
        for batch in file.iter_batches(batch_size=BATCH, columns=_there(file, schema)):
            yield _cast(pa.Table.from_batches([batch]), schema, record, path, made_by)


@contextlib.contextmanager
def _parquet(path: Path, made_by: str, words: Collection[str] = ()) -> Iterator[pq.ParquetFile]:
    """An open Parquet file; what is wrong with it, while it is opened or read, is a DataError."""
    try:
        with _here(path) as here, _opened(here) as file:
            there = pq.read_schema(file).names if words else []
            file.seek(0)
            yield pq.ParquetFile(file, read_dictionary=[name for name in words if name in there])
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run `{made_by}` again") from None


def _opened(path: Path) -> IO[bytes]:
    refuse_no_file(path)
    return path.open("rb")


def _wanted(file: pq.ParquetFile, path: Path, record: type[Record], made_by: str, columns: Sequence[str]) -> pa.Schema:
    """The part of a record's schema that is asked for, in the record's order; what has no default must be there."""
    schema, there = arrow_schema(record), file.schema_arrow.names
    missing = [name for name, field in record.model_fields.items() if field.is_required() and name not in there]
    if missing:
        raise DataError(f"{path} lacks column {missing[0]!r}; it is of another version: run `{made_by}` again")
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def _there(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """Which of a schema's columns a file has; one of an earlier version lacks those that came later."""
    return [name for name in schema.names if name in file.schema_arrow.names]


def _cast(table: pa.Table, schema: pa.Schema, record: type[Record], path: Path, made_by: str) -> pa.Table:
    """The columns in the schema's order and types; those that the file lacks hold their default."""
    for field in schema:
        if field.name not in table.schema.names:
            default = record.model_fields[field.name].get_default(call_default_factory=True)
            table = table.append_column(field, pa.array([default] * table.num_rows, field.type))
    try:
        table = table.select(schema.names)
        for field in schema:
            if not field.nullable and table[field.name].null_count:
                raise DataError(f"{path}, column {field.name!r}: has empty cells; run `{made_by}` again")
        table = table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{path} has a column of another type ({error}); run `{made_by}` again") from None
    for name in schema.names:
        wrong = _strange(table[name], schema.field(name), record)
        if wrong:
            raise DataError(f"{path}, column {name!r}: {wrong}; delete the file and run `{made_by}` again")
    return _nan(table)


def _strange(column: pa.ChunkedArray, field: pa.Field, record: type[Record]) -> str:
    """What in a column no record has: words that are none of its own, numbers and times without end."""
    annotation = record.model_fields[field.name].annotation
    if typing.get_origin(annotation) is Literal:
        known = typing.get_args(annotation)
        foreign = [value for value in pc.unique(column).to_pylist() if value not in known]
        return f"holds {str(foreign[0])[:60]!r}, which is none of {', '.join(filter(None, known))}" if foreign else ""
    if field.name == "transformation":
        foreign = [name for name in pc.unique(column).to_pylist() if name not in (*TRANSFORMATIONS, ORIGINAL, None)]
        return f"holds {str(foreign[0])[:60]!r}, which is no transformation" if foreign else ""
    if pa.types.is_floating(field.type) and pc.any(pc.is_inf(column)).as_py():
        return "holds a number without end"
    if pa.types.is_timestamp(field.type) and len(column):
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        if not _TIMES[0] <= ends["min"] <= ends["max"] <= _TIMES[1]:
            return "holds a time before 1970 or after 2200"
    return ""


def read_frame(path: Path, record: type[Record], made_by: str) -> pd.DataFrame:
    """A table of records as a pandas frame."""
    frame: pd.DataFrame = read_table(path, record, made_by).to_pandas()
    return frame


def joined(tables: Iterable[pa.Table], record: type[Record], words: Collection[str] = ()) -> pd.DataFrame:
    """Tables of records, or none at all, one after another as a pandas frame with the record's types.

    Columns that were read as `words` are categories, in their order.
    """
    empty = _encoded(arrow_schema(record), words).empty_table()
    table = pa.concat_tables([empty, *tables])
    for place, name in enumerate(table.schema.names):
        if name in words:
            table = table.set_column(place, name, _in_order(table[name].combine_chunks()))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _in_order(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The column with its dictionary sorted."""
    order = pc.sort_indices(column.dictionary).to_numpy()
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(places[column.indices.to_numpy()], column.dictionary.take(order))


def _encoded(schema: pa.Schema, words: Collection[str]) -> pa.Schema:
    """The schema with dictionaries for these columns of text."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(encoded) if field.name in words else field for field in schema])


def read_records(path: Path, record: type[R], made_by: str) -> list[R]:
    """A table of records as records."""
    return [as_record(row, record) for row in read_table(path, record, made_by).to_pylist()]


def as_record(row: dict[str, Any], record: type[R]) -> R:
    """A row of a table, which was checked when it was read, as a record."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return typing.cast("R", record.model_construct(**values))


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
    if typing.get_origin(annotation) is tuple:
        return pa.list_(plain[typing.get_args(annotation)[0]]), False
    # A float may be undefined: NaN in the program, and Parquet keeps it as NaN.
    return plain[annotation], annotation is float


def _nan(table: pa.Table) -> pa.Table:
    """The table with NaN where pandas' NaN became null on its way to Arrow."""
    columns = [pc.fill_null(c, math.nan) if pa.types.is_floating(c.type) else c for c in table.columns]
    return pa.table(columns, schema=table.schema)


def _refuse_duplicate_keys(table: pa.Table, record: type[Record], path: Path) -> None:
    # A row's key as one number: what stands in each column is looked up once, and rows are compared as numbers.
    number, known = np.zeros(table.num_rows, np.int64), 1
    for name in record.KEY:
        column = table[name].combine_chunks()
        codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
        number = number * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
        known *= len(codes.dictionary)
    if known > np.iinfo(np.int64).max or not pd.Index(number).is_unique:
        frame = table.select(list(record.KEY)).to_pandas()
        twice = frame[frame.duplicated()]  # none where the numbers only ran over
        if len(twice):
            first = twice.iloc[0].to_dict()
            raise DataError(f"{path}: the key {first} stands there twice; each {record.__name__} has one row")
