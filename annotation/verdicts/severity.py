"""Means of verdicts adjusted for raters' severity: if raters rate different pairs, strict ones move the means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotation.ratings.ratings import Dealt
from annotation.records import Summary, Verdict
from annotation.sampling.queues import SCOPES
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from annotation.verdicts.rules import decide, rules_for
from annotation.verdicts.tables import number, scoped
from annotation.verdicts.verdicts import sample_frame
from plumbline.records import Pair
from plumbline.scales import EQUAL
from plumbline.statistics.severity import severity

MOST_RATERS = 400  # with more, the model takes minutes


_MEANS = ["transformation", "language", "task_type", "question", "plain", "adjusted", "decision", "adjusted_decision"]


def adjusted_means(
    pairs: Sequence[Pair], ratings: pd.DataFrame, design: Design, verdicts: Sequence[Verdict], dealt: Dealt | None
) -> pd.DataFrame:
    """Return a row for each verdict and rated question: its mean, and that as if every rater had rated every pair.

    Means are by `plumbline.statistics.severity`, one model for each question, of the verdicts' ratings. `pairs` are the
    sample's, `ratings` those that count; `dealt` is as for `counted.basis`. The adjusted decision is the rule's if each
    mean, with its interval over pairs, is moved to the adjusted one.
    """
    sample, key = sample_frame(pairs), SCOPES[design.rule.scope]
    rests = basis(sample, ratings, design, dealt).ratings
    places = pd.Series(["\n".join(row) for row in sample[key].itertuples(index=False)], index=sample["pair_id"])
    by_question = {
        question: _severity(of_question, places)
        for question in design.questions
        if design.asked(question).kind == "rating"
        and len(of_question := rests[(rests["question"] == question) & rests["value"].notna()])
    }
    means: list[tuple[object, ...]] = []
    for verdict in verdicts:
        scope_key = "\n".join(str(getattr(verdict, name)) for name in key)
        adjusted = {
            question: frame.loc[[scope_key]].iloc[0]
            for question, frame in by_question.items()
            if scope_key in frame.index
        }
        decisions = _decisions(verdict, design, {name: float(row["adjusted"]) for name, row in adjusted.items()})
        means += [
            (
                *(verdict.transformation, verdict.language, verdict.task_type, name),
                *(row["plain"], row["adjusted"]),
                *decisions,
            )
            for name, row in adjusted.items()
        ]
    return pd.DataFrame(means, columns=_MEANS)


def _severity(ratings: pd.DataFrame, places: pd.Series) -> pd.DataFrame:
    """Return one question's means, a row for each scope; adjusted ones are NaN where there are too many raters."""
    frame = ratings[["pair_id", "rater_id"]].astype(str).assign(value=ratings["value"].to_numpy(np.float64))
    frame["scope_key"] = frame["pair_id"].map(places)
    if frame["rater_id"].nunique() > MOST_RATERS:
        return frame.groupby("scope_key").agg(plain=("value", "mean")).assign(adjusted=math.nan)
    return severity(frame, "scope_key").means


def _decisions(verdict: Verdict, design: Design, adjusted: dict[str, float]) -> tuple[str, str]:
    """Return the rule's decision on a verdict's means, and on the adjusted ones."""
    rules = rules_for(verdict.pool, design.rule)
    moved = [_moved(summary, adjusted.get(summary.question, math.nan)) for summary in verdict.questions]
    plain, now = (decide(summaries, verdict.n_pairs, design.rule, rules)[0] for summaries in (verdict.questions, moved))
    return plain, now


def _moved(summary: Summary, adjusted: float) -> Summary:
    shift = adjusted - summary.mean
    if math.isnan(shift) or abs(shift) < EQUAL:
        return summary
    return summary.model_copy(update={"mean": adjusted, "low": summary.low + shift, "high": summary.high + shift})


def turned_lines(adjusted: pd.DataFrame) -> list[str]:
    """Return a line, to be listed as a doubt, on the verdicts that adjusted means would change."""
    turned = adjusted[adjusted["decision"] != adjusted["adjusted_decision"]]
    lines = []
    for (transformation, language, task), rows in turned.groupby(
        ["transformation", "language", "task_type"], sort=False
    ):
        numbers = ", ".join(
            f"{row['question']} {number(row['plain'])}, adjusted {number(row['adjusted'])}"
            for row in rows.to_dict("records")
        )
        decisions = f"{rows['decision'].iloc[0]}, adjusted {rows['adjusted_decision'].iloc[0]}"
        lines.append(f"{scoped(str(transformation), str(language), str(task))}: {decisions} ({numbers})")
    return [f"means adjusted for raters' severity decide differently: {'; '.join(lines)}"] if lines else []
