"""Adjusted means: those of another implementation, of designs with a known answer, and their coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from plumbline.statistics.severity import severity


def campaign(rng: np.random.Generator, n_items: int = 60, n_raters: int = 8, rater_sd: float = 0.6) -> pd.DataFrame:
    """Two systems, of means 3 and 3.5, whose items go to three raters each; the first half rate more of the first."""
    item = np.repeat(np.arange(n_items), 3)
    rater = np.empty(len(item), np.int64)
    for number in range(n_items):
        weights = np.where((np.arange(n_raters) < n_raters // 2) == (number % 2 == 0), 4.0, 1.0)
        rater[3 * number : 3 * number + 3] = rng.choice(n_raters, 3, replace=False, p=weights / weights.sum())
    severities = rng.normal(0, rater_sd, n_raters)
    noise = rng.normal(0, 0.7, len(item))
    values = 3 + item % 2 / 2 + rng.normal(0, 0.6, n_items)[item] + severities[rater] + noise
    frame = pd.DataFrame(
        {"pair_id": item, "rater_id": rater, "value": values, "system": np.array(["a", "b"])[item % 2]}
    )
    return frame.assign(severity=severities[rater])


def test_means_and_variances_are_those_of_another_implementation() -> None:
    from statsmodels.regression.mixed_linear_model import MixedLM

    ratings = campaign(np.random.default_rng(5), n_items=30)
    parts = {"items": "0 + C(pair_id)", "raters": "0 + C(rater_id)"}
    theirs = MixedLM.from_formula(
        "value ~ 0 + system", ratings.assign(all=1), groups="all", vc_formula=parts, re_formula="0"
    ).fit(reml=True)
    ours = severity(ratings, "system")
    assert ours.means["adjusted"].to_numpy() == pytest.approx(theirs.fe_params.to_numpy(), abs=2e-3)
    assert (ours.item_sd**2, ours.rater_sd**2) == pytest.approx(tuple(theirs.vcomp), abs=5e-3)
    assert ours.error_sd**2 == pytest.approx(theirs.scale, abs=5e-3)


def test_where_everybody_rated_everything_nothing_is_adjusted() -> None:
    rng = np.random.default_rng(2)
    rows = [(item, rater, "ab"[item % 2], rng.normal(rater / 3)) for item in range(20) for rater in range(4)]
    means = severity(pd.DataFrame(rows, columns=["pair_id", "rater_id", "system", "value"]), "system").means
    assert means["adjusted"].to_numpy() == pytest.approx(means["plain"].to_numpy())
    assert (means["low"] < means["adjusted"]).all() and means["items"].tolist() == [10, 10]


def test_adjusted_means_are_nearer_the_truth_and_their_intervals_hold() -> None:
    rng, covered, of_raters, errors = np.random.default_rng(11), [], [], []
    for _ in range(200):
        ratings = campaign(rng)
        result = severity(ratings, "system")
        truth = np.array([3.0, 3.5])
        covered.append(((result.means["low"] <= truth) & (truth <= result.means["high"])).mean())
        errors.append(np.diff(result.means[["plain", "adjusted"]].to_numpy(), axis=0)[0] - 0.5)
        true = ratings.groupby("rater_id")["severity"].first().reindex(result.raters.index)
        of_raters.append(((result.raters["low"] <= true) & (true <= result.raters["high"])).mean())
    plain, adjusted = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    assert adjusted < 0.85 * plain
    assert np.mean(covered) > 0.91 and np.mean(of_raters) > 0.91


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(1, "a", 1.0), (2, "a", 2.0)], "only one rater"),
        ([(1, "a", 1.0), (2, "b", 2.0)], "no item has two ratings"),
        ([(1, "a", 1.0), (1, "b", 1.0)], "all ratings are equal"),
        ([(1, "a", 1.0), (1, "b", 2.0)], "too few ratings"),
    ],
)
def test_what_cannot_be_adjusted_says_why(rows: list[tuple[int, str, float]], reason: str) -> None:
    means = severity(pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"])).means
    assert means["adjusted"].isna().all() and reason in means["reason"].iloc[0]
    assert means["plain"].iloc[0] == np.mean([value for *_, value in rows])


def test_an_item_is_in_one_group() -> None:
    frame = pd.DataFrame({"pair_id": [1, 1], "rater_id": ["a", "b"], "value": [1, 2], "system": ["x", "y"]})
    with pytest.raises(ValueError, match="item 1 is in 2 groups"):
        severity(frame, "system")
