"""The columns of tables: a record's types in Arrow, and what of a table that was read no record has."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.errors import DataError
from plumbline.records import Record
from plumbline.study.judged import KNOWN, ORIGINAL

_OF_NO_STUDY = "bring it back into the study's `transformations`, or the file from a copy"
_TIMES = (0, 7_258_118_400_000_000)  # microseconds: 1970 to 2200


def arrow_schema(record: type[Record], frame: pd.DataFrame | None = None) -> pa.Schema:
    """The Parquet columns of a record, from its annotations; of a frame without those `UNSAID` that say nothing in it.

    So a table in which nothing is said in a column that came later is the same file, with the same hash, as before;
    and so is one of whole numbers in a column that may hold others.
    """
    fields = record.model_fields
    unsaid = set[str]()
    if frame is not None:
        unsaid = {name for name in record.UNSAID if name not in frame or (frame[name] == fields[name].default).all()}
    columns = {name: field for name, field in fields.items() if name not in unsaid}
    schema = pa.schema([pa.field(name, *_arrow_type(field.annotation)) for name, field in columns.items()])
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
    """The columns of a record that hold whole numbers or others."""
    return [name for name, field in record.model_fields.items() if {int, float} <= {*typing.get_args(field.annotation)}]


def is_whole(values: pd.Series) -> bool:
    """Whether all numbers of a column are whole, as far as there are any."""
    numbers = pd.to_numeric(values).dropna().to_numpy(np.float64)
    return bool((numbers == np.round(numbers)).all())


def with_decimals(schema: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """The schema with these columns as numbers of any kind."""
    return pa.schema([field.with_type(pa.float64()) if field.name in columns else field for field in schema])


def with_decimals_of(schema: pa.Schema, record: type[Record], present: pa.Schema) -> pa.Schema:
    """The schema of a record for a table with the columns `present`: their numbers stay as they are."""
    names = [name for name in numeric(record) if name in present.names]
    return with_decimals(schema, [name for name in names if pa.types.is_floating(present.field(name).type)])


def with_words(schema: pa.Schema, words: Collection[str]) -> pa.Schema:
    """The schema with dictionaries for these columns of text."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(encoded) if field.name in words else field for field in schema])


def cast_table(table: pa.Table, schema: pa.Schema, record: type[Record], path: Path, made_by: str) -> pa.Table:
    """The columns in the schema's order and types; those that the file lacks hold their default."""
    for field in schema:
        if field.name not in table.schema.names:
            default = record.model_fields[field.name].get_default(call_default_factory=True)
            column = pa.array([default], field.type).take(pa.array(np.zeros(table.num_rows, np.int64)))
            table = table.append_column(field, column)
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
            advice = _OF_NO_STUDY if name == "transformation" else f"delete the file and run `{made_by}` again"
            raise DataError(f"{path}, column {name!r}: {wrong}; {advice}")
    return with_nan(table)


def _strange(column: pa.ChunkedArray, field: pa.Field, record: type[Record]) -> str:
    """What in a column no record has: words that are none of its own, numbers and times without end."""
    annotation = record.model_fields[field.name].annotation
    if typing.get_origin(annotation) is Literal:
        words = typing.get_args(annotation)
        foreign = [value for value in pc.unique(column).to_pylist() if value not in words]
        return f"holds {str(foreign[0])[:60]!r}, which is none of {', '.join(filter(None, words))}" if foreign else ""
    if field.name == "transformation":
        foreign = [name for name in pc.unique(column).to_pylist() if name not in (*KNOWN, ORIGINAL, None)]
        return f"holds {str(foreign[0])[:60]!r}, which is not a transformation of the study" if foreign else ""
    if pa.types.is_floating(field.type) and pc.any(pc.is_inf(column)).as_py():
        return "holds a number without end"
    if pa.types.is_timestamp(field.type) and len(column):
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        if not _TIMES[0] <= ends["min"] <= ends["max"] <= _TIMES[1]:
            return "holds a time before 1970 or after 2200"
    return ""


def with_nan(table: pa.Table) -> pa.Table:
    """The table with NaN where pandas' NaN became null on its way to Arrow."""
    columns = [pc.fill_null(c, math.nan) if pa.types.is_floating(c.type) else c for c in table.columns]
    return pa.table(columns, schema=table.schema)


def in_order(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The column with its dictionary sorted."""
    order = pc.sort_indices(column.dictionary).to_numpy()
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(places[column.indices.to_numpy()], column.dictionary.take(order))


def refuse_duplicate_keys(table: pa.Table, record: type[Record], path: Path) -> None:
    """Raise DataError where two rows have one key."""
    # A row's key as one number: what stands in each column is looked up once, and rows are compared as numbers.
    number, n_keys = np.zeros(table.num_rows, np.int64), 1
    for name in record.KEY:
        column = table[name].combine_chunks()
        codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
        number = number * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
        n_keys *= len(codes.dictionary)
    if n_keys > np.iinfo(np.int64).max or not pd.Index(number).is_unique:
        frame = table.select(list(record.KEY)).to_pandas()
        twice = frame[frame.duplicated()]  # none where the numbers only ran over
        if len(twice):
            first = twice.iloc[0].to_dict()
            raise DataError(f"{path}: the key {first} appears twice; each {record.__name__} has one row")
