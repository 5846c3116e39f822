"""Whether a study's rules can judge the answers to the questions that are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from annotation.questions import Asked
from plumbline.errors import nearest
from plumbline.study.campaign import AcceptanceSpec, QualitySpec, RuleSpec


def wrong_rules(
    rule: AcceptanceSpec, asked: Sequence[Asked], scale: Sequence[int], pools: Sequence[str], used: Sequence[str]
) -> Iterator[str]:
    """What rules say of questions that are not there, or cannot be judged so, and what they leave out.

    `scale` is the rubric's, empty where it has none; `pools` are those of the rubric, of which the study has those
    `used`.
    """
    if not rule.rules and not any(one.kind == "rating" for one in asked):
        yield "no question has a scale, which a threshold is on; say what is accepted in acceptance.rules"
    by_name = {one.name: one for one in asked}
    for one in rule.rules:
        if one.question not in by_name:
            yield f"acceptance.rules: no question is called {one.question!r}; {nearest(one.question, list(by_name))}"
        elif wrong := next(_wrong(one, by_name[one.question], rule), ""):
            yield f"acceptance.rules, {one.question!r}: {wrong}"
        for pool in one.pools:
            if pool not in pools:
                yield f"acceptance.rules, {one.question!r}: there is no pool {pool!r}; {nearest(pool, list(pools))}"
    yield from _unjudged(rule, asked, used)
    if rule.rules:
        return
    for question in asked:
        if question.kind == "rating" and question.scale != tuple(scale):
            yield (f"question {question.name!r} has a scale of its own, which one threshold cannot judge;"
                   " say what is accepted in acceptance.rules")  # fmt: skip


def _unjudged(rule: AcceptanceSpec, asked: Sequence[Asked], pools: Sequence[str]) -> Iterator[str]:
    """Pools that no rule judges, or that a rule judges by a question that they are not asked."""
    for pool in pools:
        own = [one for one in rule.rules if not one.pools or pool in one.pools]
        if rule.rules and not own:
            yield f"acceptance.rules: none judges the pool {pool!r}; add one, or one without pools"
        there = {one.name for one in asked if one.asked_in(pool)}
        for one in own:
            if one.question not in there:
                yield (f"acceptance.rules: the pool {pool!r} is not asked {one.question!r}; name the rule's pools")
        if not rule.rules and not any(one.kind == "rating" and one.asked_in(pool) for one in asked):
            yield f"the pool {pool!r} is asked for no rating, which a threshold is on; say it in acceptance.rules"


def without_effect(quality: QualitySpec, low: int, high: int) -> Iterator[str]:
    """Which rules of `quality` would tell nothing on this scale, as they hold for every answer or for none."""
    most = high - low  # points between any two answers
    if quality.within >= most:
        yield f"quality.within {quality.within} makes every answer to a control right; give less than {most}"
    if quality.apart > most:
        yield f"quality.apart {quality.apart:g} is a sign against nobody; give at most {most}"
    if quality.low < low:
        yield f"quality.low {quality.low:g} lists no pair for review; give at least {low}"
    if quality.low >= high:
        yield f"quality.low {quality.low:g} lists every pair for review; give less than {high}"


def _wrong(one: RuleSpec, asked: Asked, rule: AcceptanceSpec) -> Iterator[str]:
    if asked.kind in ("text", "ranking"):
        yield f"a {asked.kind} is not judged by a rule; rules judge ratings and labels"
    elif one.statistic == "share" and asked.kind == "rating":
        yield "a share is of a label, and this is a rating; take its mean or median"
    elif one.statistic != "share" and asked.kind != "rating":
        yield f"a {asked.kind.replace('_', '-')} has no {one.statistic}; take the share of a label"
    elif one.label and one.label not in asked.labels:
        yield f"no label is called {one.label!r}; {nearest(one.label, list(asked.labels))}"
    elif not one.label and not asked.scale[0] <= one.limit <= asked.scale[-1]:
        yield f"{one.limit:g} is outside the scale {asked.scale[0]} to {asked.scale[-1]}"
    if not asked.required:
        yield "it need not be answered, so that who did not would decide; make it required"
    if rule.min_ac2 is not None and asked.kind == "multi_label":
        yield "min_ac2 is not about several labels; leave it out"
