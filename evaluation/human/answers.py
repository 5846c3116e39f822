"""The answers of each scorer to each item of a task, and the raters' joint answers.

Converts frames to arrays. Gold and answers have the same columns (`annotation.human.records.HumanAnswer`): gold is the
answer of a rater without mistakes. Missing answers and abstentions are None, and are counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from evaluation.human.metrics import Metric
from evaluation.human.questions import Row, ScoredQuestion, question_of
from plumbline.frames import need, once
from plumbline.statistics.estimates import Floats

Ties = Literal["expected", "first"]


@dataclass(frozen=True)
class TaskItems:
    """The items of one task in one language and subset, with gold.

    `right` has, by item, a label (text), a number, or an array over `candidates`; None without gold.
    """

    name: str
    subset: str
    language: str
    task_type: str
    question: ScoredQuestion
    metrics: tuple[Metric, ...]
    items: tuple[str, ...]
    right: tuple[Any, ...]
    candidates: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(
        cls,
        key: tuple[str, str, str],
        task_type: str,
        form: str,
        metric: str,
        gold: pd.DataFrame,
        items: Sequence[str] = (),
    ) -> TaskItems:
        """Make the items from gold with the columns item, candidate ("" without), value and label.

        `key` is the task's name, subset and language; `form` is the form of the answers. `items` are all items asked,
        in order, with None for those without gold; by default those of gold. Raises ValueError for a frame that lacks a
        column or has a row twice.
        """
        need(gold, ("item", "candidate", "value", "label"), "gold")
        once(gold, ("item", "candidate"), "gold")
        rows = _by_item(gold.assign(abstained=False))
        order = tuple(items) or tuple(rows)
        of_candidates = bool((gold["candidate"] != "").any())
        question = question_of(form, candidates=of_candidates)
        named = tuple(tuple(row[0] for row in rows.get(item, [])) for item in order) if of_candidates else ()
        answers = [
            question.answer(rows[item], named[index] if named else ()) if item in rows else None
            for index, item in enumerate(order)
        ]
        return cls(
            *key, task_type, question, question.metrics(metric), order, tuple(map(question.right, answers)), named
        )

    @property
    def keys(self) -> dict[str, str]:
        """The cells that identify its rows in tables."""
        return {"task": self.name, "subset": self.subset, "language": self.language}

    def read(self, metric: Metric, answers: Sequence[Any]) -> Floats:
        """Return the values that a metric reads of answers to each item, NaN without one."""
        values = metric.read(self.right, answers)
        return self.question.numbers(answers, self.right) if values is None else values

    def gold_numbers(self, metric: Metric) -> Floats:
        """Return gold as numbers that a measure of all items reads; NaN without gold."""
        if not metric.per_item:
            return self.question.gold_numbers(self.right)
        return np.array([math.nan if answer is None else 0.0 for answer in self.right])


@dataclass(frozen=True)
class ScorerAnswers:
    """One scorer's answers to each item of a task, in the task's order; None without one.

    A label is a tuple of tied labels (one for a rater), so that a majority's ties are kept.
    """

    scorer: str
    values: tuple[Any, ...] = ()
    abstained: int = 0
    missing: int = 0
    reason: str = ""  #: why scores, or results on items, are missing
    kind: ClassVar[str]  #: in tables
    joint: ClassVar[bool] = False  #: whether the others are compared on its items
    in_mean: ClassVar[bool] = False  #: whether the mean of raters has it
    model: ClassVar[bool] = False  #: whether people are compared with it
    all_metrics: ClassVar[bool] = True  #: whether it is scored by all metrics, not only the main one

    def read(self, task: TaskItems, metric: Metric) -> Floats | None:
        """Return the values that a metric reads of each item, NaN without one; None if they are unknown.

        Several runs give a row each.
        """
        return task.read(metric, self.values)


@dataclass(frozen=True)
class RaterScorer(ScorerAnswers):
    """A person."""

    kind, in_mean = "rater", True


@dataclass(frozen=True)
class LanguageModelScorer(ScorerAnswers):
    """A language model that answered as raters do."""

    kind, model = "llm", True


@dataclass(frozen=True)
class JointScorer(ScorerAnswers):
    """The raters' joint answers."""

    scorer: str = "aggregate"
    kind, joint = "aggregate", True


@dataclass(frozen=True)
class MeanScorer(ScorerAnswers):
    """The raters' mean score, which has no answers."""

    scorer: str = "raters_mean"
    kind = "raters_mean"


@dataclass(frozen=True)
class TrivialScorer(ScorerAnswers):
    """Answers that need no reading."""

    kind, all_metrics = "trivial", False


@dataclass(frozen=True)
class EmbeddingScorer(ScorerAnswers):
    """An embedding model.

    `item_values` replaces `values` if a program gives only the main metric's value of each item (the share of runs that
    got it right), NaN without one; `extra` has the values for other metrics, a row for each run if the score is a mean
    of runs.
    """

    item_values: Floats | None = None
    extra: Mapping[str, Floats] = field(default_factory=dict)
    kind, model = "model", True

    def read(self, task: TaskItems, metric: Metric) -> Floats | None:
        """Return the program's values; clusters give all metrics."""
        if self.item_values is None:
            return super().read(task, metric)
        measured = metric is task.metrics[0] or not metric.smooth
        return np.asarray(self.item_values, np.float64) if measured else self.extra.get(metric.name)


def given_by(task: TaskItems, answers: pd.DataFrame, kind: type[ScorerAnswers] = RaterScorer) -> list[ScorerAnswers]:
    """Return the answers of each rater in a frame, raters in the order of their names.

    An item with any abstention counts as abstained; one with answers to only some candidates counts as missing. Answers
    to other items do not count. Raises ValueError for a frame that lacks a column, or has an answer twice.
    """
    need(answers, ("item", "candidate", "rater_id", "value", "label", "abstained"), "answers")
    once(answers, ("item", "candidate", "rater_id"), "answers")
    scorers = []
    for rater, of_rater in answers.groupby("rater_id"):
        rows, values, abstained = _by_item(of_rater), list[Any](), 0
        for index, item in enumerate(task.items):
            item_rows = rows.get(item, [])
            unsure = any(row[3] for row in item_rows)
            abstained += unsure
            named = task.candidates[index] if task.candidates else ()
            values.append(task.question.answer(item_rows, named) if item_rows and not unsure else None)
        missing = sum(value is None for value in values) - abstained
        scorers.append(kind(str(rater), tuple(values), abstained, missing))
    return scorers


def _by_item(frame: pd.DataFrame) -> dict[str, list[Row]]:
    """Return each item's rows: candidate, value, label, abstained."""
    names = ("item", "candidate", "value", "label", "abstained")
    by_item: dict[str, list[Row]] = {}
    for item, *row in zip(*(frame[name].tolist() for name in names), strict=True):
        by_item.setdefault(str(item), []).append(tuple(row))
    return by_item


def aggregate(
    raters: Sequence[ScorerAnswers], question: ScoredQuestion, ties: Ties = "expected"
) -> ScorerAnswers | None:
    """Return the raters' joint answers: the mean of numbers, by candidate, or the labels with the most votes.

    `ties` settles a tied vote: all tied labels count, by the chance that a draw is right ("expected"), or the
    alphabetically first ("first", as in HUME's program). An item that nobody answered is missing. None for clusterings,
    as cluster numbers of two raters are not comparable.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be 'expected' or 'first', not {ties!r}")
    if question.no_joint or not raters:
        return None
    by_item = zip(*(rater.values for rater in raters), strict=True)
    answers = ([answer for answer in each if answer is not None] for each in by_item)
    values = tuple(question.joint(each, first=ties == "first") if each else None for each in answers)
    return JointScorer(values=values)


def trivial(task: TaskItems, rng: np.random.Generator) -> list[ScorerAnswers]:
    """Return answers that need no reading, by the kind of question; none without gold."""
    if all(answer is None for answer in task.right):
        return []
    answers = task.question.trivial(task.right, task.items, rng)
    return [TrivialScorer(name, tuple(values)) for name, values in answers.items()]
