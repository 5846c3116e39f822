"""Convert tables and data sets to members of a bundle and back, without files and without running code."""

from __future__ import annotations

import functools
import itertools
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.bundle.records import rows_of
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import Record, arrow_schema, cast_table, refuse_duplicate_keys, with_decimals_of
from plumbline.store import BATCH
from plumbline.study.datasets import DatasetSpec

_PLAIN = (0, 2, 3, 4, 8)  # PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY; others repeat parts of values
_LONGEST = 1 << 20  # bytes of a footer
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8  # fields of a page's header


def page_sizes(file: pq.ParquetFile, content: bytes, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (values, bytes) of each page of these columns. Raises ArrowInvalid for unexpected content."""
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(column)
            if chunk.num_values > 0 and chunk.path_in_schema.split(".")[0] in columns:  # else Arrow reads no page
                width = max(file.schema.column(column).length or 0, 8)
                yield from _of_chunk(chunk, content, 0 if chunk.physical_type == "BYTE_ARRAY" else width)


def refuse_footer(content: bytes) -> None:
    """Raise ArrowInvalid for a footer that takes much memory to read."""
    if len(content) > 8 and int.from_bytes(content[-8:-4], "little") > _LONGEST:
        raise pa.ArrowInvalid(f"its footer is larger than {_LONGEST:,} bytes")


def refuse_type(kind: pa.DataType) -> None:
    """Raise ArrowInvalid for a type whose decoded values can be larger than their encoding."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    words = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_binary(kind))
    if not (any(words) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        raise pa.ArrowInvalid(f"it has a column of the unexpected type {str(kind)[:60]}")


def _of_chunk(chunk: pq.ColumnChunkMetaData, content: bytes, width: int) -> Iterator[tuple[int, int]]:
    at, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    at = dictionary if chunk.has_dictionary_page and dictionary and 0 < dictionary < at else at
    end = at + chunk.total_compressed_size
    if not 0 <= at <= end <= len(content):
        raise pa.ArrowInvalid("a column is outside the file")
    while at < end:
        header, at = _struct(content, at)
        at += _whole(header.get(3))
        page: Mapping[int, Any] = next((header[kind] for kind in (_DATA, _DICTIONARY, _DATA_V2) if kind in header), {})
        if page.get(4 if _DATA_V2 in header else 2, 0) not in _PLAIN:
            raise pa.ArrowInvalid("a column has an unexpected encoding")
        values = _whole(page.get(1, 0))
        yield values, max(_whole(header.get(2)), values * width)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise pa.ArrowInvalid("a page's header is damaged")
    return value


def _struct(content: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return (fields by number, the end) of a struct in Thrift's compact form, as page headers use it."""
    fields: dict[int, Any] = {}
    number = 0
    try:
        while head := content[at]:
            at += 1
            number, kind = number + (head >> 4), head & 15
            if not head >> 4:
                number, at = _integer(content, at)
            fields[number], at = _value(content, at, kind, depth)
    except IndexError:
        raise pa.ArrowInvalid("a page's header is cut off") from None
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _integer(content, at)
    if kind == 8:
        size, at = _varint(content, at)
        return None, at + size
    if kind == 12 and depth < 3:
        return _struct(content, at, depth + 1)
    skipped = {3: 1, 7: struct.calcsize("d")}.get(kind)
    if skipped is None:
        raise pa.ArrowInvalid("a page's header is damaged")
    return None, at + skipped


def _integer(content: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise pa.ArrowInvalid("a page's header is damaged")


_PAGE = 100  # cells charged for a page, as each takes time to read
_AGAIN = "plumbline bundle export"
_JSON = b"json"  # marks columns of JSON, whose cells are of several types


def to_parquet(table: pa.Table) -> memoryview:
    """Return a table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def of_records(rows: Iterable[Record], record: type[Record]) -> pa.Table:
    """Return records as a table; `BATCH` of them are Python objects at a time."""
    schema, rest, tables = arrow_schema(record), iter(rows), []
    while batch := [row.model_dump() for row in itertools.islice(rest, BATCH)]:
        tables.append(pa.Table.from_pylist(batch, schema=schema))
    return pa.concat_tables([schema.empty_table(), *tables])


def of_frame(frame: pd.DataFrame, record: type[Record]) -> pa.Table:
    """Return a frame with a record's columns as a table."""
    schema = arrow_schema(record, frame)
    return pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)


def from_parquet(
    content: bytes, where: Path, charge: Callable[[str, int, int], None], columns: Sequence[str] | None = None
) -> pa.Table:
    """Return a member as a table; its size is charged (member, cells, bytes) before it is in memory.

    Raises DataError for a damaged member, and the errors of `charge`.
    """
    try:
        refuse_footer(content)
        file = pq.ParquetFile(pa.BufferReader(content))
        schema = file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise pa.ArrowInvalid("two columns have the same name")
        present = [name for name in schema.names if columns is None or name in columns]
        for name in present:
            refuse_type(schema.field(name).type)
        _charge(file, content, present, len(columns or present), functools.partial(charge, str(where)))
        plain = pa.schema([schema.field(name) for name in present])
        table = pa.Table.from_batches(_batches(content, plain, functools.partial(charge, str(where))), plain)
        for field in plain:
            if (field.metadata or {}).get(_JSON):
                if not pa.types.is_string(field.type):
                    raise pa.ArrowInvalid(
                        f"its column {field.name[:60]!r} is marked as JSON, but has type {str(field.type)[:60]}"
                    )
                inside = pc.sum(pc.count_substring_regex(table[field.name], r"[\[{,]")).as_py() or 0
                charge(f"{where}/{field.name}", inside, 0)
        return table
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"{where} is damaged ({error}); get it again from its source") from None


def _charge(
    file: pq.ParquetFile, content: bytes, present: Sequence[str], width: int, charge: Callable[[int, int], None]
) -> None:
    """Charge for a table before any of it is decoded: its cells, and its unpacked pages."""
    rows, cells, size = max(file.metadata.num_rows, 0) * max(width, 1), 0, 0
    charge(rows, 0)
    for values, unpacked in page_sizes(file, content, present):
        cells, size = cells + values + _PAGE, size + unpacked
        charge(max(rows, cells), size)


def _batches(content: bytes, plain: pa.Schema, charge: Callable[[int, int], None]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in pieces; texts are read as a dictionary, and charged for before they are expanded."""
    opened = pq.ParquetFile(pa.BufferReader(content))
    leaves = [opened.schema.column(column) for column in range(len(opened.schema))]
    file = pq.ParquetFile(
        pa.BufferReader(content), read_dictionary=[leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    )
    size = 0
    for batch in file.iter_batches(batch_size=1 << 14, columns=plain.names, use_threads=False):
        size += sum(_written_out(column) for column in batch.columns)
        charge(0, size)
        yield pa.record_batch([batch[field.name].cast(field.type) for field in plain], schema=plain)


def _written_out(column: pa.Array) -> int:
    """Return the bytes of a column without a dictionary."""
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64()).take(column.indices)
    return int(pc.sum(lengths).as_py() or 0) + 4 * len(column)


def checked(
    content: bytes,
    where: Path,
    record: type[Record],
    charge: Callable[[str, int, int], None],
    columns: Sequence[str] = (),
) -> pa.Table:
    """Return a member as a table of records, with columns, types and keys checked as in a study's own."""
    whole = arrow_schema(record)
    schema = pa.schema([whole.field(name) for name in columns]) if columns else whole
    table_read = from_parquet(content, where, charge, schema.names)
    wanted = [name for name in schema.names if record.model_fields[name].is_required()]
    if missing := [name for name in wanted if name not in table_read.schema.names]:
        raise DataError(f"{where} lacks column {missing[0]!r}; get it again from its source")
    schema = with_decimals_of(schema, record, table_read.schema)
    table = cast_table(
        table_read.select([n for n in schema.names if n in table_read.schema.names]), schema, record, where, _AGAIN
    )
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, where)
    return table


def dataset_members(dataset: TableDataset) -> Iterator[tuple[str, memoryview]]:
    """Yield (member, content) of all that scoring a local data set needs."""
    for split, frame in dataset.splits.items():
        yield rows_of(dataset.name, split), to_parquet(_cells(frame))
    if dataset.task == "retrieval":
        codes = [dataset.corpus_languages.get(passage) for passage in dataset.corpus]
        corpus = {"id": list(dataset.corpus), "text": list(dataset.corpus.values()), "language": codes}
        kinds = pa.schema([(name, pa.string()) for name in corpus])
        yield rows_of(dataset.name, "corpus"), to_parquet(pa.table(corpus, schema=kinds))
        judged = [(q, p, value) for q, judgements in dataset.qrels.items() for p, value in judgements.items()]
        names = ("query", "passage", "relevance")
        qrels = {name: [row[column] for row in judged] for column, name in enumerate(names)}
        types = pa.schema([("query", pa.string()), ("passage", pa.string()), ("relevance", pa.int64())])
        yield rows_of(dataset.name, "qrels"), to_parquet(pa.table(qrels, schema=types))


def dataset_of(spec: DatasetSpec, revision: str, members: Mapping[str, pa.Table], where: Path) -> TableDataset:
    """Return a local data set from its members, by their names without folder and ending."""
    try:
        splits = {name: _frame(members[name]) for name in ("train", "test") if name in members}
        corpus: dict[str, str] = {}
        languages: dict[str, str] = {}
        qrels: dict[str, dict[str, int]] = {}
        if spec.task == "retrieval":
            columns = members["corpus"].to_pydict()
            corpus = dict(zip(columns["id"], columns["text"], strict=True))
            languages = {
                passage: code for passage, code in zip(columns["id"], columns["language"], strict=True) if code
            }
            qrels = {query: {} for query in splits["test"]["id"]}
            for row in members["qrels"].to_pylist():
                qrels[row["query"]][row["passage"]] = row["relevance"]
        if "test" not in splits:
            raise KeyError("test")
        dataset = TableDataset(
            spec.name, spec.task_type, spec.language, revision, splits, corpus, qrels, languages, passages=spec.passages
        )
        for _ in (*dataset.texts(), *dataset.labels(), *dataset.gold_scores(), *dataset.passages_of()):
            pass  # checks that everything scored can be read
        return dataset
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{where}: data set {spec.name!r} is incomplete ({error})") from None


def _cells(frame: pd.DataFrame) -> pa.Table:
    """Return a data set's rows as a table; columns that Arrow would convert to one type are stored as JSON."""
    columns, fields = [], []
    for name in frame.columns:
        cells = frame[name].tolist()
        try:
            column = pa.array(cells)
            same = column.to_pylist() == cells and not pa.types.is_null(column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            same = False
        if not same:
            column = pa.array([json.dumps(cell, ensure_ascii=False) for cell in cells], pa.string())
        columns.append(column)
        fields.append(pa.field(str(name), column.type, metadata=None if same else {_JSON: b"1"}))
    return pa.table(columns, schema=pa.schema(fields))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return the rows as a frame again: numbers as numbers, all else as Python objects."""
    columns = {}
    for name in table.schema.names:
        field, cells = table.schema.field(name), table[name].to_pylist()
        if (field.metadata or {}).get(_JSON):
            cells = [json.loads(cell) for cell in cells]
        numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        columns[name] = pd.Series(cells, dtype=None if numeric and cells else object)
    return pd.DataFrame(columns)


def to_json(value: Any) -> bytes:
    """Return JSON as in bundles: one form for equal values."""
    plain = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False)
    return plain.encode() + b"\n"


def models_to_json(rows: Iterable[Any]) -> bytes:
    """Return records as JSON, with NaN as null."""
    return to_json([json.loads(row.model_dump_json()) for row in rows])
