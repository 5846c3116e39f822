"""How models rank, as pure functions of arrays: tau, split-half reliability, Borda counts.

Rows are models, columns data sets; what is undefined is NaN with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.paired import DEFINED_SHARE, Estimate, Floats, Value, Values, paired, row_correlations
from plumbline.frames import need, numbers

_DIGITS = 9  # scores that agree so far differ by rounding alone
_FEW = 100  # models up to which looking at each two of them takes less time than sorting them by scipy
_AT_ONCE = 2_000_000  # pairs of models whose order is looked at at once


def kendall(first: Values, second: Values) -> Value:
    """Kendall's tau-b of two score vectors over the same models (HTEB, Table 4).

    NaN for fewer than 2 models, for scores that are not finite and where all scores of one side are equal.
    """
    from scipy import stats  # noqa: PLC0415 (half a second)

    x, y = paired(first, second)
    reason = ""
    if len(x) < 2:
        reason = f"tau needs at least 2 models, there are {len(x)}"
    elif not (np.isfinite(x).all() and np.isfinite(y).all()):
        reason = "tau needs finite scores"
    elif np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = "tau is undefined: all scores of one side are equal"
    return Value(math.nan if reason else float(stats.kendalltau(x, y).statistic), len(x), reason)


def kendall_interval(first: Values, second: Values, *, n_resamples: int = 1000, rng: np.random.Generator) -> Estimate:
    """Kendall's tau-b of two score vectors, with a 95% percentile bootstrap interval over the models.

    Undefined as `kendall` is. Resamples in which one side is constant are dropped; if more than a tenth of them are,
    there is no interval.
    """
    x, y = paired(first, second)
    found = kendall(x, y)
    if found.reason:
        return Estimate(math.nan, math.nan, math.nan, found.n, found.reason)
    drawn = rng.integers(0, len(x), size=(n_resamples, len(x)))
    resampled = kendall_rows(x[drawn], y[drawn])
    defined = resampled[np.isfinite(resampled)]
    if len(defined) < DEFINED_SHARE * n_resamples:
        why = f"no interval: tau is undefined in {n_resamples - len(defined)} of {n_resamples} resamples"
        return Estimate(found.value, math.nan, math.nan, found.n, why)
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(found.value, float(low), float(high), found.n, "")


def kendall_rows(first: Floats, second: Floats) -> Floats:
    """Kendall's tau-b of each row of `first` with the same row of `second`; NaN where a row is constant."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape[1] > _FEW:
        return np.array([kendall(one, other).value for one, other in zip(x, y, strict=True)])
    before, after = np.triu_indices(x.shape[1], 1)
    rows = max(1, _AT_ONCE // max(1, len(before)))
    found = [_tau_b(x[k : k + rows], y[k : k + rows], before, after) for k in range(0, len(x), rows)]
    return np.concatenate([np.empty(0), *found])


def _tau_b(x: Floats, y: Floats, before: NDArray[np.intp], after: NDArray[np.intp]) -> Floats:
    """Tau-b of each row: of all pairs of models those in the same order without those in the other, scaled for ties."""
    signs = [(side[:, before] > side[:, after]).astype(np.int8) - (side[:, before] < side[:, after]) for side in (x, y)]
    apart = [np.abs(one).sum(axis=1, dtype=np.int64) for one in signs]
    same_order = (signs[0] * signs[1]).sum(axis=1, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # nought by nought, where a row is constant
        tau = np.clip(same_order / np.sqrt(apart[0]) / np.sqrt(apart[1]), -1, 1)
    defined: Floats = np.where(np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1), tau, np.nan)
    return defined


def split_half(scores: Floats, tasks: Sequence[str], *, n_splits: int = 1000, rng: np.random.Generator) -> Value:
    """Split-half reliability: the median of Spearman's rho between models' means on two halves of the data sets.

    `scores` are models by data sets, `tasks` name each data set's task. Every split halves each task's data sets;
    the odd ones of the tasks go to the halves in turn, from a random one on, so the halves differ by one data set at
    most. `n` counts the splits for which rho is defined; if more than a tenth are not, neither is the median. NaN too
    for fewer than 3 models, fewer than 2 data sets, and scores that are not finite.

    Source: HTEB, Table 3 (median over 1,000 splits stratified by task); how odd ones are split is ours.
    """
    from scipy import stats  # noqa: PLC0415 (half a second)

    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != len(tasks):
        raise ValueError(f"models by data sets are needed, with a task for each: {given.shape}, {len(tasks)} tasks")
    reason = ""
    if given.shape[0] < 3:
        reason = f"rho needs at least 3 models, there are {given.shape[0]}"
    elif given.shape[1] < 2:
        reason = f"halves need at least 2 data sets, there are {given.shape[1]}"
    elif not np.isfinite(given).all():
        reason = "rho needs finite scores"
    if reason:
        return Value(math.nan, 0, reason)
    first = stratified_halves(tasks, n_splits, rng)
    means = [half @ given.T / half.sum(axis=1, keepdims=True) for half in (first, ~first)]
    correlations = row_correlations(*(stats.rankdata(half, axis=1) for half in means))
    defined = correlations[np.isfinite(correlations)]
    if len(defined) < DEFINED_SHARE * n_splits:
        return Value(math.nan, len(defined), f"rho is undefined in {n_splits - len(defined)} of {n_splits} splits")
    return Value(float(np.median(defined)), len(defined), "")


def borda(scores: pd.DataFrame) -> pd.DataFrame:
    """Borda counts and ranks of models (rows) over data sets (columns), as MMTEB and mteb's leaderboard have them.

    On each data set a model gets a point for each model that it beats and half a point for each that it ties with
    (tournament Borda). A model without a score (NaN) gets none there and takes none from others: each of these still
    has a point for it. Scores that are equal to nine decimals are ties: means of one and the same numbers differ by
    rounding. Models with equal counts share the best of their ranks. The frame has the models' index and the columns
    borda and rank; `rank_intervals` says how sure they are. Raises ValueError for a score that is no number.

    Source: MMTEB, 3.1 (Colombo et al., 2022); mteb's `Rank (Borda)`.

    >>> import pandas as pd
    >>> from evaluation import borda
    >>> scores = pd.DataFrame({"STS17": [0.9, 0.8, 0.7], "Banking77": [0.1, 0.5, 0.5]}, index=["a", "b", "c"])
    >>> print(borda(scores))
       borda  rank
    a    2.0     2
    b    2.5     1
    c    1.5     3
    """
    points, _ = borda_points(scores)
    count = points.sum(axis=1)
    return pd.DataFrame({"borda": count, "rank": ranks_of(count)}, index=scores.index)


def borda_points(scores: pd.DataFrame) -> tuple[Floats, Floats]:
    """The points of each model (row) on each data set (column) that `borda` sums, and the scores as numbers.

    Raises ValueError for a score that is no number.
    """
    need(scores, (), "scores")
    given = np.empty(scores.shape)
    for place in range(scores.shape[1]):
        given[:, place] = numbers(scores.iloc[:, place], "scores")
    return points_of(given), given


def points_of(scores: Floats) -> Floats:
    """The points of each model (row) on each data set (column), as `borda` gives them: 0 where there is no score."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    ranks = stats.rankdata(-np.round(scores, _DIGITS), axis=0, nan_policy="omit")
    return np.nan_to_num(len(scores) - ranks)


def ranks_of(counts: Floats) -> NDArray[np.int64]:
    """Ranks by counts, the largest first; equal ones share the best of their ranks."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    ranks: NDArray[np.int64] = stats.rankdata(-counts, method="min").astype(np.int64)
    return ranks


def stratified_halves(tasks: Sequence[str], n_splits: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Splits by data sets: whether a data set is in the first half (`split_half` says how they are drawn)."""
    names = np.asarray(tasks)
    kinds = list(dict.fromkeys(tasks))
    odd = [kind for kind in kinds if (names == kind).sum() % 2]
    # Whose turn the odd one of each task is: the tasks in random order, the halves in turn.
    turns = (rng.random((n_splits, len(odd))).argsort(axis=1).argsort(axis=1) + rng.integers(0, 2, (n_splits, 1))) % 2
    first = np.zeros((n_splits, len(names)), dtype=np.bool_)
    for kind in kinds:
        members = np.flatnonzero(names == kind)
        place = rng.random((n_splits, len(members))).argsort(axis=1).argsort(axis=1)
        turn = turns[:, [odd.index(kind)]] if kind in odd else 0
        first[:, members] = (place + turn) % 2 == 0
    return first
