"""How long putting tasks before people takes, and people's scores beside models'."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import yaml

from annotation.argilla.client import attach
from annotation.argilla.publish import publish
from annotation.sampling.sample import draw_sample
from annotation.server import Home, running
from benchmarks.registry import Measurement, benchmark
from benchmarks.server import quiet
from evaluation.human.answers import EmbeddingScorer, ScorerAnswers, TaskItems, given_by
from evaluation.human.scores import agreement, score, with_holm
from plumbline.study import Study, load_study

PUBLISHED = (16, 50)  #: tasks, and items of each
TASKS, RATERS, ITEMS, MODELS, RESAMPLES = 100, 5, 50, 20, 1000
_Kind = Literal["label", "score", "cluster", "graded"]


@benchmark
def scores_seconds() -> Iterator[Measurement]:
    """Seconds from answers to scores, agreement and differences: 100 tasks of four kinds, 5 raters, 20 models."""
    rng = np.random.default_rng(1337)
    kinds: tuple[_Kind, ...] = ("label", "score", "cluster", "graded")
    studies = [_task(f"task {number}", kinds[number % len(kinds)], rng) for number in range(TASKS)]
    start = time.perf_counter()
    differences = []
    for task, answers, models in studies:
        raters = given_by(task, answers)
        found = score(task, raters, models, n_resamples=RESAMPLES, rng=rng)
        agreement(task, raters, n_resamples=RESAMPLES, rng=rng)
        differences.append(found.differences)
    whole = with_holm(pd.concat(differences, ignore_index=True))
    seconds = time.perf_counter() - start
    if len(whole) != TASKS * MODELS * 2 or whole["difference"].isna().all():
        raise RuntimeError("differences are missing")
    yield Measurement("human.scores_seconds", seconds, "s", at_most=20)


@benchmark
def publish_seconds() -> Iterator[Measurement]:
    """Seconds until 16 tasks of 50 items, of which four are searches with 7 candidates, are before people."""
    with tempfile.TemporaryDirectory() as folder:
        study = _people(Path(folder))
        draw_sample(study)
        with running(Home(Path(folder) / "home"), progress=quiet) as connection, attach(connection) as argilla:
            start = time.perf_counter()
            new = publish(study, argilla).new
            seconds = time.perf_counter() - start
    if list(new.values()) != [PUBLISHED[1]] * PUBLISHED[0]:
        raise RuntimeError(f"{new}: nothing was measured")
    yield Measurement("human.publish_seconds", seconds, "s", at_most=30)


def _people(folder: Path) -> Study:
    """A study of made-up tasks: four each of classification, STS, clustering and reranking."""
    tasks, items = PUBLISHED
    words = [f"{one}{two}" for one in "bdfgklmnprst" for two in ("ane", "ilt", "orm", "ust")]
    texts = [" ".join(words[(7 * n + 5 * k) % len(words)] for k in range(12)) + f" {n}" for n in range(8 * items)]
    splits = ("test", "train")
    rows: dict[str, list[dict[str, Any]]] = {
        "classification": [{"text": t, "label": words[n % 6], "split": splits[n % 2]} for n, t in enumerate(texts)],
        "sts": [{"sentence1": t, "sentence2": texts[n - 1], "score": n % 6} for n, t in enumerate(texts)],
        "clustering": [{"text": t, "label": words[n % 6]} for n, t in enumerate(texts)],
        "reranking": [
            {"query": f"Who? {t}", "positive": [f"He: {t}"], "negative": [f"{k}: {t}" for k in range(6)]} for t in texts
        ],
    }
    for kind, own in rows.items():
        (folder / f"{kind}.jsonl").write_text("\n".join(map(json.dumps, own)), encoding="utf-8")
    kinds = [list(rows)[number % len(rows)] for number in range(tasks)]
    named = [{"dataset": f"task{number}", "items": items} for number in range(tasks)]
    content = {
        "name": "people",
        "subject": {"kind": "human", "tasks": named},
        "datasets": [
            {"name": f"task{number}", "task": kind, "path": f"{kind}.jsonl", "language": "en"}
            for number, kind in enumerate(kinds)
        ],
    }
    (folder / "people.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return load_study(folder / "people.yaml", folder / "exports")


def _task(name: str, asked: _Kind, rng: np.random.Generator) -> tuple[TaskItems, pd.DataFrame, list[ScorerAnswers]]:
    """A made task with its raters' answers, and models that are a little better."""
    right = _right(asked, rng)
    gold = _rows(right, asked)
    metric = {"label": "accuracy", "score": "cosine_spearman", "cluster": "v_measure", "graded": "ndcg_at_10"}[asked]
    task = TaskItems.of((name, "", "eng"), asked, asked, metric, gold)
    raters = [_rows(_given(right, asked, 0.6, rng), asked).assign(rater_id=f"r{k}") for k in range(RATERS)]
    answers = pd.concat(raters).assign(abstained=False)
    models = list[ScorerAnswers]()
    for number in range(MODELS):
        made = _rows(_given(right, asked, 0.8, rng), asked).assign(rater_id=f"m{number}")
        models += given_by(task, made.assign(abstained=False), EmbeddingScorer)
    return task, answers, models


def _right(asked: _Kind, rng: np.random.Generator) -> Any:
    if asked == "score":
        return rng.integers(0, 6, ITEMS).astype(float)
    return rng.integers(0, 2, (ITEMS, 10)).astype(float) if asked == "graded" else rng.integers(0, 6, ITEMS)


def _given(right: Any, asked: _Kind, sure: float, rng: np.random.Generator) -> Any:
    other = rng.integers(0, 4, right.shape) if asked == "graded" else rng.integers(0, 6, right.shape)
    return np.where(rng.random(right.shape) < sure, right, other)


def _rows(values: Any, asked: _Kind) -> pd.DataFrame:
    item = np.repeat(np.arange(ITEMS), 10 if asked == "graded" else 1).astype(str)
    candidate = np.tile(np.arange(10), ITEMS).astype(str) if asked == "graded" else ""
    flat = np.ravel(values)
    labelled = asked in ("label", "cluster")
    label = flat.astype(str) if labelled else ""
    return pd.DataFrame({"item": item, "candidate": candidate, "value": np.nan if labelled else flat, "label": label})
