"""Records of a study of the human ceiling: its tasks, their items, and the answers that count."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field

from annotation.human.types import TASK_KINDS, TaskKind
from plumbline.records import Number, Record

TASKS, ITEMS = "human/tasks.json", "human/items.parquet"  # in a study's folder
ANSWERS, MODEL_ANSWERS = "human/answers.parquet", "human/model_answers.parquet"
UNKNOWN = "unknown"  # an order that a rater saw and that can no longer be told


class TaskInstructions(Record):
    """The instructions to a task's raters, from their files when the task was drawn."""

    general: dict[str, Any] = Field(description="the instructions for all tasks")
    own: dict[str, Any] = Field(description="the task's own instructions")
    wordings: tuple[str, ...] = Field(
        description="the study's further languages, in which both kinds of instructions are written"
    )


class HumanTask(Record):
    """One task that people do (`human/tasks.json`)."""

    KEY = ("task",)
    task: str = Field(description="the task's name in the study")
    task_type: str = Field(description="type of task: classification, sts, reranking and so on")
    source: str = Field(description="mteb's name of the data set, or its file in the study")
    revision: str = Field(description="the data's revision, or a hash of the file")
    scale: tuple[int, ...] = Field(default=(), description="points of scores and grades, ascending; empty for others")
    gold_scale: tuple[float, ...] = Field(
        default=(), description="ends of the gold answers' scale, if people answer on another scale; else empty"
    )
    labels: tuple[str, ...] = Field(default=(), description="labels of the data set, in the order shown")
    label_words: dict[str, str] = Field(
        default={}, description="the words that raters read for a label, if they are not the label itself"
    )
    clusters_told: int = Field(
        default=0, description="the number of clusters, which raters were told; 0 = no clustering"
    )
    candidates: int = Field(default=0, description="the most candidates of an item; 0 = items have none")
    languages: tuple[str, ...] = Field(description="codes of the items' languages")
    content_hash: str = Field(description="hash of the sampled items: texts, candidates, gold")
    left_out: dict[str, int] = Field(default={}, description="items that could not be drawn, by reason")
    words: TaskInstructions = Field(description="the instructions for people and models when the task was drawn")
    settings: dict[str, Any] = Field(description="the task's settings in the study when its items were drawn")

    @property
    def kind(self) -> TaskKind:
        """The type's class."""
        return TASK_KINDS[self.task_type]

    @property
    def asked(self) -> str:
        """The form of the answers, by its name in `annotation.human.forms.FORMS`."""
        return self.kind.form_for(self.settings["relevance"])

    @property
    def dataset(self) -> str:
        """The name of the task's data set in the study."""
        return str(self.settings["dataset"])

    @property
    def raters(self) -> int:
        """Raters wanted for each item."""
        return int(self.settings["raters"])


class HumanItem(Record):
    """An item of a task, without its gold (`human/items.parquet`)."""

    KEY = ("task", "item")
    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset, such as en-de; empty without subsets")
    item: str = Field(description="the item's number or id in the data set, as in `texts.parquet`")
    language: str = Field(description="code of the first text's language")
    shown: tuple[str, ...] = Field(
        default=(), description="ids of the candidates (passages, or rows of bitext) in the order shown to raters"
    )
    records: tuple[str, ...] = Field(
        description="its ids in `pairs.parquet`: one, or one for each candidate in the order of the candidates' ids"
    )

    @property
    def pair_id(self) -> str:
        """The id of its only record."""
        (record,) = self.records
        return record

    @property
    def candidates(self) -> tuple[str, ...]:
        """Ids of the candidates, sorted."""
        return tuple(sorted(self.shown))


class HumanAnswer(Record):
    """A counted answer of a person (`human/answers.parquet`) or model (`human/model_answers.parquet`)."""

    KEY = ("task", "item", "candidate", "rater_id")
    task: str = Field(description="the task's name in the study")
    item: str = Field(description="the item, as in `items.parquet`")
    candidate: str = Field(default="", description="the candidate that is graded, marked or ranked; otherwise empty")
    rater_id: str = Field(description="pseudonym of a person, or a model's name in the study")
    value: Number = Field(
        default=math.nan,
        description="score, grade or mark; for an order, the reversed rank, so that more is better; NaN for labels",
    )
    label: str = Field(
        default="",
        description="the data set's label; a JSON list of several labels; a cluster's number; for bitext the id of the"
        " chosen candidate, empty if none is the translation; otherwise empty",
    )
    abstained: bool = Field(
        default=False, description="true if the rater cannot tell; `value` is then NaN, and `label` empty"
    )
    place: int = Field(
        default=0,
        description="the candidate's place in this rater's order, from 1; 0 without candidates, or if unknown",
    )
    seconds: Number = Field(default=math.nan, description="seconds spent on the item; NaN if unknown")
    simulated: bool = Field(default=False, description="true if a program answered in a person's place")
