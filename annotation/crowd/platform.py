"""The interface of crowd platforms, the same for all of them.

`annotation.crowd.campaign` decides and keeps the ledger; a platform only carries out. Every call that makes a change
takes a token, the same at each try: a platform that knows tokens refuses the second call, and `find_posted` and
`is_bonus_paid` return whether the first one took effect.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Literal, Self

from annotation import server
from annotation.campaign.offering import REHEARSED, CampaignName, Mode
from annotation.campaign.records import PAIRS, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.crowd.batches import Batch
from annotation.crowd.pay import rounded_up
from annotation.ratings.answers import Answer
from annotation.sampling.queues import Queue, queues_of
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import ServiceError, StudyError
from plumbline.records import SOURCES, Pair
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PlatformName

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
    bonuses: tuple[int, ...] = ()  #: cents paid so far beside the reward


#: A check of a setting, which raises PlumblineError where the setting is missing.
Check = Callable[[], object]


@dataclass(frozen=True)
class Opening:
    """What a command opens a platform with."""

    study: Study
    mode: Mode
    home: server.Home  #: where our own server lives
    key: bytes  #: makes workers' pseudonyms
    invited: int  #: people who get a link each where the platform is a mailing list
    ends: contextlib.ExitStack  #: closes the connections when the command ends


class Platform(ABC):
    """A crowd platform in one mode: the interface that campaigns call, and the behaviour all platforms share.

    Methods raise ServiceError, and UncertainError where the difference matters. A platform carries out `send_...` and
    reports its state; this class decides whether to send, whether a call took effect, and how long to look for it. A
    plan needs the class alone: its class methods ask nobody.
    """

    name: PlatformName
    title: str  #: its name for people
    guide: ClassVar[str]  #: the page of docs/ that shows where its settings belong
    mode: Mode
    refills: bool  #: whether the platform reopens a rejected worker's place, at the same cost
    longest_reason: float = math.inf  #: the most characters in the reason for a rejection
    patience: float = 0.0  #: seconds until a paid bonus is certain to show
    pause: Callable[[float], None] = staticmethod(time.sleep)
    plan_note: ClassVar[str] = ""  #: a line below each plan
    after_collecting: ClassVar[str] = ""  #: a line after each collection

    def __init__(self, study: Study, mode: Mode) -> None:
        """Raises StudyError for a study without crowd settings."""
        self._study, self.mode, self._crowd = study, mode, crowd_of(study)
        self.campaign = CampaignName(self.name, mode)

    # Before it is opened

    @classmethod
    @abstractmethod
    def open(cls, opening: Opening) -> Self:
        """Connect to the platform."""

    @classmethod
    def refuse(cls, records: CampaignRecords) -> None:
        """Raise StudyError for a study that this platform must not work on, whatever its settings.

        Beside simulated ratings from a file nothing could be collected that workers are paid for.
        """
        ratings = records.all_ratings
        made_up = ratings.loc[ratings["simulated"].astype(bool), "source"]
        if files := sorted({*made_up} - {*SOURCES}):
            raise StudyError(
                f"{records.study.name} has simulated ratings from {files[0]}, beside which workers' answers cannot be"
                " collected; ask workers under another study name"
            )

    @classmethod
    def fee(cls, cents: int, places: int, crowd: CrowdSpec) -> int:
        """Cents that the platform takes for one payment of `cents`; `places` is the number of workers for the batch.

        The share is the study's. Raises StudyError where the platform needs one and the study has none.
        """
        return rounded_up(Decimal(str(crowd.fee or 0)) * cents)

    @classmethod
    def cost(cls, reward: int, places: int, crowd: CrowdSpec) -> int:
        """Cents for a batch with `places` workers, with fees."""
        return places * (reward + cls.fee(reward, places, crowd))

    @classmethod
    def readers_of(cls, queue: Queue) -> Collection[str]:
        """Return the languages whose countries workers for a queue live in; none where it cannot filter by country."""
        return ()

    @classmethod
    def settings(cls, records: CampaignRecords) -> Iterator[Check]:
        """Yield the checks of the settings that a plan needs, in the order of docs/howto.

        Countries are checked for the languages of the sample, once there is one.
        """
        yield partial(crowd_of, records.study)
        pairs = [pair for pair in records.pairs if pair.pair_id not in records.withdrawn] if records.has(PAIRS) else []
        for language in sorted({code for queue in queues_of(pairs) for code in cls.readers_of(queue)}):
            yield partial((records.study.crowd or CrowdSpec()).countries_of, language)

    @classmethod
    def settings_to_launch(cls, records: CampaignRecords, mode: Mode) -> Iterator[Check]:
        """Yield the checks of the settings that `launch` needs beside those of a plan."""
        yield from ()

    @classmethod
    def check_plan(cls, records: CampaignRecords, mode: Mode, offer: Offer) -> None:
        """Raise StudyError for what `check` would refuse, as far as that is known without asking the platform."""
        for language in sorted(cls.readers_of(offer.batch.queue)):
            crowd_of(records.study).countries_of(language)

    @cached_property
    def _rubric(self) -> Rubric:
        """The rubric as it was fixed for the workers."""
        return asked_rubric(CampaignRecords(self._study))

    @abstractmethod
    def prepare(self) -> None:
        """Create what all offers share (HIT types, qualifications, groups); may be called at any time."""

    @abstractmethod
    def balance(self) -> int | None:
        """Return the cents that can be spent; None if the platform does not say."""

    def add_tester(self, email: str) -> str:
        """Make a test participant for the platform's test mode; return its id. RefusedError where there is none."""
        raise RefusedError(f"{self.title} has no test participants; leave out --tester")

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

    def launch_lines(self, posted_ids: Mapping[str, str]) -> Iterator[str]:
        """Yield what a coordinator does with each open offer after a launch; `posted_ids` are by batch."""
        for batch_id, posted_id in posted_ids.items() if self.mode != "live" else ():
            yield f"try batch {batch_id}: {self.preview(posted_id)}"

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


def find_or_make(find: Callable[[], str | None], make: Callable[[], str | None], claim: str) -> str:
    """Find the object that all offers share, or create it; return its id.

    A crash or a run at the same time may have created another one: the listed one counts, before the new one. Raises
    UncertainError if neither the list nor the answer to the call gives an id.
    """
    if existing := find():
        return existing
    new = make()
    if latest := find() or new:
        return latest
    raise UncertainError(f"{claim} that its list does not show yet; run the command again in a few minutes")


def crowd_of(study: Study) -> CrowdSpec:
    """The study's crowd settings. Raises StudyError where it has none."""
    if study.crowd is None:
        raise StudyError(f"{study.file}: has no `crowd`; add `crowd: {{}}`, which pays $24 an hour (docs/crowd.md)")
    return study.crowd


def first_campaign(study: Study) -> CampaignName:
    """Return the campaign of a study that asked no crowd yet: a rehearsal if it names no platform.

    Raises StudyError as `crowd_of`.
    """
    platform = crowd_of(study).platform
    return CampaignName(platform, "live") if platform not in (None, REHEARSED.platform) else REHEARSED


#: The class of each platform.
CLASSES: dict[PlatformName, str] = {
    "prolific": "annotation.crowd.prolific.adapter:Prolific",
    "link": "annotation.crowd.link:LinkPlatform",
    "rehearsal": "annotation.crowd.rehearsal:MadeUpCrowd",
    "mturk": "annotation.crowd.mturk.adapter:MTurk",
}


def platforms_with(mode: Mode) -> list[PlatformName]:
    """Return the platforms that have a mode, without importing them."""
    lacking = {"live": ("rehearsal",), "test": ("link", "rehearsal", "mturk")}.get(mode, ())
    return [name for name in CLASSES if name not in lacking]


def platform_class(name: PlatformName) -> type[Platform]:
    """Return a platform's class, which is imported now: each needs other packages, and a command one of them."""
    module, _, named = CLASSES[name].partition(":")
    cls: type[Platform] = getattr(importlib.import_module(module), named)
    return cls
