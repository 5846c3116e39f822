"""Selection for agreement: the tasks within a budget whose Borda counts follow those of all tasks best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.benchmarks.backward import Bools, Coverage
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.paired import row_correlations, spearman_interval
from plumbline.statistics.rankings import kendall_interval, kendall_rows

_DIGITS = 9  # sums of points that agree so far differ by rounding alone
RESAMPLES = 1000
BEATS = 0.05  # the share of random selections that may be as good, for a selection to beat them
LEAST_MODELS = 3  # that a rank correlation can be made of


@dataclass(frozen=True)
class RankingAgreement:
    """Spearman's rho and Kendall's tau-b with all tasks, with 95% intervals over models, beside random selections.

    `random_rho`, `random_tau`: what random selections reach, one value each (NaN where it is undefined).
    """

    rho: Estimate
    tau: Estimate
    random_rho: Floats
    random_tau: Floats

    @property
    def as_good(self) -> dict[str, float]:
        """The share of random selections that agree at least as well, by measure; NaN where there are none."""
        return {
            "rho": as_good(self.rho.value, self.random_rho),
            "tau": as_good(self.tau.value, self.random_tau),
        }

    @property
    def beats_random(self) -> bool | None:
        """Whether fewer than 5% of random selections are as good by either measure; None where nothing is known."""
        shares = list(self.as_good.values())
        return None if np.isnan(shares).any() else max(shares) < BEATS


def as_good(value: float, others: Floats) -> float:
    """The share of values that are at least `value`, to 9 digits; NaN where that cannot be said."""
    defined = others[np.isfinite(others)]
    if not len(defined) or not np.isfinite(value):
        return float("nan")
    return float((np.round(defined, _DIGITS) >= round(value, _DIGITS)).mean())


def points(scores: Floats) -> Floats:
    """Mteb's Borda points of each model (row) on each task: a point a model that it beats, half a one for a tie."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    ranks: Floats = len(scores) - stats.rankdata(-scores, axis=0)
    return ranks


def borda_means(task_scores: Floats, selections: NDArray[np.bool_]) -> Floats:
    """Mean points of each model (column) by each selection of tasks (row), rounded so that ties are ties."""
    means: Floats = np.round(selections @ task_scores.T / selections.sum(axis=1, keepdims=True), _DIGITS)
    return means


def agreements(scores: Floats, selections: Bools) -> tuple[Floats, Floats]:
    """Rho and tau of each selection (row) with all tasks, over these models."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    all_points = points(scores)
    means = borda_means(all_points, selections)
    whole = borda_means(all_points, np.ones((1, scores.shape[1]), np.bool_))
    rho = row_correlations(stats.rankdata(means, axis=1), np.broadcast_to(stats.rankdata(whole), means.shape))
    return rho, kendall_rows(means, np.broadcast_to(whole, means.shape))


def agreement(scores: Floats, chosen: Bools, random: Bools, rngs: Sequence[np.random.Generator]) -> RankingAgreement:
    """A selection against all tasks and against `random` ones, over the models (rows) of `scores`.

    Models are ranked by Borda counts among these models. The intervals are percentile bootstraps over models, which
    keep the points that the models got among all of them. `rngs`: one for each interval.
    """
    all_points = points(scores)
    subset, whole = borda_means(all_points, np.array([chosen, np.ones_like(chosen)]))
    rho = spearman_interval(subset, whole, n_resamples=RESAMPLES, rng=rngs[0])
    tau = kendall_interval(subset, whole, n_resamples=RESAMPLES, rng=rngs[1])
    return RankingAgreement(rho, tau, *agreements(scores, random))


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
    variance = covariance[np.ix_(chosen, chosen)].sum()
    return float(covariance[chosen].sum() / np.sqrt(variance * covariance.sum())) if variance > 0 else -1.0


def _climb(chosen: Bools, covariance: Floats, coverage: Coverage, budget: float) -> Bools:
    """Make the best change again and again until none is left that helps."""
    now = _correlation(chosen, covariance)
    while True:
        gains = _after_each_change(chosen, covariance)
        price, cost = coverage.price(chosen), np.append(coverage.cost, 0.0)
        dear = ~(price - cost[:, None] + cost[None, :] <= budget + 1e-9 * max(1.0, abs(budget)))
        gains[dear] = -np.inf
        moved = False
        for change in np.argsort(-gains, axis=None, kind="stable"):
            out, into = divmod(int(change), len(cost))
            if not gains[out, into] > now + _LEAST:
                break
            trial = chosen.copy()
            if out < len(chosen):
                trial[out] = False
            if into < len(chosen):
                trial[into] = True
            if coverage.holds(trial):
                chosen, now, moved = trial, float(gains[out, into]), True
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
