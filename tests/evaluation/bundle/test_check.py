"""Bundles with hashes that fit and contents that cannot be: named, and never a traceback."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pyarrow as pa
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


def of_large_words(content: bytes) -> bytes:
    """The same with a column that is said to hold JSON, of a type whose JSON nobody counts."""
    table = pq.read_table(io.BytesIO(content))
    at, field = table.schema.get_field_index("score"), pa.field("score", pa.large_string(), metadata={b"json": b"1"})
    sink = io.BytesIO()
    pq.write_table(table.set_column(at, field, pa.array(["[]"] * len(table), pa.large_string())), sink)
    return sink.getvalue()


def other_key(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(key="0" + frame["key"].str[1:])


def other_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(text_id=frame["text_id"].mask(frame.index == frame.index[0], "f" * 64))


def people(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(simulated=False)


def of_first(**said: Any) -> Any:
    return with_json(lambda rows: [rows[0] | said, *rows[1:]])


def of_last(**said: Any) -> Any:
    return with_json(lambda rows: [*rows[:-1], rows[-1] | said])


def in_part(part: str, **said: Any) -> Any:
    return with_json(lambda study: study | {part: study[part] | said})


def of_dataset(**said: Any) -> Any:
    return with_json(lambda m: m | {"datasets": [m["datasets"][0] | said, *m["datasets"][1:]]})


OUTPUTS = "outputs/paraphrasing/1337.parquet"
_REAL = {name: with_rows(people) for name in ("ratings.parquet", "control_ratings.parquet")}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"ratings.parquet": with_rows(off_scale)}, "ratings.parquet has a rating 6 for 'fluency'"),
        (
            {**_REAL, "manifest.json": with_json(lambda m: m | {"simulated": False})},
            "(simulated-...) as ratings by a person",
        ),
        ({OUTPUTS: with_rows(other_key)}, "was edited: the output of pair "),
        ({OUTPUTS: with_rows(other_text)}, "does not cover exactly the texts of the data sets"),
        ({"scores.parquet": lambda c: c[:500]}, "a member cannot be read: "),
        ({"pairs.parquet": with_rows(lambda f: f[:0])}, "which is not among the pairs"),
        ({"pair_means.parquet": with_rows(lambda f: f[:0])}, "pair_means.parquet does not follow from the ratings"),
        ({"study.json": with_json(lambda s: s | {"datasets": None})}, "study.json: datasets"),
        ({"study.json": with_json(lambda s: s | {"generator": []})}, "study.json is not a study"),
        ({"study.json": with_json(lambda s: s | {"evaluation": {"models": [{"name": []}]}})}, "is not a study"),
        ({"verdicts.json": with_json(lambda v: [v[0] | {"task_type": "x"}, *v[1:]])}, "which has no pairs"),
        ({"study.json": with_json(lambda s: s | {"engines": {}})}, "has an unexpected setting 'engines' in study"),
        (
            {"study.json": in_part("generator", settings={"trust_remote_code": True})},
            "has an unexpected setting 'settings' in generator",
        ),
        ({"study.json": in_part("evaluation", device="cuda:7")}, "has an unexpected setting 'device' in evaluation"),
        ({"study.json": with_json(lambda s: s | {"raters": 4})}, "study.json is not a study"),
    ],
)
def test_what_fits_its_hash_and_cannot_be_is_a_fault_too(edited: Edit, changes: Any, what: str) -> None:
    assert what in said_of(renewed(edited(changes)))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (
            {
                "rules.json": with_json(lambda _: []),
                "looks.json": with_json(lambda _: []),
                "manifest.json": with_json(
                    lambda m: m | {"study": "x", "description": "x", "generator": {"model": "x"}}
                ),
                "sample.json": of_first(failed=0, ok=84),
                "texts/sample_sts.parquet": with_rows(lambda f: f.assign(dataset="x", task_type="y")),
            },
            [
                "rules.json is empty, but the verdicts follow rule ac71a7330d",
                "looks.json is empty, although the first run that computes verdicts adds an entry",
                *(f"has another {name} than study.json" for name in ("study", "description", "generator")),
                "for paraphrasing in en: 84 usable of 84 outputs, but the bundle has 82 of 84",
                "failed_share 0.0238095, but its counts give 0",
                "has texts with dataset 'x', but the manifest says 'sample_sts'",
                "has texts with task_type 'y', but the manifest says 'sts'",
            ],
        ),
        (
            {
                "rules.json": with_json(lambda r: [r[0] | {"rules": {}}]),
                "looks.json": of_last(ratings_sha256="f" * 64, pairs_sha256="f" * 64, n_ratings=1),
                "verdicts.json": of_last(ratings_sha256="e" * 64, withdrawn_hash="f", generator_kind="vllm"),
                "sample.json": of_last(failed=1, flagged={"identical": 85}),
                "manifest.json": of_dataset(task="clustering", kind="mteb", languages=["de"]),
            },
            [
                "without 'acceptance': somebody removed it",
                *(f"has a last entry whose {name}_sha256 differs from the verdicts'" for name in ("ratings", "pairs")),
                "looks.json has a last entry with n_ratings 1, but 144 ratings count",
                "has verdicts with different ratings_sha256",
                "has a withdrawn_hash that does not match the withdrawn pairs",
                "has the generator kind 'vllm' for translation",
                "translation in en: 84 usable of 85 outputs, but the bundle has 84 of 84",
                "more outputs with an error type than the 84 usable",
                "says task clustering for sample_sts, but study.json says sts",
                "says that sample_sts is mteb, but study.json says local",
                "has texts in languages other than the manifest's de",
            ],
        ),
        ({"rules.json": with_json(lambda _: {})}, ["rules.json does not have the expected content (a list)"]),
        (
            {
                "pairs.parquet": with_rows(lambda f: f.assign(seed=7, dataset="x")),
                "sample.json": with_json(lambda s: [s[0] | {"failed": 3, "unanswered": -1}]),
                "manifest.json": with_json(lambda m: m | {"rated": ["2020-01-01"] * 2}),
            },
            [
                ", but there are no outputs of 'paraphrasing' with seed 7",
                "of data set 'x' and task ",
                "has wrong counts for paraphrasing in en: unanswered is -1, but a count cannot be negative",
                "lacks counts for translation in en",
                "gives rating dates from 2020-01-01 to 2020-01-01, but the ratings are from",
            ],
        ),
        (
            {"pairs.parquet": with_rows(lambda f: f.assign(prompt_hash="f"))},
            ["whose prompt_hash differs from that in transformations.json"],
        ),
    ],
)
def test_what_it_tells_beside_its_numbers_is_held_against_them(edited: Edit, changes: Any, what: list[str]) -> None:
    said = said_of(renewed(edited(changes)))
    assert not [one for one in what if one not in said]


def test_data_sets_without_what_is_scored_are_one_line(edited: Edit) -> None:
    whole = Bundle.open(renewed(edited({"data/sample_sts/test.parquet": with_rows(lambda f: f)})))
    assert BundleSource(whole, whole.study()).loaded
    found = Bundle.open(renewed(edited({"data/sample_sts/test.parquet": without_scores})))
    with pytest.raises(DataError, match="'sample_sts' is incomplete"):
        _ = BundleSource(found, found.study()).loaded
    found = Bundle.open(renewed(edited({"data/sample_sts/test.parquet": of_large_words})))
    with pytest.raises(DataError, match="its column 'score' is marked as JSON, but has type large_string"):
        _ = BundleSource(found, found.study()).loaded


@pytest.mark.parametrize("version", ["2", 0, True, None])
def test_a_version_that_is_no_number_of_ours_is_refused(edited: Edit, version: object) -> None:
    with pytest.raises(DataError, match="its manifest is damaged"):
        Bundle.open(edited({"manifest.json": with_json(lambda said: said | {"version": version})}))
