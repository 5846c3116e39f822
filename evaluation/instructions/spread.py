"""The variation of scores with the wording, the default's position, and people's against machines' wordings.

`scores` are the wordings' (without the default), NaN without a score; the last axis is the wordings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.frames import same_index
from plumbline.statistics.estimates import Bootstrap, Estimate, Floats, Value
from plumbline.words import count

LEAST = 2  # distinct wordings, below which nothing varies
_DIGITS = 12  # scores equal to this precision are ties


def coefficient_of_variation(scores: Sequence[float] | Floats) -> Value:
    """Return the standard deviation of one model's scores on a task as a share of their mean.

    The standard deviation over the wordings is the population's (divisor n). NaN with a reason for fewer than 2 scores,
    and if the mean is not above 0: then a share of it has no meaning. It depends on the metric's zero: see the standard
    deviation and the range too.

    Source: arXiv 2605.22544, Figure 3 (the default is not among the scores).

    >>> from evaluation import coefficient_of_variation
    >>> found = coefficient_of_variation([0.70, 0.72, 0.68])  # sd = 0.0163, mean = 0.70
    >>> round(found.value, 4), found.n
    (0.0233, 3)
    """
    values = np.asarray(scores, dtype=np.float64)
    defined = values[~np.isnan(values)]
    value = float(variation(defined[None])[0]) if len(defined) else math.nan
    return Value(
        value, len(defined), variation_reason(len(defined), float(defined.mean()) if len(defined) else math.nan)
    )


def variation(scores: Floats) -> Floats:
    """Return `coefficient_of_variation` along the last axis; NaN if undefined."""
    n, mean, sd = moments(scores)
    cv = np.full(n.shape, np.nan)
    np.divide(sd, mean, out=cv, where=(n >= LEAST) & (mean > 0))
    return cv


def variation_reason(n: int, mean: float) -> str:
    """Return why there is no coefficient of variation; empty if there is one."""
    if n < LEAST:
        return f"{count(n, 'distinct wording')}, but {LEAST} are needed"
    return "" if mean > 0 else "the mean is not above 0, so the coefficient of variation has no meaning"


def moments(scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Return number, mean and population standard deviation along the last axis."""
    scored = ~np.isnan(scores)
    n = scored.sum(axis=-1)
    some = np.maximum(n, 1)
    mean = np.where(n > 0, np.where(scored, scores, 0).sum(axis=-1) / some, np.nan)
    squares = np.where(scored, (scores - mean[..., None]) ** 2, 0).sum(axis=-1)
    return n.astype(np.float64), mean, np.where(n > 0, np.sqrt(squares / some), np.nan)


def default_ecdf(scores: Sequence[float] | Floats, default: float | Floats, *, with_itself: bool = False) -> Floats:
    """Return the share of wordings that score at most as the default, along the last axis.

    `with_itself` counts the default as a wording, as the paper does: then the share is at least 1 / (n + 1). Ties count
    as at most. NaN without wordings or default.

    Source: arXiv 2605.22544, 3.3 and Figure 5 (with the default itself).

    >>> from evaluation import default_ecdf
    >>> wordings = [0.61, 0.64, 0.66, 0.70]
    >>> float(default_ecdf(wordings, 0.65)), float(default_ecdf(wordings, 0.65, with_itself=True))
    (0.5, 0.6)
    """
    grid, defaults = np.asarray(scores, dtype=np.float64), np.asarray(default, dtype=np.float64)
    n = (~np.isnan(grid)).sum(axis=-1)
    below = (np.round(grid, _DIGITS) <= np.round(defaults, _DIGITS)[..., None]).sum(axis=-1)
    defined = (n > 0) & ~np.isnan(defaults)
    return np.where(defined, (below + with_itself) / np.maximum(n + with_itself, 1), np.nan)


def above_median(scores: Floats, default: Floats) -> Floats:
    """Return 1 if the default scores more than the wordings' median, 0 if not, NaN if either is missing."""
    middle = median(scores)
    more = np.round(default, _DIGITS) > np.round(middle, _DIGITS)
    return np.where(np.isnan(middle) | np.isnan(default), np.nan, more.astype(np.float64))


def median(scores: Floats) -> Floats:
    """Return the median along the last axis; NaN without scores."""
    return quantile(scores, 0.5)


def quantile(scores: Floats, share: float) -> Floats:
    """Return a quantile along the last axis, linear between the existing scores."""
    ordered = np.sort(scores, axis=-1)  # NaN come last
    n = (~np.isnan(scores)).sum(axis=-1)
    position = np.maximum(n - 1, 0) * share
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    first = np.take_along_axis(ordered, low[..., None], axis=-1)[..., 0]
    second = np.take_along_axis(ordered, high[..., None], axis=-1)[..., 0]
    quantiles: Floats = first + (second - first) * (position - low)
    return quantiles


def share_above_median(
    scores: Floats, default: Floats, *, n_resamples: int = 10_000, rng: np.random.Generator
) -> Estimate:
    """Return the share of tasks whose default scores more than the median wording, with a 95% interval.

    `scores` are tasks by wordings, `default` is by task. The interval is the percentile bootstrap's over tasks; there
    is none if the default is on the same side of every median, as all resamples would be equal.

    >>> import numpy as np
    >>> from evaluation import share_above_median
    >>> scores = np.array([[0.5, 0.6], [0.7, 0.8], [0.3, 0.4], [0.5, 0.7], [0.2, 0.3]])
    >>> found = share_above_median(scores, np.array([0.6, 0.7, 0.5, 0.7, 0.4]), rng=np.random.default_rng(1))
    >>> found.value, found.n
    (0.8, 5)
    """
    above = above_median(*_by_task(scores, default))
    defined = above[~np.isnan(above)]
    return _over_tasks(defined, np.mean, _means, n_resamples, rng)


def median_ecdf(scores: Floats, default: Floats, *, n_resamples: int = 10_000, rng: np.random.Generator) -> Estimate:
    """Return the median over tasks of the default's ECDF, counting it as a wording, with a 95% interval.

    The paper's Figure 5 shows this as P(reported > median), but it is not that probability (`share_above_median` is).
    The interval is the percentile bootstrap's over tasks.

    Source: arXiv 2605.22544, 3.3 and Figure 5, in percent there.

    >>> import numpy as np
    >>> from evaluation import median_ecdf
    >>> scores = np.array([[0.5, 0.6, 0.7], [0.7, 0.8, 0.9], [0.3, 0.4, 0.5]])
    >>> found = median_ecdf(scores, np.array([0.65, 0.95, 0.2]), rng=np.random.default_rng(1))
    >>> found.value, found.n  # 3/4, 4/4 and 1/4
    (0.75, 3)
    """
    ecdf = default_ecdf(*_by_task(scores, default), with_itself=True)
    return _over_tasks(ecdf[~np.isnan(ecdf)], np.median, _medians, n_resamples, rng)


def _by_task(scores: Floats, default: Floats) -> tuple[Floats, Floats]:
    same_index(scores, default, "samples")
    grid, defaults = np.asarray(scores, dtype=np.float64), np.asarray(default, dtype=np.float64)
    if grid.ndim != 2 or defaults.shape != grid.shape[:1]:
        raise ValueError(
            f"scores must be tasks by wordings, with one default per task, not of shapes {grid.shape}, {defaults.shape}"
        )
    return grid, defaults


def _over_tasks(
    values: Floats,
    reduce: Callable[..., Any],
    resampled: Callable[[Floats, int, np.random.Generator], Floats],
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """Return a mean or median over tasks with the percentile bootstrap's interval."""
    n = len(values)
    if not n:
        return Estimate.undefined("no task has both wordings and a default")
    value = float(reduce(values))
    if n < LEAST or np.ptp(values) == 0:
        reason = "a single task has no interval over tasks" if n < LEAST else "the value is the same on every task"
        return Estimate.alone(value, reason, n)
    return Bootstrap(value, n, resampled(values, n_resamples, rng)).percentile()


def _means(values: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Return means of resamples of zeros and ones: the number of ones drawn is binomial."""
    return rng.binomial(len(values), float(values.mean()), number) / len(values)


def _medians(values: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Return medians of resamples, from the positions of the middle uniform numbers among sorted values.

    The k-th smallest of n uniform numbers is Beta(k, n - k + 1); the next is the smallest of n - k above it.
    """
    n, ordered = len(values), np.sort(values)
    k = (n + 1) // 2
    first = rng.beta(k, n - k + 1, number)
    second = first if n % 2 else 1 - (1 - first) * rng.random(number) ** (1 / (n - k))
    places = (np.minimum((middle * n).astype(np.int64), n - 1) for middle in (first, second))
    low, high = (ordered[index] for index in places)
    medians: Floats = (low + high) / 2
    return medians


N_RESAMPLES = 100_000
_EXACT = 40  # scores of both sides, up to which every split is counted


@dataclass(frozen=True)
class MedianTest:
    """The difference of medians and its two-sided p.

    `difference` is median(first) - median(second); `method` is "exact" or the number of resamples; undefined values are
    NaN, with the `reason`.
    """

    difference: float
    p: float
    n: tuple[int, int]
    method: str
    reason: str


def median_permutation_test(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, *, rng: np.random.Generator
) -> MedianTest:
    """Test whether the medians of two groups of scores differ by more than chance, by permutation.

    p is twice the smaller tail, with ties in both, at most 1. Up to 40 scores it is exact: medians depend only on
    positions in the sorted scores, whose frequencies over all splits are counted. Beyond, 100,000 random splits are
    drawn, and the observed one counts as one of them. NaN for fewer than 2 scores on a side, or if all scores are
    equal.

    Source: arXiv 2605.22544, Figures 7 and 8 (scipy's permutation_test, 10,000 resamples). The exact count is ours.

    >>> import numpy as np
    >>> from evaluation import median_permutation_test
    >>> found = median_permutation_test([0.9, 0.8, 0.7], [0.3, 0.2, 0.1], rng=np.random.default_rng(1))
    >>> round(found.difference, 2), round(found.p, 3), found.method  # twice the 2 of 20 ways
    (0.6, 0.2, 'exact')
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    sizes = len(x), len(y)
    both = np.sort(np.concatenate([x, y]))
    reason = ""
    if min(sizes) < 2:
        reason = f"a test needs at least 2 wordings on each side, not {sizes[0]} and {sizes[1]}"
    elif np.ptp(both) == 0:
        reason = "all wordings score the same"
    if reason:
        gap = float(np.median(x) - np.median(y)) if min(sizes) else math.nan
        return MedianTest(gap, math.nan, sizes, "", reason)
    difference = round(float(np.median(x) - np.median(y)), _DIGITS)
    if len(both) <= _EXACT:
        places, counts = _median_places(*sizes)
        gaps = np.round(both[places[:, :2]].mean(axis=1) - both[places[:, 2:]].mean(axis=1), _DIGITS)
        total = counts.sum()
        exact = float(min(counts[gaps >= difference].sum(), counts[gaps <= difference].sum()) / total)
        return MedianTest(difference, min(1.0, 2 * exact), sizes, "exact", "")
    n, rows, drawn = sizes[0], max(1, 2**21 // len(both)), []
    for start in range(0, N_RESAMPLES, rows):
        order = rng.random((min(rows, N_RESAMPLES - start), len(both))).argsort(axis=1)
        drawn.append(np.median(both[order[:, :n]], axis=1) - np.median(both[order[:, n:]], axis=1))
    gaps = np.round(np.concatenate(drawn), _DIGITS)
    tail = (1 + min(np.count_nonzero(gaps >= difference), np.count_nonzero(gaps <= difference))) / (1 + N_RESAMPLES)
    return MedianTest(difference, min(1.0, 2 * tail), sizes, f"{N_RESAMPLES:,} resamples", "")


@lru_cache(maxsize=64)
def _median_places(n: int, m: int) -> tuple[NDArray[np.int64], Floats]:
    """Return positions of both middle scores of each group among all sorted ones, and the number of splits with them.

    `n` and `m` are the groups' sizes; a group of an odd size has its one middle score twice. Sorted scores go to the
    groups one after another; a split's state is the number in the first group and the positions of middles so far.
    """
    of_first, of_second = {(n - 1) // 2, n // 2}, {(m - 1) // 2, m // 2}
    ways: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {(0, (), ()): 1}
    for position in range(n + m):
        after: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
        for (n_first, first, second), number in ways.items():
            if n_first < n:
                key = (n_first + 1, (*first, position) if n_first in of_first else first, second)
                after[key] = after.get(key, 0) + number
            if position - n_first < m:
                key = (n_first, first, (*second, position) if position - n_first in of_second else second)
                after[key] = after.get(key, 0) + number
        ways = after
    places = [[first[0], first[-1], second[0], second[-1]] for _, first, second in ways]
    return np.array(places, dtype=np.int64), np.array(list(ways.values()), dtype=np.float64)
