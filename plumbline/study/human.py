"""How a study names the tasks that people do, to be scored as embedding models are: its key `human`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from plumbline.errors import StudyError, nearest
from plumbline.study.base import Code, Line, Name, StudyPart, first_complaint, refuse_duplicates
from plumbline.study.evaluation import ModelSpec
from plumbline.study.generator import OpenAIGenerator, Sampling, VllmGenerator
from plumbline.study.judged import NAME, VerdictUnit

Relevance = Literal["graded", "binary", "ranked"]


class _Annotator(StudyPart):
    name: Name = Field(description="what records and tables call it")
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(default=Sampling(), description="how it picks tokens; temperature 0 unless set")
    tasks: tuple[Name, ...] = Field(default=(), description="the study's tasks that it does; all if unset")
    relevance: Relevance | None = Field(
        default=None, description="of searches how it is asked, where that is not as people are"
    )
    attempts: int = Field(default=3, ge=1, le=20, description="times that an answer is asked for that cannot be read")
    temperature: float = Field(
        default=0.7, ge=0, le=2, description="temperature from the second attempt on: at 0 a new seed changes nothing"
    )
    seed: int = Field(default=1337, ge=0, le=2**31 - 1, description="seed of the first attempt")

    @model_validator(mode="after")
    def _each_once(self) -> _Annotator:
        refuse_duplicates(list(self.tasks), "task")
        return self

    @property
    def called(self) -> str:
        """What tables of answers and scores call it."""
        return self.name


class RecordedAnnotator(_Annotator):
    """Answers that stand in a file, of a model that was asked elsewhere or made by a rule."""

    kind: Literal["recorded"]
    path: Line = Field(description="a JSONL file: task, item, where there are several candidate, and answer")

    @property
    def called(self) -> str:
        """Its name, and that it is a recording."""
        return f"{self.name} (recorded)"

    def identity(self) -> list[Any]:
        """What of it changes its answers."""
        return ["recorded", self.model, self.revision]


class OpenAIAnnotator(_Annotator, OpenAIGenerator):
    """A model behind an OpenAI-compatible chat server."""


class VllmAnnotator(_Annotator, VllmGenerator):
    """A model in vLLM, in this process."""


AnnotatorSpec = Annotated[RecordedAnnotator | OpenAIAnnotator | VllmAnnotator, Field(discriminator="kind")]

HUMAN = "human"
MOST_POINTS = 11  # of a scale
#: Up to so many candidates stand in one record; of more each has a record of its own.
TOGETHER = 10
#: The answer of who cannot tell. A task is accepted where no more than half of the answers are that.
CANNOT_TELL = "cannot_tell"
_SAID = {
    "pairs": "with `human` each task says it, as `items`",
    "per_pair": "with `human` each task says it, as `raters`",
    "rules": "with `human` it is accepted what enough people answered, and at least half of the time could tell",
}
_REFUSED = ("subject", "transformations", "rubric")
_LONGEST = 40  # characters of a task's name: questions are called after it
_TaskName = Annotated[str, Field(pattern=NAME, max_length=_LONGEST)]


class HumanTaskSpec(StudyPart):
    """A task that people do on some items of a data set."""

    name: _TaskName = Field(description="its name in every record and table; default: the data set's, in small letters")
    mteb: str = Field(default="", description="a task of mteb, which then need not stand under `datasets`")
    data: str = Field(default="", description="else the name of one of `datasets`")
    items: int = Field(default=50, ge=2, le=100_000, description="items that people see, of each language")
    raters: int = Field(default=3, ge=1, le=1000, description="raters of each item")
    balance: Literal["none", "label"] = Field(
        default="none", description="label: as many items of each label as there are, as far as they reach"
    )
    languages: tuple[Code, ...] = Field(default=(), description="languages (codes) of the items; all if unset")
    candidates: int = Field(
        default=7,
        ge=2,
        le=20,
        description="of searches and bitext the most candidates of an item; beyond 10 each has a record of its own",
    )
    relevance: Literal["graded", "binary", "ranked"] = Field(
        default="graded", description="of searches what is asked: a grade from 0 to 3, relevant or not, or an order"
    )
    relevant: Literal["always", "maybe_absent"] = Field(
        default="always",
        description="of searches and bitext: whether a right candidate is always among them; else raters are told that"
        " there may be none",
    )
    scale: tuple[int, int] | None = Field(
        default=None, description="of scores the lowest and the highest point; default: the data set's `gold_scale`"
    )
    labels: dict[str, Line] = Field(default={}, description="words for labels as the data set has them")
    tell_clusters: bool = Field(default=True, description="whether raters are told how many clusters there are")
    cut: int = Field(default=0, ge=0, description="characters of a text that are shown at most; 0: all")
    instructions: str = Field(
        default="", description="a file like those in prompts/human/, relative to the study's, instead of theirs"
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "name" in data:
            return data
        given = data.get("mteb") or data.get("data")
        return {**data, "name": re.sub(r"[^a-z0-9_-]+", "_", given.lower()) if isinstance(given, str) else "task"}

    @field_validator("labels", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return {str(label): words for label, words in value.items()} if isinstance(value, dict) else value

    @field_validator("scale")
    @classmethod
    def _ascends(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value and not 1 <= value[1] - value[0] < MOST_POINTS:
            raise ValueError(f"has the lowest point first, then the highest, and {MOST_POINTS} points at most: [1, 5]")
        return value

    @model_validator(mode="after")
    def _whole(self) -> HumanTaskSpec:
        if bool(self.mteb) == bool(self.data):
            raise ValueError("names its data set: `mteb`, a task of mteb, or `data`, one of `datasets`")
        if self.relevance == "ranked" and self.candidates > TOGETHER:
            raise ValueError(f"an order is of {TOGETHER} candidates at most, which stand in one record; lower it")
        refuse_duplicates(list(self.languages), "language")
        return self

    @property
    def dataset(self) -> str:
        """The name of its data set in the study."""
        return self.mteb or self.data


class HumanSubject(StudyPart):
    """Items of tasks, to be done by people as models do them; it stands under the key `human`, not `subject`."""

    kind: Literal["human"] = "human"
    tasks: tuple[HumanTaskSpec, ...] = Field(min_length=1, description="what people do")
    models: tuple[AnnotatorSpec, ...] = Field(
        default=(), description="language models that do the same as people, asked by `annotation judge run`"
    )

    @model_validator(mode="after")
    def _distinct(self) -> HumanSubject:
        names = [one.name for one in self.tasks]
        refuse_duplicates(names, "task")
        refuse_duplicates([one.name for one in self.models], "model")
        for model in self.models:
            if unknown := [name for name in model.tasks if name not in names]:
                raise ValueError(f"models: {model.name!r} does {unknown[0]!r}; {nearest(unknown[0], names)}")
            many = [one.name for one in self.tasks if one.candidates > TOGETHER and one.name in (model.tasks or names)]
            if many and model.relevance == "ranked":
                raise ValueError(
                    f"models: {model.name!r}: an order is of {TOGETHER} candidates at most, and {many[0]!r} has more;"
                    " name other `tasks`, or leave `relevance` out"
                )
        if taken := sorted({HUMAN, "items", "texts"} & set(names)):
            raise ValueError(f"no task can be called {taken[0]!r}; give it another name")
        return self

    def task(self, name: str) -> HumanTaskSpec:
        """A task by its name."""
        return next(one for one in self.tasks if one.name == name)

    def judged(self) -> dict[str, VerdictUnit]:
        """Its tasks by name: each is a pool, and has queues of its own."""
        return {one.name: VerdictUnit(name=one.name, axis=self.kind) for one in self.tasks}


def refuse_one_name(subject: object, models: Iterable[ModelSpec]) -> None:
    """Raise ValueError for a language model that is called as an embedding model is: tables hold both by name."""
    asked = {one.called for one in subject.models} if isinstance(subject, HumanSubject) else set[str]()
    if taken := [one.name for one in models if one.name in asked]:
        raise ValueError(f"human.models: {taken[0]!r} is the name of an embedding model too; give one of them another")


def with_human(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a study's file says, with its key `human` as a subject. Raises StudyError for what cannot be beside it."""
    data = dict(data)
    written = data.pop(HUMAN)
    if not isinstance(written, dict):
        raise StudyError("human: is no mapping; write human: {tasks: [{data: NAME, items: 50, raters: 3}]}")
    try:
        subject = HumanSubject.model_validate(written)
    except ValidationError as error:
        raise StudyError(f"human.{first_complaint(error)}") from None
    if beside := [name for name in _REFUSED if name in data]:
        raise StudyError(f"{beside[0]}: with `human` people do tasks, and nothing else is asked; take it out")
    listed = data.get("datasets", [])
    if not isinstance(listed, list):
        return {**data, "subject": subject}  # which `datasets` complains of
    known = [str(one.get("name", one.get("mteb", ""))) for one in listed if isinstance(one, dict)]
    for one in subject.tasks:
        if one.data and one.data not in known:
            raise StudyError(f"human.tasks: {one.name!r}: no data set {one.data!r}; {_known(one.data, known)}")
    wanted = dict.fromkeys(one.mteb for one in subject.tasks if one.mteb and one.mteb not in known)
    settings = {name: _defaults(data, name, own) for name, own in _of_tasks(subject.tasks).items()}
    return {
        **data,
        **settings,
        "datasets": [*listed, *({"mteb": name} for name in wanted)],
        "subject": subject,
        "rubric": HUMAN,
    }


def _known(name: str, known: Sequence[str]) -> str:
    return nearest(name, list(known)) if known else "the study has none: add it to `datasets`"


def _of_tasks(tasks: Sequence[HumanTaskSpec]) -> dict[str, dict[str, Any]]:
    """What the tasks say of the sample, of raters and of what is enough; the study may say the last and no repeats."""
    raters, items = [one.raters for one in tasks], [one.items for one in tasks]
    return {
        "sample": {"pairs": max(items), "repeats": 0, "batch": max(50, *items)},
        "raters": {"per_pair": max(raters)},
        "acceptance": {
            "min_pairs": min(20, *items),
            "min_raters": min(2, *raters),
            "rules": [
                {"question": one.name, "statistic": "share", "label": CANNOT_TELL, "at_most": 0.5, "pools": [one.name]}
                for one in tasks
            ],
        },
    }


def _defaults(data: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> Any:
    """A part of a study with what its tasks say. Raises StudyError where the study says it too."""
    given = data.get(name, {})
    if not isinstance(given, dict):
        return given
    for key, why in _SAID.items():
        if key in own and key in given:
            raise StudyError(f"{name}.{key}: {why}; take it out")
    return {**own, **given}
