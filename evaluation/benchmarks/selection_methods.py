"""Two ways to select tasks, and the agreement of a selection with the ranking of models by all tasks.

MMTEB's backward selection repeatedly removes the task that the others predict best (MMTEB, 2.3.3 and 2.4, and its
authors' notebooks, mteb's `scripts/task_selection`). Selection for agreement searches the tasks within a budget whose
Borda counts agree best with those of all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.errors import StudyError
from plumbline.importing import scipy
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.paired import row_correlations, spearman_interval
from plumbline.statistics.rankings import kendall_interval, kendall_rows, points_of

Bools = NDArray[np.bool_]
_SAME = 1e-9  # tolerance for costs summed in another order


@dataclass(frozen=True)
class Coverage:
    """Coverage of `needs` (rows) by tasks (columns): the tasks that are `required`, and the cost of each."""

    needs: tuple[str, ...]
    met: Bools
    required: Bools
    cost: Floats

    def __post_init__(self) -> None:
        if not self.met.any(axis=1).all():
            unmet = self.needs[int(np.argmin(self.met.any(axis=1)))]
            raise ValueError(f"no task meets {unmet}")

    def may_go(self, chosen: Bools) -> Bools:
        """Return which chosen tasks may be removed: not required, and no need is met by them alone."""
        single = self.met[:, chosen].sum(axis=1) == 1
        free: Bools = chosen & ~self.required & ~self.met[single].any(axis=0)
        return free

    def holds(self, chosen: Bools) -> bool:
        """Return whether a selection meets every need and has every required task."""
        return bool((self.met[:, chosen].any(axis=1)).all() and chosen[self.required].all())

    def price(self, chosen: Bools) -> float:
        """Return the cost of a selection."""
        return float(self.cost[chosen].sum())

    def within(self, price: float, budget: float) -> bool:
        """Return whether a price is within a budget, up to rounding."""
        return price <= limit_of(budget)

    def cheapest(self) -> Bools:
        """Return the cheapest selection that meets every need (an integer programme, solved by scipy's HiGHS)."""
        least = self.required.astype(np.float64)
        bounds = scipy.optimize.Bounds(least, np.ones(len(least)))
        # A free task still costs a little, or all free tasks would be included.
        cost = self.cost / max(float(self.cost.max()), _SAME) + _SAME
        rows = [scipy.optimize.LinearConstraint(self.met.astype(np.float64), 1, math.inf)] if len(self.met) else []
        solution = scipy.optimize.milp(cost, constraints=rows, integrality=np.ones(len(least), np.int64), bounds=bounds)
        if not solution.success:
            raise RuntimeError(f"no cheapest selection was found: {solution.message}")
        chosen: Bools = solution.x > 0.5
        return chosen

    def random(self, budget: float, n: int, rng: np.random.Generator) -> Bools:
        """Return random selections (at most `n`, by tasks) that meet every need within a budget.

        Tasks are removed in random order until the cost is within the budget, each only while all needs stay met; then
        removed tasks are added back in random order as far as the budget allows. Draws that do not reach the budget
        are left out. The selections are not uniform over all possible ones.
        """
        n_tasks = self.met.shape[1]
        order = rng.random((n, n_tasks)).argsort(axis=1)
        chosen = np.ones((n, n_tasks), np.bool_)
        counts = np.tile(self.met.sum(axis=1), (n, 1))
        price = np.full(n, self.price(np.ones(n_tasks, np.bool_)))
        limit, rows, meets = limit_of(budget), np.arange(n), self.met.T
        for task in order.T:
            blocked = ((counts <= 1) & meets[task]).any(axis=1) | self.required[task] | (price <= limit)
            chosen[rows, task] = blocked
            counts -= meets[task] & ~blocked[:, None]
            price -= np.where(blocked, 0, self.cost[task])
        for task in rng.permuted(order, axis=1).T:
            back = ~chosen[rows, task] & (price + self.cost[task] <= limit)
            chosen[rows, task] |= back
            price += np.where(back, self.cost[task], 0)
        return chosen[price <= limit]


def limit_of(budget: float) -> float:
    """Return the highest price that is within a budget, up to rounding."""
    return budget + _SAME * max(1.0, abs(budget))


def coverage(tasks: pd.DataFrame, cover: str, languages: Sequence[str], keep: Sequence[str], cost: Floats) -> Coverage:
    """Return what a selection of `tasks` (index: their names; columns `type`, `languages`) must keep.

    By "type" each type stays represented; by "language" each language also stays covered within its type (MMTEB, 2.4),
    or only the named languages. Raises StudyError for an unknown task in `keep`.
    """
    names = list(tasks.index)
    if missing := [name for name in keep if name not in names]:
        raise StudyError(f"--keep {missing[0]}: not one of the {len(names)} tasks; correct the name, or leave it out")
    rows: dict[str, Bools] = {}
    types = tasks["type"].to_numpy(str)
    if cover != "none":
        rows |= {f"type {kind}": types == kind for kind in dict.fromkeys(types)}
    if cover == "language":
        covered = [set(languages) & set(spoken) if languages else set(spoken) for spoken in tasks["languages"]]
        pairs = sorted({(kind, code) for kind, codes in zip(types, covered, strict=True) for code in codes})
        for kind, code in pairs:
            rows[f"{code} in {kind}"] = (types == kind) & np.array([code in codes for codes in covered])
    met = np.array(list(rows.values()), np.bool_).reshape(len(rows), len(names))
    return Coverage(tuple(rows), met, np.isin(names, list(keep)), cost)


RHO, MSE = 0.8, 0.5  # MMTEB's for its multilingual, European and Indic benchmarks; English: 0.9 and 0.2
_FLAT = 1e-8  # smaller shares count as 0
_DIGITS = 12  # correlations equal to this precision are ties: the first task is removed


@dataclass(frozen=True)
class Step:
    """One removed task, and how the others predicted it."""

    task: int
    rho: float
    mse: float


def left_out_predictions(scores: Floats) -> Floats:
    """Predict each score (models by tasks) from the model's other tasks, by regression on all other models.

    Least squares with an intercept, each model left out in turn; where tasks outnumber models the solution of the least
    norm, as in scikit-learn's LinearRegression. One singular value decomposition serves all tasks and models. If the
    others do not determine a task exactly, a residual is e / (1 - h), by the hat matrix; if they do, it is the limit of
    kernel ridge regression at penalty 0. Only a model without which a weight is undetermined gets a fit of its own.
    All tasks must be on one scale.

    Source: Cook and Weisberg (1982), 2.2; Cawley and Talbot (2004), Neural Networks 17, 1467-1475.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (extra `evaluation`)

    n, n_tasks = scores.shape
    if n < 3 or n_tasks < 2:
        raise ValueError(f"leave-one-out regression needs 3 models and 2 tasks, not {n} and {n_tasks}")
    with threadpool_limits(1):  # one core: faster at this size, and equal to the last digit on any machine
        left_vectors, values, right = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
        real = values > values[0] * max(scores.shape) * np.finfo(float).eps
        left_vectors, values, right = left_vectors[:, real], values[real], right[real]
        dual = (left_vectors / values) @ right  # inverse of the products of models, times the scores
        unexplained = 1 - (right * right).sum(axis=0)  # 0 where the other tasks do not give this one exactly
        free = (1 - 1 / n - (left_vectors * left_vectors).sum(axis=1))[:, None]
        size = np.maximum((dual * dual).sum(axis=0), np.finfo(float).tiny)  # 0 for a task with equal scores
        not_given = unexplained < _FLAT
        above = np.where(not_given, dual / size, np.where(free > _FLAT, 0.0, dual))
        below = np.where(
            not_given,
            free + dual**2 / size,
            unexplained * ((left_vectors / values) ** 2).sum(axis=1)[:, None] + dual**2,
        )
        exact = np.where(not_given, below > _FLAT, below > 0)
        predicted = scores - above / np.where(exact, below, 1)
        for model, task in np.argwhere(~exact):
            predicted[model, task] = refitted(scores, int(model), int(task))
    return predicted


def refitted(scores: Floats, model: int, task: int) -> float:
    """Return one prediction by a fit without the model, which the closed forms replace."""
    predictors = np.delete(np.arange(scores.shape[1]), task)
    rest = np.delete(scores, model, axis=0)
    mean = rest.mean(axis=0)
    weights = np.linalg.lstsq(rest[:, predictors] - mean[predictors], rest[:, task] - mean[task], rcond=None)[0]
    return float(mean[task] + (scores[model, predictors] - mean[predictors]) @ weights)


def predictability(scores: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """Return for each task Spearman's rho of scores and predictions, and the mean squared error in variances.

    Both are NaN for a task on which all models have the same score.
    """
    rho = row_correlations(scipy.stats.rankdata(scores, axis=0).T, scipy.stats.rankdata(predicted, axis=0).T)
    variance = scores.var(axis=0)
    error = np.full(len(variance), np.nan)
    np.divide(((scores - predicted) ** 2).mean(axis=0), variance, out=error, where=np.ptp(scores, axis=0) > 0)
    return rho, error


def backward(
    scores: Floats,
    coverage: Coverage,
    *,
    rho: float = RHO,
    mse: float = MSE,
    progress: Callable[[], object] = lambda: None,
) -> list[Step]:
    """Return MMTEB's selection as a trace: remove task after task, until none may go (`coverage`) or two are left.

    Of the removable tasks with predictions of at least `rho` and at most `mse`, the one with the highest rho goes.
    """
    remaining = np.ones(scores.shape[1], np.bool_)
    steps: list[Step] = []
    while remaining.sum() > 2 and (free := coverage.may_go(remaining)).any():
        tasks_left = np.flatnonzero(remaining)
        predicted = predictability(scores[:, tasks_left], left_out_predictions(scores[:, tasks_left]))
        rhos, errors = np.nan_to_num(predicted[0], nan=-2.0), predicted[1]
        candidates = np.flatnonzero(free[tasks_left] & (rhos >= rho) & (errors <= mse))
        if not len(candidates):
            break
        first = candidates[np.argmax(np.round(rhos[candidates], _DIGITS))]
        steps.append(Step(int(tasks_left[first]), float(predicted[0][first]), float(errors[first])))
        remaining[tasks_left[first]] = False
        progress()
    return steps


_SUM_DIGITS = 9  # sums of points equal to this precision differ only by rounding
RESAMPLES = 1000
BEATS = 0.05  # a selection beats random ones if a smaller share of them is as good


@dataclass(frozen=True)
class RankingAgreement:
    """Spearman's rho and Kendall's tau-b with all tasks, with 95% intervals over models, and random selections'.

    `random_rho`, `random_tau`: the values of random selections (NaN if undefined).
    """

    rho: Estimate
    tau: Estimate
    random_rho: Floats
    random_tau: Floats

    @property
    def as_good(self) -> dict[str, float]:
        """The share of random selections that agree at least as well, by measure; NaN without any."""
        return {"rho": as_good(self.rho.value, self.random_rho), "tau": as_good(self.tau.value, self.random_tau)}

    @property
    def beats_random(self) -> bool | None:
        """True if fewer than 5% of random selections are as good by either measure; None if unknown."""
        shares = list(self.as_good.values())
        return None if np.isnan(shares).any() else max(shares) < BEATS


def as_good(value: float, values: Floats) -> float:
    """Return the share of values that are at least `value`, to 9 digits; NaN if undefined."""
    defined = values[np.isfinite(values)]
    if not len(defined) or not np.isfinite(value):
        return float("nan")
    return float((np.round(defined, _SUM_DIGITS) >= round(value, _SUM_DIGITS)).mean())


def borda_means(task_scores: Floats, selections: NDArray[np.bool_]) -> Floats:
    """Return mean points of each model (column) by each selection of tasks (row), rounded to keep ties."""
    means: Floats = np.round(selections @ task_scores.T / selections.sum(axis=1, keepdims=True), _SUM_DIGITS)
    return means


def agreements(scores: Floats, selections: Bools) -> tuple[Floats, Floats]:
    """Return rho and tau of each selection (row) with all tasks, over these models."""
    all_points = points_of(scores)
    means = borda_means(all_points, selections)
    full = borda_means(all_points, np.ones((1, scores.shape[1]), np.bool_))
    rho = row_correlations(
        scipy.stats.rankdata(means, axis=1), np.broadcast_to(scipy.stats.rankdata(full), means.shape)
    )
    return rho, kendall_rows(means, np.broadcast_to(full, means.shape))


def agreement(scores: Floats, chosen: Bools, random: Bools, rngs: Sequence[np.random.Generator]) -> RankingAgreement:
    """Compare a selection with all tasks and with `random` ones, over the models (rows) of `scores`.

    Models are ranked by Borda counts among these models. The intervals are percentile bootstraps over models, which
    keep the points of the whole set of models. `rngs`: one for each interval.
    """
    all_points = points_of(scores)
    subset, full = borda_means(all_points, np.array([chosen, np.ones_like(chosen)]))
    rho = spearman_interval(subset, full, n_resamples=RESAMPLES, rng=rngs[0])
    tau = kendall_interval(subset, full, n_resamples=RESAMPLES, rng=rngs[1])
    return RankingAgreement(rho, tau, *agreements(scores, random))


STARTS = 10  # random starts of the search, besides the cheapest selection
_LEAST = 1e-9  # least gain in correlation beyond rounding
_FEW = 10  # selections drawn for one start: the first within the budget is used


def agreeing(
    scores: Floats,
    coverage: Coverage,
    budget: float,
    rng: np.random.Generator,
    progress: Callable[[], object] = lambda: None,
) -> Bools:
    """Return the selection within a budget whose mean points correlate best (Pearson's r) with those of all tasks.

    `scores` are those of the choosing models, never of the judging ones. Points are Borda's among these
    models. From each start, the exchange, addition or removal that raises r most is made until none does; the best end
    is returned, the cheapest of equal ones. r of points is smoother than a rank correlation, and follows from the
    tasks' covariances. Every selection on the way meets `coverage`.

    Source: ours. Raises ValueError if the cheapest selection is over the budget.
    """
    covariance = np.cov(points_of(scores), rowvar=False, bias=True)
    cheapest = coverage.cheapest()
    if not coverage.within(coverage.price(cheapest), budget):
        raise ValueError("no selection that meets the requirements is within the budget")
    ends = []
    for start in [cheapest, *coverage.random(budget, STARTS, rng)]:
        ends.append(_climb(start.copy(), covariance, coverage, budget))
        progress()
    return max(ends, key=lambda end: (round(_correlation(end, covariance), 9), -coverage.price(end)))


def _correlation(chosen: Bools, covariance: Floats) -> float:
    variance = covariance[np.ix_(chosen, chosen)].sum()
    return float(covariance[chosen].sum() / np.sqrt(variance * covariance.sum())) if variance > 0 else -1.0


def _climb(chosen: Bools, covariance: Floats, coverage: Coverage, budget: float) -> Bools:
    """Make the best change repeatedly until none helps."""
    current = _correlation(chosen, covariance)
    while True:
        gains = _after_each_change(chosen, covariance)
        price, cost = coverage.price(chosen), np.append(coverage.cost, 0.0)
        dear = ~(price - cost[:, None] + cost[None, :] <= limit_of(budget))
        gains[dear] = -np.inf
        moved = False
        for change in np.argsort(-gains, axis=None, kind="stable"):
            out, into = divmod(int(change), len(cost))
            if not gains[out, into] > current + _LEAST:
                break
            trial = chosen.copy()
            if out < len(chosen):
                trial[out] = False
            if into < len(chosen):
                trial[into] = True
            if coverage.holds(trial):
                chosen, current, moved = trial, float(gains[out, into]), True
                break
        if not moved:
            return chosen


def _after_each_change(chosen: Bools, covariance: Floats) -> Floats:
    """Return r after one task (row) is replaced by another (column); the last row and column mean none."""
    n = len(chosen)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = covariance
    total = padded.sum(axis=1)
    within = padded[:, :n][:, chosen].sum(axis=1)
    variance = float(covariance[np.ix_(chosen, chosen)].sum())
    diagonal = np.diag(padded)
    with_all = float(total[:n][chosen].sum()) - total[:, None] + total[None, :]
    with_self = (
        variance + diagonal[:, None] - 2 * within[:, None] + diagonal[None, :] + 2 * within[None, :] - 2 * padded
    )
    best = np.full((n + 1, n + 1), -np.inf)
    np.divide(with_all, np.sqrt(np.maximum(with_self, 0) * total.sum()), out=best, where=with_self > 1e-12)
    leaves, enters = np.append(chosen, True), np.append(~chosen, True)
    best[~leaves] = -np.inf
    best[:, ~enters] = -np.inf
    best[n, n] = -np.inf
    return best
