"""Systems side by side: an independent computation, real ratings, and simulated error rates."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from annotation import side_by_side
from plumbline.statistics.estimates import p_with_raters
from plumbline.study import ROOT
from tests.annotation.imports.test_real_people import NUMBERS
from tests.scale import scaled

CASE = ROOT.parent / "shared" / "cases" / "systems" / "ratings.csv"


def sulem(*systems: str) -> pd.DataFrame:
    """Real ratings of meaning: 70 sentences by each of 28 systems, or of those named, three raters each."""
    frame = pd.read_csv(NUMBERS / "sulem2018.csv")
    renamed = {"sentence": "original", "annotator": "rater_id", "meaning": "value"}
    return frame[frame["system"].isin(systems or frame["system"])].rename(columns=renamed).assign(question="meaning")


def simulated(rng: np.random.Generator, shifts: tuple[float, ...], originals: int, raters: int = 3) -> pd.DataFrame:
    """Ratings from 1 to 5: originals, outputs and raters vary, and each rater leans to one side on every output."""
    hard, lean = rng.normal(0, 0.7, (originals, 1)), rng.normal(0, 0.4, raters)
    values = np.empty((len(shifts), originals, raters))
    for system, shift in enumerate(shifts):
        quality = 3.8 + shift + hard + rng.normal(0, 0.8, (originals, 1))
        values[system] = np.clip(np.round(quality + lean + rng.normal(0, 0.6, (originals, raters))), 1, 5)
    system, original, rater = np.indices(values.shape).reshape(3, -1)
    columns = {"system": system, "original": original, "rater_id": rater, "value": values.ravel()}
    return pd.DataFrame(columns).assign(question="quality")


def test_real_systems_differ_as_an_independent_computation_says() -> None:
    ratings = sulem()
    found = side_by_side(ratings)
    means = ratings.pivot_table(index="original", columns="system", values="value")
    assert found.systems["mean"].to_numpy() == pytest.approx(means.mean()[found.systems["system"]], abs=1e-12)
    assert found.systems["mean"].is_monotonic_decreasing
    assert (found.systems["n"] == 70).all() and len(found.differences) == 28 * 27 / 2
    p = []
    for row in found.differences.itertuples():
        difference = means[row.system] - means[row.other]
        too_few = (difference.abs() > 1e-9).sum() < 6
        test = stats.ttest_rel(means[row.system], means[row.other])
        p.append(math.nan if too_few else test.pvalue)
        ends = (math.nan, math.nan) if too_few else test.confidence_interval()
        assert (row.low, row.high) == pytest.approx(tuple(ends), abs=1e-9, nan_ok=True)
        assert bool(row.reason) == too_few
        assert row.difference == pytest.approx(difference.mean())
        shares = (difference > 1e-9).mean(), (difference.abs() <= 1e-9).mean(), (difference < -1e-9).mean()
        assert (row.better, row.equal, row.worse) == pytest.approx(shares)
    assert found.differences["p"].to_numpy() == pytest.approx(p, abs=1e-9, nan_ok=True)
    tested = found.differences.dropna(subset="p")
    assert len(tested) > 370
    assert tested["p_holm"].to_numpy() == pytest.approx(multipletests(tested["p"], method="holm")[1], abs=1e-9)
    # Ranks and letters follow from who is told apart.
    apart = found.differences[found.differences["p_holm"] < 0.05]
    for row in found.systems.itertuples():
        assert row.rank_low == 1 + (apart["other"] == row.system).sum()
        assert row.rank_high == 28 - (apart["system"] == row.system).sum()
    groups = dict(zip(found.systems["system"], found.systems["group"], strict=True))
    told = {frozenset(pair) for pair in apart[["system", "other"]].itertuples(index=False, name=None)}
    for first, second in itertools.combinations(means.columns, 2):
        assert bool(set(groups[first]) & set(groups[second])) == (frozenset((first, second)) not in told)


def test_systems_are_compared_on_the_originals_that_they_share() -> None:
    ratings = sulem("DSS", "HYBRID", "Moses")
    some = ratings[(ratings["system"] != "Moses") | (ratings["original"] % 2 == 0)]
    found = side_by_side(some)
    even = side_by_side(ratings[ratings["original"] % 2 == 0])
    pd.testing.assert_frame_equal(found.systems[["system", "n", "mean"]], even.systems[["system", "n", "mean"]])
    n = {frozenset((row.system, row.other)): row.n for row in found.differences.itertuples()}
    assert n[frozenset(("DSS", "HYBRID"))] == 70 and n[frozenset(("DSS", "Moses"))] == even.systems["n"].iloc[0]
    apart = side_by_side(ratings.assign(original=ratings["original"].astype(str) + ratings["system"]))
    assert apart.systems["mean"].isna().all() and set(apart.differences["reason"]) == {
        "no original has enough ratings for both"
    }
    assert apart.differences[["difference", "low", "p", "p_holm", "better"]].isna().all(axis=None)


def test_lower_can_be_better_and_excluded_ratings_do_not_count() -> None:
    ratings = sulem("DSS", "HYBRID")
    usual, turned = side_by_side(ratings), side_by_side(ratings, lower_is_better=["meaning"])
    assert list(usual.systems["system"]) == list(turned.systems["system"])[::-1]
    first, second = usual.differences.iloc[0], turned.differences.iloc[0]
    assert (first["difference"], first["p"]) == pytest.approx((-second["difference"], second["p"]))
    assert first["better"] == second["better"] and list(turned.systems["rank_high"]) == [1, 2]
    marked = ratings.assign(excluded=np.where(ratings["rater_id"] == ratings["rater_id"].iloc[0], "careless", ""))
    left = side_by_side(ratings[ratings["rater_id"] != ratings["rater_id"].iloc[0]])
    assert side_by_side(marked).differences["difference"].iloc[0] == left.differences["difference"].iloc[0]


def test_raters_as_a_sample_widen_the_interval() -> None:
    ratings = sulem("DSS", "HYBRID")
    row = side_by_side(ratings, over="pairs_and_raters").differences.iloc[0]
    means = ratings.pivot_table(index="original", columns="system", values="value")
    over_items = float((means["DSS"] - means["HYBRID"]).var(ddof=1)) / 70
    by_rater = ratings.pivot_table(index="rater_id", columns="system", values="value")
    over_raters = float((by_rater["DSS"] - by_rater["HYBRID"]).var(ddof=1)) / len(by_rater)
    times = (over_items * stats.t.ppf(0.975, 69) + over_raters * stats.t.ppf(0.975, 2)) / (over_items + over_raters)
    assert row["high"] - row["difference"] == pytest.approx(times * math.sqrt(over_items + over_raters), rel=1e-3)
    # p is the level of the interval that ends at 0: at Holm's levels too, where few raters' quantiles are much larger.
    tail = 1 - row["p"] / 2
    variances, quantiles = (over_items, over_raters), (stats.t.ppf(tail, 69), stats.t.ppf(tail, 2))
    reach = np.dot(variances, quantiles) / math.sqrt(sum(variances))
    assert reach == pytest.approx(abs(row["difference"]), rel=1e-6)
    for level in (0.05, 0.05 / 45):
        quantiles = stats.t.ppf(1 - level / 2, 69), stats.t.ppf(1 - level / 2, 2)
        limit = 0.3 * quantiles[0] + 0.7 * quantiles[1]
        assert p_with_raters(limit, (0.3, 0.7), (69, 2)) == pytest.approx(level)
        beyond, within = (p_with_raters(times * limit, (0.3, 0.7), (69, 2)) for times in (-1.01, 0.99))
        assert beyond < level < within
    one_each = ratings.assign(rater_id=ratings["rater_id"].astype(str) + ratings["system"])
    assert "too few raters" in side_by_side(one_each, over="pairs_and_raters").differences["reason"].iloc[0]


def test_p_with_any_number_of_raters_is_the_level_of_the_interval_that_ends_at_zero() -> None:
    """Of 1.5 to 40 effective raters, whose work may differ, and of any difference."""
    rng = np.random.default_rng(5)
    for _ in range(400):
        raters = rng.choice([0.5, 1.994, 2, 2.5, 3, 5, rng.uniform(0.5, 40)])
        freedoms, share = (rng.uniform(5, 300), raters), rng.random()
        for tail in (0.4, 0.2, 0.025, 1e-3, 1e-8, 1e-30):
            reach = share * -stats.t.ppf(tail, freedoms[0]) + (1 - share) * -stats.t.ppf(tail, freedoms[1])
            assert p_with_raters(reach, (share, 1 - share), freedoms) == pytest.approx(2 * tail, rel=1e-6)
    assert p_with_raters(0.3, (1, 1), (39, 3)) == pytest.approx(0.775, abs=1e-3)
    assert p_with_raters(1e300, (1, 1), (39, 3)) < 1e-40


def test_equal_systems_are_seldom_told_apart_however_many_raters_there_are() -> None:
    """Raters differ in how they like systems: in 5% of studies at most is p below 0.05, as the interval excludes 0."""
    rng, false, excluding = np.random.default_rng(4), 0, 0
    for run in range(runs := 80):
        raters = 4 + 2 * (run % 2)
        likes = rng.normal(0, 0.5, (raters, 2))
        values = likes[:, None] + rng.normal(0, 0.7, (raters, 30, 2))
        rater, original, system = np.indices(values.shape).reshape(3, -1)
        columns = {"rater_id": rater, "original": original, "system": system, "value": values.ravel()}
        ratings = pd.DataFrame(columns).assign(question="q")
        row = side_by_side(ratings, over="pairs_and_raters").differences.iloc[0]
        false += row["p"] < 0.05
        excluding += not row["low"] <= 0 <= row["high"]
    assert false == excluding <= 0.05 * runs + 2 * math.sqrt(0.05 * 0.95 * runs)


def test_few_differing_originals_have_no_interval() -> None:
    values = np.tile([3.0, 4.0], 10)
    rows = [pd.DataFrame({"system": name, "original": range(20), "rater_id": 1, "value": values}) for name in "AB"]
    ratings = pd.concat(rows, ignore_index=True).assign(question="quality")
    ratings.loc[(ratings["system"] == "A") & (ratings["original"] < 5), "value"] += 1
    row = side_by_side(ratings).differences.iloc[0]
    assert row["difference"] == 0.25 and math.isnan(row["low"]) and math.isnan(row["p"])
    assert row["reason"] == "the two differ on 5 originals, and fewer than 6 say too little"
    every = ratings.assign(value=ratings["value"].where(ratings["system"] == "B", ratings["value"] + 1))
    every.loc[every["system"] == "A", "value"] = every.loc[every["system"] == "B", "value"].to_numpy() + 1
    assert side_by_side(every).differences["reason"].iloc[0] == "all differences are equal, so there is no interval"
    with pytest.raises(ValueError, match="'rater_id' is missing"):
        side_by_side(ratings.assign(rater_id=np.nan))


def test_intervals_cover_and_equal_systems_are_rarely_told_apart() -> None:
    """Three raters who lean, ordinal answers near the top of the scale, 24 originals; systems of three qualities."""
    runs, rng = scaled(50, 2000), np.random.default_rng(53)
    true = simulated(np.random.default_rng(1), (0.0, -0.5), 200_000, raters=3).groupby("system")["value"].mean()
    covered, false, wrong = 0, 0, 0
    for _ in range(runs):
        row = side_by_side(simulated(rng, (0.0, -0.5), 24)).differences.iloc[0]
        sign = 1 if row["system"] == 0 else -1
        covered += row["low"] <= sign * (true[0] - true[1]) <= row["high"]
        alike = side_by_side(simulated(rng, (0.0, 0.0, 0.0), 24))
        false += (alike.differences["p_holm"] < 0.05).any()
        wrong += (alike.systems["rank_low"] > 1).any()
    assert covered / runs > 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)
    assert false / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert wrong == false


TOP = 1.3  # points more than usual: most ratings are 5


def uneven(rng: np.random.Generator, shifts: tuple[float, ...], originals: int) -> pd.DataFrame:
    """As `simulated`, but most ratings are at the top; the first system has 60% of the originals, and one of three
    ratings of half of the outputs is missing."""
    ratings = simulated(rng, tuple(TOP + shift for shift in shifts), originals)
    ratings = ratings[(ratings["system"] > 0) | (ratings["original"] < 0.6 * originals)]
    missing = rng.integers(0, 6, len(shifts) * originals)[ratings["system"] * originals + ratings["original"]]
    return ratings[ratings["rater_id"] != missing]


def test_intervals_cover_with_unequal_numbers_and_equal_systems_are_rarely_told_apart() -> None:
    """The true difference is over originals that all systems could have had; Holm's correction is for three of them."""
    runs, rng = scaled(50, 1000), np.random.default_rng(61)
    large = simulated(np.random.default_rng(2), (TOP, TOP - 0.5), 20_000, raters=60)
    true = large.groupby("system")["value"].mean()
    assert (large["value"] == 5).mean() > 0.5
    covered = false = 0
    for _ in range(runs):
        row = side_by_side(uneven(rng, (0.0, -0.5), 40)).differences.iloc[0]
        sign = 1 if row["system"] == 0 else -1
        covered += row["low"] <= sign * (true[0] - true[1]) <= row["high"]
        assert row["n"] == 24
        false += (side_by_side(uneven(rng, (0.0, 0.0, 0.0), 40)).differences["p_holm"] < 0.05).any()
    assert covered / runs > 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)
    assert false / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.skipif(not CASE.exists(), reason="the case is not beside the checkout")
def test_two_systems_by_three_raters_differ_as_computed_elsewhere() -> None:
    """Means, difference and p of an independent computation; its interval, by resampled originals, is nearly ours."""
    ratings = pd.read_csv(CASE).rename(columns={"source": "original", "rater": "rater_id"})
    elsewhere = {"meaning": (3.72, 3.16, 0.57, 0.21, 0.96, 0.0070), "fluency": (3.80, 3.17, 0.63, 0.28, 1.00, 0.0024)}
    for question, (mean, other, difference, low, high, p) in elsewhere.items():
        found = side_by_side(ratings.assign(question=question), value=question)
        row = found.differences.iloc[0]
        assert found.systems[["system", "mean"]].to_numpy().tolist() == [
            ["A", pytest.approx(mean, abs=5e-3)], ["B", pytest.approx(other, abs=5e-3)],
        ]  # fmt: skip
        assert (row["n"], row["difference"]) == (30, pytest.approx(difference, abs=5e-3))
        assert row["p"] == row["p_holm"] == pytest.approx(p, abs=5e-5)
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.05)
        if question == "meaning":
            assert (row["low"], row["high"]) == pytest.approx((0.17, 0.97), abs=5e-3)


def test_real_systems_with_swapped_names_are_rarely_told_apart() -> None:
    """Real ratings of two systems, whose names are swapped on half of the sentences: no difference is left."""
    runs, rng, ratings = scaled(50, 2000), np.random.default_rng(8), sulem("DSS", "HYBRID")
    originals, false = ratings["original"].unique(), 0
    for _ in range(runs):
        swapped = ratings["original"].isin(originals[rng.random(len(originals)) < 0.5])
        names = ratings["system"].where(~swapped, ratings["system"].map({"DSS": "HYBRID", "HYBRID": "DSS"}))
        false += side_by_side(ratings.assign(system=names)).differences["p"].iloc[0] < 0.05
    assert false / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
