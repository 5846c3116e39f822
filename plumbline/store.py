"""Files that survive: atomic writes and typed Parquet tables, on this machine or on any fsspec path.

A remote path (`s3://...`) is a `UPath`, which has a `Path`'s methods; its files are written here first and then put
there whole, and fetched whole before they are read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import itertools
import json
import os
import shutil
import sqlite3
import tempfile
import typing
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

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
from plumbline.study.base import first_complaint
from plumbline.study.places import file_state, note_hash


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for its user alone; what is there stays as it is.

    Raises DataError where there can be none.
    """
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)  # refuses a file in its place
    except FileNotFoundError:  # /proc is there, and takes no folders
        raise DataError(f"{folder}: no folder can be made there; name another") from None


def let_in(file: IO[bytes], path: Path, *, public: bool) -> None:
    """Let those read a new file who could read the one in its place; or the folder's group, where it has one.

    A folder that everybody may enter, as folders are by themselves, says nothing of who shall read people's answers.
    """
    with contextlib.suppress(OSError):  # no file there yet; or of a file system without modes
        folder = path.parent.stat().st_mode
        if not public and not folder & 0o007:
            os.fchmod(file.fileno(), 0o600 | (folder & 0o040))
        os.fchmod(file.fileno(), 0o600 | (path.stat().st_mode & 0o066))


def clear_left(path: Path) -> None:
    """Remove what killed processes left of their writing of a file or a folder: `.NAME.PROCESS.tmp` beside it."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = leftover.name.rsplit(".", 2)[1]
        if not writer.isdecimal() or is_running(int(writer)):
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether this machine has a process of this number, whoever's it is."""
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
    """Inside, `path` is written: a full disk that does not say where it is becomes an OSError that names it."""
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

BATCH = 4096  # rows in memory at a time, where a table is read or written in pieces


def is_remote(path: Path) -> bool:
    """Whether a path is on another machine (an fsspec address)."""
    return not isinstance(path, Path)


@contextlib.contextmanager
def atomic(path: Path, wanted: Callable[[Path], bool] = lambda _: True, *, public: bool = False) -> Iterator[IO[bytes]]:
    """A file that appears under its name whole or not at all (temporary file, fsync, rename).

    Only its user can read it, unless it is `public`, or others were let in (`let_in`). `wanted` is asked of the file
    when it is whole, and may leave what is there. A remote one is put when it is whole; object stores show it then,
    servers of files (SFTP, WebDAV) while it comes.
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
        error.filename = error.filename or str(path)  # a full disk does not say where it is
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _put(local: Path, path: Path) -> None:
    """Copy a file to its address."""
    from upath.implementations.cloud import CloudPath  # noqa: PLC0415 (most studies stay on their machine)

    try:
        if not isinstance(path, CloudPath):  # these have no folders, and s3fs would make a missing bucket
            path.parent.mkdir(parents=True, exist_ok=True)
        path.fs.put_file(str(local), path.path)  # type: ignore[attr-defined]  # UPath's
    except Exception as error:  # each protocol has errors of its own
        line = f"{path} cannot be written ({error or type(error).__name__})"
        raise ServiceError(f"{line}; correct the address or your rights there, then run again") from None


@contextlib.contextmanager
def fetched(path: Path) -> Iterator[Path]:
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
def only_one(path: Path, busy: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file while a stage works; refuse with StudyError(`busy`) where another process holds it.

    The lock goes with the process, however it ends. `shared` ones are refused by one that is not, and refuse it.
    """
    make_folder(path.parent)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{busy}; wait until it has ended") from None
        yield


def write_json(path: Path, value: Any) -> None:
    """Write JSON (pydantic models among it, NaN as null), atomically."""
    with atomic(path) as file:
        file.write(json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """What `write_json` writes."""
    plain = lambda item: json.loads(item.model_dump_json()) if isinstance(item, BaseModel) else str(item)  # noqa: E731
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=plain).encode() + b"\n"


def read_json(path: Path, made_by: str, advice: str = "") -> Any:
    """The JSON in a file; `made_by` is the command that makes the file, for the error's advice, or `advice` is that."""
    try:
        with fetched(path) as file:
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
    schema = arrow_schema(record, rows if isinstance(rows, pd.DataFrame) else None)
    with atomic(path, wanted=wanted) as file:
        hashes = array("q")  # of the rows' keys: 8 bytes a row tell that none stands twice
        try:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in _tables(rows, schema):
                    writer.write_table(table)
                    hashes.extend(map(hash, zip(*(table[name].to_pylist() for name in record.KEY), strict=True)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise DataError(f"{path.name}: rows do not fit {record.__name__}: {error}") from None
        sorted_hashes = np.frombuffer(hashes, np.int64)
        sorted_hashes.sort()  # in its place: a table of millions has no second copy
        if record.KEY and (sorted_hashes[1:] == sorted_hashes[:-1]).any():
            file.flush()
            refuse_duplicate_keys(pq.read_table(file.name, columns=list(record.KEY)), record, path)


def _tables(rows: Iterable[Record] | pd.DataFrame, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in pieces that fit into memory."""
    if isinstance(rows, pd.DataFrame):
        yield with_nan(pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False))
        return
    rest = iter(rows)
    while batch := [row.model_dump() for row in itertools.islice(rest, BATCH)]:
        yield pa.Table.from_pylist(batch, schema=schema)


def hashed_bytes(path: Path, made_by: str) -> tuple[bytes, str]:
    """A file's bytes and their hash, which `file_hash` knows from then on. Raises DataError where it is not there."""
    state = file_state(path) if path.exists() else None
    try:
        with fetched(path) as file:
            content = read_bytes(file)
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    return content, note_hash(path, state, content)


def read_table(
    path: Path,
    record: type[Record],
    made_by: str,
    columns: Sequence[str] = (),
    words: Collection[str] = (),
    content: bytes | None = None,
) -> pa.Table:
    """A Parquet file of records (or some of its columns), checked for its columns, types and keys.

    `words` names columns of text whose cells are read as numbers into a dictionary of what stands there; `content` are
    the file's bytes, of who has read them.
    """
    with open_parquet(path, made_by, words, content) as file:
        schema = with_words(asked_of(file, path, record, made_by, columns), words)
        threads = file.metadata.num_rows > BATCH  # handing a small table to others takes longer than reading it
        table = cast_table(file.read(columns=among(file, schema), use_threads=threads), schema, record, path, made_by)
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, path)
    return table


def read_batches(path: Path, record: type[Record], made_by: str, columns: Sequence[str] = ()) -> Iterator[pa.Table]:
    """The same in pieces of `BATCH` rows, which is all that is in memory at a time; keys are not checked."""
    with open_parquet(path, made_by) as file:
        schema = asked_of(file, path, record, made_by, columns)
        for batch in file.iter_batches(batch_size=BATCH, columns=among(file, schema)):
            yield cast_table(pa.Table.from_batches([batch]), schema, record, path, made_by)


@contextlib.contextmanager
def open_parquet(
    path: Path, made_by: str, words: Collection[str] = (), content: bytes | None = None
) -> Iterator[pq.ParquetFile]:
    """An open Parquet file, or its `content`; what is wrong with it, while it is opened or read, is a DataError."""
    try:
        with _native(path, content) as file:
            columns = pq.read_schema(file).names if words else []
            file.seek(0)
            yield pq.ParquetFile(file, read_dictionary=[name for name in words if name in columns])
    except FileNotFoundError:
        raise DataError(f"{path} is not there yet; run `{made_by}` first") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run `{made_by}` again") from None


@contextlib.contextmanager
def _native(path: Path, content: bytes | None) -> Iterator[pa.NativeFile]:
    if content is not None:
        yield pa.BufferReader(content)
        return
    with fetched(path) as here, native_file(here) as file:
        yield file


def native_file(path: Path) -> pa.NativeFile:
    """A file of this machine that Arrow reads by itself.

    Its threads may let go of a file after the read has returned. With a Python file, that ends the process
    (`terminate called`) where the interpreter is just ending (apache/arrow issue 34314).
    """
    refuse_no_file(path)
    return pa.OSFile(os.fsencode(path))


def asked_of(file: pq.ParquetFile, path: Path, record: type[Record], made_by: str, columns: Sequence[str]) -> pa.Schema:
    """The part of a record's schema that is asked for, in the record's order; what has no default must be there."""
    schema, present = arrow_schema(record), file.schema_arrow.names
    if len(set(present)) < len(present):
        raise DataError(f"{path} has two columns of one name; delete it and run `{made_by}` again")
    missing = [name for name, field in record.model_fields.items() if field.is_required() and name not in present]
    if missing:
        raise DataError(f"{path} lacks column {missing[0]!r}; it is of another version: run `{made_by}` again")
    schema = with_decimals_of(schema, record, file.schema_arrow)
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def among(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """Which of a schema's columns a file has; one of an earlier version lacks those that came later."""
    columns = set(file.schema_arrow.names)
    return [name for name in schema.names if name in columns]


def read_frame(path: Path, record: type[Record], made_by: str) -> pd.DataFrame:
    """A table of records as a pandas frame."""
    frame: pd.DataFrame = read_table(path, record, made_by).to_pandas()
    return frame


def joined(tables: Iterable[pa.Table], record: type[Record], words: Collection[str] = ()) -> pd.DataFrame:
    """Tables of records, or none at all, one after another as a pandas frame with the record's types.

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
    """A table of records as records."""
    return [as_record(row, record) for row in read_table(path, record, made_by).to_pylist()]


def as_record(row: dict[str, Any], record: type[R]) -> R:
    """A row of a table, which was checked when it was read, as a record."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return typing.cast("R", record.model_construct(**values))
