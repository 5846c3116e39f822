"""Rank models: tau, split-half reliability, Borda counts; pure functions of arrays.

Rows are models, columns data sets; undefined results are NaN with a reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import need, numbers
from plumbline.importing import scipy
from plumbline.statistics.estimates import (
    CONFIDENCE,
    DEFINED_SHARE,
    Estimate,
    Floats,
    Value,
    bootstrap,
    draw_counts,
    draw_indices,
    expanded_tail,
)
from plumbline.statistics.paired import Values, average_ranks, holm, letter_display, paired, row_correlations

_DIGITS = 9  # digits to which scores are compared; beyond, they differ only by rounding
_FEW = 100  # most models for which comparing all pairs is faster than scipy's sorting
_AT_ONCE = 2_000_000  # pairs of models compared at a time


def kendall(first: Values, second: Values) -> Value:
    """Kendall's tau-b of two score vectors over the same models (HTEB, Table 4).

    NaN for fewer than 2 models, for scores that are not finite and where all scores of one side are equal.

    Args:
        first: a score of each model.
        second: another, of the same models.

    Returns:
        tau-b.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: Kendall (1945), Biometrika 33, 239-251; HTEB, Table 4.

    >>> kendall([0.1, 0.2, 0.3], [0.2, 0.1, 0.3]).value
    0.33333333333333337
    """
    x, y = paired(first, second)
    reason = ""
    if len(x) < 2:
        reason = f"tau needs at least 2 models, not {len(x)}"
    elif not (np.isfinite(x).all() and np.isfinite(y).all()):
        reason = "tau needs finite scores"
    elif np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = "tau is undefined: all scores of one side are equal"
    if reason:
        return Value(math.nan, len(x), reason)
    few = len(x) <= _FEW
    return Value(
        float(kendall_rows(x[None], y[None])[0] if few else scipy.stats.kendalltau(x, y).statistic), len(x), ""
    )


def kendall_interval(first: Values, second: Values, *, n_resamples: int = 1000, rng: np.random.Generator) -> Estimate:
    """Kendall's tau-b of two score vectors, with a 95% percentile bootstrap interval over the models.

    Undefined as `kendall` is. Resamples in which one side is constant are dropped; if more than a tenth of them are,
    there is no interval.

    Args:
        first: a score of each model.
        second: another, of the same models.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        tau-b with its interval.

    Raises:
        ValueError: the samples differ in length or in their labels.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 13.3.

    >>> import numpy as np
    >>> x = np.arange(12.0)
    >>> kendall_interval(x, x**2, rng=np.random.default_rng(1)).value
    0.9999999999999998
    """
    x, y = paired(first, second)
    tau = kendall(x, y)
    if tau.reason:
        return Estimate.undefined(tau.reason, tau.n)
    draws = draw_indices(rng, len(x), n_resamples)
    resampled = bootstrap(lambda rows: kendall_rows(x[rows], y[rows]), draws, value=tau.value, n=tau.n)
    return resampled.percentile("no interval: tau is undefined")


def kendall_rows(first: Floats, second: Floats) -> Floats:
    """Return Kendall's tau-b of each row of `first` with the same row of `second`; NaN where a row is constant.

    Args:
        first: rows by models.
        second: rows by models.

    Returns:
        A number for each row.

    Source: Kendall (1945), Biometrika 33, 239-251.

    >>> import numpy as np
    >>> kendall_rows(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(3)
    array([0.333])
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape[1] > _FEW:
        return np.array([kendall(x_row, y_row).value for x_row, y_row in zip(x, y, strict=True)])
    first_of, second_of = np.triu_indices(x.shape[1], 1)
    rows = max(1, _AT_ONCE // max(1, len(first_of)))
    taus = [_tau_b(x[k : k + rows], y[k : k + rows], first_of, second_of) for k in range(0, len(x), rows)]
    return np.concatenate([np.empty(0), *taus])


def _tau_b(x: Floats, y: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Return tau-b of each row: concordant pairs less discordant ones, scaled for ties."""
    signs = [(side[:, first] > side[:, second]).astype(np.int8) - (side[:, first] < side[:, second]) for side in (x, y)]
    untied = [np.abs(side).sum(axis=1, dtype=np.int64) for side in signs]
    same_order = (signs[0] * signs[1]).sum(axis=1, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # zero by zero if a row is constant
        tau = np.clip(same_order / np.sqrt(untied[0]) / np.sqrt(untied[1]), -1, 1)
    defined: Floats = np.where(np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1), tau, np.nan)
    return defined


def split_half(scores: Floats, tasks: Sequence[str], *, n_splits: int = 1000, rng: np.random.Generator) -> Value:
    """Return split-half reliability: the median of Spearman's rho between models' means on halves of the data.

    `scores` are models by data sets, `tasks` name each data set's task. Every split halves each task's data sets;
    the odd ones of the tasks go to the halves in turn, from a random one on, so the halves differ by one data set at
    most. `n` counts the splits for which rho is defined; if more than a tenth are not, neither is the median. NaN too
    for fewer than 3 models, fewer than 2 data sets, and scores that are not finite.

    Args:
        scores: models by data sets.
        tasks: the task of each data set.
        n_splits: the splits.
        rng: the generator.

    Returns:
        The median rho.

    Raises:
        ValueError: there is no task for each data set.

    Source: HTEB, Table 3 (median over 1,000 splits stratified by task); how odd ones are split is ours.

    >>> import numpy as np
    >>> scores = np.arange(4.0)[:, None] + np.zeros((4, 6))
    >>> split_half(scores, ["sts"] * 6, rng=np.random.default_rng(1)).value
    1.0
    """
    grid = np.asarray(scores, dtype=np.float64)
    if grid.ndim != 2 or grid.shape[1] != len(tasks):
        raise ValueError(f"pass models by data sets and a task for each data set, not {grid.shape}, {len(tasks)} tasks")
    reason = ""
    if grid.shape[0] < 3:
        reason = f"rho needs at least 3 models, not {grid.shape[0]}"
    elif grid.shape[1] < 2:
        reason = f"halves need at least 2 data sets, not {grid.shape[1]}"
    elif not np.isfinite(grid).all():
        reason = "rho needs finite scores"
    if reason:
        return Value(math.nan, 0, reason)
    first = stratified_halves(tasks, n_splits, rng)
    means = [half @ grid.T / half.sum(axis=1, keepdims=True) for half in (first, ~first)]
    correlations = row_correlations(*map(average_ranks, means))
    defined = correlations[np.isfinite(correlations)]
    if len(defined) < DEFINED_SHARE * n_splits:
        return Value(math.nan, len(defined), f"rho is undefined in {n_splits - len(defined)} of {n_splits} splits")
    return Value(float(np.median(defined)), len(defined), "")


def borda(scores: pd.DataFrame) -> pd.DataFrame:
    """Return Borda counts and ranks of models (rows) over data sets (columns), as MMTEB and mteb compute them.

    On each data set a model gets a point for each model that it beats and half a point for each that it ties with
    (tournament Borda). A model without a score (NaN) gets none there and takes none from others: each of these still
    has a point for it. Scores that are equal to nine decimals are ties: means of one and the same numbers differ by
    rounding. Models with equal counts share the best of their ranks. The frame has the models' index and the columns
    borda and rank; `rank_intervals` says how sure they are. Raises ValueError for a score that is no number.

    Args:
        scores: models by data sets; NaN where there is none.

    Returns:
        A frame of counts and ranks.

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
    """Return the points that `borda` sums for each model (row) and data set (column), and the scores as numbers.

    Raises ValueError for a score that is no number.

    Args:
        scores: models by data sets.

    Returns:
        (points, scores), models by data sets.

    >>> import pandas as pd
    >>> borda_points(pd.DataFrame({"STS17": [0.9, 0.8]}, index=["a", "b"]))[0].tolist()
    [[1.0], [0.0]]
    """
    need(scores, (), "scores")
    grid = np.empty(scores.shape)
    for column in range(scores.shape[1]):
        grid[:, column] = numbers(scores.iloc[:, column], "scores")
    return points_of(grid), grid


def points_of(scores: Floats) -> Floats:
    """Return the points of each model (row) on each data set (column), as in `borda`: 0 without a score.

    Args:
        scores: models by data sets.

    Returns:
        Points of the same shape.

    Source: MMTEB, 3.1 (Colombo et al., 2022).

    >>> import numpy as np
    >>> points_of(np.array([[0.9], [0.8], [0.8]])).ravel()
    array([2. , 0.5, 0.5])
    """
    return np.nan_to_num(len(scores) - average_ranks(-np.round(scores, _DIGITS).T).T)


def ranks_of(counts: Floats) -> NDArray[np.int64]:
    """Return ranks by counts, the largest first; equal counts share their best rank.

    Args:
        counts: a number of each model.

    Returns:
        The ranks.

    >>> import numpy as np
    >>> ranks_of(np.array([3.0, 1.0, 3.0]))
    array([1, 3, 1])
    """
    ranks: NDArray[np.int64] = pd.Series(-counts).rank(method="min").to_numpy().astype(np.int64)
    return ranks


def stratified_halves(tasks: Sequence[str], n_splits: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return random splits: whether each data set is in the first half (drawn as `split_half` says).

    Args:
        tasks: the task of each data set.
        n_splits: the splits.
        rng: the generator.

    Returns:
        Splits by data sets.

    Source: HTEB, Table 3.

    >>> import numpy as np
    >>> stratified_halves(["sts"] * 4, 3, np.random.default_rng(1)).sum(axis=1)
    array([2, 2, 2])
    """
    names = np.asarray(tasks)
    kinds = list(dict.fromkeys(tasks))
    odd = [kind for kind in kinds if (names == kind).sum() % 2]
    # The odd data set of each task goes to the halves in turn, over tasks in random order.
    turns = (rng.random((n_splits, len(odd))).argsort(axis=1).argsort(axis=1) + rng.integers(0, 2, (n_splits, 1))) % 2
    first = np.zeros((n_splits, len(names)), dtype=np.bool_)
    for kind in kinds:
        members = np.flatnonzero(names == kind)
        order = rng.random((n_splits, len(members))).argsort(axis=1).argsort(axis=1)
        turn = turns[:, [odd.index(kind)]] if kind in odd else 0
        first[:, members] = (order + turn) % 2 == 0
    return first


LEAST_TASKS = 5  # with fewer, resamples hardly differ and no two models can be told apart
MOST_LETTERED = 40  # most models for which letters are readable
_RESAMPLES_AT_ONCE = 2**22  # numbers in memory at a time
Bools = NDArray[np.bool_]


def rank_intervals(scores: pd.DataFrame, *, n_resamples: int = 10_000, rng: np.random.Generator) -> pd.DataFrame:
    """Return Borda counts, ranks and means of models (rows), each with a 95% interval over tasks (columns).

    Counts and ranks are those of `borda`. Intervals take the tasks for a sample of those that might have been taken:

    - borda, mean: tasks are drawn anew with replacement; the interval is the percentile bootstrap's, expanded for few
      tasks. A mean needs a score on every task. Drawn from MTEB's boards (English and Multilingual v2, 6 or 12 models),
      5 tasks gave intervals of which 89% to 91% held the count over all tasks, 8 tasks 90% to 93%, 10 to 20 tasks 93%
      to 94%; t-intervals 91% to 95% of 5 and 8 tasks, and the same from 10 on.
    - rank_low, rank_high: one more than the models that are told apart as better, and the number of models less those
      told apart as worse. Two models are told apart where the paired t-test of their points over tasks has p < 0.05
      after Holm's correction for all pairs; p is at least 2 ** (1 - tasks), the least that as many signs can give. With
      95% confidence all ranks lie in their intervals at once.
    - rank_single_low, rank_single_high: of one model looked at alone, the percentiles of its rank over resamples, as
      for counts; models that tie in a resample may have any of their ranks, and a model with gaps may be before or
      behind it. Of 10 to 130 tasks drawn from MTEB's boards (English and Multilingual v2) 95% ones held the rank over
      all tasks of 95% to 98% of all models, and of 99% of 12. Not so where all models are equal and share rank 1: of 6
      models 80% of intervals held it, of 40 25%.
    - group: up to 40 models, those with a letter in common are not told apart (compact letter display). Of more models
      the number of a tier: it begins with the best model that is told apart from the first of the tier above.

    A model without a score on some task gets no points there, as mteb has it; it is told apart from no other, and has
    no intervals. Fewer than 5 tasks give no interval at all: `reason` says so. Raises ValueError for what is no number.

    Args:
        scores: models by data sets; NaN where there is none.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        A frame with a row for each model.

    Source: bootstrap and its expansion: Hesterberg (2015), The American Statistician 69, 371-386; ranks of what can be
    told apart: Al Mohamad, Goeman and van Zwet (2022), Biometrics 78, 157-168; Holm (1979); letters: Piepho (2004),
    Journal of Computational and Graphical Statistics 13, 456-466. The bound of p, tiers and the rule for gaps are ours.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from evaluation import rank_intervals
    >>> noise = np.random.default_rng(1).normal(0, 0.01, (3, 12))
    >>> scores = pd.DataFrame(noise + [[0.70], [0.70], [0.67]], index=["large", "base", "small"])
    >>> found = rank_intervals(scores, rng=np.random.default_rng(1337))
    >>> print(found[["borda", "borda_low", "borda_high", "rank", "rank_low", "rank_high", "group"]])
           borda  borda_low  borda_high  rank  rank_low  rank_high group
    large   21.0       17.0        24.0     1       1.0        2.0     a
    base    15.0       12.0        19.0     2       1.0        2.0     a
    small    0.0        NaN         NaN     3       3.0        3.0     b
    """
    points, grid = borda_points(scores)
    n_models, n_tasks = grid.shape
    count, ranks = points.sum(axis=1), ranks_of(points.sum(axis=1))
    complete = np.isfinite(grid).all(axis=1) & (n_tasks > 0)
    ranked = complete & (n_tasks >= LEAST_TASKS)
    mean = np.where(complete, grid.sum(axis=1) / max(n_tasks, 1), np.nan)
    every = n_resamples * n_tasks
    draws = draw_counts(rng, n_tasks, n_resamples, at_once=every) if ranked.any() else iter(())
    resamples = next(draws, np.zeros((0, n_tasks))).astype(np.float64)
    low, high = _ends(points, ranked, resamples)
    mean_low, mean_high = (end / max(n_tasks, 1) for end in _ends(grid, ranked, resamples))
    better = told_apart(np.where(ranked[:, None], points, np.nan))
    compared = ranked & (n_models > 1)
    single_low, single_high = _rank_ends(resamples @ points.T, expanded_tail(n_tasks), compared)
    columns = {
        "borda": count,
        "borda_low": low,
        "borda_high": high,
        "rank": ranks,
        "rank_low": np.where(compared, 1 + better.sum(axis=0), np.nan),
        "rank_high": np.where(compared, n_models - better.sum(axis=1), np.nan),
        "rank_single_low": single_low,
        "rank_single_high": single_high,
        "mean": mean,
        "mean_low": mean_low,
        "mean_high": mean_high,
        "group": _groups(better, np.flatnonzero(compared)[np.argsort(ranks[compared], kind="stable")]),
        "reason": _reasons(grid, ranked & np.isnan(low)),
    }
    return pd.DataFrame(columns, index=scores.index)


def told_apart(points: Floats) -> Bools:
    """Tell which models (rows) are better than which others (columns), as `rank_intervals` does.

    `points` are models by tasks; a model with NaN among them is told apart from no other.

    Args:
        points: models by tasks; NaN for a model that lacks any.

    Returns:
        Models by models: whether the one of the row is better.

    Source: Student's paired t-test; Holm (1979), Scandinavian Journal of Statistics 6.

    >>> import numpy as np
    >>> told_apart(np.array([np.arange(9.0) + 5, np.arange(9.0)]))[0, 1]
    np.True_
    """
    n_models, n_tasks = points.shape
    is_better = np.zeros((n_models, n_models), np.bool_)
    some = np.flatnonzero(np.isfinite(points).all(axis=1))
    if n_tasks < 2 or len(some) < 2:
        return is_better
    whole_points = points[some]
    covariance = np.cov(whole_points)
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0) / n_tasks)
    difference = np.round(whole_points.mean(axis=1)[:, None] - whole_points.mean(axis=1)[None, :], _DIGITS)
    # If all differences are equal, the error is rounding alone, and t is set to its maximum.
    t = np.divide(np.abs(difference), np.maximum(error, 10**-_DIGITS))
    first, second = np.triu_indices(len(some), 1)
    p = np.maximum(2 * scipy.special.stdtr(n_tasks - 1, -t[first, second]), 2.0 ** (1 - n_tasks))
    surely = holm(p) < 1 - CONFIDENCE
    better = difference[first, second] > 0
    winner, loser = np.where(better, first, second)[surely], np.where(better, second, first)[surely]
    is_better[some[winner], some[loser]] = True
    return is_better


def told_apart_singly(values: Floats, *, n_resamples: int = 10_000, rng: np.random.Generator) -> Bools:
    """Tell which models (rows) are better than which others (columns), each two looked at alone.

    One is better where it has the larger sum in all but the tail of the resamples of tasks: the percentile interval of
    their difference, expanded for few tasks, is above 0. Nothing is corrected for the number of pairs: of pairs of
    equal models some 5% are told apart. A model with NaN is told apart from no other; of fewer than 6 tasks, whose
    signs are equal by chance in 2 ** (1 - tasks) of cases, none is.

    Args:
        values: models by tasks, such as `points_of`, or scores.
        n_resamples: the resamples.
        rng: the generator.

    Returns:
        Models by models: whether the one of the row is better.

    Source: bootstrap and its expansion: Hesterberg (2015), The American Statistician 69, 371-386; mteb issue 5208
    counts neighbours on a board so.

    >>> import numpy as np
    >>> told_apart_singly(np.array([np.arange(9.0) + 5, np.arange(9.0)]), rng=np.random.default_rng(1))[0, 1]
    np.True_
    """
    n_models, n_tasks = values.shape
    is_better = np.zeros((n_models, n_models), np.bool_)
    some = np.flatnonzero(np.isfinite(values).all(axis=1))
    if 2.0 ** (1 - n_tasks) > 1 - CONFIDENCE or len(some) < 2:
        return is_better
    resamples = next(draw_counts(rng, n_tasks, n_resamples, at_once=n_resamples * n_tasks)).astype(np.float64)
    sums = np.round(resamples @ values[some].T, _DIGITS)
    least = (1 - expanded_tail(n_tasks)) * n_resamples
    for row, model in enumerate(some):
        is_better[model, some] = (sums[:, [row]] > sums).sum(axis=0) >= least
    return is_better


def _rank_ends(counts: Floats, tail: float, compared: Bools) -> tuple[Floats, Floats]:
    """Return percentiles of ranks over resamples (rows of `counts`); NaN for models (columns) that are not `compared`.

    Models that tie may have any of their ranks, and those that are not compared may be before or behind all others.
    """
    low, high = np.full(len(compared), np.nan), np.full(len(compared), np.nan)
    if not compared.any():
        return low, high
    best, worst = (np.empty((len(counts), compared.sum()), np.int32) for _ in range(2))
    step = max(1, _RESAMPLES_AT_ONCE // len(compared))
    for start in range(0, len(counts), step):
        rows = slice(start, start + step)
        drawn = pd.DataFrame(-counts[rows][:, compared])
        best[rows], worst[rows] = drawn.rank(axis=1, method="min"), drawn.rank(axis=1, method="max")
    low[compared] = np.quantile(best, tail, axis=0, method="inverted_cdf")
    high[compared] = np.quantile(worst, 1 - tail, axis=0, method="inverted_cdf") + (~compared).sum()
    return low, high


def _ends(values: Floats, defined: Bools, resamples: Floats) -> tuple[Floats, Floats]:
    """Return the interval of each model's sum over tasks; NaN without variation, or if not `defined`."""
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    rows = np.flatnonzero(defined)
    rows = rows[np.ptp(values[rows], axis=1) > 10**-_DIGITS] if len(rows) else rows
    width = max(1, _RESAMPLES_AT_ONCE // max(len(resamples), 1))
    for start in range(0, len(rows), width):
        some = rows[start : start + width]
        tail = expanded_tail(values.shape[1])
        low[some], high[some] = np.quantile(resamples @ values[some].T, [tail, 1 - tail], axis=0)
    return low, high


def _reasons(grid: Floats, flat: Bools) -> list[str]:
    """Return why a model has no interval; empty if it has one."""
    n_models, n_tasks = grid.shape
    reasons = []
    for missing, same in zip(n_tasks - np.isfinite(grid).sum(axis=1), flat, strict=True):
        if missing:
            reasons.append(f"lacks {missing} of {n_tasks} scores: it gets no points there, and no interval")
        elif n_tasks < LEAST_TASKS:
            reasons.append(f"an interval needs at least {LEAST_TASKS} tasks, not {n_tasks}")
        elif n_models == 1:
            reasons.append("there is no other model to compare with")
        else:
            reasons.append("the same points on every task, so resamples do not vary" if same else "")
    return reasons


def _groups(better: Bools, order: NDArray[np.int64]) -> list[str]:
    """Return each model's letters, or its tier where there are too many models for letters; `order` is best first.

    Models that share a letter are not told apart; there are none if 26 do not suffice. A tier begins with a model that
    is told apart from the first of the tier above.
    """
    groups = [""] * len(better)
    if len(order) > MOST_LETTERED:
        first, tier = order[0], 1
        for model in order:
            if better[first, model]:
                first, tier = model, tier + 1
            groups[model] = str(tier)
    elif len(order):
        pairs = itertools.combinations(order.tolist(), 2)
        different = [(str(a), str(b)) for a, b in pairs if better[a, b] or better[b, a]]
        letters = letter_display([str(model) for model in order], different)
        for model in order if all(map(str.isalpha, letters.values())) else ():
            groups[model] = letters[str(model)]
    return groups
