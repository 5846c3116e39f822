"""How far scores hang on the threshold and on the ratings: other decisions laid over the scores that there are.

Scores of what the gate left out are not known: where other decisions would let it in, the axis and the total are
NaN, and the reason says how to have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.marks import marks_of
from evaluation.tables.pairs import counting_scores, paired_scores
from evaluation.tables.resampling import Scope, accepted_scopes, decision_at, needs, scope_of
from evaluation.tables.scores import axis_means, failures
from plumbline.statistics.estimates import percentiles
from plumbline.study.campaign import AcceptanceSpec
from plumbline.transformations import Axes, in_order

STEP = 0.25
_NOTHING = "nothing of it is accepted"
UNSCORED = "has no scores, which `evaluation.run --include-rejected` makes"
_UNDEFINED = 0.025  # more undefined resamples than this would be a whole tail of the interval


def thresholds_of(scale: Sequence[int]) -> tuple[float, ...]:
    """A rubric's scale in steps of 0.25: HTEB's 1 to 5 (2.4), PTEB's 0 to 5 (3.2.7)."""
    return tuple(np.arange(scale[0], scale[-1] + STEP / 2, STEP).tolist())


def threshold_decisions(verdicts: Sequence[Verdict], rule: AcceptanceSpec, thresholds: Sequence[float]) -> pd.DataFrame:
    """What the study's rule would decide about each scope at each threshold (HTEB, 2.4, has 3 alone).

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
    """Axes and totals as they would be at other thresholds: a row for each threshold x model.

    Columns: threshold, model, original (mean over the whole data sets of which a transformation counts), the axes,
    the total and `<total>_difference` (points, from the originals of the same items); accepted (the transformations
    that count, comma-separated), n_scopes (accepted scopes), reason, simulated, rules_fixed. What was included
    although refused counts where the threshold accepts it.
    """
    ground = _ScoreBasis.of(scores, verdicts)
    marks: dict[str, Any] = marks_of(verdicts)
    parts, totals = [], {}
    for threshold in thresholds:
        decisions = [decision_at(verdict, _at(rule, threshold)) for verdict in verdicts]
        accepted = accepted_scopes(verdicts, decisions)
        if accepted not in totals:  # neighbouring thresholds mostly let in the same
            totals[accepted] = ground.totals(accepted)
        part = totals[accepted].assign(threshold=threshold, n_scopes=len(accepted), **marks)
        parts.append(part.assign(accepted=", ".join(ground.counting(accepted))))
    axes = ground.axes
    columns = ["threshold", "model", "original", *axes.names, f"{axes.total}_difference"]
    table = pd.concat(parts, ignore_index=True)
    return table[[*columns, "accepted", "n_scopes", "reason", *marks_of(())]]


def acceptance_table(verdicts: Sequence[Verdict], accepted: pd.DataFrame) -> pd.DataFrame:
    """How sure each verdict is: the share of resamples of the ratings in which its scope is accepted.

    `accepted` are the columns of `statistics.resampling.resampled_acceptance`. Columns: transformation, language,
    task_type, decision, share, n_resamples, simulated, rules_fixed.
    """
    rows = [
        {**scope_of(verdict)._asdict(), "decision": verdict.decision}
        | {"share": float(accepted[scope_of(verdict)].mean()), "n_resamples": len(accepted)}
        | {**marks_of([verdict])}
        for verdict in verdicts
    ]
    return pd.DataFrame(rows, columns=[*Scope._fields, "decision", "share", "n_resamples", *marks_of(())])


def uncertainty_table(scores: pd.DataFrame, verdicts: Sequence[Verdict], accepted: pd.DataFrame) -> pd.DataFrame:
    """Axes and totals with the uncertainty that verdicts bring: a row for each model x axis or total.

    In each resample of the ratings (`accepted`, as in `acceptance_table`) what is accepted then makes the totals;
    the scores themselves do not vary. Columns: model, name, value (by the verdicts as they are), low, high (95%
    percentile interval), n_resamples, n_defined (those that give a value), reason, simulated, rules_fixed. There is no
    interval where more than 2.5% of the resamples, a whole tail, give no value.
    """
    ground = _ScoreBasis.of(scores, verdicts)
    marks: dict[str, Any] = marks_of(verdicts)
    now = ground.totals(accepted_scopes(verdicts, [verdict.decision for verdict in verdicts])).set_index("model")
    patterns, pattern_of, times = np.unique(accepted.to_numpy(bool), axis=0, return_inverse=True, return_counts=True)
    totals = [ground.totals(frozenset(accepted.columns[pattern])).set_index("model") for pattern in patterns]
    rows = []
    for model in now.index:
        for name in ground.axes.names:
            values = np.array([table.at[model, name] for table in totals], dtype=np.float64)
            why = [str(table.at[model, _why(name)]) for table in totals]
            row = {"model": model, "name": name, "value": now.at[model, name], "n_resamples": len(accepted)}
            row |= _interval(values[pattern_of.ravel()], _undefined(why, times, len(accepted)))
            if bool(now[name].isna().loc[model]) and not row["reason"]:
                row["reason"] = now.at[model, _why(name)]
            rows.append({**row, **marks})
    columns = ["model", "name", "value", "low", "high", "n_resamples", "n_defined", "reason", *marks_of(())]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class _ScoreBasis:
    """All scores that decisions can let in (rows of `paired_scores`, with the `unit` of each), and what units need.

    `failures` says why models that failed have none; `axis_of` is each transformation's axis.
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
        """The transformations that decisions let in, in the method's order."""
        return in_order(self._let_in(accepted)["transformation"].unique())

    def totals(self, accepted: Collection[Scope]) -> pd.DataFrame:
        """A row a model: original, axes, total, total_difference, a reason for each (`_why`) and one for all."""
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
            reason = f"{', '.join(names)} would be accepted and {UNSCORED}" if names else ""
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
    """The reasons of several axes as one, for each model."""
    return ["; ".join(filter(None, parts)) for parts in zip(*reasons, strict=True)]


def _interval(values: np.ndarray, undefined: str) -> dict[str, object]:
    """The percentile interval of resamples, if it is one."""
    defined = values[np.isfinite(values)]
    row: dict[str, object] = {"n_defined": len(defined), "reason": undefined}
    if len(values) - len(defined) > _UNDEFINED * len(values):
        return row | {"low": np.nan, "high": np.nan, "reason": f"no interval: {undefined}"}
    low, high = percentiles(defined)
    return row | {"low": low, "high": high}


def _undefined(why: Sequence[str], times: np.ndarray, n_resamples: int) -> str:
    """Why resamples give no value, each reason with its share of them."""
    counts: dict[str, int] = {}
    for reason, count in zip(why, times, strict=True):
        if reason:
            counts[reason] = counts.get(reason, 0) + int(count)
    return "; ".join(f"in {count / n_resamples:.1%} of resamples {reason}" for reason, count in counts.items())


def _at(rule: AcceptanceSpec, threshold: float) -> AcceptanceSpec:
    return rule.model_copy(update={"threshold": threshold})


def _why(name: str) -> str:
    return f"{name}_reason"
