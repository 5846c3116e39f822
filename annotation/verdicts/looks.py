"""Looks after blocks of pairs (`acceptance.stop: blocks`): what each said, and which pairs raters are to get next.

A look takes all pairs of the blocks up to it, once each of them is dealt with. The first look that decides ends the
verdict: later ratings play no part. Its interval holds at all looks together, by alpha spending.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from annotation.ratings.ratings import Dealt
from annotation.records import BlockLook, Outcome, TakenLook
from annotation.sampling.queues import ends_of
from annotation.statistics.summaries import Design, compact, summarise
from annotation.verdicts.rules import RuleValue, decide, rule_values, rules_for
from annotation.verdicts.tables import count
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.group_sequential import FEWEST, Blocks, levels, spent, unbiased_mean

_ROUNDING = 1e-9  # of a mean

#: Why a mean that stopped early is reported twice.
WHY_UNBIASED = (
    "A campaign stops early where its mean happens to lie far from the limit, so the plain mean lies too far from it on"
    " average; the median-unbiased mean, in the stage-wise order of results, is as often too high as too low"
)


@dataclass(frozen=True)
class LookNumbers:
    """What a look was in numbers, as it is kept (`annotation.records.TakenLook`)."""

    look: int
    pairs: int
    level: float
    means: tuple[float, ...]
    decision: Outcome


@dataclass(frozen=True)
class BlockProgress:
    """How far the blocks of one group that is judged apart have come."""

    ends: tuple[int, ...]  #: pairs after each block, withdrawn ones among them
    counting: tuple[str, ...]  #: pairs that count: of the blocks up to the last look, in their order
    complete: int  #: blocks in which all pairs are dealt with
    opened: int  #: blocks that raters get, or got: up to the look that decided, or else with the next one
    looks: tuple[BlockLook, ...]  #: what each look saw, of each rule
    level: float  #: one-sided level of the last look; NaN before the first
    decision: Outcome  #: what the last look says
    missing: int  #: answers that the open block waits for
    unbiased: Mapping[str, Estimate]  #: means without the bias of stopping, by question, once it has stopped
    steps: tuple[LookNumbers, ...] = ()  #: each look in numbers, to be kept

    @property
    def n_looks(self) -> int:
        """How many looks there were, up to the one that decided."""
        return max((look.look for look in self.looks), default=0)

    def lines(self) -> tuple[str, ...]:
        """What a reader must know beside the decision."""
        if self.decision != "undecided":
            spared = count(self.ends[-1] - self.ends[self.opened - 1], "pair")
            return (f"decided after block {self.opened} of {len(self.ends)}: {spared} need no ratings",)
        if self.complete == len(self.ends):
            return (f"undecided after the last of {count(len(self.ends), 'block')}",)
        return (f"block {self.complete + 1} of {len(self.ends)} waits for {count(self.missing, 'answer')}",)


@dataclass(frozen=True)
class _Look:
    """One look: the pairs that count, its level, and what each rule's number is."""

    number: int
    pair_ids: list[str]
    level: float
    values: list[RuleValue]
    decision: Outcome

    @property
    def step(self) -> LookNumbers:
        """It in numbers."""
        means = tuple(value.value for value in self.values)
        return LookNumbers(self.number, len(self.pair_ids), self.level, means, self.decision)

    def differs(self, before: TakenLook) -> bool:
        """Whether its pairs or means are not those that it was taken on."""
        same = np.allclose(self.step.means, before.means, rtol=0, atol=_ROUNDING, equal_nan=True)
        return len(self.pair_ids) != before.pairs or not same


def block_progress(
    order: Sequence[str],
    ratings: pd.DataFrame,
    answered: Mapping[str, int],
    settled: Dealt,
    design: Design,
    group: tuple[str, ...],
) -> BlockProgress:
    """Look after each complete block of one group, until a look decides.

    Looks that were taken before (`design.taken`) stand: one that did not decide is not taken again on ratings that
    changed, and one that decided still must. Where pairs or means of one are not what they were, later looks have as
    their level what they may spend by themselves.

    Args:
        order: all pairs of the group, in the order of the blocks.
        ratings: those of its pairs that count (excluded, surplus and withdrawn ones are no more among them).
        answered: ratings of each pair that count, on its question with the fewest.
        settled: how many raters are done with each pair, and the pairs that people withdrew: blocks pass them over.
        design: what is asked, and by which rule it is judged.
        group: pool, language and task, as far as the rule's scope goes.
    """
    ends, gone, rule = ends_of(design.blocks, len(order)), set(settled.withdrawn), design.rule

    def missing(pair_id: str) -> int:
        heard = max(answered.get(pair_id, 0), settled.raters.get(pair_id, 0))
        return 0 if pair_id in gone else max(0, design.per_pair - heard)

    waiting = [sum(map(missing, order[start:end])) for start, end in zip((0, *ends), ends, strict=False)]
    complete = next((number for number, answers in enumerate(waiting) if answers), len(ends))
    places = {pair_id: position for position, pair_id in enumerate(order)}
    rated = ratings.assign(turn=ratings["pair_id"].map(places)) if len(ratings) else ratings
    enough = [i for i in order if i not in gone and answered.get(i, 0) >= rule.min_raters]
    looks, fractions, stop, changed = list[_Look](), list[float](), complete, False
    taken = {look.look: look for look in design.taken if look.group == group}
    for number, end in enumerate(ends[:complete], 1):
        pair_ids = [pair_id for pair_id in enough if places[pair_id] < end]
        if len(pair_ids) <= (len(looks[-1].pair_ids) if looks else 0):
            continue  # nothing new to look at
        fractions.append(len(pair_ids) / ends[-1])
        before = taken.get(number)
        if before is not None:
            level = before.level
        elif changed:
            level = float(np.diff(spent(fractions, rule.spending), prepend=0.0)[-1])
        else:
            level = float(levels(fractions, rule.spending)[-1])
        look = _look(
            rated[rated["pair_id"].isin(pair_ids)], _Look(number, pair_ids, level, [], "undecided"), design, group[0]
        )
        changed = changed or (before is not None and look.differs(before))
        stands = before is not None and before.decision == "undecided"
        looks.append(replace(look, decision="undecided") if stands else look)
        if looks[-1].decision != "undecided":
            stop = number
            break
    last = looks[-1] if looks else None
    decision: Outcome = last.decision if last else "undecided"
    stopped = decision != "undecided" or complete == len(ends)
    return BlockProgress(
        ends=ends,
        counting=tuple(last.pair_ids) if last else (),
        complete=complete,
        opened=stop if decision != "undecided" else min(complete + 1, len(ends)),
        looks=tuple(_path(looks)),
        level=last.level if last else math.nan,
        decision=decision,
        missing=waiting[complete] if decision == "undecided" and complete < len(ends) else 0,
        unbiased=_unbiased(rated, looks, ends[-1], design) if looks and stopped else {},
        steps=tuple(look.step for look in looks),
    )


def _look(ratings: pd.DataFrame, look: _Look, design: Design, pool: str) -> _Look:
    """What a look sees and says."""
    of_look = compact(ratings)
    summaries = tuple(
        summarise(of_look, name, design, None, level=look.level)
        for name in design.questions
        if design.asked(name).asked_in(pool)
    )
    rules = rules_for(pool, design.rule)
    decision, _ = decide(summaries, len(look.pair_ids), design.rule, rules)
    outcome: Outcome = "accepted" if decision == "accepted" else "rejected" if decision == "rejected" else "undecided"
    return replace(look, values=rule_values(summaries, design.rule, rules), decision=outcome)


def _path(looks: Sequence[_Look]) -> list[BlockLook]:
    return [
        BlockLook(
            look=look.number,
            pairs=len(look.pair_ids),
            question=value.rule.question,
            label=value.rule.label,
            mean=value.value,
            low=value.low,
            high=value.high,
            limit=value.rule.limit,
        )
        for look in looks
        for value in look.values
    ]


def _unbiased(ratings: pd.DataFrame, looks: Sequence[_Look], most: int, design: Design) -> dict[str, Estimate]:
    """Of each question whose mean a rule is about: the mean without the bias of having stopped at the last look."""
    pairs = [len(look.pair_ids) for look in looks]
    ends = [*pairs, *([most] if pairs[-1] < most else [])]
    estimates = dict[str, Estimate]()
    for index, value in enumerate(looks[-1].values):
        rule = value.rule
        if rule.label or rule.question in estimates:
            continue
        scale = design.asked(rule.question).scale
        held = [
            all(beside.outcome == "accepted" for position, beside in enumerate(look.values) if position != index)
            for look in looks[:-1]
        ]
        of_question = ratings[(ratings["question"] == rule.question) & ratings["pair_id"].isin(looks[-1].pair_ids)]
        means = of_question.groupby("turn")["value"].mean().to_numpy(np.float64)
        if not scale[0] < rule.limit < scale[-1] or pairs[0] < FEWEST:
            why = f"fewer than {FEWEST} pairs at the first look, or a limit at the end of the scale"
            estimates[rule.question] = Estimate.undefined(why, len(means))
        elif rule.at_least is not None:
            blocks = Blocks(ends, rule.limit, (float(scale[0]), float(scale[-1])), design.rule.spending)
            estimates[rule.question] = unbiased_mean(means, len(looks), blocks, held)
        else:  # what it is not to pass is the mirror of what it must reach
            blocks = Blocks(ends, -rule.limit, (-float(scale[-1]), -float(scale[0])), design.rule.spending)
            mirror = unbiased_mean(-means, len(looks), blocks, held)
            update = {"value": -mirror.value, "low": -mirror.high, "high": -mirror.low}
            estimates[rule.question] = mirror.model_copy(update=update)
    return estimates
