"""The agreement of raters on a task, by its kind of question, with HUME's bands and flags.

The first measure of a task is the one printed in the paper: Fleiss' kappa for labels; the mean over pairs of raters of
the adjusted Rand index for clusterings, and of Spearman's rho for scores; for candidates rho's mean over items. Others
follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from annotation.judges.people import CROWD, AlternativeTest, result_of
from annotation.questions import labels_of
from evaluation.human.answers import ScorerAnswers, TaskItems
from evaluation.human.metrics import OF_CANDIDATES, OF_LABELS, ari, cohen
from evaluation.human.scores import ALIKE
from evaluation.human.standing import pairs_by_scorer, shared_difficulty
from plumbline.statistics.agreement import (
    BANDS,
    Answers,
    ac1,
    fleiss_kappa,
    krippendorff_alpha,
    masi_alpha,
    nominal_alpha,
    raw_agreement,
)
from plumbline.statistics.estimates import Estimate, Floats, bootstrap, draw_counts, draw_indices, jackknife
from plumbline.statistics.paired import average_ranks, row_correlations
from plumbline.statistics.rankings import kendall_rows
from plumbline.statistics.resampled_measures import Counted, Measure, rho

COLUMNS = ("task", "language", "measure", "value", "low", "high", "interval", "n", "band", "flag", "reason")
SHARED = 3  # items that two raters must share to be compared
_RHO = ((0.7, "strong"), (0.4, "moderate"), (-math.inf, "weak"))
_FLAGS = {"kappa": (0.4, 0.6), "rho": (0.6, 0.7)}
_BOOTSTRAP, _JACKKNIFE, _T = "bootstrap over items", "jackknife over items", "t over items"


def agreement(
    task: TaskItems,
    raters: Sequence[ScorerAnswers],
    *,
    scale: Sequence[float] = (),
    labels: Sequence[str] = (),
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the agreement of a task's raters, a row a measure (`COLUMNS`), with 95% intervals over items.

    `raters` are people's answers from `answers.given_by`; gold plays no part. `scale` has the points of scores and
    grades, which Krippendorff's alpha of scores needs; `labels` has all possible labels for AC1 (by default those
    chosen). NaN with a reason for a single rater, for answers that do not vary, and for raters who share too few items.
    """
    way = _two_by_two(task)
    if way is None:
        estimates = _of_candidates(task, raters, n_resamples, rng)
        if task.question in ("graded", "ranked"):
            estimates["alpha (ordinal)"] = _alpha_of_candidates(task, raters, scale, rng), _BOOTSTRAP
    elif way.measure is cohen:
        estimates = _of_labels(task, raters, labels, n_resamples, rng)
    else:
        columns = way.columns(raters)
        estimates = {way.name: (way.mean(columns, n_resamples, rng), way.interval)}
        if scale and way.smooth:
            points = _answers(columns, scale)
            estimates["alpha"] = _estimate(krippendorff_alpha(points, rng), points), _BOOTSTRAP
    rows = []
    for measure, (estimate, interval) in estimates.items():
        words = (band(measure, estimate.value), flag(measure, estimate.value), estimate.reason)
        rows.append((task.name, task.language, measure, *_numbers(estimate, interval), *words))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def with_people(
    task: TaskItems,
    model: ScorerAnswers,
    raters: Sequence[ScorerAnswers],
    *,
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> tuple[str, Estimate, str]:
    """Return (measure, a model's mean agreement with each rater, the kind of its 95% interval).

    The measure is Cohen's kappa for labels, the adjusted Rand index for clusterings, Spearman's rho for scores, and
    rho's mean over items for candidates: the measures of `agreement` for pairs of raters, by the same names.
    """
    if way := _two_by_two(task):
        *columns, of_model = way.columns([*raters, model])
        return way.name, way.mean(columns, n_resamples, rng, beside=of_model), way.interval
    means, shared = list[float](), 0
    for of_model, *each in zip(model.values, *(rater.values for rater in raters), strict=True):
        answers = [answer for answer in each if answer is not None] if of_model is not None else []
        shared += bool(answers)
        if answers:
            rhos = _rho_of_rows(np.stack([of_model] * len(answers)), np.stack(answers))
            means += [float(rhos[np.isfinite(rhos)].mean())] if np.isfinite(rhos).any() else []
    why = (
        "on no item do the model's answers and a rater's both vary"
        if shared
        else "no item was answered by both the model and a rater"
    )
    return "Spearman within items", _mean_over_items(np.array(means), why, n_resamples, rng), _BOOTSTRAP


@dataclass(frozen=True)
class _TwoByTwo:
    """The comparison of two raters whose answers are one number an item."""

    name: str
    measure: Measure
    columns: Callable[[Sequence[ScorerAnswers]], list[Floats]]  #: each rater's answers by item, NaN without one
    smooth: bool = True

    @property
    def interval(self) -> str:
        return _BOOTSTRAP if self.smooth else _JACKKNIFE

    def mean(
        self, columns: Sequence[Floats], number: int, rng: np.random.Generator, beside: Floats | None = None
    ) -> Estimate:
        return _pairwise(self.measure, columns, number, rng, smooth=self.smooth, beside=beside)


def _two_by_two(task: TaskItems) -> _TwoByTwo | None:
    """Return the comparison for a task's question; None for candidates, which are compared within items."""
    if task.question in OF_LABELS or task.question == "same":
        return _TwoByTwo("Cohen's kappa", cohen, lambda raters: _codes(task, raters, [])[1])
    if task.question == "cluster":
        return _TwoByTwo("ARI", ari, _clusters, smooth=False)
    if task.question in OF_CANDIDATES or task.candidates:
        return None
    return _TwoByTwo("Spearman", rho, _scores)


def _scores(raters: Sequence[ScorerAnswers]) -> list[Floats]:
    """Return each rater's scores, NaN without one."""
    return [np.array([math.nan if value is None else value for value in rater.values], float) for rater in raters]


def _numbers(estimate: Estimate, interval: str) -> tuple[float, float, float, str, int]:
    """Return value, ends, kind of interval and items: the cells of a row."""
    interval = "" if math.isnan(estimate.low) else interval
    return estimate.value, estimate.low, estimate.high, interval, estimate.n


def band(measure: str, value: float) -> str:
    """Return the word for an agreement: by kappas above .8, .6, .4, .2; by correlations above .7, .4 (HUME, F.1).

    Empty for undefined values, and for measures without bands in the paper, such as the Rand index.
    """
    bands = {"kappa": BANDS, "rho": _RHO}.get(_family(measure), ())
    return next((word for above, word in bands if value > above), "")


def flag(measure: str, value: float) -> str:
    """Return "problematic" (kappa below .4, rho below .6), "reliable" (above .6 and .7), or nothing.

    HUME, D and 5.3. This is a convention: kappa and rho have no common scale, and with 30 items neither is accurate to
    0.1.
    """
    low, high = _FLAGS.get(_family(measure), (-math.inf, math.inf))
    return "problematic" if value < low else "reliable" if value > high else ""


def _family(measure: str) -> str:
    return "kappa" if "kappa" in measure else "rho" if measure.startswith("Spearman") else ""


def _of_labels(
    task: TaskItems, raters: Sequence[ScorerAnswers], named: Sequence[str], number: int, rng: np.random.Generator
) -> dict[str, tuple[Estimate, str]]:
    """Return the measures for labels, sets of labels and marks: kappas of equality."""
    labels, columns = _codes(task, raters, named)
    points = _answers(columns, range(max(2, len(labels))))
    estimates = {
        "Fleiss' kappa": (_estimate(fleiss_kappa(points), points), _T),
        "AC1": (_estimate(ac1(points), points), _T),
        "alpha (nominal)": (_estimate(nominal_alpha(points, rng), points), _BOOTSTRAP),
        "Cohen's kappa": (_pairwise(cohen, columns, number, rng), _BOOTSTRAP),
        "equal answers": (_estimate(raw_agreement(points, rng), points), _BOOTSTRAP),
    }
    if task.question == "labels" and len(labels) > 1:
        sets = [frozenset(labels_of(label)) for label in labels]
        estimates["alpha (MASI)"] = _estimate(masi_alpha(points, sets, rng), points), _BOOTSTRAP
    return estimates


def _codes(task: TaskItems, raters: Sequence[ScorerAnswers], named: Sequence[str]) -> tuple[list[str], list[Floats]]:
    """Return all labels, and each rater's labels as numbers, NaN without one."""
    labelled = [[_label(task, answer) for answer in rater.values] for rater in raters]
    labels = list(named) if task.question == "label" else []
    labels += sorted({label for column in labelled for label in column if label is not None} - set(labels))
    codes = {label: float(number) for number, label in enumerate(labels)}
    return labels, [np.array([math.nan if label is None else codes[label] for label in column]) for column in labelled]


def _label(task: TaskItems, answer: Any) -> str | None:
    if answer is None:
        return None
    return str(answer) if task.question == "same" else str(answer[0])


def _answers(columns: Sequence[Floats], scale: Sequence[float]) -> Answers:
    """Return each rater's answers (points of the scale, NaN for none) as the rating statistics take them."""
    return Answers.of_table(np.column_stack(columns) if columns else np.empty((0, 0)), scale)


def _estimate(estimate: Estimate, answers: Answers) -> Estimate:
    """Return the estimate with the number of items that have two answers."""
    counts = answers.counts() if answers.pairs else np.zeros((0, 1))
    return estimate.model_copy(update={"n": int((counts.sum(axis=1) >= 2).sum())})


def _of_candidates(
    task: TaskItems, raters: Sequence[ScorerAnswers], number: int, rng: np.random.Generator
) -> dict[str, tuple[Estimate, str]]:
    """Return the measures for candidates: for each item the mean over pairs of raters, then the mean over items.

    A rater who gives all candidates of an item the same value has no correlation there and is left out of that item, as
    in HUME (`n` counts the remaining items). Cohen's kappa is computed only for binary marks.
    """
    measures: dict[str, Callable[[Floats, Floats], Floats]] = {
        "Spearman within items": _rho_of_rows,
        "Kendall within items": kendall_rows,
    }
    if task.question == "binary":
        once = np.ones((1, max(map(len, task.candidates), default=0)))
        measures["Cohen's kappa within items"] = lambda x, y: np.array(
            [cohen(a, b)(once[:, : len(a)])[0] for a, b in zip(x, y, strict=True)]
        )
    estimates = {}
    for name, measure in measures.items():
        values = [_within(measure, answers) for answers in zip(*(rater.values for rater in raters), strict=True)]
        defined = np.array([value for value in values if not math.isnan(value)])
        shared = sum(
            sum(answer is not None for answer in each) > 1 for each in zip(*(r.values for r in raters), strict=True)
        )
        why = "no item has two raters whose answers vary" if shared else "no item has two raters"
        estimates[name] = _mean_over_items(defined, why, number, rng), _BOOTSTRAP
    return estimates


def _alpha_of_candidates(
    task: TaskItems, raters: Sequence[ScorerAnswers], scale: Sequence[float], rng: np.random.Generator
) -> Estimate:
    """Return Krippendorff's alpha of grades or ranks, resampling an item's candidates together."""
    sizes = [len(marks) for marks in task.candidates]
    columns = [
        np.concatenate(
            [np.full(n, math.nan) if answer is None else answer for n, answer in zip(sizes, each.values, strict=True)]
        )
        for each in raters
    ]
    answered = np.isfinite(np.stack(columns)) if columns else np.zeros((0, sum(sizes)), bool)
    grades = np.unique(np.stack(columns)[answered]).astype(int).tolist() if columns else []
    points, item = _answers(columns, scale or grades), np.repeat(np.arange(len(sizes)), sizes)
    estimate = krippendorff_alpha(points, rng, item[answered.any(axis=0)])
    n = len(np.unique(item[answered.sum(axis=0) >= 2]))
    return estimate.model_copy(update={"n": n})


def _rho_of_rows(x: Floats, y: Floats) -> Floats:
    return row_correlations(average_ranks(x), average_ranks(y))


def _within(measure: Callable[[Floats, Floats], Floats], each: Sequence[Floats | None]) -> float:
    """Return the mean of a measure over the pairs of raters of one item."""
    answers = [answer for answer in each if answer is not None]
    twos = list(combinations(answers, 2))
    if not twos:
        return math.nan
    values = measure(np.stack([first for first, _ in twos]), np.stack([second for _, second in twos]))
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def _mean_over_items(values: Floats, lacking: str, number: int, rng: np.random.Generator) -> Estimate:
    """Return a mean over items with its bootstrap interval; `lacking` is the reason if no item has a value."""
    n = len(values)
    if not n:
        return Estimate.undefined(lacking)
    if n == 1 or np.ptp(values) < 1e-12:
        why = "the mean is over only one item, so there is no interval" if n == 1 else ALIKE
        return Estimate.alone(float(values.mean()), why, n)
    draws = draw_indices(rng, n, number)
    return bootstrap(lambda rows: values[rows].mean(axis=1), draws, value=float(values.mean()), n=n).percentile()


def _pairwise(
    measure: Measure, columns: Sequence[Floats], number: int, rng: np.random.Generator, *, smooth: bool = True,
    beside: Floats | None = None,
) -> Estimate:  # fmt: skip
    """Return the mean over pairs of raters, each on the items that both answered, with an interval over items.

    With answers `beside`, the mean over raters of comparing each with these answers.
    """
    twos: list[tuple[np.ndarray, Counted]] = []
    for first, second in combinations(columns, 2) if beside is None else ((first, beside) for first in columns):
        both = np.isfinite(first) & np.isfinite(second)
        if both.sum() >= SHARED:
            twos.append((both, measure(first[both], second[both])))
    shared = np.logical_or.reduce([both for both, _ in twos]) if twos else np.zeros(0, bool)
    n = int(shared.sum())
    if not twos:
        if beside is not None:
            return Estimate.undefined(f"no rater shares {SHARED} items with the model", n)
        why = "there is only one rater" if len(columns) < 2 else f"no two raters share {SHARED} items"
        return Estimate.undefined(why, n)

    def mean_of(counts: Floats) -> Floats:
        each = np.stack([of(counts[:, both]) for both, of in twos])
        defined = np.isfinite(each)
        sums, number = np.where(defined, each, 0).sum(axis=0), defined.sum(axis=0)
        return np.where(number > 0, sums / np.maximum(number, 1), math.nan)

    value = float(mean_of(np.ones((1, len(shared))))[0])
    if math.isnan(value):
        if beside is not None:
            return Estimate.undefined("on shared items, the model's answers and a rater's never both vary", n)
        return Estimate.undefined("no two raters' answers both vary", n)
    if not smooth:
        left_out = mean_of((1 - np.eye(len(shared)))[shared])
        return jackknife(value, left_out, alike=ALIKE, ends=(-1, 1), n=n)

    def resampled(drawn: Floats) -> Floats:
        counts = np.zeros((len(drawn), len(shared)))
        counts[:, shared] = drawn
        with np.errstate(invalid="ignore", divide="ignore"):  # if no item shared by two raters is drawn
            return mean_of(counts)

    draws = draw_counts(rng, n, number, at_once=number * n)
    return bootstrap(resampled, draws, value=value, n=n).percentile("undefined", ALIKE)


def _clusters(raters: Sequence[ScorerAnswers]) -> list[Floats]:
    """Return each rater's clusters as numbers, NaN without one."""
    codes = [pd.factorize(pd.Series(rater.values, dtype=object))[0].astype(np.float64) for rater in raters]
    return [np.where(numbers < 0, math.nan, numbers) for numbers in codes]


OF_MODELS = ("task", "language", "model", "measure", "value", "low", "high", "interval", "n",
           "winning_rate", "advantage", "passes", "raters", "reason")  # fmt: skip
DIFFICULTY = ("model", "rho", "low", "high", "p", "n", "reason")
FEWEST_RATERS = 3  # for the alternative annotator test
PEOPLE = "raters_mean"


def annotators(
    task: TaskItems,
    models: Sequence[ScorerAnswers],
    raters: Sequence[ScorerAnswers],
    *,
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return a row (`OF_MODELS`) for each model: its agreement with raters, and the alternative annotator test."""
    rows = []
    for model in models:
        measure, estimate, interval = with_people(task, model, raters, n_resamples=n_resamples, rng=rng)
        test = in_a_raters_place(task, model, raters)
        omega, rho, passes, n = test.omega, test.rho, test.passes, len(test.raters)
        reason = "; ".join(filter(None, (estimate.reason, test.reason)))
        facts = (task.name, task.language, model.scorer, measure, *_numbers(estimate, interval))
        rows.append((*facts, omega, rho, passes, n, reason))
    return pd.DataFrame(rows, columns=list(OF_MODELS))


def in_a_raters_place(
    task: TaskItems, model: ScorerAnswers, raters: Sequence[ScorerAnswers], epsilon: float = CROWD
) -> AlternativeTest:
    """Return the alternative annotator test of a model (`annotation.judges.people`), an item a pair.

    The closeness of an answer to the other raters' is, for labels, marks and choices, the share of others with the same
    answer; for scores, minus the mean square distance; for candidates, the same over an item's candidates. NaN with a
    reason for fewer than three raters, and for clusterings: raters' cluster numbers are not comparable.

    Source: Calderon, Reichart and Dror 2025, ACL, pages 16051-16081, section 3.
    """
    why = "raters' cluster numbers are not comparable" if task.question == "cluster" else ""
    if len(raters) < FEWEST_RATERS:
        why = f"the alternative annotator test needs {FEWEST_RATERS} raters"
    if why:
        return AlternativeTest(epsilon, math.nan, math.nan, False, pd.DataFrame(), why)
    equal = task.question in OF_LABELS or task.question == "same"
    by_rater: dict[str, tuple[Floats, Floats]] = {}
    for index, rater in enumerate(raters):
        others = [peer.values for number, peer in enumerate(raters) if number != index]
        human, machine = list[float](), list[float]()
        for human_answer, model_answer, *each in zip(rater.values, model.values, *others, strict=True):
            answers = [answer for answer in each if answer is not None]
            if human_answer is not None and model_answer is not None and answers:
                human.append(float(np.mean([_apart(human_answer, answer, equal=equal) for answer in answers])))
                machine.append(float(np.mean([_apart(model_answer, answer, equal=equal) for answer in answers])))
        if human:
            first, second = np.array(human), np.array(machine)
            tie = np.isclose(first, second, rtol=0, atol=1e-9)
            closer = ((second < first) | tie).astype(np.float64), ((first < second) | tie).astype(np.float64)
            by_rater[rater.scorer] = closer
    return result_of(by_rater, epsilon)


def _apart(first: Any, second: Any, *, equal: bool) -> float:
    """Return the distance of two answers: whether they differ, or the mean square difference."""
    return float(first != second) if equal else float(np.mean((first - second) ** 2))


def difficulty(scores: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a row (`DIFFICULTY`) for each language model: whether tasks hard for people are hard for it.

    `scores` are by the tasks' own metrics, with the columns of `scores.score` (HUME, Table 13).
    """
    scored = scores[scores["scorer_kind"].isin((PEOPLE, "llm")) & scores["score"].notna()]
    names = scored.loc[scored["scorer_kind"] == "llm", "scorer"].unique()
    if "subset" in scored:  # which may be several of one task and language
        scored = scored.assign(task=scored["task"] + " " + scored["subset"])
    rows = []
    for name in names:
        both = scored[(scored["scorer"] == name) | (scored["scorer_kind"] == PEOPLE)]
        wide = pairs_by_scorer(both, complete=False)
        if PEOPLE not in wide:
            continue
        rho, p = shared_difficulty(wide, PEOPLE, name, rng)
        rows.append((name, rho.value, rho.low, rho.high, p, rho.n, rho.reason))
    return pd.DataFrame(rows, columns=list(DIFFICULTY))
