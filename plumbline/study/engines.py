"""A study's language models: engines, each defined once, and their users: the generator, judges, annotators."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from plumbline.addresses import refuse_no_address
from plumbline.errors import StudyError, nearest
from plumbline.study.base import (
    FAULTY_ENGINE,
    Contradiction,
    Line,
    Name,
    PartOfKinds,
    StudyPart,
    Variable,
    complaints,
    distinct,
    refuse_duplicates,
)
from plumbline.study.campaign import RatersSpec

Reading = Literal["expected", "text"]
Relevance = Literal["graded", "binary", "ranked"]

A = TypeVar("A")

#: The commands with the option --generator, which names a candidate.
TAKE_GENERATOR = ("generate", "judge run")


#: Servers' names for the most tokens of an answer.
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

#: A field of JSON, at any depth, that holds a key.
_SECRET = re.compile(r'"[\w-]*(?:api[_-]?key|authorization|access[_-]?token|password)":', re.IGNORECASE)

#: The arguments of vLLM that determine GPUs and texts in flight, with their defaults.
_NUMBERS = {"tensor_parallel_size": 1, "data_parallel_size": 1, "max_num_seqs": 256}
#: The arguments of vLLM that change no answer.
_OF_SPEED = (*_NUMBERS, "max_model_len", "gpu_memory_utilization", "enforce_eager")


class Sampling(StudyPart):
    """Settings by which a model picks tokens; part of every output's identity. Defaults: HTEB, appendix A.1."""

    temperature: float = Field(
        default=0.0, ge=0, le=2, description="sampling temperature; 0 always takes the likeliest token"
    )
    top_p: float = Field(
        default=1.0, gt=0, le=1, description="sample from the likeliest tokens that together have this probability"
    )
    max_tokens: int = Field(default=1024, ge=1, le=10_000_000, description="longest answer, in tokens")


class HttpSettings(StudyPart):
    """`settings` of a model behind a server."""

    OURS: ClassVar[frozenset[str]] = frozenset({"model", "messages", "input", "stream", "n"})

    api_key_env: Variable = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the API key, if the server needs one"
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="requests in flight at the same time; default: 32, of an embedding model 8",
    )
    request: dict[str, JsonValue] = Field(
        default={},
        description="fields of each request, by the server's names: a value is sent instead of Plumbline's, null leaves"
        " the field out; of an embedding model also values by role (query, document, text)",
    )

    @field_validator("request")
    @classmethod
    def _leaves_what_is_read(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if ours := sorted(cls.OURS & value.keys()):
            raise ValueError(f"{ours[0]} cannot be set here: Plumbline writes it, and reads the answer to it")
        if value.get("seed") is not None:
            raise ValueError("seed can only be left out (null), as each output and attempt has a seed of its own")
        if _SECRET.search(json.dumps(value)):  # reports show the fields
            raise ValueError("a key is no field; put it into the variable that api_key_env names")
        return value


def _address(value: str) -> str:
    refuse_no_address(value, "http://127.0.0.1:8000/v1 (put a key into the variable that api_key_env names)")
    return value


Address = Annotated[str, AfterValidator(_address)]  # of a model server


class VllmSettings(StudyPart):
    """`settings` of a model in vLLM: any arguments of its engine, by vLLM's names."""

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[bool] = True

    @model_validator(mode="after")
    def _has_arguments_that_we_can_use(self) -> VllmSettings:
        for name in _NUMBERS:
            value = self.arguments()[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}: must be a number of at least 1")
        if foreign := [name for name in ("model", "revision", "tokenizer_revision") if name in self.arguments()]:
            raise ValueError(f"{foreign[0]} is not a setting; write it beside `settings`, not in it")
        return self

    @property
    def batch(self) -> int:
        """The number of texts that the engine's copies decode at once."""
        return int(self.arguments()["max_num_seqs"] * self.arguments()["data_parallel_size"])

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that vLLM's engine is started with."""
        return {**_NUMBERS, **(self.model_extra or {})}


class RecordedSettings(StudyPart):
    """`settings` of recorded answers."""

    languages: Literal["drawn", "recorded"] = Field(
        default="drawn", description="for a generator: draw target languages by the seed, or use those of the recording"
    )


class EngineSpec(PartOfKinds):
    """A language model, and where it runs: answers in files (recorded), a server (openai), or this process (vllm)."""

    KINDS: ClassVar[dict[str, type[Any]]] = {}
    NOUN: ClassVar[str] = "an engine"
    CHAT: ClassVar[str] = ""  #: the `plumbline.models.chat.Chat` that asks the model, as module:class; empty for none
    PACKAGES: ClassVar[tuple[str, ...]] = ()  #: packages whose versions decide its answers

    kind: str = Field(
        description="recorded: answers from files; openai: any OpenAI-compatible chat server, such as vLLM's, Ollama's"
        " or llama.cpp's; vllm: vLLM in this process, on this machine's GPUs; none: no model"
    )
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(
        default=Sampling(),
        description="sampling of tokens; a judge's answer has at most 16 tokens unless max_tokens is set",
    )
    settings: StudyPart = Field(
        default=StudyPart(),
        description=(
            "settings, by `kind`. openai: api_key_env, concurrency, request; recorded: languages;"
            " vllm: any argument of vLLM's engine, such as tensor_parallel_size or max_num_seqs"
        ),
    )

    def __hash__(self) -> int:
        """Hash model and revision: settings may have values without a hash."""
        return hash((self.model, self.revision))

    @property
    def recordings(self) -> tuple[str, ...]:
        """The files or folders that its answers come from; empty if a model is asked."""
        return ()

    @property
    def recorded_languages(self) -> bool:
        """Whether a recording sets the target languages."""
        return False

    @property
    def in_flight(self) -> int:
        """The number of questions in flight at once."""
        return 32

    @property
    def gpus(self) -> int:
        """The number of GPUs that it holds in this process."""
        return 0

    @property
    def length_key(self) -> str:
        """The key in the study that says how long an answer may be."""
        return "sampling.max_tokens"

    def source(self, ask: Callable[[], A], read: Callable[[str], A]) -> A:
        """Return the source of its answers: that of `ask`, which opens the model, or of `read`, for a recording."""
        return ask()

    def refuse_absence(self, need: str) -> None:
        """Raise StudyError if there is no model; `need` says what needs one."""

    def identity(self, sampling: Sampling | None = None) -> list[Any]:
        """Return the settings that change its answers; `sampling` replaces its own."""
        return [self.model, self.revision, (sampling or self.sampling).model_dump()]

    def rater_identity(self, sampling: Sampling) -> list[Any]:
        """Return the settings that change its answers as a judge."""
        return self.identity(sampling)


class RecordedSpec(EngineSpec):
    """Answers in files; their model is not asked again."""

    kind: Literal["recorded"] = "recorded"
    path: Line = Field(
        description="recorded: a JSONL file of answers; for a generator also a folder of such files, or HTEB's"
        " published outputs"
    )
    settings: RecordedSettings = RecordedSettings()

    @property
    def recordings(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def recorded_languages(self) -> bool:
        return self.settings.languages == "recorded"

    def source(self, ask: Callable[[], A], read: Callable[[str], A]) -> A:
        return read(self.path)

    def rater_identity(self, sampling: Sampling) -> list[Any]:
        return ["recorded", self.model, self.revision]


class ServerSpec(EngineSpec):
    """A model behind an OpenAI-compatible chat server."""

    CHAT: ClassVar[str] = "plumbline.models.openai:ChatServer"

    kind: Literal["openai"] = "openai"
    base_url: Address = Field(description="openai: the server's address, ending in /v1")
    settings: HttpSettings = HttpSettings()

    @model_validator(mode="before")
    @classmethod
    def _has_one_length(cls, data: Any) -> Any:
        """Take the most tokens, if a field of requests says them, for `sampling.max_tokens`, which attempts raise."""
        settings, sampling = (
            data.get(name, {}) if isinstance(data, Mapping) else {} for name in ("settings", "sampling")
        )
        request = settings.get("request") if isinstance(settings, Mapping) else None
        lengths = [value for name in LENGTHS if isinstance(request, Mapping) and (value := request.get(name))]
        if not lengths or not isinstance(sampling, Mapping):
            return data
        if any(length != lengths[0] for length in (*lengths, sampling.get("max_tokens", lengths[0]))):
            raise ValueError("settings.request and sampling.max_tokens name different longest answers; keep one")
        return {**data, "sampling": {**sampling, "max_tokens": lengths[0]}}

    @property
    def in_flight(self) -> int:
        return self.settings.concurrency or super().in_flight

    @property
    def length_key(self) -> str:
        named = next((name for name in LENGTHS if self.settings.request.get(name)), "")
        return f"settings.request.{named}" if named else super().length_key

    def identity(self, sampling: Sampling | None = None) -> list[Any]:
        request = self.settings.request
        return [*super().identity(sampling), *([{"request": request}] if request else [])]


class VllmSpec(EngineSpec):
    """A model in vLLM in this process."""

    CHAT: ClassVar[str] = "plumbline.models.vllm:VllmEngine"
    PACKAGES: ClassVar[tuple[str, ...]] = ("vllm", "transformers")

    kind: Literal["vllm"] = "vllm"
    settings: VllmSettings = VllmSettings()

    @property
    def in_flight(self) -> int:
        return 2 * self.settings.batch

    @property
    def gpus(self) -> int:
        arguments = self.settings.arguments()
        return int(arguments["tensor_parallel_size"] * arguments["data_parallel_size"])

    def identity(self, sampling: Sampling | None = None) -> list[Any]:
        """Return the settings that change its answers: arguments that only vLLM knows may be among them."""
        arguments = self.settings.model_extra or {}
        further = {name: value for name, value in arguments.items() if name not in _OF_SPEED}
        return [*super().identity(sampling), *([further] if further else [])]


class NoEngine(EngineSpec):
    """No model."""

    kind: Literal["none"] = "none"
    model: Line = "none"

    def refuse_absence(self, need: str) -> None:
        raise StudyError(f"generator is missing; {need}: add it")

    def identity(self, sampling: Sampling | None = None) -> list[Any]:
        return ["none"]


NO_ENGINE = NoEngine()


def _named(value: Any, info: ValidationInfo) -> Any:
    """Return an engine in place of its name among the file's `engines`, which are in the context."""
    engines = (info.context or {}).get("engines")
    if not isinstance(value, str):
        return value
    if not isinstance(engines, dict) or value not in engines:
        hint = nearest(value, list(map(str, engines))) if isinstance(engines, dict) else "define it under `engines`"
        raise ValueError(f"no engine {value!r}; {hint}")
    try:
        EngineSpec.model_validate(engines[value], context=info.context)
    except ValidationError as error:
        faults = f"engine {value!r}: {'; '.join(complaints(error))}"
        raise PydanticCustomError(FAULTY_ENGINE, "{faults}", {"faults": faults}) from None
    return engines[value]


#: An engine where it is used: in the file a name from `engines`, or an engine written out in place.
Engine = Annotated[EngineSpec, BeforeValidator(_named, json_schema_input_type=str | EngineSpec)]


class _Rater(StudyPart):
    """A language model that answers as people do, under a name of its own."""

    SAMPLING: ClassVar[Mapping[str, Any]] = {}
    seed: ClassVar[int] = 1337  #: of the first attempt

    name: Name = Field(description="its name in records and tables")
    engine: Engine = Field(description="the model: a name from `engines`")
    questions: Annotated[tuple[Name, ...], distinct("question")] = Field(
        default=(),
        description="the rubric's questions that it answers, or the tasks of a human study that it does; default: all",
    )

    @functools.cached_property
    def sampling(self) -> Sampling:
        """Its sampling settings: those of its engine, or the defaults for such answers."""
        return Sampling(**{**self.SAMPLING, **self.engine.sampling.model_dump(exclude_unset=True)})

    @property
    def model(self) -> str:
        """The model of its engine."""
        return self.engine.model

    @property
    def revision(self) -> str:
        """The revision of its engine."""
        return self.engine.revision

    def identity(self) -> list[Any]:
        """Return the settings that change its answers."""
        return self.engine.rater_identity(self.sampling)


class AnnotatorSpec(_Rater):
    """A judge of a human study: a language model that does people's tasks."""

    @property
    def called(self) -> str:
        """Its name in tables of answers and scores, which marks a recording."""
        return f"{self.name} (recorded)" if self.engine.recordings else self.name


class JudgeSpec(_Rater):
    """A language model that rates outputs (`annotation.judges`)."""

    SAMPLING: ClassVar[Mapping[str, Any]] = {"max_tokens": 16}  # an answer is one number

    prompt: Line = Field(
        default="rubric", description="a prompt in prompts/judges/ (rubric, pteb_sts, pteb_paraphrase), or a YAML file"
    )
    score: Reading | None = Field(
        default=None,
        description="expected: the mean of the points weighted by their probabilities; text: the number in the answer;"
        " default: expected if the points are whole numbers, else text",
    )


def unfit_judges(judges: Sequence[JudgeSpec], raters: RatersSpec) -> Iterator[Contradiction]:
    """Yield a fault for each judge's name that is taken."""
    try:
        refuse_duplicates([judge.name for judge in judges], "judge")
    except ValueError as error:
        yield ("judges",), str(error)
    people = {*(raters.people or ()), *raters.former, *(rater.name for rater in raters.simulated)}
    for judge in judges:
        if judge.name == "judged":
            yield ("judges",), "judges: the name 'judged' is reserved for a file; give the judge another name"
        if judge.name in people:
            fault = f"judges: {judge.name!r} is also the name of a rater; give the judge another name"
            yield ("judges", "raters.people", "raters.former", "raters.simulated"), fault
