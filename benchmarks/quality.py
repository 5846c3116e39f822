"""How long the checks of a task take."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.registry import Measurement, benchmark
from evaluation.benchmarks.checks import check
from evaluation.benchmarks.contents import CheckedTask
from generation.datasets.local import TableDataset

TEXTS, WORDS = 100_000, 20


@benchmark
def check_seconds() -> Iterator[Measurement]:
    """Seconds for all checks of the texts and gold of a task of 50,000 pairs, 100,000 texts."""
    rng = np.random.default_rng(1337)
    words = np.array([f"word{number}" for number in range(20_000)])
    sides = [[" ".join(row) for row in words[rng.integers(0, len(words), (TEXTS // 2, WORDS))]] for _ in range(2)]
    gold = rng.uniform(0, 5, TEXTS // 2).round(1)
    frame = pd.DataFrame({"sentence1": sides[0], "sentence2": sides[1], "score": gold})
    pairs = TableDataset("pairs", "sts", "en", "1", {"test": frame})
    start = time.perf_counter()
    (findings,) = check([CheckedTask("pairs", pairs)]).values()
    seconds = time.perf_counter() - start
    if len(findings) < 5:
        raise RuntimeError(f"not every check was made: {len(findings)} findings")
    yield Measurement("benchmarks.check_seconds", seconds, "s", at_most=30)
