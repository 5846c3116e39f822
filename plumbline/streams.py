"""Random numbers for resampling: each result has its own, which are the same whatever other results stand beside it."""

from __future__ import annotations

import numpy as np

from plumbline.identity import identity


def stream(seed: int, *shown: str) -> np.random.Generator:
    """The random numbers of one result, by the study's seed and the names of what the result shows."""
    return np.random.default_rng([seed, int(identity(*shown), 16)])
