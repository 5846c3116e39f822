"""Prediction-powered means: against their printed formula and survey sampling, and in thousands of campaigns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from plumbline.statistics.estimates import Floats, over_pairs, over_pairs_and_raters
from plumbline.statistics.prediction_powered import Pool, PoweredMean, RatedPairs, filled, powered
from tests.annotation.judges.made_judges import JUDGES, Judge, Queue, failing, fixed, good, useless, usual
from tests.scale import FULL, scaled

ALIKE = [Queue(100, early=0.0, late=0.0)]  # one stratum, even raters: the interval is exact
FEW = [Queue(30, early=0.0, late=0.0)]
TWO = [Queue(50, 0.3), Queue(50, -0.3)]  # languages 0.6 apart, raters kinder early than late
STRATA = [Queue(50, strata=1.0), Queue(50, strata=1.0)]
BELOW = 2.95


def made(n: int = 40, pool: int = 300, seed: int = 1) -> tuple[RatedPairs, Pool]:
    """Pairs of three ratings each, one stratum."""
    draw = np.random.default_rng(seed)
    quality = draw.normal(3.2, 0.8, n + pool)
    scores = quality + 0.4 + draw.normal(0, 0.5, n + pool)
    ratings = np.clip(np.round(quality[:n, None] + draw.normal(0, 0.9, (n, 3))), 1, 5)
    none = np.zeros(n, np.int64)
    return RatedPairs(ratings.sum(axis=1), np.full(n, 3.0), scores[:n], none), Pool(
        scores[n:], np.zeros(pool, np.int64)
    )


def printed(y: Floats, f: Floats, rest: Floats) -> tuple[float, float, float]:
    """(estimate, low, high) by the formula of ppi_py 0.2.3: normal quantile, divisors n, lam not clipped."""
    n, m = len(y), len(rest)
    lam = np.mean((y - y.mean()) * (f - f.mean())) / ((1 + n / m) * np.concatenate([f, rest]).var(ddof=1))
    theta = y.mean() + lam * (rest.mean() - f.mean())
    reach = stats.norm.ppf(0.975) * math.sqrt((y - lam * f).var() / n + lam**2 * rest.var() / m)
    return theta, theta - reach, theta + reach


def test_without_strata_it_is_the_published_formula() -> None:
    for seed in range(5):
        rated, pool = made(seed=seed)
        found = powered(rated, pool, formula="published").mean
        theirs = printed(rated.sums / 3, rated.scores, pool.scores)
        assert [float(found.value), float(found.low), float(found.high)] == pytest.approx(theirs, rel=1e-13)


def test_it_is_the_regression_estimator_of_survey_sampling() -> None:
    """With the rated among the judged: mean(y) + b (mean of all f - mean of the rated f)."""
    rated, pool = made()
    found = powered(rated, pool, formula="published")
    y, every = rated.sums / 3, np.concatenate([rated.scores, pool.scores])
    b = np.mean((y - y.mean()) * (rated.scores - rated.scores.mean())) / every.var(ddof=1)
    assert found.slope == pytest.approx(b)
    assert float(found.mean.value) == pytest.approx(y.mean() + b * (every.mean() - rated.scores.mean()))


def by_hand(rated: RatedPairs, pool: Pool) -> tuple[float, float]:
    """(mean, its variance) with each pair's slope computed anew from all other pairs."""
    y, n = rated.sums / rated.counts, len(rated.counts)
    f, strata = np.concatenate([rated.scores, pool.scores]), np.concatenate([rated.strata, pool.strata])
    away = f - np.array([f[strata == h].mean() for h in range(strata.max() + 1)])[strata]
    variance = (away**2).sum() / (len(f) - 1)
    weight, adjusted, shares = rated.counts / rated.counts.mean(), [], []
    for i in range(n):
        others, h = np.arange(n) != i, rated.strata[i]
        mean = rated.sums[others].sum() / rated.counts[others].sum()
        slope = np.mean((weight**2 * (y - mean) * away[:n])[others]) / variance
        here, there = (rated.strata == h).sum(), (pool.strata == h).sum()
        beside = pool.scores[pool.strata == h].mean() if there else 0.0
        shares.append(0.75 * slope * there / (here + there))
        adjusted.append(y[i] - shares[-1] * (f[i] - beside))
    value = np.average(adjusted, weights=rated.counts)
    residuals = rated.counts * (np.array(adjusted) - value)
    over_rated = (residuals**2).sum() / rated.counts.sum() ** 2 * n / (n - 3)
    within = [((own := pool.scores[pool.strata == h]) - own.mean()) ** 2 for h in np.unique(pool.strata)]
    spread = np.concatenate(within).sum() / (len(pool.scores) - len(within))
    whole = np.mean(weight**2 * (y - rated.sums.sum() / rated.counts.sum()) * away[:n]) / variance
    of_pool = 0.0
    for h in np.unique(pool.strata):
        here, there = (rated.strata == h).sum(), (pool.strata == h).sum()
        lam = 0.75 * whole * there / (here + there)
        of_pool += (rated.counts[rated.strata == h].sum() / rated.counts.sum()) ** 2 * lam**2 * spread / there
    return float(value), 1.1 * float(over_rated + of_pool)


def test_each_pair_is_corrected_by_the_slope_of_the_others() -> None:
    """Ratings of one to three raters, three strata, one of which the pool lacks."""
    draw = np.random.default_rng(2)
    strata, counts = np.repeat([0, 1, 2], [20, 15, 5]), draw.integers(1, 4, 40).astype(float)
    f = draw.normal(3, 1, 40)
    rated = RatedPairs(counts * np.clip(f + draw.normal(0, 0.5, 40), 1, 5), counts, f, strata)
    pool = Pool(draw.normal(3, 1, 300), np.repeat([0, 1], [30, 270]))
    found, (value, variance) = powered(rated, pool), by_hand(rated, pool)
    assert float(found.mean.value) == pytest.approx(value) and float(found.mean.error) ** 2 == pytest.approx(variance)
    assert float(found.mean.high - found.mean.value) == pytest.approx(stats.t.ppf(0.975, 38) * math.sqrt(variance))
    assert found.worth == pytest.approx(40 * float(found.people.error) ** 2 / variance)


def test_a_judge_that_says_nothing_leaves_peoples_own_numbers() -> None:
    rated, pool = made()
    same = RatedPairs(rated.sums, rated.counts, np.full(40, 4.0), rated.strata)
    found = powered(same, Pool(np.full(300, 4.0), pool.strata))
    own = over_pairs(rated.sums, rated.counts)
    assert (found.slope, found.worth) == (0.0, 40.0) and math.isnan(found.rho)
    assert [float(found.mean.low), float(found.mean.high)] == [float(own.low), float(own.high)]
    nobody = powered(rated, Pool(np.empty(0), np.empty(0, np.int64)))  # no output beyond the rated ones
    assert float(nobody.mean.low) == float(own.low)


def test_any_constant_gap_and_any_unit_of_the_judge_change_nothing() -> None:
    rated, pool = made()
    found = powered(rated, pool).mean
    moved = powered(
        RatedPairs(rated.sums, rated.counts, 100 - 7 * rated.scores, rated.strata),
        Pool(100 - 7 * pool.scores, pool.strata),
    ).mean
    assert [float(moved.value), float(moved.low)] == pytest.approx([float(found.value), float(found.low)])


def test_strata_have_the_shares_of_the_ratings_whatever_the_pool_has() -> None:
    """By hand: stratum 0 has two thirds of the pairs and a tenth of the pool, and the judge knows of stratum 1 alone.

    Pairs of stratum 1 are a point above the pool by its scores, so that their mean falls by lam times it; stratum 2 has
    no pool, so that it stays people's alone.
    """
    draw = np.random.default_rng(2)
    strata = np.repeat([0, 1, 2], [40, 15, 5])
    f = draw.normal(3, 1, 60)
    y = np.clip(f + draw.normal(0, 0.5, 60), 1, 5)
    pool = Pool(draw.normal(3, 1, 300), np.repeat([0, 1], [30, 270]))
    found = powered(RatedPairs(y, np.ones(60), f, strata), pool, formula="published")
    by_stratum = []
    for h, (n, m) in enumerate([(40, 30), (15, 270), (5, 0)]):
        own = strata == h
        away = pool.scores[pool.strata == h].mean() - f[own].mean() if m else 0.0
        by_stratum.append(n / 60 * (y[own].mean() + found.slope * m / (n + m) * away))
    assert float(found.mean.value) == pytest.approx(sum(by_stratum))
    none, moved = np.zeros(60, np.int64), Pool(pool.scores + 1, np.zeros(300, np.int64))
    mixed = powered(RatedPairs(y, np.ones(60), f, none), moved, formula="published")
    assert abs(float(mixed.mean.value) - sum(by_stratum)) > 0.3  # a pool of other composition, taken as if alike


def test_over_raters_the_pairs_variance_alone_shrinks() -> None:
    """Three raters: the variance over them stays; a perfect judge leaves it whole."""
    rated, pool = made()
    raters = np.array([110.0, 131.0, 142.0]), np.full(3, 40.0)
    found = powered(rated, pool, raters)
    alone = over_pairs_and_raters(rated.sums, rated.counts, *raters)
    by_pairs = powered(rated, pool)
    assert float(found.people.error) == float(alone.error)
    over_raters = float(alone.error**2 - by_pairs.people.error**2)
    assert float(found.mean.error) ** 2 == pytest.approx(float(by_pairs.mean.error) ** 2 + over_raters)
    assert float(by_pairs.mean.error) < float(by_pairs.people.error)


def test_a_judge_that_says_nothing_leaves_the_doubt_about_raters() -> None:
    """Three raters a point apart: what people's ratings lean to rests on these numbers, as their interval does."""
    rated, pool = made()
    raters = np.array([90.0, 128.0, 160.0]), np.full(3, 40.0)
    same = RatedPairs(rated.sums, rated.counts, np.full(40, 4.0), rated.strata)
    own = over_pairs_and_raters(rated.sums, rated.counts, *raters)
    few = RatedPairs(rated.sums[:3], rated.counts[:3], rated.scores[:3], rated.strata[:3])
    for found in (powered(same, Pool(np.full(300, 4.0), pool.strata), raters), powered(few, pool, raters)):
        assert found.people == found.mean
    found = powered(same, Pool(np.full(300, 4.0), pool.strata), raters)
    assert [float(found.people.low), float(found.people.high)] == [float(own.low), float(own.high)]
    alone = over_pairs(rated.sums, rated.counts)
    assert float(found.people.high - found.people.low) > 3 * float(alone.high - alone.low)


def test_a_failed_judgement_gets_what_says_nothing() -> None:
    """The mean of its stratum's others, here 3 and 5; a stratum where all failed the mean of everything."""
    rated = RatedPairs(np.ones(3), np.ones(3), np.array([2.0, np.nan, np.nan]), np.array([0, 0, 1]))
    pool = Pool(np.array([4.0, np.nan, np.nan]), np.array([0, 0, 2]))
    scores = [one.scores.tolist() for one in filled(rated, pool)]
    assert scores == [[2.0, 3.0, 3.0], [4.0, 3.0, 3.0]]


@pytest.mark.parametrize("judge", JUDGES if FULL else (usual, failing), ids=lambda judge: judge.__name__)
@pytest.mark.parametrize("queues", [FEW, ALIKE], ids=["30 pairs", "100 pairs"])
def test_intervals_hold_the_mean_in_95_of_100_campaigns(queues: list[Queue], judge: Judge) -> None:
    number = scaled(300, 4000)
    means = [one.mean for one in fixed(queues, BELOW, number, judge)]
    held = np.mean([float(one.low) <= BELOW <= float(one.high) for one in means])
    assert (0.94 if FULL else 0.91) <= held <= (0.975 if FULL else 1)  # a tenth more variance than is seen: about 96
    assert abs(np.mean([float(one.value) for one in means]) - BELOW) < 0.02


def lower_ends(found: list[PoweredMean]) -> tuple[Floats, Floats]:
    """(people's lower ends, those of people and judge)."""
    return np.array([float(one.people.low) for one in found]), np.array([float(one.mean.low) for one in found])


@pytest.mark.parametrize("judge", JUDGES if FULL else (good, useless), ids=lambda judge: judge.__name__)
@pytest.mark.parametrize("queues", [TWO, STRATA], ids=["two languages", "strata"])
def test_what_is_below_is_accepted_no_more_often_than_by_people_alone(queues: list[Queue], judge: Judge) -> None:
    """By the lower end, raters uneven and some ratings missing. (By the mean it holds by construction.)"""
    found = fixed(queues, BELOW, scaled(250, 4000), judge)
    people, both = lower_ends(found)
    assert np.mean(both >= 3) <= np.mean(people >= 3) + 0.002
    held = np.mean([float(one.mean.low) <= BELOW <= float(one.mean.high) for one in found])
    assert held >= 0.94


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2, 0.4] if FULL else [0.02])
@pytest.mark.parametrize("n", [30, 100] if FULL else [30])
def test_a_judge_with_one_score_for_nearly_everything_moves_no_mean(n: int, share: float) -> None:
    """5 for all but the worst, which get 1. One slope of all pairs made the mean 0.07 too high with 30 pairs."""
    draw, number = np.random.default_rng(4), scaled(400, 20_000)
    quality = draw.normal(3, 0.9, 100_000)
    means = np.clip(np.round(quality[:, None] + draw.normal(0, 0.75, (100_000, 3))), 1, 5).mean(axis=1)
    scores = np.where(quality < np.quantile(quality, share), 1.0, 5.0)
    found, none = [], np.zeros(10 * n, np.int64)
    for _ in range(number):
        at = draw.integers(0, len(means), 10 * n)
        rated = RatedPairs(3 * means[at[:n]], np.full(n, 3.0), scores[at[:n]], none[:n])
        found.append(powered(rated, Pool(scores[at[n:]], none[n:])))
    bias = np.mean([float(one.mean.value) for one in found]) - means.mean()
    assert abs(bias) < (0.008 if FULL else 0.03)
    people, both = (np.mean(ends > means.mean()) for ends in lower_ends(found))
    assert both <= max(people, 0.025) + (0.001 if FULL else 0.015)
