"""How far a selection of tasks ranks models as all tasks do, beside random selections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.statistics.paired import Estimate, Floats, row_correlations, spearman_interval
from evaluation.build.coverage import Bools
from evaluation.statistics.rankings import kendall_interval, kendall_rows

_DIGITS = 9  # sums of points that agree so far differ by rounding alone
RESAMPLES = 1000
BEATS = 0.05  # the share of random selections that may be as good, for a selection to beat them
LEAST_MODELS = 3  # that a rank correlation can be made of


@dataclass(frozen=True)
class Agreement:
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
    known = others[np.isfinite(others)]
    if not len(known) or not np.isfinite(value):
        return float("nan")
    return float((np.round(known, _DIGITS) >= round(value, _DIGITS)).mean())


def points(scores: Floats) -> Floats:
    """Mteb's Borda points of each model (row) on each task: a point a model that it beats, half a one for a tie."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    ranks: Floats = len(scores) - stats.rankdata(-scores, axis=0)
    return ranks


def borda_means(own: Floats, selections: NDArray[np.bool_]) -> Floats:
    """Mean points of each model (column) by each selection of tasks (row), rounded so that ties are ties."""
    means: Floats = np.round(selections @ own.T / selections.sum(axis=1, keepdims=True), _DIGITS)
    return means


def agreements(scores: Floats, selections: Bools) -> tuple[Floats, Floats]:
    """Rho and tau of each selection (row) with all tasks, over these models."""
    from scipy import stats  # noqa: PLC0415 (half a second)

    own = points(scores)
    means = borda_means(own, selections)
    whole = borda_means(own, np.ones((1, scores.shape[1]), np.bool_))
    rho = row_correlations(stats.rankdata(means, axis=1), np.broadcast_to(stats.rankdata(whole), means.shape))
    return rho, kendall_rows(means, np.broadcast_to(whole, means.shape))


def agreement(scores: Floats, chosen: Bools, random: Bools, rngs: Sequence[np.random.Generator]) -> Agreement:
    """A selection against all tasks and against `random` ones, over the models (rows) of `scores`.

    Models are ranked by Borda counts among these models. The intervals are percentile bootstraps over models, which
    keep the points that the models got among all of them. `rngs`: one for each interval.
    """
    own = points(scores)
    subset, whole = borda_means(own, np.array([chosen, np.ones_like(chosen)]))
    rho = spearman_interval(subset, whole, n_resamples=RESAMPLES, rng=rngs[0])
    tau = kendall_interval(subset, whole, n_resamples=RESAMPLES, rng=rngs[1])
    return Agreement(rho, tau, *agreements(scores, random))
