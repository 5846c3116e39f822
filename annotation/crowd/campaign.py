"""A crowd campaign: its offers, their workers and their cost; every step is done once, even after a crash.

Every change on the platform goes through `CrowdCampaign.do`, which keeps the ledger and the limit.
Commands begin with `settle`, which finishes what an earlier command left open. This module does not depend on the
platform.

A worker may do a stated share of the study's batches. A platform can keep a worker out of batches that are not offered
yet, but not out of open ones. So no more batches are open at a time than one worker may do, and a worker who has done
too many for the next batches is kept out before these open. Work in progress counts as open, so nobody can exceed the
share by beginning several batches at once.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tqdm import tqdm

from annotation.campaign.counting import excluded_raters
from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import CampaignName, Mode
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.crowd import pay
from annotation.crowd.batches import Batch, make_batches
from annotation.crowd.ledger import BatchOffer, Ledger, SubmissionReview, Work, refuse_lost_batches
from annotation.crowd.operations import EXTENDED, Kind, Operation
from annotation.crowd.places import BatchPlaces, places_of
from annotation.crowd.platform import NoMoneyError, Offer, Platform, PlatformOffer, RefusedError, crowd_of
from annotation.ratings.decisions import decide, note_again
from annotation.verdicts.evidence import Evidence, write_looks
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec
from plumbline.words import count


class LimitError(StudyError):
    """The next step would cost more than may be spent."""


def pairs_of(records: CampaignRecords, batch: Batch, mode: Mode) -> tuple[Pair, ...]:
    """Return a batch's pairs, in the order of showing. Raises DataError if the sample no longer has them."""
    if not records.shown_by_id.keys() >= set(batch.pair_ids):
        forget = CampaignName("prolific", "test").command(records.study, "close --forget")
        raise DataError(
            f"{records.study.folder / 'pairs.parquet'}: the {mode} campaign has pairs that this sample does not have;"
            f" {f'end it with `{forget}`' if mode == 'test' else 'restore the sample that was offered'}"
        )
    return tuple(records.shown_by_id[pair_id] for pair_id in batch.pair_ids)


BONUS_REASON = "Your batch took longer than we had assumed. This bonus makes up the difference. Thank you."


@dataclass(frozen=True)
class Launch:
    """The result of launching."""

    posted: int = 0  #: batches offered now
    extended: int = 0  #: offers opened again, or to more workers
    open: Mapping[str, str] = field(default_factory=dict)  #: by batch, offers that workers can take or are working on
    waiting: int = 0  #: batches that are offered when earlier ones are done
    stopped: str = ""  #: why the launch stopped early; empty if it did not
    troubles: tuple[str, ...] = ()  #: why batches could not be offered, or opened again


def next_batches(records: Evidence, mode: Mode, offered: Sequence[BatchOffer], pilot: int = 0) -> list[BatchOffer]:
    """Return the batches to offer next, with each worker's reward. Raises as `make_batches`.

    In a study with `raters.blocks` they belong to the blocks that the recorded answers open.
    """
    study, out = records.study, {*records.withdrawn, *records.unopened()}
    batches, spec = [offer.batch for offer in offered], crowd_of(study)
    for batch in batches:
        pairs_of(records, batch, mode)
    pairs, controls = (
        [pair for pair in group if pair.pair_id not in out] for group in (records.pairs, records.controls)
    )
    return [
        BatchOffer(
            batch,
            study.raters_of(batch.queue.pool),
            pay.reward([pair.transformation for pair in pairs_of(records, batch, mode)], spec.pay),
        )
        for batch in make_batches(study, pairs, controls, batches, pilot)
    ]


def most_open(spec: CrowdSpec, batches: int) -> int:
    """Return how many of all batches may be open at once: those that one worker may do."""
    return max(1, math.floor(spec.share * batches))


class CrowdCampaign:
    """One study's campaign on one platform in one mode."""

    records: Evidence  #: the study's records, as last opened

    def __init__(self, study: Study, platform: Platform, ledger: Ledger, key: bytes, limit: int | None = None) -> None:
        """`key` makes workers' pseudonyms; `limit` is the most to spend in all, in cents (None: nothing more)."""
        self.study, self.platform, self.ledger = study, platform, ledger
        self.spec = crowd_of(study)
        self.name = platform.campaign
        self._key, self._limit = key, limit
        self.reopen()

    def reopen(self) -> None:
        """Open the study's records, again after this command has written some of them."""
        self.records = Evidence(self.study)

    @property
    def rubric(self) -> Rubric:
        """The rubric as it was fixed for the workers."""
        return asked_rubric(self.records)

    def do(self, kind: Kind, subject: str, cents: int = 0, details: Mapping[str, Any] | None = None) -> str:
        """Carry out an operation once; return its outcome. Raises LimitError if it would exceed the limit."""
        operation = self.ledger.operation(kind, subject)
        if cents > 0 and (operation is None or operation.state == "refused"):
            self.refuse_beyond_limit(cents)
        return self.ledger.once((kind, subject, cents), details or {}, self._find, self._carry_out)

    def happened(self, kind: Kind, subject: str, cents: int) -> None:
        """Record a payment that a person made on the platform's own page, whatever the limit."""
        self.ledger.once((kind, subject, cents), {}, self._find, lambda operation: operation.kind)

    def settle(self) -> int:
        """Finish the operations that earlier commands left open; return how many."""
        unsettled = self.ledger.operations(state="intended")
        if unsettled:
            self._tell(
                f"finishing {count(len(unsettled), 'call')} that an earlier command left unfinished; first checking"
                " them with the platform (up to 15 minutes for a bonus)"
            )
        for operation in unsettled:
            intention = operation.kind, operation.subject, operation.cents
            try:
                self.ledger.once(intention, operation.details, self._find, self._carry_out)
            except RefusedError as error:  # the others go on
                self._tell(f"refused: {error}")
        return len(unsettled)

    def say(self, text: str) -> None:
        """Print lines that begin with the campaign's name."""
        print(self.name.marked(text))

    def _tell(self, text: str) -> None:
        """Print such lines beside a bar of progress."""
        tqdm.write(self.name.marked(text), file=sys.stderr)

    def refuse_beyond_limit(self, cents: int, step: str = "the next step") -> None:
        """Raise LimitError if a step of this cost would exceed the limit."""
        if not cents or not self.name.spends:
            return
        spent = self.ledger.spent()
        if self._limit is None or spent + cents > self._limit:
            limit = "no --max-cost was given" if self._limit is None else f"the limit is {pay.dollars(self._limit)}"
            raise LimitError(
                f"{step} costs {pay.dollars(cents)}, {pay.dollars(spent)} is already spent or reserved, and {limit};"
                " nothing of it was carried out"
            )

    def _find(self, operation: Operation) -> str | None:
        return operation.find(self.platform)

    def _carry_out(self, operation: Operation) -> str:
        return operation.carry_out(self.platform, self.offer) or operation.kind

    def offer(self, batch_id: str) -> Offer:
        """Return a batch of the ledger as it is offered to workers. DataError for a batch of another campaign."""
        offer = self.ledger.find_offered(batch_id)
        if offer is None:
            raise DataError(f"{self.ledger.path}: no batch {batch_id!r} in the {self.name.label} campaign")
        return self.shown(offer)

    def shown(self, offer: BatchOffer) -> Offer:
        """Return a batch with the texts of its pairs. Raises DataError if the sample no longer has them."""
        pairs = pairs_of(self.records, offer.batch, self.platform.mode)
        return Offer(offer.batch, pairs, offer.places, offer.reward)

    # State

    def posted_ids(self) -> dict[str, str]:
        """Return the platform's ids of the offers, by batch."""
        return {operation.subject: operation.outcome for operation in self.ledger.operations("post", state="done")}

    def pseudonym(self, worker: str) -> str:
        """Return a worker's pseudonym outside the ledger.

        In a sandbox or a test the pseudonym says so.
        """
        name = worker_pseudonym(self._key, self.study.name, self.platform.name, worker)
        return {"live": "", "sandbox": "simulated-", "test": "test-"}[self.platform.mode] + name

    def unit_cost(self, batch_id: str) -> int:
        """Cents for one worker's work on a batch, with the fee; none in a test."""
        if not self.name.counts:
            return 0
        offer = self.offer(batch_id)
        return self.platform.cost(offer.reward, offer.places, self.spec) // offer.places

    def refresh(self) -> None:
        """Record the present state of all submissions in the ledger."""
        rejections = self.ledger.operations("reject", state="done")
        rejected = {operation.subject: operation.cents for operation in rejections}
        for batch_id, posted_id in self.posted_ids().items():
            submissions = list(self.platform.submissions(posted_id))
            self.platform.admit(batch_id, posted_id, [self.pseudonym(submission.worker) for submission in submissions])
            for submission in submissions:
                self.ledger.note(submission, batch_id, self.pseudonym(submission.worker))
                cents = -rejected.get(submission.submission_id, 0)
                if submission.state == "approved" and cents:
                    self.happened("approve", submission.submission_id, cents)
        self._book_unreserved()

    def _book_unreserved(self) -> None:
        """Record what work costs that was approved on the platform's own page after its place was given to another."""
        decided = {operation.subject for operation in self.ledger.operations("approve") if operation.state != "refused"}
        reserved = self.ledger.reserved()
        for batch_id, batch in self.places().items():
            reserved[batch_id] -= batch.unit * len(batch.good)
            for submission in [work.submission for work in batch.good if work.submission.state == "approved"]:
                if submission.submission_id not in decided and 0 < batch.unit <= -reserved[batch_id]:
                    self.happened("approve", submission.submission_id, batch.unit)
                    reserved[batch_id] += batch.unit

    # Launching and closing

    def launch(self, pilot: int = 0, begin: Callable[[], object] = lambda: None) -> Launch:
        """Offer the batches that the share and the limit allow; call it again as batches get done.

        `begin` records that the sample is about to be offered: it is called when the ledger has the batches, before the
        first one is offered. Raises DataError as `refuse_lost_batches`, before anything is asked of the platform.
        """
        if not self.name.counts:
            return self._launch_test(pilot, begin)
        refuse_lost_batches(self.records, self.ledger)
        self.platform.prepare()
        self.settle()
        write_looks(self.records)
        unwanted = {*self.records.withdrawn, *self.records.spared}
        self.ledger.drop_waiting(lambda batch: not unwanted.isdisjoint(batch.pair_ids))
        offered = self.ledger.offered()
        new = next_batches(self.records, self.platform.mode, self.ledger.offered_anywhere(), pilot)
        posted = self.posted_ids()
        self._check([offer for offer in [*offered, *new] if offer.batch.batch_id not in posted])
        self.ledger.add_batches(new)
        begin()
        offered += new
        self.refresh()
        states = {batch_id: self.platform.posted(key) for batch_id, key in self.posted_ids().items()}
        for batch_id in [batch_id for batch_id, state in states.items() if state.open]:
            self.platform.restore(self.offer(batch_id))
        try:
            extended, troubles, stopped = self._offer(offered, states)
        finally:
            self._note_replaced()
        ids = self.posted_ids()
        waiting = len(offered) - len(ids)
        return Launch(len(ids) - len(states), len(extended), self._open(ids), waiting, stopped, tuple(troubles))

    def _launch_test(self, pilot: int, begin: Callable[[], object]) -> Launch:
        """Offer one batch, to one test participant and at no cost: the first that a launch without ratings offers."""
        self.platform.prepare()
        self.settle()
        if not self.ledger.offered():
            new = [replace(offer, places=1) for offer in next_batches(self.records, self.platform.mode, [], pilot)[:1]]
            if not new:
                raise StudyError(f"{self.study.name} has no open {self.study.called.item}s that a test could show")
            self._check(new)
            self.ledger.add_batches(new)
        begin()
        earlier = self.posted_ids()
        for offer in self.ledger.offered():
            self.do("post", offer.batch.batch_id)
            self.platform.restore(self.shown(offer))
        self.refresh()
        posted = self.posted_ids()
        return Launch(len(posted) - len(earlier), 0, self._open(posted))

    def _open(self, posted: Mapping[str, str]) -> dict[str, str]:
        return {batch_id: key for batch_id, key in posted.items() if self.platform.posted(key).open}

    def _check(self, batches: Sequence[BatchOffer]) -> None:
        """Raise StudyError if a batch cannot be offered, before the first one costs money."""
        for offer in batches:
            self.platform.cost(offer.reward, offer.places, self.spec)
            try:
                self.platform.check(self.shown(offer))
            except StudyError as error:
                raise StudyError(f"batch {offer.batch.batch_id}: {error}; nothing was offered") from None

    def places(self) -> Mapping[str, BatchPlaces]:
        """Return the places of each batch."""
        batches = places_of(self.ledger, excluded_raters(self.records.decided), self.platform, self.spec)
        return {batch.offer.batch.batch_id: batch for batch in batches}

    def _note_replaced(self) -> None:
        """Record which answers are asked for again; the ledger has them, even if an earlier command was killed."""
        answers = []
        for batch in self.places().values():
            again = batch.lost if len(batch.lost) <= batch.replaced else []
            reserved = batch.reserved - batch.offer.places - len(batch.lost)
            if not batch.closed and (self.platform.refills or len(batch.rejected) <= reserved):
                again += batch.rejected  # whose places are open again
            answers += [(pair_id, work.pseudonym) for work in again for pair_id in batch.offer.batch.pair_ids]
        note_again(self.records, answers)
        self.reopen()

    def _offer(
        self, offers: Sequence[BatchOffer], states: Mapping[str, PlatformOffer]
    ) -> tuple[list[str], list[str], str]:
        """Open offers again, post the next batches; return those reopened, the refusals, and why it stopped early."""
        existing = self.ledger.offered_anywhere()
        to_come = next_batches(self.records, self.platform.mode, existing)
        may_open = most_open(self.spec, len(existing) + len(to_come)) - sum(state.open for state in states.values())
        places, extended, troubles = self.places(), list[str](), list[str]()
        short = [batch_id for batch_id in states if places[batch_id].short]
        ended = [batch_id for batch_id in short if not states[batch_id].open]
        opening = [*ended, *(offer.batch.batch_id for offer in offers if offer.batch.batch_id not in states)]
        opening = opening[: max(0, may_open)]
        if opening:
            self._keep_out(may_open - len(opening))
        works, excluded = self.ledger.work(), excluded_raters(self.records.decided)
        for worker in sorted({work.submission.worker for work in works if work.pseudonym in excluded}):
            self.do("keep_out", worker)  # their further work would be paid but not count
        again = [
            key for key in short if key in opening or (states[key].open and places[key].reserved < places[key].wanted)
        ]
        try:
            for batch_id in again:
                with _noting_refusals(troubles):
                    if self._extend(states[batch_id], places[batch_id]):
                        extended.append(batch_id)
            for offer in [self.offer(batch_id) for batch_id in opening if batch_id not in states]:
                with _noting_refusals(troubles, but=NoMoneyError):  # the other batches would fail, too
                    cents = self.platform.cost(offer.reward, offer.places, self.spec)
                    self.do("post", offer.batch.batch_id, cents)
        except LimitError as error:
            return extended, troubles, str(error)
        return extended, troubles, ""

    def _keep_out(self, most_done: int) -> None:
        """Exclude from further batches the workers who have done more than `most_done`."""
        done = Counter(work.submission.worker for work in self.ledger.work() if work.submission.state != "returned")
        for worker, batches in sorted(done.items()):
            if batches > most_done:
                self.do("keep_out", worker)

    def _extend(self, posted: PlatformOffer, batch: BatchPlaces) -> bool:
        """Open an offer again, to as many workers as it needs in all; return whether anything changed."""
        batch_id, places, redo = batch.offer.batch.batch_id, batch.wanted, len(batch.lost)
        # A finished extension is not repeated; an offer that lacks workers again gets a new one.
        done = sum(operation.state == "done" for operation in batch.extensions)
        details = {"batch": batch_id, "posted": posted.posted_id, "places": places} | ({"lost": redo} if redo else {})
        return self.do("extend", f"{batch_id}:{places}:{done}", batch.unit * batch.unreserved, details) == EXTENDED

    def close(self) -> tuple[int, int]:
        """Let no further worker begin, and release the money of empty places; return (closed, cents released).

        Closing is final. Workers may finish their work: until then, the money of their batch stays reserved.
        """
        self.settle()
        released = 0
        posted = self.posted_ids()
        for batch_id, key in posted.items():
            self.do("close", batch_id, 0, {"batch": batch_id, "posted": key})
        self.refresh()
        places = self.places()
        for batch_id, key in posted.items():
            if self.platform.posted(key).open or self.ledger.operation("release", batch_id):
                continue
            cents = max(0, self.ledger.reserved()[batch_id] - places[batch_id].unit * len(places[batch_id].good))
            self.do("release", batch_id, -cents)
            released += cents
        return len(posted), released

    # Money for work

    def approve(self, work: Work) -> None:
        """Approve a submission, whatever the limit; it costs more if the batch's other work uses what is reserved."""
        key = work.submission.submission_id
        if (operation := self.ledger.operation("approve", key)) is not None and operation.state == "done":
            return
        unit = self.unit_cost(work.batch_id)
        used = unit * self.ledger.approved(work.batch_id, but=key)
        cents = unit if self.ledger.reserved()[work.batch_id] - used < unit else 0
        self.ledger.once(("approve", key, cents), {}, self._find, self._carry_out)

    def reject(self, work: Work, reason: str) -> None:
        """Reject a submission: its reward is not paid, and one more worker may do the batch.

        If the platform reopens the place itself, its money stays reserved for the next worker, unless it was released.
        """
        stays_reserved = self.platform.refills and self.ledger.operation("release", work.batch_id) is None
        cents = 0 if stays_reserved else -self.unit_cost(work.batch_id)
        self.do("reject", work.submission.submission_id, cents, {"reason": reason})

    def exclude(self, work: Work, review: SubmissionReview) -> None:
        """Let a rejected worker's ratings stop counting, unless a person decided about the worker after that."""
        records, rater = self.records, work.pseudonym
        since = [decision.rater_id for decision in records.decided if decision.decided_at >= review.decided_at]
        if rater not in since and rater in set(records.all_ratings["rater_id"]):
            decide(self.study, rater, exclude=True, reason=review.reason, signs=records.signs)
            self.reopen()

    def bonus(self, work: Work, cents: int) -> None:
        """Pay a submission's bonus for its time; a submission gets at most one."""
        details = {"submission": work.submission.submission_id, "cents": cents, "reason": BONUS_REASON}
        self.do("bonus", work.submission.submission_id, self.bonus_cost(work, cents), details)

    def bonus_cost(self, work: Work, cents: int) -> int:
        """Cents for a submission's bonus, with the fee."""
        return cents + self.platform.fee(cents, self.offer(work.batch_id).places, self.spec)


@contextlib.contextmanager
def _noting_refusals(troubles: list[str], but: type[RefusedError] | tuple[()] = ()) -> Iterator[None]:
    """Add the platform's refusal to the troubles, so that other batches go on; an error of the type `but` passes."""
    try:
        yield
    except RefusedError as error:
        if isinstance(error, but):
            raise
        troubles.append(str(error))
