"""Compute measures of resamples fast: items are sorted once, and a resample is a count of each item.

A measure takes gold and a model's values of the items, and returns a function of counts (resamples by items) with a
value for each resample; NaN where undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.estimates import Floats

Counted = Callable[[Floats], Floats]
Measure = Callable[[NDArray[Any], NDArray[Any]], Counted]
_CELLS = 1_000_000  # most resamples times labels (or items) summed at a time
_NONE = 1e-9  # smaller sums of squared ranks (multiples of 1/4) are rounding errors


def mean(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """Return the mean of a model's values.

    Args:
        gold: the items' gold, which is ignored.
        values: of the items.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    >>> import numpy as np
    >>> mean(np.zeros(3), np.array([1.0, 2.0, 6.0]))(np.ones((1, 3)))
    array([3.])
    """
    return lambda counts: counts @ values / counts.sum(axis=1)


def rho(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """Spearman's rho: Pearson's r of ranks, ties with their average rank.

    Args:
        gold: the items' gold.
        values: a model's values of them.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    Source: Spearman (1904), The American Journal of Psychology 15, 72-101.

    >>> import numpy as np
    >>> rho(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))(np.ones((1, 3)))
    array([1.])
    """
    first, second = _ranks(gold), _ranks(values)

    def of(counts: Floats) -> Floats:
        middle = (counts.sum(axis=1, keepdims=True) + 1) / 2
        x, y = first(counts) - middle, second(counts) - middle
        scale = np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))
        return _ratio((counts * x * y).sum(axis=1), scale)

    return of


def precision(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """Average precision for items whose gold is 1, equal values taken as one threshold (scikit-learn's).

    The sum over thresholds of precision by the recall that each adds.

    Args:
        gold: 1 for right items.
        values: the items' scores.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    Source: scikit-learn's `average_precision_score`.

    >>> import numpy as np
    >>> precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.7]))(np.ones((1, 3))).round(3)
    array([0.833])
    """
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    right = (gold[order] == 1).astype(np.float64)

    def of(counts: Floats) -> Floats:
        sorted_counts = counts[:, order]
        hits = np.cumsum(sorted_counts * right, axis=1)[:, ends]
        predicted = np.cumsum(sorted_counts, axis=1)[:, ends]
        added = np.diff(hits, axis=1, prepend=0)
        return _ratio((added * hits / np.maximum(predicted, 1)).sum(axis=1), hits[:, -1])

    return of


def v_measure(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """The V-measure: the harmonic mean of homogeneity and completeness (scikit-learn's); 1 where both are constant.

    Args:
        gold: the items' labels.
        values: their clusters.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    Source: Rosenberg and Hirschberg (2007), EMNLP-CoNLL, 410-420.

    >>> import numpy as np
    >>> v_measure(np.array([0, 0, 1, 1]), np.array([5, 5, 7, 7]))(np.ones((1, 4)))
    array([1.])
    """
    _, labels = np.unique(gold, return_inverse=True)
    _, clusters = np.unique(values, return_inverse=True)
    sums = [group_sums(groups) for groups in (labels, clusters, labels * (int(clusters.max(initial=0)) + 1) + clusters)]

    def of(counts: Floats) -> Floats:
        h_labels, h_clusters, h_joint = (entropies(sums_of(counts)) for sums_of in sums)
        shared = np.maximum(0, h_labels + h_clusters - h_joint)
        both = h_labels + h_clusters  # 2hc / (h + c), of h = shared / h_labels and c = shared / h_clusters
        return np.where(both > _NONE, 2 * shared / np.maximum(both, _NONE), 1.0)

    return of


def group_sums(group: NDArray[Any]) -> Counted:
    """Return sums of counts by group: resamples by groups, in the order of their numbers.

    Args:
        group: the number of each item's group, from 0 on.

    Returns:
        A function of counts (resamples by items) with sums, resamples by groups.

    >>> import numpy as np
    >>> group_sums(np.array([0, 1, 0]))(np.array([[1.0, 2.0, 3.0]]))
    array([[4., 2.]])
    """
    order = np.argsort(group, kind="stable")
    starts = np.append(0, np.flatnonzero(np.diff(group[order])) + 1)
    return lambda counts: np.add.reduceat(counts[:, order], starts, axis=1)


def weighted_f1(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """Return F1 of each gold label, weighted by its frequency in gold (scikit-learn's `weighted`).

    Args:
        gold: the items' labels, from 0 on.
        values: those that a model gave.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    Source: scikit-learn's `f1_score(average="weighted")`.

    >>> import numpy as np
    >>> weighted_f1(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))(np.ones((1, 4))).round(3)
    array([0.733])
    """
    return _f1(gold, values, lambda each, wanted, _: (wanted * each).sum(axis=1) / wanted.sum(axis=1))


def macro_f1(gold: NDArray[Any], values: NDArray[Any]) -> Counted:
    """Return the mean F1 of the labels in gold or in the model's values (scikit-learn's `macro`).

    Args:
        gold: the items' labels, from 0 on.
        values: those that a model gave.

    Returns:
        A function of counts (resamples by items) with a value for each resample.

    Source: scikit-learn's `f1_score(average="macro")`.

    >>> import numpy as np
    >>> macro_f1(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))(np.ones((1, 4))).round(3)
    array([0.733])
    """
    return _f1(gold, values, lambda each, _, present: each.sum(axis=1) / present.sum(axis=1))


def _f1(gold: NDArray[Any], values: NDArray[Any], mean_of: Callable[[Floats, Floats, Floats], Floats]) -> Counted:
    """Return a mean of labels' F1; `mean` takes each F1, the label's gold count, and whether it appears."""
    gold, values = gold.astype(np.int64), values.astype(np.int64)
    size = int(max(gold.max(), values.max())) + 1
    rows_at_once = max(1, _CELLS // max(size, len(gold)))
    right = (gold == values).astype(np.float64)

    def sums(labels: NDArray[np.int64], counts: Floats) -> Floats:
        cells = (np.arange(len(counts))[:, None] * size + labels).ravel()
        cells_sum: Floats = np.bincount(cells, counts.ravel(), len(counts) * size).astype(np.float64).reshape(-1, size)
        return cells_sum

    def some(counts: Floats) -> Floats:
        wanted, both = sums(gold, counts), sums(gold, counts) + sums(values, counts)
        each = 2 * sums(gold, counts * right) / np.maximum(1, both)
        return mean_of(each, wanted, (both > 0).astype(np.float64))

    def of(counts: Floats) -> Floats:
        return np.concatenate([some(counts[k : k + rows_at_once]) for k in range(0, len(counts), rows_at_once)])

    return of


def _ranks(values: NDArray[Any]) -> Counted:
    """Return the average ranks of the items in each resample (resamples by items); copies are tied."""
    order = np.argsort(values, kind="stable")
    starts = np.append(0, np.flatnonzero(np.diff(values[order])) + 1)
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))

    def of(counts: Floats) -> Floats:
        sizes = np.add.reduceat(counts[:, order], starts, axis=1)
        ranks: Floats = (np.cumsum(sizes, axis=1) - (sizes - 1) / 2)[:, group]
        return ranks

    return of


def entropies(counts: Floats) -> Floats:
    """Return the entropy of each row's shares.

    Args:
        counts: rows by kinds.

    Returns:
        -sum p log p, a number for each row.

    Source: Shannon (1948), Bell System Technical Journal 27, 379-423.

    >>> import numpy as np
    >>> entropies(np.array([[1.0, 1.0], [2.0, 0.0]])).round(3)
    array([ 0.693, -0.   ])
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    entropy: Floats = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    return entropy


def _ratio(top: Floats, bottom: Floats) -> Floats:
    ratio = np.full(len(top), np.nan)
    np.divide(top, bottom, out=ratio, where=bottom > _NONE)
    return ratio
