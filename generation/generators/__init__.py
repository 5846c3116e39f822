"""Generators: each takes a job and gives the transformed text. `GENERATORS` is the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from generation.jobs import Job, Plan


@dataclass(frozen=True)
class Outcome:
    """What came back for a job: the final output, and the first call's where there are two."""

    output: str
    intermediate: str | None = None


class Generator(Protocol):
    """Something that transforms texts."""

    @property
    def concurrency(self) -> int:
        """How many jobs it wants in hand at once."""

    async def transform(self, job: Job) -> Outcome:
        """The outcome of one job.

        Raises TextFailedError where this text alone fails, ServiceError where no text can succeed.
        """

    async def close(self) -> None:
        """Let go of connections and memory."""


def make_generator(plan: Plan) -> Generator:
    """The generator that the study names, ready to work."""
    return GENERATORS[plan.study.generator.kind](plan)


def _recorded(plan: Plan) -> Generator:
    from generation.generators.recorded import Recorded  # noqa: PLC0415

    return Recorded.of(plan.study)


def _openai(plan: Plan) -> Generator:
    # Imported late: the library takes a second, and most commands never ask a server.
    from generation.generators.openai import OpenAIChat  # noqa: PLC0415

    return OpenAIChat.of(plan)


GENERATORS: Mapping[str, Callable[[Plan], Generator]] = {"recorded": _recorded, "openai": _openai}
