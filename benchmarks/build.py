"""How long a smaller benchmark takes to choose."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.registry import Measurement, benchmark
from evaluation.build.backward import backward
from evaluation.build.coverage import Coverage

MODELS, TASKS, ABILITIES = 457, 131, 6


@benchmark
def backward_seconds() -> Iterator[Measurement]:
    """Seconds for MMTEB's whole trace on one core: 457 models and 131 tasks, as many as its public results have."""
    rng = np.random.default_rng(1337)
    abilities = rng.normal(size=(MODELS, ABILITIES)) @ rng.normal(size=(ABILITIES, TASKS))
    scores = abilities + 0.5 * rng.normal(size=(MODELS, TASKS))
    free = Coverage((), np.zeros((0, TASKS), np.bool_), np.zeros(TASKS, np.bool_), np.ones(TASKS))
    start = time.perf_counter()
    trace = backward(scores, free)
    seconds = time.perf_counter() - start
    if len(trace) != TASKS - 2:
        raise RuntimeError(f"{len(trace)} steps: the trace is not whole")
    yield Measurement("benchmarks.backward_seconds", seconds, "s", at_most=60)
