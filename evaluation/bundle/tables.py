"""Tables and data sets as members of a bundle: to bytes and back, without a file and without code."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from evaluation.bundle import pages
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import Number, Record
from plumbline.schemas import arrow_schema, cast_table, refuse_duplicate_keys
from plumbline.store import BATCH
from plumbline.study.datasets import LocalDataset

_PAGE = 100  # cells that a page is charged as: each takes time to look at
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


def from_parquet(
    content: bytes, where: Path, charge: Callable[[str, int, int], None], columns: Sequence[str] | None = None
) -> pa.Table:
    """A member as a table, which is charged for (member, cells, bytes) before it is in memory.

    Raises DataError for what is damaged, and what `charge` raises.
    """
    try:
        pages.refuse_footer(content)
        file = pq.ParquetFile(pa.BufferReader(content))
        schema = file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise pa.ArrowInvalid("two columns have one name")
        there = [name for name in schema.names if columns is None or name in columns]
        for name in there:
            pages.refuse_type(schema.field(name).type)
        _charge(file, content, there, len(columns or there), functools.partial(charge, str(where)))
        plain = pa.schema([schema.field(name) for name in there])
        table = pa.Table.from_batches(_batches(content, plain, functools.partial(charge, str(where))), plain)
        for field in plain:
            if (field.metadata or {}).get(_JSON) and pa.types.is_string(field.type):
                inside = pc.sum(pc.count_substring_regex(table[field.name], r"[\[{,]")).as_py() or 0
                charge(f"{where}/{field.name}", inside, 0)
        return table
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"{where} is damaged ({error}); get it again from where it came from") from None


def _charge(
    file: pq.ParquetFile, content: bytes, there: Sequence[str], width: int, charge: Callable[[int, int], None]
) -> None:
    """Charge for a table before any of it is decoded: its cells, and its pages as they are unpacked."""
    rows, cells, size = max(file.metadata.num_rows, 0) * max(width, 1), 0, 0
    charge(rows, 0)
    for values, unpacked in pages.sizes(file, content, there):
        cells, size = cells + values + _PAGE, size + unpacked
        charge(max(rows, cells), size)


def _batches(content: bytes, plain: pa.Schema, charge: Callable[[int, int], None]) -> Iterator[pa.RecordBatch]:
    """The rows in pieces; words are read as numbers into a dictionary, and charged for before they are written out."""
    opened = pq.ParquetFile(pa.BufferReader(content))
    leaves = [opened.schema.column(place) for place in range(len(opened.schema))]
    file = pq.ParquetFile(
        pa.BufferReader(content), read_dictionary=[one.path for one in leaves if one.physical_type == "BYTE_ARRAY"]
    )
    size = 0
    for batch in file.iter_batches(batch_size=1 << 14, columns=plain.names, use_threads=False):
        size += sum(_written_out(column) for column in batch.columns)
        charge(0, size)
        yield pa.record_batch([batch[field.name].cast(field.type) for field in plain], schema=plain)


def _written_out(column: pa.Array) -> int:
    """The bytes of a column whose words do not stand in a dictionary."""
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
    """A member as a table of records, checked for its columns, types and keys as a study's own are."""
    whole = arrow_schema(record)
    schema = pa.schema([whole.field(name) for name in columns]) if columns else whole
    found = from_parquet(content, where, charge, schema.names)
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
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
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


STUDY, TRANSFORMATIONS, RUBRIC = "study.json", "transformations.json", "rubric.json"
PAIRS, RATINGS, SCORES = "pairs.parquet", "ratings.parquet", "scores.parquet"
CONTROLS, CONTROL_RATINGS, MEANS = "controls.parquet", "control_ratings.parquet", "pair_means.parquet"
JUDGED, JUDGEMENTS, REFUSED = "judged.parquet", "judgements.parquet", "judges.json"
VERDICTS, AGREEMENT = "verdicts.json", "agreement.json"
REPORTS = {"report/ratings.html": "report/index.html", "report/scores.html": "report_evaluation/index.html"}


def outputs_of(transformation: str, seed: int) -> str:
    """The member with a unit's outputs."""
    return f"outputs/{transformation}/{seed}.parquet"


def texts_of(dataset: str) -> str:
    """The member with the places and hashes of a data set's texts, and their words where they may be handed on."""
    return f"texts/{dataset}.parquet"


class BundledOutput(Record):
    """What stands in a text's place (`outputs/<transformation>/<seed>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of everything that changes the output, as in pairs.parquet")
    text_id: str = Field(description="the original's hash")
    datasets: tuple[str, ...] = Field(description="data sets in which it stands for that text")
    source_language: str = Field(description="the original's language")
    language: str = Field(description="the language that the output should be in")
    output: str = Field(description="the transformed text; empty where there is none, and where it is `copy_of` a text")
    status: Literal["ok", "failed"] = Field(description="whether there is one")
    reason: str = Field(description="why there is none, without what a server or a function said; empty otherwise")
    flags: tuple[str, ...] = Field(description="error types found on the last attempt")
    first_flags: tuple[str, ...] = Field(description="error types found on the first attempt")
    attempts: int = Field(description="answers received")
    copy_of: str = Field(
        default="",
        description="the hash of a text that may not be handed on, of which the output is a copy word for word",
    )


class BundledJudged(Record):
    """An output that judges rate (`judged.parquet`), where they decide with people; its texts are elsewhere."""

    KEY = ("pair_id",)
    pair_id: str = Field(description="as in pairs.parquet, where the output was rated by people too")
    key: str = Field(description="the output's")
    transformation: str = Field(description="its transformation")
    pool: str = Field(description="transformations rated together")
    dataset: str = Field(description="first data set that holds the original")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="language that the output should be in")
    seed: int = Field(description="transformation seed")
    wave: int = Field(description="wave of the sample in which it was drawn")
    stratum: str = Field(description="where it was drawn")
    place: int = Field(description="its place among the judged of its transformation, from 1; the sample's come first")


class BundledJudgement(Record):
    """One answer of one judge to one question on one output (`judgements.parquet`), without its words."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of judge, prompt, question, order and pair")
    pair_id: str = Field(description="which output, as in judged.parquet")
    judge: str = Field(description="the judge's name")
    question: str = Field(description="the question")
    order: Literal["up", "down"] = Field(description="the scale's points from the lowest (up) or the highest (down)")
    score: Number = Field(description="the judgement, on the question's scale; NaN where there is none")
    status: Literal["ok", "failed", "unanswered"] = Field(description="whether there is one")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="the judge's kind; recorded ones were not asked")
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and way of reading")
    prompt_hash: str = Field(description="hash of what it was asked, but the texts")
    text: str = Field(default="", description="its answer as it came; empty where free words do not travel")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class BundledPrompt(BaseModel):
    """A prompt, word for word."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    source: str
    language: str
    text: str


class BundledTransformation(BaseModel):
    """How a transformation was made (`transformations.json`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    definition: dict[str, Any] = Field(description="the transformation as its file has it")
    prompts: tuple[BundledPrompt, ...] = Field(description="its calls' prompts, in order")
    prompt_hash: str = Field(description="of these; empty without prompts")
    kind: str = Field(description="what made it: the generator's kind, function or outputs")
    model: str = Field(description="the generator's model, the function, or the file of outputs")
    generator_hash: str = Field(description="identity of what made it")
