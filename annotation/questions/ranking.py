"""Rankings of labels: mean ranks, and agreement on rankings (Kendall's tau-b and W)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from annotation.questions.label import LabelledQuestion
from annotation.questions.question import BEFORE, EQUALS, Meanings, Question, Value, labels_of
from annotation.questions.summary import TOO_FEW_RATERS, Coefficient, MeanRank
from plumbline.importing import scipy
from plumbline.statistics.agreement import UNKNOWN_RATERS, Integers, rater_numbers
from plumbline.statistics.estimates import Estimate, Floats, over_pairs, over_pairs_and_raters
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from plumbline.words import trim

YES = "yes"  # the label of raters who can tell an order
SAME = "all pairs have the same value, so their spread is unknown"
_NAME = "[a-z][a-z0-9_-]{0,63}"
_ORDER = re.compile(rf"{_NAME}(\s*[>=]\s*{_NAME})*")


def ranks_of(answer: str) -> dict[str, int]:
    """Return the rank of each label in a stored ranking; ties share the lowest of their ranks (1, 2, 2, 4)."""
    ranks: dict[str, int] = {}
    for group in answer.split(BEFORE.strip()):
        rank = len(ranks) + 1
        ranks |= dict.fromkeys(labels_of(group), rank)
    return ranks


def ranked(ranks: Mapping[str, int]) -> str:
    """Labels by their ranks as a stored ranking: `b > a = c`."""
    groups = [[name for name in sorted(ranks) if ranks[name] == rank] for rank in sorted(set(ranks.values()))]
    return BEFORE.join(EQUALS.join(group) for group in groups)


@dataclass(frozen=True)
class RankingQuestion(LabelledQuestion, kind="ranking"):
    """A question that is answered with an order of all labels, in which labels may be equal."""

    argilla: ClassVar[str] = "ranking"
    asks_for: ClassVar[str] = "the order of"
    heds: ClassVar[tuple[int, int]] = (4, 3)
    share_column: ClassVar[str] = "first"

    def wrong(self, value: Value, *, complete: bool = True) -> str:
        if isinstance(value, str) and value and not _ORDER.fullmatch(value):
            return f"the answer {value[:60]!r} is not a ranking of labels, such as {BEFORE.join(self.labels[:3])}"
        if fault := super().wrong(value):
            return fault
        partial = complete and len(labels_of(str(value))) < len(self.labels)
        return f"the answer {str(value)[:60]!r} does not rank all of {', '.join(self.labels)}" if partial else ""

    def _of_text(self, text: str) -> Value:
        return text if self.wrong(text, complete=False) else ranked(ranks_of(text))

    def _of_list(self, value: Any) -> str:
        try:  # of a draft some may have no rank yet
            return ranked({str(entry["value"]): int(entry["rank"]) for entry in value if entry.get("rank")})
        except (AttributeError, KeyError, TypeError, ValueError):
            return str(value)

    def given(self, value: Value) -> Any:
        return [{"value": name, "rank": rank} for name, rank in ranks_of(str(value)).items()]

    def read_words(self, text: str, names: Mapping[str, str]) -> Value:
        parts = (names.get(trim(part).casefold(), trim(part)) for part in re.split("([>=])", text))
        return self.kept(" ".join(parts))

    def answer_in_words(self, value: Value, meanings: Meanings) -> str:
        return str(value)

    def on_page(self, meanings: Meanings, start: float | None, previous: tuple[str, Sequence[str]]) -> dict[str, Any]:
        content, (name, labels) = super().on_page(meanings, start, previous), previous
        return content | ({"after": [name, YES]} if not self.required and YES in labels else {})

    def instrument(self, names: Sequence[str]) -> dict[str, Any]:
        return super().instrument(names) | {"task": f"To order {'; '.join(names)}; the order is recorded"}

    def _unjudged(self, rule: RuleSpec) -> str:
        return Question._unjudged(self, rule)

    def preferences(self, answer: str, labels: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        ranks = ranks_of(answer)
        for first, second in combinations(labels, 2):
            yield first, second, int(np.sign(ranks[second] - ranks[first]))

    def has(self, answer: str, label: str) -> bool:
        """Return whether a ranking puts a label first, alone or tied."""
        return ranks_of(answer).get(label) == 1

    def _statistics(
        self, ratings: pd.DataFrame, rule: AcceptanceSpec, seed: int | None, level: float | None
    ) -> dict[str, Any]:
        return super()._statistics(ratings, rule, seed, level) | {"ranks": self.mean_ranks(ratings, rule.interval)}

    def coefficients(self, ratings: pd.DataFrame, seed: int | None) -> tuple[Coefficient, ...]:
        """Return Kendall's tau-b and W."""
        rankings = Rankings.of(ratings, self.labels)
        estimates = {"tau-b": kendall_tau(rankings), "W": kendall_w(rankings)}
        return tuple(Coefficient(name=name, estimate=estimate) for name, estimate in estimates.items())

    def mean_ranks(self, ratings: pd.DataFrame, interval: str) -> tuple[MeanRank, ...]:
        """Return each label's mean rank (ties share the mean of their places), with the rule's interval."""
        if ratings.empty:
            return tuple(MeanRank(label=label, rank=Estimate.undefined("no ratings")) for label in self.labels)
        rankings = Rankings.of(ratings, self.labels)
        return tuple(
            MeanRank(label=label, rank=rankings.mean_rank(column, interval)) for column, label in enumerate(self.labels)
        )

    def _nearest(self, felt: Floats) -> str:
        near = sorted(range(len(self.labels)), key=lambda number: (abs(number - felt[0]), number))
        return ranked({self.labels[number]: rank for rank, number in enumerate(near, 1)})


@dataclass(frozen=True)
class Rankings:
    """One question's rankings: pair and rater by number, and for each answer the rank of every label, in order.

    Equal labels share the mean of the places that they fill: 1, 2.5, 2.5, 4.
    """

    pair: Integers
    rater: Integers
    ranks: Floats

    @classmethod
    def of(cls, ratings: pd.DataFrame, labels: Sequence[str]) -> Rankings:
        pair, rater = pd.factorize(ratings["pair_id"])[0].astype(np.int64), rater_numbers(ratings["rater_id"])
        which, texts = pd.factorize(ratings["answer"].astype(str))
        places = [[ranks_of(answer)[label] for label in labels] for answer in texts]
        ranks = scipy.stats.rankdata(np.array(places, np.float64).reshape(-1, len(labels)), axis=1)
        return cls(pair, rater, ranks[which])

    def by_pair(self, values: Floats) -> Floats:
        """Sum the answers' values by pair, a row for each pair."""
        sums: Floats = np.stack([np.bincount(self.pair, weights=column) for column in values.T], axis=1)
        return sums

    def mean_rank(self, label: int, interval: str) -> Estimate:
        """Return the mean rank of a label (its number), with the rule's interval."""
        ranks = self.ranks[:, label]
        if interval != "pairs" and (self.rater < 0).any():
            return Estimate.alone(float(ranks.mean()), UNKNOWN_RATERS)
        pairs, raters = (
            (np.bincount(by, weights=ranks).astype(np.float64), np.bincount(by).astype(np.float64))
            for by in (self.pair, self.rater)
        )
        mean = over_pairs(*pairs) if interval == "pairs" else over_pairs_and_raters(*pairs, *raters)
        few = TOO_FEW_RATERS if interval != "pairs" else SAME
        reason = "" if not math.isnan(mean.low) else few if self.pair.max() else "only one pair, so no interval"
        return Estimate(value=float(mean.value), low=float(mean.low), high=float(mean.high), reason=reason)


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
    deviation = ((rankings.by_pair(ranks) - m[:, None] * (k + 1) / 2) ** 2).sum(axis=1)
    several = m >= 2
    if not several.any():
        return Estimate.undefined("no pair has two rankings")
    defined = several & (spread > 0)
    if not defined.any():
        return Estimate.undefined("no pair has two rankings in which not all are equal")
    return _mean_over_pairs((deviation / np.where(defined, m * spread, 1))[defined], 0.0)


def _mean_over_pairs(values: Floats, least: float) -> Estimate:
    """Return the mean of the pairs' values, with its t interval cut at the coefficient's least value and 1."""
    mean = over_pairs(values, np.ones(len(values)))
    if math.isnan(mean.low):
        why = "only one pair, so no interval" if len(values) < 2 else SAME
        return Estimate.alone(float(mean.value), why)
    low, high = max(least, float(mean.low)), min(1.0, float(mean.high))
    return Estimate(value=float(mean.value), low=low, high=high)
