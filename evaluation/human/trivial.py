"""Scores that need no reading: what is left of a score when these are taken off is what a scorer knew."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evaluation.human.answers import Given, Task
from evaluation.human.metrics import OF_CANDIDATES, OF_LABELS


def trivial(task: Task, rng: np.random.Generator) -> list[Given]:
    """Answers without reading, by the way of asking.

    Labels: any of the labels at random, and the most frequent one (which gold tells). Candidates, and pairs that are
    alike or not: all tied, which is random order. Clusters: one cluster an item, which the V-measure rewards, and as
    many clusters as there are, at random. None of scores, of which random ones have a rho of 0.
    """
    right = [one for one in task.right if one is not None]
    n = len(task.items)
    if not right:
        return []
    if task.asked in OF_LABELS:
        votes = Counter(right)
        labels = tuple(sorted(votes))
        frequent = min(labels, key=lambda label: (-votes[label], label))
        made = [Given("most frequent label", "trivial", ((frequent,),) * n)]
        return [Given("random label", "trivial", (labels,) * n), *made] if task.asked == "label" else made
    if task.asked in OF_CANDIDATES:
        flat = tuple(None if one is None else np.zeros(len(one)) for one in task.right)
        return [Given("random order", "trivial", flat)]
    if task.asked == "same":
        return [Given("random order", "trivial", (0.0,) * n)]
    if task.asked == "cluster":
        drawn = tuple(str(one) for one in rng.integers(0, len(set(right)), n))
        return [Given("one cluster an item", "trivial", task.items), Given("random clusters", "trivial", drawn)]
    return []
