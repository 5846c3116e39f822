"""What a question's answers come to: means, shares, ranks, agreement, and P."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from plumbline.records import Number, Record
from plumbline.statistics.agreement import UNKNOWN_RATERS, Answers
from plumbline.statistics.estimates import Estimate, Floats, Mean, over_pairs_and_raters
from plumbline.statistics.group_sequential import ALPHA, FEW, FEWEST, reached, repeated_interval


class Share(Record):
    """The share of answers to a question that have a label, or rank it first."""

    label: str = Field(description="the label")
    share: Estimate = Field(description="the label's share; interval as of the mean")
    unbiased: Estimate | None = Field(
        default=None, description="for a rule by blocks: share without the bias of stopping early, with its interval"
    )


class MeanRank(Record):
    """A label's mean rank in the rankings of a question, 1 for first; tied labels share the mean of their ranks."""

    label: str = Field(description="the label")
    rank: Estimate = Field(description="the label's mean rank; interval over pairs")


class Coefficient(Record):
    """Agreement on answers that are no points of a scale."""

    name: str = Field(description="AC1, Fleiss' kappa, alpha (nominal), alpha (MASI); for rankings tau-b, W")
    label: str = Field(
        default="", description="with several labels: the label whose yes/no answers are compared; empty for all labels"
    )
    estimate: Estimate = Field(description="the coefficient, with its interval")


class Summary(Record):
    """The ratings of one question within one group, as HTEB's Table 2 reports them. NaN is null in the file."""

    question: str = Field(description="name of the question, such as quality or fluency")
    n_pairs: int = Field(description="pairs with at least one rating that counts")
    n_raters: int | None = Field(
        description="raters with at least one rating that counts; missing if a file does not name them"
    )
    n_ratings: int = Field(description="ratings that count")
    mean: Number = Field(description="mean over single ratings")
    sd: Number = Field(description="sample standard deviation over single ratings")
    low: Number = Field(description="lower end of the mean's 95% interval")
    high: Number = Field(description="upper end of the mean's 95% interval")
    interval: Literal["pairs", "pairs_and_raters", "blocks"] = Field(
        description="what the interval covers. pairs: the sampling of pairs; pairs_and_raters: of pairs and raters;"
        " blocks: of pairs, valid at the looks after all blocks together"
    )
    interval_reason: str = Field(description="the reason why there is no interval; empty if there is one")
    probability: Number = Field(description="P for the threshold; NaN if undefined")
    ac2: Estimate = Field(description="Gwet's AC2 with ordinal weights; interval over pairs")
    alpha: Estimate = Field(description="Krippendorff's alpha, ordinal; BCa bootstrap")
    kappa: Estimate = Field(description="mean of Cohen's kappa over all pairs of raters, squared weights; jackknife")
    raw: Estimate = Field(description="share of equal ratings among all couples of ratings of a pair; BCa bootstrap")
    kind: str = Field(
        default="rating", description="the question's kind; only ratings have means, AC2, alpha and kappa"
    )
    unbiased: Estimate | None = Field(
        default=None,
        description="for a rule by blocks: median-unbiased mean, without the bias of stopping early, with interval",
    )
    shares: tuple[Share, ...] = Field(
        default=(), description="for labels and rankings: the share of answers that give each label, or rank it first"
    )
    ranks: tuple[MeanRank, ...] = Field(default=(), description="for rankings: each label's mean rank")
    coefficients: tuple[Coefficient, ...] = Field(default=(), description="for labels and rankings: agreement")

    def judged(self, label: str = "") -> Estimate:
        """Return the number that a rule judges: the mean, or the share of a label."""
        if not label:
            return Estimate(value=self.mean, low=self.low, high=self.high, reason=self.interval_reason)
        return next(share.share for share in self.shares if share.label == label)


class Chance(Record):
    """The P of one rule (`P_IS`)."""

    probability: Number = Field(description="P; NaN if undefined")
    reason: str = Field(default="", description="the reason why there is no P; else empty")


TOO_FEW_RATERS = "too few raters, or too little spread, to generalise to other raters"


@dataclass(frozen=True)
class MeanOfAnswers:
    """The mean over single answers (of a label, its share), of which there is at least one.

    Interval and P come from one test over the means of pairs (`plumbline.statistics.group_sequential.p_above`). With
    raters as a sample the interval reaches at least as far as the t interval over pairs and raters, and P is the less
    sure of that test's and of the t distribution's with this interval's degrees of freedom. Either way P is at least
    0.975 exactly where the lower end reaches the limit.
    """

    answers: Answers
    interval: str = "pairs"  #: the sample: `pairs`, with raters taken as fixed, or `pairs_and_raters`

    @functools.cached_property
    def value(self) -> float:
        """The mean."""
        sums, counts = self._pairs
        return float(sums.sum() / counts.sum())

    def estimate(self, level: float = ALPHA) -> Estimate:
        """Return the mean with an interval of which each end errs at this level, or the reason why there is none."""
        bottom, top = self._scale
        low, high = repeated_interval(self._pair_means, self._scale, level, self.value)
        if self._over_raters is not None and not math.isnan(low):
            low = float(np.minimum(low, np.maximum(bottom, self._over_raters.low)))
            high = float(np.maximum(high, np.minimum(top, self._over_raters.high)))
        return Estimate(value=self.value, low=low, high=high, reason=self._why_none if math.isnan(low) else "")

    def reached(self, limit: float) -> Chance:
        """Return P for a mean of at least the limit, or the reason why there is none."""
        if not self._scale[0] < limit < self._scale[1]:
            reason = "no mean or share lies beyond an end of its scale, so a limit there has no P"
            return Chance(probability=math.nan, reason=reason)
        sure = [float(reached(self._pair_means, limit, self._scale)), float(self.value >= limit)]
        if self._over_raters is not None:
            sure = [sure[0], float(self._over_raters.at_least(limit))]
        probability = float(np.median([*sure, 0.5]))  # the less sure, and neither where they differ about the side
        return Chance(probability=probability, reason=self._why_none if math.isnan(probability) else "")

    @property
    def _why_none(self) -> str:
        if self._over_raters is not None and self.answers.raters is None:
            return UNKNOWN_RATERS
        return FEW if self.answers.pairs < FEWEST else TOO_FEW_RATERS

    @functools.cached_property
    def _pairs(self) -> tuple[Floats, Floats]:
        return self.answers.totals(self.answers.pair)

    @property
    def _pair_means(self) -> Floats:
        sums, counts = self._pairs
        return sums / counts

    @property
    def _scale(self) -> tuple[float, float]:
        return float(self.answers.scale[0]), float(self.answers.scale[-1])

    @functools.cached_property
    def _over_raters(self) -> Mean | None:
        if self.interval == "pairs":
            return None
        if self.answers.raters is None:
            return Mean(*[np.array(math.nan)] * 3)
        return over_pairs_and_raters(*self._pairs, *self.answers.totals(self.answers.rater))
