from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from plumbline.statistics.paired import (
    average_ranks,
    hodges_lehmann,
    hodges_lehmann_bootstrap,
    holm,
    median_absolute_difference,
    paired_bootstrap,
    row_correlations,
    sample_sd,
    spearman_interval,
    wilcoxon,
)
from tests.scale import FULL


def test_ties_and_interval_as_scipy_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("plumbline.statistics.estimates.AT_ONCE", 7 * 61)  # seven resamples at a time
    assert spearman_interval(x, y, rng=np.random.default_rng(11)) == estimate


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1, 2], [1, 2], "at least 3 pairs, not 2"),
        ([], [], "at least 3 pairs, not 0"),
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
    with pytest.raises(ValueError, match="equal length"):
        spearman_interval([1, 2, 3], [1, 2], rng=np.random.default_rng(0))


def test_zeros_are_dropped_and_ties_are_exact_while_they_can_be() -> None:
    # Left are 1 1 -2 4 with ranks 1.5 1.5 3 4; the negative ones sum to 3. Of the 16 ways to give signs five have a sum
    # of at most 3: none, {1.5}, {1.5}, {1.5, 1.5} and {3}. p = 2 * 5 / 16.
    found = wilcoxon([5, 6, 2, 8, 4], [4, 5, 4, 4, 4])
    assert (found.statistic, found.n, found.zeros, found.method) == (3, 4, 1, "exact")
    assert found.p == pytest.approx(2 * 5 / 16)


def test_rounding_makes_neither_differences_nor_breaks_ties() -> None:
    # 0.1 + 0.2 - 0.3 is 5.6e-17 and no difference; 0.3 - 0.2 and 0.2 - 0.1 differ in the last digit and are a tie.
    found = wilcoxon([0.1 + 0.2, 0.3, 0.2, 0.5], [0.3, 0.2, 0.1, 0.1])
    assert (found.n, found.zeros) == (3, 1)
    assert found.p == pytest.approx(2 / 2**3)


def test_more_than_fifty_are_approximated_as_in_pteb() -> None:
    # 54 positive differences: the sum of negative ranks is 0, its mean 54 * 55 / 4 = 742.5, its variance
    # 54 * 55 * 109 / 24 = 13488.75, z = 742.5 / 116.14 = 6.393, p = 1.62e-10; times 4 (Holm) it is the 6.50e-10 that
    # PTEB prints in Table 7.
    found = wilcoxon(np.arange(1.0, 55), np.zeros(54))
    assert found.method == "normal approximation"
    assert 4 * found.p == pytest.approx(6.50e-10, rel=2e-3)
    assert wilcoxon([1.0, 1.0] * 7, [0.0] * 14).method == "normal approximation"  # ties, and too many to try all signs


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [([1, 2], [1, 2], "no difference"), ([], [], "no difference"), ([1, math.nan], [0, 0], "finite")],
)
def test_an_undefined_test_is_nan_with_a_reason(x: list[float], y: list[float], reason: str) -> None:
    found = wilcoxon(x, y)
    assert math.isnan(found.p) and math.isnan(found.statistic) and found.method == ""
    assert reason in found.reason


def test_holm_by_hand() -> None:
    # In order 0.005 * 4 = 0.02, 0.01 * 3 = 0.03, 0.03 * 2 = 0.06, 0.04 * 1 = 0.04, raised to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # An undefined test is no hypothesis: 0.01 * 2 and 0.04 * 1.
    assert holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert np.isnan(holm([math.nan])).all() and holm([]).size == 0


@pytest.mark.parametrize("n", [1, 2, 8, 120])
def test_holm_is_statsmodels(n: int) -> None:
    values = np.round(np.random.default_rng(n).uniform(size=n) ** 3, 2)  # with ties, small ones, and ones that become 1
    np.testing.assert_allclose(holm(values), multipletests(values, method="holm")[1], rtol=1e-12)


def test_hodges_lehmann_by_hand() -> None:
    # Differences 1 2 6: Walsh averages 1 2 6 1.5 3.5 4, in order 1 1.5 2 3.5 4 6, median (2 + 3.5) / 2.
    found = hodges_lehmann([1, 2, 6], [0, 0, 0])
    assert found.value == pytest.approx(2.75)
    assert math.isnan(found.low) and "6 differences, not 3" in found.reason
    # Of 6 differences only the sums 0 and 21 have a chance of at most 2.5% (1 / 64): the extremes are the interval.
    six = hodges_lehmann([1, 2, 3, 4, 5, 16], [0] * 6)
    assert (six.low, six.high) == (1, 16)
    alike = hodges_lehmann([2] * 9, [1] * 9), paired_bootstrap([2] * 9, [1] * 9, rng=np.random.default_rng(1)).estimate
    for found in alike:  # 1.00 [1.00, 1.00] would be no interval
        assert found.value == 1 and math.isnan(found.low) and found.reason.startswith("the value is the same in all")


@given(
    st.lists(st.integers(-50, 50), min_size=6, max_size=10, unique_by=abs).filter(lambda values: 0 not in values),
    st.sampled_from(["low", "high"]),
)
def test_the_interval_holds_what_the_exact_test_does_not_reject(values: list[int], end: str) -> None:
    """Inverting the test: just outside of the interval it rejects at 5%, just inside it does not."""
    found = hodges_lehmann(values, [0] * len(values))
    edge, outwards = getattr(found, end), -1 if end == "low" else 1
    for step, rejected in ((outwards * 1e-6, True), (-outwards * 1e-6, False)):
        moved = np.asarray(values) - (edge + step)
        ranks = stats.rankdata(np.abs(moved))
        smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
        ways = [sum(chosen) for chosen in itertools.product(*((0, r) for r in range(1, len(values) + 1)))]
        p = 2 * np.mean(np.asarray(ways) <= math.floor(smaller))
        # An interval of one point, or one whose edge several averages share, has no inside so near.
        if rejected or found.low + 2e-6 < found.high:
            assert (p <= 0.05) == rejected


def test_bootstrap_interval_of_the_shift() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.5, 1, 40), np.zeros(40)

    def shift(sample: np.ndarray) -> float:
        rows, columns = np.triu_indices(len(sample))
        return float(np.median((sample[rows] + sample[columns]) / 2))

    found = hodges_lehmann_bootstrap(x, y, rng=np.random.default_rng(5))
    expected = stats.bootstrap(
        (x,), shift, vectorized=False, method="percentile", n_resamples=1000, rng=np.random.default_rng(6)
    ).confidence_interval
    assert found.value == pytest.approx(shift(x))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.06)
    assert found == hodges_lehmann_bootstrap(x, y, rng=np.random.default_rng(5))
    assert "at least 2" in hodges_lehmann_bootstrap([1], [0], rng=rng).reason


def test_paired_bootstrap_by_hand() -> None:
    # Differences 1 and 3, mean 2. Resamples have the means 1, 2, 2 and 3, each with chance 1/4: the interval is
    # [1, 3], and with 2 taken away none is as far from 0 as 2, so p is 1 / (n + 1), the sample itself.
    found = paired_bootstrap([1, 3], [0, 0], n_resamples=999, rng=np.random.default_rng(0))
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (2, 1, 3)
    assert found.p == 1 / 1000
    # Differences -1 and 3, mean 1: the means are -1, 1, 1, 3, less 1: -2, 0, 0, 2. Half are as far as 1.
    half = paired_bootstrap([-1, 3], [0, 0], n_resamples=9999, rng=np.random.default_rng(0))
    assert half.p == pytest.approx(0.5, abs=0.02)
    assert paired_bootstrap([1, 2, 3], [1, 2, 3], rng=np.random.default_rng(0)).p == 1
    assert math.isnan(paired_bootstrap([1], [0], rng=np.random.default_rng(0)).p)


def test_paired_bootstrap_is_in_pieces_and_near_the_t_test() -> None:
    x = np.random.default_rng(4).normal(0.1, 1, 600)
    found = paired_bootstrap(x, np.zeros(600), n_resamples=20_000, rng=np.random.default_rng(1))  # three pieces
    assert found.p == pytest.approx(stats.ttest_1samp(x, 0).pvalue, rel=0.2)
    error = x.std(ddof=1) / math.sqrt(600)
    ends = (x.mean() - 1.96 * error, x.mean() + 1.96 * error)
    assert (found.estimate.low, found.estimate.high) == pytest.approx(ends, abs=0.1 * error)


def test_spread_by_hand() -> None:
    # |1 - 4|, |2 - 2|, |5 - 3|: 3 0 2, median 2. SD of 2 4 9: mean 5, squares 9 1 16, 26 / 2 = 13.
    assert median_absolute_difference([1, 2, 5], [4, 2, 3]).value == 2
    assert sample_sd([2, 4, 9]).value == pytest.approx(math.sqrt(13))
    assert math.isnan(sample_sd([2]).value) and "at least 2" in sample_sd([2]).reason
    assert math.isnan(median_absolute_difference([], []).value)
    assert "finite" in median_absolute_difference([math.nan], [1]).reason


@pytest.mark.parametrize(("shape", "values"), [((50, 7), 3), ((20, 31), 9), ((5, 1), 2), ((30, 40), 1), ((20, 30), 0)])
def test_ranks_are_scipys(shape: tuple[int, int], values: int) -> None:
    """Of few values with many ties, of a single one, of constant rows, and of values without ties."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, values, shape).astype(float) if values else rng.normal(size=shape)
    assert np.array_equal(average_ranks(rows), stats.rankdata(rows, axis=1))


@pytest.mark.parametrize(("n", "values"), [(3, 2), (7, 3), (40, 5), (2000, 12), (2000, 0)])
def test_the_interval_of_rho_is_that_of_ranks_taken_anew_in_each_resample(n: int, values: int) -> None:
    """To the last bit; of few values some resamples are constant."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.integers(0, values, n).astype(float) if values else rng.normal(size=n)
    y[0] = y[1:].max() + 1
    estimate = spearman_interval(x, y, n_resamples=60, rng=np.random.default_rng(1))
    drawn = np.random.default_rng(1).integers(0, n, (60, n))
    resampled = row_correlations(*(average_ranks(side[drawn]) for side in (x, y)))
    defined = resampled[~np.isnan(resampled)]
    if len(defined) >= 54:
        assert (estimate.low, estimate.high) == tuple(np.percentile(defined, [2.5, 97.5]))
    else:
        assert math.isnan(estimate.low) and f"in {60 - len(defined)} of 60" in estimate.reason


@pytest.mark.skipif(not FULL, reason="six seconds; PLUMBLINE_TESTS=full runs it")
def test_rho_of_millions_of_pairs_does_not_overflow() -> None:
    """Sums of whole squares would no longer fit into 64 bits."""
    rng, n = np.random.default_rng(4), 2_200_000
    x = rng.integers(0, 2, n).astype(float)
    y = x + rng.normal(size=n)
    estimate = spearman_interval(x, y, n_resamples=2, rng=np.random.default_rng(1))
    drawn = np.random.default_rng(1).integers(0, n, (2, n))
    expected = np.percentile(row_correlations(*(average_ranks(side[drawn]) for side in (x, y))), [2.5, 97.5])
    assert [estimate.low, estimate.high] == pytest.approx(expected, abs=1e-12)
