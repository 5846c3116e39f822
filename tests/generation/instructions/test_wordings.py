"""Clusters of nearly equal wordings."""

from __future__ import annotations

from generation.instructions.wordings import distances, stand_ins


def test_distances_are_edits_over_the_longer_length() -> None:
    apart = distances(["abcd", "abce", "ab"])
    assert apart.tolist() == [[0, 0.25, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]  # 1 of 4; 2 of 4


def test_the_medoid_stands_for_its_cluster_and_what_is_shared_stays() -> None:
    texts = ["find the answer to it", "find the answers to it", "find the answers to i", "sort this"]
    # distances of the first three: 1/22, 1/21 and 2/22 of their characters; the second is nearest to both others
    assert stand_ins(texts, 0.1) == [1, 1, 1, 3]
    assert stand_ins(texts, 0.1, stays=1) == [0, 0, 0, 3]
    assert stand_ins(texts, 0.0) == [0, 1, 2, 3] and stand_ins(["a", "a"], 0.0) == [0, 0] and not stand_ins([], 0.1)
