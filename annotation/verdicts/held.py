"""Verdicts that wait for a review of their raters, who miss controls or tell pairs apart no better than chance.

By `acceptance.protocol: checked` (the default) such a verdict is undecided until a person has excluded or kept these
raters (`plumbline review`). By `paper` nobody reviews them, as in HTEB and PTEB, whose rules are about means alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from annotation.campaign.names import named
from annotation.questions.summary import MeanOfAnswers
from annotation.ratings.decisions import answers_hash
from annotation.ratings.signs import controls_by_kind
from annotation.records import Verdict
from annotation.sampling.queues import SCOPES
from annotation.statistics.reliability import LEVEL, misses_too_many, telling_apart, vary
from annotation.statistics.summaries import Design
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.rules import rules_for, told_from
from annotation.verdicts.tables import scoped
from plumbline.statistics.agreement import Answers
from plumbline.study.campaign import QualityLimits
from plumbline.words import count

LOOK = "raters to review: "  # the beginning of a reason
_NAMED = 6  # verdicts that a line names
Missed = Mapping[str, Mapping[str, tuple[int, int]]]  # by rater, by kind of control: (missed, asked)


@dataclass(frozen=True)
class Checks:
    """Checks of raters beside their ratings of the sample."""

    missed: Missed = field(default_factory=dict)
    looked_at: Collection[str] = ()  #: raters whom a person looked at and keeps
    rules: QualityLimits = field(default_factory=QualityLimits)

    @classmethod
    def of(cls, evidence: Evidence) -> Checks:
        """Return the study's checks."""
        collected, rules = evidence.collected, evidence.rubric.quality
        missed = controls_by_kind(collected.known, collected.pairs, rules, evidence.rubric.expected)
        last, ratings = {decision.rater_id: decision for decision in evidence.decisions}, collected.ratings
        looked_at = [  # those who have not answered more since
            name
            for name, decision in last.items()
            if not decision.exclude and decision.answers_hash and decision.answers_hash == answers_hash(ratings, name)
        ]
        return cls(missed, frozenset(looked_at), rules)

    def fails(self, rater: str) -> bool:
        """Return whether a rater misses more controls than an attentive one."""
        return rater in self.missed and misses_too_many(self.missed[rater], self.rules.attentive)

    def together(self, raters: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return the controls of several raters, by kind."""
        totals: dict[str, tuple[int, int]] = {}
        for rater in raters:
            for kind, (n_missed, n_asked) in self.missed.get(rater, {}).items():
                total = totals.get(kind, (0, 0))
                totals[kind] = total[0] + n_missed, total[1] + n_asked
        return totals

    def in_words(self, raters: Collection[str]) -> str:
        """Return how many controls several raters missed."""
        totals = self.together(raters).values()
        return f"{sum(n_missed for n_missed, _ in totals)} of {count(sum(n_asked for _, n_asked in totals), 'control')}"

    def passed(self, raters: Collection[str]) -> bool:
        """Return whether all raters answered each kind of control, and passed enough of them.

        These are enough if raters who miss one kind of them throughout would have failed.
        """
        missed, attentive = self.together(raters), self.rules.attentive
        offered = {kind: n_asked for kind, (_, n_asked) in missed.items() if n_asked}
        return (
            bool(offered)
            and all(offered.keys() <= self.missed.get(rater, {}).keys() and not self.fails(rater) for rater in raters)
            and not misses_too_many(missed, attentive)
            and all(
                misses_too_many({name: (n * (name == kind), n) for name, n in offered.items()}, attentive)
                for kind in offered
            )
        )


def with_checks(verdicts: Sequence[Verdict], evidence: Evidence) -> list[Verdict]:
    """Return the verdicts, undecided where they wait for a look at their raters."""
    if evidence.study.acceptance.protocol != "checked" or evidence.study.judging.does_tasks:
        return list(verdicts)
    verdicts = [verdict.reviewed(checked=True) for verdict in verdicts]
    if all(verdict.decision == "undecided" for verdict in verdicts):
        return verdicts
    return held_back(verdicts, evidence.rests.ratings, evidence.design, Checks.of(evidence))


def held_back(verdicts: Sequence[Verdict], counted: pd.DataFrame, design: Design, checks: Checks) -> list[Verdict]:
    """Return the verdicts, undecided where somebody must look at raters; `counted` are the ratings behind them."""
    key = SCOPES[design.rule.scope]
    groups = {tuple(map(str, group_key)): group for group_key, group in counted.groupby(key, observed=True)}
    reasons = {
        group_key: list(reasons_to_look(group, design, checks, group_key[0])) for group_key, group in groups.items()
    }
    held = []
    for verdict in verdicts:
        to_look_at = reasons.get(tuple(getattr(verdict, name) for name in key))
        if not to_look_at or verdict.decision == "undecided":
            held.append(verdict)
            continue
        by_rule = f"the rule alone: {verdict.decision} ({'; '.join(verdict.reasons)})"
        raters = tuple(sorted({rater for _, raters in to_look_at for rater in raters}))
        why = (*(f"{LOOK}{reason}" for reason, _ in to_look_at), by_rule)
        undecided = verdict.model_copy(update={"decision": "undecided", "reasons": why})
        held.append(undecided.reviewed(unchecked=verdict.decision, to_look_at=raters))
    return held


def reasons_to_look(
    ratings: pd.DataFrame, design: Design, checks: Checks, pool: str = ""
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each reason why a verdict on these ratings of a pool waits, with the raters to look at."""
    counts = {str(rater): int(number) for rater, number in ratings["rater_id"].value_counts().items() if number}
    looked_at = set(counts) <= set(checks.looked_at)
    failing = [rater for rater in counts if checks.fails(rater) and rater not in checks.looked_at]
    share = sum(counts[rater] for rater in failing) / max(sum(counts.values()), 1)
    if share > checks.rules.failing:
        yield (
            f"{count(len(failing), 'rater')} with {share:.0%} of the ratings missed"
            f" {checks.in_words(failing)}, more than attentive raters do",
            failing,
        )
    elif not looked_at and misses_too_many(checks.together(counts), checks.rules.attentive):
        yield (
            f"together they missed {checks.in_words(counts)}, more than attentive raters do",
            [rater for rater in counts if rater not in checks.looked_at],
        )
    if not looked_at and (hollow := _told_apart_by_nobody(ratings, design, pool, passed=checks.passed(counts))):
        yield (
            f"they tell pairs apart no better than chance ({hollow})",
            [rater for rater in counts if rater not in checks.looked_at],
        )


def _told_apart_by_nobody(ratings: pd.DataFrame, design: Design, pool: str, *, passed: bool) -> str:
    """Return the varying questions if raters tell pairs apart on none of them, and this matters; else nothing.

    The level is 5% divided by the number of questions. It does not matter if raters `passed` the controls and each
    mean is clear of its limits by the 95% interval over pairs and raters: texts may be alike.
    """
    p_values, varied = dict[str, float](), dict[str, Answers]()
    for name in design.rated:
        of_question = ratings[ratings["question"] == name]
        if of_question.empty:
            continue
        answers = design.asked(name).judged(of_question)
        if vary(answers) and not math.isnan(p := telling_apart(answers)):
            p_values[name], varied[name] = p, answers
    if not p_values or min(p_values.values()) * len(p_values) <= LEVEL or (passed and _clear(varied, design, pool)):
        return ""
    return ", ".join(f"{name}: p {told_from(p, LEVEL / len(p_values))}" for name, p in p_values.items())


def _clear(varied: Mapping[str, Answers], design: Design, pool: str) -> bool:
    """Return whether each question's mean is clear of its limits by the 95% interval over pairs and raters."""
    rules = rules_for(pool, design.rule) if design.rule.rules else design.threshold_rules(pool)
    for name, answers in varied.items():
        mean = MeanOfAnswers(answers, "pairs_and_raters").estimate()
        limits = [rule.limit for rule in rules if rule.question == name and not rule.label]
        if not all(mean.low >= limit or mean.high < limit for limit in limits):
            return False
    return True


def look_lines(command: Callable[[str], str], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line on the verdicts that wait for a review of their raters, if there are any.

    It names the command that shows these: a pasted line must decide about nobody. `command` is `Study.command`.
    """
    waiting = [verdict for verdict in verdicts if verdict.review.to_look_at]
    if not waiting:
        return
    names = [scoped(verdict.transformation, verdict.language, verdict.task_type) for verdict in waiting]
    unnamed = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    reasons = dict.fromkeys(
        reason.removeprefix(LOOK) for verdict in waiting for reason in verdict.reasons if reason.startswith(LOOK)
    )
    more = f" ({count(len(reasons) - 1, 'further reason')})" if len(reasons) > 1 else ""
    yield (
        f"review raters before {count(len(waiting), 'verdict')} can be decided ({', '.join(names[:_NAMED])}{unnamed}):"
        f" {next(iter(reasons))}{more}; `{command('review')}` shows them, and how to keep or to exclude each"
    )


def waiting_text(verdicts: Sequence[Verdict], names: Mapping[str, str]) -> str:
    """Return which of these verdicts wait for a look at which raters, with each reason; empty where none does."""
    lines = []
    for verdict in verdicts:
        reasons = "; ".join(reason.removeprefix(LOOK) for reason in verdict.reasons if reason.startswith(LOOK))
        raters = ", ".join(named(rater, names) for rater in verdict.review.to_look_at)
        lines.append(f"- {scoped(verdict.transformation, verdict.language, verdict.task_type)}, {raters}: {reasons}")
    title = "Verdicts of the last `accept` that wait until these raters are excluded or kept"
    return "\n".join([title, "", *lines, "", ""]) if lines else ""
