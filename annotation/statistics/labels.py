"""Shares and ranks of labels, and agreement on labels, sets of labels and rankings (tau-b, W).

An undefined number is NaN with a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from annotation.questions import QuestionScale, has_label, labels_of, ranks_of
from annotation.records import Coefficient, MeanRank, Share
from annotation.statistics.means import TOO_FEW_RATERS, MeanOfAnswers
from plumbline.statistics.agreement import (
    UNKNOWN_RATERS,
    Answers,
    Integers,
    ac1,
    fleiss_kappa,
    masi_alpha,
    nominal_alpha,
    rater_numbers,
)
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.group_sequential import ALPHA
from plumbline.statistics.intervals import Mean, over_pairs, over_pairs_and_raters

LEFT_OUT = Estimate.undefined("not computed: no decision rests on it")


def answers_to(question: QuestionScale, ratings: pd.DataFrame) -> Answers:
    """Return answers to a question with labels, of pair_id, rater_id and answer; points are the labels' places.

    For several labels each given set is a point, for rankings each given ranking, in the order of its text.
    """
    texts = ratings["answer"].astype(str)
    points = question.labels if question.kind == "label" else sorted(set(texts))
    position = texts.map({label: number for number, label in enumerate(points)}).to_numpy(np.int64)
    pair, rater = pd.factorize(ratings["pair_id"])[0].astype(np.int64), rater_numbers(ratings["rater_id"])
    return Answers(pair, rater, position.astype(np.int64), tuple(range(len(points))))


def with_label(question: QuestionScale, ratings: pd.DataFrame, label: str) -> Answers:
    """Return answers that are 1 where a label is given, or ranked first, else 0."""
    answers = answers_to(question, ratings)
    has = np.array([has_label(question.kind, answer, label) for answer in ratings["answer"].astype(str)], np.int64)
    return Answers(answers.pair, answers.rater, has, (0, 1))


def coefficients(question: QuestionScale, ratings: pd.DataFrame, seed: int | None) -> tuple[Coefficient, ...]:
    """Return the agreement on one question's answers, by its kind; without a seed no resampled coefficient."""
    if question.kind not in ("label", "multi_label") or ratings.empty:
        return ()
    answers = answers_to(question, ratings)
    if question.kind == "multi_label":
        sets = [frozenset(labels_of(answer)) for answer in sorted(set(ratings["answer"].astype(str)))]
        whole = LEFT_OUT if seed is None else masi_alpha(answers, sets, np.random.default_rng(seed))
        each = ((label, with_label(question, ratings, label)) for label in question.labels)
        return (
            Coefficient(name="alpha (MASI)", estimate=whole),
            *(coefficient for label, of_label in each for coefficient in _of_labels(of_label, seed, label)[::2]),
        )
    return _of_labels(answers, seed)


def _of_labels(answers: Answers, seed: int | None, label: str = "") -> tuple[Coefficient, ...]:
    alpha = LEFT_OUT if seed is None else nominal_alpha(answers, np.random.default_rng(seed))
    estimates = {"AC1": ac1(answers), "Fleiss' kappa": fleiss_kappa(answers), "alpha (nominal)": alpha}
    return tuple(Coefficient(name=name, label=label, estimate=estimate) for name, estimate in estimates.items())


def shares(
    question: QuestionScale, ratings: pd.DataFrame, interval: str, level: float | None = None
) -> tuple[Share, ...]:
    """Return each label's share, or share of first ranks, with the rule's interval; none of texts.

    `level` is the one-sided level of a look after a block.
    """
    none, level = Estimate.undefined("no ratings"), ALPHA if level is None else level
    answers = {label: with_label(question, ratings, label) for label in question.labels if len(ratings)}
    return tuple(
        Share(label=label, share=MeanOfAnswers(answers[label], interval).estimate(level) if answers else none)
        for label in question.labels
    )


SAME = "all pairs have the same value, so their spread is unknown"


@dataclass(frozen=True)
class Rankings:
    """One question's rankings: pair and rater by number, and for each answer the rank of every label, in order.

    Equal labels share the mean of the places that they fill: 1, 2.5, 2.5, 4.
    """

    pair: Integers
    rater: Integers
    ranks: Floats

    @classmethod
    def of(cls, question: QuestionScale, ratings: pd.DataFrame) -> Rankings:
        """Build them from a frame with the columns pair_id, rater_id and answer, whose answers are whole rankings."""
        from scipy import stats  # noqa: PLC0415 (half a second; who only reads verdicts goes without)

        pair, rater = pd.factorize(ratings["pair_id"])[0].astype(np.int64), rater_numbers(ratings["rater_id"])
        which, texts = pd.factorize(ratings["answer"].astype(str))
        places = [[ranks_of(answer)[label] for label in question.labels] for answer in texts]
        ranks = stats.rankdata(np.array(places, np.float64).reshape(-1, len(question.labels)), axis=1)
        return cls(pair, rater, ranks[which])

    def by_pair(self, values: Floats) -> Floats:
        """Sum the answers' values by pair, a row for each pair."""
        sums: Floats = np.stack([np.bincount(self.pair, weights=column) for column in values.T], axis=1)
        return sums


def ranking_coefficients(question: QuestionScale, ratings: pd.DataFrame) -> tuple[Coefficient, ...]:
    """Return the agreement on one question's rankings; nothing if nobody ranked."""
    if ratings.empty:
        return ()
    rankings = Rankings.of(question, ratings)
    estimates = {"tau-b": kendall_tau(rankings), "W": kendall_w(rankings)}
    return tuple(Coefficient(name=name, estimate=estimate) for name, estimate in estimates.items())


def kendall_tau(rankings: Rankings) -> Estimate:
    """Return the mean over pairs of Kendall's tau-b of every two raters of a pair, with its t interval over pairs.

    Kendall (1945), Biometrika 33, 239-251; the mean over every two raters: Ehrenberg (1952), Biometrika 39, 82-87. Its
    value by chance is 0 for any number of raters, so pairs with missing raters count like others. With s the
    signs of the differences of a ranking's labels, two by two, tau-b of two rankings is the cosine of their s. A
    ranking in which all are equal has no tau-b and is left out.
    """
    twos = list(combinations(range(rankings.ranks.shape[1]), 2))
    signs = np.stack([np.sign(rankings.ranks[:, i] - rankings.ranks[:, j]) for i, j in twos], axis=1)
    length = np.sqrt((signs**2).sum(axis=1))
    units = signs / np.maximum(length, 1)[:, None]
    raters = np.bincount(rankings.pair, weights=length > 0)
    several = raters >= 2
    if not several.any():
        none = bool((np.bincount(rankings.pair) >= 2).any())
        return Estimate.undefined("no pair has two rankings" + (" in which not all are equal" if none else ""))
    # Of n vectors of length 1 the cosines of all twos sum to (|their sum|^2 - n) / 2.
    sums, n = (rankings.by_pair(units) ** 2).sum(axis=1)[several], raters[several]
    return _mean_over_pairs((sums - n) / (n * (n - 1)), -1.0)


def kendall_w(rankings: Rankings) -> Estimate:
    """Return the mean over pairs of Kendall's concordance W, corrected for ties, with its t interval over pairs.

    Kendall and Babington Smith (1939), Annals of Mathematical Statistics 10, 275-287; ties: Kendall, Rank Correlation
    Methods, chapter 6. Of m raters of k labels, R_j the sum of label j's ranks, and t how many are equal in each group
    of a rater's equal ones:

        W = (12 sum_j R_j^2 - 3 m^2 k (k + 1)^2) / (m^2 k (k^2 - 1) - m sum (t^3 - t))

    By chance it is 1 / m and not 0. A pair whose raters all rank all labels equal has no W.
    """
    ranks, k = rankings.ranks, rankings.ranks.shape[1]
    m = np.bincount(rankings.pair).astype(np.float64)
    # A ranking's own sum of squares is k (k^2 - 1) / 12 less its ties: sum (t^3 - t) / 12.
    spread = np.bincount(rankings.pair, weights=((ranks - (k + 1) / 2) ** 2).sum(axis=1))
    apart = ((rankings.by_pair(ranks) - m[:, None] * (k + 1) / 2) ** 2).sum(axis=1)
    several = m >= 2
    if not several.any():
        return Estimate.undefined("no pair has two rankings")
    defined = several & (spread > 0)
    if not defined.any():
        return Estimate.undefined("no pair has two rankings in which not all are equal")
    return _mean_over_pairs((apart / np.where(defined, m * spread, 1))[defined], 0.0)


def _mean_over_pairs(values: Floats, least: float) -> Estimate:
    """Return the mean of the pairs' values, with its t interval cut at the coefficient's least value and 1."""
    mean = over_pairs(values, np.ones(len(values)))
    if math.isnan(mean.low):
        why = "only one pair, so no interval" if len(values) < 2 else SAME
        return Estimate.alone(float(mean.value), why)
    low, high = max(least, float(mean.low)), min(1.0, float(mean.high))
    return Estimate(value=float(mean.value), low=low, high=high)


def mean_ranks(question: QuestionScale, ratings: pd.DataFrame, interval: str) -> tuple[MeanRank, ...]:
    """Return each label's mean rank (ties share the mean of their places), with the rule's interval."""
    if ratings.empty:
        return tuple(MeanRank(label=label, rank=Estimate.undefined("no ratings")) for label in question.labels)
    rankings = Rankings.of(question, ratings)
    return tuple(
        MeanRank(label=label, rank=_mean_rank(rankings, rankings.ranks[:, column], interval))
        for column, label in enumerate(question.labels)
    )


def _mean_rank(rankings: Rankings, ranks: Floats, interval: str) -> Estimate:
    if interval != "pairs" and (rankings.rater < 0).any():
        return Estimate.alone(float(ranks.mean()), UNKNOWN_RATERS)
    mean = _mean(rankings, ranks, interval)
    few = TOO_FEW_RATERS if interval != "pairs" else SAME
    reason = "" if not math.isnan(mean.low) else few if rankings.pair.max() else "only one pair, so no interval"
    return Estimate(value=float(mean.value), low=float(mean.low), high=float(mean.high), reason=reason)


def _mean(rankings: Rankings, ranks: Floats, interval: str) -> Mean:
    pairs, raters = (
        (np.bincount(by, weights=ranks).astype(np.float64), np.bincount(by).astype(np.float64))
        for by in (rankings.pair, rankings.rater)
    )
    return over_pairs(*pairs) if interval == "pairs" else over_pairs_and_raters(*pairs, *raters)
