"""The records that stages hand on: frozen, each field explained in one line.

Many go to Parquet (`plumbline.store.write_table`), few to JSON. `KEY` names the fields that identify a row.
Their columns are Arrow schemas, by which tables are written, checked and cast.
"""

from __future__ import annotations

import functools
import math
import types
import typing
import unicodedata
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from plumbline.errors import DataError
from plumbline.identity import identity, identity_from, prefix
from plumbline.study.crowd import PLATFORMS
from plumbline.study.subject import KNOWN, ORIGINAL

# JSON has no NaN: an undefined number is null in a file and NaN in memory.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]


class Record(BaseModel):
    """Base of all records."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    KEY: ClassVar[tuple[str, ...]] = ()


class Text(Record):
    """One occurrence of a text in a data set (`texts.parquet`); equal texts share their `text_id`."""

    KEY = ("dataset", "split", "item", "field")
    dataset: str = Field(description="the data set's name in the study")
    task_type: str = Field(description="that data set's task")
    split: str = Field(description="train or test")
    item: str = Field(
        description="the item's number or id within the split, preceded by its subset, followed by its place in a list"
    )
    field: str = Field(description="the column of the text, such as text, sentence1 or query")
    language: str = Field(description="BCP 47 code")
    text_id: str = Field(description="hash of language and text")
    text: str = Field(description="the text in NFC")


class TransformedText(Record):
    """A generator's output for a text (`transformations/<transformation>/<seed>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of everything that changes the output (see `job_key`)")
    text_id: str = Field(description="the original's hash")
    text: str = Field(description="the original in NFC")
    source_language: str = Field(description="the original's language")
    transformation: str = Field(description="its name")
    seed: int = Field(description="transformation seed")
    language: str | None = Field(description="the drawn language; missing if the transformation draws none")
    intermediate: str | None = Field(description="output of the first of two calls")
    output: str = Field(description="the transformed text, cleaned; empty if there is none")
    raw: str | None = Field(description="the generator's answer before cleaning, if cleaning changed it")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="unanswered: no answer arrived; the next run asks again"
    )
    reason: str = Field(description="the reason if there is no output; else empty")
    flags: tuple[str, ...] = Field(description="error types found on the last attempt (`generation.flags`)")
    first_flags: tuple[str, ...] = Field(description="error types found on the first attempt")
    attempts: int = Field(description="number of answers received")
    model: str = Field(description="the generator's model, or the function or file that made the output")
    generator_hash: str = Field(description="hash of model, revision and sampling, or of the function or file")
    prompt_hash: str = Field(description="hash of the prompts' texts; empty without prompts")
    finished_at: datetime = Field(description="when the output was received, UTC")


class Pair(Record):
    """A pair that raters judge: an original and its transformation, or an item of another subject (`pairs.parquet`)."""

    KEY = ("pair_id",)
    pair_id: str = Field(description="hash of the transformed text's key, or of an item")
    key: str = Field(description="the transformed text's key; for an item, its hash")
    transformation: str = Field(
        description="the transformation's name; if the subject is not pairs, the group of the item"
    )
    axis: str = Field(description="the transformation's axis; if the subject is not pairs, the subject's kind")
    pool: str = Field(description="transformations rated together: translation includes cross_translation (HTEB, 2.4)")
    dataset: str = Field(description="the study's first data set with this text")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="intended language of the transformed text")
    seed: int = Field(description="transformation seed")
    control: Literal["", "positive", "negative", "known", "repeat"] = Field(
        default="", description="kind of check on the rater; empty for a pair of the sample"
    )
    repeats: str = Field(default="", description="the pair that a repeat shows again; else empty")
    original: str = Field(description="the original text; empty if raters read `fields` instead")
    transformed: str = Field(description="the transformed text; empty if raters read `fields` instead")
    model: str = Field(description="the generator's model, or the function or file that made the output")
    generator_hash: str = Field(description="hash of model, revision and sampling, or of the function or file")
    prompt_hash: str = Field(description="hash of the prompts' texts; empty without prompts")
    generator_kind: str = Field(default="", description="the generator's kind, such as recorded, function or outputs")
    wave: int = Field(default=1, description="1 for the first sample; each extension adds a wave")
    fields: str = Field(
        default="", description="the fields that raters read if the subject is not pairs: names with values, as JSON"
    )
    expected: str = Field(
        default="", description="right answers of a known item by question, as JSON; no rater sees them"
    )
    systems: str = Field(
        default="", description="the system behind each label of a choice, as JSON; no rater sees them"
    )
    queue: str = Field(
        default="", description="the queue that its pool shares with other pools; empty if the pool has its own"
    )

    @property
    def drawn(self) -> bool:
        """Whether the pair was drawn from outputs, and is no check on raters."""
        return not self.control


ARGILLA = "argilla"  # source of ratings given there
REHEARSAL = "REHEARSAL"  # source of ratings by the simulated crowd
#: Sources of a study's own campaign; any other is a file's name.
SOURCES = (ARGILLA, *(name for name in PLATFORMS if name != "rehearsal"), REHEARSAL, "simulated")
SANDBOX = " sandbox"  # ending of the source of a crowd's rehearsal
UNKNOWN = "unknown-"  # beginning of a rater's id where a file does not name raters: a number for each of its rows


class Rating(Record):
    """One answer of one rater to one question on one pair (`ratings.parquet`)."""

    KEY = ("pair_id", "rater_id", "question")
    pair_id: str = Field(description="the rated pair")
    transformation: str = Field(description="the pair's transformation")
    language: str = Field(description="language of the pair's original")
    rater_id: str = Field(
        description="the rater's pseudonym; `unknown-` and a number for each row of a file without raters"
    )
    question: str = Field(description="name of the question, such as quality or fluency")
    value: int | float | None = Field(
        description="the point on the scale; missing if the answer was discarded or is not a number"
    )
    status: Literal["submitted", "draft", "discarded"] = Field(description="only submitted answers count")
    submitted_at: datetime = Field(description="when the answer last changed, UTC")
    source: str = Field(
        description="source of the answer: argilla, mturk, prolific, link (a platform that sends people by a link),"
        " REHEARSAL (the simulated crowd), simulated, or the CSV file's name"
    )
    batch: str = Field(default="", description="the crowd worker's batch; empty for other raters")
    seconds: Number = Field(
        default=math.nan, description="seconds spent on the pair, or since the rater's previous answer; NaN if unknown"
    )
    comment: str = Field(default="", description="the rater's free comment")
    answer: str = Field(
        default="", description="the answer to a question without a scale: label, labels, order or text; else empty"
    )
    excluded: str = Field(default="", description="reason why a person excluded the rater; empty if nobody did")
    withdrawn: str = Field(default="", description="reason why a person withdrew the pair; empty if nobody did")
    surplus: bool = Field(
        default=False,
        description="true if the pair already had the answers of `raters.per_pair` raters, so that this rating does"
        " not count",
    )
    order: str = Field(
        default="",
        description="for tasks with candidates: the candidates' numbers in the item's `shown`, in the order in which "
        "this rater saw them (`3 1 2`); if each candidate is a record of its own, this candidate's place. Empty if "
        "candidates were in the order of `shown`; `unknown` if the order was not recorded",
    )
    turn: int = Field(default=0, description="for tasks: the item's place in this rater's order, from 1; 0 if unknown")
    again: bool = Field(
        default=False, description="true if the rater was excluded and the pair was offered again for another answer"
    )
    simulated: bool = Field(description="true if a program answered, not a person")


class DriftRecord(Record):
    """The drift of a pair in a model's space (`drift.parquet`)."""

    KEY = ("pair_id", "model")
    pair_id: str = Field(description="the pair")
    model: str = Field(description="the embedding model")
    drift: float = Field(description="1 - cos(original, transformed), from 0 to 2")
    unit_id: str = Field(
        default="", description="identity of model, revision and both texts; drift with an equal id is reused"
    )


class Score(Record):
    """One model's score on one data set, original or transformed (`scores.parquet`)."""

    KEY = ("model", "dataset", "transformation", "seed")
    model: str = Field(description="the embedding model")
    dataset: str = Field(description="the data set")
    task_type: str = Field(description="its task")
    language: str = Field(description="languages of its texts (codes, comma-separated)")
    transformation: str = Field(description="the transformation, or original")
    axis: str = Field(description="the transformation's axis, or original")
    seed: int = Field(description="transformation seed; 0 for original")
    metric: str = Field(description="mteb's name of the main metric")
    score: Number = Field(description="the metric's value, from -1 or 0 to 1; NaN if it was left out")
    n: int = Field(
        description="number of scored items of the test split: rows, queries, or texts if a row has a list of them"
    )
    n_failed: int = Field(
        default=0, description="number of items whose outputs failed, in classification also in the train split"
    )
    n_kept_out: int = Field(
        default=0,
        description="number of failed items whose outputs `sample.without` excludes, so that no verdict covers them",
    )
    original_score: Number = Field(
        default=math.nan,
        description="the metric on the original texts of the same items, except items whose outputs failed; "
        "NaN if left out or undefined",
    )
    status: Literal["evaluated", "included_rejected", "left_out", "failed"] = Field(
        description="included_rejected: scored but not accepted; left_out: not scored; failed: the model failed"
    )
    reason: str = Field(description="reason if the score is not accepted, left out, failed or undefined; else empty")
    unit_id: str = Field(
        default="", description="hash of all that affects the score, except the verdict; equal scores are reused"
    )
    model_revision: str = Field(
        default="", description="the model's revision in the study; for a local model without one, a hash of its files"
    )
    dataset_revision: str = Field(
        default="", description="the data set's revision; for a local one, a hash of its data"
    )
    protocol: str = Field(default="", description="the protocol: paper or mteb (`evaluation.tasks.protocols`)")
    precision: str = Field(default="", description="data type of the model's weights, such as float32")
    generator_hash: str = Field(default="", description="hash of the generator of the texts; empty for original")
    prompt_hash: str = Field(default="", description="hash of the generator's prompts; empty for original")
    verdict_hash: str = Field(
        default="",
        description="hashes of the verdicts that decided, one for each language of the originals, comma-separated"
        " (`evaluation.gate.verdict_hash`); empty for original and without a verdict",
    )
    versions: str = Field(
        default="", description="packages that computed the score, with their versions; empty if it was left out"
    )
    prompts: str = Field(
        default="",
        description="the model's prompts by role (query, document, else text), each with who gave it (study, model or"
        " mteb) and its name there, or a note that mteb's class chooses it; empty for none",
    )


def nfc(text: str) -> str:
    """Return the text in Unicode's composed form, which is hashed, transformed and compared."""
    return unicodedata.normalize("NFC", text)


def text_id(text: str, language: str) -> str:
    """Return the identity of a text: equal for equal texts (in NFC) of one language, in any data set."""
    return identity_from(_texts_of(language), nfc(text))


def pair_id(key: str, output: str) -> str:
    """Return the identity of an output of a key, and of the pair that shows it."""
    return identity("pair-v1", key, output)


@functools.lru_cache(maxsize=512)
def _texts_of(language: str) -> Any:
    return prefix("text-v1", language)


_OF_NO_STUDY = "add it to the study's `transformations` again, or restore the file from a copy"
_TIMES = (0, 7_258_118_400_000_000)  # microseconds: 1970 to 2200


def arrow_schema(record: type[Record], frame: pd.DataFrame | None = None) -> pa.Schema:
    """Return the Parquet columns of a record; columns of numbers that are whole in a frame are integers."""
    schema = pa.schema([pa.field(name, *_arrow_type(field.annotation)) for name, field in record.model_fields.items()])
    broken = [name for name in numeric(record) if frame is not None and name in frame and not is_whole(frame[name])]
    return with_decimals(schema, broken)


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


def numeric(record: type[Record]) -> list[str]:
    """Return the columns of a record that hold whole or other numbers."""
    return [name for name, field in record.model_fields.items() if {int, float} <= {*typing.get_args(field.annotation)}]


def is_whole(values: pd.Series) -> bool:
    """Tell whether all numbers of a column are whole."""
    numbers = pd.to_numeric(values).dropna().to_numpy(np.float64)
    return bool((numbers == np.round(numbers)).all())


def with_decimals(schema: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """Return the schema with these columns as numbers of any kind."""
    return pa.schema([field.with_type(pa.float64()) if field.name in columns else field for field in schema])


def with_decimals_of(schema: pa.Schema, record: type[Record], present: pa.Schema) -> pa.Schema:
    """Return a record's schema for a table with the columns `present`; their number types stay."""
    names = [name for name in numeric(record) if name in present.names]
    return with_decimals(schema, [name for name in names if pa.types.is_floating(present.field(name).type)])


def with_words(schema: pa.Schema, words: Collection[str]) -> pa.Schema:
    """Return the schema with these text columns as dictionaries."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(encoded) if field.name in words else field for field in schema])


def cast_table(table: pa.Table, schema: pa.Schema, record: type[Record], path: Path, made_by: str) -> pa.Table:
    """Return the columns in the schema's order and types."""
    try:
        table = table.select(schema.names)
        for field in schema:
            if not field.nullable and table[field.name].null_count:
                raise DataError(f"{path}, column {field.name!r}: has empty cells; run `{made_by}` again")
        table = table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{path} has a column of an unexpected type ({error}); run `{made_by}` again") from None
    for name in schema.names:
        if fault := _strange(table[name], schema.field(name), record):
            advice = _OF_NO_STUDY if name == "transformation" else f"delete the file and run `{made_by}` again"
            raise DataError(f"{path}, column {name!r}: {fault}; {advice}")
    return with_nan(table)


def _strange(column: pa.ChunkedArray, field: pa.Field, record: type[Record]) -> str:
    """Describe a value that no record has: an unknown word, an infinite value, or an impossible time."""
    annotation = record.model_fields[field.name].annotation
    if typing.get_origin(annotation) is Literal:
        words = typing.get_args(annotation)
        foreign = [value for value in pc.unique(column).to_pylist() if value not in words]
        return f"contains {str(foreign[0])[:60]!r}, not one of {', '.join(filter(None, words))}" if foreign else ""
    if field.name == "transformation":
        foreign = [name for name in pc.unique(column).to_pylist() if name not in (*KNOWN, ORIGINAL, None)]
        return f"contains {str(foreign[0])[:60]!r}, which is not a transformation of the study" if foreign else ""
    if pa.types.is_floating(field.type) and pc.any(pc.is_inf(column)).as_py():
        return "contains an infinite value"
    if pa.types.is_timestamp(field.type) and len(column):
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        if not _TIMES[0] <= ends["min"] <= ends["max"] <= _TIMES[1]:
            return "contains a time before 1970 or after 2200"
    return ""


def with_nan(table: pa.Table) -> pa.Table:
    """Return the table with NaN where pandas' NaN became null in Arrow."""
    columns = [pc.fill_null(c, math.nan) if pa.types.is_floating(c.type) else c for c in table.columns]
    return pa.table(columns, schema=table.schema)


def in_order(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the column with its dictionary sorted."""
    order = pc.sort_indices(column.dictionary).to_numpy()
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(places[column.indices.to_numpy()], column.dictionary.take(order))


def refuse_duplicate_keys(table: pa.Table, record: type[Record], path: Path) -> None:
    """Raise DataError if two rows have one key."""
    # A row's key as one number: each column's values are looked up once, then rows are compared as numbers.
    number, n_keys = np.zeros(table.num_rows, np.int64), 1
    for name in record.KEY:
        column = table[name].combine_chunks()
        codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
        number = number * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
        n_keys *= len(codes.dictionary)
    if n_keys > np.iinfo(np.int64).max or not pd.Index(number).is_unique:
        frame = table.select(list(record.KEY)).to_pandas()
        twice = frame[frame.duplicated()]  # False if the numbers only overflowed
        if len(twice):
            first = twice.iloc[0].to_dict()
            raise DataError(f"{path}: the key {first} appears twice; each {record.__name__} has one row")
