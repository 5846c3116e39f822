"""What verdicts are about, and what each data set needs of them: by this the tables ask "what if".

The gate (`evaluation.gate`) decides what is scored. Here nothing is decided: other decisions than those that were
reached (at another threshold, from resampled ratings) are laid over scores that exist.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.judged import together
from annotation.verdicts.rules import decide
from plumbline.study.campaign import AcceptanceSpec
from plumbline.transformations import ORIGINAL

REFUSALS = ("rejected", "undecided")  # with which the gate's reasons begin where a verdict refuses


class Scope(NamedTuple):
    """What one verdict is about; `task_type` is empty where it is for all tasks."""

    transformation: str
    language: str
    task_type: str


def scope_of(verdict: Verdict) -> Scope:
    """The scope of a verdict."""
    return Scope(verdict.transformation, verdict.language, verdict.task_type)


def decision_at(verdict: Verdict, rule: AcceptanceSpec) -> str:
    """What a verdict's own summaries of ratings decide by another rule of the same kind (`verdicts.rules.decide`).

    The rules may differ in their threshold; means and intervals do not depend on it. Undecided without summaries, where
    its raters are to be looked at, and where judges decide with people and are refused.
    """
    if verdict.decision_unchecked or not verdict.questions or any(one.reason for one in verdict.judged):
        return "undecided"
    if verdict.judged:
        return together(verdict, verdict.judged, rule)[0]
    return decide(verdict.questions, verdict.n_pairs, rule)[0]


def accepted_scopes(verdicts: Sequence[Verdict], decisions: Sequence[str]) -> frozenset[Scope]:
    """The scopes that are accepted; of several verdicts on one the strictest holds, as in the gate."""
    refused = {scope_of(v) for v, decision in zip(verdicts, decisions, strict=True) if decision != "accepted"}
    return frozenset(map(scope_of, verdicts)) - refused


def needs(scores: pd.DataFrame, scopes: Collection[Scope]) -> pd.DataFrame:
    """What each transformed data set needs: a row for each data set x transformation that verdicts let in or keep out.

    `scores` holds `plumbline.records.Score` rows. Columns: dataset, transformation, scopes (frozenset: all must be
    accepted), scored (whether it has scores: it was evaluated, or included although refused). Without those that no
    verdict could let in: refused for another reason (outputs are missing, or of a language that nobody rated).
    """
    changed = scores[scores["transformation"] != ORIGINAL]
    refused = changed["reason"].str.split(":").str[0].isin(REFUSALS)
    changed = changed[(changed["status"] == "evaluated") | refused]
    rows = []
    for (dataset, transformation), part in changed.groupby(["dataset", "transformation"], sort=False):
        first = part.iloc[0]
        tasks = ("", first["task_type"])
        by_language = [
            [s for s in scopes if s.transformation == transformation and s.language == code and s.task_type in tasks]
            for code in first["language"].split(", ")
        ]
        if all(by_language):
            needed = frozenset(scope for found in by_language for scope in found)
            scored = bool((part["status"] != "left_out").all())
            rows.append({"dataset": dataset, "transformation": transformation, "scopes": needed, "scored": scored})
    return pd.DataFrame(rows, columns=["dataset", "transformation", "scopes", "scored"])
