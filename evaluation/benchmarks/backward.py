"""MMTEB's backward selection: the task that the others predict best goes, again and again.

Source: MMTEB, 2.3.3 and 2.4, and its authors' notebooks (mteb, `scripts/task_selection`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.errors import StudyError
from plumbline.statistics.estimates import Floats
from plumbline.statistics.paired import row_correlations

Bools = NDArray[np.bool_]
COVERS = ("language", "type", "none")
_SAME = 1e-9  # of costs that are sums of the same numbers in another order


@dataclass(frozen=True)
class Coverage:
    """Which tasks (columns) meet which needs (rows, as `needs` names them), which are `kept`, and what each costs."""

    needs: tuple[str, ...]
    met: Bools
    required: Bools
    cost: Floats

    def __post_init__(self) -> None:
        if not self.met.any(axis=1).all():
            lacking = self.needs[int(np.argmin(self.met.any(axis=1)))]
            raise ValueError(f"no task meets {lacking}")

    def may_go(self, chosen: Bools) -> Bools:
        """Which of the chosen tasks may be taken out: not kept by hand, and no need is met by them alone."""
        alone = self.met[:, chosen].sum(axis=1) == 1
        free: Bools = chosen & ~self.required & ~self.met[alone].any(axis=0)
        return free

    def holds(self, chosen: Bools) -> bool:
        """Whether a selection meets every need and has every kept task."""
        return bool((self.met[:, chosen].any(axis=1)).all() and chosen[self.required].all())

    def price(self, chosen: Bools) -> float:
        """What a selection costs."""
        return float(self.cost[chosen].sum())

    def within(self, price: float, budget: float) -> bool:
        """Whether a price is within a budget, rounding aside."""
        return price <= budget + _SAME * max(1.0, abs(budget))

    def cheapest(self) -> Bools:
        """The cheapest selection that meets every need (an integer programme, solved by scipy's HiGHS)."""
        from scipy import optimize  # noqa: PLC0415 (half a second)

        least = self.required.astype(np.float64)
        bounds = optimize.Bounds(least, np.ones(len(least)))
        # A task that costs nothing still counts a little, or all of them would come along.
        cost = self.cost / max(float(self.cost.max()), _SAME) + _SAME
        rows = [optimize.LinearConstraint(self.met.astype(np.float64), 1, math.inf)] if len(self.met) else []
        solution = optimize.milp(cost, constraints=rows, integrality=np.ones(len(least), np.int64), bounds=bounds)
        if not solution.success:
            raise RuntimeError(f"the cheapest selection was not found: {solution.message}")
        chosen: Bools = solution.x > 0.5
        return chosen

    def random(self, budget: float, n: int, rng: np.random.Generator) -> Bools:
        """Random selections (at most `n`, by tasks) that meet every need within a budget.

        Tasks leave in random order until the cost is within the budget, each only while all needs stay met; then those
        that left come back in random order as far as the budget has room. Where only the last ones could have left, a
        draw does not come within the budget, and is not among them. They are not uniform over all that could be.
        """
        n_tasks = self.met.shape[1]
        order = rng.random((n, n_tasks)).argsort(axis=1)
        chosen = np.ones((n, n_tasks), np.bool_)
        counts = np.tile(self.met.sum(axis=1), (n, 1))
        price = np.full(n, self.price(np.ones(n_tasks, np.bool_)))
        limit, rows, meets = budget + _SAME * max(1.0, abs(budget)), np.arange(n), self.met.T
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


def coverage(tasks: pd.DataFrame, cover: str, languages: Sequence[str], keep: Sequence[str], cost: Floats) -> Coverage:
    """What a selection of `tasks` (index: their names; columns `type`, `languages`) must keep.

    By "type" each type stays represented; by "language" each language stays covered within its type, too (MMTEB, 2.4);
    of languages only those named, where any are. Raises StudyError for a task to keep that is not there.
    """
    names = list(tasks.index)
    if missing := [name for name in keep if name not in names]:
        raise StudyError(f"--keep {missing[0]}: it is not among the {len(names)} tasks; correct it, or leave it out")
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
_FLAT = 1e-8  # shares that are nearer to 0 are not told from it
_DIGITS = 12  # correlations that agree so far are ties, and the first task goes


@dataclass(frozen=True)
class Step:
    """One task taken out: how the others predicted it then, and whether MMTEB's thresholds had let it go.

    `within` is false from the first step on that the thresholds would not have made.
    """

    task: int
    rho: float
    mse: float
    within: bool


def left_out_predictions(scores: Floats) -> Floats:
    """What the other tasks predict of each score (models by tasks), by linear regression on all other models.

    Least squares with an intercept, each model left out in turn; where tasks outnumber models the solution of the least
    norm, as scikit-learn's LinearRegression has it. Nothing is fitted anew: one singular value decomposition serves all
    tasks. Where the others do not give a task exactly, a residual is e / (1 - h), by the hat matrix; where they do, it
    is the limit of kernel ridge regression at penalty 0. Only a model without which a weight is not determined is left
    out by a fit of its own. Tasks that are on one scale are assumed.

    Source: Cook and Weisberg (1982), 2.2; Cawley and Talbot (2004), Neural Networks 17, 1467-1475.
    """
    n, n_tasks = scores.shape
    if n < 3 or n_tasks < 2:
        raise ValueError(f"leave-one-out regression needs 3 models and 2 tasks, not {n} and {n_tasks}")
    with one_thread():
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
    """One prediction by a fit without the model: what the closed forms stand for."""
    others = np.delete(np.arange(scores.shape[1]), task)
    rest = np.delete(scores, model, axis=0)
    mean = rest.mean(axis=0)
    weights = np.linalg.lstsq(rest[:, others] - mean[others], rest[:, task] - mean[task], rcond=None)[0]
    return float(mean[task] + (scores[model, others] - mean[others]) @ weights)


def predictability(scores: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """Of each task Spearman's rho between scores and predictions, and their mean squared error in score variances.

    Both are NaN for a task on which all models have the same score.
    """
    from scipy import stats  # noqa: PLC0415 (half a second)

    rho = row_correlations(stats.rankdata(scores, axis=0).T, stats.rankdata(predicted, axis=0).T)
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
    """The whole trace: task after task taken out, until none may go (`coverage`) or two are left.

    While a task may go whose predictions have at least `rho` and at most `mse`, the first such one by rho goes: that is
    MMTEB's selection. Beyond it, the first that may go at all, marked as not `within`.
    """
    remaining = np.ones(scores.shape[1], np.bool_)
    steps: list[Step] = []
    within = True
    while remaining.sum() > 2 and (free := coverage.may_go(remaining)).any():
        tasks_left = np.flatnonzero(remaining)
        predicted = predictability(scores[:, tasks_left], left_out_predictions(scores[:, tasks_left]))
        rhos, errors = np.nan_to_num(predicted[0], nan=-2.0), predicted[1]
        may = free[tasks_left]
        good = may & (rhos >= rho) & (errors <= mse)
        within = within and bool(good.any())
        candidates = np.flatnonzero(good if within else may)
        first = candidates[np.argmax(np.round(rhos[candidates], _DIGITS))]
        steps.append(Step(int(tasks_left[first]), float(predicted[0][first]), float(errors[first]), within))
        remaining[tasks_left[first]] = False
        progress()
    return steps


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra of this size is faster on one core, and the same to the last digit wherever it runs."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (extra `evaluation`)

    with threadpool_limits(1):
        yield
