"""How long people's scores beside models' take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.registry import Measurement, benchmark
from evaluation.human.agreement import agreement
from evaluation.human.answers import Given, Task, given_by
from evaluation.human.scores import score, with_holm

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


def _task(name: str, asked: _Kind, rng: np.random.Generator) -> tuple[Task, pd.DataFrame, list[Given]]:
    """A made task with its raters' answers, and models that are a little better."""
    right = _right(asked, rng)
    gold = _rows(right, asked)
    metric = {"label": "accuracy", "score": "cosine_spearman", "cluster": "v_measure", "graded": "ndcg_at_10"}[asked]
    task = Task.of((name, asked, "eng"), asked, metric, gold)
    raters = [_rows(_given(right, asked, 0.6, rng), asked).assign(rater_id=f"r{k}") for k in range(RATERS)]
    answers = pd.concat(raters).assign(rater_kind="person", abstained=False)
    models = []
    for number in range(MODELS):
        made = _rows(_given(right, asked, 0.8, rng), asked).assign(rater_id=f"m{number}", rater_kind="model")
        (given,) = given_by(task, made.assign(abstained=False))
        models.append(Given(given.scorer, "model", given.values))
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
