"""The interface of crowd platforms, the same for all of them.

`annotation.crowd.campaign` decides and keeps the ledger; a platform only carries out. Every call that makes a change
takes a token, the same at each try: a platform that knows tokens refuses the second call, and `find_posted` and
`is_bonus_paid` return whether the first one took effect.
"""

from __future__ import annotations

import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from annotation.campaign_records import CampaignRecords
from annotation.crowd.batches import Batch
from annotation.offering import Mode
from annotation.ratings.answers import Answer
from annotation.rubric import Rubric
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import ServiceError, StudyError
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.crowd import EXTRA_PAY, CrowdSpec, PaySpec, PlatformName

State = Literal["working", "submitted", "approved", "rejected", "returned"]
Decision = Literal["approved", "rejected"]
LOOK = 30.0  # seconds between two checks for a bonus


class UncertainError(ServiceError):
    """A call with an unknown effect (time-out, broken connection, 5xx): ask the platform, then try again."""


class RefusedError(ServiceError):
    """The platform refused a call: it had no effect, and would be refused again."""


class NoMoneyError(RefusedError):
    """The account lacks the money.

    After a retry it does not show whether the first try took the money.
    """


@dataclass(frozen=True)
class Offer:
    """A batch as workers see it."""

    batch: Batch
    pairs: tuple[Pair, ...]  #: in the order of showing
    places: int  #: workers that are wanted
    reward: int  #: cents for each


@dataclass(frozen=True)
class PlatformOffer:
    """An offer on the platform."""

    posted_id: str  #: the platform's id: a HIT's, a study's
    places: int  #: how many workers may take it in all
    ends: datetime | None  #: when it closes, UTC; None if it does not close by itself
    open: bool  #: whether workers can still take it, or are working on it


@dataclass(frozen=True)
class Submission:
    """One worker's work on one batch. `worker` is the platform's id of a person: it stays in the ledger."""

    submission_id: str
    posted_id: str
    worker: str
    state: State
    seconds: float  #: from beginning to end; NaN if unknown
    submitted_at: datetime | None
    bonuses: tuple[int, ...]  #: cents paid so far beside the reward


class Platform(ABC):
    """A crowd platform in one mode: the interface that campaigns call, and the behaviour all platforms share.

    Methods raise ServiceError, and UncertainError where the difference matters. A platform carries out `send_...` and
    reports its state; this class decides whether to send, whether a call took effect, and how long to look for it.
    """

    name: PlatformName
    title: str  #: its name for people
    mode: Mode
    refills: bool  #: whether the platform reopens a rejected worker's place, at the same cost
    longest_reason: float = math.inf  #: the most characters in the reason for a rejection
    spends: bool  #: whether the spending limit applies: where money moves, and in the rehearsal
    patience: float = 0.0  #: seconds until a paid bonus is certain to show
    pause: Callable[[float], None] = staticmethod(time.sleep)

    def __init__(self, study: Study, mode: Mode) -> None:
        """Raises StudyError for a study without crowd settings."""
        self._study, self.mode, self._crowd = study, mode, crowd_of(study)
        self.spends = mode == "live" or self.name == "rehearsal"

    @cached_property
    def _rubric(self) -> Rubric:
        """The rubric as it was fixed for the workers."""
        return asked_rubric(CampaignRecords.open(self._study))

    @abstractmethod
    def prepare(self) -> None:
        """Create what all offers share (HIT types, qualifications, groups); may be called at any time."""

    @abstractmethod
    def balance(self) -> int | None:
        """Return the cents that can be spent; None if the platform does not say."""

    # Offers

    @abstractmethod
    def check(self, offer: Offer) -> None:
        """Raise StudyError for an offer that cannot be posted, before anything is created or paid."""

    def post(self, offer: Offer, token: str) -> str:
        """Offer a batch to workers; return the platform's id. RefusedError for one that `check` refuses."""
        try:
            return self.send_offer(offer, token)
        except StudyError as error:  # nothing was offered: the intention must not wait for an answer
            raise RefusedError(str(error)) from None

    @abstractmethod
    def send_offer(self, offer: Offer, token: str) -> str:
        """Offer a batch to workers; return the platform's id. Raises StudyError before anything is created."""

    @abstractmethod
    def find_posted(self, token: str) -> str | None:
        """The id of the offer that was posted with this token, if any was."""

    @abstractmethod
    def posted(self, posted_id: str) -> PlatformOffer:
        """Return the present state of an offer."""

    @abstractmethod
    def preview(self, posted_id: str) -> str:
        """The address where a coordinator sees an offer as workers do."""

    @abstractmethod
    def extend(self, posted_id: str, *, places: int, token: str) -> bool:
        """Open an offer for its usual time from now, to `places` places in all; return whether that changed it."""

    @abstractmethod
    def close(self, posted_id: str) -> None:
        """Let no further worker begin; those at work may finish. Does nothing if it is closed."""

    def restore(self, offer: Offer) -> None:  # noqa: B027
        """Prepare the page of an offered batch again if our server has lost it, as after restoring an older backup.

        Do nothing if the platform itself shows the work.
        """

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str]) -> None:  # noqa: B027
        """Register a batch's offer, and the workers whom the platform knows, with the page that shows the work.

        Do nothing if the platform itself shows the work.
        """

    # Submissions

    @abstractmethod
    def submissions(self, posted_id: str) -> Iterator[Submission]:
        """Yield all submissions of an offer, of every page and in every state."""

    @abstractmethod
    def submission(self, submission_id: str) -> Submission:
        """Return the present state of a submission."""

    @abstractmethod
    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        """Return the answers in a submission, without the rater.

        Raises DataError for answers that cannot be read (another study's, malformed, too large).
        """

    def confirm(self, path: Path) -> None:
        """Add the participants in a platform's CSV. Raises StudyError if the platform reports them itself."""
        raise StudyError(f"--participants is for `--platform link`, not for {self.title}; leave it out")

    # Decisions and money

    def approve(self, submission: Submission) -> None:
        """Approve a submission, which pays the reward, unless it is approved. RefusedError if it was rejected."""
        self._decide(submission, "approved", "")

    def reject(self, submission: Submission, reason: str) -> None:
        """Reject a submission with a reason for the worker, unless it is rejected. RefusedError if it was approved."""
        if not reason.strip():
            raise RefusedError("a rejection needs a reason, which the worker reads; give one")
        if len(reason) > self.longest_reason:
            raise RefusedError(
                f"the reason has {len(reason)} characters; {self.title} sends only {self.longest_reason}; shorten it"
            )
        self._decide(submission, "rejected", reason)

    def _decide(self, submission: Submission, wanted: Decision, reason: str) -> None:
        state = submission.state
        if state == "submitted":
            try:
                self.send_decision(submission.submission_id, wanted, reason)
            except RefusedError:  # perhaps already decided, on the platform's own page or by a first try
                state = self.submission(submission.submission_id).state
                if state == "submitted":
                    raise
            else:
                return
        if state != wanted:
            raise RefusedError(
                f"submission {submission.submission_id} is {state} on {self.title}: it cannot be {wanted} any more"
            )

    @abstractmethod
    def send_decision(self, submission_id: str, decision: Decision, reason: str) -> None:
        """Approve or reject a submission that waits for it."""

    @abstractmethod
    def bonus(self, submission: Submission, cents: int, reason: str, token: str) -> None:
        """Pay a bonus. A second call with the token pays nothing where the platform knows tokens."""

    def is_bonus_paid(self, submission: Submission, cents: int, reason: str) -> bool:
        """Return whether a bonus has been paid, waiting up to the platform's patience for it to show.

        A second call would pay twice where the platform knows no tokens.
        """
        waited = 0.0
        while not self.shows_bonus(submission.submission_id, cents, reason):
            if waited >= self.patience:
                return False
            self.pause(LOOK)
            waited += LOOK
        return True

    @abstractmethod
    def shows_bonus(self, submission_id: str, cents: int, reason: str) -> bool:
        """Return whether the platform shows this bonus now."""

    def write_lists(self) -> Sequence[Path]:
        """Write lists of the payments that a coordinator makes by hand; none where the platform pays itself."""
        return ()

    @abstractmethod
    def keep_out(self, worker: str) -> None:
        """Exclude a worker from other batches of this study, unless already excluded."""


def found_or_made(find: Callable[[], str | None], make: Callable[[], str | None], what: str) -> str:
    """Find the object that all offers share, or create it; return its id.

    A crash or a run at the same time may have created another one: the listed one counts, before the new one. Raises
    UncertainError if neither the list nor the answer to the call gives an id.
    """
    if existing := find():
        return existing
    new = make()
    if latest := find() or new:
        return latest
    raise UncertainError(f"{what} that its list does not show yet; run the command again in a few minutes")


def amount(cents: int) -> str:
    """Cents as platforms take dollars: 125 is `1.25`."""
    return f"{cents // 100}.{cents % 100:02d}"


def crowd_of(study: Study) -> CrowdSpec:
    """The study's crowd settings. Raises StudyError where it has none."""
    if study.crowd is None:
        raise StudyError(f"{study.file}: has no `crowd`; add `crowd: {{}}`, which pays $24 an hour (docs/crowd.md)")
    return study.crowd


# MTurk's fees on rewards and bonuses (its pricing page): at least a cent; the higher one for HITs of ten and more.
MTURK_FEE, MTURK_FEE_FROM_TEN = Decimal("0.20"), Decimal("0.40")


def reward(transformations: Iterable[str], pay: PaySpec) -> int:
    """Cents for a batch whose pairs are of these transformations, one name a pair; controls are paid like pairs."""
    seconds = sum((_seconds(name, pay) for name in transformations), Decimal(0))
    return _cents(seconds * _hourly(pay) / 3600)


def assumed_hours(transformations: Iterable[str], pay: PaySpec) -> float:
    """The hours that `reward` pays for."""
    return float(sum((_seconds(name, pay) for name in transformations), Decimal(0)) / 3600)


def owed_bonus(paid: int, seconds: Sequence[float], pay: PaySpec) -> int:
    """Cents that each worker of a batch is owed beside the reward `paid`, by the times that its workers took.

    The median time counts, in whole seconds, rounded up, so a worker who paused or rushed changes nobody's pay. Returns
    0 if the reward reaches the hourly wage, or if no time is known.
    """
    if not seconds:
        return 0
    fair = _cents(math.ceil(statistics.median(seconds)) * _hourly(pay) / 3600)
    return max(0, fair - paid)


def hourly(paid: int, seconds: float) -> float:
    """Return dollars an hour: `paid` cents for these seconds; NaN if the time is 0 or unknown."""
    return paid * 36 / seconds if seconds > 0 else float("nan")


def fee(platform: PlatformName, cents: int, places: int, crowd: CrowdSpec) -> int:
    """Cents that a platform takes for one payment of `cents`; `places` is the number of workers for the batch.

    A rehearsal takes the study's fee. Raises StudyError if Prolific's share is missing.
    """
    if platform == "mturk":
        share = MTURK_FEE if places < 10 else MTURK_FEE_FROM_TEN
        return max(1, _up(share * cents))
    if crowd.fee is None and platform == "prolific":
        raise StudyError("crowd.fee is missing: add Prolific's share from your contract, such as 0.333")
    return _up(Decimal(str(crowd.fee or 0)) * cents)


def cost(platform: PlatformName, reward_cents: int, places: int, crowd: CrowdSpec) -> int:
    """Cents for a batch with `places` workers, with fees."""
    return places * (reward_cents + fee(platform, reward_cents, places, crowd))


def dollars(cents: int) -> str:
    """Format cents for people: $1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02d}"


def _seconds(transformation: str, pay: PaySpec) -> Decimal:
    return Decimal(str(pay.seconds)) * (1 + Decimal(str(EXTRA_PAY.get(transformation, 0.0))))


def _hourly(pay: PaySpec) -> Decimal:
    return Decimal(str(pay.hourly))


def _cents(amount: Decimal) -> int:
    """Dollars in cents, rounded up."""
    return _up(amount * 100)


def _up(cents: Decimal) -> int:
    return int(cents.to_integral_value(ROUND_CEILING))
