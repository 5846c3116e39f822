"""Generators return the transformed text of a job: from a chat model, a function, or a file."""

from __future__ import annotations

import abc
import asyncio
import functools
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from generation.flags import clean
from generation.hteb import HtebOutputs, Recordings, published_outputs
from generation.jobs import Function, Job, Plan, load_function
from generation.recordings import Place, Recording, load_outputs, load_recordings, recordings_path
from plumbline.errors import StudyError, TextFailedError, TextUnansweredError, read_each
from plumbline.languages import language_name
from plumbline.models.chat import Attempt, Chat, Client, open_chat
from plumbline.models.cluster import ClusterChat
from plumbline.prompts import Prompt
from plumbline.study import Study
from plumbline.study.transformations import Transformation
from plumbline.words import shows

_MOST = 200  # characters of an exception's message


@dataclass(frozen=True)
class GenerationOutcome:
    """The result of one attempt at a job.

    `raw` is the last answer as it came, `output` the same after `generation.flags.clean`; `intermediate` is the cleaned
    answer to the first of two calls. If a call ran into `max_tokens` (`cut_off`) or returned nothing, later calls are
    not made and `output` is empty. `repeatable` says whether another attempt can give another output.
    """

    output: str
    intermediate: str | None = None
    raw: str = ""
    cut_off: bool = False
    repeatable: bool = True


class Generator(Client, abc.ABC):
    """A source of transformed texts."""

    @abc.abstractmethod
    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """Return the outcome of one attempt at a job.

        Raises TextFailedError if this text can never succeed, TextUnansweredError if it got no answer this time,
        ServiceError if no text can succeed.
        """


class Together(Generator):
    """Generators of several transformations: each job goes to the generator of its transformation."""

    def __init__(self, generators: Mapping[str, Generator]) -> None:
        self._generators = generators
        self.concurrency = max(generator.concurrency for generator in generators.values())

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        return await self._generators[job.transformation].transform(job, attempt)

    async def close(self) -> None:
        for generator in {id(generator): generator for generator in self._generators.values()}.values():
            await generator.close()


class ChatGenerator(Generator):
    """A chat model with the prompts of each transformation, in the order of its calls (`Plan.prompts`)."""

    def __init__(self, chat: Chat, prompts: Mapping[str, tuple[Prompt, ...]]) -> None:
        self.chat, self.prompts, self.concurrency = chat, prompts, chat.concurrency

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
        await self.chat.close()


@dataclass
class RecordedOutputs(Generator):
    """Serves recordings, ours or `published` ones; a text without a recording stays unanswered."""

    recordings: Mapping[Place, Recording]
    published: HtebOutputs | None = None
    _units: dict[tuple[str, int], Recordings] = field(default_factory=dict, repr=False)  #: the unit read last

    @classmethod
    def of(cls, study: Study) -> RecordedOutputs:
        """Read the recordings that a study names. Raises StudyError if its generator is of another kind."""
        path = recordings_path(study)
        if published := published_outputs(path, study):
            return cls({}, published)
        return cls(load_recordings(path))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """Return our own recording of a text (in NFC), or None."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        if self.published is not None:
            output = (await self._unit(self.published, job)).output(job.text, job.source_language, job.language)
            return GenerationOutcome(clean(output), None, output, repeatable=False)
        recording = self.find(job.transformation, job.language, job.text)
        if recording is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextUnansweredError(f"no recording for {job.transformation}{into}")
        return GenerationOutcome(clean(recording.output), recording.intermediate, recording.output, repeatable=False)

    async def _unit(self, published: HtebOutputs, job: Job) -> Recordings:
        """Return the recordings of the job's unit; the last unit stays in memory."""
        of = job.transformation, job.seed
        if of not in self._units:
            self._units.clear()
            self._units[of] = await asyncio.to_thread(published.read, *of)
        return self._units[of]


class OutputsFiles(Generator):
    """Serves outputs from files; a text that its file lacks fails, as no later attempt can help."""

    def __init__(self, kinds: Mapping[str, Transformation]) -> None:
        """Read the files of some transformations. Raises DataError for a file that cannot be used."""
        self._kinds = kinds
        self._outputs = dict(zip(kinds, read_each(kinds.values(), load_outputs), strict=True))

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """Return the file's output. Raises TextFailedError if it has none."""
        output = self._outputs[job.transformation].get(job.text)
        if output is None or not shows(output):
            file = self._kinds[job.transformation].outputs
            which = f"no output number {file.number}" if file and file.number else "an empty output"
            lack = "does not have this text" if output is None else f"has {which} for it"
            raise TextFailedError(f"the file of outputs {lack}")
        return GenerationOutcome(output, None, output, repeatable=False)


class Functions(Generator):
    """Calls functions in one thread, one at a time, so that they need not be thread-safe."""

    def __init__(self, kinds: Mapping[str, Transformation]) -> None:
        """Import the functions of some transformations, which runs their code. Raises StudyError if one fails."""
        self._functions = {name: load_function(kind.function) for name, kind in kinds.items()}
        self._thread = ThreadPoolExecutor(1)

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """Return the function's text. Raises TextFailedError if it is no text, or differs between two calls."""
        call = functools.partial(_called, self._functions[job.transformation], job)
        text = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        return GenerationOutcome(text, None, text, repeatable=False)

    async def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _called(function: Function, job: Job) -> str:
    first, second = (_once(function, job) for _ in range(2))
    if first != second:
        raise TextFailedError("the function returned different texts for the same arguments")
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
        raise TextFailedError(f"the function returned {type(text).__name__}, not a text")
    if not shows(text):
        raise TextFailedError("the function returned an empty text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("the function returned an unpaired surrogate (half a character)") from None
    if "\0" in text:
        raise TextFailedError("the function returned a text with a null character")
    return str(text)


def make_generator(
    plan: Plan, names: Collection[str] = (), *, cluster: str = "", chat: Chat | None = None, allow_code: bool = False
) -> Generator:
    """Return the generator of these transformations of the study (by default all), ready to work.

    It combines the study's generator, functions and files of outputs, as the transformations need. A chat model is
    `chat` if given, or runs on the Ray cluster at the address `cluster`, if any. Functions run code: raises StudyError
    for one unless `allow_code`.
    """
    by_way: dict[str, dict[str, Transformation]] = {}
    for name in names or plan.kinds:
        by_way.setdefault(plan.kinds[name].made_by, {})[name] = plan.kinds[name]
    if not allow_code:
        refuse_code(plan, by_way.get("function", {}))
    by_name = {way: _of_way(plan, way, kinds, cluster, chat) for way, kinds in by_way.items()}
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    return Together({name: by_name[way] for way, kinds in by_way.items() for name in kinds})


def refuse_code(plan: Plan, names: Collection[str]) -> None:
    """Raise StudyError if one of these transformations is a function: a study by itself runs no code."""
    for name in names:
        if function := plan.kinds[name].function:
            raise StudyError(
                f"{plan.study.file}: transformation {name!r} runs code, {function}; read it, then add --allow-code"
            )


def _of_way(plan: Plan, way: str, kinds: Mapping[str, Transformation], cluster: str, chat: Chat | None) -> Generator:
    if way == "function":
        return Functions(kinds)
    if way == "outputs":
        return OutputsFiles(kinds)
    spec, study = plan.study.generator, plan.study

    def asked() -> Generator:
        model = chat or (ClusterChat(spec, study, cluster) if cluster else open_chat(spec, study))
        return ChatGenerator(model, plan.prompts)

    return spec.source(asked, lambda _: RecordedOutputs.of(study))
