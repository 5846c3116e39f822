"""Subjects other than outputs of transformations: texts of a file, wordings, items, tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol

from pydantic import Field, field_validator, model_validator

from plumbline.errors import StudyError
from plumbline.languages import language_code
from plumbline.study.base import Line, Name, StudyPart, refuse_duplicates
from plumbline.study.datasets import DatasetName
from plumbline.study.human import HumanSubject
from plumbline.study.judged import JudgedName, VerdictUnit

TEXT = "text"  # the field that holds a row's text
INSTRUCTIONS = "instructions/prompts.parquet"  # the wordings of instructions, in a study's folder
Context = Literal["task_type", "description", "language"]


class ItemGroup(VerdictUnit):
    """Items that get a verdict together: the texts of one source, or the items of one data set."""

    queue: str = Field(default="", description="the queue that its items share with other groups' items")


class Folders(Protocol):
    """The folders of a study's files, and its commands."""

    @property
    def folder(self) -> Path:
        """Its records."""
        ...

    def resolve(self, path: str) -> Path:
        """A path of the study file."""
        ...

    def command(self, name: str) -> str:
        """A command to paste."""
        ...


class TextsSubject(StudyPart):
    """Texts of a file, one per row: the column `text`, and `group` if there are several groups."""

    text: ClassVar[str] = TEXT

    kind: Literal["texts"]
    path: Line = Field(description="a CSV, TSV, JSONL or Parquet file, relative to the study file")
    language: str = Field(description="code of the texts' language; a column `language` overrides it")
    groups: tuple[JudgedName, ...] = Field(
        min_length=1,
        description="the groups that get a verdict, by the column `group` if there are several; raters do not see it",
    )
    context: dict[Name, Line] = Field(
        default={}, description=("further fields that raters see beside the text: each field's name and its column")
    )
    expected: dict[Name, Line] = Field(
        default={},
        description=("columns with right answers, by question; rows with a right answer serve only to check raters"),
    )

    @field_validator("language")
    @classmethod
    def _code(cls, value: str) -> str:
        try:
            return language_code(value)
        except StudyError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _whole(self) -> TextsSubject:
        refuse_duplicates(list(self.groups), "group")
        if self.kind in self.groups:
            raise ValueError(f"{self.kind!r} is a reserved name; rename the group")
        if TEXT in self.context:
            raise ValueError(f"context: {TEXT!r} is the field of the text itself; give this field another name")
        columns = [self.text, *([self.group] if self.group else []), *self.context.values(), *self.expected.values()]
        refuse_duplicates(columns, "column")
        return self

    @property
    def group(self) -> str:
        """The column of each row's group; empty if all rows are one group."""
        return "group" if len(self.groups) > 1 else ""

    def file(self, study: Folders) -> Path:
        """Return the path of its texts."""
        return study.resolve(self.path)


class InstructionsSubject(StudyPart):
    """Wordings of the instructions to embedding models for the study's data sets.

    A language model proposes them, or people do, in a file; `generation.instructions` puts them together.
    """

    text: ClassVar[str] = TEXT
    group: ClassVar[str] = "group"
    context: ClassVar[dict[str, str]] = {"task": "task_words"}
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

    def file(self, study: Folders) -> Path:
        """Return the path of its wordings."""
        return study.folder / INSTRUCTIONS


class ItemsSubject(StudyPart):
    """The items of the study's data sets in the form of their tasks: two sentences, a text, a query and candidates."""

    candidates: ClassVar[int] = 7  #: largest number of passages shown with a query, in random order

    kind: Literal["items"]


class ItemNames(NamedTuple):
    """The names for people of a study's units, items and checks, in the singular and in small letters."""

    judged: str  #: what gets a verdict
    item: str  #: what raters see at a time

    @property
    def an_item(self) -> str:
        """`a pair`, `an item`."""
        return f"{'an' if self.item == 'item' else 'a'} {self.item}"

    @property
    def known(self) -> str:
        """The name of items with a right answer, which check raters: `controls` among pairs, else `known items`."""
        return "controls" if self == PAIRS else "known items"


PAIRS = ItemNames("transformation", "pair")


SubjectSpec = Annotated[TextsSubject | InstructionsSubject | ItemsSubject | HumanSubject, Field(discriminator="kind")]
