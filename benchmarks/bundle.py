"""What it takes to write a bundle, to check one, and to score on it instead of on the study.

Each run is a process of its own (`python -m benchmarks.bundle KIND FOLDER TEXTS`), so that peaks of memory are its.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import yaml

from annotation.campaign.records import CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from benchmarks.evaluation_data import MODEL, SEEDS, made_words, write_shuffled
from benchmarks.memory import forget_peak, memory
from benchmarks.registry import Measurement, benchmark
from evaluation.bundle.check import open_checked
from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle
from evaluation.bundle.export import export
from evaluation.scoring import evaluate
from generation.datasets.loading import iter_datasets
from plumbline.records import Pair, Rating, Text
from plumbline.store import write_table
from plumbline.study import ROOT, Study, load_study
from plumbline.study.transformations import EIGHT

TEXTS, SCORED = 200_000, 3_000
PAIRS, RATERS = 100, 3  # of each transformation: with two questions 4,800 ratings
FILE = "made.zip"


@benchmark
def large() -> Iterator[Measurement]:
    """200,000 texts x 8 transformations x 3 seeds with 4,800 ratings: write the bundle, then check it."""
    with tempfile.TemporaryDirectory() as folder:
        _, written, checked = (_run(kind, Path(folder), TEXTS) for kind in ("make", "export", "verify"))
    yield Measurement("bundle.export_seconds", written["seconds"], "s", at_most=60)
    yield Measurement("bundle.export_gigabytes", written["mb"] / 1000, "GB", at_most=1)
    yield Measurement("bundle.verify_seconds", checked["seconds"], "s", at_most=20)
    yield Measurement("bundle.verify_gigabytes", checked["mb"] / 1000, "GB", at_most=1)
    yield Measurement("bundle.megabytes", written["size"], "MB")


@benchmark
def overhead() -> Iterator[Measurement]:
    """3,000 texts x 3 seeds by MiniLM: the bundle, opened, checked and scored, against `evaluate`."""
    with tempfile.TemporaryDirectory() as folder:
        _, _, study, bundle = (_run(kind, Path(folder), SCORED) for kind in ("make", "export", "study", "bundle"))
    yield Measurement("bundle.evaluate_overhead", bundle["seconds"] / study["seconds"], "ratio", at_most=1.05)


def _run(kind: str, folder: Path, texts: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.bundle", kind, str(folder), str(texts)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def tell(kind: str, folder: Path, texts: int) -> dict[str, float]:
    """Do one thing and say what it took: make the study, export it, check the bundle, score either."""
    if kind == "make":
        made_study(folder, texts)
        return {}
    study = load_study(folder / "study.yaml", folder / "exports")
    if kind in ("study", "bundle"):
        import mteb  # noqa: F401, PLC0415 (seconds that every process takes once)
    forget_peak()
    start = time.perf_counter()
    if kind == "export":
        export(study, folder / FILE)
    elif kind == "study":
        evaluate(study)
    else:
        bundle = open_checked(folder / FILE)
        if kind == "bundle":
            evaluate_bundle(bundle, [MODEL], folder / "others", EvaluationRequest(simulated=True))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "mb": memory("VmHWM"), "size": (folder / FILE).stat().st_size / 1e6}


def made_study(folder: Path, texts: int) -> Study:
    """A study of so many texts with outputs, ratings that accept all of them, and verdicts."""
    draw = random.Random(1337)  # noqa: S311 (texts, no secrets)
    rows = [{"text": f"{made_words(draw, 12)} {number}", "label": f"l{number % 9}"} for number in range(texts)]
    pd.DataFrame(rows).to_csv(folder / "texts.csv", index=False)
    said = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": list(EIGHT) if texts >= 10_000 else ["paraphrasing"],
        "seeds": list(SEEDS),
        "generator": {"kind": "recorded", "model": "shuffled", "path": "none"},
        "sample": {"pairs": PAIRS},
        "evaluation": {"models": [MODEL]},
        "bundle": {"licences": {"texts": "cc0-1.0"}},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    study = load_study(folder / "study.yaml", folder / "exports")
    write_shuffled(study)
    texts_of_all = (text for dataset in iter_datasets(study) for text in dataset.texts())
    write_table(study.folder / "texts.parquet", texts_of_all, Text)
    frame = pd.DataFrame([one.model_dump() for one in _ratings(draw_sample(study))])
    write_ratings(CampaignRecords(study), frame)
    accept(study)
    return study


def _ratings(pairs: Sequence[Pair]) -> Iterator[Rating]:
    draw = random.Random(7)  # noqa: S311
    for pair in pairs:
        for rater in range(RATERS):
            for question in ("quality", "fluency"):
                yield Rating(
                    pair_id=pair.pair_id,
                    transformation=pair.transformation,
                    language=pair.language,
                    rater_id=f"simulated-{rater:08x}",
                    question=question,
                    value=draw.choice((3, 4, 4, 5)),
                    status="submitted",
                    submitted_at=datetime(2026, 1, 2, tzinfo=UTC),
                    source="simulated",
                    simulated=True,
                )


if __name__ == "__main__":
    print(json.dumps(tell(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
