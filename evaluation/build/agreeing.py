"""Selection for agreement: the tasks within a budget whose Borda counts follow those of all tasks best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from annotation.statistics.paired import Floats
from evaluation.build.agreement import points
from evaluation.build.coverage import Bools, Coverage

STARTS = 10  # the search begins at the cheapest selection, and at so many random ones
_LEAST = 1e-9  # a gain in correlation that is more than rounding
_FEW = 10  # selections drawn for one start: the first within the budget is taken


def agreeing(
    scores: Floats,
    coverage: Coverage,
    budget: float,
    rng: np.random.Generator,
    progress: Callable[[], object] = lambda: None,
) -> Bools:
    """The selection within a budget whose mean points correlate best (Pearson's r) with those of all tasks.

    `scores` are those of the models that it is chosen by, never of those that it is judged by. Points are mteb's Borda
    points among these models. From each start, the exchange, addition or removal that raises r most is made until none
    does; the best end is taken, of equal ones the cheapest. r of points is smoother than a rank correlation, and is had
    from the tasks' covariances alone. Every selection on the way keeps what `coverage` says.

    Source: ours. Raises ValueError where the cheapest selection is over the budget.
    """
    covariance = np.cov(points(scores), rowvar=False, bias=True)
    cheapest = coverage.cheapest()
    if not coverage.within(coverage.price(cheapest), budget):
        raise ValueError("no selection that keeps what it must is within the budget")
    ends = []
    for start in [cheapest, *coverage.random(budget, STARTS, rng)]:
        ends.append(_climb(start.copy(), covariance, coverage, budget))
        progress()
    return max(ends, key=lambda end: (round(_correlation(end, covariance), 9), -coverage.price(end)))


def _correlation(chosen: Bools, covariance: Floats) -> float:
    own = covariance[np.ix_(chosen, chosen)].sum()
    return float(covariance[chosen].sum() / np.sqrt(own * covariance.sum())) if own > 0 else -1.0


def _climb(chosen: Bools, covariance: Floats, coverage: Coverage, budget: float) -> Bools:
    """Make the best change again and again until none is left that helps."""
    now = _correlation(chosen, covariance)
    while True:
        gains = _after_each_change(chosen, covariance)
        price, cost = coverage.price(chosen), np.append(coverage.cost, 0.0)
        dear = ~(price - cost[:, None] + cost[None, :] <= budget + 1e-9 * max(1.0, abs(budget)))
        gains[dear] = -np.inf
        moved = False
        for place in np.argsort(-gains, axis=None, kind="stable"):
            out, into = divmod(int(place), len(cost))
            if not gains[out, into] > now + _LEAST:
                break
            made = chosen.copy()
            if out < len(chosen):
                made[out] = False
            if into < len(chosen):
                made[into] = True
            if coverage.holds(made):
                chosen, now, moved = made, float(gains[out, into]), True
                break
        if not moved:
            return chosen


def _after_each_change(chosen: Bools, covariance: Floats) -> Floats:
    """R after one task (row) gives way to another (column); the last row and column stand for none."""
    n = len(chosen)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = covariance
    total = padded.sum(axis=1)
    within = padded[:, :n][:, chosen].sum(axis=1)
    own = float(covariance[np.ix_(chosen, chosen)].sum())
    diagonal = np.diag(padded)
    with_all = float(total[:n][chosen].sum()) - total[:, None] + total[None, :]
    with_self = own + diagonal[:, None] - 2 * within[:, None] + diagonal[None, :] + 2 * within[None, :] - 2 * padded
    found = np.full((n + 1, n + 1), -np.inf)
    np.divide(with_all, np.sqrt(np.maximum(with_self, 0) * total.sum()), out=found, where=with_self > 1e-12)
    leaves, enters = np.append(chosen, True), np.append(~chosen, True)
    found[~leaves] = -np.inf
    found[:, ~enters] = -np.inf
    found[n, n] = -np.inf
    return found
