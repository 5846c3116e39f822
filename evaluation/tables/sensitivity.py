"""Sensitivity of scores to the threshold and to ratings: other decisions applied to existing scores.

Scores of transformations that were left out are unknown: if other decisions would accept them, the axis and the total
are NaN, and the reason says how to compute them. Other ratings are resampled, and the rule decides again on each
resample (`verdicts.rules`, `statistics.intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.records import Summary, Verdict
from annotation.statistics.summaries import Design, compact
from annotation.verdicts.rules import decide, marks_of, outcomes, short
from evaluation.tables.scores import axis_means, counting_scores, failures, paired_scores
from plumbline.statistics.estimates import Floats, percentiles, stream
from plumbline.statistics.group_sequential import p_above
from plumbline.statistics.intervals import (
    bounded,
    effective_raters,
    over_pairs,
    over_pairs_and_raters,
)
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


_AT_ONCE = 2**21  # numbers drawn at a time
Bools = NDArray[np.bool_]
_Ends = tuple[Floats, Floats, Floats]  # means, lower and upper ends
#: Maps raters drawn (resamples by raters) and random numbers (resamples by pairs) to one question's means and ends.
_Resampled = Callable[[NDArray[np.int64], Floats], _Ends]


def resampled_acceptance(
    pairs: pd.DataFrame,
    ratings: pd.DataFrame,
    verdicts: Sequence[Verdict],
    design: Design,
    *,
    seed: int,
    n_resamples: int = 1000,
) -> pd.DataFrame:
    """Return each scope's acceptance in each resample: a row a resample, a bool column a `Scope`.

    `pairs` are the sample's (`plumbline.records.Pair`), `ratings` those behind the verdicts (`verdicts.counted.basis`).
    Pairs of each group with its own verdict are drawn with replacement. If the study treats raters as a sample, too
    (`pairs_and_raters`), they are drawn as well, once for all groups (the pigeonhole bootstrap: Owen 2007, Ann. Appl.
    Stat. 1, 386-411). The numbers of pairs and ratings, and AC2 if the rule needs it, are not resampled: verdicts that
    lack these, or wait for a check of their raters, are accepted in no resample. Each group has its own random
    numbers, by `seed` and its name.
    """
    facts, names = pairs.set_index("pair_id"), ("pool", "language", "task_type")
    rated = compact(ratings.assign(**{name: ratings["pair_id"].map(facts[name]) for name in names}))
    n_raters = int(rated["rater_id"].max()) + 1 if len(rated) else 0
    raters = stream(seed, "raters").integers(0, max(n_raters, 1), size=(n_resamples, n_raters))
    accepted = {}
    for group in dict.fromkeys(map(_group, verdicts)):
        first = next(verdict for verdict in verdicts if _group(verdict) == group)
        of_group = rated[np.logical_and.reduce([rated[name] == value for name, value in group])]
        rng = stream(seed, "pairs", *(value for _, value in group))
        accepted[group] = _accepted(of_group, first, design, raters, rng)
    columns: dict[object, Bools] = {}
    for verdict in verdicts:  # of several on one scope the strictest counts
        scope = scope_of(verdict)
        columns[scope] = columns.get(scope, np.ones(n_resamples, np.bool_)) & accepted[_group(verdict)]
    table = pd.DataFrame(dict(enumerate(columns.values())))
    table.columns = pd.Index(list(columns), tupleize_cols=False)
    return table


def _group(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return the common properties of a verdict's ratings, by its scope."""
    parts = [("pool", verdict.pool)]
    if verdict.scope != "transformation":
        parts.append(("language", verdict.language))
    if verdict.scope == "task":
        parts.append(("task_type", verdict.task_type))
    return tuple(parts)


def _accepted(
    ratings: pd.DataFrame, verdict: Verdict, design: Design, raters: NDArray[np.int64], rng: np.random.Generator
) -> Bools:
    """Return the acceptance of each resample of one group's ratings, with the `raters` drawn (resamples by raters)."""
    n_resamples = len(raters)
    if ratings.empty or verdict.decision_unchecked or not verdict.questions or _lacks(verdict, design):
        return np.zeros(n_resamples, np.bool_)
    by_question = [
        ratings[ratings["question"] == summary.question] for summary in verdict.questions if summary.kind == "rating"
    ]
    size = max(len(part) for part in by_question)
    rows, n_pairs = max(1, _AT_ONCE // size), ratings["pair_id"].nunique()
    ends_of = [_after_blocks(part, design, verdict) if verdict.blocks else _ends(part, design) for part in by_question]
    parts = []
    for start in range(0, n_resamples, rows):
        drawn = raters[start : start + rows]
        # The same random numbers for each question, so that questions with the same pairs draw the same ones.
        where = rng.random((len(drawn), n_pairs))
        ends = (of_question(drawn, where) for of_question in ends_of)
        parts.append(np.logical_and.reduce([outcomes(*end, short("", design.rule)) == "accepted" for end in ends]))
    return np.concatenate(parts)


def _lacks(verdict: Verdict, design: Design) -> bool:
    """Return whether the rule would leave the verdict undecided whatever the ratings' means."""
    rated = [summary for summary in verdict.questions if summary.kind == "rating"]
    best = [_with_mean(summary, float(design.asked(summary.question).scale[-1])) for summary in rated]
    lenient = design.rule.model_copy(update={"threshold": -math.inf})
    return decide(best, verdict.n_pairs, lenient)[0] != "accepted"


def _with_mean(summary: Summary, mean: float) -> Summary:
    return summary.model_copy(update={"mean": mean, "low": mean, "high": mean})


def _ends(ratings: pd.DataFrame, design: Design) -> _Resampled:
    """Return a function that computes one question's means and the rule's intervals in resamples."""
    from scipy import sparse  # noqa: PLC0415 (who only looks at pages goes without)

    pair, names = pd.factorize(ratings["pair_id"], sort=True)
    rater, scale = ratings["rater_id"].to_numpy(), _scale_of(ratings, design)
    values_and_ones = ratings["value"].to_numpy(np.float64), np.ones(len(ratings))
    of_pairs = [np.bincount(pair, weights).astype(np.float64) for weights in values_and_ones]

    def over_drawn_pairs(_: NDArray[np.int64], where: Floats) -> _Ends:
        order = _places(where, len(names))
        sums, counts = (numbers[order] for numbers in of_pairs)
        mean = bounded(over_pairs(sums, counts), sums, counts, scale)
        return mean.value, mean.low, mean.high

    def over_drawn_raters_too(raters: NDArray[np.int64], where: Floats) -> _Ends:
        shape, order = (raters.shape[1], len(names)), _places(where, len(names))
        tables = [sparse.csr_array((weights, (rater, pair)), shape) for weights in values_and_ones]
        chosen, taken = _times(raters, shape[0]), _times(order, shape[1])
        by_pair = [np.take_along_axis(np.asarray(chosen @ table), order, axis=1) for table in tables]
        by_rater = [np.take_along_axis(np.asarray(taken @ table.T), raters, axis=1) for table in tables]
        with np.errstate(invalid="ignore", divide="ignore"):  # if no drawn rater rated any of these pairs
            mean = over_pairs_and_raters(*by_pair, *by_rater)
            mean = bounded(mean, by_pair[0], by_pair[1], scale, effective_raters(by_rater[1]))
            return mean.value, mean.low, mean.high

    return over_drawn_pairs if design.rule.interval == "pairs" else over_drawn_raters_too


def _after_blocks(ratings: pd.DataFrame, design: Design, verdict: Verdict) -> _Resampled:
    """Return the same by the last look: an end is at the threshold if it decides, else at the scale's end."""
    done, (bottom, top) = ratings.groupby("turn")["value"].mean().to_numpy(np.float64), _scale_of(ratings, design)
    level, threshold = verdict.looks[-1].level, design.rule.threshold
    beyond = np.nextafter(threshold, -math.inf)

    def ends(_: NDArray[np.int64], where: Floats) -> _Ends:
        drawn = done[_places(where, len(done))]
        low = np.where(p_above(drawn, threshold, bottom) <= level, threshold, bottom)
        high = np.where(p_above(-drawn, -threshold, -top) <= level, beyond, top)
        return drawn.mean(axis=1), low, high

    return ends


def _scale_of(ratings: pd.DataFrame, design: Design) -> tuple[float, float]:
    """Return the ends of the scale of the ratings' question."""
    points = design.asked(str(ratings["question"].iat[0])).scale
    return float(points[0]), float(points[-1])


def _places(where: Floats, n: int) -> NDArray[np.int64]:
    """Return numbers from 0 to n - 1, resamples by n."""
    return (where[:, :n] * n).astype(np.int64)


def _times(drawn: NDArray[np.int64], n: int) -> Floats:
    """Return how often each was drawn, resamples by n."""
    return np.array([np.bincount(row, minlength=n) for row in drawn], dtype=np.float64)


STEP = 0.25
_NOTHING = "no part of it is accepted"
UNSCORED = "has no scores (run `plumbline evaluate --include-rejected`)"
_UNDEFINED = 0.025  # a larger share of undefined resamples would be a whole tail of the interval


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


def acceptance_table(verdicts: Sequence[Verdict], accepted: pd.DataFrame) -> pd.DataFrame:
    """Return each verdict's certainty: the share of resamples of the ratings that accept its scope.

    `accepted` are the columns of `resampled_acceptance`. Columns: transformation, language,
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
    """Return axes and totals with their uncertainty from verdicts: a row for each model x axis or total.

    Totals are computed from the accepted scopes of each resample of the ratings (`accepted`, as in `acceptance_table`);
    the scores themselves do not vary. Columns: model, name, value (by the actual verdicts), low, high (95% percentile
    interval), n_resamples, n_defined (with a value), reason, simulated, rules_fixed. There is no interval if more than
    2.5% of the resamples, a whole tail, have no value.
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


def _interval(values: np.ndarray, undefined: str) -> dict[str, object]:
    """Return the percentile interval of resamples, if it is defined."""
    defined = values[np.isfinite(values)]
    row: dict[str, object] = {"n_defined": len(defined), "reason": undefined}
    if len(values) - len(defined) > _UNDEFINED * len(values):
        return row | {"low": np.nan, "high": np.nan, "reason": f"no interval: {undefined}"}
    low, high = percentiles(defined)
    return row | {"low": low, "high": high}


def _undefined(why: Sequence[str], times: np.ndarray, n_resamples: int) -> str:
    """Return the reasons of resamples without a value, each with its share."""
    counts: dict[str, int] = {}
    for reason, count in zip(why, times, strict=True):
        if reason:
            counts[reason] = counts.get(reason, 0) + int(count)
    return "; ".join(f"in {count / n_resamples:.1%} of resamples {reason}" for reason, count in counts.items())


def _at(rule: AcceptanceSpec, threshold: float) -> AcceptanceSpec:
    return rule.model_copy(update={"threshold": threshold})


def _why(name: str) -> str:
    return f"{name}_reason"
