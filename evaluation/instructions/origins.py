"""Whether wordings by people and by machines score differently: a permutation test of the difference of medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.instructions.grid import Grid
from evaluation.instructions.scores import DEFAULT
from plumbline.statistics.estimates import Floats, percentiles
from plumbline.statistics.paired import holm
from plumbline.statistics.seeding import stream

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
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    sizes = len(x), len(y)
    both = np.sort(np.concatenate([x, y]))
    reason = ""
    if min(sizes) < 2:
        reason = f"a test needs at least 2 wordings on each side, there are {sizes[0]} and {sizes[1]}"
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
    gaps = _drawn_gaps(both, sizes[0], rng)
    tail = (1 + min(np.count_nonzero(gaps >= difference), np.count_nonzero(gaps <= difference))) / (1 + N_RESAMPLES)
    return MedianTest(difference, min(1.0, 2 * tail), sizes, f"{N_RESAMPLES:,} resamples", "")


def source_tests(grid: Grid, *, seed: int) -> pd.DataFrame:
    """People's wordings against machines', for each model and task that has both.

    Columns: model, task, n_human, n_machine, human, machine (medians), difference (in points), p, p_holm (over all rows
    with a p), method, reason.
    """
    human, machine = (grid.facts["source"] == name for name in ("human", "machine"))
    rows = []
    for number, model in enumerate(grid.models):
        for at, task in enumerate(grid.tasks):
            sides = [grid.scores[number, at, kind[at]] for kind in (human, machine)]
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
    for position in range(n + m):
        after: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
        for (taken, first, second), number in ways.items():
            if taken < n:
                key = (taken + 1, (*first, position) if taken in of_first else first, second)
                after[key] = after.get(key, 0) + number
            if position - taken < m:
                key = (taken, first, (*second, position) if position - taken in of_second else second)
                after[key] = after.get(key, 0) + number
        ways = after
    places = [[first[0], first[-1], second[0], second[-1]] for _, first, second in ways]
    return np.array(places, dtype=np.int64), np.array(list(ways.values()), dtype=np.float64)


N_SPLITS = 1000
_LEAST = 2  # items of a half
_SAME = 1e-3  # by which the mean over items may be off the task's score: mteb rounds what it measures of queries


@dataclass(frozen=True)
class HalfSplitScore:
    """A best wording's score where it was chosen (`naive`) and on the other half (`other_half`), over random halves.

    `low` and `high` hold 95% of the splits' scores on the other half; `n_items` and `n_wordings` are what it rests on.
    """

    naive: float
    other_half: float
    low: float
    high: float
    n_items: int
    n_wordings: int
    reason: str


def split_half_choice(items: Floats, *, n_splits: int = N_SPLITS, rng: np.random.Generator) -> HalfSplitScore:
    """The best of several wordings, chosen on a random half of the items and scored on the other, `n_splits` times.

    `items` are wordings by items, each cell what an item adds to the score, whose mean is the score; all wordings have
    all items. Both halves choose and score in turn; the odd item goes to either. `naive` is the largest mean over all
    items, which chooses and scores on the same ones. NaN with a reason for fewer than 2 wordings or 4 items.

    >>> import numpy as np
    >>> from evaluation import split_half_choice
    >>> noise = np.random.default_rng(1).random((15, 200))  # 15 wordings that are all the same
    >>> found = split_half_choice(noise, rng=np.random.default_rng(2))
    >>> found.naive > 0.52, abs(found.other_half - 0.5) < 0.02
    (True, True)
    """
    scores = np.asarray(items, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(f"wordings by items are needed, not an array of shape {scores.shape}")
    n_wordings, n_items = scores.shape
    reason = ""
    if n_wordings < 2:
        reason = "a choice needs at least 2 wordings"
    elif n_items < 2 * _LEAST:
        reason = f"halves need at least {2 * _LEAST} items, there are {n_items}"
    elif not np.isfinite(scores).all():
        reason = "not every wording has every item"
    if reason:
        return HalfSplitScore(math.nan, math.nan, math.nan, math.nan, n_items, n_wordings, reason)
    first = np.zeros((n_splits, n_items))
    order = rng.random((n_splits, n_items)).argsort(axis=1)
    sizes = n_items // 2 + (rng.integers(0, 2, n_splits) if n_items % 2 else np.zeros(n_splits, np.int64))
    np.put_along_axis(first, order, (np.arange(n_items) < sizes[:, None]).astype(np.float64), axis=1)
    sums, total = first @ scores.T, scores.sum(axis=1)  # splits by wordings
    first_mean, second_mean = sums / sizes[:, None], (total - sums) / (n_items - sizes)[:, None]
    rows = np.arange(n_splits)
    scored = (second_mean[rows, first_mean.argmax(axis=1)] + first_mean[rows, second_mean.argmax(axis=1)]) / 2
    low, high = percentiles(scored)
    naive = float(scores.mean(axis=1).max())
    return HalfSplitScore(naive, float(scored.mean()), low, high, n_items, n_wordings, "")


def choice_table(grid: Grid, items: pd.DataFrame, *, seed: int, named: dict[str, str]) -> pd.DataFrame:
    """`split_half_choice` for each model and task with scores by item (`PromptItemScore`), beside the default's score.

    Columns: model, task, n_wordings, n_items, default, naive, other_half, low, high, lost (naive less other_half, in
    points), gain (other_half less default, in points), reason. Wordings are those that count in the grid. A task whose
    score is not the mean over its items is not halved, and the reason says so. `named` gives models their names there.
    """
    rows = []
    for (model, task), of_task in items.groupby(
        [items["model"].map(lambda name: named.get(name, name)), "task"], sort=False
    ):
        if model not in grid.models or task not in grid.tasks:
            continue
        m, t = grid.models.index(str(model)), grid.tasks.index(str(task))
        wide = of_task.pivot(index="prompt_id", columns="item", values="score")
        counting = [p for k, p in enumerate(grid.prompts[t]) if p in wide.index and not np.isnan(grid.scores[m, t, k])]
        values = wide.loc[counting].to_numpy(np.float64)
        scores = [grid.scores[m, t, list(grid.prompts[t]).index(name)] for name in counting]
        default = float(grid.default[m, t])
        if counting and np.abs(values.mean(axis=1) - scores).max() > _SAME:
            nothing = (math.nan,) * 4
            score = HalfSplitScore(*nothing, values.shape[1], len(counting), "its score is not the mean over its items")
        else:
            score = split_half_choice(values, rng=stream(seed, "split-half choice", str(model), str(task)))
        if DEFAULT in wide.index and not score.reason:
            default = float(wide.loc[DEFAULT].to_numpy(np.float64).mean())
        rows.append(
            {"model": model, "task": task, "n_wordings": score.n_wordings, "n_items": score.n_items}
            | {"default": default, "naive": score.naive, "other_half": score.other_half, "low": score.low}
            | {"high": score.high, "lost": 100 * (score.naive - score.other_half)}
            | {"gain": 100 * (score.other_half - default), "reason": score.reason}
        )
    names = ["model", "task", "n_wordings", "n_items", "default", "naive", "other_half", "low", "high", "lost", "gain"]
    return pd.DataFrame(rows, columns=[*names, "reason"])
