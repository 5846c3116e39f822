"""How long a smaller benchmark takes to choose, and a board its intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.registry import Measurement, benchmark
from evaluation.benchmarks.selection_methods import Coverage, backward
from plumbline.statistics.estimates import Floats
from plumbline.statistics.rankings import rank_intervals

MODELS, TASKS, ABILITIES = 457, 131, 6


@benchmark
def backward_seconds() -> Iterator[Measurement]:
    """Seconds for MMTEB's whole trace on one core: 457 models and 131 tasks, as many as its public results have."""
    scores = _scores()
    free = Coverage((), np.zeros((0, TASKS), np.bool_), np.zeros(TASKS, np.bool_), np.ones(TASKS))
    start = time.perf_counter()
    trace = backward(scores, free, rho=-1, mse=math.inf)
    seconds = time.perf_counter() - start
    if len(trace) != TASKS - 2:
        raise RuntimeError(f"{len(trace)} steps: the trace is not whole")
    yield Measurement("benchmarks.backward_seconds", seconds, "s", at_most=60)


@benchmark
def rank_intervals_seconds() -> Iterator[Measurement]:
    """Seconds for counts, means and ranks of as many models with their intervals, tasks drawn anew 10,000 times."""
    scores = pd.DataFrame(_scores())
    start = time.perf_counter()
    found = rank_intervals(scores, n_resamples=10_000, rng=np.random.default_rng(1337))
    seconds = time.perf_counter() - start
    if found["rank_low"].isna().any():
        raise RuntimeError("a model has no interval: the board is not whole")
    yield Measurement("benchmarks.rank_intervals_seconds", seconds, "s", at_most=5)


def _scores() -> Floats:
    """Made scores of a few abilities, models by tasks."""
    rng = np.random.default_rng(1337)
    abilities = rng.normal(size=(MODELS, ABILITIES)) @ rng.normal(size=(ABILITIES, TASKS))
    scores: Floats = abilities + 0.5 * rng.normal(size=(MODELS, TASKS))
    return scores
