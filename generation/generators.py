"""Generators: each takes a job and gives the transformed text: by a chat model, a function, or from files."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from generation.flags import clean
from generation.hteb import HtebOutputs, Recordings, is_published
from generation.jobs import Function, Job, Plan, load_function
from generation.recordings import Place, Recording, load_outputs, load_recordings, recordings_path
from plumbline.errors import StudyError, TextFailedError, TextUnansweredError
from plumbline.languages import language_name
from plumbline.models.chat import Attempt, Chat
from plumbline.models.engines import open_chat
from plumbline.prompts import Prompt
from plumbline.study import Study
from plumbline.study.transformations import Transformation
from plumbline.words import shows

_MOST = 200  # characters of what an exception says


@dataclass(frozen=True)
class GenerationOutcome:
    """What came back for a job.

    `raw` is the last answer as it came, `output` the same after `generation.flags`; `intermediate` is the cleaned
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


@dataclass(frozen=True)
class ChatGenerator:
    """A chat model; `prompts` are those of each transformation, in the order of its calls (`Plan.prompts`)."""

    chat: Chat
    prompts: Mapping[str, tuple[Prompt, ...]]

    @property
    def concurrency(self) -> int:
        """The model's."""
        return self.chat.concurrency

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """Run the calls of a transformation, each on the cleaned answer to the one before."""
        text, raw = job.text, ""
        outputs: list[str] = []
        for prompt, language in zip(self.prompts[job.transformation], job.languages, strict=True):
            values = {"target_language": language_name(language), "text": text}
            message = prompt.render({name: value for name, value in values.items() if name in prompt.variables})
            answer = await self.chat.ask(message, attempt)
            text, raw = clean(answer.text), answer.text
            if answer.cut_off or not text:
                return GenerationOutcome("", outputs[0] if outputs else None, raw, cut_off=answer.cut_off)
            outputs.append(text)
        return GenerationOutcome(text, outputs[0] if len(outputs) > 1 else None, raw)

    async def close(self) -> None:
        """Close the model's."""
        await self.chat.close()


@dataclass(frozen=True)
class RecordedOutputs:
    """Serves recordings, our own or `published` ones; a text that has none stays without an answer."""

    recordings: Mapping[Place, Recording]
    published: HtebOutputs | None = None
    _units: dict[tuple[str, int], Recordings] = field(default_factory=dict, repr=False)  #: the unit read last
    concurrency: int = 1

    @classmethod
    def of(cls, study: Study) -> RecordedOutputs:
        """The recordings that a study names. Raises StudyError if its generator is of another kind."""
        path = recordings_path(study.generator, study.resolve, study.file)
        if is_published(path):
            return cls({}, HtebOutputs(path, study.generator.model, study.datasets, study.transforming))
        return cls(load_recordings(path))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """Our own recording of a text (in NFC), if there is one."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """The recorded outcome. Raises TextUnansweredError where nothing was recorded."""
        if self.published is not None:
            output = (await self._unit(self.published, job)).output(job.text, job.source_language, job.language)
            return GenerationOutcome(clean(output), None, output, repeatable=False)
        recording = self.find(job.transformation, job.language, job.text)
        if recording is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextUnansweredError(f"nothing recorded for {job.transformation}{into}")
        return GenerationOutcome(clean(recording.output), recording.intermediate, recording.output, repeatable=False)

    async def _unit(self, published: HtebOutputs, job: Job) -> Recordings:
        """The recordings of the job's transformation and seed; they are kept until a job of another one comes."""
        of = job.transformation, job.seed
        if of not in self._units:
            self._units.clear()
            self._units[of] = await asyncio.to_thread(published.read, *of)
        return self._units[of]

    async def close(self) -> None:
        """Nothing to let go of."""


class OutputsFiles:
    """Serves each transformation's outputs: a text that its file lacks has failed, for nothing will bring it."""

    concurrency = 1

    def __init__(self, outputs: Mapping[str, Mapping[str, str]]) -> None:
        self._outputs = outputs

    @classmethod
    def of(cls, kinds: Mapping[str, Transformation]) -> OutputsFiles:
        """Those of some transformations. Raises DataError for a file that cannot be used."""
        return cls({name: load_outputs(kind) for name, kind in kinds.items()})

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """What the file has. Raises TextFailedError where it has nothing."""
        output = self._outputs[job.transformation].get(job.text)
        if output is None or not shows(output):
            what = "does not have this text" if output is None else "has an empty output for it"
            raise TextFailedError(f"the file of outputs {what}")
        return GenerationOutcome(output, None, output, repeatable=False)

    async def close(self) -> None:
        """Nothing to let go of."""


class Functions:
    """Calls functions in a thread of their own, one at a time, so that none need be safe for threads."""

    concurrency = 1

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._thread = ThreadPoolExecutor(1)

    @classmethod
    def of(cls, kinds: Mapping[str, Transformation]) -> Functions:
        """Those of some transformations. Importing them runs code; raises StudyError where one cannot be."""
        return cls({name: load_function(kind.function) for name, kind in kinds.items()})

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """What the function gives. Raises TextFailedError where that is no text, or not twice the same."""
        call = functools.partial(_called, self._functions[job.transformation], job)
        text = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        return GenerationOutcome(text, None, text, repeatable=False)

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _called(function: Function, job: Job) -> str:
    """The text that a function gives, if it does so twice."""
    first, second = (_once(function, job) for _ in range(2))
    if first != second:
        raise TextFailedError("the function gave another text when it was called again with the same arguments")
    return first


def _once(function: Function, job: Job) -> str:
    try:
        text = function(job.text, language=job.languages[-1], seed=job.seed)
    except (Exception, SystemExit) as error:  # whatever its code raises
        message = " ".join(str(error).split())[:_MOST]
        raise TextFailedError(
            f"the function raised {type(error).__name__}{f': {message}' if message else ''}"
        ) from None
    if not isinstance(text, str):
        raise TextFailedError(f"the function gave {type(text).__name__}, not a text")
    if not shows(text):
        raise TextFailedError("the function gave an empty text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("the function gave half a character, which is no text") from None
    if "\0" in text:
        raise TextFailedError("the function gave a null character, which is no text")
    return str(text)


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
        return Functions.of(kinds)
    if way == "outputs":
        return OutputsFiles.of(kinds)
    if plan.study.generator.kind == "recorded":
        return RecordedOutputs.of(plan.study)
    return ChatGenerator(open_chat(plan.study.generator, plan.study), plan.prompts)
