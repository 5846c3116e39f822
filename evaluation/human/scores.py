"""Scores of people and models on a task, on the same items, and their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.human.answers import (
    JointScorer,
    MeanScorer,
    ScorerAnswers,
    TaskItems,
    Ties,
    aggregate,
    trivial,
)
from evaluation.human.metrics import Metric
from plumbline.statistics.estimates import Bootstrap, Estimate, Floats, draw_counts, jackknife
from plumbline.statistics.intervals import adding_raters, known
from plumbline.statistics.paired import holm
from plumbline.statistics.resampled_measures import Counted

OVER_ITEMS = {True: "bootstrap over items", False: "jackknife over items"}
WITH_RATERS = {True: "bootstrap over items, t over raters", False: "jackknife over items, t over raters"}
_UNDEFINED = "no interval, as the score is undefined"
FEWEST = 3  # raters, from which on the interval covers raters too


@dataclass(frozen=True)
class ScoreResamples:
    """A score and its values in each resample (or without each item), of one scorer or of a mean of scorers.

    `ends` are its least and greatest possible values.
    """

    value: float
    draws: Floats
    smooth: bool
    n: int
    ends: tuple[float, float] = (-math.inf, math.inf)

    def __sub__(self, subtrahend: ScoreResamples) -> ScoreResamples:
        return ScoreResamples(self.value - subtrahend.value, self.draws - subtrahend.draws, self.smooth, self.n)

    @property
    def interval(self) -> Estimate:
        """The score with its 95% interval over items: percentiles of resamples, or the jackknife's t."""
        if math.isnan(self.value):
            return Estimate.undefined("the metric is undefined, as gold or answers do not vary", self.n)
        if self.n < 2:
            return Estimate.alone(self.value, "the score is over only one item, so there is no interval", self.n)
        if self.smooth:
            return self._bootstrap.percentile(_UNDEFINED, self.ends)
        if not np.isfinite(self.draws).all():
            samples = f"{np.isnan(self.draws).sum()} of {len(self.draws)} samples with one item left out"
            return Estimate.alone(self.value, f"{_UNDEFINED} in {samples}", self.n)
        return jackknife(self.value, self.draws, ends=self.ends, n=self.n)

    @property
    def _bootstrap(self) -> Bootstrap:
        return Bootstrap(self.value, self.n, self.draws)

    @property
    def p(self) -> float:
        """The two-sided p of a value of zero; NaN without an interval.

        With resamples, the share that is, after subtracting the value, at least as far from zero as the value; the
        sample itself counts as one. With a jackknife, Student's t with n - 1 degrees of freedom.
        """
        if math.isnan(self.interval.low):
            return math.nan
        if self.smooth:
            return self._bootstrap.p
        from scipy import special  # noqa: PLC0415 (all of `scipy.stats` takes half a second)

        return float(2 * special.stdtr(self.n - 1, -abs(self.value) / math.sqrt(self.spread)))

    @property
    def spread(self) -> float:
        """The variance over items."""
        defined = self.draws[np.isfinite(self.draws)]
        return float(defined.var(ddof=1) if self.smooth else (self.n - 1) * defined.var())


def resampled(
    metric: Metric, gold: Floats, answers: Sequence[Floats], number: int, rng: np.random.Generator
) -> list[ScoreResamples]:
    """Return each scorer's score and its value in `number` resamples, all from the same draws of items.

    A scorer with a row for each of several runs gets the mean of their scores.
    """
    n = len(gold)
    once = np.ones((1, n))
    measures = [_of_runs(metric, gold, np.atleast_2d(runs)) for runs in answers]
    values = [float(measure(once)[0]) for measure in measures]
    if not metric.smooth:
        without = 1 - np.eye(n)
        draws = [[measure(without) for measure in measures]] if n > 1 else []
    else:
        draws = []
        for counts in draw_counts(rng, n, number):
            weights = counts.astype(np.float64)
            draws.append([measure(weights) for measure in measures])
    empty = [np.empty(0)]
    joined = [np.concatenate(empty + [part[k] for part in draws]) for k in range(len(answers))]
    ends = metric.least, 1.0
    return [ScoreResamples(value, drawn, metric.smooth, n, ends) for value, drawn in zip(values, joined, strict=True)]


def _of_runs(metric: Metric, gold: Floats, runs: Floats) -> Counted:
    measures = [metric.measure(gold, run) for run in runs]
    if len(measures) == 1:
        return measures[0]

    def of(counts: Floats) -> Floats:
        means: Floats = np.mean([measure(counts) for measure in measures], axis=0)
        return means

    return of


def mean_of(scores: list[ScoreResamples]) -> ScoreResamples:
    """Return the mean of several scores, and of their resamples."""
    draws, first = np.mean([score.draws for score in scores], axis=0), scores[0]
    return ScoreResamples(float(np.mean([score.value for score in scores])), draws, first.smooth, first.n, first.ends)


def over_raters_too(score: ScoreResamples, rater_sums: Floats, rater_counts: Floats) -> Estimate:
    """Return a mean of raters with its 95% interval over items and over possible raters.

    `rater_sums` are each rater's score times the number of its items, `rater_counts` these numbers. The variance over
    items is added to that over raters, with each one's quantile of Student's t, as in
    `plumbline.statistics.intervals.over_pairs_and_raters`: with three raters the interval is wide.
    """
    over_items = score.interval
    if (
        math.isnan(score.value)
        or len(rater_counts) < FEWEST
        or (math.isnan(over_items.low) and np.ptp(rater_sums) == 0)
    ):
        return over_items
    spread = np.array(score.spread if not math.isnan(over_items.low) else 0.0)
    pairs = known(np.array(score.value), spread, np.array(score.n - 1.0))
    interval = adding_raters(pairs, spread, rater_sums, rater_counts)
    if math.isnan(float(interval.low)):
        return over_items
    least, most = score.ends
    low, high = max(least, float(interval.low)), min(most, float(interval.high))
    return Estimate(value=score.value, low=low, high=high, n=score.n)


COLUMNS = ("task", "task_type", "language", "scorer", "scorer_kind", "metric", "score", "low", "high", "interval",
           "n_items", "n_abstained", "compared", "reason")  # fmt: skip
DIFFERENCES = ("task", "language", "model", "people", "difference", "low", "high", "p", "n", "reason")
PEOPLE = ("raters_mean", "aggregate")
_PEOPLE_WORDS = {"raters_mean": "the raters' mean", "aggregate": "the raters' joint answer"}
SHARE = 0.9  # of the items, which a scorer must have answered to be compared with others
_Key = tuple[str, str]  # kind and name of a scorer
_MEAN: _Key = ("raters_mean", "raters_mean")


@dataclass(frozen=True)
class TaskScores:
    """A task's rows of scores (`COLUMNS`) and of differences (`DIFFERENCES`), and a line for each omission."""

    scores: pd.DataFrame
    differences: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _MetricReading:
    """The values of one metric for all scorers, and the items on which they are compared."""

    task: TaskItems
    metric: Metric
    scorers: tuple[ScorerAnswers, ...]
    values: tuple[Floats, ...]
    gold: Floats
    scorable: np.ndarray
    common: np.ndarray
    compared: tuple[bool, ...]

    @classmethod
    def of(cls, task: TaskItems, metric: Metric, scorers: Sequence[ScorerAnswers]) -> _MetricReading:
        """Read the metric of all scorers; those with 90% of the scorable items are compared."""
        read_of = [(scorer, scorer.read(task, metric)) for scorer in scorers]
        readable = [(scorer, values) for scorer, values in read_of if values is not None]
        gold = task.gold_numbers(metric)
        answered = [_there(values) for _, values in readable]
        scorable = np.isfinite(gold) & np.logical_or.reduce([np.zeros(len(gold), bool), *answered])
        enough = tuple(
            scorer.single and scorable.any() and some[scorable].mean() >= SHARE
            for (scorer, _), some in zip(readable, answered, strict=True)
        )
        needed = [
            some for (scorer, _), some, is_in in zip(readable, answered, enough, strict=True) if is_in or scorer.joint
        ]
        common = np.logical_and.reduce([scorable, *needed])
        scorers_of, values = tuple(scorer for scorer, _ in readable), tuple(values for _, values in readable)
        return cls(task, metric, scorers_of, values, gold, scorable, common, enough)

    def row(
        self, scorer: ScorerAnswers, estimate: Estimate, interval: str, reason: str = "", *, compared: bool = True
    ) -> dict[str, object]:
        """Return one row of the table; `compared` if the score is on the common items."""
        interval = "" if math.isnan(estimate.low) else interval
        facts = (self.task.name, self.task.task_type, self.task.language, scorer.scorer, scorer.kind, self.metric.name)
        values = (estimate.value, estimate.low, estimate.high, interval, estimate.n, scorer.abstained, compared)
        return dict(zip(COLUMNS, (*facts, *values, "; ".join(filter(None, (estimate.reason, reason)))), strict=True))


def score(
    task: TaskItems,
    people: Sequence[ScorerAnswers],
    others: Sequence[ScorerAnswers] = (),
    *,
    ties: Ties = "expected",
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> TaskScores:
    """Return scores of each rater, their mean, their joint answers, and the others.

    `others` are language models that answered as raters do, and embedding models; trivial scorers are added. All scores
    of a metric are on the items that every compared scorer answered; scorers with 90% of the scorable items are
    compared. Scorers with fewer get a score on their own items, with the reason, and are not compared; if the score is
    a mean over items, their answers still count in the mean of raters, which is then the mean over items of the mean
    over an item's raters.

    Intervals are 95%, over items; for the mean of three raters or more also over raters (`over_raters_too`). A
    difference is people's score minus the model's, with interval and p from the same resamples, for fixed raters.
    """
    together = aggregate(people, task.question, ties=ties)
    scorers = [*people, *([together] if together else []), *others, *trivial(task, rng)]
    rows: list[dict[str, object]] = []
    differences = pd.DataFrame(columns=list(DIFFERENCES))
    notes: list[str] = []
    for metric in task.metrics:
        main = metric is task.metrics[0]
        all_kinds = main or not metric.smooth  # AMI and ARI have trivial scorers too
        some = [scorer for scorer in scorers if all_kinds or scorer.all_metrics]
        metered = _MetricReading.of(task, metric, some)
        resamples = _on_common(metered, n_resamples, rng)
        rows += _rows(metered, resamples) + _apart(metered, n_resamples, rng)
        if main:
            differences = _differences(metered, resamples)
            notes = _notes(metered)
    return TaskScores(pd.DataFrame(rows, columns=list(COLUMNS)), differences, tuple(notes))


def _on_common(metered: _MetricReading, number: int, rng: np.random.Generator) -> dict[_Key, ScoreResamples]:
    """Resample together each scorer that has all common items, and the mean of raters."""
    common = metered.common
    whole = [k for k, values in enumerate(metered.values) if _there(values)[common].all()]
    raters = [k for k, scorer in enumerate(metered.scorers) if scorer.in_mean]
    answers = [metered.values[k][..., common] for k in whole]
    pooled = metered.metric.per_item and bool(raters)
    if pooled:
        answers.append(_item_means(np.stack([metered.values[k][common] for k in raters])))
    if not common.any() or not answers:
        return {}
    drawn = resampled(metered.metric, metered.gold[common], answers, number, rng)
    resamples = {_key(metered.scorers[k]): score for k, score in zip(whole, drawn, strict=False)}
    of_raters = [resamples[_key(metered.scorers[k])] for k in raters if k in whole]
    if pooled:
        resamples[_MEAN] = drawn[-1]
    elif of_raters:
        resamples[_MEAN] = mean_of([score for score in of_raters if math.isfinite(score.value)] or of_raters)
    return resamples


def _rows(metered: _MetricReading, resamples: dict[_Key, ScoreResamples]) -> list[dict[str, object]]:
    """Return the rows of scores on the common items, with the mean of raters and their joint answers."""
    smooth = metered.metric.smooth
    rows = [
        metered.row(scorer, resamples[_key(scorer)].interval, OVER_ITEMS[smooth])
        for scorer in metered.scorers
        if _key(scorer) in resamples
    ]
    raters = [scorer for scorer in metered.scorers if scorer.in_mean]
    n = int(metered.common.sum())
    if _MEAN in resamples:
        rows.append(_mean_row(metered, resamples, raters))
    elif raters:
        why = (
            f"no rater answered all of the {n} compared items" if n else "no item was answered by every compared scorer"
        )
        undefined = Estimate.undefined(why, n)
        rows.append(metered.row(MeanScorer(), undefined, ""))
    if raters and (why := metered.task.question.no_joint):
        rows.append(metered.row(JointScorer(), Estimate.undefined(why, n), ""))
    return rows


def _mean_row(
    metered: _MetricReading, resamples: dict[_Key, ScoreResamples], raters: Sequence[ScorerAnswers]
) -> dict[str, object]:
    """Return the mean of raters, with an interval over raters too if there are three."""
    values_of = {
        _key(rater): values[..., metered.common] for rater, values in zip(metered.scorers, metered.values, strict=True)
    }
    reason = ""
    if metered.metric.per_item:
        values = np.stack([values_of[_key(rater)] for rater in raters])
        counts = np.isfinite(values).sum(axis=1).astype(np.float64)
        sums, counts = np.nansum(values, axis=1)[counts > 0], counts[counts > 0]
    else:
        scored = [rater for rater in raters if _key(rater) in resamples]
        defined = [rater for rater in scored if math.isfinite(resamples[_key(rater)].value)]
        counts = np.full(len(defined), float(metered.common.sum()))
        sums = np.array([resamples[_key(rater)].value for rater in defined]) * counts
        if len(defined) < len(raters):
            reason = f"mean of {len(defined)} of {len(raters)} raters, as not all have a score on these items"
    value = resamples[_MEAN]
    both = over_raters_too(value, sums, counts)
    words = OVER_ITEMS if both == value.interval else WITH_RATERS
    mean_given = MeanScorer(abstained=sum(rater.abstained for rater in raters))
    return metered.row(mean_given, both, words[metered.metric.smooth], reason)


def _apart(metered: _MetricReading, number: int, rng: np.random.Generator) -> list[dict[str, object]]:
    """Return the rows of scorers that lack common items, scored on their own items."""
    rows = []
    items = int(metered.scorable.sum())
    for scorer, values in zip(metered.scorers, metered.values, strict=True):
        answered = _there(values)
        scored = answered & metered.scorable
        if metered.common.any() and answered[metered.common].all():
            continue
        why = f"scored on the {scored.sum()} of {items} items that it answered, and left out of comparisons"
        if scorer.in_mean and metered.metric.per_item:
            why += "; the answers count in the mean of raters"
        if not scored.any():
            undefined = Estimate.undefined(f"answered none of {items} items")
            rows.append(metered.row(scorer, undefined, "", compared=False))
            continue
        (resamples,) = resampled(metered.metric, metered.gold[scored], [values[..., scored]], number, rng)
        rows.append(metered.row(scorer, resamples.interval, OVER_ITEMS[metered.metric.smooth], why, compared=False))
    return rows


def _differences(metered: _MetricReading, resamples: dict[_Key, ScoreResamples]) -> pd.DataFrame:
    """Return people's score minus each model's, on the common items; NaN with the reason if one has no score."""
    rows = []
    for model in (scorer for scorer in metered.scorers if scorer.model):
        for people in PEOPLE:
            sides = resamples.get((people, people)), resamples.get(_key(model))
            if sides[0] is None or sides[1] is None:
                lacking = _PEOPLE_WORDS[people] if sides[0] is None else model.scorer
                n, p = int(metered.common.sum()), math.nan
                why = f"{lacking} has no score on the items that all compared scorers answered"
                estimate = Estimate.undefined(why, n)
            else:
                apart = sides[0] - sides[1]
                estimate, p = apart.interval, apart.p
            facts = (metered.task.name, metered.task.language, model.scorer, people)
            rows.append((*facts, estimate.value, estimate.low, estimate.high, p, estimate.n, estimate.reason))
    return pd.DataFrame(rows, columns=list(DIFFERENCES))


def with_holm(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of several tasks with `p_holm`: Holm's correction over tasks, for each model.

    The correction is separate for each kind of people.
    """
    whole = differences.copy()
    whole["p_holm"] = math.nan
    for _, group in whole.groupby(["model", "people"]):
        whole.loc[group.index, "p_holm"] = holm(group["p"].to_numpy(np.float64))
    order = [*DIFFERENCES[:7], "p", "p_holm", *DIFFERENCES[8:]]
    return whole[order]


def _notes(metered: _MetricReading) -> list[str]:
    """Return a line for each omission of a task."""
    task, lines = metered.task, []
    where = f"{task.name} ({task.language})" if task.language else task.name
    if lost := len(task.items) - int(metered.scorable.sum()):
        have = "it has" if lost == 1 else "they have"
        lines.append(
            f"{where}: {lost} of {len(task.items)} items cannot be scored, as {have} no gold or no relevant candidate"
        )
    n_left_out = int(metered.scorable.sum() - metered.common.sum())
    if n_left_out:
        lacking = [
            f"{scorer.scorer} {int((metered.scorable & ~np.isfinite(values)).sum())}"
            for scorer, values, is_in in zip(metered.scorers, metered.values, metered.compared, strict=True)
            if (is_in or scorer.joint) and not np.isfinite(values[metered.scorable]).all()
        ]
        are, them = ("is", "it") if n_left_out == 1 else ("are", "them")
        lines.append(
            f"{where}: {n_left_out} of {len(task.items)} items {are} left out, as not every compared scorer has a score"
            f" on {them} (items without a score, by scorer: {', '.join(lacking)})"
        )
    for scorer in metered.scorers:
        if scorer.can_abstain and (scorer.abstained or scorer.missing):
            lacks = [f"abstained on {scorer.abstained}"] if scorer.abstained else []
            lacks += [f"has no answer to {scorer.missing}"] if scorer.missing else []
            lines.append(f"{where}: {scorer.scorer} {' and '.join(lacks)} of {len(task.items)} items")
    return lines


AGREEMENT_COLUMNS = ("task", "language", "measure", "value", "low", "high", "interval", "n", "reason")


def agreement(
    task: TaskItems, raters: Sequence[ScorerAnswers], *, n_resamples: int = 1000, rng: np.random.Generator
) -> pd.DataFrame:
    """Return the agreement of a task's raters, a row a measure (`AGREEMENT_COLUMNS`), with 95% intervals over items.

    `raters` are people's answers from `answers.given_by`; gold plays no part. NaN with a reason for a single rater, for
    answers that do not vary, and for raters who share too few items.
    """
    rows = []
    measures = task.question.agreement([rater.values for rater in raters], n_resamples, rng)
    for measure, (estimate, interval) in measures.items():
        method = "" if math.isnan(estimate.low) else interval
        numbers = estimate.value, estimate.low, estimate.high, method, estimate.n
        rows.append((task.name, task.language, measure, *numbers, estimate.reason))
    return pd.DataFrame(rows, columns=list(AGREEMENT_COLUMNS))


def _item_means(values: Floats) -> Floats:
    """Return the mean over raters of each item; NaN without a rater."""
    answered = np.isfinite(values)
    number = answered.sum(axis=0)
    sums = np.where(answered, values, 0).sum(axis=0)
    return np.where(number > 0, sums / np.maximum(number, 1), math.nan)


def _there(values: Floats) -> NDArray[np.bool_]:
    """Return which items have a value; with several runs, in all of them."""
    answered: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(np.atleast_2d(values)))
    return answered


def _key(scorer: ScorerAnswers) -> _Key:
    return scorer.kind, scorer.scorer
