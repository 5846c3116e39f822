"""Wordings that are nearly the same: clusters by average linkage of normalised Levenshtein distances.

Source: the revision of arXiv 2605.22544 (threshold .1, the medoid of each cluster kept). The linkage is computed here
and not by scipy, with which the tests compare it: on a GPU host the extra `generation` is all there is, and has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein


def distances(texts: Sequence[str]) -> NDArray[np.float64]:
    """Normalised Levenshtein distance of each with each: edits over the length of the longer one, from 0 to 1."""
    made = np.zeros((len(texts), len(texts)))
    for row, one in enumerate(texts):
        for column in range(row):
            made[row, column] = made[column, row] = Levenshtein.normalized_distance(one, texts[column])
    return made


def clusters(apart: NDArray[np.float64], near: float) -> list[list[int]]:
    """Clusters of average linkage (UPGMA) whose members merged at a distance of at most `near`; each in its order.

    `apart` has the distance of each with each. Of equally near clusters the first two merge.

    >>> clusters(distances(["Find texts", "Find text", "Sort this"]), 0.1)
    [[0, 1], [2]]
    """
    between, members = apart.astype(np.float64), [[place] for place in range(len(apart))]
    np.fill_diagonal(between, np.inf)
    while len(members) > 1:
        first, second = sorted(divmod(int(between.argmin()), len(members)))
        if between[first, second] > near:
            break
        sizes = len(members[first]), len(members[second])
        merged = (sizes[0] * between[first] + sizes[1] * between[second]) / sum(sizes)
        between[first], between[:, first] = merged, merged
        between[first, first] = np.inf
        between = np.delete(np.delete(between, second, axis=0), second, axis=1)
        members[first] = sorted(members[first] + members.pop(second))
    return members


def stand_ins(texts: Sequence[str], near: float, stays: int = 0) -> list[int]:
    """For each text the place of the one that stands for it: its own where it is kept.

    A cluster's medoid is kept, the one with the least sum of distances to the others, the first of several. The first
    `stays` texts are kept in any case: where a cluster has some of them, the nearest stands for each of the others.
    """
    apart, stand = distances(texts), list(range(len(texts)))
    for members in clusters(apart, near):
        fixed = [place for place in members if place < stays]
        within = apart[np.ix_(members, members)].sum(axis=1)
        kept = fixed or [members[int(within.argmin())]]
        for place in members:
            if place not in kept:
                stand[place] = kept[int(apart[place, kept].argmin())]
    return stand
