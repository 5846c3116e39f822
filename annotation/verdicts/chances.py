"""How sure a verdict is: P that the mean, or the share, of all pairs keeps to a rule, given those that were rated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotation.records import Chance, Summary
from annotation.statistics.agreement import Answers
from annotation.statistics.intervals import score_at_least
from annotation.statistics.labels import with_label
from annotation.statistics.summaries import Design, mean_of
from plumbline.study.campaign import AcceptanceSpec, RuleSpec


def chances(ratings: pd.DataFrame, rules: Sequence[RuleSpec], design: Design) -> tuple[Chance, ...]:
    """P of each rule, of one group's ratings that count, in the rules' order.

    Of a mean it is P(mean >= threshold) as for one threshold (`Mean.at_least`), or its rest for `at_most`; of a share
    that of the score test which Wilson's interval inverts, of the same effective number of answers (`score_at_least`),
    so that P is 0.975 where the interval's end is at the limit. A median's interval has no distribution to tell it by.
    """
    return tuple(_chance(ratings[ratings["question"] == one.question], one, design) for one in rules)


def overall(summaries: Sequence[Summary], found: Sequence[Chance], rule: AcceptanceSpec) -> float:
    """How close a verdict was: the least P of what must hold together, the greatest of what may hold alone.

    Without rules of their own that is the least P(mean >= threshold) of the questions. NaN if any is, or none is there.
    """
    own = [one.probability for one in found if rule.rules]
    if not rule.rules:
        own = [one.probability for one in summaries if one.kind == "rating"]
    if not own:
        return math.nan
    return float(np.min(own) if rule.combine == "all" else np.max(own))


def _chance(own: pd.DataFrame, rule: RuleSpec, design: Design) -> Chance:
    if rule.statistic == "median":
        return Chance(probability=math.nan, reason="the interval of a median is of order statistics, without a P")
    if own.empty:
        return Chance(probability=math.nan, reason="no ratings")
    asked = design.asked(rule.question)
    answers = with_label(asked, own, rule.label) if rule.label else Answers.of(own, asked.scale)
    mean, reason = mean_of(answers, design.rule.interval, within_bounds=design.bounded)
    if rule.label and not 0 < rule.limit < 1:
        return Chance(probability=math.nan, reason="no share lies beyond 0 or 1, so that a limit there has no P")
    reached = score_at_least(mean, answers.pairs, rule.limit) if rule.label else mean.at_least(rule.limit)
    probability = float(reached if rule.at_least is not None else 1 - reached)
    return Chance(probability=probability, reason=reason if math.isnan(probability) else "")
