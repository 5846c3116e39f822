"""How far embeddings are from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from plumbline.frames import same_index
from plumbline.statistics.estimates import Floats


def drift(originals: ArrayLike, transformed: ArrayLike) -> Floats:
    """1 - cos of each original's embedding and its transformation's: 0 for one direction, 2 for the opposite one.

    Both are texts by dimensions, a row each, in the same order; the result has a number for each row. Raises ValueError
    where they are not of one such shape, are frames with different indexes, hold what is no finite number, or a row has
    length 0 and so no direction.

    Source: HTEB, Figure 3.

    >>> from evaluation import drift
    >>> drift([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    array([0., 1., 2.])
    """
    same_index(originals, transformed, "tables")
    first, second = (np.asarray(embeddings, dtype=np.float64) for embeddings in (originals, transformed))
    if first.shape != second.shape or first.ndim != 2:
        raise ValueError(f"two tables of one shape are needed, texts by dimensions, not {first.shape}, {second.shape}")
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    if not np.isfinite(lengths).all():
        raise ValueError(f"the embeddings of row {int(np.isfinite(lengths).argmin())} are not finite")
    if (lengths == 0).any():
        raise ValueError(f"an embedding of row {int(lengths.argmin())} has length 0, so its cosine is undefined")
    # Rounding can leave the cosine of equal texts a hair above 1.
    distances: Floats = 1.0 - np.clip((first * second).sum(axis=1) / lengths, -1.0, 1.0)
    return distances
