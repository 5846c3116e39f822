"""Compare people, language models and embedding models on the same items: the tables of a human study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evaluation.human.agreement import difficulty
from evaluation.human.answers import EmbeddingScorer, LanguageModelScorer, ScorerAnswers, TaskItems, given_by
from evaluation.human.models import metric_of
from evaluation.human.questions import codes_of
from evaluation.human.records import TABLES, HumanDifficulty, HumanTables, ModelMade
from evaluation.human.sampled import PLURALS, SampledDataset, by_unit, gold_of
from evaluation.human.scores import agreement, score, with_holm
from plumbline.errors import DataError
from plumbline.records import Record
from plumbline.statistics.estimates import Floats, stream
from plumbline.statistics.paired import enough_resamples
from plumbline.words import count


def closeness(task: TaskItems, scorer: ScorerAnswers) -> Floats:
    """Return for each item how near a scorer's answer is to gold, from 0 to 1; NaN without an answer.

    For correlations within items (summaries), rho itself, from -1.
    """
    metric = task.metrics[0]
    answers = scorer.read(task, metric)
    if answers is None:
        return np.full(len(task.items), math.nan)
    if metric.per_item:
        return answers
    gold = task.gold_numbers(metric)
    both = np.isfinite(gold) & np.isfinite(answers)
    values = np.full(len(gold), math.nan)
    if both.sum() > 1:
        values[both] = task.question.nearness(gold[both], answers[both])
    return values


GOLD = "gold"  # the scorer kind of gold among the answers to each item


@dataclass(frozen=True)
class TaskPart:
    """A sampled task with all answers: people's and language models' (frames as in records), and models' results."""

    sample: SampledDataset
    people: pd.DataFrame
    annotators: pd.DataFrame
    results: Mapping[str, ModelMade]  #: by model


def compare(parts: Sequence[TaskPart], *, seed: int) -> HumanTables:
    """Return scores, agreement, differences and items of all sampled tasks, with Holm's correction over the tasks.

    All scores by a task's metric use the items that all compared scorers answered (`evaluation.human.scores.score`).
    Raises DataError if no item of any task gives a score.
    """
    some = [part for part in parts if part.sample.units]
    if not some:
        reasons = "; ".join(_left_out(parts))
        raise DataError("people saw no item that can be scored" + (f" ({reasons})" if reasons else ""))
    number = enough_resamples(len(some), 0.05, 1000)
    compared = [_compared(part, number, seed) for part in some]

    def joined(name: str, record: type[Record]) -> pd.DataFrame:
        frame = pd.concat([getattr(tables, name) for tables in compared], ignore_index=True)
        frame = with_holm(frame) if name == "differences" and len(frame) else frame
        return frame.reindex(columns=list(record.model_fields))

    tables = {name: joined(name, record) for name, (_, record) in TABLES.items() if name != "difficulty"}
    scores = tables["scores"]
    hard = difficulty(scores[scores["main"] & scores["compared"]], stream(seed, "human", "difficulty"))
    notes = (*_left_out(parts), *(note for tables in compared for note in tables.notes))
    return HumanTables(**tables, difficulty=hard[list(HumanDifficulty.model_fields)], notes=notes)


def _left_out(parts: Sequence[TaskPart]) -> list[str]:
    """Return the number of items that give no score, by task and reason."""
    lines = []
    for part in parts:
        for reason, n in part.sample.left_out.items():
            noun, _, rest = reason.partition(" ")
            lines.append(f"task {part.sample.name}, left out: {count(n, noun, PLURALS.get(noun, ''))} {rest}")
    return lines


def _compared(part: TaskPart, number: int, seed: int) -> HumanTables:
    sample = part.sample
    of_type = sample.task.task_type, sample.task.asked, metric_of(sample)
    task = TaskItems.of(sample.key, *of_type, gold_of(sample), sample.units)
    people = given_by(task, by_unit(sample, part.people))
    language = given_by(task, by_unit(sample, part.annotators), LanguageModelScorer)
    models = [_given(name, result, task) for name, result in part.results.items()]

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "human", purpose, sample.task.task, sample.subset, sample.language)

    scored = score(task, people, [*language, *models], n_resamples=number, rng=rng("scores"))
    agreed = agreement(task, people, n_resamples=number, rng=rng("agreement"))
    items = pd.DataFrame(_items(task, [*people, *language, *models]))
    scores = scored.scores.assign(simulated=bool(part.people["simulated"].any()))
    nobody = () if people else (f"task {sample.name}: no person's answers count, so only models have scores",)
    return HumanTables(scores, agreed, scored.differences, items, pd.DataFrame(), (*nobody, *scored.notes))


def _given(name: str, result: ModelMade, task: TaskItems) -> ScorerAnswers:
    """Return a model's answers: the values that mteb's metric reads of each item, NaN if mteb's score has no items."""
    values = np.array(result.made or [np.nan] * len(task.items), np.float64)
    extra = {metric: np.array(numbers, np.float64) for metric, numbers in result.others.items()}
    if result.labels:
        codes = np.stack([codes_of(task.right, run) for run in result.labels])
        extra |= {metric.name: codes for metric in task.metrics[1:]}
    return EmbeddingScorer(name, item_values=values, extra=extra, reason=result.reason)


def _items(task: TaskItems, scorers: Sequence[ScorerAnswers]) -> Iterator[dict[str, object]]:
    """Yield the gold of each item, and each scorer's result on it."""

    def row(item: str, scorer: str, kind: str, score: float, answer: Any) -> dict[str, object]:
        words = "" if answer is None else task.question.words(answer)
        return {**task.keys, "item": item, "scorer": scorer, "scorer_kind": kind, "score": score, "answer": words}

    for item, right in zip(task.items, task.right, strict=True):
        yield row(item, GOLD, GOLD, 1.0, right)
    for scorer in scorers:
        answers = scorer.values or (None,) * len(task.items)
        for item, value, answer in zip(task.items, closeness(task, scorer).tolist(), answers, strict=True):
            yield row(item, scorer.scorer, scorer.kind, value, answer)
