"""What a study of millions of short texts takes: memory and processor time of generation and evaluation, and a rerun.

200,000 texts beside 20,000 by default, in some minutes; with PLUMBLINE_BENCH=full 2,000,000 beside 200,000, in about an
hour, and then 10 GB of disk. Generator and model are stubs within the process. Data sets have 100,000 texts each, at
most: one of them is what is in memory at a time. Each run is a process of its own (`python -m benchmarks.scale KIND
FOLDER TEXTS [TEXTS OF A SET]`; by hand, `2000000 2000000` is one large data set). Time is the processor's, which other
programs do not lengthen by what they take.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.evaluation_data import MODEL, SEEDS, made_words
from benchmarks.memory import forget_peak, memory
from benchmarks.registry import Measurement, benchmark
from evaluation.models.text_models import TextModel
from evaluation.sources import Folder
from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from plumbline.manifest import Manifest
from plumbline.records import Pair, TransformedText, arrow_schema
from plumbline.store import BATCH
from plumbline.study import ROOT, Study, file_hash, load_study
from plumbline.study.transformations import EIGHT

SIZES = (200_000, 2_000_000) if os.environ.get("PLUMBLINE_BENCH") == "full" else (20_000, 200_000)
PER_SET, WIDTH = 100_000, 16


@benchmark
def generation() -> Iterator[Measurement]:
    """2 variants of each text by a stub generator, 256 at a time."""
    yield from _growth("generation")


@benchmark
def evaluation() -> Iterator[Measurement]:
    """Scores of the originals and of 2 variants by a stub model, on data sets of the kind STS."""
    yield from _growth("evaluation")


@benchmark
def plan() -> Iterator[Measurement]:
    """Seconds until a run knows that nothing is left to do, for 24 variants of each text, after one that planned it."""
    with tempfile.TemporaryDirectory() as folder:
        told = _run("plan", Path(folder), 200_000)
    yield Measurement("scale.first_plan_seconds_200k", told["first"], "s")
    yield Measurement("scale.first_plan_mb_200k", told["mb"], "MB")
    yield Measurement("scale.plan_seconds_200k", told["seconds"], "s", at_most=10)


def _growth(kind: str) -> Iterator[Measurement]:
    found = []
    for texts in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            found.append(_run(kind, Path(folder), texts))
        print(kind, texts, found[-1], file=sys.stderr, flush=True)
    name = f"{SIZES[1] // 1_000_000}m" if SIZES[1] >= 1_000_000 else f"{SIZES[1] // 1000}k"
    for what, most in (("seconds", 1.1), ("rss_mb", 0.2)):
        exponent = math.log(found[1][what] / found[0][what]) / math.log(SIZES[1] / SIZES[0])
        yield Measurement(f"scale.{kind}_{what.partition('_')[0]}_exponent_{name}", exponent, "exponent", at_most=most)
    yield Measurement(f"scale.{kind}_rss_mb_{name}", found[1]["rss_mb"], "MB", at_most=1500)
    yield Measurement(f"scale.{kind}_cpu_seconds_{name}", found[1]["seconds"], "s")


def _run(kind: str, folder: Path, texts: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", kind, str(folder), str(texts)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _study(
    folder: Path, texts: int, transformations: Sequence[str], seeds: Sequence[int], per_set: int = PER_SET
) -> Study:
    """A study of pairs of short texts, no two equal."""
    draw, datasets = random.Random(1337), []  # noqa: S311 (texts, no secrets)
    for number, first in enumerate(range(0, texts, per_set)):
        rows = min(per_set, texts - first) // 2
        sides = [[f"{made_words(draw, 6)} {number} {row} {side}" for row in range(rows)] for side in "ab"]
        scores = [draw.random() for _ in range(rows)]
        table = pa.table({"sentence1": sides[0], "sentence2": sides[1], "score": scores})
        pq.write_table(table, folder / f"set{number}.parquet")
        datasets.append({"name": f"set{number}", "task": "sts", "path": f"set{number}.parquet", "language": "en"})
    study = {
        "name": "scale",
        "datasets": datasets,
        "transformations": list(transformations),
        "seeds": list(seeds),
        "generator": {"kind": "recorded", "model": "stub", "path": "none"},
        "evaluation": {"models": [MODEL]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return load_study(folder / "study.yaml", folder / "exports")


def _write_outputs(study: Study) -> None:
    """The tables that a generator would leave: a text's words backwards; one output of fifty failed."""
    plan, schema, writers = Plan(study), arrow_schema(TransformedText), dict[Any, pq.ParquetWriter]()
    for dataset in iter_datasets(study):
        texts = list(dataset.texts())
        for unit in ((name, seed) for name in study.transformations for seed in study.seeds):
            path = study.transformation_file(*unit)
            path.parent.mkdir(parents=True, exist_ok=True)
            if unit not in writers:
                writers[unit] = pq.ParquetWriter(path, schema, compression="zstd")
            for first in range(0, len(texts), BATCH):
                jobs = [plan.job(text, *unit) for text in texts[first : first + BATCH]]
                rows = [_row(plan, job, failed=place % 50 == 0) for place, job in enumerate(jobs)]
                writers[unit].write_table(pa.Table.from_pylist(rows, schema=schema))
    for unit, writer in writers.items():
        writer.close()
        file = study.transformation_file(*unit)
        with Manifest.of(study).changing() as manifest:
            manifest.setdefault("kept", {})[str(file.relative_to(study.folder))] = [file_hash(file)]
    Manifest.of(study).write_table("pairs.parquet", [], Pair)


def _row(plan: Plan, job: Job, *, failed: bool) -> dict[str, Any]:
    return {
        "key": job.key, "text_id": job.text_id, "text": job.text, "source_language": job.source_language,
        "transformation": job.transformation, "seed": job.seed, "language": job.language, "intermediate": None,
        "output": "" if failed else f"{job.seed} {' '.join(reversed(job.text.split()))}", "raw": None,
        "status": "failed" if failed else "ok", "reason": "empty" if failed else "", "flags": (), "first_flags": (),
        "attempts": 1, "model": "stub", "generator_hash": plan.generator_hash,
        "prompt_hash": plan.prompt_hashes[job.transformation], "finished_at": 0,
    }  # fmt: skip


def _measured(work: Callable[[], None]) -> dict[str, float]:
    forget_peak()
    start = time.process_time()
    work()
    return {"seconds": time.process_time() - start, "rss_mb": memory("VmHWM")}


def tell_generation(folder: Path, texts: int, per_set: int = PER_SET) -> dict[str, float]:
    """Generate 2 variants."""
    from generation import production  # noqa: PLC0415
    from generation.generators import GenerationOutcome  # noqa: PLC0415
    from plumbline.models.chat import Attempt  # noqa: PLC0415

    class Stub:
        concurrency = 256

        async def transform(self, job: Job, _: Attempt) -> GenerationOutcome:
            text = " ".join(reversed(job.text.split()))
            return GenerationOutcome(text, None, text, repeatable=False)

        async def close(self) -> None:
            """Nothing is held."""

    setattr(production, "make_generator", lambda *_, **__: Stub())  # noqa: B010 (what it imports is its own)
    study = _study(folder, texts, ["paraphrasing", "expansion"], [1337], per_set)
    counts: dict[str, int] = {}
    told = _measured(lambda: counts.update(production.generate(study)))
    if counts.get("ok") != 2 * texts:
        raise RuntimeError(f"{counts}: nothing was measured")
    return told


class _Model(TextModel):
    """Numbers of a hash of each text."""

    prompts: dict[str, str] = {}  # noqa: RUF012 (as the base has it)

    def embed(self, texts: Sequence[str], **_: Any) -> Any:
        hashes = b"".join(hashlib.blake2b(text.encode(), digest_size=2 * WIDTH).digest() for text in texts)
        return np.frombuffer(hashes, np.uint16).reshape(-1, WIDTH).astype(np.float32) - 2**15


def tell_evaluation(folder: Path, texts: int, per_set: int = PER_SET) -> dict[str, float]:
    """Score originals and 2 variants."""
    import mteb  # noqa: F401, PLC0415 (seconds that every process takes once)

    from evaluation.models.embeddings import EmbeddingStore  # noqa: PLC0415
    from evaluation.models.encoder import Encoder  # noqa: PLC0415
    from evaluation.scoring import evaluate  # noqa: PLC0415

    study = _study(folder, texts, ["paraphrasing", "expansion"], [1337], per_set)
    _write_outputs(study)
    encoder = Encoder(_Model(), MODEL["name"], "", store=EmbeddingStore(study.scratch / "embeddings" / "stub"))

    def work() -> None:
        outcome = evaluate(study, include_rejected=True, load=lambda *_: encoder)
        if outcome.failures or outcome.made != 3 * len(study.datasets):
            raise RuntimeError(f"{outcome}: nothing was measured")

    return _measured(work)


def tell_plan(folder: Path, texts: int, per_set: int = PER_SET) -> dict[str, float]:
    """Plan 24 variants, then again."""
    from evaluation.units import plan_units  # noqa: PLC0415

    study = _study(folder, texts, list(EIGHT), SEEDS, per_set)
    _write_outputs(study)
    forget_peak()
    before, seconds = memory("VmRSS"), list[float]()
    for _ in range(2):
        start = time.perf_counter()
        units = plan_units(Folder(study), [], [], include_rejected=True)
        seconds.append(time.perf_counter() - start)
        if {unit.decision.status for unit in units} != {"evaluated", "included_rejected"}:
            raise RuntimeError("units are left out: nothing was measured")
        if seconds[1:]:
            break
        mb = memory("VmHWM") - before
    return {"first": seconds[0], "mb": mb, "seconds": seconds[1]}


KINDS: dict[str, Callable[..., dict[str, float]]] = {
    "generation": tell_generation,
    "evaluation": tell_evaluation,
    "plan": tell_plan,
}

if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:5]))))
