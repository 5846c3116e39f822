"""Tables and data sets as members of a bundle: to bytes and back, without a file and without code."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import Record
from plumbline.schemas import arrow_schema, cast_table, refuse_duplicate_keys
from plumbline.store import BATCH
from plumbline.study.datasets import LocalDataset

LARGEST = 4 * 2**30  # bytes of a table in memory
ROWS = 50_000_000
_AGAIN = "plumbline bundle export"
_JSON = b"json"  # which columns hold JSON: those whose cells are of several types


def to_parquet(table: pa.Table) -> memoryview:
    """A table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def of_records(rows: Iterable[Record], record: type[Record]) -> pa.Table:
    """Records as a table; `BATCH` of them are in memory as Python has them."""
    schema, rest, made = arrow_schema(record), iter(rows), []
    while batch := [row.model_dump() for row in itertools.islice(rest, BATCH)]:
        made.append(pa.Table.from_pylist(batch, schema=schema))
    return pa.concat_tables([schema.empty_table(), *made])


def of_frame(frame: pd.DataFrame, record: type[Record]) -> pa.Table:
    """A frame with a record's columns as a table."""
    schema = arrow_schema(record, frame)
    return pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)


def from_parquet(content: bytes, where: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A member as a table. Raises DataError for what is damaged, or larger in memory than any is."""
    pieces, size = [], 0
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        declared = sum(file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups))
        if file.metadata.num_rows > ROWS or declared > LARGEST:
            raise DataError(f"{where}: its {file.metadata.num_rows:,} rows are more than are read")
        there = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=1 << 14, columns=there):
            size += batch.nbytes
            if size > LARGEST:
                raise DataError(f"{where}: in memory it is more than the {LARGEST:,} bytes that are read")
            pieces.append(batch)
        schema = file.schema_arrow
        return pa.Table.from_batches(pieces, pa.schema([schema.field(name) for name in there or schema.names]))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"{where} is damaged ({error}); get it again from where it came from") from None


def checked(content: bytes, where: Path, record: type[Record], columns: Sequence[str] = ()) -> pa.Table:
    """A member as a table of records, checked for its columns, types and keys as a study's own are."""
    found = from_parquet(content, where, columns or None)
    whole = arrow_schema(record)
    schema = pa.schema([whole.field(name) for name in columns]) if columns else whole
    wanted = [name for name in schema.names if record.model_fields[name].is_required()]
    if missing := [name for name in wanted if name not in found.schema.names]:
        raise DataError(f"{where} lacks column {missing[0]!r}; get it again from where it came from")
    table = cast_table(
        found.select([n for n in schema.names if n in found.schema.names]), schema, record, where, _AGAIN
    )
    if set(record.KEY) <= set(schema.names):
        refuse_duplicate_keys(table, record, where)
    return table


def dataset_members(dataset: TableDataset) -> Iterator[tuple[str, memoryview]]:
    """(member, content) of all that scores of a local data set need."""
    for split, frame in dataset.splits.items():
        yield f"data/{dataset.name}/{split}.parquet", to_parquet(_cells(frame))
    if dataset.task == "retrieval":
        codes = [dataset.corpus_languages.get(one) for one in dataset.corpus]
        corpus = {"id": list(dataset.corpus), "text": list(dataset.corpus.values()), "language": codes}
        kinds = pa.schema([(name, pa.string()) for name in corpus])
        yield f"data/{dataset.name}/corpus.parquet", to_parquet(pa.table(corpus, schema=kinds))
        judged = [(q, p, value) for q, found in dataset.qrels.items() for p, value in found.items()]
        names = ("query", "passage", "relevance")
        qrels = {name: [row[place] for row in judged] for place, name in enumerate(names)}
        types = pa.schema([("query", pa.string()), ("passage", pa.string()), ("relevance", pa.int64())])
        yield f"data/{dataset.name}/qrels.parquet", to_parquet(pa.table(qrels, schema=types))


def dataset_of(spec: LocalDataset, revision: str, members: Mapping[str, pa.Table], where: Path) -> TableDataset:
    """A local data set of its members, by their names without folder and ending."""
    try:
        splits = {name: _frame(members[name]) for name in ("train", "test") if name in members}
        corpus: dict[str, str] = {}
        languages: dict[str, str] = {}
        qrels: dict[str, dict[str, int]] = {}
        if spec.task == "retrieval":
            found = members["corpus"].to_pydict()
            corpus = dict(zip(found["id"], found["text"], strict=True))
            languages = {one: code for one, code in zip(found["id"], found["language"], strict=True) if code}
            qrels = {query: {} for query in splits["test"]["id"]}
            for row in members["qrels"].to_pylist():
                qrels[row["query"]][row["passage"]] = row["relevance"]
        if "test" not in splits:
            raise KeyError("test")
        made = TableDataset(
            spec.name, spec.task, spec.language, revision, splits, corpus, qrels, languages, passages=spec.passages
        )
        for _ in (*made.texts(), *made.labels(), *made.gold_scores(), *made.passages_of()):
            pass  # all that is scored can be read
        return made
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: data set {spec.name!r} is not whole ({error})") from None


def _cells(frame: pd.DataFrame) -> pa.Table:
    """A data set's rows; columns whose cells Arrow would make one type of are JSON."""
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
    """The same back: numbers as numbers, all else as Python has it."""
    made = {}
    for name in table.schema.names:
        field, cells = table.schema.field(name), table[name].to_pylist()
        if (field.metadata or {}).get(_JSON):
            cells = [json.loads(cell) for cell in cells]
        numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        made[name] = pd.Series(cells, dtype=None if numeric and cells else object)
    return pd.DataFrame(made)


def to_json(value: Any) -> bytes:
    """JSON as bundles have it: one form for equal values."""
    plain = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False)
    return plain.encode() + b"\n"


def models_to_json(rows: Iterable[Any]) -> bytes:
    """Records as JSON: NaN as null."""
    return to_json([json.loads(row.model_dump_json()) for row in rows])
