"""How well a model would know which queries to leave unanswered, before and after a transformation.

Where a query has several similarities (retrieval, reranking), its confidence can be had of them. The same queries'
originals stand beside: a threshold that is set on these tells whether the model notices that a transformation lost it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pandas as pd
from pydantic import Field

from evaluation.measures.rows import Fields, MeasureRow, read_rows
from evaluation.models.encoder import Encoder
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.queries import OF_QUERY, Queries, QueryScores
from evaluation.units import Model, ScoreUnit
from generation.datasets.dataset import Dataset
from plumbline.identity import identity
from plumbline.records import Number
from plumbline.statistics.abstention import CONFIDENCES, Abstention, abstention, nauc_error
from plumbline.statistics.seeding import stream
from plumbline.study import Study
from plumbline.study.datasets import TaskType
from plumbline.transformations import ORIGINAL

FILE = "abstention.parquet"
Curve = tuple[float, ...]
NOT_OF_PAIRS = "its metric is of two rankings, not of a query: a query has no score to abstain from"
NOT_OF_OTHERS = "abstention is of searches (retrieval, reranking), where a query has several similarities"


class AbstentionRow(MeasureRow):
    """One model on one data set, original or transformed (`abstention.parquet`); see `statistics.abstention`.

    Lists have ten places: all queries answered, nine in ten, and so on to one in ten. Of several subsets nAUC, curves
    and oracle are means, as mteb has scores; thresholds are of all queries together.
    """

    metric: str = Field(description="mteb's name of the main metric")
    n: int = Field(description="queries")
    oracle: Curve = Field(description="mean metric of the queries with the largest")
    oracle_original: Curve = Field(description="the same of the original texts of these queries")
    nauc_max: Number = Field(description="nAUC by the largest similarity")
    nauc_error_max: Number = Field(default=math.nan, description="standard error of nauc_max over queries (bootstrap)")
    nauc_original_max: Number = Field(description="the same of the original texts of these queries")
    curve_max: Curve = Field(description="mean metric of the queries with the largest confidence")
    curve_original_max: Curve = Field(description="the same of the original texts")
    threshold_max: Curve = Field(description="the least confidence among these queries' original texts")
    answered_max: Curve = Field(description="share of queries at or above that threshold")
    kept_max: Curve = Field(description="mean metric of these; NaN where there is none")
    nauc_std: Number = Field(description="nAUC by the similarities' standard deviation, and so on as above")
    nauc_error_std: Number = Field(default=math.nan, description="as above")
    nauc_original_std: Number = Field(description="as above")
    curve_std: Curve = Field(description="as above")
    curve_original_std: Curve = Field(description="as above")
    threshold_std: Curve = Field(description="as above")
    answered_std: Curve = Field(description="as above")
    kept_std: Curve = Field(description="as above")
    nauc_diff1: Number = Field(description="nAUC by the largest similarity less the second, and so on as above")
    nauc_error_diff1: Number = Field(default=math.nan, description="as above")
    nauc_original_diff1: Number = Field(description="as above")
    curve_diff1: Curve = Field(description="as above")
    curve_original_diff1: Curve = Field(description="as above")
    threshold_diff1: Curve = Field(description="as above")
    answered_diff1: Curve = Field(description="as above")
    kept_diff1: Curve = Field(description="as above")
    reason: str = Field(description="why there is no nAUC; empty otherwise")


class Abstaining:
    """How it is measured (an `evaluation.measures.rows.Measure`)."""

    record = AbstentionRow
    file = FILE
    originals = True

    def __init__(self, study: Study) -> None:
        self._study = study
        self._last: tuple[Encoder, str, frozenset[str], list[QueryScores]] | None = (
            None  # originals that were scored last
        )

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """That of the score, and of what errors are drawn by."""
        return identity("abstention-v2", unit.unit_id(self._study, model), self._study.sample.seed)

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
                f"nauc_error_{name}": _error(after, number, stream(self._study.sample.seed, "nauc", unit.name)),
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
        evaluation = self._study.evaluation
        scoring.evaluate_task(dataset, encoder, evaluation.protocol, evaluation.batch_size, prepare=watch.on)
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


def read_abstention(study: Study) -> pd.DataFrame:
    """The rows of `AbstentionRow`; none where there is no file yet, or the study does not ask for it."""
    if not study.evaluation.abstention:
        return pd.DataFrame(columns=list(AbstentionRow.model_fields))
    return read_rows(study, FILE, AbstentionRow)
