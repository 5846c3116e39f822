"""The records that the evaluation of a human study writes, and the opened records of such a study."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from pydantic import Field

from annotation.campaign.records import CampaignRecords
from annotation.human.records import ANSWERS, MODEL_ANSWERS, HumanAnswer, HumanItem, HumanTask
from annotation.human.simulated import read_items
from annotation.human.tasks import read_tasks, subject_of
from evaluation.human.sampled import SampledDataset, sampled
from generation.datasets.loading import load_dataset
from plumbline.errors import DataError
from plumbline.records import Number, Record
from plumbline.study import file_hash
from plumbline.study.human import HumanSubject

SCORES, AGREEMENT, DIFFERENCES = "human/scores.parquet", "human/agreement.parquet", "human/differences.parquet"
ITEM_SCORES = "human/item_scores.parquet"
DIFFICULTY = "human/difficulty.parquet"  # of language models
MADE, MTEB = "human/made", "human/mteb"  # a file for each model and sampled task; mteb's results
NOTES = "human/notes.json"  # omissions, a line each
COMMAND, ACCEPT, JUDGE = "evaluate", "accept", "judge run"
ScorerKind = Literal["rater", "raters_mean", "aggregate", "llm", "model", "trivial"]
ItemScorer = Literal["gold", "rater", "llm", "model"]


class _OfTask(Record):
    """Fields that name the items of a row."""

    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset; empty if it has none")
    language: str = Field(description="code of the items' language")


class _WithInterval(Record):
    """A value's interval."""

    low: Number = Field(description="lower end of the 95% interval; NaN if there is none")
    high: Number = Field(description="upper end of the interval")
    reason: str = Field(description="why the value or its interval is missing or incomplete; empty otherwise")


class HumanScore(_OfTask, _WithInterval):
    """A score on a task's items in one language (`human/scores.parquet`)."""

    KEY = ("task", "subset", "language", "scorer_kind", "scorer", "metric")
    task_type: str = Field(description="type of the task: classification, sts, reranking and so on")
    scorer: str = Field(description="a rater's pseudonym, a model's name, or a combination of raters")
    scorer_kind: ScorerKind = Field(
        description="rater: one rater; raters_mean: the raters' mean score; aggregate: the score of joint answers;"
        " llm: a language model that answered as raters do; model: an embedding model; trivial: answers that need no"
        " reading"
    )
    metric: str = Field(description="mteb's name of the metric, or the name of another measure of the same answers")
    main: bool = Field(description="true if the metric is the task's main metric")
    score: Number = Field(description="the score, from 0 or (depending on the metric) -1 to 1; NaN if undefined")
    interval: str = Field(description="method of computing the interval; empty if there is none")
    n_items: int = Field(description="number of items behind the score")
    n_abstained: int = Field(description="number of items on which a rater abstained")
    compared: bool = Field(
        description="true if the score covers the items that all compared scorers answered; false for scorers with too"
        " few answers, which are not compared"
    )
    simulated: bool = Field(description="true if a program answered instead of people")


class HumanAgreement(_OfTask, _WithInterval):
    """The raters' agreement on a task's items (`human/agreement.parquet`)."""

    KEY = ("task", "subset", "language", "measure")
    measure: str = Field(description="the measure: Fleiss' kappa, Spearman's rho of pairs of raters, and so on")
    value: Number = Field(description="the measure's value; NaN if undefined")
    interval: str = Field(description="method of computing the interval; empty if there is none")
    n: int = Field(description="number of items behind the value")


class HumanDifference(_OfTask, _WithInterval):
    """People's score minus a model's, on the same items (`human/differences.parquet`).

    Its interval resamples people and the model on the same items.
    """

    KEY = ("task", "subset", "language", "model", "people")
    model: str = Field(description="the model")
    people: Literal["raters_mean", "aggregate"] = Field(description="raters' mean score, or their joint answers")
    difference: Number = Field(description="people's score minus the model's; NaN if either has no score")
    p: Number = Field(description="two-sided p-value of the difference")
    p_holm: Number = Field(description="p-value after Holm's correction over tasks")
    n: int = Field(description="number of items behind the value")


class HumanDifficulty(_WithInterval):
    """Correlation of difficulty for people and for a language model (`human/difficulty.parquet`; HUME, Table 13)."""

    KEY = ("model",)
    model: str = Field(
        description="the model's name in the study, followed by (recorded) if its answers come from a file"
    )
    rho: Number = Field(
        description="Spearman's rho between the raters' mean score and the model's score, over tasks (each in one"
        " language), with a bootstrap interval over tasks"
    )
    p: Number = Field(description="two-sided p-value of rho, from the t distribution")
    n: int = Field(description="number of tasks (each in one language) on which both have a score")


class HumanItemScore(_OfTask):
    """A scorer's result on one item (`human/item_scores.parquet`)."""

    KEY = ("task", "subset", "item", "scorer_kind", "scorer")
    item: str = Field(description="the item, as in `items.parquet`; for summaries, the summarised text")
    scorer: str = Field(description="the scorer's name, as in `scores.parquet`")
    scorer_kind: ItemScorer = Field(description="the scorer's kind, as in `scores.parquet`; gold: the right answer")
    score: Number = Field(
        description="the item's own score if the task's score is a mean over items; otherwise 0 to 1: how close the"
        " answer's rank is to gold's, or the share of the other items that are correctly put together with this item"
        " or apart from it; NaN without an answer"
    )
    answer: str = Field(description="the answer in words; empty if only the score is known")


class ModelMade(Record):
    """An embedding model's result on one sampled task (`human/made/<unit>.json`, by the hash of what affects it)."""

    revision: str = Field(description="the model's revision")
    made: tuple[Number, ...] = Field(
        default=(),
        description="the metric's value for each scored unit: a share of right answers, a cosine or a cluster number",
    )
    labels: tuple[tuple[str, ...], ...] = Field(
        default=(), description="for labels, the classifier's answers in each run"
    )
    others: dict[str, tuple[Number, ...]] = Field(
        default={}, description="for searches, the values of other metrics, by name"
    )
    measures: dict[str, object] = Field(description="all of mteb's measures")
    reason: str = Field(
        default="", description="why the score, or scores of single items, are missing; empty otherwise"
    )
    versions: str = Field(description="packages that computed the score, with their versions")


class HumanNote(Record):
    """An omission from the tables (`human/notes.json`)."""

    text: str = Field(description="the omission and its reason, in one line")


@dataclass(frozen=True)
class HumanTables:
    """The tables of an evaluated study, and a line for each omission."""

    scores: pd.DataFrame
    agreement: pd.DataFrame
    differences: pd.DataFrame
    items: pd.DataFrame
    difficulty: pd.DataFrame
    notes: tuple[str, ...]


#: Their files and records.
TABLES: dict[str, tuple[str, type[Record]]] = {
    "scores": (SCORES, HumanScore),
    "agreement": (AGREEMENT, HumanAgreement),
    "differences": (DIFFERENCES, HumanDifference),
    "items": (ITEM_SCORES, HumanItemScore),
    "difficulty": (DIFFICULTY, HumanDifficulty),
}
FILES = (*(name for name, _ in TABLES.values()), NOTES)


class HumanRecords(CampaignRecords):
    """The records of a human study, from the drawn items to the tables, each read when it is first used."""

    @functools.cached_property
    def subject(self) -> HumanSubject:
        """The study's tasks for people. Raises StudyError if it has none."""
        return subject_of(self.study)

    @functools.cached_property
    def tasks(self) -> list[HumanTask]:
        """The tasks as last drawn. Raises as `annotation.human.tasks.read_tasks`."""
        return read_tasks(self.study)

    @functools.cached_property
    def items(self) -> list[HumanItem]:
        """The drawn items. Raises DataError if they are missing or were changed."""
        return read_items(self.study)

    @functools.cached_property
    def answers(self) -> pd.DataFrame:
        """People's answers that count (`HumanAnswer`). Raises DataError before they were accepted."""
        return self.noted.frame(ANSWERS, HumanAnswer, self.study.command(ACCEPT))

    @functools.cached_property
    def model_answers(self) -> pd.DataFrame:
        """The answers of the study's language models (`HumanAnswer`); none before they were asked."""
        called = [spec.called for spec in self.subject.models]
        if not called or not (self.study.folder / MODEL_ANSWERS).exists():
            return self.answers.iloc[:0]
        every = self.noted.frame(MODEL_ANSWERS, HumanAnswer, self.study.command(JUDGE))
        return every[every["rater_id"].isin(called)]

    @functools.cached_property
    def samples(self) -> list[SampledDataset]:
        """The items that people saw, as sampled tasks, task by task.

        Raises DataError before items are drawn, and if a data set is not the one that they were drawn from.
        """
        specs, data = {spec.name: spec for spec in self.study.datasets}, {}
        samples = list[SampledDataset]()
        for task in self.tasks:
            if task.dataset not in data:
                data[task.dataset] = load_dataset(specs[task.dataset], self.study.file.parent)
            dataset = data[task.dataset]
            if dataset.revision != task.revision:
                raise _other_data(task)
            samples += sampled(dataset, task, [item for item in self.items if item.task == task.task])
        return samples

    @functools.cached_property
    def tables(self) -> HumanTables:
        """The tables of the evaluation. Raises DataError before, and for edited ones."""
        command = self.study.command(COMMAND)
        frames = {field: self.noted.frame(name, record, command) for field, (name, record) in TABLES.items()}
        last = list(_WithInterval.model_fields)  # which records have first, as they inherit these columns
        ordered = {
            field: frame[[*frame.columns.difference(last, sort=False), *frame.columns.intersection(last)]]
            for field, frame in frames.items()
        }
        return HumanTables(**ordered, notes=tuple(note.text for note in self.noted.models(NOTES, HumanNote, command)))

    def write(self, tables: HumanTables) -> None:
        """Write the tables and their omissions."""
        for field, (name, record) in TABLES.items():
            self.noted.write_table(name, getattr(tables, field), record)
        self.noted.write_models(NOTES, [HumanNote(text=note) for note in tables.notes])

    def refuse_changed_files(self) -> None:
        """Raise DataError if a data set's file is not the one that people's items were drawn from."""
        specs = {spec.name: spec for spec in self.study.datasets}
        for task in self.tasks:
            spec = specs.get(task.dataset)
            path = self.study.resolve(spec.path) if spec and not spec.mteb else None
            if path is not None and path.exists() and file_hash(path) != task.revision:
                raise _other_data(task)


def _other_data(task: HumanTask) -> DataError:
    return DataError(
        f"data set {task.dataset!r} is not the one that the items of {task.task!r} were drawn from; restore"
        f" revision {task.revision}"
    )
