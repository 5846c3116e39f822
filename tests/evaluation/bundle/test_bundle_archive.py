"""Small bundles that would be large in memory: refused in one line, within 1 GB."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.study import ROOT
from tests import forks
from tests.evaluation.bundle.test_bundle import Edit, renewed

OUTPUTS = "outputs/paraphrasing/1337.parquet"
MOST = 1_000_000  # KB
PROGRAM = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
from evaluation.bundle.check import open_checked
from plumbline.errors import DataError
try:
    open_checked(pathlib.Path(sys.argv[1]))
    print("held")
except DataError as error:
    print(error)
status = pathlib.Path("/proc/self/status").read_text()  # `getrusage` has the most of the process that started it too
print(status.split("VmHWM:")[1].split()[0])
"""


def parquet(table: pa.Table, **how: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", store_schema=False, **how)
    return sink.getvalue()


def first_row(content: bytes, rows: int, **columns: pa.Array) -> pa.Table:
    """The first row of a table so many times, its words in dictionaries, with other columns in their place."""
    table = pq.read_table(io.BytesIO(content)).slice(0, 1)
    places = pa.nulls(rows, pa.int32()).fill_null(0)
    written = {}
    for field in table.schema:
        cells = table[field.name].combine_chunks()
        words = pa.types.is_string(field.type)
        written[field.name] = pa.DictionaryArray.from_arrays(places, cells) if words else cells.take(places)
    return pa.table(written | columns)


def dictionary_bomb(content: bytes) -> bytes:
    word = pa.DictionaryArray.from_arrays(pa.nulls(100_000, pa.int32()).fill_null(0), pa.array(["x" * 300_000]))
    return parquet(first_row(content, 100_000, output=word))


def rows_bomb(content: bytes) -> bytes:
    return parquet(first_row(content, 3_000_000))


def page_bomb(content: bytes) -> bytes:
    return parquet(first_row(content, 10, output=pa.array(["x" * 50_000_000] * 10)), use_dictionary=False)


def prefix_bomb(content: bytes) -> bytes:
    table = first_row(content, 10_000, output=pa.array(["x" * 20_000] * 10_000))
    return parquet(table, use_dictionary=False, column_encoding={"output": "DELTA_BYTE_ARRAY"})


def foreign_bomb(content: bytes) -> bytes:
    """A column that no record has, which need not be read."""
    table = pq.read_table(io.BytesIO(content))
    word = pa.DictionaryArray.from_arrays(pa.nulls(len(table), pa.int32()).fill_null(0), pa.array(["x" * 90_000_000]))
    return parquet(table.append_column("foreign", word))


@pytest.mark.parametrize(
    ("member", "bomb", "says"),
    [
        (OUTPUTS, dictionary_bomb, f"needs more memory for {OUTPUTS} than a bundle of its size may use"),
        ("ratings.parquet", rows_bomb, "needs more memory for ratings.parquet than a bundle of its size may use"),
        (OUTPUTS, page_bomb, f"needs more memory for {OUTPUTS} than a bundle of its size may use"),
        (OUTPUTS, prefix_bomb, "a column has an unexpected encoding"),
        ("pairs.parquet", foreign_bomb, "held"),
        ("study.json", lambda _: b"[" * 900 + b"]" * 900, "has study.json with JSON nested too deeply"),
        ("verdicts.json", lambda _: b"[" + b"[]," * 8_000_000 + b"[]]", "needs more memory for verdicts.json"),
        ("rubric.json", lambda _: b'{"x": "' + b"x" * 63_000_000 + b'"}', "rubric.json"),
        ("report/ratings.html", lambda _: b"x" * 500_000_000, "are read from a file of its size"),
    ],
)
def test_a_bundle_that_would_be_large_in_memory_is_one_line(
    edited: Edit, member: str, bomb: Callable[[bytes], bytes], says: str
) -> None:
    path: Path = renewed(edited({member: bomb}), packed=True)
    assert path.stat().st_size < 1_500_000
    done = forks.run([sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    line, used = done.stdout.splitlines()
    assert says in line
    assert int(used) < MOST
