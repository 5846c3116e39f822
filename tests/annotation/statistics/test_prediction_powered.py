"""Prediction-powered means: against their printed formula and survey sampling, and in thousands of campaigns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from annotation.statistics.intervals import Floats, confidence_sequence, over_pairs, over_pairs_and_raters
from annotation.statistics.prediction_powered import (
    Pool,
    Rated,
    effective_pairs,
    filled,
    needed_pairs,
    powered,
    powered_sequence,
)
from tests.annotation.judges.made_judges import (
    JUDGES,
    Judge,
    anytime,
    constant,
    contrary,
    failing,
    fixed,
    good,
    useless,
    usual,
)
from tests.annotation.verdicts.anytime import Queue
from tests.scale import FULL, scaled

ALIKE = [Queue(100, early=0.0, late=0.0)]  # one stratum, even raters: the interval is exact
FEW = [Queue(30, early=0.0, late=0.0)]
TWO = [Queue(50, 0.3), Queue(50, -0.3)]  # languages 0.6 apart, raters kinder early than late
STRATA = [Queue(50, strata=1.0), Queue(50, strata=1.0)]
BELOW = 2.95


def made(n: int = 40, pool: int = 300, seed: int = 1) -> tuple[Rated, Pool]:
    """Pairs of three ratings each, one stratum."""
    draw = np.random.default_rng(seed)
    quality = draw.normal(3.2, 0.8, n + pool)
    scores = quality + 0.4 + draw.normal(0, 0.5, n + pool)
    ratings = np.clip(np.round(quality[:n, None] + draw.normal(0, 0.9, (n, 3))), 1, 5)
    none = np.zeros(n, np.int64)
    return Rated(ratings.sum(axis=1), np.full(n, 3.0), scores[:n], none), Pool(scores[n:], np.zeros(pool, np.int64))


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
    found = powered(rated, pool)
    y, every = rated.sums / 3, np.concatenate([rated.scores, pool.scores])
    b = np.mean((y - y.mean()) * (rated.scores - rated.scores.mean())) / every.var(ddof=1)
    assert found.slope == pytest.approx(b)
    assert float(found.mean.value) == pytest.approx(y.mean() + b * (every.mean() - rated.scores.mean()))


def test_small_samples_have_students_t_and_a_parameter_less() -> None:
    """Error^2 = var(y - lam f) with n - 3 over n, and lam^2 var(f) / N; t with n - 2 degrees of freedom."""
    rated, pool = made(n=30)
    found = powered(rated, pool)
    y, n, m = rated.sums / 3, 30, len(pool.scores)
    lam = found.slope * m / (n + m)
    error = math.sqrt((y - lam * rated.scores).var(ddof=3) / n + lam**2 * pool.scores.var(ddof=1) / m)
    assert float(found.mean.error) == pytest.approx(error)
    assert float(found.mean.high - found.mean.value) == pytest.approx(stats.t.ppf(0.975, 28) * error)
    assert found.worth == pytest.approx(n * (y.var(ddof=1) / n) / error**2)


def test_a_judge_that_says_nothing_leaves_peoples_own_numbers() -> None:
    rated, pool = made()
    same = Rated(rated.sums, rated.counts, np.full(40, 4.0), rated.strata)
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
        Rated(rated.sums, rated.counts, 100 - 7 * rated.scores, rated.strata), Pool(100 - 7 * pool.scores, pool.strata)
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
    found = powered(Rated(y, np.ones(60), f, strata), pool)
    by_stratum = []
    for h, (n, m) in enumerate([(40, 30), (15, 270), (5, 0)]):
        own = strata == h
        away = pool.scores[pool.strata == h].mean() - f[own].mean() if m else 0.0
        by_stratum.append(n / 60 * (y[own].mean() + found.slope * m / (n + m) * away))
    assert float(found.mean.value) == pytest.approx(sum(by_stratum))
    mixed = powered(Rated(y, np.ones(60), f, np.zeros(60, np.int64)), Pool(pool.scores + 1, np.zeros(300, np.int64)))
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


def test_a_failed_judgement_gets_what_says_nothing() -> None:
    """The mean of its stratum's others, here 3 and 5; a stratum where all failed the mean of everything."""
    rated = Rated(np.ones(3), np.ones(3), np.array([2.0, np.nan, np.nan]), np.array([0, 0, 1]))
    pool = Pool(np.array([4.0, np.nan, np.nan]), np.array([0, 0, 2]))
    scores = [one.scores.tolist() for one in filled(rated, pool)]
    assert scores == [[2.0, 3.0, 3.0], [4.0, 3.0, 3.0]]


def test_worth_and_needed_pairs_are_those_of_the_formulas() -> None:
    """n / (1 - rho^2) without end: rho 0.5, 0.7, 0.85 and 0.9 are worth 1.33, 1.96, 3.60 and 5.26 times as many."""
    assert [round(effective_pairs(1, rho), 2) for rho in (0.3, 0.5, 0.6, 0.7, 0.85, 0.9)] == [
        1.10,
        1.33,
        1.56,
        1.96,
        3.60,
        5.26,
    ]
    assert effective_pairs(100, 0.6, 900) == pytest.approx(100 / (1 - 0.36 * 0.9))
    assert effective_pairs(100, 0.6, 0) == 100 and effective_pairs(10, 1.0) == math.inf
    # Of pools of 400, 1,000 and 5,000: 80, 77, 75 pairs for rho 0.5; 58, 54, 52; 34, 30, 28, of which none is below 30.
    for rho, needed in {0.5: (80, 77, 75), 0.7: (58, 54, 52), 0.85: (34, 30, 30)}.items():
        assert [round(needed_pairs(100, rho, pool)) for pool in (400, 1000, 5000)] == list(needed)
    assert needed_pairs(20, 0.5) == 20 and needed_pairs(100, 0.0) == 100


def test_a_sequence_without_partners_bets_by_people_alone() -> None:
    values = np.random.default_rng(5).integers(1, 6, (4, 30)).astype(float)
    none = np.full((4, 30, 2), np.nan)
    alone = confidence_sequence(values, (1, 5))
    for scores, partners in ((np.full((4, 30), 3.0), none), (np.full((4, 30), np.nan), none + 0)):
        found = powered_sequence(values, scores, partners, (1, 5))
        assert np.allclose(found, alone, atol=1e-6)
    low, high = powered_sequence(values[:, :0], none[:, :0, 0], none[:, :0], (1, 5))
    assert np.isnan(low).all() and np.isnan(high).all()


@pytest.mark.parametrize("judge", JUDGES if FULL else (usual, failing), ids=lambda judge: judge.__name__)
@pytest.mark.parametrize("queues", [FEW, ALIKE], ids=["30 pairs", "100 pairs"])
def test_intervals_hold_the_mean_in_95_of_100_campaigns(queues: list[Queue], judge: Judge) -> None:
    number = scaled(300, 4000)
    means = [one.mean for one in fixed(queues, BELOW, number, judge)]
    held = np.mean([float(one.low) <= BELOW <= float(one.high) for one in means])
    assert abs(held - 0.95) <= (0.01 if FULL else 0.04)
    assert abs(np.mean([float(one.value) for one in means]) - BELOW) < 0.02


@pytest.mark.parametrize("judge", JUDGES if FULL else (good, useless), ids=lambda judge: judge.__name__)
@pytest.mark.parametrize("queues", [TWO, STRATA], ids=["two languages", "strata"])
def test_what_is_below_is_accepted_no_more_often_than_by_people_alone(queues: list[Queue], judge: Judge) -> None:
    """By the mean and by the lower end, of the same campaigns, raters uneven and some ratings missing."""
    found = fixed(queues, BELOW, scaled(250, 4000), judge)
    for rule in ("value", "low"):
        people = np.mean([float(getattr(one.people, rule)) >= 3 for one in found])
        both = np.mean([float(getattr(one.mean, rule)) >= 3 for one in found])
        assert both <= people + 0.002
    held = np.mean([float(one.mean.low) <= BELOW <= float(one.mean.high) for one in found])
    assert held >= 0.94


@pytest.mark.parametrize("judge", JUDGES if FULL else (good, failing), ids=lambda judge: judge.__name__)
@pytest.mark.parametrize("queues", [TWO, STRATA] if FULL else [TWO], ids=lambda queues: f"{queues[0].strata:g}")
def test_looking_at_any_time_accepts_what_is_below_no_more_often(queues: list[Queue], judge: Judge) -> None:
    """Queue after queue, a look every 10 pairs: people alone at most 2.5%, and with the judge no more than they."""
    people, both = anytime(queues, BELOW, scaled(150, 2000), judge)
    assert both <= people + 0.002 and both <= 0.025


@pytest.mark.parametrize("judge", [constant, contrary], ids=lambda judge: judge.__name__)
def test_a_judge_that_helps_decides_earlier_and_one_that_does_not_no_later(judge: Judge) -> None:
    """At a mean of 3.3: the lower end after 100 pairs is higher with a judge, and people's own with a constant one."""
    draw = np.random.default_rng(3)
    quality = draw.normal(3.3, 0.9, (60, 100, 10))
    values = np.clip(np.round(quality[..., :1] + draw.normal(0, 0.75, (60, 100, 3))), 1, 5).mean(axis=-1)
    scores = judge(quality, quality, draw)
    low = powered_sequence(values, scores[..., 0], scores[..., 1:], (1, 5))[0].mean()
    alone = confidence_sequence(values, (1, 5))[0].mean()
    assert low == pytest.approx(alone, abs=1e-6) if judge is constant else low > alone + 0.015
