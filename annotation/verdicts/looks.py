"""Looks after blocks of pairs (`raters.blocks`): their results, and the pairs that raters get next.

A look takes all pairs of the blocks up to it, once each of them is completed. The first look that decides ends the
verdict: later ratings play no part. Its interval holds at all looks together, by alpha spending.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.campaign.counting import PairCoverage
from annotation.questions.summary import Chance, Summary
from annotation.records import BlockLook, Outcome, TakenLook
from annotation.sampling.queues import ends_of
from annotation.statistics.summaries import Design, compact, summarise
from annotation.verdicts.rules import lacking, rules_for
from plumbline.statistics.estimates import Estimate
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
    """The progress of the blocks of one group with a verdict, and what follows from the looks at them."""

    ends: tuple[int, ...]  #: pairs after each block, including withdrawn ones
    waiting: tuple[int, ...]  #: answers that each block still needs
    order: tuple[str, ...]  #: all pairs, in the order of the blocks
    enough: NDArray[np.bool_]  #: for each of them whether it counts once a look takes its block
    rules: tuple[RuleSpec, ...]  #: those that each look judges
    results: Looks  #: of the rules, which are numbered from 0
    compared: int = 0  #: blocks that comparing systems takes so far: those looked at, and the next if needed
    apart: tuple[str, ...] = ()  #: systems from which this one is told apart
    alike: tuple[str, ...] = ()  #: systems from which it is not told apart so far

    @property
    def n_looks(self) -> int:
        """The number of looks, up to the deciding one."""
        return max((len(path.pairs) for path in self.results.paths.values()), default=0)

    @property
    def decision(self) -> Outcome:
        """The decision of the last look."""
        return _OUTCOMES[self.results.decision]

    @property
    def complete(self) -> int:
        """The number of blocks in which all pairs are completed, or which a look took."""
        return max(self.answered, self.n_looks)

    @property
    def answered(self) -> int:
        """The number of blocks in which all pairs are completed now."""
        return next((number for number, answers in enumerate(self.waiting) if answers), len(self.ends))

    @property
    def opened(self) -> int:
        """The number of blocks that raters get or got: up to the look that decided, or else including the next one.

        Where systems are compared, also those that this takes.
        """
        needed = self.n_looks if self.decision != "undecided" else min(self.complete + 1, len(self.ends))
        return max(needed, self.compared)

    @property
    def going_on(self) -> bool:
        """Whether answers to an open block can still decide something."""
        return self.opened > self.complete

    @property
    def missing(self) -> int:
        """The number of answers that the open block waits for."""
        return sum(self.waiting[: self.opened]) if self.going_on else 0

    @property
    def counting(self) -> tuple[str, ...]:
        """The pairs that count in the blocks up to the last look, in their order."""
        end = self.ends[self.n_looks - 1] if self.n_looks else 0
        return tuple(itertools.compress(self.order[:end], self.enough))

    @property
    def level(self) -> float:
        """The one-sided level of the last look; NaN before the first."""
        return next((float(path.levels[-1]) for path in self.results.paths.values() if self.n_looks), math.nan)

    @functools.cached_property
    def looks(self) -> tuple[BlockLook, ...]:
        """The results of each look for each rule."""
        frame = self.results.frame().rename(columns={"p_above": "above", "p_below": "below"})
        of_rules = [self.rules[int(number)] for number in frame.pop("question")]
        return tuple(
            BlockLook.model_validate({**row, "question": rule.question, "label": rule.label, "limit": rule.limit})
            for rule, row in zip(of_rules, frame.to_dict("records"), strict=True)
        )

    @property
    def chances(self) -> tuple[tuple[str, Chance], ...]:
        """Each rule's question and its P at the last look."""
        chances = []
        for rule, reached in zip(self.rules, self.results.reached.values(), strict=True):
            probability = reached if rule.at_least is not None else 1 - reached
            reason = (FEW if self.results.pairs else "no block is complete") if math.isnan(probability) else ""
            chances.append((rule.question, Chance(probability=probability, reason=reason)))
        return tuple(chances)

    @property
    def unbiased(self) -> Mapping[tuple[str, str], Estimate]:
        """Means and shares without the bias of stopping, by question and label, once it has stopped."""
        if not self.n_looks or (self.decision == "undecided" and self.complete < len(self.ends)):
            return {}
        estimates = list(zip(self.rules, self.results.unbiased.values(), strict=True))
        return {(rule.question, rule.label): estimate for rule, estimate in reversed(estimates)}

    def corrected(self, summary: Summary, *, one_threshold: bool) -> Summary:
        """Return a summary with P at the last look, and with means and shares corrected for the bias of stopping early.

        `one_threshold` is whether one threshold decides, whose P stands in the summary.
        """
        estimates, of_question = self.unbiased, dict(self.chances).get(summary.question)
        shares = tuple(
            share.model_copy(update={"unbiased": estimates.get((summary.question, share.label))})
            for share in summary.shares
        )
        probability = of_question.probability if one_threshold and of_question else math.nan
        update = {"unbiased": estimates.get((summary.question, "")), "shares": shares, "probability": probability}
        return summary.model_copy(update=update)

    def lines(self) -> tuple[str, ...]:
        """Return remarks to be read beside the decision."""
        block = f"block {self.complete + 1} of {len(self.ends)} still needs {count(self.missing, 'answer')}"
        apart = [f"told apart from {' and '.join(self.apart)}"] if self.apart else []
        so_far = " so far" if self.going_on else ""
        alike = [f"not told apart from {' and '.join(self.alike)}{so_far}"] if self.alike else []
        if self.decision != "undecided":
            decided = decided_after(self.n_looks, self.ends, self.opened)
            return (decided, *apart, *alike, *([block] if self.going_on else []))
        if self.complete == len(self.ends):
            return (f"undecided after the last of {count(len(self.ends), 'block')}", *apart, *alike)
        return (*apart, *alike, block)

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


def decided_after(block: int, ends: Sequence[int], opened: int = 0) -> str:
    """Return a line on the block that decided, and the pairs of later blocks; `ends` are pairs after each block.

    `opened` is how many blocks are open for another reason.
    """
    spared = ends[-1] - ends[max(block, opened) - 1]
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

    waiting = tuple(sum(map(missing, order[start:end])) for start, end in zip((0, *ends), ends, strict=False))
    enough = np.array([i not in withdrawn and answered.get(i, 0) >= rule.min_raters for i in order], dtype=np.bool_)
    progress = BlockProgress(ends, waiting, tuple(order), enough, (), Looks({}, {}, {}, 0, "undecided"))
    if not ends or ends[0] < FEWEST:
        return progress
    rules = rules_for(group[0], rule) if rule.rules else design.threshold_rules(group[0])
    if not rules:
        return progress
    by_name = {str(number): of_rule for number, of_rule in enumerate(rules)}
    means = {name: design.pair_means(ratings, of_rule).reindex(list(order)) for name, of_rule in by_name.items()}
    counting = [enough & (np.arange(len(order)) < end) for end in ends]
    able = [_may_decide(ratings, list(itertools.compress(order, at)), design, group[0]) for at in counting]
    values = {name: of_pairs.to_numpy(np.float64) for name, of_pairs in means.items()}
    blocks = Blocks(ends, criteria={name: criterion_of(of_rule, design) for name, of_rule in by_name.items()})
    past, decision = _past(design, group, list(by_name))
    results = take_looks(BlockData(values, counting, progress.complete, able), blocks, past, decision)
    return replace(progress, rules=rules, results=results)


_OUTCOMES: dict[str, Outcome] = {"accepted": "accepted", "rejected": "rejected", "undecided": "undecided"}


def criterion_of(spec: RuleSpec, design: Design) -> Criterion:
    """Return a rule's criterion: its limit, scale and side."""
    scale = design.asked(spec.question).judged_scale
    side: Side = "at_least" if spec.at_least is not None else "at_most"
    return Criterion(spec.limit, (float(scale[0]), float(scale[-1])), side)


def _may_decide(ratings: pd.DataFrame, pair_ids: Sequence[str], design: Design, pool: str) -> bool:
    """Return whether a look at these pairs meets the rule's needs other than its limits."""
    if len(pair_ids) < design.rule.min_pairs or design.rule.min_ac2 is None:
        return len(pair_ids) >= design.rule.min_pairs
    of_look = compact(ratings[ratings["pair_id"].isin(pair_ids)])
    questions = [name for name in design.questions if design.asked(name).asked_in(pool)]
    summaries = [summarise(of_look, name, design, None) for name in questions]
    return not lacking(summaries, len(pair_ids), design.rule, rules_for(pool, design.rule))


def _past(design: Design, group: tuple[str, ...], names: Sequence[str]) -> tuple[dict[str, Path], Outcome | None]:
    """Return the looks taken at a group so far, each as last taken: the path of each rule, and the last decision."""
    by_look = {look.look: look for look in design.past_looks if look.group == group and len(look.values) == len(names)}
    looks = [by_look[number] for number in itertools.takewhile(by_look.__contains__, itertools.count(1))]
    if not looks:
        return {}, None
    paths = {
        name: Path(
            np.array([value.pairs for value in values], dtype=np.int64),
            *np.array([[getattr(value, number) for number in _NUMBERS] for value in values], dtype=np.float64).T,
        )
        for name, values in zip(names, zip(*(look.values for look in looks), strict=True), strict=True)
    }
    return paths, looks[-1].decision


_NUMBERS = ("mean", "low", "high", "level", "above", "below")  # a path's fields after its pairs
