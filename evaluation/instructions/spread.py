"""How far scores move with the wording, and where the default lies among them: pure functions of arrays.

`scores` are the wordings' (the default is not among them), NaN where one was not scored; the last axis is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plumbline.frames import same_index
from plumbline.statistics.estimates import Bootstrap, Estimate, Floats, Value

LEAST = 2  # distinct wordings, below which nothing varies
_DIGITS = 12  # scores that agree so far are equal


def coefficient_of_variation(scores: Sequence[float] | Floats) -> Value:
    """The standard deviation of one model's scores on a task over the wordings, as a share of their mean.

    The standard deviation is the population's (divisor n). NaN with a reason for fewer than 2 scores, and where the
    mean is not above 0: then a share of it says nothing. It hangs on the metric's zero: look at the standard deviation
    and the range too.

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
    """`coefficient_of_variation` along the last axis; NaN where it is undefined."""
    n, mean, sd = moments(scores)
    cv = np.full(n.shape, np.nan)
    np.divide(sd, mean, out=cv, where=(n >= LEAST) & (mean > 0))
    return cv


def variation_reason(n: int, mean: float) -> str:
    """Why there is no coefficient of variation; empty where there is one."""
    if n < LEAST:
        return f"{n} distinct wording{'s' * (n != 1)}: it takes {LEAST}"
    return "" if mean > 0 else "the mean is not above 0: no share of it says anything"


def moments(scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Number, mean and population standard deviation along the last axis."""
    scored = ~np.isnan(scores)
    n = scored.sum(axis=-1)
    some = np.maximum(n, 1)
    mean = np.where(n > 0, np.where(scored, scores, 0).sum(axis=-1) / some, np.nan)
    squares = np.where(scored, (scores - mean[..., None]) ** 2, 0).sum(axis=-1)
    return n.astype(np.float64), mean, np.where(n > 0, np.sqrt(squares / some), np.nan)


def default_ecdf(scores: Sequence[float] | Floats, default: float | Floats, *, with_itself: bool = False) -> Floats:
    """The share of wordings that score at most what the default does, along the last axis.

    `with_itself` counts the default as one more, which is how the paper has it: then it is at least 1 / (n + 1). Ties
    count as at most. NaN without wordings or default.

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
    """1 where the default scores more than the wordings' median, 0 where not, NaN where either is missing."""
    middle = median(scores)
    more = np.round(default, _DIGITS) > np.round(middle, _DIGITS)
    return np.where(np.isnan(middle) | np.isnan(default), np.nan, more.astype(np.float64))


def median(scores: Floats) -> Floats:
    """The median along the last axis; NaN where there are no scores."""
    return quantile(scores, 0.5)


def quantile(scores: Floats, share: float) -> Floats:
    """A quantile along the last axis, linear between scores, of those that are there."""
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
    """On what share of tasks a model's default scores more than the median of its wordings, with a 95% interval.

    `scores` are tasks by wordings, `default` is by task. The interval is the percentile bootstrap's over tasks; there
    is none where the default is on the same side of every median: resamples would all be alike.

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
    """The median over tasks of the default's ECDF, the default counted as one of the wordings, with a 95% interval.

    This is what the paper's Figure 5 shows under the name P(reported > median), and is not that probability
    (`share_above_median` is). The interval is the percentile bootstrap's over tasks.

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
            f"tasks by wordings and a default a task are needed, not of shapes {grid.shape}, {defaults.shape}"
        )
    return grid, defaults


def _over_tasks(
    values: Floats,
    reduce: Callable[..., Any],
    resampled: Callable[[Floats, int, np.random.Generator], Floats],
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """A mean or median over tasks with the percentile bootstrap's interval."""
    n = len(values)
    if not n:
        return Estimate.undefined("no task has both wordings and a default")
    value = float(reduce(values))
    if n < LEAST or np.ptp(values) == 0:
        why = "one task has no interval over tasks" if n < LEAST else "the same on every task: resamples are all alike"
        return Estimate.alone(value, why, n)
    return Bootstrap(value, n, resampled(values, n_resamples, rng)).percentile()


def _means(values: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Means of resamples of noughts and ones: how many ones are drawn is binomial."""
    return rng.binomial(len(values), float(values.mean()), number) / len(values)


def _medians(values: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Medians of resamples, by the places that the middle ones of as many uniform numbers have among sorted values.

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
