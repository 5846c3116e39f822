"""The subject `human`: tasks that people do and that are scored as embedding models' are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from plumbline.errors import StudyError, nearest
from plumbline.study.base import Line, StudyPart, complaints, refuse_duplicates
from plumbline.study.datasets import DatasetSpec, Texts
from plumbline.study.engines import AnnotatorSpec, Relevance
from plumbline.study.subject import NAME, ItemNames, Subject, VerdictUnit

HUMAN = "human"
MOST_POINTS = 11  # of a scale
#: Up to this number, one record holds all candidates; of more, each has a record of its own.
TOGETHER = 10
#: The answer "cannot tell". A task is accepted if no more than half of its answers are this one.
CANNOT_TELL = "cannot_tell"
_SAID = {
    "pairs": "with subject human, write it as `items` of each task",
    "per_pair": "with subject human, write it as `raters` of each task",
    "rules": "with subject human the rule is fixed: at most half of the answers to a task may be `cannot_tell`",
}
_REFUSED = ("transformations", "rubric")
_LONGEST = 40  # characters of a task's name: questions are called after it


class HumanTaskSpec(StudyPart):
    """A task that people do on some items of a data set."""

    dataset: str = Field(description="the name of an entry of `datasets`")
    items: int = Field(default=50, ge=2, le=100_000, description="items per language that people see")
    raters: int = Field(default=3, ge=1, le=1000, description="raters per item")
    balance: Literal["none", "label"] = Field(
        default="none", description="label: the same number of items of each label, if there are enough"
    )
    candidates: int = Field(
        default=7,
        ge=2,
        le=20,
        description=(
            "for searches and bitext: the most candidates per item; if more than 10, each has a record of its own"
        ),
    )
    relevance: Relevance = Field(
        default="graded",
        description="for searches: the form of the answer: a grade from 0 to 3, relevant or not, or an order",
    )
    scale: tuple[int, int] | None = Field(
        default=None, description="for scores: the lowest and the highest point; default: the data set's `gold_scale`"
    )
    labels: dict[str, Line] = Field(default={}, description="words shown for the data set's labels")

    @field_validator("labels", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return {str(label): words for label, words in value.items()} if isinstance(value, dict) else value

    @field_validator("scale")
    @classmethod
    def _ascends(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value and not 1 <= value[1] - value[0] < MOST_POINTS:
            raise ValueError(f"must be the lowest and the highest point, at most {MOST_POINTS} points: [1, 5]")
        return value

    @model_validator(mode="after")
    def _whole(self) -> HumanTaskSpec:
        if not re.fullmatch(NAME, self.name) or len(self.name) > _LONGEST:
            raise ValueError(
                f"the name of data set {self.dataset!r} must begin with a letter from a to z and have at most"
                f" {_LONGEST} characters; give it another `name` under `datasets`"
            )
        if self.relevance == "ranked" and self.candidates > TOGETHER:
            raise ValueError(f"relevance: ranked allows at most {TOGETHER} candidates; lower `candidates`")
        return self

    @property
    def name(self) -> str:
        """Its name in every record and table: the data set's, in lower-case letters."""
        return re.sub(r"[^a-z0-9_-]+", "_", self.dataset.lower())


class HumanSubject(Subject):
    """Tasks that people do, on the same items as models."""

    names = ItemNames("task", "item")
    group_words = "data sets"
    does_tasks = True
    scored_by = "evaluate"
    scores = ("human/scores.parquet", "evaluation")
    simulation = "they know the gold answers, and make errors as set in the study"
    refusals: ClassVar[Mapping[str, str]] = {
        "plan": "plan is for verdicts, but a task for people sets its own items and raters: an accuracy of 0.8 on n"
        " items has a 95% interval of about 0.8 / sqrt(n) to each side; `plumbline sample` draws items, then"
        " `plumbline crowd plan` shows hours and dollars",
        "export": Subject.refusals["export"],
        "sheet": "sheets describe ratings; for people's tasks run `plumbline human-report`",
        "scores-report": "people do tasks in this study; for its report run `plumbline human-report`",
        "sample --extend": "items of tasks that people do are drawn only once; for more items make another study",
        "raters.blocks": "a study with subject human cannot be decided in blocks; take them out",
        "training": Subject.refusals["training"],
    }

    kind: Literal["human"] = "human"
    tasks: tuple[HumanTaskSpec, ...] = Field(min_length=1, description="the tasks that people do")
    models: SkipJsonSchema[tuple[AnnotatorSpec, ...]] = Field(
        default=(), description="the study's `judges`, which do the same tasks"
    )

    @model_validator(mode="after")
    def _distinct(self) -> HumanSubject:
        names = [task.name for task in self.tasks]
        for task in self.tasks:
            advice = f"give data set {task.dataset!r} another `name` under `datasets`"
            if names.count(task.name) > 1:
                raise ValueError(f"{task.name!r} is the name of two tasks; {advice}")
            if task.name in (HUMAN, "items", "texts"):
                raise ValueError(f"{task.name!r} is a reserved name; {advice}")
        refuse_duplicates([model.name for model in self.models], "model")
        for model in self.models:
            if unknown := [name for name in model.questions if name not in names]:
                raise ValueError(f"models: {model.name!r}: no task {unknown[0]!r}; {nearest(unknown[0], names)}")
        return self

    def sizes(self, unit: str) -> tuple[int, int]:
        task = next(task for task in self.tasks if task.name == unit)
        return task.items, task.raters

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """Return no texts: what languages the items have is known once they are drawn."""
        return {task.name: set() for task in self.tasks}

    def model_names(self) -> list[str]:
        return [model.called for model in self.models]

    def settings(self) -> dict[str, Any]:
        """Return the settings without the models that also do the tasks: they do not change the sample."""
        return self.model_dump(mode="json", exclude={"models"})

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        return {task.name: VerdictUnit(name=task.name, axis=self.kind) for task in self.tasks}


def with_human(data: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study file's content, completed by its subject of kind `human`.

    Raises StudyError for keys that do not apply to this subject.
    """
    data = dict(data)
    try:
        subject = HumanSubject.model_validate({**data["subject"], "models": data.pop("judges", ())}, context=context)
    except ValidationError as error:
        faults = (f"subject.{fault}" for fault in complaints(error))
        raise StudyError(*(re.sub(r"^subject\.models", "judges", fault) for fault in faults)) from None
    if refused := [name for name in _REFUSED if name in data]:
        raise StudyError(f"{refused[0]}: does not apply to subject human; take it out")
    listed = data.get("datasets", [])
    if not isinstance(listed, list):
        return {**data, "subject": subject}  # which `datasets` complains of
    datasets = [str(entry.get("name", entry.get("mteb", ""))) for entry in listed if isinstance(entry, dict)]
    for task in subject.tasks:
        if task.dataset not in datasets:
            hint = nearest(task.dataset, datasets) if datasets else "add it to `datasets`"
            raise StudyError(f"subject.tasks: no data set {task.dataset!r}; {hint}")
    for name, implied in _of_tasks(subject.tasks).items():
        written = data.get(name, {})
        if isinstance(written, dict):
            for key, reason in _SAID.items():
                if key in implied and key in written:
                    raise StudyError(f"{name}.{key}: {reason}; take it out")
            data[name] = {**implied, **written}
    return {**data, "subject": subject, "rubric": HUMAN}


def _of_tasks(tasks: Sequence[HumanTaskSpec]) -> dict[str, dict[str, Any]]:
    """Return the sample, raters and acceptance that the tasks imply; the study may set the last and the repeats."""
    raters, items = [task.raters for task in tasks], [task.items for task in tasks]
    return {
        "sample": {"pairs": max(items), "repeats": 0, "batch": max(50, *items)},
        "raters": {"per_pair": max(raters)},
        "acceptance": {
            "min_pairs": min(20, *items),
            "min_raters": min(2, *raters),
            "rules": [
                {"question": task.name, "label": CANNOT_TELL, "at_most": 0.5, "pools": [task.name]} for task in tasks
            ],
        },
    }
