"""The kinds of subject that people judge: a class for each, with all differences, in one registry (`SUBJECTS`).

A study's is `Study.judging`. A new kind of subject is a model in the study file, a class here, and a reader of its
items (`annotation.subjects.READERS`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from plumbline.errors import nearest
from plumbline.study.datasets import DatasetSpec, Texts, texts_of
from plumbline.study.human import HumanSubject, HumanTaskSpec
from plumbline.study.judged import NAME, VerdictUnit
from plumbline.study.subject import (
    PAIRS,
    TEXT,
    Folders,
    InstructionsSubject,
    ItemGroup,
    ItemNames,
    ItemsSubject,
    TextsSubject,
)
from plumbline.words import count

_OF_TRANSFORMATIONS = ("transformations", "prompts", "languages", "seeds", "generator", "candidates")


class Subject:
    """The subject that people judge in a study; kinds of subjects override what differs."""

    kind: ClassVar[str]  #: as the study file calls it
    names: ClassVar[ItemNames]  #: what people call what gets a verdict, and what raters see at a time
    groups: ClassVar[str] = "groups"  #: what of a sample is drawn from each
    sources: ClassVar[str] = "items"  #: what a sample is drawn of
    failed: ClassVar[str] = "rows that lack a text"  #: what of these nobody can rate
    needs_datasets: ClassVar[bool] = True  #: whether it is of data sets
    takes: ClassVar[tuple[str, ...]] = ()  #: keys of a study for transformations that it has a use for
    transforms: ClassVar[bool] = False  #: whether outputs of transformations are judged
    does_tasks: ClassVar[bool] = False  #: whether people do tasks, as models do
    drawn_from: ClassVar[tuple[str, ...]] = ()  #: the records that a sample is drawn from, if it is not from data files
    takes_all: ClassVar[bool] = False  #: whether all items are drawn, near-duplicates too
    first_command: ClassVar[str] = "sample"  #: the first that makes something
    scored_by: ClassVar[str] = ""  #: the command that scores models; empty where its verdicts are the result
    scores: ClassVar[tuple[str, str]] = ("", "")  #: the table of these scores, and the stage that makes it

    def __init__(self, spec: Any) -> None:
        self.spec = spec  #: what the study file says under `subject`

    def file_of(self, study: Folders) -> Path | None:
        """The file whose rows are its items; None where they are no rows of a file."""
        del study
        return None

    def missing_file(self, study: Folders, path: Path) -> str:
        """Return what to do if the file does not exist."""
        del study
        return f"subject: no file {path}; correct `path` in the study"

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
        """The pools of a rubric whose words may explain a group (its data set has this `task`); none if it has its own.

        The first that the rubric has is taken.
        """
        del group, task
        return []

    def task(self, name: str) -> HumanTaskSpec | None:
        """The task that is judged under a name; None where people do none."""
        del name
        return None

    def units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        """Return the units that get a verdict, by name. Raises ValueError for useless keys of a study (`keys`)."""
        if unused := [name for name in _OF_TRANSFORMATIONS if name in keys and name not in self.takes]:
            raise ValueError(
                f"{unused[0]}: does not apply to subject {self.kind}, which transforms nothing; take it out"
            )
        return self._units(datasets, keys)

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        """Return groups that share one queue, so that raters do not know the group of a text."""
        del datasets, keys
        return {name: ItemGroup(name=name, axis=self.kind, queue="texts") for name in self.spec.groups}

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """The languages and tasks of what is judged, as far as the study file says them."""
        del datasets
        return dict.fromkeys(units, ((self.spec.language, self.kind),))

    def models(self) -> list[str]:
        """Return the names in tables of language models that do people's work."""
        return []

    @property
    def has_size(self) -> bool:
        """Whether a sample has as many items of each group as the study says, if there are so many."""
        return not (self.takes_all or self.does_tasks)

    def checks(self, controls: Mapping[str, int]) -> str:
        """Return the checks on raters in words, from their numbers by kind."""
        return f"{count(controls['known'], 'known item')}, {count(controls['repeat'], 'repeat')}"

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the sample; none for pairs."""
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
    first_command = "generate"
    drawn_from = ("texts.parquet", "transformations")
    scored_by = "evaluate"
    scores = ("scores.parquet", "evaluation")

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """Return the data sets' texts."""
        return dict.fromkeys(units, texts_of(datasets))

    def checks(self, controls: Mapping[str, int]) -> str:
        """Return the controls, which are made of pairs, and the repeats."""
        by_kind = f"{controls['positive']} positive and {controls['negative']} negative controls"
        return f"{by_kind}, {count(controls['repeat'], 'repeat')}"

    def settings(self) -> dict[str, Any]:
        """Return none: other parts of the study determine the sample."""
        return {}


class _RowSubject(Subject):
    """Rows of a file; all groups share one explanation and queue, so that raters do not know the group of a row."""

    spec: TextsSubject | InstructionsSubject

    def file_of(self, study: Folders) -> Path:
        """Return the path of its rows."""
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
        """The text, and the fields beside it."""
        return [TEXT, *self.spec.context]

    def pools(self, group: str, task: str | None) -> list[str]:
        """Return one pool for all groups."""
        return ["texts"]


class TextSubject(_RowSubject):
    """Texts of a file, as they are."""

    kind = "texts"
    names = ItemNames("group", "text")
    needs_datasets = False

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        if datasets:
            raise ValueError(
                "datasets: does not apply to subject texts, which judges the texts of subject.path; take it out"
            )
        return super()._units(datasets, keys)


class WordingSubject(_RowSubject):
    """Wordings of the instructions that embedding models are given."""

    kind = "instructions"
    names = ItemNames("group", "wording")
    takes = ("generator",)
    takes_all = True
    spec: InstructionsSubject
    first_command = "instructions"
    scored_by = "sensitivity"
    scores = ("instructions/scores.parquet", "instruction_scores")

    def missing_file(self, study: Folders, path: Path) -> str:
        """Return the command that writes the wordings."""
        return f"{path} does not exist yet; run `{study.command(self.first_command)}` first"

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        if self.spec.contexts and "generator" not in keys:
            raise ValueError("generator is missing; `subject.contexts` needs one: add it, or write `contexts: []`")
        names = [dataset.name for dataset in datasets]
        if strange := [name for name in self.spec.descriptions if name not in names]:
            raise ValueError(f"subject.descriptions: no data set {strange[0]!r}; {nearest(strange[0], names)}")
        return super()._units(datasets, keys)


class ItemSubject(Subject):
    """Items of data sets, in the form of their tasks."""

    kind = "items"
    names = ItemNames("group", "item")
    groups = "data sets"

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        for dataset in datasets:
            if not re.fullmatch(NAME, dataset.name) or dataset.name == self.kind:
                raise ValueError(
                    f"datasets: {dataset.name!r}: if the subject is items, a data set's name must be made of"
                    " lower-case letters, digits, - and _, and not be 'items'; give the data set another `name`"
                )
        return {dataset.name: ItemGroup(name=dataset.name, axis=self.kind) for dataset in datasets}

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """Return the data sets' texts; an item in two languages counts for its first."""
        return {data.name: {(data.code.partition("-")[0], "")} if data.code else () for data in datasets}

    def pools(self, group: str, task: str | None) -> list[str]:
        """Return its own pool, its task's, and that of all items."""
        return [group, *([task] if task else []), "items"]


class TaskSubject(Subject):
    """Items of tasks that people do, to be scored as models are."""

    kind = "human"
    names = ItemNames("task", "item")
    groups = "data sets"
    does_tasks = True
    spec: HumanSubject
    scored_by = "evaluate"
    scores = ("human/scores.parquet", "evaluation")

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        """Each task is a pool, and has queues of its own."""
        del datasets, keys
        return {task.name: VerdictUnit(name=task.name, axis=self.kind) for task in self.spec.tasks}

    def task(self, name: str) -> HumanTaskSpec:
        """The task of a name."""
        return self.spec.task(name)

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """Return no texts: what languages the items have is known once they are drawn."""
        return {task.name: set() for task in self.spec.tasks}

    def models(self) -> list[str]:
        """Return the names of the study's `judges`."""
        return [model.called for model in self.spec.models]

    def settings(self) -> dict[str, Any]:
        """Return the settings without the models that also do the tasks: they do not change the sample."""
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
    """Return a study's subject from its file's key `subject`."""
    return SUBJECTS[type(spec)](spec)
