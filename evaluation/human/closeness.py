"""How near each answer is to what is right, item by item: to find items that people and models see differently.

A score is a sum over items only where it is a mean of them. Elsewhere each item says how near the answer's rank is to
the right one's, or, of clusters, of how many other items it is rightly said whether they lie with it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotation.statistics.paired import Floats
from annotation.statistics.ranks import average_ranks
from evaluation.human.answers import Given, Task, read, right_numbers


def closeness(task: Task, given: Given) -> Floats:
    """For each item of a task from 0 to 1 how near a scorer's answer is to the right one; NaN where there is none.

    Of correlations within items (summaries) rho itself, from -1.
    """
    metric = task.metrics[0]
    made = read(task, given, metric)
    if made is None:
        return np.full(len(task.items), math.nan)
    if metric.of_item is not None:
        return made
    gold = right_numbers(task, metric)
    known = np.isfinite(gold) & np.isfinite(made)
    found = np.full(len(gold), math.nan)
    if known.sum() > 1:
        nearness = _same_cluster if task.asked == "cluster" else _same_rank
        found[known] = nearness(gold[known], made[known])
    return found


def _same_rank(gold: Floats, made: Floats) -> Floats:
    first, second = (average_ranks(side[None])[0] for side in (gold, made))
    near: Floats = 1 - np.abs(first - second) / (len(gold) - 1)
    return near


def _same_cluster(gold: NDArray[np.float64], made: NDArray[np.float64]) -> Floats:
    right = (gold[:, None] == gold) == (made[:, None] == made)
    share: Floats = (right.sum(axis=1) - 1) / (len(gold) - 1)
    return share
