"""Looks after blocks of pairs: published bounds, errors and power by simulation, means unbiased by stopping."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from plumbline.statistics.estimates import Floats
from plumbline.statistics.group_sequential import (
    ALPHA,
    Blocks,
    Spending,
    bounds,
    levels,
    looks,
    lower_end,
    p_above,
    path,
    spent,
    unbiased_mean,
)

LOOKS = (20, 40, 60, 80, 100)
BLOCKS = Blocks(LOOKS, 3.0, (1, 5))
FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]
SPENDINGS: tuple[Spending, ...] = ("pocock", "quadratic", "obrien_fleming")


# Critical values of Lan and DeMets' program for five equal looks, one-sided 0.025 (also in R's ldbounds and gsDesign).
@pytest.mark.parametrize(
    ("spending", "published"),
    [
        ("obrien_fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        ("pocock", [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_bounds_are_the_published(spending: Spending, published: list[float]) -> None:
    assert bounds(FIFTHS, spending) == pytest.approx(published, abs=2e-4)


@pytest.mark.parametrize("spending", SPENDINGS)
@pytest.mark.parametrize("fractions", [[1.0], [0.1, 0.15, 0.9], FIFTHS], ids=str)
def test_all_looks_together_err_as_often_as_is_spent(spending: Spending, fractions: list[float]) -> None:
    rng, steps = np.random.default_rng(1), np.sqrt(np.diff(fractions, prepend=0.0))
    scores = np.cumsum(rng.normal(size=(200_000, len(fractions))) * steps, axis=1) / np.sqrt(fractions)
    crossed = np.logical_or.accumulate(scores >= bounds(fractions, spending), axis=1).mean(axis=0)
    errors = spent(fractions, spending)
    assert (np.abs(crossed - errors) < 4 * np.sqrt(errors / 200_000) + 1e-6).all()
    assert fractions[-1] < 1 or errors[-1] == pytest.approx(ALPHA)


@pytest.mark.parametrize("fractions", [[], [0.0, 1.0], [0.5, 0.5], [0.6, 0.4], [0.5, 1.2]], ids=str)
def test_looks_that_do_not_rise_are_refused(fractions: list[float]) -> None:
    with pytest.raises(ValueError, match="fractions of looks rise"):
        bounds(fractions, "pocock")


def decisions(questions: list[Floats], spending: Spending) -> tuple[Floats, Floats]:
    """(1 accepted, -1 rejected, 0 neither; pairs used) of each campaign, where all questions must hold."""
    limits = levels([look / 100 for look in LOOKS], spending)
    decided, used = np.zeros(len(questions[0])), np.full(len(questions[0]), 100.0)
    for look, limit in zip(LOOKS, limits, strict=True):
        above = np.max([p_above(values[:, :look], 3.0, 1.0) for values in questions], axis=0) <= limit
        below = np.min([p_above(-values[:, :look], -3.0, -5.0) for values in questions], axis=0) <= limit
        now = np.where(above, 1.0, np.where(below, -1.0, 0.0)) * (decided == 0)
        used = np.where(now != 0, look, used)
        decided += now
    return decided, used


def ratings(rng: np.random.Generator, campaigns: int, mean: float, sd: float, alike: float = 0.5) -> Floats:
    """Means of 100 pairs by three raters on 1 to 5; the numbers are of single ratings before they are rounded."""
    shared = math.sqrt(alike) * rng.normal(size=(campaigns, 100, 1))
    latent = mean + sd * (shared + math.sqrt(1 - alike) * rng.normal(size=(campaigns, 100, 3)))
    values: Floats = np.clip(np.round(latent), 1, 5).mean(axis=2)
    return values


# Mean exactly 3 in each: (values of pairs, their shares).
SKEWED = {
    "a third at the bottom": ([4.0, 1.0], [2 / 3, 1 / 3]),
    "a fifth at the bottom": ([3.5, 1.0], [0.8, 0.2]),
    "an eleventh at the bottom": ([3.2, 1.0], [10 / 11, 1 / 11]),
    "few at the bottom, others spread": ([10 / 3, 3.0, 1.0], [0.6, 0.3, 0.1]),
    "few at the top": ([8 / 3, 5.0], [6 / 7, 1 / 7]),
    "both ends": ([5.0, 1.0], [0.5, 0.5]),
}


@pytest.mark.parametrize("spending", SPENDINGS)
@pytest.mark.parametrize("name", SKEWED)
def test_skewed_ratings_at_the_threshold_are_hardly_ever_decided(name: str, spending: Spending) -> None:
    values, shares = SKEWED[name]
    assert np.dot(values, shares) == pytest.approx(3)
    pairs = np.random.default_rng(7).choice(values, size=(2000, 100), p=shares)
    decided, _ = decisions([pairs], spending)
    allowed = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / 2000)
    assert (decided == 1).mean() <= allowed
    assert (decided == -1).mean() <= allowed


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.95])
def test_ratings_of_people_at_the_threshold_are_hardly_ever_decided(alike: float) -> None:
    rng = np.random.default_rng(3)
    first, second = ratings(rng, 2000, 3.0, 1.1, alike), ratings(rng, 2000, 4.5, 0.8, alike)
    allowed = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / 2000)
    for questions in ([first], [first, second]):
        assert (decisions(questions, "quadratic")[0] == 1).mean() <= allowed


def test_a_mean_above_the_threshold_is_found_as_often_as_by_a_single_look() -> None:
    pairs = ratings(np.random.default_rng(5), 2000, 3.3, 1.05)
    decided, used = decisions([pairs], "quadratic")
    t = (pairs.mean(axis=1) - 3) / (pairs.std(axis=1, ddof=1) / 10)
    single = (stats.t.sf(t, 99) <= ALPHA).mean()
    assert single - (decided == 1).mean() <= 0.05
    assert used.mean() < 75


# Means and SDs of the single ratings in HTEB's Table 2, quality and fluency; (cross-)translation stands there once.
TABLE_2 = [
    ((4.07, 1.07), (4.04, 0.90)),
    ((4.10, 1.16), (4.40, 0.99)),
    ((3.95, 0.86), (4.52, 0.63)),
    ((4.36, 0.79), (4.82, 0.39)),
    ((3.87, 0.96), (4.20, 0.89)),
    ((3.83, 1.24), (4.97, 0.18)),
    ((4.28, 1.03), (4.20, 1.00)),
    ((4.28, 1.03), (4.20, 1.00)),
]


def latent(mean: float, sd: float) -> tuple[float, float]:
    """Mean and SD before rounding to 1 to 5 for which single ratings have these."""
    values, edges = np.arange(1, 6), np.array([-np.inf, 1.5, 2.5, 3.5, 4.5, np.inf])

    def off(moments: Floats) -> list[float]:
        shares = np.diff(stats.norm.cdf((edges - moments[0]) / math.exp(moments[1])))
        centre = shares @ values
        return [centre - mean, math.sqrt(shares @ values**2 - centre**2) - sd]

    solved = optimize.least_squares(off, [mean, math.log(sd)]).x
    return float(solved[0]), math.exp(solved[1])


def test_htebs_campaign_needs_a_third_of_its_ratings() -> None:
    rng = np.random.default_rng(11)
    shares = []
    for quality, fluency in TABLE_2:
        pairs = [ratings(rng, 400, *latent(*moments)) for moments in (quality, fluency)]
        assert [values.mean() for values in pairs] == pytest.approx([quality[0], fluency[0]], abs=0.02)
        decided, used = decisions(pairs, "quadratic")
        assert (decided == 1).mean() > 0.99
        shares.append(used.mean() / 100)
    assert np.mean(shares) <= 0.35


def test_means_after_stopping_are_unbiased_and_their_intervals_hold() -> None:
    rng, true = np.random.default_rng(2), 3.35
    pairs = np.clip(true + rng.normal(scale=0.8, size=(150, 100)), 1, 5)
    true = float(np.clip(true + np.random.default_rng(9).normal(scale=0.8, size=1_000_000), 1, 5).mean())
    _, used = decisions([pairs], "quadratic")
    plain, estimates = [], []
    for values, stop in zip(pairs, used.astype(int), strict=True):
        plain.append(values[:stop].mean())
        estimates.append(unbiased_mean(values, LOOKS.index(stop) + 1, BLOCKS))
    above = np.mean([estimate.value > true for estimate in estimates])
    assert abs(above - 0.5) <= 3 * math.sqrt(0.25 / 150)
    assert np.mean([estimate.low <= true <= estimate.high for estimate in estimates]) >= 0.95 - 3 * math.sqrt(
        0.0475 / 150
    )
    assert abs(np.mean([estimate.value for estimate in estimates]) - true) < np.mean(plain) - true


def test_without_earlier_looks_the_estimate_is_the_mean() -> None:
    values = np.tile([3.0, 4.0, 5.0, 4.0], 25)
    estimate = unbiased_mean(values, 1, Blocks((100,), 3.0, (1, 5)))
    reach = stats.norm.ppf(1 - ALPHA) * values.std(ddof=1) / 10
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((4.0, 4.0 - reach, 4.0 + reach), abs=1e-6)


def test_pairs_that_do_not_vary_say_no_more_than_what_was_not_seen_allows() -> None:
    same = np.full(20, 4.0)
    # With (2/3)^20 no pair of a third at the bottom would have been seen; were they there, the mean would be 3.
    assert float(p_above(same, 3.0, 1.0)) == pytest.approx((2 / 3) ** 20)
    assert unbiased_mean(same, 1, BLOCKS).reason == "the pairs' means do not vary"
    assert 1 < lower_end(same, 1.0, 0.025) < 4


def test_fewer_pairs_than_a_look_needs_have_no_number() -> None:
    assert math.isnan(p_above(np.full(7, 5.0), 3.0, 1.0))
    assert math.isnan(lower_end(np.full(7, 5.0), 1.0, 0.025))


@pytest.mark.parametrize(("values", "threshold"), [([3.0] * 8, 1.0), ([0.5] * 8, 3.0)])
def test_values_and_thresholds_beyond_the_scale_are_refused(values: list[float], threshold: float) -> None:
    with pytest.raises(ValueError, match="end of the scale"):
        p_above(np.array(values), threshold, 1.0)


def test_repeated_intervals_hold_their_means_and_decide_as_the_p_values_do() -> None:
    rng = np.random.default_rng(8)
    for mean in (2.5, 3.0, 3.3, 4.5):
        seen = path(ratings(rng, 1, mean, 1.0)[0], len(LOOKS), BLOCKS)
        assert ((seen.low <= seen.means) & (seen.means <= seen.high)).all()
        assert ((seen.low >= 3 - 1e-6) == (seen.above <= seen.levels)).all()
        assert ((seen.high <= 3 + 1e-6) == (seen.below <= seen.levels)).all()


def campaign(quality: Floats, fluency: Floats) -> pd.DataFrame:
    """Ratings of pairs in order, one a question."""
    parts = [
        pd.DataFrame(
            {"pair_id": range(len(values)), "order": range(1, len(values) + 1), "question": name, "value": values}
        )
        for name, values in (("quality", quality), ("fluency", fluency))
    ]
    return pd.concat(parts, ignore_index=True)


HIGH, LOW, NEAR = np.tile([4.0, 5.0], 50), np.tile([1.0, 2.0], 50), np.tile([2.0, 4.0], 50)


@pytest.mark.parametrize(
    ("quality", "fluency", "decision", "n_looks"),
    [
        (HIGH, HIGH, "accepted", 1),
        (HIGH, NEAR, "undecided", 5),
        (HIGH, LOW, "rejected", 1),
        (NEAR, LOW, "rejected", 1),
        (HIGH, np.r_[NEAR[:20], HIGH[20:]], "accepted", 2),
    ],
)
def test_all_questions_must_hold_and_one_can_reject(
    quality: Floats, fluency: Floats, decision: str, n_looks: int
) -> None:
    result = looks(campaign(quality, fluency), BLOCKS)
    assert result.decision == decision
    frame = result.frame()
    assert frame["look"].tolist() == [look for look in range(1, n_looks + 1) for _ in range(2)]
    assert result.pairs == 20 * n_looks
    # A question that held all along did not stop the campaign: its plain mean is the estimate.
    of_quality = result.unbiased["quality"]
    assert of_quality.value == pytest.approx(quality[: result.pairs].mean(), abs=0.02)
    assert of_quality.low < of_quality.value < of_quality.high
    assert set(frame["question"]) == {"quality", "fluency"}


@pytest.mark.parametrize(("rated", "pairs"), [(100, 100), (99, 80), (41, 40), (20, 20), (19, 0)])
def test_a_block_counts_once_all_its_pairs_are_rated_on_every_question(rated: int, pairs: int) -> None:
    ratings = campaign(NEAR, NEAR[:rated])
    result = looks(ratings, BLOCKS)
    assert result.pairs == pairs
    assert result.decision == "undecided"
    assert math.isnan(result.unbiased["quality"].value) == (pairs == 0)
    # The order of the rows plays no part, only that of the pairs.
    shuffled = looks(ratings.sample(frac=1, random_state=1), BLOCKS)
    pd.testing.assert_frame_equal(shuffled.frame().reset_index(drop=True), result.frame().reset_index(drop=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ends": [20, 20]}, "blocks rise from at least 8"),
        ({"ends": [5, 20]}, "blocks rise from at least 8"),
        ({"ends": []}, "blocks rise from at least 8"),
        ({"threshold": 5.0}, "threshold 5 is not within the scale"),
        ({"scale": (1, 4)}, "a value lies beyond the scale"),
        ({"order": "turn"}, "turn"),
        ({"order": "question"}, "one column cannot be two"),
    ],
    ids=str,
)
def test_looks_that_cannot_be_are_refused_in_a_line(changes: dict[str, object], message: str) -> None:
    rule: dict[str, object] = {"ends": LOOKS, "threshold": 3.0, "scale": (1, 5)}
    columns = {name: value for name, value in changes.items() if name not in rule}
    rule |= {name: value for name, value in changes.items() if name in rule}
    with pytest.raises(ValueError, match=message) as error:
        looks(campaign(HIGH, HIGH), Blocks(**rule), **columns)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_two_pairs_cannot_have_one_place() -> None:
    with pytest.raises(ValueError, match="each pair has one place"):
        looks(campaign(HIGH, HIGH).assign(order=1), BLOCKS)
