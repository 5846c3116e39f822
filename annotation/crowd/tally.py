"""What a study asks of people, and what it costs: counted here for every command, page and report.

The words are those of docs/glossary.md. Raters see **pairs** (or items), **controls** and **repeats**; each time that
one rater answers one of these is an **answer**; an answer has a **rating** for each required question. A **place** is
one worker's part in a batch.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from annotation.campaign.rubric import Rubric
from annotation.crowd import pay
from annotation.crowd.batches import make_batches
from annotation.crowd.ledger import BatchOffer
from annotation.crowd.platform import Platform, platform_class
from annotation.sampling.queues import Queue, block_numbers, queues_of
from annotation.statistics.summaries import Design
from plumbline.errors import StudyError
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PaySpec
from plumbline.words import count

Fee = Callable[[int, int], int]  # of a payment in cents, in a batch with so many places


def fees_text(fees: int) -> str:
    """Say whether a sum of money has the platform's fees."""
    return "fees included" if fees else "without a fee of the platform, as crowd.fee names none"


@dataclass(frozen=True)
class Part:
    """What raters are asked for in one queue, or in one batch of a crowd; each of them does all of it."""

    queue: Queue
    pairs: int  #: of the sample
    controls: int
    repeats: int
    raters: int
    ratings: int  #: that one rater gives: one for each required question on all that is shown
    hours: float  #: that one rater is paid for
    reward: int  #: cents for one rater
    fees: int  #: cents for the platform, on all rewards
    block: int = 0  #: the block that it is offered in, from 0
    batch: str = ""  #: the batch's id; empty for a queue
    pilot: bool = False
    kinds: Mapping[str, int] = field(default_factory=dict)  #: numbers of controls and repeats, by kind (`Pair.control`)

    @property
    def shown(self) -> int:
        """Pairs, controls and repeats."""
        return self.pairs + self.controls + self.repeats

    @property
    def cost(self) -> int:
        """Cents for all raters, with fees and without bonuses."""
        return self.reward * self.raters + self.fees


@dataclass(frozen=True)
class _Total:
    """A number of a tally: the sum over its parts."""

    of: Callable[[Part], int]

    def __get__(self, tally: Tally, _: type[Tally]) -> int:
        return sum(map(self.of, tally.parts))


@dataclass(frozen=True)
class Tally:
    """What a study, or a part of it, asks of people. Money in cents, without bonuses."""

    parts: tuple[Part, ...]
    study: Study
    platform: type[Platform] | None = None  #: whose fees are counted

    def __add__(self, tally: Tally) -> Tally:
        return replace(self, parts=(*self.parts, *tally.parts))

    pairs = _Total(lambda part: part.pairs)  #: of the sample
    controls = _Total(lambda part: part.controls)  #: or known items
    repeats = _Total(lambda part: part.repeats)  #: pairs that each rater sees a second time
    shown = _Total(lambda part: part.shown)  #: pairs, controls and repeats
    answers_to_pairs = _Total(lambda part: part.pairs * part.raters)  #: those that verdicts can rest on
    answers = _Total(lambda part: part.shown * part.raters)  #: those to controls and repeats included
    ratings = _Total(lambda part: part.ratings * part.raters)  #: one for each required question of each answer
    places = _Total(lambda part: part.raters)  #: workers' places in batches
    rewards = _Total(lambda part: part.reward * part.raters)  #: pay of all raters
    fees = _Total(lambda part: part.fees)  #: the platform's
    cost = _Total(lambda part: part.cost)  #: pay and fees

    @property
    def kinds(self) -> Counter[str]:
        """The numbers of controls and repeats that raters are asked about, by kind (`Pair.control`)."""
        return Counter(kind for part in self.parts for kind, number in part.kinds.items() for _ in range(number))

    @property
    def hours(self) -> float:
        """Hours of work that are paid for."""
        return round(float(sum(part.hours * part.raters for part in self.parts)), 9)  # in whatever order

    @property
    def each(self) -> float:
        """Hours of a rater who answers all that is shown."""
        return sum(part.hours for part in self.parts)

    @property
    def in_batches(self) -> bool:
        """Whether a crowd does it, in batches."""
        return any(part.batch for part in self.parts)

    @property
    def least(self) -> Tally:
        """What is asked if each verdict is decided after its first block; all of it without blocks."""
        return replace(self, parts=tuple(part for part in self.parts if not part.block))

    def of(self, queues: Collection[Queue]) -> Tally:
        """Return the part in some queues."""
        return replace(self, parts=tuple(part for part in self.parts if part.queue in queues))

    # In words

    @property
    def _raters(self) -> str:
        numbers = sorted({part.raters for part in self.parts})
        return f"{numbers[0]} to {numbers[-1]} raters" if numbers[1:] else count(sum(numbers), "rater")

    @property
    def answers_text(self) -> str:
        """Pairs, raters and answers: `72 pairs by 3 raters each: 216 answers; with 4 controls and 8 repeats 252`."""
        called = self.study.called
        text = f"{count(self.pairs, called.item)} by {self._raters} each: {count(self.answers_to_pairs, 'answer')}"
        checks = [
            count(self.controls, called.known.removesuffix("s")) if self.controls else "",
            count(self.repeats, "repeat") if self.repeats else "",
        ]
        if any(checks):
            text += f"; with {' and '.join(filter(None, checks))} {count(self.answers, 'answer')}"
        if self.ratings != self.answers:
            text += f", or {count(self.ratings, 'rating')} on the required questions"
        return text

    @property
    def cost_text(self) -> str:
        """Hours and money: `2.1 hours of work, $50.40 for raters and $16.80 of fees: $67.20 before bonuses`."""
        hours = f"{self.hours:.1f} hours of work"
        if self.fees:
            paid = f"{pay.dollars(self.rewards)} for raters and {pay.dollars(self.fees)} of fees:"
            return f"{hours}, {paid} {pay.dollars(self.cost)} before bonuses"
        without = f", {fees_text(0)}," if self.in_batches else ""
        return f"{hours}, {pay.dollars(self.cost)}{without} before bonuses"

    def lines(self, longer: float = math.nan) -> Iterator[str]:
        """Yield the whole count in lines; `longer` is the share of time that people have needed beyond what is paid."""
        yield f"{self.answers_text}; {self.cost_text}"
        if len(self.least.parts) < len(self.parts):
            yield (
                f"at least {count(self.least.answers, 'answer')} and {pay.dollars(self.least.cost)}, if each verdict is"
                " decided after its first block"
            )
        if self.study.crowd and self.in_batches:
            if math.isnan(longer):
                more = f"{self.study.crowd.pay.seconds:g} s {self.study.called.an_item}"
                yield f"for each 10% that people need longer than {more}, bonuses add {pay.dollars(self.bonuses(0.1))}"
            else:
                yield f"bonuses at the times so far: {pay.dollars(self.bonuses(longer))} more, fees included"

    def bonuses(self, longer: float) -> int:
        """Cents of bonuses, with fees, if each batch takes longer by this share than it is paid for."""
        spec, fee, total = self.study.crowd or CrowdSpec(), fee_of(self.study, self.platform), 0
        for part in self.parts:
            cents = pay.owed_bonus(part.reward, [round(part.hours * 3600 * (1 + longer), 6)], spec.pay)
            total += part.raters * (cents + (fee(cents, part.raters) if cents else 0))
        return total


def fee_of(study: Study, platform: type[Platform] | None = None) -> Fee:
    """Return a platform's fee; none without a platform, or while the study does not say its share."""
    spec = study.crowd

    def fee(cents: int, places: int) -> int:
        if platform is not None and spec is not None:
            with contextlib.suppress(StudyError):
                return platform.fee(cents, places, spec)
        return 0

    return fee


def platform_of(study: Study) -> type[Platform] | None:
    """Return the platform that the study names, or any one with `crowd.fee`; None without a crowd."""
    if study.crowd is None:
        return None
    return platform_class(study.crowd.platform) if study.crowd.platform else Platform


def counted(
    study: Study,
    rubric: Rubric,
    shown: Iterable[Pair],
    *,
    raters: int | None = None,
    to_crowd: bool | None = None,
    blocks: Mapping[str, int] | None = None,
) -> Tally:
    """Count what a sample asks of people.

    Args:
        study: The study.
        rubric: Its rubric.
        shown: The pairs, controls and repeats of a drawn sample, or of one that is expected; without withdrawn ones.
        raters: Raters of each pair (default: the study's).
        to_crowd: Whether a crowd gets it in batches (default: whether the study has a crowd), or raters in queues.
        blocks: The block of each pair, control and repeat that has one (default: as these alone are dealt out).
    """
    every, design, spec = list(shown), Design.of(study, rubric), study.crowd.pay if study.crowd else PaySpec()
    to_crowd = study.crowd is not None if to_crowd is None else to_crowd
    platform = platform_of(study) if to_crowd else None
    fee = fee_of(study, platform)
    pairs, controls = ([pair for pair in every if bool(pair.control) is is_control] for is_control in (False, True))
    numbers = dict.fromkeys([pair.pair_id for pair in every], 0)
    if study.raters.blocks:
        numbers = block_numbers(study, pairs, controls) if blocks is None else dict(blocks)
    parts = []
    for block in sorted(set(numbers.values())):
        of_block = [[pair for pair in group if numbers.get(pair.pair_id) == block] for group in (pairs, controls)]
        for queue, shown_here, batch, pilot in _sittings(study, *of_block, to_crowd=to_crowd):
            wanted = raters or study.raters_of(queue.pool)
            reward = pay.reward([pair.transformation for pair in shown_here], spec)
            part = _part(queue, shown_here, wanted, reward, fee, (design, spec))
            parts.append(replace(part, block=block, batch=batch, pilot=pilot))
    return Tally(tuple(parts), study, platform)


def of_offers(
    study: Study,
    rubric: Rubric,
    offers: Iterable[BatchOffer],
    shown: Mapping[str, Pair],
    platform: type[Platform],
    blocks: Mapping[str, int] = MappingProxyType({}),
) -> Tally:
    """Count what batches ask of workers; `shown` are the pairs by id, `blocks` their blocks, if they have any."""
    design, fee = Design.of(study, rubric), fee_of(study, platform)
    parts = []
    for offer in offers:
        shown_here = [shown[pair_id] for pair_id in offer.batch.pair_ids]
        spec = study.crowd.pay if study.crowd else PaySpec()
        part = _part(offer.batch.queue, shown_here, offer.places, offer.reward, fee, (design, spec))
        block = min((blocks.get(pair.pair_id, 0) for pair in shown_here), default=0)
        parts.append(replace(part, block=block, batch=offer.batch.batch_id, pilot=offer.batch.pilot))
    return Tally(tuple(parts), study, platform)


def _sittings(
    study: Study, pairs: Sequence[Pair], controls: Sequence[Pair], *, to_crowd: bool
) -> Iterator[tuple[Queue, list[Pair], str, bool]]:
    """Yield each queue, or each batch of a crowd, with what is shown in it."""
    if not to_crowd:
        yield from ((queue, shown_here, "", False) for queue, shown_here in queues_of([*pairs, *controls]).items())
        return
    by_id = {pair.pair_id: pair for pair in [*pairs, *controls]}
    for batch in make_batches(study, pairs, controls):
        yield batch.queue, [by_id[pair_id] for pair_id in batch.pair_ids], batch.batch_id, batch.pilot


def _part(
    queue: Queue, shown: Sequence[Pair], raters: int, reward: int, fee: Fee, of_study: tuple[Design, PaySpec]
) -> Part:
    design, spec = of_study
    kinds = Counter("pair" if pair.drawn else "repeat" if pair.control == "repeat" else "control" for pair in shown)
    names = Counter(pair.transformation for pair in shown)
    return Part(
        queue, kinds["pair"], kinds["control"], kinds["repeat"], raters,
        ratings=sum(number * len(design.needed(design.pool_of(name))) for name, number in names.items()),
        hours=pay.assumed_hours(names.elements(), spec), reward=reward, fees=raters * fee(reward, raters),
        kinds=Counter(pair.control for pair in shown if not pair.drawn),
    )  # fmt: skip
