"""Random numbers for resampling: each result has its own, which are the same whatever other results stand beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from plumbline.identity import identity

AT_ONCE = 2**22  # numbers drawn at a time


def stream(seed: int, *shown: str) -> np.random.Generator:
    """The random numbers of one result, by the study's seed and the names of what the result shows."""
    return np.random.default_rng([seed, int(identity(*shown), 16)])


def resamples(rng: np.random.Generator, n: int, n_resamples: int) -> Iterator[NDArray[np.int64]]:
    """Rows of places of `n` values, some at a time: all at once of 50,000 values are gigabytes."""
    rows = max(1, AT_ONCE // n)
    for start in range(0, n_resamples, rows):
        yield rng.integers(0, n, size=(min(rows, n_resamples - start), n))
