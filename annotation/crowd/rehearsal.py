"""A made-up crowd for practice: launch, collect, review, approve, bonus and close on any study, without a key.

Its workers have a skill, a speed and a habit of giving up; about one in eleven answers carelessly. Their work is
computed from a fixed seed and the number of commands so far: for them, each command that asks the crowd
takes half an hour. Nobody is paid: the account is `rehearsal.json` beside the ledger (`annotation.crowd.account`).

It is always a sandbox: pseudonyms begin with `simulated-`, ratings are marked, and `annotation.ratings.answers.keep`
never mixes them with others.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field

from annotation.argilla.simulate import answering
from annotation.campaign.offering import REHEARSED, offered_to_raters
from annotation.campaign.records import CampaignRecords
from annotation.crowd.account import AccountOffer, AccountPlatform
from annotation.crowd.platform import Offer, Opening, RefusedError, Submission, platform_class
from annotation.human.forms import Skill
from annotation.human.order import drawing_of
from annotation.human.simulated import rehearsal_of
from annotation.questions.question import Value
from annotation.ratings.answers import Answer
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.prompts import rubric_file
from plumbline.records import Record
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater
from plumbline.study.crowd import CrowdSpec, PlatformName

REHEARSAL_FILE = "rehearsal.json"  # what the made-up crowd did, beside the ledger
STEP = 1800.0  # seconds of the crowd's time that pass at each command
TAKEN = 0.8  # share of the free places that are taken in a step
RETURNING = 0.3  # share of arriving workers who have worked on the study before


@dataclass(frozen=True)
class MadeUpWorker:
    """A made-up worker."""

    name: str
    rater: SimulatedRater  #: how well they rate
    skill: Skill  #: how well they do tasks
    speed: float  #: their time divided by the paid time
    gives_up: float  #: how often they return what they began


def worker_of(seed: int, number: int) -> MadeUpWorker:
    """Return the worker with this number, the same at each call.

    Args:
        seed: of the simulation.
        number: of the worker, from 0.

    >>> worker_of(1337, 3) == worker_of(1337, 3)
    True
    """
    draw = np.random.default_rng(int(identity("rehearsal-worker-v1", seed, number), 16))
    kind, speed = draw.random(), float(np.exp(draw.normal(0.1, 0.4)))
    careless, sloppy = kind < 0.09, 0.09 <= kind < 0.25
    noise, right = (8.0, 0.3) if careless else (1.0, 0.75) if sloppy else (0.4, 0.92)
    name, bias = f"REHEARSAL-{number:04d}", float(draw.normal(0.0, 0.3))
    rater = SimulatedRater(name=name.lower(), bias=bias, noise=noise)
    return MadeUpWorker(
        name, rater, Skill(right, 0.01), speed * (0.3 if careless else 1.0), float(draw.uniform(0.0, 0.2))
    )


def _copying(study: Study) -> Iterator[str]:
    """Yield the commands that copy a study under another name, draw its sample and plan its rehearsal."""
    (_, name, *options), rubric = shlex.split(study.arguments), rubric_file(study)
    file, copy = Path(name), f"{study.name[:55]}-practice"
    folder = file.parent / copy
    if rubric.parent == study.file.with_suffix(""):  # an import's questions belong to the study file's name
        yield shlex.join(["mkdir", str(folder)])
        yield shlex.join(["cp", str(file.with_suffix("") / rubric.name), str(folder)])
    yield f"sed {shlex.quote(f's/^name:.*/name: {copy}/')} {shlex.quote(str(file))} > {shlex.quote(f'{folder}.yaml')}"
    if study.crowd is None:
        yield f"echo 'crowd: {{}}' >> {shlex.quote(f'{folder}.yaml')}"
    for step in dict.fromkeys([study.judging.first_command, "sample", REHEARSED.words("plan")]):
        yield shlex.join(["plumbline", *step.split(), "--study", f"{folder}.yaml", *options])


class MadeUpWork(Record):
    """A made-up worker's work on a batch."""

    KEY = ("submission_id",)
    submission_id: str = Field(description="the submission's id")
    posted_id: str = Field(description="the offer that the work is on")
    worker: int = Field(description="the worker's number")
    state: Literal["working", "submitted", "returned"] = Field(description="its state before any decision")
    seconds: float = Field(description="seconds that the work takes")
    ends: int = Field(description="the step in which the work ends")
    submitted_at: datetime | None = Field(default=None, description="when a command saw the work end, UTC")


class MadeUpCrowd(AccountPlatform):
    """The made-up crowd as a platform (`platform.Platform`); always a sandbox."""

    name: PlatformName = "rehearsal"
    title = "the rehearsal"
    guide = "docs/crowd.md"
    after_collecting = "the made-up crowd has worked for half an hour; run this again for the next half hour"

    @classmethod
    def open(cls, opening: Opening) -> Self:
        return cls(opening.study)

    @classmethod
    def refuse(cls, records: CampaignRecords) -> None:
        """Raise StudyError for a study that was offered to people, or has their ratings."""
        super().refuse(records)
        people = ~records.all_ratings["simulated"].astype(bool)
        if offered_to_raters(records) or people.any():
            raise StudyError(
                f"{records.study.name} was offered to people or has ratings by people, which must not be mixed with"
                f" those of a rehearsal; rehearse under another name: {' && '.join(_copying(records.study))}"
            )

    @classmethod
    def fee(cls, cents: int, places: int, crowd: CrowdSpec) -> int:
        """Cents as the study's platform takes them; none for one whose share the study does not name yet."""
        with contextlib.suppress(StudyError):
            if crowd.platform not in (None, cls.name):
                return platform_class(crowd.platform).fee(cents, places, crowd)
        return super().fee(cents, places, crowd)

    def __init__(self, study: Study) -> None:
        """Raises StudyError for a study without crowd settings, DataError for a damaged file."""
        super().__init__(study, "sandbox", REHEARSAL_FILE)
        self._seed, self._looked = study.raters.simulation_seed, False
        rows = [MadeUpWork(**row) for row in self.account.notes.get("submissions", [])]
        self._works, self._steps = {work.submission_id: work for work in rows}, int(self.account.notes.get("steps", 0))

    def check(self, offer: Offer) -> None:
        """Accept every batch."""

    def posted_name(self, batch_id: str) -> str:
        return f"REHEARSAL-{batch_id}"

    def preview(self, posted_id: str) -> str:
        """Return a line that explains that there is no page: workers are made up."""
        return f"no page: workers are made up; `{self._study.command('preview')}` shows what people would see"

    def launch_lines(self, posted_ids: Mapping[str, str]) -> Iterator[str]:
        yield from [self.preview(posted_id) for posted_id in posted_ids.values()][:1]  # the same for all

    # Who works

    def submissions(self, posted_id: str) -> Iterator[Submission]:
        """All work on an offer. For the crowd, the first call in a command takes half an hour."""
        if not self._looked:
            self._looked = True
            self._pass_time()
        for work in self._of(posted_id):
            yield self.submission(work.submission_id)

    def submission(self, submission_id: str) -> Submission:
        if submission_id not in self._works:
            raise RefusedError(f"{self.account.path}: has no submission {submission_id}; restore the file from a copy")
        work = self._works[submission_id]
        name, seconds = worker_of(self._seed, work.worker).name, work.seconds if work.submitted_at else float("nan")
        done = Submission(submission_id, work.posted_id, name, work.state, seconds, work.submitted_at)
        return self.submission_of(done)

    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        """Return the worker's simulated answers, each pair with an equal share of the time."""
        work = self._works[submission.submission_id]
        worker, at = worker_of(self._seed, work.worker), (work.submitted_at or datetime.now(UTC)).isoformat()
        seconds, drawing = round(work.seconds / len(offer.pairs), 1), drawing_of(self._study, offer.pairs)
        orders = drawing.drawn_for(worker.name, offer.pairs) if drawing is not None else {}
        return [
            Answer(
                pair_id=pair.pair_id, values=self._felt(worker, pair.pair_id), submitted_at=at, seconds=seconds,
                comment="REHEARSAL", **orders.get(pair.pair_id, {}),
            )
            for pair in offer.pairs
        ]  # fmt: skip

    @cached_property
    def _felt(self) -> Callable[[MadeUpWorker, str], Mapping[str, Value]]:
        if self._study.judging.does_tasks:
            done = rehearsal_of(self._study).answers
            return lambda worker, pair_id: done(worker.rater, pair_id, worker.skill)
        rated = answering(self._study, self._rubric, CampaignRecords(self._study).shown, draws=True)
        return lambda worker, pair_id: rated(worker.rater, pair_id)

    def _of(self, posted_id: str) -> list[MadeUpWork]:
        return [work for work in self._works.values() if work.posted_id == posted_id]

    def _pass_time(self) -> None:
        """Let a step pass: workers take free places, and work whose time is over ends."""
        self._steps += 1
        draw = np.random.default_rng(int(identity("rehearsal-step-v1", self._seed, self._steps), 16))
        for offer in self.account.offers.values():
            free = offer.places - sum(work.state != "returned" for work in self._of(offer.posted_id))
            for _ in range(int(draw.binomial(max(0, free), TAKEN)) if offer.open else 0):
                self._begin(offer, draw)
        for key, work in list(self._works.items()):
            if work.state == "working" and work.ends <= self._steps:
                at = datetime.now(UTC)
                self._works[key] = work.model_copy(update={"state": "submitted", "submitted_at": at})
        self.account.notes = {"REHEARSAL": "nobody was asked and nobody is paid", "steps": self._steps}
        self.account.notes["submissions"] = [work.model_dump(mode="json") for work in self._works.values()]
        self.account.write()

    def _begin(self, offer: AccountOffer, draw: np.random.Generator) -> None:
        """Let an admissible worker take a place, and finish in time or return it."""
        workers = sorted({work.worker for work in self._works.values()})
        out = {work.worker for work in self._of(offer.posted_id)}
        out |= {number for number in workers if worker_of(self._seed, number).name in self.account.out}
        may = [number for number in workers if number not in out]
        returning = bool(may) and draw.random() < RETURNING
        number = may[int(draw.integers(len(may)))] if returning else (workers[-1] + 1 if workers else 0)
        worker, submission_id = worker_of(self._seed, number), f"REHEARSAL-{len(self._works) + 1:05d}"
        paid_for = offer.reward * 36 / self._crowd.pay.hourly
        seconds = round(paid_for * worker.speed * float(np.exp(draw.normal(0.0, 0.2))))
        gave_up = bool(seconds > self._crowd.hours * 3600 or draw.random() < worker.gives_up)
        self._works[submission_id] = MadeUpWork(
            submission_id=submission_id, posted_id=offer.posted_id, worker=number,
            state="returned" if gave_up else "working", seconds=seconds, ends=self._steps + int(seconds // STEP),
        )  # fmt: skip
