"""The metrics for people's answers, of one item or of all items at once.

A metric compares answers with gold. If a score is a mean over items (accuracy, average precision of a query), it has a
value for each item; if all items are measured at once (rho, the V-measure), it is a measure of resamples
(`plumbline.statistics.resampled_measures`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.estimates import Floats
from plumbline.statistics.paired import average_ranks, row_correlations
from plumbline.statistics.resampled_measures import Counted, Measure, entropies, group_sums, mean

Values = Sequence[float] | Floats


def expected_ap(gold: Values, values: Values) -> float:
    """Return the average precision of one query, averaged over all orders of candidates with equal values.

    `gold` is above 0 for relevant candidates, `values` has the marks, grades or similarities (more is better), one for
    each candidate. A group of n tied candidates, r of them relevant, behind N others with R relevant, adds

        sum over i = 1..n of  r / n  (R + 1 + (i - 1) (r - 1) / (n - 1)) / (N + i)

    and the sum is divided by the number of relevant ones. NaN where none is relevant. Raises ValueError for sides of
    different lengths, or values that are not finite.

    Three of seven candidates are relevant, and these three and one more are marked. scikit-learn's value is 0.75.

    >>> from evaluation import expected_ap
    >>> print(f"{expected_ap([1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]):.4f}")
    0.8403
    """
    return float(ap_of_rows(*_sides(gold, values))[0])


def expected_ndcg(gold: Values, values: Values, at: int = 10) -> float:
    """Return NDCG of one query over its first `at` places, averaged over all orders of equal values.

    Gains are the gold grades themselves, as in trec_eval and mteb, discounts 1 / log2(1 + place). A tied group's mean
    gain counts at each of its places. NaN where all gold is 0. Raises ValueError as `expected_ap` does, and for
    negative gold or `at` below 1.

    >>> from evaluation import expected_ndcg
    >>> print(f"{expected_ndcg([1, 0], [1, 1]):.4f}")  # (1 + 1 / log2(3)) / 2
    0.8155
    """
    return float(ndcg_of_rows(*_sides(gold, values), at)[0])


def ap_of_rows(gold: Floats, values: Floats) -> Floats:
    """Return `expected_ap` of many queries with equally many candidates, a row each."""
    return _precisions(*_groups(gold, values))


def ndcg_of_rows(gold: Floats, values: Floats, at: int = 10) -> Floats:
    """Return `expected_ndcg` of many queries with equally many candidates, a row each."""
    if at < 1 or (gold < 0).any():
        raise ValueError("nDCG needs grades of at least 0, and `at` of at least 1")
    discounts = 1 / np.log2(np.arange(2, gold.shape[1] + 2))
    discounts[at:] = 0
    order, group = _order(values)
    sums, sizes = (_by_group(group, side) for side in (np.take_along_axis(gold, order, axis=1), np.ones_like(gold)))
    gains = np.take_along_axis(sums / np.maximum(sizes, 1), group, axis=1) @ discounts
    return _ratio(gains, -np.sort(-gold, axis=1) @ discounts)


def rr_of_rows(gold: Floats, values: Floats, at: int = 10) -> Floats:
    """Return the reciprocal rank of each row's first relevant candidate, averaged over all orders of equal values.

    It is 0 behind place `at`. In the first group with a relevant candidate, r of n relevant behind N others, the first
    is at place j with probability C(n - j, r - 1) / C(n, r). NaN if none is relevant.
    """
    relevant, total = _groups(gold, values)
    first = (relevant > 0).argmax(axis=1)[:, None]
    r, n, ends = (np.take_along_axis(side, first, axis=1) for side in (relevant, total, np.cumsum(total, axis=1)))
    position = np.arange(gold.shape[1])  # in the group, from 0
    missed = np.clip((n - r - position) / np.maximum(n - position, 1), 0, 1)
    none_earlier = np.hstack([np.ones_like(r), np.cumprod(missed, axis=1)[:, :-1]])
    rank = ends - n + position + 1
    chance = none_earlier * r / np.maximum(n - position, 1) * ((position < n) & (rank <= at))
    return _ratio((chance / rank).sum(axis=1), (r > 0)[:, 0].astype(np.float64))


def sklearn_of_rows(gold: Floats, values: Floats) -> Floats:
    """Return scikit-learn's average precision of each row: all of a tied group have the precision at its end.

    HUME's program computes this for binary marks. NaN if none is relevant.
    """
    relevant, total = _groups(gold, values)
    precision = np.cumsum(relevant, axis=1) / np.maximum(np.cumsum(total, axis=1), 1)
    return _ratio((relevant * precision).sum(axis=1), relevant.sum(axis=1))


def counted_ap(gold: Floats, values: Floats) -> Callable[[Floats], Floats]:
    """Return a function for the expected average precision of all items at once, for `resampled_measures`.

    For pair classification: items are ranked by the answers; gold above 0 is relevant.
    """
    _, group = np.unique(-values, return_inverse=True)
    sides = np.eye(int(group.max(initial=0)) + 1)[group]
    right = sides * (gold > 0)[:, None]
    return lambda counts: _precisions(counts @ right, counts @ sides)


def _precisions(relevant: Floats, total: Floats) -> Floats:
    """Return expected average precision, a row each, from the relevant and all items of each tied group.

    The best group comes first, and all rows have equally many items.
    """
    rows, groups = total.shape
    group = np.repeat(np.tile(np.arange(groups), rows), total.ravel().astype(np.int64)).reshape(rows, -1)  # by place
    rank = np.arange(1, group.shape[1] + 1)

    def at(of_groups: Floats) -> Floats:
        return np.take_along_axis(of_groups, group, axis=1)

    r, size = at(relevant), at(total)
    n_before, relevant_before = at(np.cumsum(total, axis=1) - total), at(np.cumsum(relevant, axis=1) - relevant)
    in_group = (rank - n_before - 1) * (r - 1) / np.maximum(size - 1, 1)
    terms = np.where(r > 0, r / size * (relevant_before + 1 + in_group) / rank, 0)
    return _ratio(terms.sum(axis=1), relevant.sum(axis=1))


def _groups(gold: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return (relevant items, all items) of each row's groups of equal values, the largest first, empty ones last."""
    order, group = _order(values)
    relevant = np.take_along_axis((gold > 0).astype(np.float64), order, axis=1)
    return _by_group(group, relevant), _by_group(group, np.ones_like(relevant))


def _order(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (the positions of each row's values, the largest first; the number of each one's group)."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    new = np.hstack([np.zeros((len(values), 1), bool), ranked[:, 1:] != ranked[:, :-1]])
    return order, np.cumsum(new, axis=1)


def _by_group(group: NDArray[np.int64], values: Floats) -> Floats:
    rows, width = values.shape
    cell = group + width * np.arange(rows)[:, None]
    sums: Floats = np.bincount(cell.ravel(), values.ravel(), rows * width).reshape(rows, width).astype(np.float64)
    return sums


def _ratio(top: Floats, bottom: Floats) -> Floats:
    ratios = np.full(len(top), np.nan)
    np.divide(top, bottom, out=ratios, where=bottom > 0)
    return ratios


def _sides(gold: Values, predicted: Values) -> tuple[Floats, Floats]:
    """Return both sides of one query as one row each."""
    grades, values = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
    if grades.shape != values.shape or grades.ndim != 1:
        raise ValueError(f"gold and answers must be of the same candidates: {grades.shape}, {values.shape}")
    if not (np.isfinite(grades).all() and np.isfinite(values).all()):
        raise ValueError("gold and answers must be finite for every candidate")
    return grades[None], values[None]


@dataclass(frozen=True)
class Metric:
    """A metric of all items at once: its name in mteb, and its measure, which lies between `least` and 1.

    `smooth` metrics can be resampled with replacement; those of clusterings cannot (`resampled`).
    """

    name: str
    measure: Measure = mean
    smooth: bool = True
    least: float = 0.0
    per_item: ClassVar[bool] = False  #: whether an item has a value of its own, and the score is their mean

    def read(self, right: Sequence[Any], answers: Sequence[Any]) -> Floats | None:
        """Return the values of single items (`answers` are in the form of their question); None if they have none."""
        del right, answers
        return None


@dataclass(frozen=True)
class ItemMetric(Metric):
    """A mean over items of `of_item(right, answer)`, of labels and marks; an item with NaN does not count."""

    of_item: Callable[[Any, Any], float] = field(kw_only=True)
    per_item: ClassVar[bool] = True

    def read(self, right: Sequence[Any], answers: Sequence[Any]) -> Floats:
        """Return the values of items, NaN without gold or answer."""
        both = zip(right, answers, strict=True)
        values = [math.nan if gold is None or answer is None else self.of_item(gold, answer) for gold, answer in both]
        return np.array(values, np.float64)


@dataclass(frozen=True)
class RowMetric(Metric):
    """A mean over items with several candidates; `of_rows` has a row for each of many items with equally many."""

    of_rows: Callable[[Floats, Floats], Floats] = field(kw_only=True)
    per_item: ClassVar[bool] = True

    def read(self, right: Sequence[Any], answers: Sequence[Any]) -> Floats:
        """Return the values of items, NaN without gold or answer, computed together for items of equally many."""
        both = list(zip(right, answers, strict=True))
        sizes = np.array([0 if gold is None or answer is None else len(gold) for gold, answer in both])
        values = np.full(len(both), math.nan)
        for size in set(sizes.tolist()) - {0}:
            places = np.flatnonzero(sizes == size).tolist()
            values[places] = self.of_rows(*(np.stack([both[index][side] for index in places]) for side in (0, 1)))
        return values


def accuracy(right: str, answer: tuple[str, ...]) -> float:
    """Return 1 for the right label, 0 for another; for tied labels the chance that a draw of them is right."""
    return (right in answer) / len(answer)


def same(right: float, answer: float) -> float:
    """Return whether a mark is right; a mean of marks counts by its side of a half, and a half by chance."""
    return 0.5 if answer == 0.5 else float((answer > 0.5) == (right > 0))


def rho_of_rows(right: Floats, answer: Floats) -> Floats:
    """Return Spearman's rho of each item's candidates; NaN if one side does not vary."""
    if right.shape[1] < 3:
        return np.full(len(right), math.nan)
    return row_correlations(average_ranks(right), average_ranks(answer))


def ari(gold: NDArray[Any], predicted: NDArray[Any]) -> Counted:
    """Return a function for the adjusted Rand index of two clusterings (Hubert and Arabie 1985), of drawn items."""
    _, labels = np.unique(gold, return_inverse=True)
    _, clusters = np.unique(predicted, return_inverse=True)
    cells = labels * (int(clusters.max(initial=0)) + 1) + clusters
    sums = [group_sums(groups) for groups in (cells, labels, clusters, np.zeros_like(labels))]

    def of(counts: Floats) -> Floats:
        sizes = (sums_of(counts) for sums_of in sums)
        both, first, second, every = ((n * (n - 1) / 2).sum(axis=1) for n in sizes)  # pairs of items within a group
        by_chance = first * second / np.maximum(every, 1)
        top, bottom = both - by_chance, (first + second) / 2 - by_chance
        return np.where(np.abs(bottom) > 1e-9, top / np.where(bottom == 0, 1, bottom), 1.0)

    return of


def ami(gold: NDArray[Any], predicted: NDArray[Any]) -> Counted:
    """Return a function for the adjusted mutual information of two clusterings, of drawn items; 1 if both are one.

    Vinh, Epps and Bailey (2010), JMLR 11, 2837-2854, with the mean of the entropies, as scikit-learn has it, whose
    function takes 4 ms a time: (MI - E) / ((H + H') / 2 - E), with E the mean over all clusterings of the same sizes.
    """
    _, labels = np.unique(gold, return_inverse=True)
    _, clusters = np.unique(predicted, return_inverse=True)
    sums = [group_sums(groups) for groups in (labels, clusters, labels * (int(clusters.max(initial=0)) + 1) + clusters)]

    def of(counts: Floats) -> Floats:
        first, second, joint = (sums_of(counts) for sums_of in sums)
        h_first, h_second, h_joint = (entropies(sizes_of) for sizes_of in (first, second, joint))
        sizes, which = np.unique(np.hstack([first, second]).astype(np.int64), axis=0, return_inverse=True)
        by_chance = _by_chance(sizes[:, : first.shape[1]], sizes[:, first.shape[1] :])[which]
        top, bottom = h_first + h_second - h_joint - by_chance, (h_first + h_second) / 2 - by_chance
        return np.where(np.abs(bottom) > 1e-12, top / np.where(bottom == 0, 1, bottom), 1.0)

    return of


def _by_chance(first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """Return the mean mutual information of random clusterings of these sizes (a row each)."""
    n = first.sum(axis=1)[:, None, None, None]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n.max() + 1)))])  # of factorials
    a, b = first[:, :, None, None], second[:, None, :, None]
    both = np.arange(1, int(min(first.max(), second.max())) + 1)

    def log(number: NDArray[np.int64]) -> Floats:
        return logs[np.clip(number, 0, len(logs) - 1)]

    chance = log(a) + log(b) + log(n - a) + log(n - b) - log(n)
    chance = chance - log(both) - log(a - both) - log(b - both) - log(n - a - b + both)
    shared = both / n * np.log(n * both / np.maximum(a * b, 1))
    possible = (both <= a) & (both <= b) & (both >= a + b - n)
    expected: Floats = np.where(possible, shared * np.exp(np.where(possible, chance, 0)), 0).sum(axis=(1, 2, 3))
    return expected


def cohen(first: NDArray[Any], second: NDArray[Any]) -> Counted:
    """Return a function for Cohen's kappa of two raters' labels; NaN if chance agreement is complete (Cohen 1960)."""
    labels = np.unique(np.concatenate([first, second]))
    of_first, of_second = ((side[:, None] == labels).astype(np.float64) for side in (first, second))
    same = (first == second).astype(np.float64)

    def of(counts: Floats) -> Floats:
        n = counts.sum(axis=1)
        by_chance = ((counts @ of_first) * (counts @ of_second)).sum(axis=1) / n**2
        kappas = np.full(len(n), np.nan)
        np.divide(counts @ same / n - by_chance, 1 - by_chance, out=kappas, where=by_chance < 1 - 1e-12)
        return kappas

    return of
