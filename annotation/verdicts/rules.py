"""The rules of a study's `acceptance`: from means, medians, shares and their intervals to a decision with its reasons.

One threshold for all is a rule on the mean of each rated question (`short`): there is one way to decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from annotation.records import Summary, Verdict
from plumbline.statistics.intervals import Floats
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from plumbline.study.subject import ItemNames

_ROUNDING = 1e-9
_SURE = 0.975  # P of a mean whose ordinary 95% interval ends at the limit
_UNCHECKED = (
    "Not looked at: whether raters pass the controls, and whether they agree beyond chance (acceptance.protocol: paper,"
    " tasks that people do, or rules that an earlier version fixed)."
)


@dataclass(frozen=True)
class Found:
    """What a rule is about, as it was found in one group of ratings."""

    rule: RuleSpec
    value: float
    low: float
    high: float
    why: str  #: there is no interval; empty where there is one
    bounded: bool = False  #: whether it is that of a bounded mean, since most pairs have the same

    @property
    def outcome(self) -> str:
        """Accepted, rejected or undecided."""
        return str(outcomes(np.array(self.value), np.array(self.low), np.array(self.high), self.rule))

    @property
    def what(self) -> str:
        """The question, with the label whose share it is."""
        return f"{self.rule.label} in {self.rule.question}" if self.rule.label else self.rule.question

    @property
    def told(self) -> str:
        """The statistic in brackets, beside an end of its interval."""
        return f"({self.rule.statistic} {self.value:.2f}{', bounded' if self.bounded else ''})"

    @property
    def number(self) -> str:
        """The statistic with its number: `mean quality 4.17`."""
        of = "of " if self.rule.label else ""
        return f"{self.rule.statistic} {of}{self.what} {self.value:.2f}"


def short(question: str, rule: AcceptanceSpec) -> RuleSpec:
    """The rule that one threshold is for a question."""
    by: Literal["value", "interval"] = "value" if rule.rule == "mean" else "interval"
    # Not validated: what is asked may be a threshold without end, which every mean reaches.
    return RuleSpec.model_construct(question=question, at_least=rule.threshold, by=by)


def in_words(rule: RuleSpec) -> str:
    """A rule in words: `mean quality at least 3`, `share of odd in sound at most 0.1 (negation)`."""
    what = f"of {rule.label} in {rule.question}" if rule.label else rule.question
    where = f" ({', '.join(rule.pools)})" if rule.pools else ""
    return f"{rule.statistic} {what} at {'least' if rule.at_least is not None else 'most'} {rule.limit:g}{where}"


def rules_for(pool: str, rule: AcceptanceSpec) -> tuple[RuleSpec, ...]:
    """The rules that judge a pool: its own before those for all pools about the same question; () of one threshold."""
    own = tuple(one for one in rule.rules if pool in one.pools)
    said = {one.question for one in own}
    return tuple(one for one in rule.rules if one in own or (not one.pools and one.question not in said))


def outcomes(value: Floats, low: Floats, high: Floats, rule: RuleSpec) -> NDArray[np.str_]:
    """One rule, of one campaign or many: accepted, rejected or undecided; NaN never passes.

    By `value` the number decides. By `interval` its end must keep to the limit, the lower end to `at_least`, the upper
    end to `at_most`; rejected is what has even its other end beyond, and what lies between is undecided.
    """
    ends = (value, value) if rule.by == "value" else (low, high)
    if rule.at_least is not None:
        kept, missed = [end >= rule.at_least for end in ends], [end < rule.at_least for end in ends]
    else:
        kept, missed = [end <= rule.limit for end in ends], [end > rule.limit for end in ends]
    return np.where(kept[0] & kept[1], "accepted", np.where(missed[0] & missed[1], "rejected", "undecided"))


def found(summaries: Sequence[Summary], rule: AcceptanceSpec, rules: Iterable[RuleSpec] = ()) -> list[Found]:
    """What the rules are about: `rules`, or without any the one threshold on each rated question."""
    by_name = {one.question: one for one in summaries}
    own = list(rules)
    if not rule.rules:
        own = [short(one.question, rule) for one in summaries if one.kind == "rating"]
    return [_found(one, by_name[one.question]) for one in own]


def _found(rule: RuleSpec, summary: Summary) -> Found:
    if rule.statistic == "mean":
        return Found(rule, summary.mean, summary.low, summary.high, summary.interval_reason, summary.bounded)
    if rule.statistic == "median" and summary.median is not None:
        estimate = summary.median
    else:
        estimate = next(one.share for one in summary.shares if one.label == rule.label)
    return Found(rule, estimate.value, estimate.low, estimate.high, estimate.reason)


def decide(
    summaries: Sequence[Summary], n_pairs: int, rule: AcceptanceSpec, rules: Sequence[RuleSpec] = ()
) -> tuple[str, tuple[str, ...]]:
    """(decision, reasons) of one group of ratings: too few is undecided, whatever the numbers say.

    Accepted is what all rules accept, rejected what any rejects; combined by `any`, accepted is what one accepts, and
    rejected what all reject. What is not a number never passes. Raises RuntimeError for an interval that does not hold
    its own number: no decision rests on numbers that contradict.
    """
    judged = found(summaries, rule, rules)
    if not judged:
        return "undecided", ("no rule is about it",)
    for one in judged:
        if one.low > one.value + _ROUNDING or one.high < one.value - _ROUNDING:
            raise RuntimeError(  # a bug: both are of the same ratings
                f"the interval of {one.what} ({one.low:.2f} to {one.high:.2f}) does not hold its own"
                f" {one.rule.statistic} {one.value:.2f}"
            )
    if lacking := tuple(_lacking(summaries, judged, n_pairs, rule)):
        return "undecided", lacking
    order = ("rejected", "undecided", "accepted") if rule.combine == "all" else ("accepted", "undecided", "rejected")
    by_outcome: dict[str, list[Found]] = {name: [] for name in order}
    for one in judged:
        by_outcome[one.outcome].append(one)
    decision = next(name for name in order if by_outcome[name])
    if decision == "accepted":
        return decision, ("; ".join(_accepted(by_outcome[decision])),)
    return decision, tuple(_reason(one) for one in by_outcome[decision])


def _lacking(summaries: Sequence[Summary], judged: Sequence[Found], n_pairs: int, rule: AcceptanceSpec) -> list[str]:
    """What is missing for any decision."""
    if n_pairs < rule.min_pairs:
        which = "that count in the sequence" if rule.stop == "anytime" else f"with at least {rule.min_raters} raters"
        return [f"pairs {which}: {n_pairs}, of at least {rule.min_pairs} that are needed"]
    asked = dict.fromkeys(one.rule.question for one in judged)
    own = [one for one in summaries if one.question in asked]
    few = [s for s in own if s.n_ratings < rule.min_ratings]
    if few:
        return [f"ratings of {s.question}: {s.n_ratings}, of at least {rule.min_ratings} that are needed" for s in few]
    if unknown := [one for one in judged if math.isnan(one.value)]:
        return [f"no {one.rule.statistic} {one.what}" for one in unknown]
    if rule.min_ac2 is None:
        return []
    agreed = {s.question: ("AC2", s.ac2) if s.kind == "rating" else ("AC1", s.coefficients[0].estimate) for s in own}
    return [
        f"{name} of {question} is "
        + (f"undefined ({one.reason})" if math.isnan(one.value) else f"{one.value:.2f}")
        + f", at least {rule.min_ac2:g} is needed"
        for question, (name, one) in agreed.items()
        if not one.value >= rule.min_ac2
    ]


def earlier(decision: str, probability: float, n_pairs: int, rule: AcceptanceSpec) -> tuple[str, ...]:
    """That an anytime rule decided at an earlier look, where all its pairs together are less sure."""
    sure = {"accepted": probability, "rejected": 1 - probability}.get(decision, 1.0)
    if rule.stop == "fixed" or not sure < _SURE:
        return ()
    return (
        f"decided at an earlier look, which stays; the {n_pairs} pairs of now are less sure (P {probability:.2f}):"
        " later ones were judged otherwise",
    )


def unchecked(verdicts: Iterable[Verdict]) -> str:
    """What nobody looked at, where a verdict would not have waited for a look at raters who fail; else empty."""
    return "" if all(one.checked for one in verdicts) else _UNCHECKED


def in_own_words(reasons: Sequence[str], called: ItemNames) -> list[str]:
    """Reasons with what the study calls its items: records say pairs, whatever is judged."""
    return [f"{called.item}s{one.removeprefix('pairs')}" if one.startswith("pairs ") else one for one in reasons]


def _reason(one: Found) -> str:
    """Why one rule does not accept."""
    rule, limit = one.rule, f"{one.rule.limit:g}"
    beyond, end, at_end = ("below", "upper", one.high) if rule.at_least is not None else ("above", "lower", one.low)
    if one.outcome == "rejected" and rule.by == "value":
        return f"{one.number} is {beyond} {limit}"
    told = one.told
    if one.outcome == "rejected":
        return f"{end} end of {one.what} {at_end:.2f} {told} is {beyond} {limit}"
    if math.isnan(one.low):
        return f"no interval of {one.what} {told}: {one.why}"
    return f"interval of {one.what} {one.low:.2f} to {one.high:.2f} {told} does not decide about {limit}"


def _accepted(judged: Sequence[Found]) -> list[str]:
    """Why rules accept: a part for those of one kind and limit."""
    parts: dict[tuple[object, ...], list[Found]] = {}
    for one in judged:
        parts.setdefault((one.rule.statistic, one.rule.by, one.rule.at_least, one.rule.at_most), []).append(one)
    return [_kept(own) for own in parts.values()]


def _kept(own: Sequence[Found]) -> str:
    rule = own[0].rule
    limit = f"at {'least' if rule.at_least is not None else 'most'} {rule.limit:g}"
    if rule.by == "value":
        first, *others = (one.number for one in own)
        return ", ".join([first, *(other.removeprefix(f"{rule.statistic} ") for other in others)]) + f": {limit}"
    upper = rule.at_least is None
    ends = (f"{one.what} {one.high if upper else one.low:.2f} {one.told}" for one in own)
    return f"{'upper' if upper else 'lower'} end of {', '.join(ends)}: {limit}"
