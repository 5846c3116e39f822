"""Statistics of paired samples as pure functions: the caller passes the random generator.

Undefined results are NaN with a reason; samples of different lengths or pandas indexes raise ValueError. Rankings of
models are in `plumbline.statistics.rankings`.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import same_index
from plumbline.importing import scipy
from plumbline.statistics.estimates import (
    ALIKE,
    CONFIDENCE,
    Bootstrap,
    Estimate,
    Floats,
    Value,
    bootstrap,
    draw_indices,
)

_CACHED = 2**14  # numbers drawn at a time, so that all arrays fit into a processor's cache


def average_ranks(rows: Floats) -> Floats:
    """Return the ranks of the values of each row, from 1; equal values share their mean rank.

    `scipy.stats.rankdata` does the same, but takes half a second to import.

    Args:
        rows: any number of rows of values.

    Returns:
        Ranks of the same shape.

    Source: Kendall (1945), Biometrika 33, 239-251, for ties.

    >>> import numpy as np
    >>> average_ranks(np.array([[0.2, 0.9, 0.2]]))
    array([[1.5, 3. , 1.5]])
    """
    return np.ascontiguousarray(pd.DataFrame(rows).rank(axis=1))  # rows in a row, so that sums of them stay exact


Values = Sequence[float] | Floats

_EXACT = 50  # most differences for the exact distribution, in scipy and in the paper's program
_ENUMERATED = 13  # most differences with ties for the exact distribution, as in scipy
_DIGITS = 12  # digits to which differences are compared; beyond, they differ only by rounding


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test.

    `statistic` is the smaller sum of ranks; `p` is two-sided; `n` counts the differences that are not zero, `zeros`
    the others; `method` is "exact" or "normal approximation" (empty where the test is undefined).
    """

    statistic: float
    p: float
    n: int
    zeros: int
    method: str
    reason: str


@dataclass(frozen=True)
class BootstrapTest:
    """A mean difference with its interval and the two-sided p of its being zero."""

    estimate: Estimate
    p: float


def spearman_interval(x: Values, y: Values, *, n_resamples: int = 1000, rng: np.random.Generator) -> Estimate:
    """Return Spearman's rho of two samples, with a 95% percentile bootstrap interval over pairs.

    Ties get average ranks. rho is undefined (NaN, with a reason) for fewer than 3 pairs, for values that are
    not finite and for a constant sample. Resamples in which one side is constant are dropped; if more than a
    tenth of them are, there is no interval. Raises ValueError for samples of different lengths.

    Args:
        x: n numbers.
        y: as many, of the same units.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        rho with its interval.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: the interval is Efron's percentile bootstrap, as the drift figure of HTEB (Figure 3) has it.

    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> spearman_interval(x, x**2, rng=np.random.default_rng(1)).value
    1.0
    """
    return spearman_intervals([x], y, n_resamples=n_resamples, rng=rng)[0]


def spearman_intervals(
    several: Sequence[Values], y: Values, *, n_resamples: int = 1000, rng: np.random.Generator
) -> list[Estimate]:
    """Return Spearman's rho of each of several samples with one other, all over the same resamples of pairs.

    Args:
        several: samples of n numbers each.
        y: as many, of the same units.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        rho with its interval for each sample, as `spearman_interval` says.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: as `spearman_interval`.

    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> [found.value for found in spearman_intervals([x, -x], x**2, rng=np.random.default_rng(1))]
    [1.0, -1.0]
    """
    second = np.asarray(y, dtype=np.float64)
    samples = [paired(x, y)[0] for x in several]
    reasons = [_no_rho(first, second) for first in samples]
    defined = [first for first, reason in zip(samples, reasons, strict=True) if not reason]
    resamples = iter(())
    if defined:
        draws = draw_indices(rng, len(second), n_resamples, at_once=_CACHED)
        resamples = iter(np.concatenate([*map(_rhos_of_drawn(defined, second), draws)], axis=1))
    ranks, estimates = average_ranks(second[None]), list[Estimate]()
    for first, reason in zip(samples, reasons, strict=True):
        if reason:
            estimates.append(Estimate.undefined(reason, len(first)))
            continue
        rho = float(row_correlations(average_ranks(first[None]), ranks)[0])
        resampled = Bootstrap(rho, len(first), next(resamples))
        estimates.append(resampled.percentile("no interval: rho is undefined"))
    return estimates


def _no_rho(first: Floats, second: Floats) -> str:
    """Return why two samples have no rank correlation; empty if they have one."""
    if len(first) < 3:
        return f"rho needs at least 3 pairs, not {len(first)}"
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return "rho needs finite values"
    return "rho is undefined: all values of one side are equal" if 0 in (np.ptp(first), np.ptp(second)) else ""


_MOST_WHOLE = 2_000_000  # the cube of n has to be below 2 ** 63


def _rhos_of_drawn(samples: Sequence[Floats], y: Floats) -> Callable[[NDArray[np.int64]], Floats]:
    """Return a function that computes each sample's rho in resamples, given as rows of positions: samples by rows.

    Nothing is sorted but the samples, once: it is enough to count how often each place was drawn. Centred ranks are
    doubled, so that they are whole numbers: these are accumulated several times as fast as floating-point numbers, and
    their sums are exact in whatever order. More than _MOST_WHOLE pairs are summed as floating-point numbers. NaN stands
    where a side is constant, as in `row_correlations`. The squares of doubled centred ranks of n units, of which t are
    equal at each place, sum to (n^3 - sum of t^3) / 3.
    """
    n, by_y = len(y), np.argsort(y, kind="stable")
    orders = [np.argsort(x, kind="stable") for x in samples]
    y_starts, *starts = (
        np.flatnonzero(np.diff(side[by], prepend=-np.inf))
        for side, by in ((y, by_y), *zip(samples, orders, strict=True))
    )
    y_codes = np.empty(n, np.int64)
    y_codes[by_y] = np.repeat(np.arange(len(y_starts)), np.diff(y_starts, append=n))

    def squares_of(times: NDArray[np.int64]) -> NDArray[np.int64]:
        squares: NDArray[np.int64] = (n**3 - (times * times * times).sum(axis=1)) // 3
        return squares

    def correlations(drawn: NDArray[np.int64]) -> Floats:
        cells = (drawn + n * np.arange(len(drawn))[:, None]).ravel()  # by resample and place
        counts = np.bincount(cells, minlength=n * len(drawn)).reshape(len(drawn), n)
        counts = counts if n <= _MOST_WHOLE else counts.astype(np.float64)
        y_times = np.add.reduceat(np.take(counts, by_y, axis=1), y_starts, axis=1)
        y_squares, untied = squares_of(y_times), squares_of(counts)
        weighted = counts * np.take(2 * y_times.cumsum(axis=1) - y_times - n, y_codes, axis=1)
        rhos = np.full((len(samples), len(drawn)), np.nan)
        for rho, order, x_starts in zip(rhos, orders, starts, strict=True):
            x_times, summed, x_squares = np.take(counts, order, axis=1), np.take(weighted, order, axis=1), untied
            if len(x_starts) < n:
                x_times, summed = (np.add.reduceat(side, x_starts, axis=1) for side in (x_times, summed))
                x_squares = squares_of(x_times)
            product = (summed * (2 * x_times.cumsum(axis=1) - x_times)).sum(axis=1)  # ranks less n, times a sum of 0
            scale = np.sqrt(x_squares.astype(np.float64) * y_squares)
            np.divide(product, scale, out=rho, where=scale > 0)
        return rhos

    return correlations


def wilcoxon(first: Values, second: Values) -> SignedRank:
    """Wilcoxon's signed-rank test of paired samples, two-sided.

    Differences are taken to 12 digits, as means of scores differ in the last ones by rounding. Zeros are dropped
    (Wilcoxon's own treatment), tied differences get average ranks. p is exact for up to 50 differences without ties
    and for up to 13 with ties; else it is the normal approximation with the variance corrected for ties and no
    continuity correction. NaN for values that are not finite and where no difference is left.

    Args:
        first: n numbers.
        second: as many, of the same units.

    Returns:
        The test.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: Wilcoxon (1945); HTEB, 2.3 and Table 13; PTEB, 3.2.3 and E. The example is Hollander and Wolfe's, 3.1
    (Hamilton's depression scale), whose p of one side is 0.020.

    >>> from evaluation import wilcoxon
    >>> before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    >>> after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    >>> found = wilcoxon(before, after)
    >>> print(f"T = {found.statistic:g}, p = {found.p:.4f} ({found.method}, n = {found.n})")
    T = 5, p = 0.0391 (exact, n = 9)
    """
    differences = np.round(np.subtract(*paired(first, second)), _DIGITS)
    if not np.isfinite(differences).all():
        return SignedRank(math.nan, math.nan, len(differences), 0, "", "the test needs finite values")
    nonzero = differences[differences != 0]
    zeros = len(differences) - len(nonzero)
    if not len(nonzero):
        return SignedRank(math.nan, math.nan, 0, zeros, "", "the test is undefined: no difference is other than zero")
    n, (_, alike) = len(nonzero), np.unique(np.abs(nonzero), return_counts=True)
    ranks, middle = average_ranks(np.abs(nonzero)[None])[0], n * (n + 1) / 4
    above = float(ranks[nonzero > 0].sum())
    least = min(above, 2 * middle - above)
    if n <= (_EXACT if len(alike) == n else _ENUMERATED):
        twice = (2 * ranks).astype(np.int64)  # with ties there are halves
        p, method = 2 * float(_signed_sum_cdf(np.sort(twice))[int(2 * least)]), "exact"
    else:
        variance = (n * (n + 1) * (2 * n + 1) - (alike**3 - alike).sum() / 2) / 24
        p, method = 2 * float(scipy.special.ndtr((least - middle) / math.sqrt(variance))), "normal approximation"
    return SignedRank(least, min(p, 1.0), n, zeros, method, "")


def holm(p_values: Values) -> Floats:
    """Holm's adjusted p-values, in the order given; undefined ones (NaN) are no hypotheses and stay NaN.

    The i-th smallest of m is multiplied by m - i + 1, is at least what the ones before it became, and at most 1.

    Args:
        p_values: m numbers, or NaN.

    Returns:
        As many adjusted ones.

    Source: Holm (1979), Scandinavian Journal of Statistics 6; HTEB, 2.3.

    >>> holm([0.01, 0.04, 0.03]).round(2)
    array([0.03, 0.06, 0.06])
    """
    # Not by statsmodels, whose function collects all garbage before it begins: 0.3 s in a report.
    p_array = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p_array.shape, np.nan)
    order = np.argsort(p_array)[: np.isfinite(p_array).sum()]  # NaN come last
    adjusted[order] = np.minimum(np.maximum.accumulate(p_array[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


def enough_resamples(comparisons: int, smallest: float, fewest: int) -> int:
    """Return the resamples at which Holm's smallest p can be half of `smallest`, but at least `fewest`.

    A p of B resamples, the sample itself counted as one, is 1 / (B + 1) at least, and Holm multiplies it by the number
    of comparisons: with HTEB's 10 and .001, 1,000 resamples could show nothing below .01.

    Args:
        comparisons: p-values that Holm corrects together.
        smallest: the p that must be reachable.
        fewest: resamples that are wanted in any case.

    Returns:
        Number of resamples.

    Source: Holm (1979), Scand. J. Stat. 6, 65-70.

    >>> enough_resamples(10, 0.001, 10_000), enough_resamples(100, 0.05, 1000), enough_resamples(10, 0.05, 1000)
    (20000, 4000, 1000)
    """
    return max(fewest, round(2 * comparisons / smallest))


def hodges_lehmann(first: Values, second: Values) -> Estimate:
    """The Hodges-Lehmann shift of paired samples (first - second), with its 95% interval from Walsh averages.

    The shift is the median of the means of all pairs of differences, each with itself too. The interval holds the
    shifts that the exact signed-rank test does not reject: its confidence is the least possible of at least 95%,
    more with ties. There is none for fewer than 6 differences, for which no shift can be rejected so surely.
    The time grows with the cube of their number: 3,000 take 15 s on one core.

    Args:
        first: n numbers.
        second: as many, of the same units.

    Returns:
        The shift with its interval.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: Hollander and Wolfe, Nonparametric Statistical Methods, 3.2 and 3.3; HTEB, Table 13. The example is theirs,
    and so are its numbers: -0.46, from -0.786 to -0.010.

    >>> from evaluation import hodges_lehmann
    >>> before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    >>> after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    >>> found = hodges_lehmann(after, before)
    >>> print(f"{found.value:.2f}, from {found.low:.3f} to {found.high:.3f}")
    -0.46, from -0.786 to -0.010
    """
    differences = np.subtract(*paired(first, second))
    n = len(differences)
    if reason := _not_a_sample(differences, "the shift"):
        return Estimate.undefined(reason, n)
    walsh = np.sort(_walsh(differences))
    # So many averages from either end lie outside: sums of ranks below that number have a chance of 2.5% at most.
    outside = int(np.searchsorted(_signed_sum_cdf(np.arange(1, n + 1)), (1 - CONFIDENCE) / 2, side="right"))
    value = float(np.median(walsh))
    if walsh[0] == walsh[-1]:
        return Estimate.alone(value, ALIKE, n)
    if not outside:
        return Estimate.alone(value, f"a 95% interval needs at least 6 differences, not {n}", n)
    return Estimate(value=value, low=float(walsh[outside - 1]), high=float(walsh[-outside]), n=n)


def hodges_lehmann_bootstrap(
    first: Values, second: Values, *, n_resamples: int = 1000, rng: np.random.Generator
) -> Estimate:
    """Return the Hodges-Lehmann shift (first - second) with a 95% percentile bootstrap interval over the pairs.

    Args:
        first: n numbers.
        second: as many, of the same units.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        The shift with its interval.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: PTEB, 3.2.3 and Table 7.

    >>> import numpy as np
    >>> hodges_lehmann_bootstrap([3.0, 4.0, 6.0], [1.0, 2.0, 4.0], rng=np.random.default_rng(1)).value
    2.0
    """
    differences = np.subtract(*paired(first, second))
    n = len(differences)
    if reason := _not_a_sample(differences, "the shift"):
        return Estimate.undefined(reason, n)
    return bootstrap(
        lambda rows: np.array([np.median(_walsh(differences[row])) for row in rows]),
        draw_indices(rng, n, n_resamples),
        value=float(np.median(_walsh(differences))),
        n=n,
    ).percentile()


def paired_bootstrap(
    first: Values, second: Values, *, n_resamples: int = 10_000, rng: np.random.Generator
) -> BootstrapTest:
    """Return the mean difference of paired samples (first - second), its 95% interval, and the test of zero.

    The pairs are resampled. p is the share of resamples whose mean, with the found difference taken away, is as far
    from zero as it or farther; the sample itself counts as one, so p is never 0.

    Args:
        first: n numbers.
        second: as many, of the same units.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        The difference with its interval and p.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 13.3 and 16.4; HTEB, Tables 6 and 13.

    >>> import numpy as np
    >>> paired_bootstrap([3.0, 4.0, 6.0], [1.0, 2.0, 3.0], rng=np.random.default_rng(1)).estimate.value
    2.3333333333333335
    """
    differences = np.subtract(*paired(first, second))
    n = len(differences)
    if reason := _not_a_sample(differences, "the difference"):
        return BootstrapTest(Estimate.undefined(reason, n), math.nan)
    draws = draw_indices(rng, n, n_resamples)
    means = bootstrap(lambda rows: differences[rows].mean(axis=1), draws, value=float(differences.mean()), n=n)
    return BootstrapTest(means.percentile(), means.p)


def median_absolute_difference(first: Values, second: Values) -> Value:
    """The median of the paired differences' sizes (HTEB, Figure 7 and Table 13).

    Args:
        first: n numbers.
        second: as many, of the same units.

    Returns:
        The median.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: HTEB, Figure 7 and Table 13.

    >>> median_absolute_difference([1.0, 2.0, 5.0], [2.0, 2.0, 2.0]).value
    1.0
    """
    differences = np.subtract(*paired(first, second))
    reason = "" if len(differences) else "the samples are empty"
    if not np.isfinite(differences).all():
        reason = "the median needs finite values"
    return Value(math.nan if reason else float(np.median(np.abs(differences))), len(differences), reason)


def sample_sd(values: Values) -> Value:
    """The sample standard deviation (divisor n - 1); undefined for fewer than 2 values (HTEB, Tables 17 to 21).

    Args:
        values: n numbers.

    Returns:
        The standard deviation.

    Source: HTEB, Tables 17 to 21.

    >>> sample_sd([1.0, 2.0, 3.0]).value
    1.0
    """
    array = np.asarray(values, dtype=np.float64)
    reason = _not_a_sample(array, "the standard deviation")
    return Value(math.nan if reason else float(array.std(ddof=1)), len(array), reason)


def paired(x: Values, y: Values) -> tuple[Floats, Floats]:
    """Return both samples as arrays. Raises ValueError unless they are two rows of equal length and labels.

    Args:
        x: n numbers.
        y: as many.

    Returns:
        Both as arrays.

    Raises:
        ValueError: they are not two rows of one length, or of other labels.

    >>> [side.tolist() for side in paired([1, 2], [3, 4])]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    same_index(x, y, "samples")
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"pass two samples of equal length, not of shapes {first.shape} and {second.shape}")
    return first, second


def row_correlations(x: Floats, y: Floats) -> Floats:
    """Return Pearson's r of each row of `x` (resamples by n) with the same row of `y`; NaN for a constant row.

    Args:
        x: resamples by n.
        y: resamples by n.

    Returns:
        A number for each resample.

    Source: Pearson (1896), Phil. Trans. R. Soc. A 187, 253-318.

    >>> import numpy as np
    >>> row_correlations(np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 4.0, 6.0]]))
    array([1.])
    """
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    # Ranks are multiples of 1/2, so a constant row centres to exactly 0, and no other row comes close.
    product = (x * y).sum(axis=1)
    correlations = np.full(len(scale), np.nan)
    np.divide(product, scale, out=correlations, where=scale > 1e-9)
    return correlations


def _not_a_sample(values: Floats, noun: str) -> str:
    """Return why a sample is unusable; empty if it is usable."""
    if len(values) < 2:
        return f"{noun} needs at least 2 values, not {len(values)}"
    return "" if np.isfinite(values).all() else f"{noun} needs finite values"


def _walsh(differences: Floats) -> Floats:
    """Return the means of all pairs of differences, each also with itself."""
    first, second = np.triu_indices(len(differences))
    return (differences[first] + differences[second]) / 2


def _signed_sum_cdf(numbers: NDArray[np.int64]) -> Floats:
    """Return P(T <= t) for sums t up to the middle one, if each of these rising numbers is + or - with chance 1/2."""
    middle, largest = int(numbers.sum()) // 2, 0
    chances = np.zeros(middle + 1)
    chances[0] = 1.0
    for number in numbers.tolist():
        largest += number
        reached = chances[: min(largest, middle) + 1]
        reached[number:] = reached[number:] + reached[:-number]
        reached /= 2
    return np.cumsum(chances)


def letter_display(names: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return each name's letters: two names share a letter unless they are a pair of `different`.

    `names` stand in the order of their means, the best first: it is the one with an a. By insert and absorb (Piepho
    2004, J. Comput. Graph. Stat. 13, 456-466): all begin in one column; each difference splits the columns that hold
    both names into one without the one and one without the other, and columns within another are taken out.

    Args:
        names: the best first.
        different: the pairs of names that are told apart.

    Returns:
        The letters by name.

    >>> letter_display(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    columns = [frozenset(names)]
    for first, second in different:
        split: list[frozenset[str]] = []
        for column in columns:
            together = first in column and second in column
            split += [column - {first}, column - {second}] if together else [column]
        unique = list(dict.fromkeys(split))
        columns = [column for column in unique if not any(column < wider for wider in unique)]
    columns.sort(key=lambda column: [name not in column for name in names])
    letters = [f"{string.ascii_lowercase[i % 26]}{i // 26 or ''}" for i in range(len(columns))]  # a to z, a1 to z1, ...
    lettered = list(zip(letters, columns, strict=True))
    return {name: "".join(letter for letter, column in lettered if name in column) for name in names}
