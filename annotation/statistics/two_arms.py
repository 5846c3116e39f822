"""How two groups differ to which chance has assigned: the difference of their means, within strata."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.records import Estimate
from annotation.statistics.agreement import undefined
from annotation.statistics.intervals import Floats, quantile

LEAST = 2  # of each group in a stratum: with fewer there is no variance


@dataclass(frozen=True)
class Arms:
    """The difference of two groups, and both means with the same weights: their difference is the difference."""

    difference: Estimate  #: first minus second
    first: float
    second: float
    n_first: int  #: values that count
    n_second: int
    left_out: int  #: values of strata in which a group has fewer than two


def two_arms(values: Floats, first: NDArray[np.bool_], strata: NDArray[np.int64]) -> Arms:
    """The difference of two groups' means within strata, with its 95% interval.

    Each stratum weighs as many values as it has: D = sum of w_k (m1_k - m0_k), its variance the sum of w_k^2
    (s1_k^2 / n1_k + s0_k^2 / n0_k), and the interval is Student's t with the degrees of freedom of Satterthwaite
    (Welch 1947, Biometrika 34, 28-35). With one stratum it is Welch's. NaN with a reason where no stratum has two of
    each, or nothing varies.
    """
    parts, left_out = [], 0
    for stratum in np.unique(strata):
        own = values[strata == stratum]
        arm = first[strata == stratum]
        one, other = own[arm], own[~arm]
        if min(len(one), len(other)) < LEAST:
            left_out += len(own)
        else:
            errors = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
            parts.append((len(own), one.mean(), other.mean(), *errors, len(one), len(other)))
    if not parts:
        none = undefined(f"no stratum has {LEAST} of each group")
        return Arms(none, math.nan, math.nan, 0, 0, left_out)
    n, means_1, means_0, error_1, error_0, n_1, n_0 = np.array(parts, np.float64).T
    weights = n / n.sum()
    mean_1, mean_0 = float(weights @ means_1), float(weights @ means_0)
    variance = float(weights**2 @ (error_1 + error_0))
    found = Estimate(value=mean_1 - mean_0, low=math.nan, high=math.nan, reason="nothing varies within the groups")
    if variance > 0:
        freedom = variance**2 / float(weights**4 @ (error_1**2 / (n_1 - 1) + error_0**2 / (n_0 - 1)))
        reach = float(quantile(np.array([freedom]))[0]) * math.sqrt(variance)
        found = Estimate(value=found.value, low=found.value - reach, high=found.value + reach)
    return Arms(found, mean_1, mean_0, int(n_1.sum()), int(n_0.sum()), left_out)
