"""How well a model would know which queries to leave unanswered, before and after a transformation.

Where a query has several similarities (retrieval, reranking), its confidence can be had of them. The same queries'
originals stand beside: a threshold that is set on these tells whether the model notices that a transformation lost it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np

from evaluation.measures.rows import Fields
from evaluation.models.encoder import Encoder
from evaluation.records import ABSTENTION, AbstentionRow, Curve, MeasureRow
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.queries import OF_QUERY, Queries, QueryScores
from evaluation.units import Model, ScoreUnit
from generation.datasets.dataset import Dataset
from plumbline.identity import identity
from plumbline.statistics.abstention import CONFIDENCES, Abstention, abstention, nauc_error
from plumbline.statistics.estimates import stream
from plumbline.study.datasets import TaskType
from plumbline.study.evaluation import EvaluationSpec
from plumbline.transformations import ORIGINAL

NOT_OF_PAIRS = "its metric is of two rankings, not of a query: a query has no score to abstain from"
NOT_OF_OTHERS = "abstention is of searches (retrieval, reranking), where a query has several similarities"


class Abstaining:
    """How it is measured (an `evaluation.measures.rows.Measure`)."""

    file = ABSTENTION
    originals = True

    def __init__(self, evaluation: EvaluationSpec, seed: int) -> None:
        self._evaluation, self._seed = evaluation, seed
        self._last: tuple[Encoder, str, frozenset[str], list[QueryScores]] | None = (
            None  # originals that were scored last
        )

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """That of the score, and of what errors are drawn by."""
        return identity("abstention-v2", unit.unit_id(self._evaluation.protocol, model), self._seed)

    def blank(self, unit: ScoreUnit) -> Fields | None:
        """NaN with the reason, where a query has no score or no several similarities."""
        task = unit.task
        if METRICS[task] in OF_QUERY:
            return None
        return self._fields(task, 0, {}, NOT_OF_PAIRS if task == "instruction_reranking" else NOT_OF_OTHERS)

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Fields:
        """Curves and thresholds of the unit's queries beside those of their originals."""
        before = self._originals(unit, encoder)
        after = before if unit.transformation == ORIGINAL else self._parts(unit.data(), encoder)
        fields: dict[str, object] = {}
        reasons = []
        for number, name in enumerate(CONFIDENCES):
            curve, original = (_mean(parts, number) for parts in (after, before))
            thresholds = _together(before, number).thresholds
            answered, kept_score = _at(thresholds, after, number)
            fields |= {
                f"nauc_{name}": curve.nauc,
                f"nauc_error_{name}": _error(after, number, stream(self._seed, "nauc", unit.name)),
                f"nauc_original_{name}": original.nauc,
                f"curve_{name}": curve.curve,
                f"curve_original_{name}": original.curve,
                f"threshold_{name}": thresholds,
                f"answered_{name}": answered,
                f"kept_{name}": kept_score,
                "oracle": curve.oracle,
                "oracle_original": original.oracle,
            }
            reasons.append(curve.reason or original.reason)
        n = sum(len(part.metric) for part in after)
        return self._fields(unit.task, n, fields, next(filter(None, reasons), ""))

    def _originals(self, unit: ScoreUnit, encoder: Encoder) -> list[QueryScores]:
        name, lost = unit.name, unit.lost
        if self._last is None or self._last[0] is not encoder or self._last[1:3] != (name, lost):
            self._last = encoder, name, lost, self._parts(unit.original(), encoder)
        return self._last[3]

    def _parts(self, dataset: Dataset, encoder: Encoder) -> list[QueryScores]:
        watch = Queries(METRICS[dataset.task])
        settings = self._evaluation
        scoring.evaluate_task(dataset, encoder, settings.protocol, settings.batch_size, prepare=watch.on)
        return watch.parts

    def _fields(self, task: TaskType, n: int, measured: Fields, reason: str) -> Fields:
        nothing = {
            name: () if field.annotation == Curve else math.nan
            for name, field in AbstentionRow.model_fields.items()
            if name not in MeasureRow.model_fields and (field.annotation == Curve or _is_number(field.annotation))
        }
        return {**nothing, **measured, "metric": METRICS[task], "n": n, "reason": reason}


def _is_number(annotation: object) -> bool:
    return annotation is float or float in get_args(annotation)


def _together(parts: Sequence[QueryScores], number: int) -> Abstention:
    """One confidence (by its place) over the queries of all subsets."""
    sure = [confidence[number] for part in parts for confidence in part.sure]
    return abstention(sure, [value for part in parts for value in part.metric])


def _mean(parts: Sequence[QueryScores], number: int) -> Abstention:
    """The mean over subsets, as mteb averages what it measures of them."""
    curves = [abstention([confidence[number] for confidence in part.sure], part.metric) for part in parts]
    curve, oracle, thresholds = (
        tuple(np.mean([getattr(part, name) for part in curves], axis=0).tolist())
        for name in ("curve", "oracle", "thresholds")
    )
    value = float(np.mean([part.nauc for part in curves]))
    reason = next((part.reason for part in curves if part.reason), "")
    return Abstention(curve, oracle, thresholds, value, sum(part.n for part in curves), reason)


def _error(parts: Sequence[QueryScores], number: int, rng: np.random.Generator) -> float:
    """The standard error of `_mean`'s nAUC: subsets' queries are drawn each by themselves."""
    errors = [nauc_error([confidence[number] for confidence in part.sure], part.metric, rng=rng) for part in parts]
    return math.sqrt(sum(error**2 for error in errors)) / max(len(errors), 1)


def _at(thresholds: Curve, parts: Sequence[QueryScores], number: int) -> tuple[Curve, Curve]:
    """Share of queries that reach each threshold, and their mean metric."""
    sure = np.array([confidence[number] for part in parts for confidence in part.sure])
    metric = np.array([value for part in parts for value in part.metric])
    reached = [sure >= threshold for threshold in thresholds]
    means = [float(metric[some].mean()) if some.any() else math.nan for some in reached]
    return tuple(float(some.mean()) for some in reached), tuple(means)
