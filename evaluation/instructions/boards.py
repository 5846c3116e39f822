"""Boards of models under other wordings: the defaults' ranking, and rankings with chosen wordings.

Points on a task are tournament Borda's (`plumbline.statistics.rankings`); a named rule treats missing scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.instructions.grid import Grid
from evaluation.instructions.spread import moments, quantile
from evaluation.tables.comparisons import board
from plumbline.importing import scipy
from plumbline.statistics.estimates import Floats
from plumbline.statistics.rankings import kendall, points_of, ranks_of

#: The rules for a model's missing score on a task, by their names on the command line.
HOLES: Mapping[str, str] = {
    "mteb": "a model without a score on a task gets no point there, and every other model gets one (mteb's rule)",
    "present": "points are averaged over the tasks on which a model has scores (as in the paper's Figure 4)",
}
DEFAULTS, AGAINST_DEFAULTS, AGAINST_WORST = "defaults", "best against defaults", "best against worst"
_DIGITS = 9


def ranked(scores: Floats, holes: str) -> tuple[Floats, NDArray[np.int64]]:
    """Return points and ranks of models (rows) over tasks (columns) by a rule of `HOLES`; ties share the best rank.

    mteb's rule sums points, `present` averages them. A model without any score has NaN and comes last.
    """
    missing = np.isnan(scores)
    all_points = points_of(scores)
    if holes != "present":
        points = all_points.sum(axis=1)
    else:
        among = np.where(missing, np.nan, all_points - missing.sum(axis=0))
        n_scored = (~missing).sum(axis=1)
        points = np.full(len(scores), np.nan)
        np.divide(np.nansum(among, axis=1), n_scored, out=points, where=n_scored > 0)
    return points, ranks_of(np.nan_to_num(np.round(points, _DIGITS), nan=-np.inf))


def chosen_boards(grid: Grid, holes: str = "mteb") -> pd.DataFrame:
    """Return ranks with all defaults, and with one model taking its best wording on every task.

    Three scenarios: all models with their defaults; one model (`chosen`) with its best wordings against the others'
    defaults; one with its best against the others' worst. A default counts as a wording of its model in both.
    Columns: scenario, chosen, model, points, rank, n_tasks (on which the model's scores count).

    Source: arXiv 2605.22544, 3.4 and Figure 4.
    """
    best, worst = np.fmax(quantile(grid.scores, 1.0), grid.default), np.fmin(quantile(grid.scores, 0.0), grid.default)
    parts = [_board(grid, grid.default, DEFAULTS, "", holes)]
    for scenario, rivals in ((AGAINST_DEFAULTS, grid.default), (AGAINST_WORST, worst)):
        for number, model in enumerate(grid.models):
            scores = rivals.copy()
            scores[number] = best[number]
            parts.append(_board(grid, scores, scenario, model, holes))
    return pd.concat(parts, ignore_index=True)


def _board(grid: Grid, scores: Floats, scenario: str, chosen: str, holes: str) -> pd.DataFrame:
    points, ranks = ranked(scores, holes)
    columns = {"scenario": scenario, "chosen": chosen, "model": list(grid.models), "points": points, "rank": ranks}
    return pd.DataFrame(columns | {"n_tasks": (~np.isnan(scores)).sum(axis=1)})


def recommended_board(grid: Grid, holes: str = "mteb", *, seed: int) -> pd.DataFrame:
    """Return models ranked by the mean over accepted wordings, best first (`tables.comparisons.board`).

    Further columns: the mean's 95% interval over wordings for fixed tasks (`mean_over_wordings`), the defaults' mean
    and rank (by the rule `holes`). The attribute `tau` is Kendall's tau-b of both rankings.
    """
    _, means, _ = moments(grid.scores)
    types = {task: grid.types[task] or "Task" for task in grid.tasks}
    table = board(pd.DataFrame(means, index=list(grid.models), columns=list(grid.tasks)), types, seed=seed)
    over = mean_over_wordings(grid.scores)
    of_default, default_ranks = ranked(grid.default, holes)
    known_ranks = np.where(np.isnan(grid.default).all(axis=1), np.nan, default_ranks)
    of_defaults = pd.DataFrame({"model": list(grid.models), **over, "default_rank": known_ranks})
    of_defaults["default_mean"] = grid.default.mean(axis=1)
    ranking = table.merge(of_defaults, on="model", how="left", sort=False)
    counted = ranking.set_index("model").loc[list(grid.models), "borda"].to_numpy(np.float64)
    ranking.attrs["tau"] = kendall(counted, of_default).value
    return ranking


def mean_over_wordings(scores: Floats) -> dict[str, Floats]:
    """Return each model's mean over tasks of means over wordings, with a 95% interval over wordings.

    `scores` are models by tasks by wordings; the result has wordings_mean, wordings_low and wordings_high. Tasks are
    fixed; each task's wordings are a sample of possible accepted ones. The variance is the sum over tasks of s^2 / n,
    divided by the square of their number; the quantile is Student's with Satterthwaite's degrees of freedom. NaN if a
    task has fewer than 2 wordings or no score, and if no task's wordings differ: their spread is unknown.
    """
    n, mean, sd = moments(scores)
    defined = (n >= 2).all(axis=1) & (sd > 0).any(axis=1)
    some = np.maximum(n, 2)
    parts = np.where(n >= 2, sd**2 / (some - 1), 0.0)  # s^2 / n of the sample, from the population's
    error2, total = parts.sum(axis=1), np.maximum(n.shape[1], 1)
    freedom = np.full(len(error2), np.inf)
    np.divide(error2**2, (parts**2 / (some - 1)).sum(axis=1), out=freedom, where=error2 > 0)
    half = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(error2) / total
    value = mean.mean(axis=1)
    low, high = (np.where(defined, value + sign * half, np.nan) for sign in (-1, 1))
    return {"wordings_mean": value, "wordings_low": low, "wordings_high": high}
