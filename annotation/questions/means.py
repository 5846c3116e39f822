"""The mean of ratings, or the share of a label, with the interval and the P that verdicts have.

Both come from one test over the means of pairs (`plumbline.statistics.group_sequential.p_above`), so that P is at least
0.975 exactly where the lower end reaches the limit.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from annotation.questions.summary import Chance
from plumbline.statistics.agreement import UNKNOWN_RATERS, Answers
from plumbline.statistics.estimates import Estimate, Floats, Mean, over_pairs_and_raters
from plumbline.statistics.group_sequential import ALPHA, FEW, FEWEST, reached, repeated_interval

TOO_FEW_RATERS = "too few raters, or too little spread, to generalise to other raters"


@dataclass(frozen=True)
class MeanOfAnswers:
    """The mean over single answers, of which there is at least one."""

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
