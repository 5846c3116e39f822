"""How sure a ranking of models is: had other tasks been taken, which counts, means and ranks could have come out.

Rows are models, columns tasks; what is undefined is NaN with a reason.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.letter_display import letter_display
from annotation.statistics.paired import CONFIDENCE, Floats, holm
from evaluation.statistics.rankings import borda_points, ranks_of

LEAST_TASKS = 5  # below it resamples hardly differ, and no two models can be told apart
MOST_LETTERED = 40  # models, above which letters are more than can be read
_AT_ONCE = 2**22  # numbers in memory at a time
_DIGITS = 9
Bools = NDArray[np.bool_]


def rank_intervals(scores: pd.DataFrame, *, n_resamples: int = 10_000, rng: np.random.Generator) -> pd.DataFrame:
    """Borda counts, ranks and means of models (rows) over tasks (columns), each with a 95% interval over tasks.

    Counts and ranks are those of `borda`. Intervals take the tasks for a sample of those that might have been taken:

    - borda, mean: tasks are drawn anew with replacement; the interval is the percentile bootstrap's, expanded for few
      tasks. A mean needs a score on every task. Drawn from MTEB's boards (English and Multilingual v2, 6 or 12 models),
      5 tasks gave intervals of which 89% to 91% held the count over all tasks, 8 tasks 90% to 93%, 10 to 20 tasks 93%
      to 94%; t-intervals 91% to 95% of 5 and 8 tasks, and the same from 10 on.
    - rank_low, rank_high: one more than the models that are told apart as better, and the number of models less those
      told apart as worse. Two models are told apart where the paired t-test of their points over tasks has p < 0.05
      after Holm's correction for all pairs; p is at least 2 ** (1 - tasks), the least that as many signs can give. With
      95% confidence all ranks lie in their intervals at once. Resampled ranks would not: where models are equal,
      their 95% intervals hold the rank in 30 to 80% of simulations.
    - group: models with a letter in common are not told apart (compact letter display; up to 40 models).

    A model without a score on some task gets no points there, as mteb has it; it is told apart from no other, and has
    no intervals. Fewer than 5 tasks give no interval at all: `reason` says so. Raises ValueError for what is no number.

    Source: bootstrap and its expansion: Hesterberg (2015), The American Statistician 69, 371-386; ranks of what can be
    told apart: Al Mohamad, Goeman and van Zwet (2022), Biometrics 78, 157-168; Holm (1979); letters: Piepho (2004),
    Journal of Computational and Graphical Statistics 13, 456-466. The bound of p, and the rule for gaps, are ours.

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
    points, given = borda_points(scores)
    n_models, n_tasks = given.shape
    count, ranks = points.sum(axis=1), ranks_of(points.sum(axis=1))
    whole = np.isfinite(given).all(axis=1) & (n_tasks > 0)
    known = whole & (n_tasks >= LEAST_TASKS)
    mean = np.where(whole, given.sum(axis=1) / max(n_tasks, 1), np.nan)
    resamples = _times_drawn(n_tasks, n_resamples, rng) if known.any() else np.zeros((0, n_tasks))
    low, high = _ends(points, known, resamples)
    mean_low, mean_high = (end / max(n_tasks, 1) for end in _ends(given, known, resamples))
    apart = told_apart(np.where(known[:, None], points, np.nan))
    shown = known & (n_models > 1)
    made = {
        "borda": count,
        "borda_low": low,
        "borda_high": high,
        "rank": ranks,
        "rank_low": np.where(shown, 1 + apart.sum(axis=0), np.nan),
        "rank_high": np.where(shown, n_models - apart.sum(axis=1), np.nan),
        "mean": mean,
        "mean_low": mean_low,
        "mean_high": mean_high,
        "group": _letters(apart, np.flatnonzero(shown)[np.argsort(ranks[shown], kind="stable")]),
        "reason": _reasons(given, known & np.isnan(low)),
    }
    return pd.DataFrame(made, index=scores.index)


def told_apart(points: Floats) -> Bools:
    """Which models (rows) are better than which others (columns), as `rank_intervals` tells models apart.

    `points` are models by tasks; a model with NaN among them is told apart from no other.
    """
    from scipy import stats  # noqa: PLC0415 (half a second)

    n_models, n_tasks = points.shape
    apart = np.zeros((n_models, n_models), np.bool_)
    some = np.flatnonzero(np.isfinite(points).all(axis=1))
    if n_tasks < 2 or len(some) < 2:
        return apart
    own = points[some]
    covariance = np.cov(own)
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0) / n_tasks)
    difference = np.round(own.mean(axis=1)[:, None] - own.mean(axis=1)[None, :], _DIGITS)
    # Where all differences are the same the error is rounding, and t as large as can be.
    t = np.divide(np.abs(difference), np.maximum(error, 10**-_DIGITS))
    first, second = np.triu_indices(len(some), 1)
    p = np.maximum(2 * stats.t.sf(t[first, second], n_tasks - 1), 2.0 ** (1 - n_tasks))
    surely = holm(p) < 1 - CONFIDENCE
    better = difference[first, second] > 0
    winner, loser = np.where(better, first, second)[surely], np.where(better, second, first)[surely]
    apart[some[winner], some[loser]] = True
    return apart


def _times_drawn(n_tasks: int, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Resamples by tasks: how often each task was drawn."""
    return rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), size=n_resamples).astype(np.float64)


def _ends(values: Floats, known: Bools, resamples: Floats) -> tuple[Floats, Floats]:
    """The interval of each model's sum over tasks; NaN where nothing varies, or the model is not `known`."""
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    rows = np.flatnonzero(known)
    rows = rows[np.ptp(values[rows], axis=1) > 10**-_DIGITS] if len(rows) else rows
    width = max(1, _AT_ONCE // max(len(resamples), 1))
    for start in range(0, len(rows), width):
        some = rows[start : start + width]
        tail = _tail(values.shape[1])
        low[some], high[some] = np.quantile(resamples @ values[some].T, [tail, 1 - tail], axis=0)
    return low, high


def _tail(n: int) -> float:
    """The share of resamples on either side of the interval: less than 2.5% for few tasks (Hesterberg 2015)."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    tail = (1 - CONFIDENCE) / 2
    return float(stats.norm.cdf(math.sqrt(n / (n - 1)) * stats.t.ppf(tail, n - 1)))


def _reasons(given: Floats, flat: Bools) -> list[str]:
    """Why a model has no interval; empty where it has one."""
    n_models, n_tasks = given.shape
    said = []
    for lacking, same in zip(n_tasks - np.isfinite(given).sum(axis=1), flat, strict=True):
        if lacking:
            said.append(f"lacks {lacking} of {n_tasks} scores: no points there, and no interval")
        elif n_tasks < LEAST_TASKS:
            said.append(f"no interval from {n_tasks} task{'s' * (n_tasks != 1)}: it takes {LEAST_TASKS}")
        elif n_models == 1:
            said.append("there is no other model to be ranked with")
        else:
            said.append("as many points on every task, whichever are drawn" if same else "")
    return said


def _letters(apart: Bools, order: NDArray[np.int64]) -> list[str]:
    """Letters of each model: those of a letter are not told apart from each other; `order` is from the best down.

    Empty where there are more than `MOST_LETTERED` models or too few letters.
    """
    letters = [""] * len(apart)
    if not 0 < len(order) <= MOST_LETTERED:
        return letters
    names = [str(model) for model in order]
    pairs = itertools.combinations(order.tolist(), 2)
    different = [(str(one), str(other)) for one, other in pairs if apart[one, other] or apart[other, one]]
    shown = letter_display(names, different)
    if any(not one.isalpha() for one in shown.values()):
        return letters
    for model in order:
        letters[model] = shown[str(model)]
    return letters
