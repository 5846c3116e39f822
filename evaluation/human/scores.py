"""People's scores on a task beside the models', all on the same items, and how far they lie apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.human.answers import ScorerAnswers, TaskItems, Ties, aggregate, leaving_one_out, read, right_numbers
from evaluation.human.metrics import OF_CANDIDATES, OF_LABELS, Metric
from evaluation.human.resampled import OVER_ITEMS, WITH_RATERS, ScoreResamples, mean_of, over_raters_too, resampled
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.paired import holm
from plumbline.statistics.resampled_measures import mean


def trivial(task: TaskItems, rng: np.random.Generator) -> list[ScorerAnswers]:
    """Answers without reading, by the way of asking.

    Labels: any of the labels at random, and the most frequent one (which gold tells). Candidates, and pairs that are
    alike or not: all tied, which is random order. Clusters: one cluster an item, which the V-measure rewards, and as
    many clusters as there are, at random. None of scores, of which random ones have a rho of 0.
    """
    right = [one for one in task.right if one is not None]
    n = len(task.items)
    if not right:
        return []
    if task.asked in OF_LABELS:
        votes = Counter(right)
        labels = tuple(sorted(votes))
        frequent = min(labels, key=lambda label: (-votes[label], label))
        made = [ScorerAnswers("most frequent label", "trivial", ((frequent,),) * n)]
        return [ScorerAnswers("random label", "trivial", (labels,) * n), *made] if task.asked == "label" else made
    if task.asked in OF_CANDIDATES:
        flat = tuple(None if one is None else np.zeros(len(one)) for one in task.right)
        return [ScorerAnswers("random order", "trivial", flat)]
    if task.asked == "same":
        return [ScorerAnswers("random order", "trivial", (0.0,) * n)]
    if task.asked == "cluster":
        drawn = tuple(str(one) for one in rng.integers(0, len(set(right)), n))
        return [
            ScorerAnswers("one cluster an item", "trivial", task.items),
            ScorerAnswers("random clusters", "trivial", drawn),
        ]
    return []


COLUMNS = ("task", "task_type", "language", "scorer", "scorer_kind", "metric", "score", "low", "high", "interval",
           "n_items", "n_abstained", "compared", "reason")  # fmt: skip
DIFFERENCES = ("task", "language", "model", "people", "difference", "low", "high", "p", "n", "reason")
PEOPLE = ("raters_mean", "aggregate")
SHARE = 0.9  # of the items, of which a scorer must have answered as many to be compared with others
_Key = tuple[str, str]  # kind and name of a scorer
_MEAN: _Key = ("raters_mean", "raters_mean")
_SINGLE = ("rater", "llm", "model")
_NO_AGGREGATE = "clusterings have no common answer: the numbers of one rater's clusters are not another's"


@dataclass(frozen=True)
class TaskScores:
    """A task's rows of scores (`COLUMNS`) and of differences (`DIFFERENCES`), and what was left out, a line each."""

    scores: pd.DataFrame
    differences: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _MetricReading:
    """What one metric reads of all scorers, and on which items they are compared."""

    task: TaskItems
    metric: Metric
    scorers: tuple[ScorerAnswers, ...]
    made: tuple[Floats, ...]
    gold: Floats
    scorable: np.ndarray
    common: np.ndarray
    compared: tuple[bool, ...]

    @classmethod
    def of(cls, task: TaskItems, metric: Metric, scorers: Sequence[ScorerAnswers]) -> _MetricReading:
        """Scorers of whom the metric knows something; compared are those that have 90% of what can be scored."""
        read_of = [(one, read(task, one, metric)) for one in scorers]
        known = [(one, values) for one, values in read_of if values is not None]
        gold = right_numbers(task, metric)
        there = [_there(values) for _, values in known]
        scorable = np.isfinite(gold) & np.logical_or.reduce([np.zeros(len(gold), bool), *there])
        enough = tuple(
            one.kind in _SINGLE and scorable.any() and some[scorable].mean() >= SHARE
            for (one, _), some in zip(known, there, strict=True)
        )
        needed = [
            some for (one, _), some, is_in in zip(known, there, enough, strict=True) if is_in or one.kind == "aggregate"
        ]
        common = np.logical_and.reduce([scorable, *needed])
        return cls(task, metric, tuple(one for one, _ in known), tuple(v for _, v in known), gold, scorable, common,
                   enough)  # fmt: skip

    def row(
        self, given: ScorerAnswers, found: Estimate, interval: str, reason: str = "", *, compared: bool = True
    ) -> dict[str, object]:
        """One row of the table; `compared` where the score rests on the common items."""
        interval = "" if math.isnan(found.low) else interval
        said = (self.task.name, self.task.task_type, self.task.language, given.scorer, given.kind, self.metric.name)
        values = (found.value, found.low, found.high, interval, found.n, given.abstained, compared)
        return dict(zip(COLUMNS, (*said, *values, "; ".join(filter(None, (found.reason, reason)))), strict=True))


def score(
    task: TaskItems,
    people: Sequence[ScorerAnswers],
    others: Sequence[ScorerAnswers] = (),
    *,
    ties: Ties = "expected",
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> TaskScores:
    """Scores of each rater, their mean, what they say together, without each of three or more, and of the others.

    `others` are language models that answered as raters do, and embedding models; trivial ones are added. All scores
    of a metric rest on the items that every compared scorer has; compared are those that have 90% of the items that
    can be scored. Who has fewer gets a score on these alone, with the reason, and is compared with nobody; where the
    score is a mean over items, such answers count in the mean of raters all the same, which is then the mean over
    items of the mean over an item's raters.

    Intervals are 95%, over items; of the mean of three raters or more over raters too (`resampled`). A difference is
    people less model, with the interval and p of the same resamples, raters being as they are.
    """
    together = [aggregate(people, task.asked, ties=ties), *leaving_one_out(people, task.asked, ties)]
    scorers = [*people, *(one for one in together if one is not None), *others, *trivial(task, rng)]
    rows: list[dict[str, object]] = []
    differences = pd.DataFrame(columns=list(DIFFERENCES))
    notes: list[str] = []
    for metric in task.metrics:
        main = metric is task.metrics[0]
        all_kinds = main or not metric.smooth  # the lines without reading stand beside AMI and ARI too
        some = [one for one in scorers if all_kinds or one.kind not in ("leave_one_out", "trivial")]
        metered = _MetricReading.of(task, metric, some)
        found = _on_common(metered, n_resamples, rng)
        rows += _rows(metered, found) + _apart(metered, n_resamples, rng)
        if main:
            differences = _differences(metered, found)
            notes = _notes(metered)
    return TaskScores(pd.DataFrame(rows, columns=list(COLUMNS)), differences, tuple(notes))


def _on_common(metered: _MetricReading, number: int, rng: np.random.Generator) -> dict[_Key, ScoreResamples]:
    """Each scorer that has all common items, and the mean of raters, resampled together."""
    common = metered.common
    whole = [k for k, values in enumerate(metered.made) if _there(values)[common].all()]
    raters = [k for k, one in enumerate(metered.scorers) if one.kind == "rater"]
    made = [metered.made[k][..., common] for k in whole]
    pooled = metered.metric.measure is mean and bool(raters)
    if pooled:
        made.append(_item_means(np.stack([metered.made[k][common] for k in raters])))
    if not common.any() or not made:
        return {}
    drawn = resampled(metered.metric, metered.gold[common], made, number, rng)
    found = {_key(metered.scorers[k]): one for k, one in zip(whole, drawn, strict=False)}
    own = [found[_key(metered.scorers[k])] for k in raters if k in whole]
    if pooled:
        found[_MEAN] = drawn[-1]
    elif own:
        found[_MEAN] = mean_of([one for one in own if math.isfinite(one.value)] or own)
    return found


def _rows(metered: _MetricReading, found: dict[_Key, ScoreResamples]) -> list[dict[str, object]]:
    """The rows of scores on the common items, the mean of raters and what they say together too."""
    smooth = metered.metric.smooth
    rows = [
        metered.row(one, found[_key(one)].interval, OVER_ITEMS[smooth]) for one in metered.scorers if _key(one) in found
    ]
    raters = [one for one in metered.scorers if one.kind == "rater"]
    n = int(metered.common.sum())
    if _MEAN in found:
        rows.append(_mean_row(metered, found, raters))
    elif raters:
        why = f"no rater has all of the {n} items that are compared" if n else "no item is everybody's"
        undefined = Estimate.undefined(why, n)
        rows.append(metered.row(ScorerAnswers("raters_mean", "raters_mean"), undefined, ""))
    if raters and metered.task.asked == "cluster":
        undefined = Estimate.undefined(_NO_AGGREGATE, n)
        rows.append(metered.row(ScorerAnswers("aggregate", "aggregate"), undefined, ""))
    return rows


def _mean_row(
    metered: _MetricReading, found: dict[_Key, ScoreResamples], raters: Sequence[ScorerAnswers]
) -> dict[str, object]:
    """The mean of raters, with an interval over raters too where there are three."""
    made = {_key(one): values[..., metered.common] for one, values in zip(metered.scorers, metered.made, strict=True)}
    reason = ""
    if metered.metric.measure is mean:
        values = np.stack([made[_key(one)] for one in raters])
        counts = np.isfinite(values).sum(axis=1).astype(np.float64)
        sums, counts = np.nansum(values, axis=1)[counts > 0], counts[counts > 0]
    else:
        own = [one for one in raters if _key(one) in found]
        defined = [one for one in own if math.isfinite(found[_key(one)].value)]
        counts = np.full(len(defined), float(metered.common.sum()))
        sums = np.array([found[_key(one)].value for one in defined]) * counts
        if len(defined) < len(raters):
            reason = f"of {len(defined)} of {len(raters)} raters: the others have no score on these items"
    value = found[_MEAN]
    both = over_raters_too(value, sums, counts)
    words = OVER_ITEMS if both == value.interval else WITH_RATERS
    mean_given = ScorerAnswers("raters_mean", "raters_mean", abstained=sum(one.abstained for one in raters))
    return metered.row(mean_given, both, words[metered.metric.smooth], reason)


def _apart(metered: _MetricReading, number: int, rng: np.random.Generator) -> list[dict[str, object]]:
    """The rows of who lacks common items: on what they have."""
    rows = []
    items = int(metered.scorable.sum())
    for one, values in zip(metered.scorers, metered.made, strict=True):
        there = _there(values)
        own = there & metered.scorable
        if metered.common.any() and there[metered.common].all():
            continue
        why = f"has {own.sum()} of {items} items: scored on these alone, and compared with nobody"
        if one.kind == "rater" and metered.metric.measure is mean:
            why += "; the answers count in the mean of raters"
        if not own.any():
            undefined = Estimate.undefined(f"has none of {items} items")
            rows.append(metered.row(one, undefined, "", compared=False))
            continue
        (found,) = resampled(metered.metric, metered.gold[own], [values[..., own]], number, rng)
        rows.append(metered.row(one, found.interval, OVER_ITEMS[metered.metric.smooth], why, compared=False))
    return rows


def _differences(metered: _MetricReading, found: dict[_Key, ScoreResamples]) -> pd.DataFrame:
    """People less each model, on the common items; NaN with the reason where one side has no score on them."""
    rows = []
    for model in (one for one in metered.scorers if one.kind in ("llm", "model")):
        for people in PEOPLE:
            sides = found.get((people, people)), found.get(_key(model))
            if sides[0] is None or sides[1] is None:
                lacking = people if sides[0] is None else model.scorer
                n, p = int(metered.common.sum()), math.nan
                one = Estimate.undefined(f"{lacking} has no score on the common items", n)
            else:
                apart = sides[0] - sides[1]
                one, p = apart.interval, apart.p
            said = (metered.task.name, metered.task.language, model.scorer, people)
            rows.append((*said, one.value, one.low, one.high, p, one.n, one.reason))
    return pd.DataFrame(rows, columns=list(DIFFERENCES))


def with_holm(differences: pd.DataFrame) -> pd.DataFrame:
    """Differences of several tasks, with `p_holm`: Holm's correction over tasks, for each model and kind of people.

    With m tasks the smallest p of B resamples, 1 / (B + 1), becomes m / (B + 1): `enough_resamples` says how many it
    takes to find anything at 0.05.
    """
    whole = differences.copy()
    whole["p_holm"] = math.nan
    for _, own in whole.groupby(["model", "people"]):
        whole.loc[own.index, "p_holm"] = holm(own["p"].to_numpy(np.float64))
    order = [*DIFFERENCES[:7], "p", "p_holm", *DIFFERENCES[8:]]
    return whole[order]


def enough_resamples(tasks: int) -> int:
    """Resamples with which Holm's smallest adjusted p over so many tasks can be 0.025, at least 1,000."""
    return max(1000, 40 * tasks)


def _notes(metered: _MetricReading) -> list[str]:
    """What was left out of a task, and why: a line each."""
    task, made = metered.task, []
    where = f"{task.name} ({task.language})" if task.language else task.name
    if lost := len(task.items) - int(metered.scorable.sum()):
        made.append(f"{where}: {lost} of {len(task.items)} items cannot be scored: no gold, or nothing is relevant")
    left = int(metered.scorable.sum() - metered.common.sum())
    if left:
        lacking = [
            f"{one.scorer} {int((metered.scorable & ~np.isfinite(values)).sum())}"
            for one, values, is_in in zip(metered.scorers, metered.made, metered.compared, strict=True)
            if (is_in or one.kind == "aggregate") and not np.isfinite(values[metered.scorable]).all()
        ]
        made.append(f"{where}: {left} of {len(task.items)} items are left out, which {', '.join(lacking)} lack")
    for one in metered.scorers:
        if one.kind in ("rater", "llm") and (one.abstained or one.missing):
            lacks = [f"cannot tell of {one.abstained}"] if one.abstained else []
            lacks += [f"has no answer to {one.missing}"] if one.missing else []
            made.append(f"{where}: {one.scorer} {' and '.join(lacks)} of {len(task.items)} items")
    return made


def _item_means(values: Floats) -> Floats:
    """The mean over raters of each item; NaN where there is no rater."""
    there = np.isfinite(values)
    number = there.sum(axis=0)
    sums = np.where(there, values, 0).sum(axis=0)
    return np.where(number > 0, sums / np.maximum(number, 1), math.nan)


def _there(values: Floats) -> NDArray[np.bool_]:
    """Of which items something is known; of several runs by all."""
    there: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(np.atleast_2d(values)))
    return there


def _key(given: ScorerAnswers) -> _Key:
    return given.kind, given.scorer
