"""What people are scored by: the metrics of each way of asking, of one item or of all items at once.

A metric reads right answers and given ones. Where a score is a mean over items (accuracy, average precision of a
query), it has a value for each item; where all items are measured at once (rho, the V-measure), it is a measure of
resamples (`plumbline.statistics.resampled_measures`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evaluation.human.ties import ap_of_rows, counted_ap, ndcg_of_rows, rr_of_rows, sklearn_of_rows
from plumbline.statistics.estimates import Floats
from plumbline.statistics.paired import average_ranks, row_correlations
from plumbline.statistics.resampled_measures import (
    Counted,
    Measure,
    entropies,
    group_sums,
    macro_f1,
    mean,
    rho,
    v_measure,
    weighted_f1,
)

Asked = Literal["score", "label", "labels", "same", "cluster", "graded", "binary", "ranked", "choice"]
OF_CANDIDATES = ("graded", "binary", "ranked")
OF_LABELS = ("label", "labels", "choice")


@dataclass(frozen=True)
class Metric:
    """One metric: its name as mteb has it, what measures items, and the value of one item where there is one.

    `of_item(right, given)` is of labels and marks, `of_rows` of candidates, of many items with equally many. Either may
    be NaN: then an item says nothing. `smooth` metrics can be resampled with replacement; those of clusterings cannot
    (`resampled`). All are 1 at most and `least` at least.
    """

    name: str
    measure: Measure
    of_item: Callable[[Any, Any], float] | None = None
    of_rows: Callable[[Floats, Floats], Floats] | None = None
    smooth: bool = True
    least: float = 0.0


def metrics_of(asked: str, name: str, *, candidates: bool = False) -> tuple[Metric, ...]:
    """The metrics of a way of asking, the main one first. `name` is the task's own metric as mteb calls it.

    `candidates` is true where each item has several texts that are scored (summaries of a source): then the score is
    the mean over items of the correlations within them. Raises ValueError for what is never asked.
    """
    if asked not in get_args(Asked):
        raise ValueError(f"{asked!r} is no way of asking; known are {', '.join(get_args(Asked))}")
    if asked == "score":
        return (Metric(name, mean, of_rows=_rho_of_rows, least=-1) if candidates else Metric(name, rho, least=-1),)
    if asked in OF_LABELS:
        f1 = (Metric("f1", macro_f1), Metric("f1_weighted", weighted_f1)) if asked == "label" else ()
        return (Metric("accuracy", mean, accuracy), *f1)
    if asked == "same":
        return Metric(name, counted_ap), Metric("accuracy", mean, _same)
    if asked == "cluster":
        return (
            Metric("v_measure", v_measure, smooth=False),
            Metric("ami", ami, smooth=False, least=-1),
            Metric("ari", ari, smooth=False, least=-1),
        )
    searches = [
        Metric("map", mean, of_rows=ap_of_rows),
        Metric("ndcg_at_10", mean, of_rows=ndcg_of_rows),
        Metric("mrr_at_10", mean, of_rows=rr_of_rows),
        Metric("map (scikit-learn)", mean, of_rows=sklearn_of_rows),
    ]
    if name.startswith("ndcg"):
        searches[:2] = searches[1::-1]
    searches[0] = Metric(name, mean, of_rows=searches[0].of_rows)
    return tuple(searches)


def accuracy(right: str, given: tuple[str, ...]) -> float:
    """1 for the right label, 0 for another; of equally good ones the chance that a draw of them is right."""
    return (right in given) / len(given)


def _same(right: float, given: float) -> float:
    """Whether a mark is right; a mean of marks is by its half, and at the half by chance."""
    return 0.5 if given == 0.5 else float((given > 0.5) == (right > 0))


def _rho_of_rows(right: Floats, given: Floats) -> Floats:
    """Spearman's rho of each item's candidates; NaN where one side does not vary."""
    if right.shape[1] < 3:
        return np.full(len(right), math.nan)
    return row_correlations(average_ranks(right), average_ranks(given))


def ari(gold: NDArray[Any], made: NDArray[Any]) -> Counted:
    """The adjusted Rand index of two clusterings (Hubert and Arabie 1985), of items that are there once or not."""
    _, labels = np.unique(gold, return_inverse=True)
    _, clusters = np.unique(made, return_inverse=True)
    cells = labels * (int(clusters.max(initial=0)) + 1) + clusters
    sums = [group_sums(one) for one in (cells, labels, clusters, np.zeros_like(labels))]

    def of(counts: Floats) -> Floats:
        both, first, second, every = (_twos(one(counts)) for one in sums)
        by_chance = first * second / np.maximum(every, 1)
        top, bottom = both - by_chance, (first + second) / 2 - by_chance
        return np.where(np.abs(bottom) > 1e-9, top / np.where(bottom == 0, 1, bottom), 1.0)

    return of


def ami(gold: NDArray[Any], made: NDArray[Any]) -> Counted:
    """The adjusted mutual information of two clusterings, of items that are there once or not; 1 where both are one.

    Vinh, Epps and Bailey (2010), JMLR 11, 2837-2854, with the mean of the entropies, as scikit-learn has it, whose
    function takes 4 ms a time: (MI - E) / ((H + H') / 2 - E), with E the mean over all clusterings of the same sizes.
    """
    _, labels = np.unique(gold, return_inverse=True)
    _, clusters = np.unique(made, return_inverse=True)
    sums = [group_sums(one) for one in (labels, clusters, labels * (int(clusters.max(initial=0)) + 1) + clusters)]

    def of(counts: Floats) -> Floats:
        first, second, joint = (one(counts) for one in sums)
        h_first, h_second, h_joint = (entropies(one) for one in (first, second, joint))
        sizes, which = np.unique(np.hstack([first, second]).astype(np.int64), axis=0, return_inverse=True)
        by_chance = _by_chance(sizes[:, : first.shape[1]], sizes[:, first.shape[1] :])[which]
        top, bottom = h_first + h_second - h_joint - by_chance, (h_first + h_second) / 2 - by_chance
        return np.where(np.abs(bottom) > 1e-12, top / np.where(bottom == 0, 1, bottom), 1.0)

    return of


def _by_chance(first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """The mean mutual information of clusterings of these sizes (a row each), by the hypergeometric distribution."""
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
    found: Floats = np.where(possible, shared * np.exp(np.where(possible, chance, 0)), 0).sum(axis=(1, 2, 3))
    return found


def cohen(first: NDArray[Any], second: NDArray[Any]) -> Counted:
    """Cohen's kappa of two raters' labels; NaN where chance agreement is complete (Cohen 1960)."""
    labels = np.unique(np.concatenate([first, second]))
    one, other = ((side[:, None] == labels).astype(np.float64) for side in (first, second))
    same = (first == second).astype(np.float64)

    def of(counts: Floats) -> Floats:
        n = counts.sum(axis=1)
        by_chance = ((counts @ one) * (counts @ other)).sum(axis=1) / n**2
        found = np.full(len(n), np.nan)
        np.divide(counts @ same / n - by_chance, 1 - by_chance, out=found, where=by_chance < 1 - 1e-12)
        return found

    return of


def _twos(sizes: Floats) -> Floats:
    """How many twos of items lie in one group together."""
    twos: Floats = (sizes * (sizes - 1) / 2).sum(axis=1)
    return twos
