"""Metrics of rankings with ties, as their expected value over all orders of what is tied.

People mark candidates as relevant or not, or give them one of a few grades; models rank them all. scikit-learn's
average precision takes the precision at the end of a tied group for all in it, trec_eval orders the group by document
id: with either, part of what lies between people and models is how ties are broken. The expected value over all orders
is what a ranking that knows nothing more gets. The formulas are those of McSherry and Najork (2008), Computing
Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores, ECIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Sequence[float] | Floats


def expected_ap(gold: Values, given: Values) -> float:
    """Average precision of one query, in the mean over all orders of candidates with equal values.

    `gold` is above 0 for what is relevant, `given` the marks, grades or similarities (more is better), one for each
    candidate. A group of n tied candidates, r of them relevant, behind N others with R relevant, adds

        sum over i = 1..n of  r / n  (R + 1 + (i - 1) (r - 1) / (n - 1)) / (N + i)

    and the sum is divided by the number of relevant ones. NaN where none is relevant. Raises ValueError for sides of
    different lengths, or values that are not finite.

    Three of seven relevant, these three and one more marked: scikit-learn has 0.75 whichever they are.

    >>> from evaluation import expected_ap
    >>> print(f"{expected_ap([1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]):.4f}")
    0.8403
    """
    return float(ap_of_rows(*_sides(gold, given))[0])


def expected_ndcg(gold: Values, given: Values, at: int = 10) -> float:
    """NDCG of one query over its first `at` places, in the mean over all orders of candidates with equal values.

    Gains are the gold grades themselves, as in trec_eval and mteb, discounts 1 / log2(1 + place). A tied group's mean
    gain stands on each of its places. NaN where all gold is 0. Raises ValueError as `expected_ap` does, and for
    negative gold or `at` below 1.

    >>> from evaluation import expected_ndcg
    >>> print(f"{expected_ndcg([1, 0], [1, 1]):.4f}")  # (1 + 1 / log2(3)) / 2
    0.8155
    """
    return float(ndcg_of_rows(*_sides(gold, given), at)[0])


def expected_rr(gold: Values, given: Values, at: int = 10) -> float:
    """Reciprocal rank of the first relevant candidate, 0 behind place `at`, over all orders of equal values.

    In the first group with any, r of n relevant behind N others, the first stands at the j-th place with probability
    C(n - j, r - 1) / C(n, r). NaN where none is relevant. Raises ValueError as `expected_ap` does.
    """
    return float(rr_of_rows(*_sides(gold, given), at)[0])


def sklearn_ap(gold: Values, given: Values) -> float:
    """scikit-learn's average precision: all of a tied group have the precision at its end.

    Beside the expected value, and what HUME's program computes of binary marks. NaN where none is relevant.
    """
    return float(sklearn_of_rows(*_sides(gold, given))[0])


def ap_of_rows(gold: Floats, given: Floats) -> Floats:
    """`expected_ap` of many queries with equally many candidates, a row each."""
    return _precisions(*_groups(gold, given))


def ndcg_of_rows(gold: Floats, given: Floats, at: int = 10) -> Floats:
    """`expected_ndcg` of many queries with equally many candidates, a row each."""
    if at < 1 or (gold < 0).any():
        raise ValueError("nDCG needs grades of 0 and more, and a place from 1 on")
    discounts = 1 / np.log2(np.arange(2, gold.shape[1] + 2))
    discounts[at:] = 0
    order, group = _order(given)
    sums, sizes = (_by_group(group, one) for one in (np.take_along_axis(gold, order, axis=1), np.ones_like(gold)))
    found = np.take_along_axis(sums / np.maximum(sizes, 1), group, axis=1) @ discounts
    return _ratio(found, -np.sort(-gold, axis=1) @ discounts)


def rr_of_rows(gold: Floats, given: Floats, at: int = 10) -> Floats:
    """`expected_rr` of many queries with equally many candidates, a row each."""
    relevant, total = _groups(gold, given)
    first = (relevant > 0).argmax(axis=1)[:, None]
    r, n, ends = (np.take_along_axis(one, first, axis=1) for one in (relevant, total, np.cumsum(total, axis=1)))
    place = np.arange(gold.shape[1])  # in the group, from 0
    missed = np.clip((n - r - place) / np.maximum(n - place, 1), 0, 1)
    before = np.hstack([np.ones_like(r), np.cumprod(missed, axis=1)[:, :-1]])
    rank = ends - n + place + 1
    chance = before * r / np.maximum(n - place, 1) * ((place < n) & (rank <= at))
    return _ratio((chance / rank).sum(axis=1), (r > 0)[:, 0].astype(np.float64))


def sklearn_of_rows(gold: Floats, given: Floats) -> Floats:
    """`sklearn_ap` of many queries with equally many candidates, a row each."""
    relevant, total = _groups(gold, given)
    precision = np.cumsum(relevant, axis=1) / np.maximum(np.cumsum(total, axis=1), 1)
    return _ratio((relevant * precision).sum(axis=1), relevant.sum(axis=1))


def counted_ap(gold: Floats, made: Floats) -> Callable[[Floats], Floats]:
    """Expected average precision of all items at once, as `resampled_measures` takes it.

    For pair classification: items whose gold is above 0, ranked by what was answered.
    """
    _, group = np.unique(-made, return_inverse=True)
    sides = np.eye(int(group.max(initial=0)) + 1)[group]
    right = sides * (gold > 0)[:, None]
    return lambda counts: _precisions(counts @ right, counts @ sides)


def _precisions(relevant: Floats, total: Floats) -> Floats:
    """Expected average precision, a row each, from the relevant and all of each tied group, the best group first.

    All rows have equally many items.
    """
    rows, groups = total.shape
    group = np.repeat(np.tile(np.arange(groups), rows), total.ravel().astype(np.int64)).reshape(rows, -1)  # by place
    place = np.arange(1, group.shape[1] + 1)

    def at(of_groups: Floats) -> Floats:
        return np.take_along_axis(of_groups, group, axis=1)

    r, size = at(relevant), at(total)
    before, relevant_before = at(np.cumsum(total, axis=1) - total), at(np.cumsum(relevant, axis=1) - relevant)
    others = (place - before - 1) * (r - 1) / np.maximum(size - 1, 1)
    terms = np.where(r > 0, r / size * (relevant_before + 1 + others) / place, 0)
    return _ratio(terms.sum(axis=1), relevant.sum(axis=1))


def _groups(gold: Floats, given: Floats) -> tuple[Floats, Floats]:
    """(relevant ones, all) of each row's groups of equal values, the largest first; empty ones at the end."""
    order, group = _order(given)
    relevant = np.take_along_axis((gold > 0).astype(np.float64), order, axis=1)
    return _by_group(group, relevant), _by_group(group, np.ones_like(relevant))


def _order(given: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(the places of each row's values, the largest first; the number of the group that each is in)."""
    order = np.argsort(-given, axis=1, kind="stable")
    ranked = np.take_along_axis(given, order, axis=1)
    new = np.hstack([np.zeros((len(given), 1), bool), ranked[:, 1:] != ranked[:, :-1]])
    return order, np.cumsum(new, axis=1)


def _by_group(group: NDArray[np.int64], values: Floats) -> Floats:
    """Sums by group, a row each."""
    rows, width = values.shape
    cell = group + width * np.arange(rows)[:, None]
    sums: Floats = np.bincount(cell.ravel(), values.ravel(), rows * width).reshape(rows, width).astype(np.float64)
    return sums


def _ratio(top: Floats, bottom: Floats) -> Floats:
    found = np.full(len(top), np.nan)
    np.divide(top, bottom, out=found, where=bottom > 0)
    return found


def _sides(gold: Values, given: Values) -> tuple[Floats, Floats]:
    """Both sides of one query, as one row each."""
    grades, values = np.asarray(gold, np.float64), np.asarray(given, np.float64)
    if grades.shape != values.shape or grades.ndim != 1:
        raise ValueError(f"gold and answers of the same candidates are needed: {grades.shape}, {values.shape}")
    if not (np.isfinite(grades).all() and np.isfinite(values).all()):
        raise ValueError("gold and answers of every candidate are needed: some are not finite")
    return grades[None], values[None]
