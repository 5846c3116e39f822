"""The questions of tasks as they are scored: a class for each form of answers, with its metrics and its agreement.

The forms are those of `annotation.human.forms`; `question_of` finds the class of one. Answers to an item are a tuple of
labels (one for a rater; several that share most votes), a cluster's name, a number, or an array over candidates; None
stands for a missing answer.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from evaluation.human.agreement import BOOTSTRAP, JACKKNIFE, AgreementEstimates, of_labels, pairwise, within_items
from evaluation.human.metrics import (
    ItemMetric,
    Metric,
    RowMetric,
    accuracy,
    ami,
    ap_of_rows,
    ari,
    counted_ap,
    ndcg_of_rows,
    rho_of_rows,
    rr_of_rows,
    same,
    sklearn_of_rows,
)
from plumbline.statistics.estimates import Floats
from plumbline.statistics.paired import average_ranks
from plumbline.statistics.resampled_measures import macro_f1, rho, v_measure, weighted_f1

AnswersByName = Mapping[str, Sequence[Any]]
Row = tuple[str, float, str, bool]  # candidate, value, label, abstained


class ScoredQuestion:
    """Numbers, such as scores of pairs; other questions override what differs."""

    no_joint: ClassVar[str] = ""  #: why raters have no joint answer

    def metrics(self, name: str) -> tuple[Metric, ...]:
        """Return the metrics, the main one first; `name` is the task's own metric in mteb."""
        return (Metric(name, rho, least=-1),)

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        """Return one rater's (or gold's) answer to one item; None if it is incomplete."""
        del candidates
        value = rows[0][1]
        return float(value) if value is not None and math.isfinite(value) else None

    def right(self, answer: Any) -> Any:
        """Return gold from gold's answer."""
        return answer

    def joint(self, answers: Sequence[Any], *, first: bool) -> Any:
        """Return the joint answer of raters to one item: the mean of numbers, by candidate.

        `first` settles a tied vote by the alphabet.
        """
        del first
        mean = np.mean(answers, axis=0)
        return mean if isinstance(answers[0], np.ndarray) else float(mean)

    def numbers(self, answers: Sequence[Any], right: Sequence[Any]) -> Floats:
        """Return answers as numbers that a measure of all items reads; NaN without one."""
        del right
        return np.array([math.nan if answer is None else float(answer) for answer in answers])

    def gold_numbers(self, right: Sequence[Any]) -> Floats:
        """Return gold as such numbers."""
        return self.numbers(right, right)

    def nearness(self, gold: Floats, answers: Floats) -> Floats:
        """Return how near each answer is to gold, from 0 to 1, if the metric has no values of items: by ranks."""
        first, second = (average_ranks(side[None])[0] for side in (gold, answers))
        near: Floats = 1 - np.abs(first - second) / (len(gold) - 1)
        return near

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        """Return answers that need no reading, by name; none for scores, as random scores have a rho of 0."""
        del right, items, rng
        return {}

    def agreement(self, values: Sequence[Sequence[Any]], number: int, rng: np.random.Generator) -> AgreementEstimates:
        """Return the agreement of raters, whose answers are `values`."""
        return {"Spearman": (pairwise(rho, [self.numbers(rater, ()) for rater in values], number, rng), BOOTSTRAP)}

    def words(self, answer: Any) -> str:
        """Return an answer in words."""
        return f"{answer:g}"


class LabelQuestion(ScoredQuestion):
    """One of several labels."""

    def metrics(self, name: str) -> tuple[Metric, ...]:
        return ItemMetric("accuracy", of_item=accuracy), Metric("f1", macro_f1), Metric("f1_weighted", weighted_f1)

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        label = rows[0][2]
        return (label,) if label else None

    def right(self, answer: Any) -> Any:
        return None if answer is None else answer[0]

    def joint(self, answers: Sequence[Any], *, first: bool) -> Any:
        votes = Counter(label for answer in answers for label in answer)
        most = max(votes.values())
        best = tuple(sorted(label for label, number in votes.items() if number == most))
        return best[:1] if first else best

    def numbers(self, answers: Sequence[Any], right: Sequence[Any]) -> Floats:
        """Return labels as numbers; of tied labels the alphabetically first, as in HUME."""
        return codes_of(right, [None if labels is None else min(labels) for labels in answers])

    def gold_numbers(self, right: Sequence[Any]) -> Floats:
        return codes_of(right, right)

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        """Return a random label (all labels, tied) and gold's most frequent one."""
        labels = tuple(sorted(set(right) - {None}))
        return {"random label": (labels,) * len(items), **self._frequent(right, items)}

    def _frequent(self, right: Sequence[Any], items: Sequence[str]) -> dict[str, Sequence[Any]]:
        votes = Counter(label for label in right if label is not None)
        frequent = min(votes, key=lambda label: (-votes[label], label))
        return {"most frequent label": ((frequent,),) * len(items)}

    def agreement(self, values: Sequence[Sequence[Any]], number: int, rng: np.random.Generator) -> AgreementEstimates:
        labels = [[None if answer is None else str(answer[0]) for answer in rater] for rater in values]
        return of_labels(labels, number, rng)

    def words(self, answer: Any) -> str:
        labels = answer if isinstance(answer, tuple) else (answer,)  # gold is a label alone
        return ", ".join(self._words(label) for label in labels)

    def _words(self, label: str) -> str:
        return label or "none"


class ChoiceQuestion(LabelQuestion):
    """One of an item's candidates; an empty label means none of them."""

    def metrics(self, name: str) -> tuple[Metric, ...]:
        """Return the accuracy: candidates of different items are no common labels."""
        return super().metrics(name)[:1]

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        return (rows[0][2],)

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        return self._frequent(right, items)


class LabelsQuestion(ChoiceQuestion):
    """A set of labels, right as a whole."""

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        label = rows[0][2]
        return (json.dumps(sorted(json.loads(label))),) if label else None

    def _words(self, label: str) -> str:
        return " and ".join(json.loads(label)) or "none"


class SameQuestion(ScoredQuestion):
    """Marks (1 or 0): whether two texts mean the same."""

    def metrics(self, name: str) -> tuple[Metric, ...]:
        return Metric(name, counted_ap), ItemMetric("accuracy", of_item=same)

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        """Return equal marks, which is random order."""
        return {"random order": (0.0,) * len(items)}

    def agreement(self, values: Sequence[Sequence[Any]], number: int, rng: np.random.Generator) -> AgreementEstimates:
        return of_labels([[None if mark is None else str(mark) for mark in rater] for rater in values], number, rng)


class ClusterQuestion(ScoredQuestion):
    """Clusters, whose names are each rater's own."""

    no_joint = "clusterings have no joint answer: raters' cluster numbers are not comparable"

    def metrics(self, name: str) -> tuple[Metric, ...]:
        return (
            Metric("v_measure", v_measure, smooth=False),
            Metric("ami", ami, smooth=False, least=-1),
            Metric("ari", ari, smooth=False, least=-1),
        )

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        return rows[0][2] or None

    def numbers(self, answers: Sequence[Any], right: Sequence[Any]) -> Floats:
        codes = pd.factorize(pd.Series(answers, dtype=object))[0].astype(np.float64)
        return np.where(codes < 0, math.nan, codes)

    def nearness(self, gold: Floats, answers: Floats) -> Floats:
        """Return the share of the other items that are correctly put together with each item or apart from it."""
        right = (gold[:, None] == gold) == (answers[:, None] == answers)
        share: Floats = (right.sum(axis=1) - 1) / (len(gold) - 1)
        return share

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        """Return one cluster an item, which the V-measure rewards, and gold's number of clusters at random."""
        drawn = rng.integers(0, len(set(right) - {None}), len(items))
        return {"one cluster an item": tuple(items), "random clusters": tuple(map(str, drawn))}

    def agreement(self, values: Sequence[Sequence[Any]], number: int, rng: np.random.Generator) -> AgreementEstimates:
        columns = [self.numbers(rater, ()) for rater in values]
        return {"ARI": (pairwise(ari, columns, number, rng, smooth=False), JACKKNIFE)}

    def words(self, answer: Any) -> str:
        return str(answer)


class SummaryQuestion(ScoredQuestion):
    """Numbers of several candidates of an item, whose correlation with gold is the item's value."""

    def metrics(self, name: str) -> tuple[Metric, ...]:
        return (RowMetric(name, of_rows=rho_of_rows, least=-1),)

    def answer(self, rows: Sequence[Row], candidates: tuple[str, ...]) -> Any:
        by_candidate = {row[0]: row[1] for row in rows}
        values = np.array([by_candidate.get(candidate, math.nan) for candidate in candidates], np.float64)
        return values if len(values) and np.isfinite(values).all() else None

    def agreement(self, values: Sequence[Sequence[Any]], number: int, rng: np.random.Generator) -> AgreementEstimates:
        return within_items(values, number, rng)

    def words(self, answer: Any) -> str:
        return ", ".join(f"{number:g}" for number in answer.tolist())


class SearchQuestion(SummaryQuestion):
    """Grades, marks or ranks of an item's candidates: more is better."""

    def metrics(self, name: str) -> tuple[Metric, ...]:
        of_ranking = {"map": ap_of_rows, "ndcg_at_10": ndcg_of_rows, "mrr_at_10": rr_of_rows}
        of_ranking["map (scikit-learn)"] = sklearn_of_rows
        main = "ndcg_at_10" if name.startswith("ndcg") else "map"
        first = RowMetric(name, of_rows=of_ranking.pop(main))
        return first, *(RowMetric(metric, of_rows=of_rows) for metric, of_rows in of_ranking.items())

    def trivial(self, right: Sequence[Any], items: Sequence[str], rng: np.random.Generator) -> AnswersByName:
        """Return equal grades, which is random order."""
        return {"random order": tuple(None if answer is None else np.zeros(len(answer)) for answer in right)}


def codes_of(right: Sequence[Any], labels: Sequence[str | None]) -> Floats:
    """Return labels as numbers, the same for gold and all scorers; labels that are never right come last."""
    right_labels = sorted({label for label in right if label is not None})
    never_right = sorted({label for label in labels if label is not None} - set(right_labels))
    codes = {label: float(number) for number, label in enumerate([*right_labels, *never_right])}
    return np.array([math.nan if label is None else codes[label] for label in labels])


QUESTIONS: Mapping[str, ScoredQuestion] = {
    "score": ScoredQuestion(),
    "label": LabelQuestion(),
    "labels": LabelsQuestion(),
    "same": SameQuestion(),
    "cluster": ClusterQuestion(),
    **dict.fromkeys(("graded", "binary", "ranked"), SearchQuestion()),
    "choice": ChoiceQuestion(),
}


def question_of(form: str, *, candidates: bool = False) -> ScoredQuestion:
    """Return the question of a form of answers.

    `candidates` is true if each item has several texts, as a source has summaries. Raises ValueError for an unknown
    form.
    """
    if form not in QUESTIONS:
        raise ValueError(f"unknown kind of question {form!r}; known: {', '.join(QUESTIONS)}")
    return SummaryQuestion() if candidates and form == "score" else QUESTIONS[form]
