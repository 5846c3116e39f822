"""What models take on a GPU: against sentence-transformers called directly, in half the bits, and one after the other.

Skipped where there is no GPU. The model is the demo's; PLUMBLINE_GPU_MODEL names another one, of the hub or a folder.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.encoding import has_model
from benchmarks.evaluation_data import MODEL, made_study, made_words
from benchmarks.registry import Measurement, benchmark
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.tasks import scoring
from generation.datasets.local import TableDataset
from plumbline.study import Study

OTHER = os.environ.get("PLUMBLINE_GPU_MODEL", "")
TEXTS, WORDS, PAIRS, BATCH = 50_000, (3, 60), 2_000, 128
ROUNDS = 4  # of three models each, after the first three


@benchmark
def encoding() -> Iterator[Measurement]:
    """Texts a second of a run's encoder, which keeps them on disk, as a share of the model's alone; and memory."""
    if not _has_gpu("gpu.encoding"):
        return
    import torch  # noqa: PLC0415

    share, texts = share_of_direct(TEXTS)
    print(f"on {torch.cuda.get_device_name()}, torch {torch.__version__}", file=sys.stderr)
    yield Measurement("gpu.encoding_share_of_direct", share, "ratio", at_least=0.95)
    yield Measurement("gpu.texts_a_second", texts, "texts/s")
    yield Measurement("gpu.memory_mb", torch.cuda.max_memory_reserved() / 2**20, "MB")


@benchmark
def precisions() -> Iterator[Measurement]:
    """How far Spearman's rho of made-up pairs lies from that in float32, in points of 100; what models leave behind."""
    if not _has_gpu("gpu.precisions"):
        return

    scores, left = scores_in_turn(PAIRS)
    for precision in ("float16", "bfloat16"):
        difference = 100 * abs(scores[precision] - scores["float32"])
        yield Measurement(f"gpu.score_difference_{precision}", difference, "points")
    *_, last = (scores_in_turn(100)[1] for _ in range(ROUNDS))
    yield Measurement("gpu.memory_left_mb", last - left, "MB", at_most=16)


def share_of_direct(number: int) -> tuple[float, float]:
    """Texts a second through an encoder as a share of the model's own, and that number; the model is warm."""
    draw = random.Random(1337)  # noqa: S311 (texts, no secrets)
    texts = [f"{made_words(draw, draw.randint(*WORDS))} {n}" for n in range(number)]
    with tempfile.TemporaryDirectory() as folder:
        loaded = ModelHost.of(study := _study(Path(folder))).load(study.evaluation.models[0])
        direct: Any = loaded.model._model  # type: ignore[attr-defined]  # sentence-transformers' own
        options = {"batch_size": BATCH, "show_progress_bar": False, "convert_to_numpy": True}
        direct.encode(texts[: 8 * BATCH], **options)
        start = time.perf_counter()
        direct.encode(texts, **options)
        alone = time.perf_counter() - start
        start = time.perf_counter()
        loaded.embed(texts)
        seconds = time.perf_counter() - start
        loaded.close()
    return alone / seconds, number / seconds


def scores_in_turn(pairs: int) -> tuple[dict[str, float], float]:
    """Scores by precision, each model loaded after the one before was closed; MB that a GPU has reserved at the end."""
    import torch  # noqa: PLC0415

    draw = random.Random(7)  # noqa: S311 (texts, no secrets)
    rows = []
    for _ in range(pairs):
        words, kept = made_words(draw, 12).split(), draw.randint(0, 12)
        other = [*words[:kept], *made_words(draw, 12).split()[kept:]]
        rows.append({"sentence1": " ".join(words), "sentence2": " ".join(other), "score": kept / 12})
    dataset = TableDataset("pairs", "sts", "en", "1", {"test": pd.DataFrame(rows)})
    found = {}
    for precision in ("float32", "float16", "bfloat16"):
        with tempfile.TemporaryDirectory() as folder:
            study = _study(Path(folder), precision)
            loaded: Encoder = ModelHost.of(study).load(study.evaluation.models[0])
            found[precision] = scoring.evaluate(dataset, loaded, "paper", BATCH)
            loaded.close()
    return found, torch.cuda.memory_reserved() / 2**20


def _study(folder: Path, precision: str = "float32") -> Study:
    study = made_study(
        folder, [{"name": "none", "task": "sts", "path": "none.csv", "language": "en"}], ["paraphrasing"], [1]
    )
    own = {"name": OTHER, **({"path": OTHER} if Path(OTHER).is_dir() else {})} if OTHER else MODEL
    evaluation = type(study.evaluation).model_validate({"models": [own], "precision": precision, "batch_size": BATCH})
    return study.model_copy(update={"evaluation": evaluation})


def _has_gpu(name: str) -> bool:
    import torch  # noqa: PLC0415 (takes seconds)

    if not torch.cuda.is_available():
        print(f"skipped: {name} needs a GPU that torch sees", file=sys.stderr)
        return False
    return bool(OTHER) or has_model(name)
