"""Intraclass correlations and z-scores: printed values, those of real people, and what has no value."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from plumbline.statistics.reliability import Form, icc, z_scores
from plumbline.study import ROOT

PEOPLE = ROOT.parent / "shared" / "data" / "people" / "simplicity_da"


def long(table: list[list[float]]) -> pd.DataFrame:
    rows = [(item, rater, value) for item, row in enumerate(table) for rater, value in enumerate(row)]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"])


@pytest.mark.parametrize("form", ["1", "1k"])
def test_the_interval_of_unequal_numbers_covers_what_it_says(form: Form) -> None:
    rng, truth, hits = np.random.default_rng(7), {"1": 0.5, "1k": math.nan}, 0
    for _ in range(200):
        counts = rng.integers(2, 6, 40)
        item = np.repeat(np.arange(40), counts)
        values = rng.normal(size=40)[item] + rng.normal(size=len(item))
        k = (len(item) - (counts**2).sum() / len(item)) / 39
        truth["1k"] = k / (k + 1)
        ratings = pd.DataFrame({"pair_id": item, "rater_id": range(len(item)), "value": values})
        estimate = icc(ratings, form)
        hits += estimate.low <= truth[form] <= estimate.high
    assert 0.92 <= hits / 200 <= 0.98


@pytest.mark.parametrize(
    ("table", "form", "reason"),
    [
        ([[1, 2]], "1", "fewer than two items"),
        ([[1], [2], [3]], "1", "no item with two ratings"),
        ([[2, 2], [2, 2]], "3", "all ratings are equal"),
        ([[1, 2], [2]], "2", "some are missing"),
        ([[1, 3], [3, 1], [2, 2]], "1k", "all items have the same mean"),
        ([[1, 3], [3, 1], [2, 2]], "2", "all items have the same mean"),
        ([[0.1, 0.3], [0.3, 0.1], [0.2, 0.2]], "3k", "all items have the same mean"),
        ([[1, 5.2], [5, 1], [3, 3]], "2k", "items differ less than expected by chance"),
    ],
)
def test_what_has_no_correlation_says_why(table: list[list[float]], form: Form, reason: str) -> None:
    estimate = icc(long(table), form)
    assert math.isnan(estimate.value) and reason in estimate.reason


def test_raters_who_agree_fully_correlate_fully() -> None:
    for form in get_args(Form):
        estimate = icc(long([[1, 1], [2, 2], [4, 4]]), form)
        assert estimate.value == 1 and math.isnan(estimate.low) and "spread is unknown" in estimate.reason


def test_a_rater_without_spread_has_no_z_scores() -> None:
    scores = z_scores(pd.DataFrame({"rater_id": ["a", "b", "a", "b"], "value": [1, 3, 2, 3]}, index=[7, 8, 9, 10]))
    assert scores.loc[[7, 9]].tolist() == [-1, 1] and scores.loc[[8, 10]].isna().all()


def test_equal_ratings_have_no_z_scores_whatever_their_rounding() -> None:
    assert z_scores(pd.DataFrame({"rater_id": ["a"] * 7, "value": [0.7] * 7})).isna().all()


@pytest.mark.data
@pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout")
def test_the_numbers_of_simplicity_ratings_come_out() -> None:
    ratings = pd.read_csv(PEOPLE / "simplicity_DA_ratings.csv")
    ratings["item"] = ratings["sent_id"].astype(str) + " " + ratings["sys_name"]
    ratings["z"] = z_scores(ratings, value="simplicity")
    single, mean = (icc(ratings, form, pair="item", value="z") for form in ("1", "1k"))
    assert (single.value, single.low, single.high) == pytest.approx((0.386, 0.36, 0.42), abs=0.005)
    assert mean.value == pytest.approx(0.904, abs=0.0005)
    structural = pd.read_csv(PEOPLE / "structural_simplicity_ratings.csv")
    structural["item"] = structural["sent_id"].astype(str) + " " + structural["sys_name"]
    forms: dict[Form, float] = {"1": 0.465, "2": 0.476, "3": 0.506, "1k": 0.723}
    for form, value in forms.items():
        assert icc(structural, form, pair="item", value="structural_simplicity").value == pytest.approx(
            value, abs=0.0006
        )
