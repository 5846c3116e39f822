"""A study's language models: engines, each defined once, and their users: the generator, judges, annotators."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from plumbline.addresses import refuse_no_address
from plumbline.errors import StudyError, nearest
from plumbline.study.base import Line, Name, StudyPart, Variable, first_complaint, refuse_duplicates
from plumbline.study.campaign import RatersSpec

Reading = Literal["expected", "text"]
Relevance = Literal["graded", "binary", "ranked"]

#: The commands with the option --generator, which names a candidate.
TAKE_GENERATOR = ("generate", "judge run")


#: The arguments of vLLM that determine GPUs and texts in flight, with their defaults.
_NUMBERS = {"tensor_parallel_size": 1, "data_parallel_size": 1, "max_num_seqs": 256}


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

    api_key_env: Variable = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the API key, if the server needs one"
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="requests in flight at the same time; default: 32, of an embedding model 8",
    )


class VllmSettings(StudyPart):
    """`settings` of a model in vLLM: any arguments of its engine, by vLLM's names."""

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[bool] = True

    @model_validator(mode="after")
    def _has_numbers_where_we_read_them(self) -> VllmSettings:
        for name in _NUMBERS:
            value = self.arguments()[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}: must be a number of at least 1")
        return self

    @property
    def gpus(self) -> int:
        """The number of GPUs that the engine holds."""
        return self._number("tensor_parallel_size") * self._number("data_parallel_size")

    @property
    def batch(self) -> int:
        """The number of texts that the engine's copies decode at once."""
        return self._number("max_num_seqs") * self._number("data_parallel_size")

    def _number(self, name: str) -> int:
        return int(self.arguments()[name])

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that vLLM's engine is started with."""
        return {**_NUMBERS, **(self.model_extra or {})}


class RecordedSettings(StudyPart):
    """`settings` of recorded answers."""

    languages: Literal["drawn", "recorded"] = Field(
        default="drawn", description="for a generator: draw target languages by the seed, or use those of the recording"
    )


SETTINGS: dict[str, type[StudyPart]] = {"recorded": RecordedSettings, "openai": HttpSettings, "vllm": VllmSettings}
_BESIDE = ("model", "revision", "tokenizer_revision")  # arguments of vLLM that are no settings
_OF_SPEED = (
    *_NUMBERS,
    "max_model_len",
    "gpu_memory_utilization",
    "enforce_eager",
)  # arguments of vLLM that change no answer
_PLACES = {"recorded": "path", "openai": "base_url"}


def settings_complaint(error: ValidationError) -> str:
    """Return the fault of settings in one line."""
    line = first_complaint(error)
    return f"settings: {line}" if line.startswith("unknown key") else f"settings.{line}"


class EngineSpec(StudyPart):
    """A language model, and where it runs: answers in files (recorded), a server (openai), or this process (vllm)."""

    kind: Literal["recorded", "openai", "vllm", "none"] = Field(
        description="recorded: answers from files; openai: any OpenAI-compatible chat server, such as vLLM's, Ollama's"
        " or llama.cpp's; vllm: vLLM in this process, on this machine's GPUs; none: no model"
    )
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(
        default=Sampling(),
        description=("sampling of tokens; a judge's answer has at most 16 tokens unless max_tokens is set"),
    )
    path: Line = Field(
        default="",
        description="recorded: a JSONL file of answers; for a generator also a folder of such files, or HTEB's"
        " published outputs",
    )
    base_url: str = Field(default="", description="openai: the server's address, ending in /v1")
    settings: dict[str, Any] = Field(
        default={},
        description=(
            "settings, by `kind`. openai: api_key_env, concurrency; recorded: languages;"
            " vllm: any argument of vLLM's engine, such as tensor_parallel_size or max_num_seqs"
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _no_model(cls, data: Any) -> Any:
        return {"model": "none", **data} if isinstance(data, dict) and data.get("kind") == "none" else data

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        refuse_no_address(value, "http://127.0.0.1:8000/v1 (put a key into the variable that api_key_env names)")
        return value

    @model_validator(mode="after")
    def _fits_its_kind(self) -> EngineSpec:
        for kind, key in _PLACES.items():
            if self.kind == kind and not getattr(self, key):
                raise ValueError(f"{key}: Field required")
            if self.kind != kind and getattr(self, key):
                raise ValueError(f"{key}: does not apply to an engine of kind {self.kind}; take it out")
        try:
            SETTINGS.get(self.kind, StudyPart).model_validate(self.settings)
        except ValidationError as error:
            raise ValueError(settings_complaint(error)) from None
        if foreign := [name for name in _BESIDE if name in self.settings]:
            raise ValueError(f"settings: {foreign[0]} is not a setting; write it beside `settings`, not in it")
        return self

    def __hash__(self) -> int:
        """Hash its kind, model and revision; its settings are a mapping, which cannot be hashed."""
        return hash((self.kind, self.model, self.revision))

    @functools.cached_property
    def http(self) -> HttpSettings:
        """The settings of an engine behind a server."""
        return HttpSettings.model_validate(self.settings)

    @functools.cached_property
    def vllm(self) -> VllmSettings:
        """The settings of an engine in this process."""
        return VllmSettings.model_validate(self.settings)

    @property
    def in_flight(self) -> int:
        """The number of questions in flight at once; for vLLM a full batch, and as many again waiting."""
        if self.kind == "vllm":
            return 2 * self.vllm.batch
        return self.http.concurrency or 32

    @property
    def recorded_languages(self) -> bool:
        """Whether a recording sets the target languages."""
        return self.kind == "recorded" and RecordedSettings.model_validate(self.settings).languages == "recorded"

    def identity(self, sampling: Sampling | None = None) -> list[Any]:
        """Return the settings that change its answers; `sampling` replaces its own."""
        if self.kind == "none":
            return ["none"]
        parts: list[Any] = [self.model, self.revision, (sampling or self.sampling).model_dump()]
        if self.kind == "vllm":
            # An argument that only vLLM knows may change answers (`hf_overrides`, for example).
            arguments = self.vllm.model_extra or {}
            if further := {name: value for name, value in arguments.items() if name not in _OF_SPEED}:
                parts.append(further)
        return parts


NO_ENGINE = EngineSpec(kind="none", model="none")


def _no_name(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"no engine {value!r}; define it under `engines`")
    return value


#: An engine where it is used: in the file a name from `engines`, or an engine written out in place.
Engine = Annotated[EngineSpec, BeforeValidator(_no_name, json_schema_input_type=str | EngineSpec)]


def with_engines(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study file's content with engines in place of their names. Raises StudyError for an unknown one."""
    data, engines = dict(data), dict[str, EngineSpec]()
    written = data.get("engines", {})
    if not isinstance(written, dict):
        return data  # which `engines` complains of
    for name, engine in written.items():
        try:
            engines[str(name)] = EngineSpec.model_validate(engine)
        except ValidationError as error:
            raise StudyError(f"engines.{name}.{first_complaint(error)}") from None
    data["engines"] = engines

    def of(value: Any, where: str) -> Any:
        if not isinstance(value, str):
            return value
        if value not in engines:
            hint = nearest(value, list(engines)) if engines else "define it under `engines`"
            raise StudyError(f"{where}: no engine {value!r}; {hint}")
        return engines[value]

    if "generator" in data:
        data["generator"] = of(data["generator"], "generator")
    if isinstance(data.get("candidates"), list):
        data["candidates"] = [of(engine, f"candidates.{index}") for index, engine in enumerate(data["candidates"])]
    if isinstance(data.get("judges"), list):
        data["judges"] = [
            {**judge, "engine": of(judge["engine"], f"judges.{index}.engine")}
            if isinstance(judge, dict) and "engine" in judge
            else judge
            for index, judge in enumerate(data["judges"])
        ]
    return data


class _Rater(StudyPart):
    """A language model that answers as people do, under a name of its own."""

    SAMPLING: ClassVar[Mapping[str, Any]] = {}
    seed: ClassVar[int] = 1337  #: of the first attempt

    name: Name = Field(description="its name in records and tables")
    engine: Engine = Field(description="the model: a name from `engines`")
    questions: tuple[Name, ...] = Field(
        default=(),
        description=(
            "the rubric's questions that it answers, or the tasks of a human study that it does; default: all"
        ),
    )

    @field_validator("questions")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        refuse_duplicates(list(value), "question")
        return value

    @functools.cached_property
    def sampling(self) -> Sampling:
        """Its sampling settings: those of its engine, or the defaults for such answers."""
        return Sampling(**{**self.SAMPLING, **self.engine.sampling.model_dump(exclude_unset=True)})

    @property
    def kind(self) -> str:
        """The kind of its engine."""
        return self.engine.kind

    @property
    def model(self) -> str:
        """The model of its engine."""
        return self.engine.model

    @property
    def revision(self) -> str:
        """The revision of its engine."""
        return self.engine.revision

    @property
    def recording(self) -> str:
        """The file of its answers, if it is a recording."""
        return self.engine.path

    def identity(self) -> list[Any]:
        """Return the settings that change its answers."""
        if self.kind == "recorded":
            return ["recorded", self.model, self.revision]
        return self.engine.identity(self.sampling)


class AnnotatorSpec(_Rater):
    """A judge of a human study: a language model that does people's tasks."""

    @property
    def called(self) -> str:
        """Its name in tables of answers and scores, which marks a recording."""
        return f"{self.name} (recorded)" if self.kind == "recorded" else self.name


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


def refuse_unfit_judges(judges: Sequence[JudgeSpec], raters: RatersSpec) -> None:
    """Raise ValueError for a judge's name that is taken."""
    refuse_duplicates([judge.name for judge in judges], "judge")
    people = {*(raters.people or ()), *raters.former, *(rater.name for rater in raters.simulated)}
    for judge in judges:
        if judge.name == "judged":
            raise ValueError("judges: the name 'judged' is reserved for a file; give the judge another name")
        if judge.name in people:
            raise ValueError(f"judges: {judge.name!r} is also the name of a rater; give the judge another name")


def recordings(raters: Sequence[_Rater]) -> Iterator[str]:
    """Yield the files of recorded answers."""
    yield from (rater.recording for rater in raters if rater.kind == "recorded")
