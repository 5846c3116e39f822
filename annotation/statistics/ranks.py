"""Ranks of many samples at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


def average_ranks(rows: Floats) -> Floats:
    """The ranks of the values of each row, from 1; equal ones share the mean of theirs.

    `scipy.stats.rankdata` does the same; who looks at a page of correlations need not wait for its import.
    """
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    place = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    edge = np.ones((len(rows), 1), dtype=bool)
    differs = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(np.hstack([edge, differs]), place, 0), axis=1)
    last = np.where(np.hstack([differs, edge]), place, rows.shape[1])[:, ::-1]
    last = np.minimum.accumulate(last, axis=1)[:, ::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def ranks_of_drawn(values: Floats) -> Callable[[Places], Floats]:
    """What gives `average_ranks(values[drawn])` of resamples, which are rows of places in `values`.

    The values are sorted once. In a resample it is enough to count how often each was drawn.
    """
    distinct, codes = np.unique(values, return_inverse=True)

    def ranks(drawn: Places) -> Floats:
        found = codes[drawn]
        counts = np.stack([np.bincount(row, minlength=len(distinct)) for row in found])
        return np.take_along_axis(counts.cumsum(axis=1) - (counts - 1) / 2, found, axis=1)

    return ranks
