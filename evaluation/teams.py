"""Who works on a model on a Ray cluster, as the command sees it, and what is said when somebody fails or dies."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.models.distant import Facts, Hand, Question
from evaluation.models.encoder import store_of
from evaluation.models.shards import Asked, Shard, Shards
from evaluation.seats import Seat, on_node
from evaluation.work import Job, explained, quiet
from plumbline.errors import PlumblineError
from plumbline.study import Study

TRIES = 2  # of a shard, or of a piece, whose process dies or fails


@dataclass(eq=False)
class Team:
    """A model at work: `todo` are numbers of pieces that nobody has, `going` counts those at desks."""

    job: Job
    shards: Shards
    todo: deque[int]
    hands: list[HandAt] = field(default_factory=list)
    facts: Facts | None = None
    going: int = 0
    asked: int = 0
    failure: str = ""
    unusable: set[Seat] = field(default_factory=set)
    tries: Counter[Any] = field(default_factory=Counter)  # of pieces, and of seats where it died while it was loaded
    waiting: dict[Asked, DeskAt] = field(default_factory=dict)
    questions: list[tuple[DeskAt, Question]] = field(default_factory=list)  # that no hand has yet
    said: dict[bytes, Any] = field(default_factory=dict)  # answers by question
    ways: dict[str, Any] = field(default_factory=dict)  # what stands behind a prompt, of models that pick theirs

    @classmethod
    def of(cls, study: Study, job: Job) -> Team:
        """A model's team, with what was kept of it.

        Raises DataError where that cannot be read, StudyError for a local model that the command's machine lacks.
        """
        spec, evaluation = job.model.spec, study.evaluation
        spec.location(study.file.parent)
        batch = evaluation.batch_size * (spec.concurrency if spec.kind == "openai" else 1)  # what is encoded at once
        shards = Shards(store_of(study, job.model.model_id), batch)
        return cls(job, shards, deque(range(len(job.pieces))))

    def may_have(self, seats: Sequence[Seat]) -> bool:
        """Whether there is a seat left for the model."""
        return any(seat.serves(self.job.model.spec) and seat not in self.unusable for seat in seats)


@dataclass(eq=False)
class HandAt:
    """A process that encodes with a team's model."""

    seat: Seat
    team: Team
    actor: Any
    ready: bool = False
    gone: bool = False
    shards: list[Shard] = field(default_factory=list)


@dataclass(eq=False)
class DeskAt:
    """A desk, and the piece of a team that is made there."""

    actor: Any
    team: Team | None = None
    piece: int = -1

    @property
    def busy(self) -> Team:
        """The team that it works for."""
        if self.team is None:
            raise RuntimeError("a desk without work was asked whom it works for")
        return self.team


def engaged(ray: Any, study: Study, seat: Seat, team: Team) -> HandAt:
    """A process on a node for a team; nothing was asked of it yet."""
    model = team.job.model
    kind = ray.remote(concurrency_groups={"asked": 1})(Hand)
    options = {"num_cpus": seat.cpus, "num_gpus": seat.gpus, **on_node(seat.node)}
    hand = HandAt(seat, team, kind.options(**options).remote(study, model.spec, model.model_id, quiet))
    team.hands.append(hand)
    return hand


def idle_for(team: Team, hands: Sequence[HandAt]) -> HandAt | None:
    """A hand that has nothing to do, whose team has others, and whose seat would do for a team that has none."""
    for hand in hands:
        idle = hand.ready and not hand.shards and len(hand.team.hands) > 1
        if idle and hand.seat.serves(team.job.model.spec) and hand.seat not in team.unusable:
            return hand
    return None


def key_of(question: Question) -> bytes:
    """The same for the same question."""
    return pickle.dumps(question)


def line_of(error: Any, where: str) -> str:
    """What a process raised, in one line with the place that it comes from; a bug stays what it is."""
    cause: BaseException = error.cause
    if isinstance(cause, (ImportError, OSError)):
        return f"{where}: {cause}; docs/cluster.md says what a node needs"
    if isinstance(cause, (PlumblineError, MemoryError, RuntimeError)):
        return f"{where}: {explained(cause)}"
    raise error


def death(error: Exception, times: int) -> str:
    """What is said of a process that is no more, so many having died over the same."""
    what = str(error).strip().splitlines()[0]
    often = "" if times < TRIES else f" {TRIES} times"
    return f"its process died{often} (killed, or out of memory?): {what}; Ray's logs on the node say why"
