"""Generators: each takes a job and gives the transformed text. `GENERATORS` is the registry."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from generation.jobs import Job, Plan
from plumbline.errors import StudyError
from plumbline.study.engines import RetrySpec, Sampling
from plumbline.study.transformations import Transformation


@dataclass(frozen=True)
class Attempt:
    """One try at a job: which it is (from 1), the seed for the generator, and how it picks tokens."""

    number: int
    seed: int
    sampling: Sampling

    @classmethod
    def first(cls, job: Job, sampling: Sampling) -> Attempt:
        """What the method prescribes: the transformation seed and the study's sampling."""
        return cls(1, job.seed, sampling)

    def next(self, first_seed: int, retry: RetrySpec, *, cut_off: bool) -> Attempt:
        """Another seed (from the first and the number), the retry's temperature, and more room if it was cut off."""
        number = self.number + 1
        digest = hashlib.sha256(f"attempt-v1 {first_seed} {number}".encode()).digest()
        room = int(self.sampling.max_tokens * retry.more_tokens) if cut_off else self.sampling.max_tokens
        sampling = Sampling(temperature=retry.temperature, top_p=self.sampling.top_p, max_tokens=room)
        return Attempt(number, int.from_bytes(digest[:4], "big") >> 1, sampling)


@dataclass(frozen=True)
class Completion:
    """What a model said to one prompt; `cut_off` where it ran into `max_tokens`.

    `labels` has each label's probability to be the answer's first token, where labels were asked for and probabilities
    are told; a server does not name those of the least likely. Of the prompt's tokens (`sent`) so many had been
    computed for an earlier prompt (`cached`), where the engine tells it.
    """

    text: str
    cut_off: bool = False
    labels: Mapping[str, float] | None = None
    sent: int = 0
    cached: int | None = None


@dataclass(frozen=True)
class GenerationOutcome:
    """What came back for a job.

    `raw` is the last answer as it came, `output` the same after `generation.cleaning`; `intermediate` is the cleaned
    answer to the first of two calls. Where a call ran into `max_tokens` (`cut_off`) or came back empty, the calls
    after it are not made, and `output` is empty. `repeatable` says whether another attempt can give another output.
    """

    output: str
    intermediate: str | None = None
    raw: str = ""
    cut_off: bool = False
    repeatable: bool = True


class Generator(Protocol):
    """Something that transforms texts."""

    @property
    def concurrency(self) -> int:
        """How many jobs it wants in flight at once."""

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """The outcome of one attempt at a job.

        Raises TextFailedError where this text can never succeed, TextUnansweredError where it got no answer this
        time, ServiceError where no text can succeed.
        """

    async def close(self) -> None:
        """Let go of connections and memory."""


class Together:
    """What makes several transformations: each job goes to its transformation's."""

    def __init__(self, generators: Mapping[str, Generator]) -> None:
        self._generators = generators

    @property
    def concurrency(self) -> int:
        """As many as the one that wants most."""
        return max(generator.concurrency for generator in self._generators.values())

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """The outcome, of whoever makes the job's transformation."""
        return await self._generators[job.transformation].transform(job, attempt)

    async def close(self) -> None:
        """Close all."""
        for generator in {id(generator): generator for generator in self._generators.values()}.values():
            await generator.close()


def make_generator(plan: Plan, names: Collection[str] = (), *, allow_code: bool = False) -> Generator:
    """What makes these transformations of the study (by default all), ready to work.

    The study's generator, where one of them asks it; functions, which run code and are refused unless `allow_code`
    (StudyError); and files of outputs.
    """
    by_way: dict[str, dict[str, Transformation]] = {}
    for name in names or plan.kinds:
        by_way.setdefault(plan.kinds[name].made_by, {})[name] = plan.kinds[name]
    if not allow_code:
        refuse_code(plan, by_way.get("function", {}))
    by_name = {way: _of_way(plan, way, kinds) for way, kinds in by_way.items()}
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    return Together({name: by_name[way] for way, kinds in by_way.items() for name in kinds})


def refuse_code(plan: Plan, names: Collection[str]) -> None:
    """Raise StudyError where one of these transformations is a function: a study alone runs no code."""
    for name in names:
        if function := plan.kinds[name].function:
            raise StudyError(
                f"{plan.study.file}: transformation {name!r} runs code, {function}; look at it, then add --allow-code"
            )


def _of_way(plan: Plan, way: str, kinds: Mapping[str, Transformation]) -> Generator:
    if way == "function":
        from generation.generators.function import Functions  # noqa: PLC0415

        return Functions.of(kinds)
    if way == "outputs":
        from generation.generators.files import OutputsFiles  # noqa: PLC0415

        return OutputsFiles.of(kinds)
    return GENERATORS[plan.study.generator.kind](plan)


# Imported late: what each needs takes seconds or lives on the GPU host, and most commands never generate.
def _recorded(plan: Plan) -> Generator:
    from generation.generators.files import RecordedOutputs  # noqa: PLC0415

    return RecordedOutputs.of(plan.study)


def _openai(plan: Plan) -> Generator:
    from generation.generators.openai import ChatServer  # noqa: PLC0415

    return ChatServer.of(plan)


def _vllm(plan: Plan) -> Generator:
    from generation.generators.vllm import VllmEngine  # noqa: PLC0415

    return VllmEngine.of(plan)


GENERATORS: Mapping[str, Callable[[Plan], Generator]] = {"recorded": _recorded, "openai": _openai, "vllm": _vllm}
