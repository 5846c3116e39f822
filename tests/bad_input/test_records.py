"""Records in exports/ that are damaged, cut off or not ours, a row each."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.errors import PlumblineError
from plumbline.identity import identity
from plumbline.store import read_json
from plumbline.study import file_hash

from .ground import COLUMNS, Bad, Place, instead

E = "--study {s} --exports {e}"
STATUS, ACCEPT, SAMPLE = f"status {E}", f"accept {E}", f"sample {E}"
EVALUATE, REVIEW, REPORT = f"evaluate {E}", f"review {E}", f"ratings-report {E}"
SCORES = f"scores-report {E}"
GENERATE, ERRORS = f"generate {E}", f"errors {E}"
COLLECT = f"collect {E} --csv {{p}}/answers.csv --columns {COLUMNS}"
JSON: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("manifest.json", (STATUS, GENERATE, ACCEPT, REPORT)),
    ("rules.json", (STATUS, ACCEPT, REVIEW)),
    ("looks.json", (ACCEPT,)),
    ("sample.json", (ACCEPT,)),
    ("decisions.json", (REVIEW, COLLECT)),
    ("members.json", (STATUS,)),
)
DAMAGE: tuple[tuple[str, bytes], ...] = (
    ("empty", b""),
    ("cut off", b'[{"a": '),
    ("of another shape", b'"hello"'),
    ("a list of numbers", b"[1]"),
    ("a list of nothing", b"[{}]"),
    ("nested 3,000 deep", b"[" * 3000),
    ("a number of 5,000 digits", b"9" * 5000),
    ("latin-1", b'["caf\xe9"]'),
    ("nulls", bytes(20)),
)
TABLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pairs.parquet", (ACCEPT, EVALUATE, STATUS)),
    ("controls.parquet", (COLLECT, REVIEW)),
    ("ratings.parquet", (ACCEPT, STATUS)),
    ("texts.parquet", (SAMPLE, ERRORS)),
    ("transformations/paraphrasing/1337.parquet", (SAMPLE, GENERATE, ERRORS)),
    ("scores.parquet", (SCORES,)),
    ("drift.parquet", (EVALUATE,)),
)
ENDS = (-62_135_596_800_000_000, 253_402_300_799_000_000, 2**62)  # the years 1 and 9999, and one far behind
COLUMN: tuple[tuple[str, str, str, Any, str], ...] = (
    (ACCEPT, "ratings.parquet", "value", [2**62], "not on the scale"),
    (ACCEPT, "ratings.parquet", "status", ["done"], "column 'status': contains 'done', not one of submitted, draft"),
    (ACCEPT, "ratings.parquet", "rater_id", [None], "column 'rater_id': has empty cells"),
    (ACCEPT, "ratings.parquet", "seconds", [float("inf")], "column 'seconds': contains an infinite value"),
    (ACCEPT, "ratings.parquet", "submitted_at", ["soon"], "has a column of an unexpected type"),
    (ACCEPT, "ratings.parquet", "pair_id", ["x"], "the key"),
    (STATUS, "pairs.parquet", "transformation", ["rewording"], "contains 'rewording', which is not a transformation"),
    (STATUS, "pairs.parquet", "original", [None], "column 'original': has empty cells"),
    (SAMPLE, "transformations/paraphrasing/1337.parquet", "status", ["fine"], "contains 'fine', not one of ok, failed"),
    (SAMPLE, "transformations/paraphrasing/1337.parquet", "output", [None], "column 'output': has empty cells"),
    (SCORES, "scores.parquet", "score", [float("inf")], "column 'score': contains an infinite value"),
    (SCORES, "scores.parquet", "status", ["good"], "contains 'good', not one of"),
    (SCORES, "scores.parquet", "seed", ["x"], "has a column of an unexpected type"),
)


def _note(file: Path, name: str) -> None:
    """Note a damaged file in the manifest as the one that was written, so that its content is checked."""
    manifest = file.parents[name.count("/")] / "manifest.json"
    if manifest.exists() and file != manifest:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if name in content.get("kept", {}):
            with contextlib.suppress(PlumblineError):  # no JSON
                found = [file_hash(file) if file.suffix == ".parquet" else identity("kept-v1", read_json(file, ""))]
                content["kept"][name] = found
        manifest.write_text(json.dumps(content), encoding="utf-8")


def _bytes(name: str, content: bytes) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        (place.records / name).write_bytes(content)
        _note(place.records / name, name)

    return spoil


def _instead(name: str, make: Callable[[Path], object]) -> Callable[[Place], None]:
    return instead(lambda place: place.records / name, make)


def _table(name: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        file = place.records / name
        pq.write_table(change(pq.read_table(file)), file)
        _note(file, name)

    return spoil


def _filled(column: str, values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    """A table with one value in all of a column, of the value's own type where the column's does not hold it."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        try:
            cells = pa.array(values * len(table), table.schema.field(column).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            cells = pa.array(values * len(table))
        return table.set_column(place, column, cells)

    return change


def _edited(place: Place) -> None:
    """Ratings that are in order but for not being the ones that were written."""
    file = place.records / "ratings.parquet"
    pq.write_table(_filled("value", [3])(pq.read_table(file)), file)


def rows() -> Iterator[Bad]:
    for name, commands in JSON:
        damage = DAMAGE if name == JSON[0][0] else DAMAGE[:5]  # one reader reads them all
        for turn, (what, content) in enumerate(damage):
            yield Bad(f"{name}: {what}", commands[turn % len(commands)], _bytes(name, content), (name,))
    for what, make in (("a folder", Path.mkdir), ("a pipe", os.mkfifo)):
        yield Bad(f"manifest.json: {what}", STATUS, _instead("manifest.json", make), ("manifest.json",))
    for name, commands in TABLES:
        for turn, (what, content) in enumerate((("empty", b""), ("no Parquet", b"hello"), ("nulls", bytes(9999)))):
            yield Bad(f"{name}: {what}", commands[turn % len(commands)], _bytes(name, content), (name, "is damaged"))
        yield Bad(
            f"{name}: a folder",
            commands[0],
            _instead(name, Path.mkdir),
            (name, "differs from" if "/" in name else "is a folder, not a file"),
        )
        yield Bad(f"{name}: a pipe", commands[0], _instead(name, os.mkfifo), (name, "is not an ordinary file"))
        other = _table(name, lambda _: pa.table({"a": [1]}))
        yield Bad(f"{name}: of something else", commands[-1], other, (name, "lacks column"))
        twice = _table(name, lambda table: pa.concat_tables([table, table]))
        if commands[0] != SAMPLE:  # outputs and texts are read in pieces
            yield Bad(f"{name}: every row twice", commands[0], twice, (name, "appears twice"))
    for command, name, column, values, says in COLUMN:
        yield Bad(f"{name}: {column}={values[0]}", command, _table(name, _filled(column, values)), (name, says))
    for end in ENDS:
        spoil = _table("ratings.parquet", _filled("submitted_at", [end]))
        yield Bad(f"times: {end}", ACCEPT, spoil, ("column 'submitted_at': contains a time before 1970 or after 2200",))
    for value in ("yesterday", "2026-01-01T00:00:00", -1, None):
        entry = {"stages": {"generation": {"finished_at": value, "inputs": {}, "outputs": {}}}}
        spoil = _bytes("manifest.json", json.dumps(entry).encode())
        says = ("manifest.json is not a manifest of Plumbline (stages.generation.f",)
        yield Bad(f"manifest: {value}", STATUS, spoil, says)
    for name, line in (("no JSON of ours", b'{"key": "a"}\n'), ("other values", b'{"key": 1, "status": "x"}\n')):
        file = "transformations/paraphrasing/1337.journal"
        yield Bad(f"journal: {name}", GENERATE, _bytes(file, line), ("1337.journal", "line 1"))
    yield Bad("ratings: edited", ACCEPT, _edited, ("ratings.parquet differs from what was written (edited by hand",))
    yield Bad("no answer", ACCEPT, _table("ratings.parquet", lambda table: table.slice(0, 0)), ("nothing to judge",))
    drafts = _table("ratings.parquet", _filled("status", ["draft"]))
    yield Bad("drafts alone", ACCEPT, drafts, ("has no submitted rating, so there is nothing to judge",))


@pytest.mark.parametrize("bad", tuple(rows()), ids=lambda bad: bad.name)
def test_records_that_cannot_be_read_are_one_line(bad: Bad, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(bad)


def test_rules_without_a_time_zone_are_refused(assert_refused: Callable[[Bad], None]) -> None:
    rule = {"fixed_at": datetime.now(UTC).replace(tzinfo=None).isoformat(), "rules": {}, "reason": ""}
    says = ("rules.json does not have the expected content", "restore it from a copy")
    assert_refused(Bad("", STATUS, _bytes("rules.json", json.dumps([rule]).encode()), says))
