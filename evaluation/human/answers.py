"""The answers of each scorer to each item of a task, and the raters' joint answers.

Converts frames to arrays. Gold and answers have the same columns (`annotation.human.records.HumanAnswer`): gold is the
answer of a rater without mistakes. Missing answers and abstentions are None, and are counted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from evaluation.human.metrics import OF_CANDIDATES, OF_LABELS, Asked, Metric, metrics_of
from plumbline.frames import need, once
from plumbline.statistics.estimates import Floats

Kind = Literal["rater", "raters_mean", "aggregate", "llm", "model", "trivial"]
Ties = Literal["expected", "first"]
_Row = tuple[str, float, str, bool]  # candidate, value, label, abstained
_RATERS: dict[str, Kind] = {"person": "rater", "model": "llm"}


@dataclass(frozen=True)
class TaskItems:
    """The items of one task in one language, with gold.

    `right` has, by item, a label (text), a number, or an array over `candidates`; None without gold.
    """

    name: str
    task_type: str
    language: str
    question: Asked
    metrics: tuple[Metric, ...]
    items: tuple[str, ...]
    right: tuple[Any, ...]
    candidates: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(
        cls, facts: tuple[str, str, str], question: Asked, metric: str, gold: pd.DataFrame, items: Sequence[str] = ()
    ) -> TaskItems:
        """Make the items from gold with the columns item, candidate ("" without), value and label.

        `facts` are name, type and language. `items` are all items asked, in order, with None for those without gold; by
        default those of gold. Raises ValueError for a frame that lacks a column or has a row twice.
        """
        need(gold, ("item", "candidate", "value", "label"), "gold")
        once(gold, ("item", "candidate"), "gold")
        rows = _by_item(gold.assign(abstained=False))
        order = tuple(items) or tuple(rows)
        of_candidates = bool((gold["candidate"] != "").any())
        named = tuple(tuple(row[0] for row in rows.get(item, [])) for item in order) if of_candidates else ()
        right: list[Any] = []
        for index, item in enumerate(order):
            answer = _answer(rows[item], question, named[index] if named else ()) if item in rows else None
            right.append(answer[0] if answer is not None and question in OF_LABELS else answer)
        return cls(*facts, question, metrics_of(question, metric, candidates=of_candidates), order, tuple(right), named)


@dataclass(frozen=True)
class ScorerAnswers:
    """One scorer's answers to each item of a task, in the task's order; None without one.

    A label is a tuple of tied labels (one for a rater), so that a majority's ties are kept. `item_values` replaces
    `values` if a program gives only the main metric's value of each item (the share of runs that got it right), NaN
    without one; `beside` has the values for other metrics, a row for each run if the score is a mean of runs.
    """

    scorer: str
    kind: Kind
    values: tuple[Any, ...] = ()
    item_values: Floats | None = None
    beside: Mapping[str, Floats] = field(default_factory=dict)
    abstained: int = 0
    missing: int = 0


def given_by(task: TaskItems, answers: pd.DataFrame) -> list[ScorerAnswers]:
    """Return the answers of each rater in a frame, raters in the order of their names.

    An item with any abstention counts as abstained; one with answers to only some candidates counts as missing. Answers
    to other items do not count. Raises ValueError for a frame that lacks a column, or has an answer twice.
    """
    need(answers, ("item", "candidate", "rater_id", "rater_kind", "value", "label", "abstained"), "answers")
    once(answers, ("item", "candidate", "rater_id"), "answers")
    scorers = []
    for (rater, kind), of_rater in answers.groupby(["rater_id", "rater_kind"]):
        rows, values, abstained = _by_item(of_rater), list[Any](), 0
        for index, item in enumerate(task.items):
            item_rows = rows.get(item, [])
            unsure = any(row[3] for row in item_rows)
            abstained += unsure
            named = task.candidates[index] if task.candidates else ()
            values.append(_answer(item_rows, task.question, named) if item_rows and not unsure else None)
        missing = sum(value is None for value in values) - abstained
        who, whole = (str(rater), _RATERS[str(kind)]), tuple(values)
        scorers.append(ScorerAnswers(*who, whole, abstained=abstained, missing=missing))
    return scorers


def _by_item(frame: pd.DataFrame) -> dict[str, list[_Row]]:
    """Return each item's rows: candidate, value, label, abstained."""
    names = ("item", "candidate", "value", "label", "abstained")
    by_item: dict[str, list[_Row]] = {}
    for item, *row in zip(*(frame[name].tolist() for name in names), strict=True):
        by_item.setdefault(str(item), []).append(tuple(row))
    return by_item


def _answer(rows: Sequence[_Row], question: Asked, candidates: tuple[str, ...]) -> Any:
    """Return one rater's (or gold's) answer to one item; None if it is incomplete."""
    _, value, label, _ = rows[0]
    if question in OF_LABELS or question == "cluster":
        if question == "labels" and label:
            label = json.dumps(sorted(json.loads(label)))
        if not label and question != "choice":  # there an empty label means: none of the candidates
            return None
        return label if question == "cluster" else (label,)
    if question in OF_CANDIDATES or candidates:
        by_candidate = {row[0]: row[1] for row in rows}
        values = np.array([by_candidate.get(candidate, math.nan) for candidate in candidates], np.float64)
        return values if len(values) and np.isfinite(values).all() else None
    return float(value) if value is not None and math.isfinite(value) else None


def aggregate(raters: Sequence[ScorerAnswers], question: Asked, ties: Ties = "expected") -> ScorerAnswers | None:
    """Return the raters' joint answers: the mean of numbers, by candidate, or the labels with the most votes.

    Returns None for clusterings, as cluster numbers of two raters are not comparable. `ties` settles a tied vote: all
    tied labels count, by the chance that a draw is right ("expected"), or the alphabetically first ("first", as in
    HUME's program). An item that nobody answered is missing.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be 'expected' or 'first', not {ties!r}")
    if question == "cluster" or not raters:
        return None
    values: list[Any] = []
    for each in zip(*(rater.values for rater in raters), strict=True):
        answers = [answer for answer in each if answer is not None]
        if not answers:
            values.append(None)
        elif question in OF_LABELS:
            votes = Counter(label for answer in answers for label in answer)
            most = max(votes.values())
            best = tuple(sorted(label for label, number in votes.items() if number == most))
            values.append(best[:1] if ties == "first" else best)
        else:
            values.append(np.mean(answers, axis=0) if isinstance(answers[0], np.ndarray) else float(np.mean(answers)))
    return ScorerAnswers("aggregate", "aggregate", tuple(values), missing=sum(value is None for value in values))


def read(task: TaskItems, scorer: ScorerAnswers, metric: Metric) -> Floats | None:
    """Return the values that a metric reads of each item, NaN without one; None if they are unknown for this scorer.

    Several runs give a row each.
    """
    if scorer.item_values is not None:
        measured = metric is task.metrics[0] or task.question == "cluster"
        return np.asarray(scorer.item_values, np.float64) if measured else scorer.beside.get(metric.name)
    both = list(zip(task.right, scorer.values, strict=True))
    if metric.of_item is not None:
        values = [
            math.nan if right is None or answer is None else metric.of_item(right, answer) for right, answer in both
        ]
        return np.array(values, np.float64)
    if metric.of_rows is not None:
        return _of_candidates(both, metric.of_rows)
    if task.question == "cluster":
        codes = {cluster: float(number) for number, cluster in enumerate(dict.fromkeys(scorer.values))}
        return np.array([math.nan if cluster is None else codes[cluster] for cluster in scorer.values])
    if task.question in OF_LABELS:  # of tied labels the alphabetically first, as in HUME
        return codes_of(task, [None if labels is None else min(labels) for labels in scorer.values])
    return np.array([math.nan if value is None else float(value) for value in scorer.values])


def codes_of(task: TaskItems, labels: Sequence[str | None]) -> Floats:
    """Return labels as numbers, the same for gold and all scorers; labels that are never right come last."""
    right_labels = sorted({label for label in task.right if label is not None})
    others = sorted({label for label in labels if label is not None} - set(right_labels))
    codes = {label: float(number) for number, label in enumerate([*right_labels, *others])}
    return np.array([math.nan if label is None else codes[label] for label in labels])


def _of_candidates(both: Sequence[tuple[Any, Any]], of_rows: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return a metric of each item's candidates, computed together for items of equally many."""
    sizes = np.array([0 if right is None or answer is None else len(right) for right, answer in both])
    values = np.full(len(both), math.nan)
    for size in set(sizes.tolist()) - {0}:
        places = np.flatnonzero(sizes == size).tolist()
        values[places] = of_rows(*(np.stack([both[index][side] for index in places]) for side in (0, 1)))
    return values


def right_numbers(task: TaskItems, metric: Metric) -> Floats:
    """Return gold as numbers that a measure of all items reads; NaN without gold."""
    has_gold = np.array([answer is not None for answer in task.right])
    if metric.of_item is not None or metric.of_rows is not None:
        return np.where(has_gold, 0.0, math.nan)
    if task.question == "cluster":
        codes = pd.factorize(pd.Series(task.right, dtype=object))[0].astype(np.float64)
        return np.where(has_gold, codes, math.nan)
    if task.question in OF_LABELS:
        return codes_of(task, task.right)
    return np.array([math.nan if answer is None else float(answer) for answer in task.right])
