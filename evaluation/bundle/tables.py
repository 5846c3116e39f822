"""Convert records and data sets to the tables of a bundle and back, without running code."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.bundle.records import AGAIN, rows_of
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import Record, arrow_schema, cast_table, refuse_duplicate_keys, with_decimals_of
from plumbline.store import BATCH
from plumbline.study.datasets import DatasetSpec

_JSON = b"json"  # marks columns of JSON, whose cells are of several types


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


def from_parquet(content: bytes, path: Path, charge: Callable[[int, int], None], columns: Sequence[str]) -> pa.Table:
    """Return these columns (all if empty) of a Parquet file; `charge` is called with cells and bytes before they exist.

    Raises DataError for a damaged file, and the errors of `charge`.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        schema = file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise pa.ArrowInvalid("two columns have the same name")
        plain = pa.schema([schema.field(name) for name in schema.names if not columns or name in columns])
        for field in plain:
            _refuse_type(field.type)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
        read = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in plain.names]
        values = max(sum(chunk.num_values for chunk in read), file.metadata.num_rows * max(len(columns), 1))
        charge(values, sum(chunk.total_uncompressed_size for chunk in read))
        table = pa.Table.from_batches(_batches(content, plain, charge), plain)
        for field in plain:
            if _is_json(field):
                if not pa.types.is_string(field.type):
                    raise pa.ArrowInvalid(f"{field.name[:60]!r} is marked as JSON, but is {str(field.type)[:60]}")
                charge(pc.sum(pc.count_substring_regex(table[field.name], r"[\[{,]")).as_py() or 0, 0)
        return table
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"{path} is damaged ({error}); {AGAIN}") from None


def _refuse_type(kind: pa.DataType) -> None:
    """Raise ArrowInvalid for a type whose decoded values can be larger than their encoding."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    words = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_binary(kind))
    if not (any(words) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        raise pa.ArrowInvalid(f"it has a column of the unexpected type {str(kind)[:60]}")


def _batches(content: bytes, plain: pa.Schema, charge: Callable[[int, int], None]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in pieces; texts are read as a dictionary, and charged for before they are expanded."""
    opened = pq.ParquetFile(pa.BufferReader(content))
    leaves = [opened.schema.column(column) for column in range(len(opened.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
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
    content: bytes, path: Path, record: type[Record], charge: Callable[[int, int], None], columns: Sequence[str] = ()
) -> pa.Table:
    """Return a table of records, with columns, types and keys checked as in a study's own."""
    full = arrow_schema(record)
    schema = pa.schema([full.field(name) for name in columns or full.names])
    table = from_parquet(content, path, charge, schema.names)
    present = [name for name in schema.names if name in table.schema.names]
    if missing := [name for name in schema.names if record.model_fields[name].is_required() and name not in present]:
        raise DataError(f"{path} lacks column {missing[0]!r}; {AGAIN}")
    schema = with_decimals_of(schema, record, table.schema)
    table = cast_table(table.select(present), schema, record, path, "plumbline bundle export")
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, path)
    return table


def dataset_tables(dataset: TableDataset) -> Iterator[tuple[str, pa.Table]]:
    """Yield (file, table) of all that scoring a local data set needs."""
    for split, frame in dataset.splits.items():
        yield rows_of(dataset.name, split), _cells(frame)
    if dataset.task == "retrieval":
        codes = [dataset.corpus_languages.get(passage) for passage in dataset.corpus]
        corpus = {"id": list(dataset.corpus), "text": list(dataset.corpus.values()), "language": codes}
        kinds = pa.schema([(name, pa.string()) for name in corpus])
        yield rows_of(dataset.name, "corpus"), pa.table(corpus, schema=kinds)
        judged = [(q, p, value) for q, judgements in dataset.qrels.items() for p, value in judgements.items()]
        names = ("query", "passage", "relevance")
        qrels = {name: [row[column] for row in judged] for column, name in enumerate(names)}
        types = pa.schema([("query", pa.string()), ("passage", pa.string()), ("relevance", pa.int64())])
        yield rows_of(dataset.name, "qrels"), pa.table(qrels, schema=types)


def dataset_of(spec: DatasetSpec, revision: str, members: Mapping[str, pa.Table], path: Path) -> TableDataset:
    """Return a local data set from its tables, by their names without folder and ending."""
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
            spec.name, spec.task_type, spec.code, revision, splits, corpus, qrels, languages, passages=spec.passages
        )
        for _ in (*dataset.texts(), *dataset.labels(), *dataset.gold_scores(), *dataset.searches()):
            pass  # checks that everything scored can be read
        return dataset
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: data set {spec.name!r} is incomplete ({error})") from None


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


def _is_json(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(_JSON))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return the rows as a frame again: numbers as numbers, all else as Python objects."""
    columns = {}
    for name in table.schema.names:
        field, cells = table.schema.field(name), table[name].to_pylist()
        if _is_json(field):
            cells = [json.loads(cell) for cell in cells]
        numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        columns[name] = pd.Series(cells, dtype=None if numeric and cells else object)
    return pd.DataFrame(columns)
