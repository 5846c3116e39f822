"""What runs on a node of a Ray cluster: a generator, and the texts that the command has handed it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
from collections.abc import Collection, Sequence

from generation.forecast import gpus_of
from generation.generators import Generator, make_generator
from generation.jobs import Job, Plan
from generation.output import make_output
from plumbline.errors import StudyError
from plumbline.records import TransformedText
from plumbline.study import Study
from plumbline.study.engines import EngineSpec

_MAKE = ("plumbline", "py3langid", "rapidfuzz")  # packages that decide what an output is, and whether it is one
_RUN = ("vllm", "transformers")  # and those that run an engine
GATHER_SECONDS = 0.02  # so long others may join an output that has come, for each answer to the command costs time


class Worker:
    """An asynchronous Ray actor for the texts of some transformations (`names`).

    It keeps no record: what it makes goes to the command, which alone writes journals and tables.
    """

    def __init__(self, study: Study, names: Collection[str], *, allow_code: bool = False) -> None:
        self._study, self._names, self._allow_code = study, names, allow_code
        self._generator: Generator | None = None
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._made: list[TransformedText] = []
        self._problem: Exception | None = None
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self, prompts: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        """Load the generator; how many texts it works on at once, on what kind of GPU, and `versions_of` this node.

        `prompts` are the hashes of the command's (`made_of`): raises StudyError where this node has others.
        """
        plan = Plan(self._study)  # made here: the command's plan holds hashes in the making, which do not travel
        if made_of(plan) != prompts:
            raise StudyError("prompts, functions or files of outputs are not those of the command; install the same")
        self._generator = make_generator(plan, self._names, allow_code=self._allow_code)
        at_once = self._generator.concurrency
        self._tasks = [asyncio.create_task(self._work(plan, self._generator)) for _ in range(at_once)]
        return at_once, gpus_of(self._study.generator)[1], versions_of(self._study.generator)

    async def exchange(self, jobs: Sequence[Job]) -> list[TransformedText]:
        """Take more texts, and give what has been made since the last time; waits until there is something to give.

        Raises what the generator raised, where no text can succeed: once all that was made has been given.
        """
        for job in jobs:
            self._waiting.put_nowait(job)
        await self._news.wait()
        await asyncio.sleep(GATHER_SECONDS)
        outputs = self._given()
        if self._problem is None:
            self._news.clear()
        elif not outputs:
            raise self._problem
        return outputs

    async def stop(self) -> list[TransformedText]:
        """Make no more, give up what is in flight, and give what has been made; so does a pending `exchange`."""
        for task in self._tasks:
            task.cancel()
        self._news.set()
        return self._given()

    def _given(self) -> list[TransformedText]:
        outputs, self._made = self._made, []
        return outputs

    async def close(self) -> None:
        """Let go of the generator's connections and memory."""
        await self.stop()
        if self._generator is not None:
            await self._generator.close()

    async def _work(self, plan: Plan, generator: Generator) -> None:
        """Make one text after the other."""
        while self._problem is None:
            job = await self._waiting.get()
            try:
                output = await make_output(plan, generator, job)
                self._made.append(output)
            except Exception as error:  # the command tells those that a person can mend from bugs
                self._problem = error
            self._news.set()


def made_of(plan: Plan) -> dict[str, str]:
    """What tells each transformation's texts from others: its prompts, or its function's or file's identity."""
    return {name: plan.prompt_hashes[name] or plan.makers[name].hash for name in plan.kinds}


def versions_of(spec: EngineSpec) -> dict[str, str]:
    """Versions here of what makes outputs; what a package is built for (`+cpu`, `+cu128`) is none of them."""
    versions = {}
    for package in (*_MAKE, *(_RUN if spec.kind == "vllm" else ())):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package).partition("+")[0]
    return versions


def other_version(of_node: dict[str, str], due: dict[str, str]) -> str:
    """The first package of which a node has another version than is `due`; what `due` lacks is due from then on."""
    for package, version in of_node.items():
        if due.setdefault(package, version) != version:
            return f"{package} {version} there, and {due[package]} elsewhere"
    return ""
