"""What raters judge, where it is not outputs of transformations: texts of a file, or the items of the data sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from plumbline.errors import StudyError
from plumbline.languages import language_code
from plumbline.study.base import Line, Name, Part, refuse_duplicates
from plumbline.study.datasets import DatasetSpec
from plumbline.study.judged import NAME, Judged, JudgedName

TEXT = "text"  # the field that holds a row's text


class Group(Judged):
    """Items that get a verdict together: the texts of one source, or the items of one data set."""

    queue: str = Field(default="", description="the queue in which its items stand among other groups'")


class TextsSubject(Part):
    """Texts of a file, a row each; a column says to which group a row belongs."""

    kind: Literal["texts"]
    path: Line = Field(description="a CSV, TSV, JSONL or Parquet file, relative to the study's")
    language: str = Field(description="code of the texts' language; a column `language` overrides it")
    text: Line = Field(default="text", description="the column of the texts; raters see it as the field `text`")
    group: str = Field(default="", description="the column that names each row's group; empty where there is one group")
    groups: tuple[JudgedName, ...] = Field(
        min_length=1, description="what is judged and gets a verdict; raters are not told which group a text is of"
    )
    context: dict[Name, Line] = Field(
        default={}, description="further fields that raters see, beside the text: name of the field, and its column"
    )
    expected: dict[Name, Line] = Field(
        default={}, description="columns of right answers, by question; a row with one tells about raters alone"
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
            raise ValueError(f"no group can be called {self.kind!r}, which is what all of them are; rename it")
        if len(self.groups) > 1 and not self.group:
            raise ValueError("has several groups; name the column that holds them in `group`")
        if TEXT in self.context:
            raise ValueError(f"context: the field {TEXT!r} is the text itself; give the other another name")
        columns = [self.text, *([self.group] if self.group else []), *self.context.values(), *self.expected.values()]
        refuse_duplicates(columns, "column")
        return self

    def judged(self) -> dict[str, Group]:
        """Its groups by name: they share one queue, so that raters do not know of which a text is."""
        return {name: Group(name=name, axis=self.kind, queue=self.kind) for name in self.groups}


class ItemsSubject(Part):
    """The items of the study's data sets, each as a task has them: two sentences, a text, a query and candidates."""

    kind: Literal["items"]
    candidates: int = Field(
        default=7, ge=2, le=50, description="the most passages that stand beside a query, in an order that says nothing"
    )


class Called(NamedTuple):
    """What people call the things of a study, each in the singular and with small letters."""

    judged: str  #: what gets a verdict
    item: str  #: what raters see at a time

    @property
    def an_item(self) -> str:
        """`a pair`, `an item`."""
        return f"{'an' if self.item == 'item' else 'a'} {self.item}"


PAIRS = Called("transformation", "pair")


def called(subject: TextsSubject | ItemsSubject | None) -> Called:
    """The words for a subject's groups and items; None is pairs."""
    if subject is None:
        return PAIRS
    return Called("group", "text" if isinstance(subject, TextsSubject) else "item")


SubjectSpec = Annotated[TextsSubject | ItemsSubject, Field(discriminator="kind")]


def groups_of(datasets: Sequence[DatasetSpec]) -> dict[str, Group]:
    """A group of items for each data set. Raises ValueError for a name that cannot stand in tables and for raters."""
    found = {}
    for one in datasets:
        if not re.fullmatch(NAME, one.name) or one.name == "items":
            raise ValueError(
                f"datasets: {one.name!r} is judged under its name, which has small letters, digits, - and _ alone and"
                " is not 'items'; give it a `name`"
            )
        found[one.name] = Group(name=one.name, axis="items")
    return found
