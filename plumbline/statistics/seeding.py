"""Random numbers for resampling: each result has its own, which are the same whatever other results stand beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from plumbline.identity import identity

AT_ONCE = 2**22  # numbers drawn at a time


def stream(seed: int, *names: str) -> np.random.Generator:
    """The random numbers of one result.

    Args:
        seed: the study's seed.
        names: what the result shows; other names have other numbers.

    Returns:
        A generator that starts anew at each call.

    >>> from plumbline.statistics.seeding import stream
    >>> bool(stream(1337, "tau").integers(100) == stream(1337, "tau").integers(100))
    True
    """
    return np.random.default_rng([seed, int(identity(*names), 16)])


def draw_indices(
    rng: np.random.Generator, n: int, n_resamples: int, at_once: int = AT_ONCE
) -> Iterator[NDArray[np.int64]]:
    """Resamples of n units as rows of their indices, some rows at a time: all of 50,000 units are gigabytes.

    Args:
        rng: the generator; the numbers do not depend on `at_once`.
        n: the units; each is drawn with the same chance.
        n_resamples: the resamples.
        at_once: the numbers in memory at a time.

    Yields:
        Arrays of resamples by n, with numbers from 0 to n - 1.

    >>> import numpy as np
    >>> [rows.shape for rows in draw_indices(np.random.default_rng(1), 10, 5, at_once=30)]
    [(3, 10), (2, 10)]
    """
    rows = max(1, at_once // n)
    for start in range(0, n_resamples, rows):
        yield rng.integers(0, n, size=(min(rows, n_resamples - start), n))


def draw_counts(
    rng: np.random.Generator,
    n: int,
    n_resamples: int,
    shares: NDArray[np.float64] | None = None,
    at_once: int = AT_ONCE,
) -> Iterator[NDArray[np.int64]]:
    """Resamples of n units as rows of how often each kind of unit was drawn (multinomial), some rows at a time.

    Args:
        rng: the generator; the numbers do not depend on `at_once`.
        n: the units that are drawn.
        n_resamples: the resamples.
        shares: the chance of each kind of unit; without them there are n kinds, all with the same chance.
        at_once: the numbers in memory at a time.

    Yields:
        Arrays of resamples by kinds, each row with the sum n.

    >>> import numpy as np
    >>> [int(counts.sum()) for counts in draw_counts(np.random.default_rng(1), 10, 4)]
    [40]
    """
    shares = np.full(n, 1 / n) if shares is None else shares
    rows = max(1, at_once // len(shares))
    for start in range(0, n_resamples, rows):
        yield rng.multinomial(n, shares, size=min(rows, n_resamples - start))


def counts_of(drawn: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """How often each of n units was drawn.

    Args:
        drawn: resamples by draws: numbers from 0 to n - 1.
        n: the units.

    Returns:
        Resamples by n.

    >>> import numpy as np
    >>> counts_of(np.array([[0, 2, 2], [1, 1, 1]]), 3)
    array([[1., 0., 2.],
           [0., 3., 0.]])
    """
    cells = (drawn + n * np.arange(len(drawn))[:, None]).ravel()
    return np.bincount(cells, minlength=n * len(drawn)).reshape(len(drawn), n).astype(np.float64)
