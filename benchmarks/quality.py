"""How long the checks of a task take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.registry import Measurement, benchmark
from evaluation.benchmarks.checks import check
from evaluation.benchmarks.contents import CheckedTask
from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder
from evaluation.tasks.item_scores import difference, items_of
from generation.datasets.local import TableDataset

TEXTS, WORDS = 100_000, 20


@benchmark
def check_seconds() -> Iterator[Measurement]:
    """Seconds for all checks of a task of 50,000 pairs, 100,000 texts, without encoding.

    Two models' difference with its interval over items is among them, by embeddings that are there before.
    """
    rng = np.random.default_rng(1337)
    words = np.array([f"word{number}" for number in range(20_000)])
    sides = [[" ".join(row) for row in words[rng.integers(0, len(words), (TEXTS // 2, WORDS))]] for _ in range(2)]
    gold = rng.uniform(0, 5, TEXTS // 2).round(1)
    frame = pd.DataFrame({"sentence1": sides[0], "sentence2": sides[1], "score": gold})
    pairs = TableDataset("pairs", "sts", "en", "1", {"test": frame})
    models = [Encoder(_Noise(seed), f"noise {seed}", "1") for seed in (1, 2)]
    for model in models:
        items_of(pairs, model, "paper", 32)
        model.only_stored = True
    start = time.perf_counter()
    (checked,) = check([CheckedTask("pairs", pairs)])
    made = difference(*(items_of(pairs, model, "paper", 32) for model in models), rng=rng)
    seconds = time.perf_counter() - start
    if len(checked.findings) < 5 or made.reason:
        raise RuntimeError(f"not every check was made: {len(checked.findings)} findings; {made.reason}")
    yield Measurement("benchmarks.check_seconds", seconds, "s", at_most=30)


class _Noise:
    """A model that knows nothing of a text."""

    default_prompt = ""

    def __init__(self, seed: int) -> None:
        self.prompts: dict[str, str] = {}
        self._rng = np.random.default_rng(seed)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        return self._rng.normal(size=(len(texts), 384)).astype(np.float32)

    def routed(self) -> bool:
        return False

    def similarity(self, first: Any, second: Any) -> Any:
        raise NotImplementedError("pairs are compared row by row")

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim  # noqa: PLC0415 (takes seconds)

        return pairwise_cos_sim(first, second)
