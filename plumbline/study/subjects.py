"""The subjects that a study file may name: a class for each, with its settings and all that differs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from plumbline.errors import nearest
from plumbline.study.base import Code, Line, Name, refuse_duplicates
from plumbline.study.datasets import DatasetName, DatasetSpec, Texts
from plumbline.study.human import HumanSubject
from plumbline.study.subject import INSTRUCTIONS, NAME, TEXT, ItemNames, JudgedName, Subject, VerdictUnit

if TYPE_CHECKING:
    from plumbline.study import Study

Context = Literal["task_type", "description", "language"]


class RowSubject(Subject):
    """Rows of a file; all groups share one explanation and queue, so that raters do not know the group of a row."""

    text: ClassVar[str] = TEXT

    if TYPE_CHECKING:  # what kinds of rows have, as settings or fixed

        @property
        def groups(self) -> tuple[str, ...]: ...

        @property
        def language(self) -> str: ...

        @property
        def context(self) -> dict[str, str]: ...

        @property
        def expected(self) -> dict[str, str]: ...

        @property
        def systems(self) -> dict[str, str]: ...

    @property
    def beside(self) -> Mapping[str, str]:
        return self.context

    @property
    def systems_by_label(self) -> Mapping[str, str]:
        return self.systems

    @property
    def known_questions(self) -> Mapping[str, str]:
        return self.expected

    @property
    def fields(self) -> list[str]:
        return [TEXT, *self.context]

    def pools(self, group: str, task: str | None) -> list[str]:
        return ["texts"]

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        return dict.fromkeys(units, ((self.language, self.kind),))

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        return {name: VerdictUnit(name=name, axis=self.kind, queue="texts") for name in self.groups}


class TextsSubject(RowSubject):
    """Texts of a file, one per row: the column `text`, and `group` if there are several groups."""

    names = ItemNames("group", "text")
    needs_datasets = False

    kind: Literal["texts"]
    path: Line = Field(description="a CSV, TSV, JSONL or Parquet file, relative to the study file")
    language: Code = Field(description="code of the texts' language; a column `language` overrides it")
    groups: tuple[JudgedName, ...] = Field(
        min_length=1,
        description="the groups that get a verdict, by the column `group` if there are several; raters do not see it",
    )
    context: dict[Name, Line] = Field(
        default={}, description="further fields that raters see beside the text: each field's name and its column"
    )
    expected: dict[Name, Line] = Field(
        default={},
        description="columns with right answers, by question; rows with a right answer serve only to check raters",
    )
    systems: dict[Name, Line] = Field(
        default={},
        description="columns that name the system behind each label of a choice between outputs of one text, or of a"
        " ranking of them; other labels are ties. Raters do not see them",
    )

    @model_validator(mode="after")
    def _whole(self) -> TextsSubject:
        refuse_duplicates(list(self.groups), "group")
        if self.kind in self.groups:
            raise ValueError(f"{self.kind!r} is a reserved name; rename the group")
        if TEXT in self.context:
            raise ValueError(f"context: {TEXT!r} is the field of the text itself; give this field another name")
        columns = [self.text, *([self.group] if self.group else []), *self.context.values(), *self.expected.values()]
        refuse_duplicates(columns, "column")
        if shown := [column for column in self.systems.values() if column in columns]:
            raise ValueError(f"systems: the column {shown[0]!r} has another use too; raters must not see the system")
        if len(set(self.systems.values())) == 1:
            raise ValueError("systems: name the columns of two systems or more")
        return self

    @property
    def group(self) -> str:
        """The column of each row's group; empty if all rows are one group."""
        return "group" if len(self.groups) > 1 else ""

    def file_of(self, study: Study) -> Path:
        return study.resolve(self.path)

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        if datasets:
            raise ValueError(
                "datasets: does not apply to subject texts, which judges the texts of subject.path; take it out"
            )
        return super()._units(datasets, keys)


class InstructionsSubject(RowSubject):
    """Wordings of the instructions to embedding models for the study's data sets.

    A language model proposes them, or people do, in a file; `generation.instructions` puts them together.
    """

    names = ItemNames("group", "wording")
    takes = ("generator",)
    takes_all = True
    first_command = "instructions"
    scored_by = "sensitivity"
    scores = ("instructions/scores.parquet", "instruction_scores")
    refusals: ClassVar[Mapping[str, str]] = {
        **RowSubject.refusals,
        "evaluate": "this study scores models under instructions; run `plumbline sensitivity`",
    }
    group: ClassVar[str] = "group"
    context: ClassVar[dict[str, str]] = {"task": "task_words"}
    systems: ClassVar[dict[str, str]] = {}
    per_call: ClassVar[int] = 5  #: wordings requested in one call
    language: ClassVar[str] = "en"  #: of the wordings
    seed: ClassVar[int] = 1337  #: of the generator's first attempt
    near: ClassVar[float] = 0.1  #: wordings of one task that differ by no more of their characters are one

    kind: Literal["instructions"]
    contexts: tuple[Context, ...] = Field(
        default=("task_type", "description", "language"),
        description=(
            "what the generator is told; each context has its own calls. task_type: the task type (one call for each"
            " type, whose tasks share the wordings); description: the task type and the data set's description (one"
            " call for each data set); language: these and the languages of the texts (one call for each data set)"
        ),
    )
    prompts: str = Field(
        default="",
        description=(
            "a file of wordings that people wrote, relative to the study file, with columns task (or task type) and"
            " prompt"
        ),
    )
    known: str = Field(
        default="",
        description=(
            "a file of wordings whose right label is known, relative to the study file, with columns task (or task"
            " type), prompt and label; they only check raters"
        ),
    )
    descriptions: dict[DatasetName, Line] = Field(
        default={}, description="a sentence for each data set on its content and the task; default: mteb's"
    )

    @model_validator(mode="after")
    def _asks_somebody(self) -> InstructionsSubject:
        refuse_duplicates(list(self.contexts), "context")
        if not self.contexts and not self.prompts:
            raise ValueError("contexts: no source of wordings; add contexts for a generator, or a file in `prompts`")
        return self

    @property
    def expected(self) -> dict[str, str]:
        """The column of right answers, by question; none without wordings whose label is certain."""
        return {"label": "right"} if self.known else {}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that get a verdict: the wordings of each context, and people's."""
        return (*(f"from_{name}" for name in self.contexts), *(["from_people"] if self.prompts else []))

    def file_of(self, study: Study) -> Path:
        return study.folder / INSTRUCTIONS

    def missing_file(self, study: Study, path: Path) -> str:
        return f"{path} does not exist yet; run `{study.command(self.first_command)}` first"

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        if self.contexts and "generator" not in keys:
            raise ValueError("generator is missing; `subject.contexts` needs one: add it, or write `contexts: []`")
        names = [dataset.name for dataset in datasets]
        if unknown := [name for name in self.descriptions if name not in names]:
            raise ValueError(f"subject.descriptions: no data set {unknown[0]!r}; {nearest(unknown[0], names)}")
        return super()._units(datasets, keys)


class ItemsSubject(Subject):
    """The items of the study's data sets in the form of their tasks: two sentences, a text, a query and candidates."""

    names = ItemNames("group", "item")
    group_words = "data sets"
    candidates: ClassVar[int] = 7  #: largest number of passages shown with a query, in random order

    kind: Literal["items"]

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        for dataset in datasets:
            if not re.fullmatch(NAME, dataset.name) or dataset.name == self.kind:
                raise ValueError(
                    f"datasets: {dataset.name!r}: if the subject is items, a data set's name must be made of"
                    " lower-case letters, digits, - and _, and not be 'items'; give the data set another `name`"
                )
        return {dataset.name: VerdictUnit(name=dataset.name, axis=self.kind) for dataset in datasets}

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        return {data.name: {(data.code.partition("-")[0], "")} if data.code else () for data in datasets}

    def pools(self, group: str, task: str | None) -> list[str]:
        return [group, *([task] if task else []), "items"]


SubjectSpec = Annotated[TextsSubject | InstructionsSubject | ItemsSubject | HumanSubject, Field(discriminator="kind")]
