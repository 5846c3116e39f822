"""Statistics as pure functions: an estimate carries its interval, and the caller passes the random generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

# Fewer defined resamples than this share would make the interval one of a selected few.
_DEFINED_SHARE = 0.9


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval.

    `n` is the number of units behind it. What is undefined is NaN, and `reason` says why (empty otherwise).
    """

    value: float
    low: float
    high: float
    n: int
    reason: str


def spearman_interval(
    x: Sequence[float] | NDArray[np.float64],
    y: Sequence[float] | NDArray[np.float64],
    *,
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> Estimate:
    """Spearman's rho of two equally long samples, with a 95% percentile bootstrap interval over pairs.

    Ties get average ranks. rho is undefined (NaN, with a reason) for fewer than 3 pairs, for values that are
    not finite and for a constant sample. Resamples in which one side is constant are dropped; if more than a
    tenth of them are, there is no interval. Raises ValueError for samples of different lengths.

    Source: the interval is Efron's percentile bootstrap, as the drift figure of HTEB (Figure 3) has it.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"two samples of one length are needed, not of shapes {first.shape} and {second.shape}")
    n = len(first)
    reason = _undefined(first, second)
    if reason:
        return Estimate(math.nan, math.nan, math.nan, n, reason)
    rho = float(stats.spearmanr(first, second).statistic)
    drawn = rng.integers(0, n, size=(n_resamples, n))
    resampled = _row_correlations(stats.rankdata(first[drawn], axis=1), stats.rankdata(second[drawn], axis=1))
    defined = resampled[np.isfinite(resampled)]
    if len(defined) < _DEFINED_SHARE * n_resamples:
        lost = n_resamples - len(defined)
        return Estimate(
            rho, math.nan, math.nan, n, f"no interval: rho is undefined in {lost} of {n_resamples} resamples"
        )
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(rho, float(low), float(high), n, "")


def _undefined(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Why rho is undefined; empty where it is defined."""
    if len(x) < 3:
        return f"rho needs at least 3 pairs, there are {len(x)}"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return "rho needs finite values"
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "rho is undefined: all values of one side are equal"
    return ""


def _row_correlations(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's r of each row of `x` (resamples by n) with the same row of `y`; NaN where a row is constant."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    # Ranks are multiples of 1/2, so a constant row centres to exactly 0 and nothing else comes near it.
    product = (x * y).sum(axis=1)
    correlations = np.full(len(scale), np.nan)
    np.divide(product, scale, out=correlations, where=scale > 1e-9)
    return correlations
