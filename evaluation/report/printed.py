"""What `plumbline evaluate` prints: the main tables of the report on scores."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from evaluation.display import short_names
from evaluation.records import EvaluationRecords
from evaluation.report import paper_tables
from evaluation.report.paper_tables import PaperResults
from evaluation.tables.datasets import drift_by_quality, drift_correlations

_SIMULATED = "The verdicts rest on SIMULATED ratings: these numbers measure nothing."


def report(records: EvaluationRecords, verdicts: Sequence[Verdict]) -> str:
    """Return the command's whole output: axes, transformations, data sets, units left out, and drift."""
    study, scores, drift = records.study, records.scores, records.drift
    short = short_names({*scores["model"], *drift["model"]})
    head = [f"Evaluation of {study.name!r}, protocol {study.evaluation.protocol!r}; scores times 100."]
    head += [_SIMULATED] if any(verdict.simulated for verdict in verdicts) else []
    parts = ["\n".join([*head, *late_lines(verdicts)])]
    parts.append(scores_text(scores.assign(model=scores["model"].map(short)), verdicts))
    if (ratings := records.sample_ratings) is not None:
        parts.append(_drift(records, drift.assign(model=drift["model"].map(short)), ratings))
    return "\n\n".join(parts)


def scores_text(scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> str:
    """Return the tables of scores: axes, transformations, data sets, and units left out."""
    results = PaperResults(scores, verdicts, (), seed=0)  # nothing here is resampled
    exhibits = [paper_tables.axes(results), paper_tables.transformations(results)]
    if (scores["status"] == "included_rejected").any():
        exhibits.append(paper_tables.axes(results, include_rejected=True))
        exhibits.append(paper_tables.transformations(results, include_rejected=True))
    exhibits += paper_tables.datasets(results)
    lines = ["Left out, failed, or included despite the verdict, with reasons:"]
    lines += [f"  {line}" for line in paper_tables.left_out_lines(scores) or ["nothing"]]
    return "\n\n".join([*(table.text() for table in exhibits), "\n".join(lines)])


def _drift(records: EvaluationRecords, drift: pd.DataFrame, ratings: pd.DataFrame) -> str:
    study, question = records.study, records.question
    if not question:
        return "Drift (1 - cos) cannot be compared with ratings: no question of the rubric has a scale"
    frame = drift_by_quality(records.sample, ratings, drift, per_pair=study.raters.per_pair, question=question)
    if frame.empty:
        return "no drift was computed" if drift.empty else "no pair has a drift and a rating that counts"
    return paper_tables.drift(drift_correlations(frame, study.sample.seed), question).text()
