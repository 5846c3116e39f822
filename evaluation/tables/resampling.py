"""What verdicts would be had other pairs, and other raters, been drawn: the rule again on resampled ratings.

Nothing of the rule is here: means and intervals come from `statistics.intervals`, decisions from `verdicts.rules`,
which take thousands of campaigns at a time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.records import Summary, Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.judged import together
from annotation.verdicts.rules import decide, outcomes, short
from plumbline.statistics.estimates import Floats
from plumbline.statistics.intervals import (
    bounded,
    confidence_sequence,
    effective_raters,
    holding,
    over_pairs,
    over_pairs_and_raters,
)
from plumbline.statistics.seeding import stream
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
    if verdict.decision_unchecked or not verdict.questions or any(mean.reason for mean in verdict.judged):
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
            needed = frozenset(scope for scopes_of_language in by_language for scope in scopes_of_language)
            scored = bool((part["status"] != "left_out").all())
            rows.append({"dataset": dataset, "transformation": transformation, "scopes": needed, "scored": scored})
    return pd.DataFrame(rows, columns=["dataset", "transformation", "scopes", "scored"])


_AT_ONCE = 2**21  # numbers drawn at a time
Bools = NDArray[np.bool_]
_Ends = tuple[Floats, Floats, Floats]  # means, lower and upper ends


def resampled_acceptance(
    pairs: pd.DataFrame,
    ratings: pd.DataFrame,
    verdicts: Sequence[Verdict],
    design: Design,
    *,
    seed: int,
    n_resamples: int = 1000,
) -> pd.DataFrame:
    """Which scopes are accepted in each resample: a row a resample, a bool column a `Scope`.

    `pairs` are the sample's (`plumbline.records.Pair`), `ratings` those that the verdicts rest on
    (`verdicts.counted.basis`). The pairs of each group that is judged apart are drawn with replacement; where the
    study takes raters for a sample too (`pairs_and_raters`), so are its raters, once for all groups (the pigeonhole
    bootstrap: Owen 2007, Ann. Appl. Stat. 1, 386-411). How many pairs and ratings there are, and AC2 where the rule
    asks for it, stay as they were: verdicts that lack these, or wait for a look at their raters, are accepted in
    none. Each group has its own random numbers, by `seed` and its name.
    """
    facts = pairs.set_index("pair_id")[["pool", "language", "task_type"]]
    rated = ratings.drop(columns="language").merge(facts, left_on="pair_id", right_index=True)
    raters = pd.Index(sorted(ratings["rater_id"].unique()))
    drawn = stream(seed, "raters").integers(0, max(len(raters), 1), size=(n_resamples, len(raters)))
    accepted = {}
    for group in dict.fromkeys(map(_group, verdicts)):
        first = next(verdict for verdict in verdicts if _group(verdict) == group)
        of_group = rated[np.logical_and.reduce([rated[name] == value for name, value in group])]
        rng = stream(seed, "pairs", *(value for _, value in group))
        accepted[group] = _accepted(of_group, first, design, _Raters(raters, drawn), rng)
    columns: dict[object, Bools] = {}
    for verdict in verdicts:  # of several on one scope the strictest holds
        scope = scope_of(verdict)
        columns[scope] = columns.get(scope, np.ones(n_resamples, np.bool_)) & accepted[_group(verdict)]
    table = pd.DataFrame(dict(enumerate(columns.values())))
    table.columns = pd.Index(list(columns), tupleize_cols=False)
    return table


@dataclass(frozen=True)
class _Raters:
    """All raters of the study, and who was drawn in each resample (resamples by raters: their numbers)."""

    names: pd.Index[str]
    drawn: NDArray[np.int64]


def _group(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What the ratings of a verdict have in common, by its scope."""
    parts = [("pool", verdict.pool)]
    if verdict.scope != "transformation":
        parts.append(("language", verdict.language))
    if verdict.scope == "task":
        parts.append(("task_type", verdict.task_type))
    return tuple(parts)


def _accepted(
    ratings: pd.DataFrame, verdict: Verdict, design: Design, raters: _Raters, rng: np.random.Generator
) -> Bools:
    """Whether each resample of one group's ratings is accepted."""
    n_resamples = len(raters.drawn)
    if ratings.empty or verdict.decision_unchecked or not verdict.questions or _lacks(verdict, design):
        return np.zeros(n_resamples, np.bool_)
    by_question = [
        ratings[ratings["question"] == summary.question] for summary in verdict.questions if summary.kind == "rating"
    ]
    size = max(len(part) for part in by_question)
    rows = max(1, _AT_ONCE // size)
    parts = []
    for start in range(0, n_resamples, rows):
        drawn = _Raters(raters.names, raters.drawn[start : start + rows])
        # The same numbers for each question: where these have the same pairs, the same pairs are drawn.
        where = rng.random((len(drawn.drawn), ratings["pair_id"].nunique()))
        ends = (_ends(part, design, drawn, where) for part in by_question)
        parts.append(np.logical_and.reduce([outcomes(*end, short("", design.rule)) == "accepted" for end in ends]))
    return np.concatenate(parts)


def _lacks(verdict: Verdict, design: Design) -> bool:
    """Whether the rule would leave the verdict undecided whatever the ratings' means."""
    rated = [summary for summary in verdict.questions if summary.kind == "rating"]
    best = [_with_mean(summary, float(design.asked(summary.question).scale[-1])) for summary in rated]
    lenient = design.rule.model_copy(update={"threshold": -math.inf})
    return decide(best, verdict.n_pairs, lenient)[0] != "accepted"


def _with_mean(summary: Summary, mean: float) -> Summary:
    return summary.model_copy(update={"mean": mean, "low": mean, "high": mean})


def _ends(ratings: pd.DataFrame, design: Design, raters: _Raters, where: Floats) -> _Ends:
    """Means of one question and the rule's intervals, in each resample."""
    from scipy import sparse  # noqa: PLC0415 (who only looks at pages goes without)

    if design.rule.stop == "anytime":
        return _anytime(ratings, design, where)
    pair, names = pd.factorize(ratings["pair_id"], sort=True)
    scale = _scale_of(ratings, design)
    order, value = _places(where, len(names)), ratings["value"].to_numpy(np.float64)
    if design.rule.interval == "pairs":
        sums, counts = (
            np.bincount(pair, weights).astype(np.float64)[order] for weights in (value, np.ones(len(ratings)))
        )
        mean = over_pairs(sums, counts)
        mean = bounded(mean, sums, counts, scale) if design.bounded else mean
        return mean.value, mean.low, mean.high
    rater = raters.names.get_indexer(pd.Index(ratings["rater_id"]))
    shape = (len(raters.names), len(names))
    tables = [sparse.csr_array((weights, (rater, pair)), shape) for weights in (value, np.ones(len(ratings)))]
    chosen, taken = _times(raters.drawn, shape[0]), _times(order, shape[1])
    by_pair = [np.take_along_axis(np.asarray(chosen @ table), order, axis=1) for table in tables]
    by_rater = [np.take_along_axis(np.asarray(taken @ table.T), raters.drawn, axis=1) for table in tables]
    with np.errstate(invalid="ignore", divide="ignore"):  # where none of the raters drawn rated any of these pairs
        mean = over_pairs_and_raters(*by_pair, *by_rater)
        if design.bounded:
            mean = bounded(mean, by_pair[0], by_pair[1], scale, effective_raters(by_rater[1]))
        return mean.value, mean.low, mean.high


def _anytime(ratings: pd.DataFrame, design: Design, where: Floats) -> _Ends:
    """The same by the confidence sequence, over the pairs in their order."""
    done = ratings.groupby("turn")["value"].mean().to_numpy(np.float64)
    drawn = done[np.sort(_places(where, len(done)), axis=1)]  # a resample comes in the order of its pairs
    mean = drawn.mean(axis=1)
    return mean, *holding(confidence_sequence(drawn, _scale_of(ratings, design)), mean)


def _scale_of(ratings: pd.DataFrame, design: Design) -> tuple[float, float]:
    """The ends of the scale of the one question that ratings answer."""
    points = design.asked(str(ratings["question"].iat[0])).scale
    return float(points[0]), float(points[-1])


def _places(where: Floats, n: int) -> NDArray[np.int64]:
    """Numbers from 0 to n - 1, resamples by n."""
    return (where[:, :n] * n).astype(np.int64)


def _times(drawn: NDArray[np.int64], n: int) -> Floats:
    """Resamples by n: how often each was drawn."""
    return np.array([np.bincount(row, minlength=n) for row in drawn], dtype=np.float64)
