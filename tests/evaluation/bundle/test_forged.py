"""Bundles with hashes that fit and contents that cannot be: named, and never a traceback."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from evaluation.bundle.bundle import Bundle
from evaluation.bundle.source import BundleSource
from plumbline.errors import DataError
from tests.evaluation.bundle.test_bundle import Edit, renewed, said_of, with_json, with_rows


def off_scale(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(value=frame["value"].mask(frame.index == frame.index[0], 6))


def without_scores(content: bytes) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(content)).drop_columns(["score"]), sink)
    return sink.getvalue()


def other_key(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(key="0" + frame["key"].str[1:])


def other_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(text_id=frame["text_id"].mask(frame.index == frame.index[0], "f" * 64))


def people(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(simulated=False)


OUTPUTS = "outputs/paraphrasing/1337.parquet"
_REAL = {name: with_rows(people) for name in ("ratings.parquet", "control_ratings.parquet")}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"ratings.parquet": with_rows(off_scale)}, "ratings.parquet holds 6 for 'fluency'"),
        ({**_REAL, "manifest.json": with_json(lambda m: m | {"simulated": False})}, "(simulated-...) a person's"),
        ({OUTPUTS: with_rows(other_key)}, "was edited: the output of pair "),
        ({OUTPUTS: with_rows(other_text)}, "covers other texts than the data sets have"),
        ({"scores.parquet": lambda c: c[:500]}, "a member cannot be read: "),
        ({"pairs.parquet": with_rows(lambda f: f[:0])}, "which is not among the pairs"),
        ({"pair_means.parquet": with_rows(lambda f: f[:0])}, "pair_means.parquet does not follow from the ratings"),
        ({"study.json": with_json(lambda s: s | {"datasets": None})}, "study.json: datasets"),
        ({"study.json": with_json(lambda s: s | {"generator": []})}, "study.json holds no study"),
        ({"study.json": with_json(lambda s: s | {"evaluation": {"models": [{"name": []}]}})}, "holds no study"),
        ({"verdicts.json": with_json(lambda v: [v[0] | {"task_type": "x"}, *v[1:]])}, "of which there are no pairs"),
    ],
)
def test_what_fits_its_hash_and_cannot_be_is_a_fault_too(edited: Edit, changes: Any, what: str) -> None:
    assert what in said_of(renewed(edited(changes)))


def test_data_sets_without_what_is_scored_are_one_line(edited: Edit) -> None:
    whole = Bundle.open(renewed(edited({"data/sample_sts/test.parquet": with_rows(lambda f: f)})))
    assert list(BundleSource(whole, whole.study()).datasets())
    found = Bundle.open(renewed(edited({"data/sample_sts/test.parquet": without_scores})))
    with pytest.raises(DataError, match="'sample_sts' is not whole"):
        list(BundleSource(found, found.study()).datasets())


@pytest.mark.parametrize("version", ["2", 0, True, None])
def test_a_version_that_is_no_number_of_ours_is_refused(edited: Edit, version: object) -> None:
    with pytest.raises(DataError, match="its manifest is damaged"):
        Bundle.open(edited({"manifest.json": with_json(lambda said: said | {"version": version})}))
