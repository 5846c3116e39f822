"""The rules of a study's `acceptance`: from means, shares and their intervals to a decision with its reasons.

A single threshold is treated as a rule on the mean of each rated question (`Question.threshold_rules`), so there is one
way to decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.questions.question import KINDS
from annotation.questions.summary import Summary
from annotation.records import Fixed, Verdict
from plumbline.exhibits.templates import listed
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from plumbline.study.subject import ItemNames

_ROUNDING = 1e-9
_UNCHECKED = (
    "Not checked: whether raters pass the controls and agree beyond chance (because acceptance.protocol is paper,"
    " or people do tasks)."
)


@dataclass(frozen=True)
class RuleValue:
    """A rule's quantity in one group of ratings."""

    rule: RuleSpec
    by_interval: bool  #: whether the interval decides, not the number itself
    estimate: Estimate

    @property
    def outcome(self) -> str:
        """Accepted, rejected or undecided."""
        value, low, high = map(np.array, (self.estimate.value, self.estimate.low, self.estimate.high))
        return str(outcomes(value, low, high, self.rule, by_interval=self.by_interval))

    @property
    def what(self) -> str:
        """The question, with the label if the rule is about a share."""
        return f"{self.rule.label} in {self.rule.question}" if self.rule.label else self.rule.question

    @property
    def told(self) -> str:
        """The statistic in brackets, beside an end of its interval."""
        return f"({self.rule.statistic} {self.estimate.value:.2f})"

    @property
    def number(self) -> str:
        """The statistic with its number: `mean quality 4.17`."""
        of = "of " if self.rule.label else ""
        return f"{self.rule.statistic} {of}{self.what} {self.told_from_limit(self.estimate.value)}"

    def told_from_limit(self, end: float) -> str:
        """Return the number, or an end of its interval, as `told_from` the rule's limit."""
        return told_from(end, self.rule.limit)

    @property
    def why_not(self) -> str:
        """Why the rule does not accept."""
        limit, statistic = f"{self.rule.limit:g}", self.told
        beyond, end, at_end = "above", "lower", self.estimate.low
        if self.rule.at_least is not None:
            beyond, end, at_end = "below", "upper", self.estimate.high
        if self.outcome == "rejected" and not self.by_interval:
            return f"{self.number} is {beyond} {limit}"
        if self.outcome == "rejected":
            return f"{end} end of {self.what} {self.told_from_limit(at_end)} {statistic} is {beyond} {limit}"
        if math.isnan(self.estimate.low):
            return f"{self.what} {statistic} has no interval: {self.estimate.reason}"
        ends = " to ".join(map(self.told_from_limit, (self.estimate.low, self.estimate.high)))
        return f"interval of {self.what} {ends} {statistic} does not decide about {limit}"


def told_from(value: float, limit: float) -> str:
    """Return a number with two digits, or with more where it needs them to be told from a limit.

    >>> told_from(2.998, 3), told_from(0.054, 0.05), told_from(3, 3), told_from(-0.001, 0.2)
    ('2.998', '0.054', '3.00', '0.00')
    """
    digits = next((digits for digits in range(2, 6) if round(value, digits) != round(limit, digits)), 2)
    return f"{value:z.{digits}f}"


def in_words(rule: RuleSpec) -> str:
    """Return a rule in words: `mean quality at least 3`, `share of odd in sound at most 0.1 (negation)`."""
    target = f"of {rule.label} in {rule.question}" if rule.label else rule.question
    pools = f" ({', '.join(rule.pools)})" if rule.pools else ""
    return f"{rule.statistic} {target} at {'least' if rule.at_least is not None else 'most'} {rule.limit:g}{pools}"


def briefly(rule: RuleSpec) -> str:
    """Return a rule for the head of a narrow column: `quality ≥ 3`, `odd in sound ≤ 0.1`."""
    target = f"{rule.label} in {rule.question}" if rule.label else rule.question
    return f"{target} {'≤' if rule.at_least is None else '≥'}\u00a0{rule.limit:g}"


def rules_for(pool: str, rule: AcceptanceSpec) -> tuple[RuleSpec, ...]:
    """Return the rules for a pool; its own replace general ones on the same question. () with one threshold."""
    of_pool = tuple(spec for spec in rule.rules if pool in spec.pools)
    questions = {spec.question for spec in of_pool}
    return tuple(spec for spec in rule.rules if spec in of_pool or (not spec.pools and spec.question not in questions))


def outcomes(value: Floats, low: Floats, high: Floats, rule: RuleSpec, *, by_interval: bool) -> NDArray[np.str_]:
    """Return the outcomes of one rule, for one campaign or many: accepted, rejected or undecided; NaN never passes.

    By interval the lower end must meet `at_least`, the upper end `at_most`; otherwise the outcome is rejected if even
    the other end misses the limit, else undecided. Else the number itself decides.
    """
    ends = (low, high) if by_interval else (value, value)
    if rule.at_least is not None:
        reached, missed = [end >= rule.at_least for end in ends], [end < rule.at_least for end in ends]
    else:
        reached, missed = [end <= rule.limit for end in ends], [end > rule.limit for end in ends]
    return np.where(reached[0] & reached[1], "accepted", np.where(missed[0] & missed[1], "rejected", "undecided"))


def rule_values(summaries: Sequence[Summary], rule: AcceptanceSpec, rules: Iterable[RuleSpec] = ()) -> list[RuleValue]:
    """Return the statistics that `rules` judge; without rules, the mean of each rated question."""
    by_name = {summary.question: summary for summary in summaries}
    specs = list(rules)
    if not rule.rules:
        specs = [spec for summary in summaries for spec in KINDS[summary.kind].threshold_rules(summary.question, rule)]
    return [RuleValue(spec, rule.by_interval, by_name[spec.question].judged(spec.label)) for spec in specs]


def decide(
    summaries: Sequence[Summary],
    n_pairs: int,
    rule: AcceptanceSpec,
    rules: Sequence[RuleSpec] = (),
    *,
    by_blocks: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """Return the decision on one group of ratings, and its reasons; too few ratings are always undecided.

    A verdict is accepted if all rules accept and rejected if any rejects. NaN never passes. `by_blocks` is whether
    only complete blocks count. Raises RuntimeError for an interval that does not contain its own number: no decision
    rests on contradictory numbers.
    """
    judged = rule_values(summaries, rule, rules)
    if not judged:
        return "undecided", ("no rule applies",)
    for value in judged:
        number = value.estimate
        if number.low > number.value + _ROUNDING or number.high < number.value - _ROUNDING:
            raise RuntimeError(  # a bug: both are of the same ratings
                f"the interval of {value.what} ({number.low:.2f} to {number.high:.2f}) does not contain its own"
                f" {value.rule.statistic} {number.value:.2f}"
            )
    if short_of := tuple(lacking(summaries, n_pairs, rule, rules, by_blocks=by_blocks)):
        return "undecided", short_of
    order = ("rejected", "undecided", "accepted")
    by_outcome: dict[str, list[RuleValue]] = {name: [] for name in order}
    for value in judged:
        by_outcome[value.outcome].append(value)
    decision = next(name for name in order if by_outcome[name])
    if decision == "accepted":
        return decision, ("; ".join(_accepted(by_outcome[decision])),)
    return decision, tuple(value.why_not for value in by_outcome[decision])


def lacking(
    summaries: Sequence[Summary],
    n_pairs: int,
    rule: AcceptanceSpec,
    rules: Sequence[RuleSpec] = (),
    *,
    by_blocks: bool = False,
) -> list[str]:
    """Return what is missing for a decision; arguments as of `decide`."""
    judged = rule_values(summaries, rule, rules)
    if n_pairs < rule.min_pairs:
        which = "that count in complete blocks" if by_blocks else f"with at least {rule.min_raters} raters"
        return [f"pairs {which}: {n_pairs}; at least {rule.min_pairs} are needed"]
    questions = dict.fromkeys(value.rule.question for value in judged)
    of_rules = [summary for summary in summaries if summary.question in questions]
    few = [s for s in of_rules if s.n_ratings < rule.min_ratings]
    if few:
        return [f"ratings of {s.question}: {s.n_ratings}; at least {rule.min_ratings} are needed" for s in few]
    if unknown := [value for value in judged if math.isnan(value.estimate.value)]:
        return [f"no {value.rule.statistic} {value.what}" for value in unknown]
    if rule.min_ac2 is None:
        return []
    agreed = {s.question: next(iter(KINDS[s.kind].agreement(s).items())) for s in of_rules}
    return [
        f"{name} of {question} is "
        + (f"undefined ({estimate.reason})" if math.isnan(estimate.value) else told_from(estimate.value, rule.min_ac2))
        + f"; at least {rule.min_ac2:g} is needed"
        for question, (name, estimate) in agreed.items()
        if not estimate.value >= rule.min_ac2
    ]


def unchecked(verdicts: Iterable[Verdict]) -> str:
    """Return a note if some verdict did not wait for a review of failing raters; else empty."""
    return "" if all(verdict.review.checked for verdict in verdicts) else _UNCHECKED


def in_own_words(reasons: Sequence[str], called: ItemNames) -> list[str]:
    """Return the reasons with the study's word for its items, where records say pairs."""
    return [
        f"{called.item}s{reason.removeprefix('pairs')}" if reason.startswith("pairs ") else reason for reason in reasons
    ]


def _accepted(judged: Sequence[RuleValue]) -> list[str]:
    """Return why rules accept, a part for rules of one kind and limit."""
    parts: dict[tuple[object, ...], list[RuleValue]] = {}
    for value in judged:
        parts.setdefault((value.rule.statistic, value.rule.at_least, value.rule.at_most), []).append(value)
    reasons = []
    for values in parts.values():
        rule, upper = values[0].rule, values[0].rule.at_least is None
        first, *others = (value.number for value in values)
        numbers = [first, *(number.removeprefix(f"{rule.statistic} ") for number in others)]
        if values[0].by_interval:
            ends = ((value, value.estimate.high if upper else value.estimate.low) for value in values)
            numbers = [f"{value.what} {value.told_from_limit(end)} {value.told}" for value, end in ends]
            numbers[0] = f"{'upper' if upper else 'lower'} end{'s' if others else ''} of {numbers[0]}"
        reasons.append(
            f"{listed(numbers)} {'are' if others else 'is'} at {'most' if upper else 'least'} {rule.limit:g}"
        )
    return reasons


LATE: dict[Fixed, str] = {
    "late": "RULES FIXED AFTER THE FIRST RATING: they may have been chosen to fit the ratings.",
    "unknown": "RULES PERHAPS FIXED AFTER THE FIRST RATING: the times of imported ratings are unknown.",
}


def late_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a line if rules of the verdicts were not, or may not have been, fixed before the first rating."""
    return [LATE[rules] for rules in sorted({verdict.rules_fixed for verdict in verdicts} - {""})]


def marks_of(verdicts: Iterable[Verdict]) -> dict[str, bool | str]:
    """Return the columns that mark a table as resting on simulated ratings or on late rules."""
    every = list(verdicts)
    rules = {verdict.rules_fixed for verdict in every}
    worst = next((mark for mark in LATE if mark in rules), "")
    return {"simulated": any(verdict.simulated for verdict in every), "rules_fixed": worst}


def with_rules_fixed(verdicts: Sequence[Verdict], rules: Fixed) -> list[Verdict]:
    """Return the verdicts, marked if their rules were fixed after the first rating."""
    return [verdict.model_copy(update={"rules_fixed": rules}) for verdict in verdicts]
