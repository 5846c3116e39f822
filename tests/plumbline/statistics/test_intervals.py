"""Intervals by hand, and on 1,000 simulated campaigns with known truth: what says 95% covers 95%.

A coverage of 95% seen in 1,000 campaigns has a standard deviation of sqrt(0.95 * 0.05 / 1000) = 0.7 points, so that
93 to 97% is nearly three of them to either side. Seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from annotation.variation import latent_mean, rated_mean
from plumbline.statistics.agreement import Answers, gwet_ac2, krippendorff_alpha, mean_kappa, raw_agreement
from plumbline.statistics.estimates import Floats, Mean, bca, over_pairs, over_pairs_and_raters
from tests.scale import scaled

SCALE = (1, 2, 3, 4, 5)
CAMPAIGNS, RATERS = 1000, 3
SPREAD, NOISE = 0.8, 0.6


def of(matrix: Floats, raters: bool = False) -> Mean:
    """The interval of complete ratings, pairs by raters, of one campaign or of many."""
    sums, counts = matrix.sum(axis=-1), np.full(matrix.shape[:-1], float(matrix.shape[-1]))
    if not raters:
        return over_pairs(sums, counts)
    rater_counts = np.full((*matrix.shape[:-2], matrix.shape[-1]), float(matrix.shape[-2]))
    return over_pairs_and_raters(sums, counts, matrix.sum(axis=-2), rater_counts)


def campaigns(latent: float, biases: Floats, pairs: int, seed: int) -> Floats:
    """Rounded ratings, campaigns by pairs by raters: pair + bias of the rater + noise; `biases` broadcast."""
    draw = np.random.default_rng(seed)
    felt = (
        draw.normal(latent, SPREAD, (CAMPAIGNS, pairs, 1)) + biases + draw.normal(0, NOISE, (CAMPAIGNS, pairs, RATERS))
    )
    return np.clip(np.round(felt), 1, 5)


def share(held: Floats) -> float:
    return float(np.mean(held))


def test_equal_counts_give_the_t_interval_of_pair_means() -> None:
    # pair means 4.5, 3, 3.5, 4; mean 3.75; SD = sqrt((0.75^2+0.75^2+0.25^2+0.25^2)/3) = 0.6454972
    # t(0.975; 3) = 3.1824463; reach = 3.1824463 * 0.6454972 / 2 = 1.0271301
    found = of(np.array([[5.0, 4.0], [3, 3], [2, 5], [4, 4]]))
    assert found.value == 3.75
    assert found.low == pytest.approx(3.75 - 1.0271301, abs=1e-6)
    assert found.high == pytest.approx(3.75 + 1.0271301, abs=1e-6)


def test_unequal_counts_weigh_single_ratings() -> None:
    # pairs (5, 5, 5) and (2): mean (15 + 2)/4 = 4.25; residuals 15 - 12.75 = 2.25 and 2 - 4.25 = -2.25
    # error = sqrt(2/1 * (2.25^2 + 2.25^2)) / 4 = 4.5/4 = 1.125; t(0.975; 1) = 12.7062047
    found = over_pairs(np.array([15.0, 2.0]), np.array([3.0, 1.0]))
    assert found.value == 4.25
    assert found.high - found.value == pytest.approx(12.7062047 * 1.125, abs=1e-6)


def test_raters_add_their_variance_and_their_few_degrees_of_freedom() -> None:
    # pairs as above: variance 0.4166667/4 = 0.1041667, t(0.975; 3) = 3.1824463
    # raters' means 3.5 and 4: variance 0.125/2 = 0.0625, t(0.975; 1) = 12.7062047; together 0.1666667
    # t = (0.1041667 * 3.1824463 + 0.0625 * 12.7062047)/0.1666667 = 6.7538557; reach = t * sqrt(0.1666667) = 2.7572500
    found = of(np.array([[5.0, 4.0], [3, 3], [2, 5], [4, 4]]), raters=True)
    assert found.value == 3.75
    assert found.high - found.value == pytest.approx(2.75725, abs=1e-4)


def test_one_rater_or_nearly_one_says_nothing_about_others() -> None:
    one = over_pairs_and_raters(np.array([4.0, 3.0]), np.array([1.0, 1.0]), np.array([7.0]), np.array([2.0]))
    # Shares of the work 18/20 and 2/20: effective number 1/(0.9^2 + 0.1^2) = 1.22, below 1.5
    nearly = over_pairs_and_raters(np.full(10, 7.0), np.full(10, 2.0), np.array([60.0, 10.0]), np.array([18.0, 2.0]))
    assert math.isnan(float(one.low)) and math.isnan(float(nearly.low))


@pytest.mark.parametrize("matrix", [[[5.0, 4.0]], [[4.0, 4.0], [4.0, 4.0]]])
def test_one_pair_or_no_spread_has_no_interval_and_no_probability(matrix: list[list[float]]) -> None:
    found = of(np.array(matrix))
    assert not math.isnan(float(found.value))
    assert math.isnan(float(found.low)) and math.isnan(float(found.at_least(3.0)))


def test_the_probability_agrees_with_the_interval() -> None:
    """At the lower end of a 95% interval 97.5% of the distribution lies above."""
    for raters in (False, True):
        found = of(np.array([[5.0, 4.0], [3, 3], [2, 5], [4, 4]]), raters)
        assert float(found.at_least(float(found.low))) == pytest.approx(0.975, abs=1e-6)
        assert float(found.at_least(float(found.value))) == pytest.approx(0.5)


@pytest.mark.parametrize("pairs", [30, 100])
@pytest.mark.parametrize("latent", [3.0, 4.2])
def test_over_pairs_covers_95_percent_for_these_raters(pairs: int, latent: float) -> None:
    biases = np.array([-0.4, 0.1, 0.3])
    truth = np.mean([rated_mean(latent + bias, math.hypot(SPREAD, NOISE), SCALE) for bias in biases])
    found = of(campaigns(latent, biases, pairs, seed=1))
    assert 0.93 <= share((found.low <= truth) & (truth <= found.high)) <= 0.97


@pytest.mark.parametrize("pairs", [30, 100])
@pytest.mark.parametrize(("bias", "most"), [(0.5, 0.97), (0.3, 0.985), (0.0, 0.99)])
def test_over_pairs_and_raters_covers_for_raters_not_seen(pairs: int, bias: float, most: float) -> None:
    """Raters drawn anew each time. Where they hardly differ it covers over 97%: noise counts twice, by choice."""
    draw = np.random.default_rng(3)
    ratings = campaigns(3.3, draw.normal(0, bias, (CAMPAIGNS, 1, RATERS)), pairs, seed=4)
    truth = rated_mean(3.3, math.sqrt(SPREAD**2 + NOISE**2 + bias**2), SCALE)
    found = of(ratings, raters=True)
    assert 0.93 <= share((found.low <= truth) & (truth <= found.high)) <= most
    if bias:  # the other interval is not made for this
        fixed = of(ratings)
        assert share((fixed.low <= truth) & (truth <= fixed.high)) < 0.85


def test_bca_is_scipys() -> None:
    """The mean of 40 numbers: the same construction on the same data, other draws (SD of an end is about 0.01)."""
    values = np.round(np.random.default_rng(7).gamma(2, 1, 40))
    kinds, times = np.unique(values, return_counts=True)
    features = np.stack([kinds, np.ones_like(kinds)], axis=1)
    found = bca(lambda sums: sums[:, 0] / sums[:, 1], features, times, np.random.default_rng(8))
    scipys = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=9999, rng=np.random.default_rng(9))
    assert (found.low, found.high) == pytest.approx(tuple(scipys.confidence_interval), abs=0.05)


@pytest.mark.parametrize("pairs", [30, 100])
def test_intervals_of_agreement_cover(pairs: int) -> None:
    """AC2's interval is irrCAC's own. Truth: the same raters on 200,000 pairs."""
    draw, biases = np.random.default_rng(10), np.array([-0.3, 0.0, 0.3])

    def answers(n: int) -> Answers:
        felt = draw.normal(3.8, SPREAD, (n, 1)) + biases + draw.normal(0, NOISE, (n, RATERS))
        points = np.clip(np.round(felt), 1, 5).astype(np.int64) - 1
        return Answers(np.arange(n).repeat(RATERS), np.tile(np.arange(RATERS), n), points.ravel(), SCALE)

    coefficients = {
        "ac2": gwet_ac2,
        "alpha": lambda a: krippendorff_alpha(a, draw),
        "kappa": mean_kappa,
        "raw": lambda a: raw_agreement(a, draw),
    }
    number = scaled(300, 1000)
    many = answers(200_000)
    truth = {name: coefficient(many).value for name, coefficient in coefficients.items()}
    held = dict.fromkeys(coefficients, 0)
    for _ in range(number):
        own = answers(pairs)
        for name, coefficient in coefficients.items():
            found = coefficient(own)
            held[name] += found.low <= truth[name] <= found.high
    margin = 0.02 * math.sqrt(1000 / number)
    assert {name: count for name, count in held.items() if abs(count / number - 0.95) > margin} == {}


def test_the_mean_of_rounded_values_is_known_and_inverted() -> None:
    """A normal of mean 3 is symmetric on 1 to 5; far above the scale all ratings are 5."""
    assert rated_mean(3.0, 1.3, SCALE) == pytest.approx(3.0)
    assert rated_mean(40.0, 1.0, SCALE) == pytest.approx(5.0)
    assert rated_mean(latent_mean(4.37, 1.1, SCALE), 1.1, SCALE) == pytest.approx(4.37)
