"""Write files atomically, and typed Parquet tables, on this machine or on any fsspec path.

A remote path (`s3://...`) is a `UPath`, which has a `Path`'s methods. Its files are written locally and uploaded whole,
and downloaded whole before they are read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import glob
import itertools
import json
import os
import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar, get_origin

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from plumbline.errors import DataError, ServiceError, StudyError, is_full
from plumbline.reading import MalformedError, parse_json, read_bytes, refuse_no_file
from plumbline.records import (
    Record,
    arrow_schema,
    cast_table,
    in_order,
    numeric,
    refuse_duplicate_keys,
    with_decimals_of,
    with_nan,
    with_words,
)
from plumbline.resources import private
from plumbline.study.base import first_complaint
from plumbline.study.places import file_state, note_hash


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, readable by the user alone; existing ones stay unchanged.

    Raises DataError if it cannot be made.
    """
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)  # raises an error if a file has this name
    except FileNotFoundError:  # raised by /proc, which exists but takes no folders
        raise DataError(f"{folder}: this folder cannot be created; name another folder") from None


def let_in(file: IO[bytes], path: Path, *, public: bool) -> None:
    """Let a new file be read by those who could read the old one, or else by the folder's group if it has one.

    That everybody may enter a folder, the default for folders, does not mean that everybody may read people's answers.
    """
    with contextlib.suppress(OSError):  # no old file, or a file system without modes
        folder = path.parent.stat().st_mode
        if not public and not folder & 0o007:
            os.fchmod(file.fileno(), 0o600 | (folder & 0o040))
        os.fchmod(file.fileno(), 0o600 | (path.stat().st_mode & 0o066))


def clear_left(path: Path) -> None:
    """Remove temporary files of killed processes that wrote a file or folder: `.NAME.PROCESS.tmp` beside it."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = leftover.name.rsplit(".", 2)[1]
        if not writer.isdecimal() or is_running(int(writer)):
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Tell whether a process with this number runs on this machine, under any user."""
    try:
        os.kill(process, 0)  # tells nothing to it; /proc is Linux's alone
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def to_disk(descriptor: int, *, data_alone: bool = False) -> None:
    """Hand a file's content to the disk itself; with `data_alone` its times may follow later. Raises OSError."""
    if (full := getattr(fcntl, "F_FULLFSYNC", None)) is not None:  # macOS, whose fsync ends at the drive's cache
        with contextlib.suppress(OSError):  # a volume that has no such call
            fcntl.fcntl(descriptor, full)
            return
    sync = getattr(os, "fdatasync", os.fsync) if data_alone else os.fsync  # macOS has no fdatasync
    sync(descriptor)


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Name `path` in the OSError of a full disk that does not name it."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error


R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)

BATCH = 4096  # rows in memory at a time when a table is read or written in pieces


def is_remote(path: Path) -> bool:
    """Tell whether a path is on another machine (an fsspec address)."""
    return not isinstance(path, Path)


@contextlib.contextmanager
def atomic(path: Path, wanted: Callable[[Path], bool] = lambda _: True, *, public: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name whole or not at all (temporary file, fsync, rename).

    Only its user can read it, unless it is `public` or `let_in` allows others. `wanted` is called with the finished
    file; if it returns False, the old file stays. A remote file is uploaded when finished; object stores show it then,
    file servers (SFTP, WebDAV) during the upload.
    """
    if is_remote(path):
        with tempfile.TemporaryDirectory(prefix="plumbline-") as here:
            with atomic(Path(here) / path.name) as file:
                yield file
            if wanted(Path(here) / path.name):
                _put(Path(here) / path.name, path)
        return
    make_folder(path.parent)
    clear_left(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        mode = 0o644 if public else 0o600
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            let_in(file, path, public=public)
            yield file
            file.flush()
            to_disk(file.fileno())
        if not wanted(temporary):
            return
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        error.filename = error.filename or str(path)  # the error of a full disk lacks the path
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _put(local: Path, path: Path) -> None:
    from upath.implementations.cloud import CloudPath  # noqa: PLC0415 (most studies stay on their machine)

    try:
        if not isinstance(path, CloudPath):  # object stores have no folders, and s3fs would create a missing bucket
            path.parent.mkdir(parents=True, exist_ok=True)
        path.fs.put_file(str(local), path.path)  # type: ignore[attr-defined]  # UPath's
    except Exception as error:  # each protocol has its own errors
        line = f"{path} cannot be written ({error or type(error).__name__})"
        raise ServiceError(f"{line}; correct the address or your rights there, then run again") from None


@contextlib.contextmanager
def fetched(path: Path) -> Iterator[Path]:
    """Yield the file on this machine: itself, or a copy that lives while it is read. Raises FileNotFoundError."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        copy = Path(folder) / path.name
        try:
            path.fs.get_file(path.path, str(copy))  # type: ignore[attr-defined]  # UPath's
        except FileNotFoundError:
            raise
        except Exception as error:  # each protocol has its own errors
            raise ServiceError(f"{path} cannot be read ({error or type(error).__name__}); run again") from None
        yield copy


@contextlib.contextmanager
def only_one(path: Path, busy: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file while a stage works; raise StudyError(`busy`) if another process holds it.

    The lock ends with the process, however it ends. Shared locks exclude only locks that are not `shared`.
    """
    make_folder(path.parent)
    with open(path, "w", opener=private) as lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{busy}; wait until that ends") from None
        yield


def write_json(path: Path, value: Any) -> None:
    """Write JSON (pydantic models among it, NaN as null), atomically."""
    with atomic(path) as file:
        file.write(json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return the bytes that `write_json` writes."""
    plain = lambda item: json.loads(item.model_dump_json()) if isinstance(item, BaseModel) else str(item)  # noqa: E731
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=plain).encode() + b"\n"


def read_json(path: Path, made_by: str, advice: str = "") -> Any:
    """Return the JSON in a file; the error advises to run `made_by`, the command that makes it, or gives `advice`."""
    try:
        with fetched(path) as file:
            return parse_json(read_bytes(file))
    except FileNotFoundError:
        raise DataError(f"{path} does not exist yet; run `{made_by}` first") from None
    except MalformedError as error:
        raise DataError(f"{path} is damaged ({error}); {advice or f'delete it and run `{made_by}` again'}") from None


def read_models(path: Path, model: type[M], made_by: str) -> list[M]:
    """Return a JSON list as models."""
    return as_models(read_json(path, made_by), path, model, f"run `{made_by}` again")


def as_models(data: Any, path: Path, model: type[M], advice: str) -> list[M]:
    """Return models from the content of a JSON file; `advice` ends the error line."""
    try:
        if not isinstance(data, list):
            raise DataError(f"{path} does not have the expected content (a list); {advice}")
        return [model.model_validate(item) for item in data]
    except ValidationError as error:
        raise DataError(f"{path} does not have the expected content ({first_complaint(error)}); {advice}") from None


def write_table(
    path: Path,
    rows: Iterable[Record] | pd.DataFrame,
    record: type[Record],
    wanted: Callable[[Path], bool] = lambda _: True,
) -> None:
    """Write records, or a frame with a record's columns, as Parquet, atomically; refuses duplicate keys.

    Records may come from an iterator: `BATCH` of them are in memory at a time. `wanted` is as for `atomic`.
    """
    schema = arrow_schema(record, rows if isinstance(rows, pd.DataFrame) else None)
    with atomic(path, wanted=wanted) as file:
        hashes = array("q")  # hashes of the rows' keys: 8 bytes per row suffice to find repeated keys
        try:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in _tables(rows, schema):
                    writer.write_table(table)
                    for part in table.select(record.KEY).to_batches(BATCH):  # of a million rows, few as Python's
                        hashes.extend(map(hash, zip(*(column.to_pylist() for column in part), strict=True)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise DataError(f"{path.name}: rows do not fit {record.__name__}: {error}") from None
        sorted_hashes = np.frombuffer(hashes, np.int64)
        sorted_hashes.sort()  # in place: a table of millions is not copied
        if record.KEY and (sorted_hashes[1:] == sorted_hashes[:-1]).any():
            file.flush()
            refuse_duplicate_keys(pq.read_table(file.name, columns=list(record.KEY)), record, path)


_PIECE = 100_000  # rows of a frame that become Arrow's at a time


def _tables(rows: Iterable[Record] | pd.DataFrame, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows in pieces that fit into memory."""
    if isinstance(rows, pd.DataFrame):
        columns = rows[schema.names]
        for start in range(0, max(len(rows), 1), _PIECE):
            part = columns.iloc[start : start + _PIECE]
            yield with_nan(pa.Table.from_pandas(part, schema=schema, preserve_index=False))
        return
    rest = iter(rows)
    while batch := [row.model_dump() for row in itertools.islice(rest, BATCH)]:
        yield pa.Table.from_pylist(batch, schema=schema)


def hashed_bytes(path: Path, made_by: str) -> tuple[bytes, str]:
    """Return a file's bytes and their hash, which `file_hash` caches. Raises DataError if it is missing."""
    state = file_state(path) if path.exists() else None
    try:
        with fetched(path) as file:
            content = read_bytes(file)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist yet; run `{made_by}` first") from None
    return content, note_hash(path, state, content)


def read_table(
    path: Path,
    record: type[Record],
    made_by: str,
    columns: Sequence[str] = (),
    words: Collection[str] = (),
    content: bytes | None = None,
) -> pa.Table:
    """Read a Parquet file of records (or some columns), checked for columns, types and keys.

    `words` names text columns to read as dictionary codes; `content` holds the file's bytes if they were read already.
    """
    with open_parquet(path, made_by, words, content) as file:
        schema = with_words(asked_of(file, path, record, made_by, columns), words)
        threads = file.metadata.num_rows > BATCH  # for a small table, starting threads takes longer than reading it
        table = cast_table(file.read(columns=schema.names, use_threads=threads), schema, record, path, made_by)
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, path)
    return table


def read_batches(path: Path, record: type[Record], made_by: str, columns: Sequence[str] = ()) -> Iterator[pa.Table]:
    """Read a table in pieces of `BATCH` rows, the most in memory at a time; keys are not checked."""
    with open_parquet(path, made_by) as file:
        schema = asked_of(file, path, record, made_by, columns)
        for batch in file.iter_batches(batch_size=BATCH, columns=schema.names):
            yield cast_table(pa.Table.from_batches([batch]), schema, record, path, made_by)


@contextlib.contextmanager
def open_parquet(
    path: Path, made_by: str, words: Collection[str] = (), content: bytes | None = None
) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, or its `content`; any fault on opening or reading is a DataError."""
    try:
        with contextlib.ExitStack() as stack:
            if content is None:
                file = stack.enter_context(native_file(stack.enter_context(fetched(path))))
            else:
                file = pa.BufferReader(content)
            columns = pq.read_schema(file).names if words else []
            file.seek(0)
            yield pq.ParquetFile(file, read_dictionary=[name for name in words if name in columns])
    except FileNotFoundError:
        raise DataError(f"{path} does not exist yet; run `{made_by}` first") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run `{made_by}` again") from None


def native_file(path: Path) -> pa.NativeFile:
    """Open a local file that Arrow reads by itself.

    Arrow's threads may release a file after the read has returned. With a Python file, that crashes the process
    (`terminate called`) if the interpreter is just ending (apache/arrow issue 34314).
    """
    refuse_no_file(path)
    return pa.OSFile(os.fsencode(path))


def asked_of(file: pq.ParquetFile, path: Path, record: type[Record], made_by: str, columns: Sequence[str]) -> pa.Schema:
    """Return the requested part of a record's schema, in its order. Raises DataError if the file lacks a column."""
    schema, present = arrow_schema(record), file.schema_arrow.names
    if len(set(present)) < len(present):
        raise DataError(f"{path} has two columns with the same name; delete it and run `{made_by}` again")
    if missing := [name for name in record.model_fields if name not in present]:
        raise DataError(f"{path} lacks column {missing[0]!r}; run `{made_by}` again")
    schema = with_decimals_of(schema, record, file.schema_arrow)
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def read_frame(path: Path, record: type[Record], made_by: str) -> pd.DataFrame:
    """Return a table of records as a pandas frame."""
    frame: pd.DataFrame = read_table(path, record, made_by).to_pandas()
    return frame


def joined(tables: Iterable[pa.Table], record: type[Record], words: Collection[str] = ()) -> pd.DataFrame:
    """Return tables of records, or none, joined into one pandas frame with the record's types.

    Columns that were read as `words` are categories, in their order.
    """
    empty = with_words(arrow_schema(record), words).empty_table()
    table = pa.concat_tables([empty, *tables], promote_options="permissive" if numeric(record) else "none")
    for position, name in enumerate(table.schema.names):
        if name in words:
            table = table.set_column(position, name, in_order(table[name].combine_chunks()))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def read_records(path: Path, record: type[R], made_by: str) -> list[R]:
    """Return a table of records as a list of records."""
    return [as_record(row, record) for row in read_table(path, record, made_by).to_pylist()]


def as_record(row: dict[str, Any], record: type[R]) -> R:
    """Return a row of a checked table as a record, which keeps the row itself."""
    names, listed = _names(record)
    for name in listed:
        row[name] = tuple(row[name]) if type(row[name]) is list else row[name]
    unpickled = record.__new__(record)  # `model_construct` takes several times as long, to look for missing fields
    unpickled.__setstate__(
        {"__dict__": row, "__pydantic_fields_set__": names, "__pydantic_extra__": None, "__pydantic_private__": None}
    )
    return unpickled


@functools.cache
def _names(record: type[Record]) -> tuple[set[str], list[str]]:
    """Return a record's field names, and the lists in tables; a set for each row would take three times the memory."""
    fields = record.model_fields
    return set(fields), [name for name, field in fields.items() if get_origin(field.annotation) is tuple]
