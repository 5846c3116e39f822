"""Result files as mteb writes them, with made-up scores, for any benchmark of its registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import numpy as np
from mteb.models.model_meta import ModelMeta
from mteb.results import TaskResult

from tests.commands import here

REVISION = "0123456789abcdef"


def write_results(
    folder: Path, benchmark: str, scores: dict[str, float], seed: int = 1, without: dict[str, list[str]] | None = None
) -> None:
    """`folder/results`, written by mteb: models around these mean scores, but for the tasks that one is `without`."""
    rng = np.random.default_rng(seed)
    cache = mteb.ResultCache(folder)
    for task in mteb.get_benchmark(benchmark).tasks:
        hardness = rng.normal(0, 0.05)
        for model, score in scores.items():
            parts = {
                split: {subset: entry(task, score + hardness + rng.normal(0, 0.02), rng) for subset in subsets_of(task)}
                for split in task.eval_splits
            }
            if task.metadata.name in (without or {}).get(model, ()):
                continue
            result = TaskResult.from_task_results(task, parts, evaluation_time=1.0, kg_co2_emissions=None)
            meta = ModelMeta.create_empty({"name": model, "revision": REVISION})
            cache.save_to_cache(result, meta)


def subsets_of(task: Any) -> list[str]:
    """The subsets that a task is scored on."""
    return ["default"] if task.is_aggregate else list(task.hf_subsets)


def entry(task: Any, mean: float, rng: np.random.Generator) -> dict[str, Any]:
    """What mteb writes of one subset: of classification and clustering ten experiments with their mean."""
    metric, kind = task.metadata.main_score, task.metadata.type
    if kind == "Classification":
        runs = rng.normal(mean, 0.02, 10).tolist()
        each = [{metric: run, "f1": run / 2} for run in runs]
        return {"scores_per_experiment": each, metric: float(np.mean(runs)), "main_score": float(np.mean(runs))}
    if kind == "Clustering" and metric == "v_measure":
        runs = rng.normal(mean, 0.02, 10).tolist()
        return {"v_measures": {"Level 0": runs}, metric: float(np.mean(runs)), "main_score": float(np.mean(runs))}
    return {metric: mean, "main_score": mean}


def run(folder: Path, source: Path | str, *words: str) -> tuple[int, str, str]:
    """Status, output and last line of errors of `board`, whose files go to `folder/board`."""
    done = here("board", "--from", str(source), "--out", str(folder / "board"), *words)
    return done.returncode, done.stdout, done.stderr.replace("\r", "\n").strip().rpartition("\n")[2]
