"""Reliability of raters and ratings: attention, intraclass correlation, and the truth of labels.

Simulated error rates of the tests of attention are in docs/method/verdicts.md
(`tests/annotation/verdicts/test_held.py`).
"""

from __future__ import annotations

import math
import typing
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.questions.question import Question
from plumbline.importing import scipy
from plumbline.statistics.agreement import UNKNOWN_RATERS, Answers, number_of_raters
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.reliability import Form, icc, z_scores

LEVEL = 0.05  # of each test
VARIED = 0.2  # share of all twos of ratings that must be half of the scale apart for agreement to be checked
_NOTHING = 1e-9  # a smaller sum of squares is due to rounding


def misses_too_many(controls: Mapping[str, tuple[int, int]], attentive: float) -> bool:
    """Return whether controls, by kind (missed, asked), are missed more often than an attentive rater misses them.

    One-sided binomial tests against the rate `attentive`: all kinds together at 5%, and each of several at 5% divided
    by their number, since a rater who always gives the best point misses only one kind.
    """
    offered = [kind for kind in controls.values() if kind[1]]
    together = sum(missed for missed, _ in offered), sum(n for _, n in offered)
    each = offered if len(offered) > 1 else []
    return _probability(*together, attentive) <= LEVEL or any(
        _probability(*kind, attentive) <= LEVEL / len(offered) for kind in each
    )


def _probability(missed: int, n: int, rate: float) -> float:
    """Return the probability of at least this number of misses at a rate."""
    return float(scipy.special.bdtrc(missed - 1, n, rate)) if missed else 1.0


def vary(answers: Answers) -> bool:
    """Return whether ratings vary enough to check agreement: 20% of all twos are half of the scale apart."""
    values = np.sort(answers.value)
    half = (answers.scale[-1] - answers.scale[0]) / 2
    half_apart = 2 * int(np.searchsorted(values, values - half, side="right").sum())
    return half_apart >= VARIED * max(len(values), 1) ** 2 and bool(len(values))


def telling_apart(answers: Answers) -> float:
    """Return P that raters who tell no pairs apart would differ as little about each pair (F test); NaN if undefined.

    Each rating is taken relative to its rater's mean, so that severity and the assignment of pairs play no part. With n
    pairs of two ratings or more, N ratings of R raters, and C groups of raters who share no pair,

        F = (between pairs / (n - C)) / (within pairs / (N - n - R + C)).

    It tests whether alpha is above 0, without resampling.
    """
    if answers.raters is None:
        return math.nan
    several = np.bincount(answers.pair)[answers.pair] >= 2
    pair, rater = (pd.factorize(column[several])[0] for column in (answers.pair, answers.rater))
    value = answers.value[several]
    n, raters = int(pair.max(initial=-1)) + 1, int(rater.max(initial=-1)) + 1
    groups = _groups(pair, rater, n, raters)
    between_df, within_df = n - groups, len(value) - n - raters + groups
    if between_df < 1 or within_df < 1:
        return math.nan
    residual = value - _means(value, rater)[rater]
    middle = _means(residual, pair)[pair]
    between, within = float((middle**2).sum()), float(((residual - middle) ** 2).sum())
    if within < _NOTHING:
        return 0.0 if between > _NOTHING else 1.0
    return float(scipy.special.fdtrc(between_df, within_df, between / between_df / (within / within_df)))


def _means(values: Floats, by: NDArray[np.int64]) -> Floats:
    means: Floats = np.bincount(by, values) / np.bincount(by)
    return means


def _groups(pair: NDArray[np.int64], rater: NDArray[np.int64], pairs: int, raters: int) -> int:
    """Return the number of groups of raters that share no pair with each other.

    Raters who share a pair take the lower of their two numbers until none changes. `scipy.sparse` knows graphs, but its
    import takes a tenth of the time of `status`.
    """
    first = np.empty(pairs, np.int64)
    first[pair] = rater  # any one rater of each pair: the others share the pair with this one
    lower, upper = np.divmod(pd.unique(first[pair] * raters + rater), raters)
    groups = np.arange(raters)
    while True:
        joined = groups.copy()
        np.minimum.at(joined, lower, groups[upper])
        np.minimum.at(joined, upper, groups[lower])
        if (joined == groups).all():
            return len(np.unique(groups))
        groups = joined


def reliability_table(ratings: pd.DataFrame, questions: Sequence[str]) -> pd.DataFrame:
    """Return a row for each question and statistic: intraclass correlations, and those of z-scores.

    `ratings` are those that count, of questions with a scale. Columns: question, statistic, value, low, high, n
    (items), reason (why something is NaN).
    """
    rows = [
        (question, name, estimate.value, estimate.low, estimate.high, estimate.n, estimate.reason)
        for question in questions
        for name, estimate in _estimates(ratings[ratings["question"] == question]).items()
    ]
    return pd.DataFrame(rows, columns=["question", "statistic", "value", "low", "high", "n", "reason"])


def _estimates(ratings: pd.DataFrame) -> dict[str, Estimate]:
    if ratings.empty:
        return {}
    # Codes in the order of the names: the statistics group by them eight times, several times as fast as by names.
    ids = {name: pd.factorize(ratings[name].astype(str), sort=True)[0] for name in ("pair_id", "rater_id")}
    plain = pd.DataFrame({**ids, "value": ratings["value"].to_numpy(np.float64)})
    one_way = typing.cast("tuple[Form, ...]", ("1", "1k"))
    if number_of_raters(ratings["rater_id"]) is None:
        unknown = Estimate.undefined(UNKNOWN_RATERS, plain["pair_id"].nunique())
        forms = typing.get_args(Form)
        return {f"ICC({_title(form)})": icc(plain, form) if form in one_way else unknown for form in forms}
    in_sds = plain.assign(value=z_scores(plain)).dropna()
    estimates = {f"ICC({_title(form)})": icc(plain, form) for form in typing.get_args(Form)}
    estimates |= {
        f"ICC({_title(form)}) of z-scores": icc(in_sds, form) if len(in_sds) else Estimate.undefined("no rater varies")
        for form in one_way
    }
    return estimates


def _title(form: str) -> str:
    return form.replace("k", ", k")


def truth_table(
    answers: pd.DataFrame, questions: Collection[Question], right: Mapping[str, Mapping[str, object]]
) -> pd.DataFrame:
    """Return a row for each question, method and number: the accuracy of majority and Dawid-Skene.

    `answers` are those that count, of items with and without a known truth; `right` has the right answers by item and
    question. Columns: question, method, statistic (accuracy, or F1 of a label of two), value, low, high (of accuracy),
    n (items whose truth is known), reason. Empty if no label is known.
    """
    rows = []
    for question in questions:
        true = pd.Series({item: of_item[question.name] for item, of_item in right.items() if question.name in of_item})
        asked_about = answers[answers["question"] == question.name]
        true = true[true.index.isin(asked_about["pair_id"].astype(str))]
        for method, name, estimate in question.accuracy(asked_about, true) if len(true) else ():
            numbers = estimate.value, estimate.low, estimate.high
            rows.append((question.name, method, name, *numbers, len(true), estimate.reason))
    return pd.DataFrame(rows, columns=["question", "method", "statistic", "value", "low", "high", "n", "reason"])
