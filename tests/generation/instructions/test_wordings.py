"""Clusters of nearly equal wordings, against scipy's linkage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from generation.instructions.wordings import clusters, distances, stand_ins


def test_distances_are_edits_over_the_longer_length() -> None:
    apart = distances(["abcd", "abce", "ab"])
    assert apart.tolist() == [[0, 0.25, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]  # 1 of 4; 2 of 4


@pytest.mark.parametrize("near", [0.05, 0.1, 0.3, 0.6])
def test_clusters_are_those_of_average_linkage_in_scipy(near: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        words = ["".join(rng.choice(list("abc"), size=rng.integers(4, 9))) for _ in range(25)]
        apart = distances(words) + np.triu(rng.uniform(0, 1e-6, (25, 25)), 1)  # no two pairs are equally near
        apart = np.triu(apart, 1) + np.triu(apart, 1).T
        labels = fcluster(linkage(squareform(apart), "average"), near, "distance")
        theirs = {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels)}
        assert {frozenset(one) for one in clusters(apart, near)} == theirs


def test_the_medoid_stands_for_its_cluster_and_what_is_shared_stays() -> None:
    texts = ["find the answer to it", "find the answers to it", "find the answers to i", "sort this"]
    # distances of the first three: 1/22, 1/21 and 2/22 of their characters; the second is nearest to both others
    assert stand_ins(texts, 0.1) == [1, 1, 1, 3]
    assert stand_ins(texts, 0.1, stays=1) == [0, 0, 0, 3]
    assert stand_ins(texts, 0.0) == [0, 1, 2, 3] and stand_ins(["a", "a"], 0.0) == [0, 0] and not stand_ins([], 0.1)
