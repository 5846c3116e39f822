"""What the evaluation of a human study leaves, row by row, and the records of such a study, opened once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import pandas as pd
from pydantic import Field

from annotation.campaign_records import CampaignRecords
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
ANNOTATORS, DIFFICULTY = "human/annotators.parquet", "human/difficulty.parquet"  # of language models
MADE, MTEB = "human/made", "human/mteb"  # a file for each model and sampled task; mteb's results
NOTES = "human/notes.json"  # what was left out, a line each
COMMAND, ACCEPT, JUDGE = "evaluation.run", "annotation accept", "annotation judge run"
ScorerKind = Literal["rater", "raters_mean", "aggregate", "leave_one_out", "llm", "model", "trivial"]
ItemScorer = Literal["gold", "rater", "llm", "model"]


class _OfTask(Record):
    """What names the items that a row rests on."""

    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset; empty where it has none")
    language: str = Field(description="code of the items' language")


class HumanScore(_OfTask):
    """A score on a task's items in one language (`human/scores.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "subset", "language", "scorer_kind", "scorer", "metric")
    task_type: str = Field(description="what is done: classification, sts, reranking and so on")
    scorer: str = Field(description="a rater's pseudonym, a model's name, or what was made of the raters")
    scorer_kind: ScorerKind = Field(
        description="rater; raters_mean: their mean score; aggregate: the score of what they say together;"
        " leave_one_out: that of all but the one who is named; llm: a language model that answered as raters do;"
        " model: an embedding model; trivial: without reading"
    )
    metric: str = Field(description="mteb's name of the metric, or what else is measured of the same answers")
    main: bool = Field(description="whether the metric is the task's own")
    score: Number = Field(description="from -1 or 0 to 1; NaN where there is none")
    low: Number = Field(description="lower end of its 95% interval; NaN where there is none")
    high: Number = Field(description="upper end")
    interval: str = Field(description="how the interval was made; empty where there is none")
    n_items: int = Field(description="items that the score rests on")
    n_abstained: int = Field(description="items of which a rater could not tell")
    compared: bool = Field(
        description="whether the score rests on the items that all compared scorers have; false of who has too few of"
        " them, and is compared with nobody"
    )
    simulated: bool = Field(description="whether a program answered in the place of people")
    content_hash: str = Field(description="hash of the items: texts, candidates, gold")
    reason: str = Field(description="why there is no score or no interval, or what it lacks; empty otherwise")


class HumanAgreement(_OfTask):
    """How far raters agree on a task's items (`human/agreement.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "subset", "language", "measure")
    measure: str = Field(description="what is measured: Fleiss' kappa, Spearman's rho of pairs of raters, and so on")
    value: Number = Field(description="its value; NaN where it is undefined")
    low: Number = Field(description="lower end of its 95% interval; NaN where there is none")
    high: Number = Field(description="upper end")
    interval: str = Field(description="how the interval was made; empty where there is none")
    n: int = Field(description="items that it rests on")
    band: str = Field(description="what HUME calls a value like it")
    flag: str = Field(description="problematic or reliable, as HUME calls it; empty between")
    simulated: bool = Field(description="whether a program answered in the place of people")
    reason: str = Field(description="why it is undefined; empty otherwise")


class HumanDifference(_OfTask):
    """People less a model, on the same items (`human/differences.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "subset", "language", "model", "people")
    model: str = Field(description="the model")
    people: Literal["raters_mean", "aggregate"] = Field(description="raters' mean score, or what they say together")
    difference: Number = Field(description="people's score less the model's; NaN where one has none")
    low: Number = Field(description="lower end of its 95% interval over items, of the same resamples for both")
    high: Number = Field(description="upper end")
    p: Number = Field(description="two-sided p of no difference")
    p_holm: Number = Field(description="the same after Holm's correction over tasks")
    n: int = Field(description="items that it rests on")
    simulated: bool = Field(description="whether a program answered in the place of people")
    reason: str = Field(description="why there is none; empty otherwise")


class HumanAnnotator(_OfTask):
    """How far a language model that does a task agrees with its people (`human/annotators.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "subset", "language", "model")
    model: str = Field(description="the model's name in the study; of a recording with (recorded)")
    measure: str = Field(description="what is measured, as in `agreement.parquet`")
    value: Number = Field(description="its mean over raters, of the model and each; NaN where it is undefined")
    low: Number = Field(description="lower end of its 95% interval; NaN where there is none")
    high: Number = Field(description="upper end")
    interval: str = Field(description="how the interval was made; empty where there is none")
    n: int = Field(description="items that it rests on")
    among_people: Number = Field(description="the same measure of raters two by two, on all that they answered")
    epsilon: Number = Field(description="of the alternative annotator test: what a model's cheapness may cost")
    winning_rate: Number = Field(description="share of raters whom the model is as good as, less epsilon; NaN untested")
    advantage: Number = Field(description="mean share of items on which it is as close to the others or closer")
    passes: bool = Field(description="whether the winning rate is a half or more; false untested")
    raters: int = Field(description="raters that the test rests on")
    simulated: bool = Field(description="whether a program answered in the place of people")
    reason: str = Field(description="why a number is missing; empty otherwise")


class HumanDifficulty(Record):
    """Whether what is hard for people is hard for a language model (`human/difficulty.parquet`; HUME, Table 13)."""

    KEY: ClassVar[tuple[str, ...]] = ("model",)
    model: str = Field(description="the model's name in the study; of a recording with (recorded)")
    rho: Number = Field(description="Spearman's rho of raters' mean score and the model's over tasks and languages")
    low: Number = Field(description="lower end of its 95% bootstrap interval over these; NaN where there is none")
    high: Number = Field(description="upper end")
    p: Number = Field(description="two-sided p of rho, of the t distribution")
    n: int = Field(description="tasks in a language that both have a score on")
    simulated: bool = Field(description="whether a program answered in the place of people")
    reason: str = Field(description="why there is none; empty otherwise")


class HumanItemScore(_OfTask):
    """What a scorer made of one item (`human/item_scores.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "subset", "item", "scorer_kind", "scorer")
    item: str = Field(description="the item as `items.parquet` has it; of summaries the text that they are of")
    scorer: str = Field(description="as in `scores.parquet`")
    scorer_kind: ItemScorer = Field(description="as in `scores.parquet`; gold: what is right")
    score: Number = Field(
        description="where the score is a mean over items its share of it; else from 0 to 1 how near the answer's rank"
        " is to the right one's, or of how many other items it is rightly said whether they lie in its cluster; NaN for"
        " none"
    )
    answer: str = Field(description="what was answered, in words; empty where only the score is known")


class ModelMade(Record):
    """What an embedding model made of one sampled task (`human/made/<unit>.json`)."""

    unit_id: str = Field(description="identity of all that makes the score: equal ones are reused")
    model: str = Field(description="the model's name in the study")
    revision: str = Field(description="its revision")
    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset; empty where it has none")
    language: str = Field(description="code of the items' language")
    score: Number = Field(description="mteb's main score; NaN where it is undefined")
    units: tuple[str, ...] = Field(description="what is scored as one, by name")
    made: tuple[Number, ...] = Field(
        default=(), description="what the metric reads of each: a share of right answers, a cosine, a cluster's number"
    )
    labels: tuple[tuple[str, ...], ...] = Field(default=(), description="of labels those that each of its runs gave")
    others: dict[str, tuple[Number, ...]] = Field(
        default={}, description="of searches what other metrics read of each, by name"
    )
    measures: dict[str, object] = Field(description="all that mteb measured")
    reason: str = Field(default="", description="why there is no score, or none of single items; empty otherwise")
    versions: str = Field(description="packages that made it, and their versions")


class HumanNote(Record):
    """What the tables leave out or lack (`human/notes.json`)."""

    text: str = Field(description="a line to be read")


#: The tables of an evaluated study: what each is called, its file and its record.
TABLES: dict[str, tuple[str, type[Record]]] = {
    "scores": (SCORES, HumanScore),
    "agreement": (AGREEMENT, HumanAgreement),
    "differences": (DIFFERENCES, HumanDifference),
    "items": (ITEM_SCORES, HumanItemScore),
    "annotators": (ANNOTATORS, HumanAnnotator),
    "difficulty": (DIFFICULTY, HumanDifficulty),
}
FILES = (*(name for name, _ in TABLES.values()), NOTES)


class HumanRecords(CampaignRecords):
    """The records of a study whose people do tasks, from the drawn items to the tables: each read when asked for."""

    @functools.cached_property
    def subject(self) -> HumanSubject:
        """The tasks as the study has them. Raises StudyError where it has none."""
        return subject_of(self.study)

    @functools.cached_property
    def tasks(self) -> list[HumanTask]:
        """The tasks as they were drawn last. Raises as `annotation.human.tasks.read_tasks`."""
        return read_tasks(self.study)

    @functools.cached_property
    def items(self) -> list[HumanItem]:
        """Their items. Raises DataError where they are not there, or not those that were drawn."""
        return read_items(self.study)

    @functools.cached_property
    def answers(self) -> pd.DataFrame:
        """People's answers that count (`HumanAnswer`). Raises DataError before they were accepted."""
        return self.noted.frame(ANSWERS, HumanAnswer, self.study.command(ACCEPT))

    @functools.cached_property
    def model_answers(self) -> pd.DataFrame:
        """Those of the language models that the study names (`HumanAnswer`); none before they were asked."""
        called = [spec.called for spec in self.subject.models]
        if not called or not (self.study.folder / MODEL_ANSWERS).exists():
            return self.answers.iloc[:0]
        every = self.noted.frame(MODEL_ANSWERS, HumanAnswer, self.study.command(JUDGE))
        return every[every["rater_id"].isin(called)]

    @functools.cached_property
    def samples(self) -> list[SampledDataset]:
        """The items that people saw, as sampled tasks, task by task.

        Raises DataError before items are drawn, and where a data set is not the one that they were drawn from.
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
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the evaluation, by what `TABLES` calls them. Raises DataError before, and for edited ones."""
        command = self.study.command(COMMAND)
        return {field: self.noted.frame(name, record, command) for field, (name, record) in TABLES.items()}

    @functools.cached_property
    def notes(self) -> tuple[str, ...]:
        """What the tables leave out or lack, a line each."""
        return tuple(note.text for note in self.noted.models(NOTES, HumanNote, self.study.command(COMMAND)))

    def write(self, tables: Mapping[str, Sequence[Record] | pd.DataFrame], notes: Sequence[str]) -> None:
        """Write the tables, by what `TABLES` calls them, and what they leave out."""
        for field, (name, record) in TABLES.items():
            self.noted.write_table(name, tables[field], record)
        self.noted.write_models(NOTES, [HumanNote(text=note) for note in notes])

    def refuse_changed_files(self) -> None:
        """Raise DataError where a file of a data set is there, and not the one that people's items were drawn from."""
        specs = {spec.name: spec for spec in self.study.datasets}
        for task in self.tasks:
            spec = specs.get(task.dataset)
            path = self.study.resolve(spec.path) if spec and not spec.mteb else None
            if path is not None and path.exists() and file_hash(path) != task.revision:
                raise _other_data(task)


def _other_data(task: HumanTask) -> DataError:
    return DataError(
        f"data set {task.dataset!r} is not the one that the items of {task.task!r} were drawn from; bring back"
        f" revision {task.revision}"
    )
