"""What people judge: a class for each kind of subject, with all in which they differ, in one registry (`SUBJECTS`).

A study's is `Study.judging`. A new kind of subject is a model in the study file, a class here, and a reader of its
items (`annotation.subjects.READERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from plumbline.study.human import HumanSubject, HumanTaskSpec
from plumbline.study.subject import PAIRS, TEXT, Folders, InstructionsSubject, ItemNames, ItemsSubject, TextsSubject


class Subject:
    """What people judge in a study; what is said here holds where a kind does not say otherwise."""

    kind: ClassVar[str]  #: as the study file calls it
    names: ClassVar[ItemNames]  #: what people call what gets a verdict, and what raters see at a time
    groups: ClassVar[str] = "groups"  #: what of a sample is drawn from each
    sources: ClassVar[str] = "items"  #: what a sample is drawn of
    failed: ClassVar[str] = "rows that lack a text"  #: what of these nobody can rate
    transforms: ClassVar[bool] = False  #: whether outputs of transformations are judged
    does_tasks: ClassVar[bool] = False  #: whether people do tasks, as models do
    takes_all: ClassVar[bool] = False  #: whether all items are drawn, near-duplicates too
    first_command: ClassVar[str] = "annotation sample"  #: the first that makes something
    scored_by: ClassVar[str] = ""  #: the command that scores models; empty where its verdicts are the result
    scores: ClassVar[tuple[str, str]] = ("", "")  #: the table of these scores, and the stage that makes it

    def __init__(self, spec: Any) -> None:
        self.spec = spec  #: what the study file says under `subject`

    def file_of(self, study: Folders) -> Path | None:
        """The file whose rows are its items; None where they are no rows of a file."""
        del study
        return None

    @property
    def beside(self) -> Mapping[str, str]:
        """The fields that stand beside an item's text, with their columns."""
        return {}

    @property
    def known_questions(self) -> Mapping[str, str]:
        """The questions to which some items have right answers, with the columns of these."""
        return {}

    @property
    def fields(self) -> list[str]:
        """The fields of each item, as far as the study file says them."""
        return []

    def pools(self, group: str, task: str | None) -> list[str]:
        """The pools of a rubric whose words may explain a group, whose data set has a task; none where it has its own.

        The first that the rubric has is taken.
        """
        del group, task
        return []

    def task(self, name: str) -> HumanTaskSpec | None:
        """The task that is judged under a name; None where people do none."""
        del name
        return None

    def settings(self) -> dict[str, Any]:
        """What of it says which sample is drawn; nothing of pairs."""
        settings: dict[str, Any] = self.spec.model_dump(mode="json")
        return settings


class PairSubject(Subject):
    """Texts beside their transformed texts: what a study judges that names no subject."""

    kind = "pairs"
    names = PAIRS
    groups = "transformations"
    sources = "outputs"
    failed = "outputs that failed"
    transforms = True
    first_command = "generation.run"
    scored_by = "evaluation.run"
    scores = ("scores.parquet", "evaluation")

    def settings(self) -> dict[str, Any]:
        """None: what is drawn from stands in other parts of the study."""
        return {}


class _RowSubject(Subject):
    """Items that are rows of a file: their groups share one explanation and queue, so that raters do not know them."""

    spec: TextsSubject | InstructionsSubject

    def file_of(self, study: Folders) -> Path:
        """Where its rows stand."""
        return self.spec.file(study)

    @property
    def beside(self) -> Mapping[str, str]:
        """The study's `context`."""
        return dict(self.spec.context)

    @property
    def known_questions(self) -> Mapping[str, str]:
        """The study's `expected`."""
        return dict(self.spec.expected)

    @property
    def fields(self) -> list[str]:
        """The text, and what stands beside it."""
        return [TEXT, *self.spec.context]

    def pools(self, group: str, task: str | None) -> list[str]:
        """One for all."""
        return ["texts"]


class TextSubject(_RowSubject):
    """Texts of a file, as they are."""

    kind = "texts"
    names = ItemNames("group", "text")


class WordingSubject(_RowSubject):
    """Wordings of the instructions that embedding models are given."""

    kind = "instructions"
    names = ItemNames("group", "wording")
    takes_all = True
    first_command = "generation.instructions"
    scored_by = "evaluation.instructions"
    scores = ("instructions/scores.parquet", "instruction_scores")


class ItemSubject(Subject):
    """Items of data sets, as their tasks have them."""

    kind = "items"
    names = ItemNames("group", "item")
    groups = "data sets"

    def pools(self, group: str, task: str | None) -> list[str]:
        """Its own, its task's, or that of all items."""
        return [group, *([task] if task else []), "items"]


class TaskSubject(Subject):
    """Items of tasks that people do, to be scored as models are."""

    kind = "human"
    names = ItemNames("task", "item")
    groups = "data sets"
    does_tasks = True
    spec: HumanSubject
    scored_by = "evaluation.run"
    scores = ("human/scores.parquet", "evaluation")

    def task(self, name: str) -> HumanTaskSpec:
        """The task of a name."""
        return self.spec.task(name)

    def settings(self) -> dict[str, Any]:
        """Without the models that do the tasks too: who does them changes no sample."""
        return self.spec.model_dump(mode="json", exclude={"models"})


#: A class for each kind of subject, by the model that says it in a study file.
SUBJECTS: Mapping[type[Any], type[Subject]] = {
    type(None): PairSubject,
    TextsSubject: TextSubject,
    InstructionsSubject: WordingSubject,
    ItemsSubject: ItemSubject,
    HumanSubject: TaskSubject,
}


def subject_of(spec: TextsSubject | InstructionsSubject | ItemsSubject | HumanSubject | None) -> Subject:
    """What a study judges, of what its file says under `subject`."""
    return SUBJECTS[type(spec)](spec)
