"""Scores of people and models on a task, on the same items, and their differences."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.human.answers import JointScorer, MeanScorer, ScorerAnswers, TaskItems, Ties, aggregate, trivial
from evaluation.human.metrics import Metric
from plumbline.importing import scipy
from plumbline.statistics.estimates import Bootstrap, Estimate, Floats, adding_raters, draw_counts, jackknife, known
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
        return float(2 * scipy.special.stdtr(self.n - 1, -abs(self.value) / math.sqrt(self.spread)))

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
    `plumbline.statistics.estimates.over_pairs_and_raters`: with three raters the interval is wide.
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


PEOPLE = {"raters_mean": "the raters' mean", "aggregate": "the raters' joint answer"}  # with their names in reasons
SHARE = 0.9  # of the items, which a scorer must have answered to be compared with others
_MEAN = ("raters_mean", "raters_mean")  # kind and name of the mean of raters


@dataclass(frozen=True)
class TaskScores:
    """A task's rows of scores (`HumanScore`) and of differences (`HumanDifference`), and a line for each omission."""

    scores: pd.DataFrame
    differences: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _ScorerValues:
    """The values that a metric reads of a scorer's answers to each item, NaN without one; several runs are rows."""

    scorer: ScorerAnswers
    values: Floats

    @property
    def key(self) -> tuple[str, str]:
        """The scorer's kind and name."""
        return self.scorer.kind, self.scorer.scorer

    @functools.cached_property
    def answered(self) -> NDArray[np.bool_]:
        """Which items have a value; with several runs, in all of them."""
        answered: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(np.atleast_2d(self.values)))
        return answered


class _MetricScores:
    """All scorers by one metric: what it reads of them, and the items on which they are compared."""

    def __init__(
        self, task: TaskItems, metric: Metric, scorers: Sequence[ScorerAnswers], number: int, rng: np.random.Generator
    ) -> None:
        self._task, self._metric, self._number, self._rng = task, metric, number, rng
        self._gold = task.gold_numbers(metric)
        read = [(scorer, scorer.read(task, metric)) for scorer in scorers]
        self._readings = [_ScorerValues(scorer, values) for scorer, values in read if values is not None]
        self._raters = [reading for reading in self._readings if reading.scorer.in_mean]
        some = [np.zeros(len(self._gold), bool), *(reading.answered for reading in self._readings)]
        self._scorable = np.isfinite(self._gold) & np.logical_or.reduce(some)
        self._needed = [reading for reading in self._readings if reading.scorer.joint or self._compared(reading)]
        self._common = np.logical_and.reduce([self._scorable, *(reading.answered for reading in self._needed)])
        self._resamples = self._on_common()

    def _compared(self, reading: _ScorerValues) -> bool:
        scorable, single = self._scorable, reading.scorer.in_mean or reading.scorer.model
        return bool(single and scorable.any() and reading.answered[scorable].mean() >= SHARE)

    def _on_common(self) -> dict[tuple[str, str], ScoreResamples]:
        """Resample together each scorer that has all common items, and the mean of raters."""
        common = self._common
        complete = [reading for reading in self._readings if reading.answered[common].all()]
        answers = [reading.values[..., common] for reading in complete]
        pooled = self._metric.per_item and bool(self._raters)
        if pooled:
            values = np.stack([rater.values[common] for rater in self._raters])
            answered = np.isfinite(values)
            number = answered.sum(axis=0)
            sums = np.where(answered, values, 0).sum(axis=0)
            answers.append(np.where(number > 0, sums / np.maximum(number, 1), math.nan))
        if not common.any() or not answers:
            return {}
        drawn = resampled(self._metric, self._gold[common], answers, self._number, self._rng)
        resamples = {reading.key: score for reading, score in zip(complete, drawn, strict=False)}
        of_raters = [resamples[rater.key] for rater in self._raters if rater.key in resamples]
        if pooled:
            resamples[_MEAN] = drawn[-1]
        elif of_raters:
            resamples[_MEAN] = mean_of([score for score in of_raters if math.isfinite(score.value)] or of_raters)
        return resamples

    def _row(
        self, scorer: ScorerAnswers, estimate: Estimate, interval: str = "", reason: str = "", *, compared: bool = True
    ) -> dict[str, object]:
        """Return one row of the table; `compared` if the score is on the common items."""
        reasons = dict.fromkeys((estimate.reason, reason, scorer.reason))
        return {
            **self._task.keys, "task_type": self._task.task_type, "scorer": scorer.scorer,
            "scorer_kind": scorer.kind, "metric": self._metric.name, "main": self._metric is self._task.metrics[0],
            "score": estimate.value, "n_items": estimate.n, **_ends(estimate, interval),
            "n_abstained": scorer.abstained, "compared": compared, "reason": "; ".join(filter(None, reasons)),
        }  # fmt: skip

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield scores on the common items, with the mean of raters and their joint answers; then scores on others."""
        over_items = OVER_ITEMS[self._metric.smooth]
        for reading in self._readings:
            if reading.key in self._resamples:
                yield self._row(reading.scorer, self._resamples[reading.key].interval, over_items)
        n = int(self._common.sum())
        if _MEAN in self._resamples:
            yield self._mean_row()
        elif self._raters:
            explanation = f"no rater answered all of the {n} compared items"
            explanation = explanation if n else "no item was answered by every compared scorer"
            yield self._row(MeanScorer(), Estimate.undefined(explanation, n))
        if self._raters and (explanation := self._task.question.no_joint):
            yield self._row(JointScorer(), Estimate.undefined(explanation, n))
        items = int(self._scorable.sum())
        for reading in self._readings:  # those who lack common items are scored on their own items
            scored = reading.answered & self._scorable
            if n and reading.answered[self._common].all():
                continue
            if not scored.any():
                undefined = Estimate.undefined(f"answered none of {items} items")
                yield self._row(reading.scorer, undefined, compared=False)
                continue
            explanation = f"scored on the {scored.sum()} of {items} items that it answered, and left out of comparisons"
            if reading.scorer.in_mean and self._metric.per_item:
                explanation += "; the answers count in the mean of raters"
            answers = [reading.values[..., scored]]
            (resamples,) = resampled(self._metric, self._gold[scored], answers, self._number, self._rng)
            yield self._row(reading.scorer, resamples.interval, over_items, explanation, compared=False)

    def _mean_row(self) -> dict[str, object]:
        """Return the mean of raters, with an interval over raters too if there are three."""
        reason = ""
        if self._metric.per_item:
            values = np.stack([rater.values[self._common] for rater in self._raters])
            counts = np.isfinite(values).sum(axis=1).astype(np.float64)
            sums, counts = np.nansum(values, axis=1)[counts > 0], counts[counts > 0]
        else:
            scored = [self._resamples[rater.key].value for rater in self._raters if rater.key in self._resamples]
            defined = [value for value in scored if math.isfinite(value)]
            counts = np.full(len(defined), float(self._common.sum()))
            sums = np.array(defined) * counts
            if len(defined) < len(self._raters):
                reason = f"mean of {len(defined)} of {len(self._raters)} raters, as not all have a score on these items"
        value = self._resamples[_MEAN]
        both = over_raters_too(value, sums, counts)
        words = OVER_ITEMS if both == value.interval else WITH_RATERS
        scorer = MeanScorer(abstained=sum(rater.scorer.abstained for rater in self._raters))
        return self._row(scorer, both, words[self._metric.smooth], reason)

    def differences(self) -> Iterator[dict[str, object]]:
        """Yield people's score minus each model's, on the common items; NaN with the reason if one has no score."""
        for model in (reading for reading in self._readings if reading.scorer.model):
            for people, words in PEOPLE.items():
                first, second = self._resamples.get((people, people)), self._resamples.get(model.key)
                if first is None or second is None:
                    without = words if first is None else model.scorer.scorer
                    explanation = f"{without} has no score on the items that all compared scorers answered"
                    estimate, p = Estimate.undefined(explanation, int(self._common.sum())), math.nan
                else:
                    difference = first - second
                    estimate, p = difference.interval, difference.p
                yield {
                    **self._task.keys, "model": model.scorer.scorer, "people": people, "difference": estimate.value,
                    **_ends(estimate), "p": p, "n": estimate.n, "reason": estimate.reason,
                }  # fmt: skip

    def notes(self) -> Iterator[str]:
        """Yield a line for each omission of a task."""
        task, n_items = self._task, len(self._task.items)
        name = f"task {task.name} ({task.language})" if task.language else f"task {task.name}"
        if no_gold := n_items - int(self._scorable.sum()):
            have = "it has" if no_gold == 1 else "they have"
            yield f"{name}: {no_gold} of {n_items} items cannot be scored, as {have} no gold or no relevant candidate"
        if n_left_out := int(self._scorable.sum() - self._common.sum()):
            missing = [(reading, int((self._scorable & ~reading.answered).sum())) for reading in self._needed]
            by_scorer = ", ".join(f"{reading.scorer.scorer} {number}" for reading, number in missing if number)
            are, them = ("is", "it") if n_left_out == 1 else ("are", "them")
            yield (
                f"{name}: {n_left_out} of {n_items} items {are} left out, as not every compared scorer has a score on"
                f" {them} (items without a score, by scorer: {by_scorer})"
            )
        for scorer in (reading.scorer for reading in self._readings):
            lacks = [f"abstained on {scorer.abstained}"] if scorer.abstained else []
            lacks += [f"has no answer to {scorer.missing}"] if scorer.missing else []
            if lacks:
                yield f"{name}: {scorer.scorer} {' and '.join(lacks)} of {n_items} items"


def _ends(estimate: Estimate, interval: str | None = None) -> dict[str, object]:
    """Return the ends of an interval, with the method if it is given and there is an interval."""
    method = {} if interval is None else {"interval": "" if math.isnan(estimate.low) else interval}
    return {"low": estimate.low, "high": estimate.high, **method}


def score(
    task: TaskItems,
    people: Sequence[ScorerAnswers],
    models: Sequence[ScorerAnswers] = (),
    *,
    ties: Ties = "expected",
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> TaskScores:
    """Return scores of each rater, their mean, their joint answers, and the others.

    `models` are language models that answered as raters do, and embedding models; trivial scorers are added. All scores
    of a metric are on the items that every compared scorer answered; scorers with 90% of the scorable items are
    compared. Scorers with fewer get a score on their own items, with the reason, and are not compared; if the score is
    a mean over items, their answers still count in the mean of raters, which is then the mean over items of the mean
    over an item's raters.

    Intervals are 95%, over items; for the mean of three raters or more also over raters (`over_raters_too`). A
    difference is people's score minus the model's, with interval and p from the same resamples, for fixed raters.
    """
    together = aggregate(people, task.question, ties)
    scorers = [*people, *([together] if together else []), *models, *trivial(task, rng)]
    main, *rest = task.metrics
    scores = _MetricScores(task, main, scorers, n_resamples, rng)
    rows = list(scores.rows())
    for metric in rest:
        some = [scorer for scorer in scorers if scorer.all_metrics or not metric.smooth]  # AMI and ARI have all too
        rows += _MetricScores(task, metric, some, n_resamples, rng).rows()
    return TaskScores(pd.DataFrame(rows), pd.DataFrame(scores.differences()), tuple(scores.notes()))


def with_holm(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of several tasks with `p_holm`: Holm's correction over tasks, for each model.

    The correction is separate for each kind of people.
    """
    by_model = differences.groupby(["model", "people"])["p"]
    return differences.assign(p_holm=by_model.transform(lambda p: holm(p.to_numpy(np.float64))))


def agreement(
    task: TaskItems, raters: Sequence[ScorerAnswers], *, n_resamples: int = 1000, rng: np.random.Generator
) -> pd.DataFrame:
    """Return the agreement of a task's raters, a row a measure (`HumanAgreement`), with 95% intervals over items.

    `raters` are people's answers from `answers.given_by`; gold plays no part. NaN with a reason for a single rater, for
    answers that do not vary, and for raters who share too few items.
    """
    measures = task.question.agreement([rater.values for rater in raters], n_resamples, rng)
    return pd.DataFrame(
        {
            **task.keys, "measure": measure, "value": estimate.value,
            **_ends(estimate, interval), "n": estimate.n, "reason": estimate.reason,
        }
        for measure, (estimate, interval) in measures.items()
    )  # fmt: skip
