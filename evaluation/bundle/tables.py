"""Convert records and data sets to the tables of a bundle and back, without running code."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
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


def from_parquet(content: bytes, where: Path, columns: Sequence[str] = ()) -> pa.Table:
    """Return these columns (all if empty) of a Parquet file. Raises DataError for a damaged file."""
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(list(columns) or None)
        if len(set(table.schema.names)) < len(table.schema.names):
            raise pa.ArrowInvalid("two columns have the same name")
        return table
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"{where} is damaged ({error}); {AGAIN}") from None


def checked(content: bytes, where: Path, record: type[Record], columns: Sequence[str] = ()) -> pa.Table:
    """Return a table of records, with columns, types and keys checked as in a study's own."""
    whole = arrow_schema(record)
    schema = pa.schema([whole.field(name) for name in columns or whole.names])
    table = from_parquet(content, where, schema.names)
    present = [name for name in schema.names if name in table.schema.names]
    if missing := [name for name in schema.names if record.model_fields[name].is_required() and name not in present]:
        raise DataError(f"{where} lacks column {missing[0]!r}; {AGAIN}")
    schema = with_decimals_of(schema, record, table.schema)
    table = cast_table(table.select(present), schema, record, where, "plumbline bundle export")
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, where)
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


def dataset_of(spec: DatasetSpec, revision: str, members: Mapping[str, pa.Table], where: Path) -> TableDataset:
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
