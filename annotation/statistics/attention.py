"""Whether raters read what they rate: controls that they miss, and whether they tell pairs apart beyond chance.

Simulated error rates stand in docs/method/verdicts.md (`tests/annotation/verdicts/test_held.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.agreement import Answers
from plumbline.statistics.estimates import Floats

LEVEL = 0.05  # of each test
VARIED = 0.2  # of all twos of ratings: how many must be half of the scale apart for agreement to be looked at
_NOTHING = 1e-9  # a sum of squares below is one of rounding


def misses_too_many(controls: Mapping[str, tuple[int, int]], attentive: float) -> bool:
    """Whether controls are missed more often than an attentive rater misses them, by kind: (missed, asked).

    One-sided binomial tests against the rate `attentive`, all kinds together at 5%, and each of several at 5% over
    their number: whoever always gives the best point misses one kind alone.
    """
    offered = [kind for kind in controls.values() if kind[1]]
    whole = sum(missed for missed, _ in offered), sum(shown for _, shown in offered)
    each = offered if len(offered) > 1 else []
    return _probability(*whole, attentive) <= LEVEL or any(
        _probability(*kind, attentive) <= LEVEL / len(offered) for kind in each
    )


def _probability(missed: int, n: int, rate: float) -> float:
    """P of so many misses or more at a rate."""
    from scipy.special import bdtrc  # noqa: PLC0415 (takes a while)

    return float(bdtrc(missed - 1, n, rate)) if missed else 1.0


def vary(answers: Answers) -> bool:
    """Whether ratings vary so much that agreement can show: of all twos 20% are half of the scale apart."""
    values = np.sort(answers.value)
    half = (answers.scale[-1] - answers.scale[0]) / 2
    apart = 2 * int(np.searchsorted(values, values - half, side="right").sum())
    return apart >= VARIED * max(len(values), 1) ** 2 and bool(len(values))


def telling_apart(answers: Answers) -> float:
    """P that raters who tell no pairs apart would differ as little about each pair (F test); NaN if it cannot be told.

    Each rating counts from its rater's mean, so that neither severity nor whose turn a pair was plays a part. With n
    pairs of two ratings or more, N ratings of R raters, and C groups of raters who share no pair,

        F = (between pairs / (n - C)) / (within pairs / (N - n - R + C)).

    It asks what alpha above 0 asks, without resampling.
    """
    from scipy.special import fdtrc  # noqa: PLC0415 (takes a while)

    several = np.bincount(answers.pair)[answers.pair] >= 2
    pair, rater = (pd.factorize(column[several])[0] for column in (answers.pair, answers.rater))
    value = answers.value[several]
    n, raters = int(pair.max(initial=-1)) + 1, int(rater.max(initial=-1)) + 1
    groups = _groups(pair, rater, n, raters)
    between_df, within_df = n - groups, len(value) - n - raters + groups
    if between_df < 1 or within_df < 1:
        return math.nan
    residual = value - _means(value, rater)[rater]
    middle = _means(residual, pair)[pair]
    between, within = float((middle**2).sum()), float(((residual - middle) ** 2).sum())
    if within < _NOTHING:
        return 0.0 if between > _NOTHING else 1.0
    return float(fdtrc(between_df, within_df, between / between_df / (within / within_df)))


def _means(values: Floats, by: NDArray[np.int64]) -> Floats:
    means: Floats = np.bincount(by, values) / np.bincount(by)
    return means


def _groups(pair: NDArray[np.int64], rater: NDArray[np.int64], pairs: int, raters: int) -> int:
    """How many groups of raters share no pair with each other."""
    from scipy.sparse import coo_array  # noqa: PLC0415 (takes a while)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    size = pairs + raters
    return int(connected_components(coo_array((np.ones(len(pair)), (pair, rater + pairs)), (size, size)), False)[0])
