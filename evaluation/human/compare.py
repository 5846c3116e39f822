"""Compare people, language models and embedding models on the same items: the tables of a human study."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.human.agreement import agreement, difficulty
from evaluation.human.answers import ScorerAnswers, TaskItems, codes_of, given_by, read, right_numbers
from evaluation.human.models import metric_of
from evaluation.human.records import (
    HumanAgreement,
    HumanDifference,
    HumanDifficulty,
    HumanItemScore,
    HumanScore,
    ModelMade,
)
from evaluation.human.sampled import PLURALS, SampledDataset
from evaluation.human.scores import score, with_holm
from generation.datasets.local import TableDataset
from generation.datasets.mteb_registry import gold_column
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError
from plumbline.statistics.estimates import Floats, stream
from plumbline.statistics.paired import average_ranks, enough_resamples
from plumbline.study.datasets import SEARCHES
from plumbline.words import count


def closeness(task: TaskItems, scorer: ScorerAnswers) -> Floats:
    """Return for each item how near a scorer's answer is to gold, from 0 to 1; NaN without an answer.

    For correlations within items (summaries), rho itself, from -1.
    """
    metric = task.metrics[0]
    answers = read(task, scorer, metric)
    if answers is None:
        return np.full(len(task.items), math.nan)
    if metric.of_item is not None:
        return answers
    gold = right_numbers(task, metric)
    both = np.isfinite(gold) & np.isfinite(answers)
    values = np.full(len(gold), math.nan)
    if both.sum() > 1:
        nearness = _same_cluster if task.question == "cluster" else _same_rank
        values[both] = nearness(gold[both], answers[both])
    return values


def _same_rank(gold: Floats, answers: Floats) -> Floats:
    first, second = (average_ranks(side[None])[0] for side in (gold, answers))
    near: Floats = 1 - np.abs(first - second) / (len(gold) - 1)
    return near


def _same_cluster(gold: NDArray[np.float64], clusters: NDArray[np.float64]) -> Floats:
    right = (gold[:, None] == gold) == (clusters[:, None] == clusters)
    share: Floats = (right.sum(axis=1) - 1) / (len(gold) - 1)
    return share


COLUMNS = ("task", "subset", "language", "item", "candidate", "value", "label")


def gold_of(sample: SampledDataset) -> pd.DataFrame:
    """Return the gold of a sampled task, a row an item (for searches and summaries a candidate), as answers are.

    Columns are `COLUMNS`: `item` is the scored unit (`SampledDataset.units`), `value` the score, grade or mark, `label`
    the data set's label (several as a sorted JSON list; for bitext the item's own id).
    """
    rows = pd.DataFrame(_rows(sample), columns=["item", "candidate", "value", "label"])
    named = {"task": sample.task.task, "subset": sample.subset, "language": sample.language}
    return rows.assign(**named)[list(COLUMNS)]


def by_unit(sample: SampledDataset, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers (`human/answers.parquet`) to a sampled task, by scored unit.

    A summary becomes a candidate of its text. Answers to items that give no score are left out.
    """
    answered = answers[(answers["task"] == sample.task.task) & answers["item"].isin(set(sample.items))]
    if sample.dataset.task != "summarisation":
        return answered
    return answered.assign(candidate=answered["item"], item=answered["item"].str.rsplit("/", n=2).str[0])


def _rows(sample: SampledDataset) -> Iterator[tuple[str, str, float, str]]:
    """Yield item, candidate, value and label."""
    if sample.dataset.task in SEARCHES:
        for item, judged in zip(sample.items, sample.judged, strict=True):
            yield from ((item, passage, float(value), "") for passage, value in judged.items())
        return
    column = _column(sample)
    if sample.dataset.task == "summarisation":
        places = [(unit, float(value)) for unit, values in zip(sample.units, column, strict=True) for value in values]
        yield from ((unit, item, value, "") for item, (unit, value) in zip(sample.items, places, strict=True))
        return
    nested = sample.dataset.task == "clustering" and len(column) and isinstance(column[0], list)
    for item, value in zip(sample.items, column[0] if nested else column, strict=False):
        yield item, "", *_answer(sample, item, value)


def _answer(sample: SampledDataset, item: str, value: Any) -> tuple[float, str]:
    kind = sample.dataset.task
    if kind in ("sts", "str", "pair_classification"):
        return float(value), ""
    if kind == "multilabel_classification":
        return math.nan, json.dumps(sorted(map(str, value)), ensure_ascii=False)
    return math.nan, item if kind == "bitext_mining" else str(value)


def _column(sample: SampledDataset) -> list[Any]:
    """Return the gold of each row of the scored split."""
    data = sample.dataset
    if isinstance(data, MtebTask):
        (parts,) = data.loaded.task.dataset.values()
        return list(parts[data.loaded.split][gold_column(data.loaded.task, data.task)])
    if not isinstance(data, TableDataset):
        raise TypeError(f"no gold of {type(data).__name__}")
    names = {"sts": "score", "str": "score", "summarisation": "relevance", "bitext_mining": "sentence2"}
    return list(data.splits["test"][names.get(data.task, "label")])


GOLD = "gold"  # the scorer kind of gold among the answers to each item


@dataclass(frozen=True)
class HumanTables:
    """The tables by their records (`evaluation.human.records`), and a line for each omission."""

    scores: pd.DataFrame
    agreement: pd.DataFrame
    differences: pd.DataFrame
    items: pd.DataFrame
    difficulty: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TaskPart:
    """A sampled task with all answers: people's and language models' (frames as in records), and models' results."""

    sample: SampledDataset
    people: pd.DataFrame
    annotators: pd.DataFrame
    results: tuple[ModelMade, ...]


def compare(parts: Sequence[TaskPart], *, seed: int) -> HumanTables:
    """Return scores, agreement, differences and items of all sampled tasks, with Holm's correction over the tasks.

    All scores by a task's metric use the items that all compared scorers answered (`evaluation.human.scores.score`).
    Raises DataError if no item of any task gives a score.
    """
    some = [part for part in parts if part.sample.units]
    if not some:
        why = "; ".join(_left_out(parts))
        raise DataError("people saw no item that can be scored" + (f" ({why})" if why else ""))
    number = enough_resamples(len(some), 0.05, 1000)
    compared = [_compared(part, number, seed) for part in some]
    apart = pd.concat([tables.differences for tables in compared], ignore_index=True)
    differences = with_holm(apart).assign(subset=apart["subset"])
    scores = _columns([tables.scores for tables in compared], list(HumanScore.model_fields))
    shared = scores[scores["main"] & scores["compared"]]
    hard = difficulty(shared, stream(seed, "human", "difficulty"))
    return HumanTables(
        scores,
        _columns([tables.agreement for tables in compared], list(HumanAgreement.model_fields)),
        differences[list(HumanDifference.model_fields)],
        _columns([tables.items for tables in compared], list(HumanItemScore.model_fields)),
        hard[list(HumanDifficulty.model_fields)],
        (*_left_out(parts), *(note for tables in compared for note in tables.notes)),
    )


def _left_out(parts: Sequence[TaskPart]) -> list[str]:
    """Return the number of items that give no score, by task and reason."""
    lines = []
    for part in parts:
        for reason, n in part.sample.left_out.items():
            noun, _, rest = reason.partition(" ")
            lines.append(f"{part.sample.name}, left out: {count(n, noun, PLURALS.get(noun, ''))} {rest}")
    return lines


def _columns(frames: Sequence[pd.DataFrame], names: list[str]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)[names]


def _compared(part: TaskPart, number: int, seed: int) -> HumanTables:
    sample = part.sample
    facts = sample.task.task, sample.task.task_type, sample.language
    task = TaskItems.of(facts, sample.task.asked, metric_of(sample), gold_of(sample), sample.units)
    people, language = given_by(task, by_unit(sample, part.people)), given_by(task, by_unit(sample, part.annotators))
    models = [_given(result, task) for result in part.results]

    def rng(what: str) -> np.random.Generator:
        return stream(seed, "human", what, sample.task.task, sample.subset, sample.language)

    scored = score(task, people, [*language, *models], n_resamples=number, rng=rng("scores"))
    agreed = agreement(task, people, n_resamples=number, rng=rng("agreement"))
    reasons = {result.model: result.reason for result in part.results}
    why = [reasons.get(scorer, "") for scorer in scored.scores["scorer"]]
    scores = scored.scores.assign(
        subset=sample.subset,
        simulated=bool(part.people["simulated"].any()),
        main=scored.scores["metric"] == task.metrics[0].name,
        reason=[
            "; ".join(filter(None, dict.fromkeys(both))) for both in zip(scored.scores["reason"], why, strict=True)
        ],
    )
    items = pd.DataFrame(_items(sample, task, [*people, *language, *models]))
    differences = scored.differences.assign(subset=sample.subset)
    agreed = agreed.assign(subset=sample.subset)
    nobody = () if people else (f"{sample.name}: no person's answers count, so only models have scores",)
    return HumanTables(scores, agreed, differences, items, pd.DataFrame(), (*nobody, *scored.notes))


def _given(result: ModelMade, task: TaskItems) -> ScorerAnswers:
    """Return a model's answers: the values that mteb's metric reads of each item, NaN if mteb's score has no items."""
    values = np.array(result.made or [np.nan] * len(task.items), np.float64)
    beside = {name: np.array(values, np.float64) for name, values in result.others.items()}
    if result.labels:
        codes = np.stack([codes_of(task, run) for run in result.labels])
        beside |= {metric.name: codes for metric in task.metrics[1:]}
    return ScorerAnswers(result.model, "model", item_values=values, beside=beside)


def _items(sample: SampledDataset, task: TaskItems, scorers: Sequence[ScorerAnswers]) -> Iterator[dict[str, object]]:
    """Yield the gold of each item, and each scorer's result on it."""
    task_keys = {"task": task.name, "subset": sample.subset, "language": sample.language}
    for item, right in zip(task.items, task.right, strict=True):
        answer = "" if right is None else _words(task, right)
        yield {**task_keys, "item": item, "scorer": GOLD, "scorer_kind": GOLD, "score": 1.0, "answer": answer}
    for scorer in scorers:
        near = closeness(task, scorer)
        answers = scorer.values or (None,) * len(task.items)
        for item, value, answer in zip(task.items, near.tolist(), answers, strict=True):
            who = {"scorer": scorer.scorer, "scorer_kind": scorer.kind}
            yield {
                **task_keys,
                **who,
                "item": item,
                "score": value,
                "answer": "" if answer is None else _words(task, answer),
            }


def _words(task: TaskItems, answer: object) -> str:
    """Return an answer in words: labels separated by commas, numbers of candidates in their order."""
    if isinstance(answer, np.ndarray):
        return ", ".join(f"{number:g}" for number in answer.tolist())
    if isinstance(answer, float):
        return f"{answer:g}"
    labels = [str(label) or "none" for label in answer] if isinstance(answer, tuple) else [str(answer)]
    return (
        ", ".join(" and ".join(json.loads(label)) or "none" for label in labels)
        if task.question == "labels"
        else ", ".join(labels)
    )
