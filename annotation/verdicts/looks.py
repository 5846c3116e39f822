"""Looks after blocks of pairs (`raters.blocks`): their results, and the pairs that raters get next.

A look takes all pairs of the blocks up to it, once each of them is completed. The first look that decides ends the
verdict: later ratings play no part. Its interval holds at all looks together, by alpha spending.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd

from annotation.campaign.counting import PairCoverage
from annotation.questions.summary import Chance
from annotation.records import BlockLook, Outcome, TakenLook
from annotation.sampling.queues import ends_of
from annotation.statistics.summaries import Design, compact, summarise
from annotation.verdicts.rules import lacking, rules_for
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.group_sequential import (
    FEW,
    FEWEST,
    BlockData,
    Blocks,
    Criterion,
    Looks,
    Path,
    Side,
    take_looks,
)
from plumbline.study.campaign import RuleSpec
from plumbline.words import count

#: The reason why a mean that stopped early is reported twice.
WHY_UNBIASED = (
    "A campaign stops early if its mean happens to lie far from the limit, so the plain mean lies too far from it on"
    " average; the median-unbiased mean (by the stage-wise order of results) is as often too high as too low,"
    " and its 95% interval covers 88 to 95% of skewed ratings' means"
)


@dataclass(frozen=True)
class BlockProgress:
    """The progress of the blocks of one group with a verdict."""

    ends: tuple[int, ...]  #: pairs after each block, including withdrawn ones
    counting: tuple[str, ...]  #: pairs that count in the blocks up to the last look, in their order
    complete: int  #: blocks in which all pairs are completed
    opened: int  #: blocks that raters get or got: up to the look that decided, or else including the next one
    looks: tuple[BlockLook, ...]  #: results of each look for each rule
    level: float  #: one-sided level of the last look; NaN before the first
    decision: Outcome  #: decision of the last look
    missing: int  #: answers that the open block waits for
    #: Means and shares without the bias of stopping, by question and label, once it has stopped.
    unbiased: Mapping[tuple[str, str], Estimate]
    chances: tuple[tuple[str, Chance], ...]  #: question and P of each rule, at the last look

    @property
    def n_looks(self) -> int:
        """The number of looks, up to the deciding one."""
        return max((look.look for look in self.looks), default=0)

    def lines(self) -> tuple[str, ...]:
        """Return remarks to be read beside the decision."""
        if self.decision != "undecided":
            return (decided_after(self.opened, self.ends),)
        if self.complete == len(self.ends):
            return (f"undecided after the last of {count(len(self.ends), 'block')}",)
        return (f"block {self.complete + 1} of {len(self.ends)} still needs {count(self.missing, 'answer')}",)

    def taken(self, group: tuple[str, ...], at: datetime, rule_id: str) -> list[TakenLook]:
        """Return its looks as records."""
        return [
            TakenLook(
                group=group,
                look=number,
                at=at,
                rule_id=rule_id,
                values=tuple(look for look in self.looks if look.look == number),
                decision=self.decision if number == self.n_looks else "undecided",
            )
            for number in range(1, self.n_looks + 1)
        ]


def decided_after(block: int, ends: Sequence[int]) -> str:
    """Return a line on the block that decided, and the pairs of later blocks; `ends` are pairs after each block."""
    spared = ends[-1] - ends[block - 1]
    saved = f"; not needed: ratings of {count(spared, 'pair')}" if spared else ""
    return f"decided after block {block} of {len(ends)}{saved}"


def block_progress(
    order: Sequence[str],
    ratings: pd.DataFrame,
    answered: Mapping[str, int],
    coverage: PairCoverage,
    design: Design,
    group: tuple[str, ...],
) -> BlockProgress:
    """Look after each complete block of one group, until a look decides.

    The rule is that of `plumbline.statistics.group_sequential.looks`, with `design.past_looks` as the looks taken.

    Args:
        order: all pairs of the group, in the order of the blocks.
        ratings: those of its pairs that count (without excluded, surplus and withdrawn ones).
        answered: ratings of each pair that count, on its question with the fewest.
        coverage: how many raters are done with each pair, and the pairs that people withdrew: blocks pass them over.
        design: the questions and the rule.
        group: pool, language and task, as far as the rule's scope goes.
    """
    ends, withdrawn, rule = ends_of(design.blocks, len(order)), set(coverage.withdrawn), design.rule

    def missing(pair_id: str) -> int:
        n_answers = max(answered.get(pair_id, 0), coverage.raters.get(pair_id, 0))
        return 0 if pair_id in withdrawn else max(0, design.per_pair - n_answers)

    waiting = [sum(map(missing, order[start:end])) for start, end in zip((0, *ends), ends, strict=False)]
    complete = next((number for number, answers in enumerate(waiting) if answers), len(ends))
    enough = np.array([i not in withdrawn and answered.get(i, 0) >= rule.min_raters for i in order], dtype=np.bool_)
    places = {pair_id: position for position, pair_id in enumerate(order)}
    rated = ratings.assign(turn=ratings["pair_id"].map(places)) if len(ratings) else ratings
    specs = _specs(group[0], design) if ends and ends[0] >= FEWEST else []
    counting = [enough & (np.arange(len(order)) < end) for end in ends]
    looks, taken_looks = Looks({}, {}, {}, 0, "undecided"), _taken(design, group, specs)
    if specs:
        criteria = {str(number): criterion_of(spec, design) for number, spec in enumerate(specs)}
        values = {str(number): _pair_means(rated, spec, design, len(order)) for number, spec in enumerate(specs)}
        able = [_may_decide(rated, list(itertools.compress(order, at)), design, group[0]) for at in counting]
        looks = take_looks(
            BlockData(values, counting, complete, able),
            Blocks(ends, criteria=criteria),
            {str(number): _path(taken_looks, number) for number in range(len(specs))} if taken_looks else {},
            taken_looks[-1].decision if taken_looks else None,
        )
    n_looks = max((len(path.pairs) for path in looks.paths.values()), default=0)
    decided = looks.decision != "undecided"
    done = max(complete, n_looks)
    return BlockProgress(
        ends=ends,
        counting=tuple(itertools.compress(order, counting[n_looks - 1])) if n_looks else (),
        complete=done,
        opened=n_looks if decided else min(done + 1, len(ends)),
        looks=tuple(_seen(looks, specs)),
        level=next((float(path.levels[-1]) for path in looks.paths.values() if n_looks), math.nan),
        decision=_OUTCOMES[looks.decision],
        missing=sum(waiting[: done + 1]) if not decided and done < len(ends) else 0,
        unbiased=_unbiased(looks, specs) if n_looks and (decided or done == len(ends)) else {},
        chances=tuple(_chances(looks, specs)),
    )


_OUTCOMES: dict[str, Outcome] = {"accepted": "accepted", "rejected": "rejected", "undecided": "undecided"}


def _specs(pool: str, design: Design) -> Sequence[RuleSpec]:
    """Return the rules that judge a pool."""
    if design.rule.rules:
        return rules_for(pool, design.rule)
    return design.threshold_rules(pool)


def criterion_of(spec: RuleSpec, design: Design) -> Criterion:
    """Return a rule's criterion: its limit, scale and side."""
    scale = design.asked(spec.question).judged_scale
    side: Side = "at_least" if spec.at_least is not None else "at_most"
    return Criterion(spec.limit, (float(scale[0]), float(scale[-1])), side)


def _pair_means(ratings: pd.DataFrame, spec: RuleSpec, design: Design, n_pairs: int) -> Floats:
    """Return a rule's statistic of each pair, in their order; NaN for a pair without answers."""
    of_question = ratings[ratings["question"] == spec.question]
    if of_question.empty:
        return np.full(n_pairs, math.nan)
    value = design.asked(spec.question).numbers(of_question, spec.label)
    means: pd.Series = pd.Series(value, dtype=float).groupby(of_question["turn"].to_numpy()).mean()
    return means.reindex(range(n_pairs)).to_numpy(np.float64)


def _may_decide(ratings: pd.DataFrame, pair_ids: Sequence[str], design: Design, pool: str) -> bool:
    """Return whether a look at these pairs meets the rule's needs other than its limits."""
    if len(pair_ids) < design.rule.min_pairs or design.rule.min_ac2 is None:
        return len(pair_ids) >= design.rule.min_pairs
    of_look = compact(ratings[ratings["pair_id"].isin(pair_ids)])
    questions = [name for name in design.questions if design.asked(name).asked_in(pool)]
    summaries = [summarise(of_look, name, design, None) for name in questions]
    return not lacking(summaries, len(pair_ids), design.rule, rules_for(pool, design.rule))


def _taken(design: Design, group: tuple[str, ...], specs: Sequence[RuleSpec]) -> list[TakenLook]:
    """Return the looks taken at a group so far, each as last taken, in order."""
    by_look = {look.look: look for look in design.past_looks if look.group == group and len(look.values) == len(specs)}
    return [by_look[number] for number in itertools.takewhile(by_look.__contains__, itertools.count(1))]


def _path(looks: Sequence[TakenLook], number: int) -> Path:
    """Return the path of the looks taken at one rule."""
    values = [look.values[number] for look in looks]
    columns = (np.array([getattr(value, name) for value in values]) for name in _NUMBERS)
    return Path(np.array([value.pairs for value in values], dtype=np.int64), *columns)


_NUMBERS = ("mean", "low", "high", "level", "above", "below")  # a path's fields after its pairs


def _seen(looks: Looks, specs: Sequence[RuleSpec]) -> Iterator[BlockLook]:
    """Yield the numbers of each look and rule."""
    for row in looks.frame().to_dict("records"):
        spec = specs[int(row["question"])]
        numbers = {name: row[name] for name in ("look", "pairs", "level", "mean", "low", "high")}
        yield BlockLook(
            question=spec.question, label=spec.label, above=row["p_above"], below=row["p_below"], limit=spec.limit,
            **numbers,
        )  # fmt: skip


def _chances(looks: Looks, specs: Sequence[RuleSpec]) -> Iterator[tuple[str, Chance]]:
    """Yield each rule's question and its P at the last look."""
    for spec, reached in zip(specs, looks.reached.values(), strict=True):
        probability = reached if spec.at_least is not None else 1 - reached
        reason = (FEW if looks.pairs else "no block is complete") if math.isnan(probability) else ""
        yield spec.question, Chance(probability=probability, reason=reason)


def _unbiased(looks: Looks, specs: Sequence[RuleSpec]) -> dict[tuple[str, str], Estimate]:
    """Return the judged means and shares, corrected for the bias of stopping at the last look."""
    estimates = zip(specs, looks.unbiased.values(), strict=True)
    return {(spec.question, spec.label): estimate for spec, estimate in reversed(list(estimates))}
