"""Data sets of mteb under a bundle's outputs, and bundles that say too little: made-up data of a hub of our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from evaluation.bundle import source as joining
from evaluation.bundle import tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import faults
from evaluation.bundle.export import export
from evaluation.bundle.records import DatasetSource
from evaluation.bundle.source import BundleSource
from plumbline.errors import DataError
from plumbline.records import Text
from tests.evaluation.bundle.samples import recorded_study
from tests.evaluation.bundle.test_bundle import renewed, with_json
from tests.mteb_site import site, specs

NAME = "STSBenchmark"


def source(rows: pa.Table, revision: str) -> BundleSource:
    """A bundle of which no more is there than the places and hashes of one data set's texts."""
    task, spec = site().tasks[NAME], specs()[NAME]
    said = DatasetSource(
        name=NAME, kind="mteb", task=task.task, revision=revision, texts="reference",
        n_texts=24, languages=("en",), licence="not specified",
    )  # fmt: skip
    bundle = SimpleNamespace(
        manifest=SimpleNamespace(datasets=(said,)), texts=lambda _: rows, path=Path("a.plumb"), has=lambda _: True
    )
    return BundleSource(cast("Any", bundle), cast("Any", SimpleNamespace(datasets=(spec,))))


def test_data_of_the_hub_are_joined_by_place_and_hash_and_refused_where_they_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = site().tasks[NAME]
    monkeypatch.setattr(joining, "load_mteb", lambda _: task)
    rows = tables.of_records((text.model_copy(update={"text": ""}) for text in task.texts()), Text)
    (found,) = source(rows, task.revision).loaded
    assert found is task and rows.num_rows == 24
    ids = rows["text_id"].to_pylist()
    swapped = rows.set_column(rows.schema.get_field_index("text_id"), "text_id", pa.array([ids[1], ids[0], *ids[2:]]))
    for other, revision, what in (
        (rows, task.revision[:-1] + "x", "but the bundle has .*; use the revision or file"),
        (swapped, task.revision, "item 0, sentence1 differs from texts/STSBenchmark.parquet"),
        (rows.slice(0, 23), task.revision, "item 11, sentence2 differs from"),
        (pa.concat_tables([rows, rows.slice(0, 1)]), task.revision, "lacks texts of texts/STSBenchmark.parquet"),
    ):
        with pytest.raises(DataError, match=what):
            _ = source(other, revision).loaded


def test_verdicts_that_are_lacking_and_another_scale_are_named(edited: Callable[..., Path], tmp_path: Path) -> None:
    def said(changes: dict[str, Callable[[bytes], bytes]]) -> str:
        return "\n".join(f"{member} {what}" for member, what in faults(Bundle.open(renewed(edited(changes)))))

    none = said({"verdicts.json": lambda _: b"[]"})
    assert "verdicts.json does not follow from the ratings" in none, none
    wider = said({"rubric.json": with_json(lambda rubric: rubric | {"scale": [*rubric["scale"], 6]})})
    assert "and between them all points or none" in wider, wider
    study = recorded_study(tmp_path)
    (study.folder / "verdicts.json").unlink()
    with pytest.raises(DataError, match=r"verdicts\.json does not exist yet; run"):
        export(study, tmp_path / "none.plumb")
    assert not (tmp_path / "none.plumb").exists()
