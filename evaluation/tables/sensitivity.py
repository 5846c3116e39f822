"""Sensitivity of scores to the threshold: other decisions applied to existing scores.

Scores of transformations that were left out are unknown: if other decisions would accept them, the axis and the total
are NaN, and the reason says how to compute them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import decide, marks_of
from evaluation.tables.scores import axis_means, counting_scores, failures, paired_scores
from plumbline.study.campaign import AcceptanceSpec
from plumbline.transformations import ORIGINAL, Axes, in_order

REFUSALS = ("rejected", "undecided")  # first words of the gate's reasons if a verdict does not accept


class Scope(NamedTuple):
    """The scope of one verdict; `task_type` is "" if it is for all tasks."""

    transformation: str
    language: str
    task_type: str


def scope_of(verdict: Verdict) -> Scope:
    """Return a verdict's scope."""
    return Scope(verdict.transformation, verdict.language, verdict.task_type)


def decision_at(verdict: Verdict, rule: AcceptanceSpec) -> str:
    """Return the decision of another rule of the same kind on a verdict's own summaries (`verdicts.rules.decide`).

    The rules may differ in their threshold, on which means and intervals do not depend. The decision is `undecided`
    without summaries, and with raters still to be checked.
    """
    if verdict.decision_unchecked or not verdict.questions:
        return "undecided"
    return decide(verdict.questions, verdict.n_pairs, rule)[0]


def accepted_scopes(verdicts: Sequence[Verdict], decisions: Sequence[str]) -> frozenset[Scope]:
    """Return the accepted scopes; of several verdicts on one scope the strictest counts, as in the gate."""
    refused = {scope_of(v) for v, decision in zip(verdicts, decisions, strict=True) if decision != "accepted"}
    return frozenset(map(scope_of, verdicts)) - refused


def needs(scores: pd.DataFrame, scopes: Collection[Scope]) -> pd.DataFrame:
    """Return what each transformed data set needs: a row for each data set x transformation that verdicts decide on.

    `scores` are `plumbline.records.Score` rows. Columns: dataset, transformation, scopes (frozenset: all must be
    accepted), scored (whether it has scores: evaluated, or included despite the verdict). Data sets left out for
    another reason (outputs are missing, or in a language without ratings) have no row.
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
            needed = frozenset(scope for scopes_of_language in by_language for scope in scopes_of_language)
            scored = bool((part["status"] != "left_out").all())
            rows.append({"dataset": dataset, "transformation": transformation, "scopes": needed, "scored": scored})
    return pd.DataFrame(rows, columns=["dataset", "transformation", "scopes", "scored"])


STEP = 0.25
_NOTHING = "no part of it is accepted"
UNSCORED = "has no scores (run `plumbline evaluate --include-rejected`)"


def thresholds_of(scale: Sequence[float]) -> tuple[float, ...]:
    """Return a rubric's scale in steps of 0.25: HTEB's 1 to 5 (2.4), PTEB's 0 to 5 (3.2.7)."""
    return tuple(np.arange(scale[0], scale[-1] + STEP / 2, STEP).tolist())


def threshold_decisions(verdicts: Sequence[Verdict], rule: AcceptanceSpec, thresholds: Sequence[float]) -> pd.DataFrame:
    """Return the rule's decision on each scope at each threshold (HTEB, 2.4, has only 3).

    Columns: transformation, language, task_type (empty: all), threshold, decision, simulated, rules_fixed.
    """
    rows = [
        {**scope_of(verdict)._asdict(), "threshold": threshold}
        | {"decision": decision_at(verdict, _at(rule, threshold)), **marks_of([verdict])}
        for verdict in verdicts
        for threshold in thresholds
    ]
    return pd.DataFrame(rows, columns=[*Scope._fields, "threshold", "decision", *marks_of(())])


def threshold_table(
    scores: pd.DataFrame,
    verdicts: Sequence[Verdict],
    rule: AcceptanceSpec,
    thresholds: Sequence[float],
) -> pd.DataFrame:
    """Return axes and totals at other thresholds: a row for each threshold x model.

    Columns: threshold, model, original (mean over whole data sets with a counting transformation), the axes, the total
    and `<total>_difference` (points, from the originals of the same items); accepted (counting transformations,
    comma-separated), n_scopes (accepted scopes), reason, simulated, rules_fixed. Scores included despite their verdict
    count if the threshold accepts them.
    """
    ground = _ScoreBasis.of(scores, verdicts)
    marks: dict[str, Any] = marks_of(verdicts)
    parts, totals = [], {}
    for threshold in thresholds:
        decisions = [decision_at(verdict, _at(rule, threshold)) for verdict in verdicts]
        accepted = accepted_scopes(verdicts, decisions)
        if accepted not in totals:  # neighbouring thresholds mostly accept the same
            totals[accepted] = ground.totals(accepted)
        part = totals[accepted].assign(threshold=threshold, n_scopes=len(accepted), **marks)
        parts.append(part.assign(accepted=", ".join(ground.counting(accepted))))
    axes = ground.axes
    columns = ["threshold", "model", "original", *axes.names, f"{axes.total}_difference"]
    table = pd.concat(parts, ignore_index=True)
    return table[[*columns, "accepted", "n_scopes", "reason", *marks_of(())]]


@dataclass(frozen=True)
class _ScoreBasis:
    """All scores that decisions can accept (rows of `paired_scores`, with their `unit`), and the scopes of units.

    `failures` are the reasons of failed models; `axis_of` is each transformation's axis.
    """

    axes: Axes
    axis_of: Mapping[str, str]

    models: tuple[str, ...]
    failures: Mapping[str, str]
    paired: pd.DataFrame
    units: pd.DataFrame

    @classmethod
    def of(cls, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> _ScoreBasis:
        units = needs(scores, {scope_of(verdict) for verdict in verdicts})
        units = units.assign(unit=np.arange(len(units)))
        paired = paired_scores(counting_scores(scores, include_rejected=True), scores)
        paired = paired.merge(units[["dataset", "transformation", "unit"]], on=["dataset", "transformation"])
        axis_of = dict(zip(scores["transformation"], scores["axis"], strict=True))
        models = tuple(scores["model"].drop_duplicates())
        return cls(Axes.of(scores), axis_of, models, failures(scores), paired, units)

    def counting(self, accepted: Collection[Scope]) -> list[str]:
        """Return the transformations that decisions accept, in the method's order."""
        return in_order(self._let_in(accepted)["transformation"].unique())

    def totals(self, accepted: Collection[Scope]) -> pd.DataFrame:
        """Return a row a model: original, axes, total, total_difference, a reason for each (`_why`) and one for all."""
        units = self._let_in(accepted)
        paired = self.paired[self.paired["unit"].isin(units["unit"])]
        total = self.axes.total
        table = axis_means(paired, "score", self.axes).reindex(self.models)
        moved = axis_means(paired, "difference", self.axes).reindex(self.models)
        table[f"{total}_difference"] = moved[total]
        on_total = paired[paired["axis"].isin(self.axes.of_total)]
        first = (on_total if len(on_total) else paired).drop_duplicates(["model", "dataset"])
        table["original"] = first.groupby("model")["original_all"].mean(skipna=False).reindex(self.models)
        lacking = set(units.loc[~units["scored"].astype(bool), "transformation"])
        whole = {}
        for axis in self.axes.shown:
            names = in_order(name for name in self.axis_of if name in lacking and self.axis_of[name] == axis)
            reason = f"{', '.join(names)} would be accepted but {UNSCORED}" if names else ""
            if names:
                of_total = [total, f"{total}_difference"] if axis in self.axes.of_total else []
                table[[axis, *of_total]] = np.nan
            empty = table[axis].isna() & (reason == "")
            table[_why(axis)] = np.where(empty, _NOTHING, reason)
            whole[axis] = np.where(empty, f"{axis}: {_NOTHING}", f"{axis}: {reason}" if reason else "")
        table["reason"] = _joined(whole.values())
        table[_why(total)] = _joined(whole[axis] for axis in self.axes.of_total)
        for model, why in self.failures.items():
            table.loc[model, [*map(_why, self.axes.names), "reason"]] = why
        return table.rename_axis("model").reset_index()

    def _let_in(self, accepted: Collection[Scope]) -> pd.DataFrame:
        enough = frozenset(accepted)
        return self.units[np.array([needed <= enough for needed in self.units["scopes"]], np.bool_)]


def _joined(reasons: Iterable[np.ndarray]) -> list[str]:
    """Return several axes' reasons joined, for each model."""
    return ["; ".join(filter(None, parts)) for parts in zip(*reasons, strict=True)]


def _at(rule: AcceptanceSpec, threshold: float) -> AcceptanceSpec:
    return rule.model_copy(update={"threshold": threshold})


def _why(name: str) -> str:
    return f"{name}_reason"
