"""Whether wordings by people and by machines score differently: a permutation test of the difference of medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.paired import Floats, holm
from evaluation.instructions.grid import Grid
from plumbline.streams import stream

N_RESAMPLES = 100_000
_EXACT = 40  # scores of both sides, up to which every way to share them out is counted
_DIGITS = 12


@dataclass(frozen=True)
class MedianTest:
    """The difference of medians and its two-sided p.

    `difference` is median(first) - median(second); `method` is "exact" or the number of resamples; what is undefined is
    NaN, and `reason` says why.
    """

    difference: float
    p: float
    n: tuple[int, int]
    method: str
    reason: str


def median_permutation_test(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, *, rng: np.random.Generator
) -> MedianTest:
    """Whether two groups of scores differ by more than chance in their medians, by sharing them out anew.

    p is twice the smaller tail, ties counted in both, at most 1. Up to 40 scores it is exact: medians rest on places in
    the sorted scores alone, and how often each places occur over all ways to share them out is counted. Beyond, 100,000
    random ways are drawn, and the found one counts as one of them. NaN for fewer than 2 scores on a side, or where all
    scores are equal.

    Source: arXiv 2605.22544, Figures 7 and 8 (scipy's permutation_test, 10,000 resamples). The exact count is ours.

    >>> import numpy as np
    >>> from evaluation import median_permutation_test
    >>> found = median_permutation_test([0.9, 0.8, 0.7], [0.3, 0.2, 0.1], rng=np.random.default_rng(1))
    >>> round(found.difference, 2), round(found.p, 3), found.method  # twice the 2 of 20 ways
    (0.6, 0.2, 'exact')
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (first, second))
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    sizes = len(one), len(other)
    both = np.sort(np.concatenate([one, other]))
    reason = ""
    if min(sizes) < 2:
        reason = f"a test needs at least 2 wordings on each side, there are {sizes[0]} and {sizes[1]}"
    elif np.ptp(both) == 0:
        reason = "all wordings score the same"
    if reason:
        gap = float(np.median(one) - np.median(other)) if min(sizes) else math.nan
        return MedianTest(gap, math.nan, sizes, "", reason)
    found = round(float(np.median(one) - np.median(other)), _DIGITS)
    if len(both) <= _EXACT:
        places, counts = _median_places(*sizes)
        gaps = np.round(both[places[:, :2]].mean(axis=1) - both[places[:, 2:]].mean(axis=1), _DIGITS)
        total = counts.sum()
        exact = float(min(counts[gaps >= found].sum(), counts[gaps <= found].sum()) / total)
        return MedianTest(found, min(1.0, 2 * exact), sizes, "exact", "")
    gaps = _drawn_gaps(both, sizes[0], rng)
    tail = (1 + min(np.count_nonzero(gaps >= found), np.count_nonzero(gaps <= found))) / (1 + N_RESAMPLES)
    return MedianTest(found, min(1.0, 2 * tail), sizes, f"{N_RESAMPLES:,} resamples", "")


def source_tests(grid: Grid, *, seed: int) -> pd.DataFrame:
    """People's wordings against machines', for each model and task that has both.

    Columns: model, task, n_human, n_machine, human, machine (medians), difference (in points), p, p_holm (over all rows
    with a p), method, reason.
    """
    human, machine = (grid.facts["source"] == name for name in ("human", "machine"))
    rows = []
    for place, model in enumerate(grid.models):
        for at, task in enumerate(grid.tasks):
            sides = [grid.scores[place, at, kind[at]] for kind in (human, machine)]
            sides = [side[~np.isnan(side)] for side in sides]
            if not min(map(len, sides)):
                continue
            rng = stream(seed, "machine against human", model, task)
            test = median_permutation_test(*sides, rng=rng)
            rows.append(
                {"model": model, "task": task, "n_human": len(sides[0]), "n_machine": len(sides[1])}
                | {"human": float(np.median(sides[0])), "machine": float(np.median(sides[1]))}
                | {"difference": 100 * test.difference, "p": test.p, "method": test.method, "reason": test.reason}
            )
    names = ["model", "task", "n_human", "n_machine", "human", "machine", "difference", "p", "method", "reason"]
    table = pd.DataFrame(rows, columns=names)
    table.insert(8, "p_holm", holm(table["p"].to_numpy(np.float64)))
    return table


def _drawn_gaps(both: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Differences of medians when the sorted scores are shared out at random."""
    gaps = []
    rows = max(1, 2**21 // len(both))
    for start in range(0, N_RESAMPLES, rows):
        order = rng.random((min(rows, N_RESAMPLES - start), len(both))).argsort(axis=1)
        gaps.append(np.median(both[order[:, :n]], axis=1) - np.median(both[order[:, n:]], axis=1))
    return np.asarray(np.round(np.concatenate(gaps), _DIGITS), dtype=np.float64)


@lru_cache(maxsize=64)
def _median_places(n: int, m: int) -> tuple[NDArray[np.int64], Floats]:
    """Places (from 0) of both middle scores of each group among all sorted ones, and how many ways have them there.

    `n` and `m` are the groups' sizes; a group of an odd size has its one middle score twice. Sorted scores are given to
    the groups one after another; a way is known by how many the first group has so far and which places were middles.
    """
    of_first, of_second = {(n - 1) // 2, n // 2}, {(m - 1) // 2, m // 2}
    ways: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {(0, (), ()): 1}
    for place in range(n + m):
        after: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
        for (taken, first, second), number in ways.items():
            if taken < n:
                key = (taken + 1, (*first, place) if taken in of_first else first, second)
                after[key] = after.get(key, 0) + number
            if place - taken < m:
                key = (taken, first, (*second, place) if place - taken in of_second else second)
                after[key] = after.get(key, 0) + number
        ways = after
    places = [[first[0], first[-1], second[0], second[-1]] for _, first, second in ways]
    return np.array(places, dtype=np.int64), np.array(list(ways.values()), dtype=np.float64)
