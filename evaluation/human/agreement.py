"""The agreement of raters on a task, with HUME's bands and flags.

The first measure of a task is the one printed in the paper: Fleiss' kappa for labels; the mean over pairs of raters of
the adjusted Rand index for clusterings, and of Spearman's rho for scores; for candidates rho's mean over items. Others
follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from evaluation.human.metrics import cohen
from evaluation.human.standing import pairs_by_scorer, shared_difficulty
from plumbline.statistics.agreement import BANDS, Answers, fleiss_kappa, raw_agreement
from plumbline.statistics.estimates import ALIKE, Estimate, Floats, bootstrap, draw_counts, draw_indices, jackknife
from plumbline.statistics.paired import average_ranks, row_correlations
from plumbline.statistics.resampled_measures import Counted, Measure

AgreementEstimates = dict[str, tuple[Estimate, str]]  # by measure, with the kind of interval
SHARED = 3  # items that two raters must share to be compared
_RHO = ((0.7, "strong"), (0.4, "moderate"), (-math.inf, "weak"))
_FLAGS = {"kappa": (0.4, 0.6), "rho": (0.6, 0.7)}
BOOTSTRAP, JACKKNIFE = "bootstrap over items", "jackknife over items"


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


def of_labels(
    labels_by_rater: Sequence[Sequence[str | None]], number: int, rng: np.random.Generator
) -> AgreementEstimates:
    """Return the measures for labels, sets of labels and marks (None without one): kappas of equality."""
    labels = sorted({label for labels in labels_by_rater for label in labels if label is not None})
    codes = {label: float(number) for number, label in enumerate(labels)}
    columns = [np.array([math.nan if label is None else codes[label] for label in rater]) for rater in labels_by_rater]
    points = Answers.of_table(np.column_stack(columns) if columns else np.empty((0, 0)), range(max(2, len(labels))))
    return {
        "Fleiss' kappa": (_estimate(fleiss_kappa(points), points), "t over items"),
        "Cohen's kappa": (pairwise(cohen, columns, number, rng), BOOTSTRAP),
        "equal answers": (_estimate(raw_agreement(points, rng), points), BOOTSTRAP),
    }


def _estimate(estimate: Estimate, answers: Answers) -> Estimate:
    counts = answers.counts if answers.pairs else np.zeros((0, 1))
    return estimate.model_copy(update={"n": int((counts.sum(axis=1) >= 2).sum())})


def within_items(
    values_by_rater: Sequence[Sequence[Floats | None]], number: int, rng: np.random.Generator
) -> AgreementEstimates:
    """Return rho for candidates: for each item the mean over pairs of raters, then the mean over items.

    A rater who gives all candidates of an item the same value has no correlation there and is left out of that item, as
    in HUME (`n` counts the remaining items).
    """
    answered = list(zip(*values_by_rater, strict=True))
    values = [_within(answers) for answers in answered]
    defined = np.array([value for value in values if not math.isnan(value)])
    shared = any(sum(answer is not None for answer in answers) > 1 for answers in answered)
    reason = "no item has two raters whose answers vary" if shared else "no item has two raters"
    return {"Spearman within items": (_mean_over_items(defined, reason, number, rng), BOOTSTRAP)}


def _within(each: Sequence[Floats | None]) -> float:
    """Return the mean rho over the pairs of raters of one item."""
    answers = [answer for answer in each if answer is not None]
    twos = list(combinations(answers, 2))
    if not twos:
        return math.nan
    x, y = (average_ranks(np.stack(side)) for side in zip(*twos, strict=True))
    values = row_correlations(x, y)
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def _mean_over_items(values: Floats, no_values: str, number: int, rng: np.random.Generator) -> Estimate:
    """Return a mean over items with its bootstrap interval; `no_values` is the reason if no item has a value."""
    n = len(values)
    if not n:
        return Estimate.undefined(no_values)
    if n == 1 or np.ptp(values) < 1e-12:
        reason = "the mean is over only one item, so there is no interval" if n == 1 else ALIKE
        return Estimate.alone(float(values.mean()), reason, n)
    draws = draw_indices(rng, n, number)
    return bootstrap(lambda rows: values[rows].mean(axis=1), draws, value=float(values.mean()), n=n).percentile()


def pairwise(
    measure: Measure, columns: Sequence[Floats], number: int, rng: np.random.Generator, *, smooth: bool = True
) -> Estimate:
    """Return the mean over pairs of raters, each on the items that both answered, with an interval over items."""
    twos: list[tuple[np.ndarray, Counted]] = []
    for first, second in combinations(columns, 2):
        both = np.isfinite(first) & np.isfinite(second)
        if both.sum() >= SHARED:
            twos.append((both, measure(first[both], second[both])))
    shared = np.logical_or.reduce([both for both, _ in twos]) if twos else np.zeros(0, bool)
    n = int(shared.sum())
    if not twos:
        reason = "there is only one rater" if len(columns) < 2 else f"no two raters share {SHARED} items"
        return Estimate.undefined(reason, n)

    def mean_of(counts: Floats) -> Floats:
        each = np.stack([of(counts[:, both]) for both, of in twos])
        defined = np.isfinite(each)
        sums, number = np.where(defined, each, 0).sum(axis=0), defined.sum(axis=0)
        return np.where(number > 0, sums / np.maximum(number, 1), math.nan)

    value = float(mean_of(np.ones((1, len(shared))))[0])
    if math.isnan(value):
        return Estimate.undefined("no two raters' answers both vary", n)
    if not smooth:
        left_out = mean_of((1 - np.eye(len(shared)))[shared])
        return jackknife(value, left_out, ends=(-1, 1), n=n)

    def resampled(drawn: Floats) -> Floats:
        counts = np.zeros((len(drawn), len(shared)))
        counts[:, shared] = drawn
        with np.errstate(invalid="ignore", divide="ignore"):  # if no item shared by two raters is drawn
            return mean_of(counts)

    draws = draw_counts(rng, n, number, at_once=number * n)
    return bootstrap(resampled, draws, value=value, n=n).percentile("undefined")


DIFFICULTY = ("model", "rho", "low", "high", "p", "n", "reason")
PEOPLE = "raters_mean"


def difficulty(scores: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a row (`DIFFICULTY`) for each language model: whether tasks hard for people are hard for it.

    `scores` are by the tasks' own metrics, with the columns of `scores.score` (HUME, Table 13).
    """
    scored = scores[scores["scorer_kind"].isin((PEOPLE, "llm")) & scores["score"].notna()]
    names = scored.loc[scored["scorer_kind"] == "llm", "scorer"].unique()
    scored = scored.assign(task=scored["task"] + " " + scored["subset"])  # of a task and language may be several
    rows = []
    for name in names:
        both = scored[(scored["scorer"] == name) | (scored["scorer_kind"] == PEOPLE)]
        wide = pairs_by_scorer(both, complete=False)
        if PEOPLE not in wide:
            continue
        rho, p = shared_difficulty(wide, PEOPLE, name, rng)
        rows.append((name, rho.value, rho.low, rho.high, p, rho.n, rho.reason))
    return pd.DataFrame(rows, columns=list(DIFFICULTY))
