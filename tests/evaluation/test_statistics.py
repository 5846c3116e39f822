from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluation.statistics import spearman_interval


def test_rho_by_hand() -> None:
    # Ranks 1 2 3 4 5 against 2 1 4 3 5: differences -1 1 -1 1 0, their squares sum to 4.
    # rho = 1 - 6 * 4 / (5 * (5 * 5 - 1)) = 1 - 24 / 120 = 0.8
    estimate = spearman_interval([1, 2, 3, 4, 5], [20, 10, 40, 30, 50], rng=np.random.default_rng(0))
    assert estimate.value == pytest.approx(0.8)
    assert estimate.n == 5


def test_ties_and_interval_as_scipy_has_them() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(1, 6, 60) / 1.0
    y = x + rng.normal(size=60)
    estimate = spearman_interval(x, y, rng=np.random.default_rng(11))
    expected = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=1000,
        rng=np.random.default_rng(11),
    ).confidence_interval
    assert estimate.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))
    assert estimate.reason == ""


def test_the_generator_decides() -> None:
    x, y = np.arange(20.0), np.random.default_rng(1).normal(size=20)
    first, again, other = (spearman_interval(x, y, rng=np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert first == again
    assert first.low != other.low


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1, 2], [1, 2], "at least 3 pairs, there are 2"),
        ([], [], "there are 0"),
        ([1, 1, 1, 1], [1, 2, 3, 4], "all values of one side are equal"),
        ([1, 2, 3, 4], [2, 2, 2, 2], "all values of one side are equal"),
        ([1, 2, np.nan], [1, 2, 3], "finite"),
    ],
)
def test_undefined_is_nan_with_a_reason(x: list[float], y: list[float], reason: str) -> None:
    estimate = spearman_interval(x, y, rng=np.random.default_rng(0))
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert reason in estimate.reason


def test_too_many_constant_resamples_give_no_interval() -> None:
    # One of six values differs: a resample misses it with probability (5/6)^6 = 0.33.
    estimate = spearman_interval([1, 1, 1, 1, 1, 2], [1, 2, 3, 4, 5, 6], rng=np.random.default_rng(0))
    assert np.isfinite(estimate.value)
    assert np.isnan([estimate.low, estimate.high]).all()
    assert "no interval" in estimate.reason


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="one length"):
        spearman_interval([1, 2, 3], [1, 2], rng=np.random.default_rng(0))
