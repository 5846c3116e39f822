"""Records of a study of the human ceiling: its tasks, their items, and the answers that count."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from pydantic import Field

from plumbline.records import Number, Record

TASKS, ITEMS = "human/tasks.json", "human/items.parquet"  # in a study's folder
ANSWERS, MODEL_ANSWERS = "human/answers.parquet", "human/model_answers.parquet"
UNKNOWN = "unknown"  # of an order that a rater saw and nobody can say any more
RaterKind = Literal["person", "model"]


class TaskInstructions(Record):
    """The instructions to a task's raters, as their files had them when the task was drawn."""

    general: dict[str, Any] = Field(default={}, description="what stands for all tasks")
    own: dict[str, Any] = Field(default={}, description="the task's own; empty in records of versions that kept none")
    wordings: tuple[str, ...] = Field(default=(), description="the study's further languages, which both have")


class HumanTask(Record):
    """One task that people do (`human/tasks.json`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task",)
    task: str = Field(description="its name in the study")
    task_type: str = Field(description="what is done: classification, sts, reranking and so on")
    dataset: str = Field(description="its data set's name in the study")
    source: str = Field(description="mteb's name of the data set, or its file as the study names it")
    revision: str = Field(description="the data's revision, or a hash of the file")
    split: str = Field(description="the split that the items are of")
    metric: str = Field(description="the metric by which people and models are scored, as mteb calls it")
    asked: Literal["score", "label", "labels", "same", "cluster", "graded", "binary", "ranked", "choice"] = Field(
        description="how: a score, a label, several, whether two texts are alike (1 or 0), a numbered cluster, a grade"
        " or a mark (1 or 0) for each candidate, their order, or one of them"
    )
    scale: tuple[int, ...] = Field(default=(), description="points of scores and grades, ascending; empty for others")
    gold_scale: tuple[float, ...] = Field(
        default=(), description="lowest and highest gold where it is on another scale than people are asked on"
    )
    labels: tuple[str, ...] = Field(default=(), description="labels as the data set has them, in the order shown")
    label_words: dict[str, str] = Field(default={}, description="what raters read for a label, where it is not itself")
    clusters_told: int = Field(default=0, description="how many clusters raters were told of; 0 = not told")
    candidates: int = Field(default=0, description="the most candidates of an item; 0 = it has none")
    relevant_in: Literal["", "always", "maybe_absent"] = Field(
        default="", description="whether a relevant candidate is always among them; empty where there are none"
    )
    raters: int = Field(description="raters who are asked of each item")
    n_items: int = Field(description="items, of all languages")
    languages: tuple[str, ...] = Field(description="codes of the items' languages")
    content_hash: str = Field(description="hash of the sampled items: texts, candidates, gold")
    cut: int = Field(default=0, description="characters of a text that raters were shown at most; 0 = whole")
    n_cut: int = Field(default=0, description="texts that were longer than that, and shown in part")
    longest: int = Field(default=0, description="characters of the longest text, before any cut")
    left_out: dict[str, int] = Field(default={}, description="items that could not be drawn, by reason")
    instructions_hash: str = Field(description="hash of the instructions' file that raters were addressed from")
    words: TaskInstructions = Field(
        default=TaskInstructions(), description="these instructions; they hold as long as the task does"
    )
    settings: dict[str, Any] = Field(description="what the study said of the task when its items were drawn")


class HumanItem(Record):
    """An item of a task, without its gold (`human/items.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "item")
    pair_id: str = Field(
        description="its id among what raters see (`pairs.parquet`); empty where several records are it"
    )
    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset, such as en-de; empty where it has none")
    item: str = Field(description="its number or id in the data set, as `texts.parquet` has it")
    language: str = Field(description="code of its first text's language")
    candidates: tuple[str, ...] = Field(
        default=(), description="its candidates in the order of their ids: passages, or rows of bitext; empty for none"
    )
    shown: tuple[str, ...] = Field(default=(), description="the same in the order in which raters saw them")
    records: tuple[str, ...] = Field(
        default=(), description="of candidates that had a record each: these records' ids, in the order of `candidates`"
    )
    n_chars: int = Field(description="characters of all its texts, before any cut")


class HumanAnswer(Record):
    """One answer that counts (`human/answers.parquet`), or of a model (`human/model_answers.parquet`)."""

    KEY: ClassVar[tuple[str, ...]] = ("task", "item", "candidate", "rater_id")
    task: str = Field(description="the task's name in the study")
    subset: str = Field(description="the data set's subset; empty where it has none")
    item: str = Field(description="the item, as `items.parquet` has it")
    candidate: str = Field(default="", description="of searches the candidate that it is about; empty for others")
    rater_id: str = Field(description="pseudonym; of a model its name in the study")
    rater_kind: RaterKind = Field(description="a person, or a language model")
    value: Number = Field(
        default=math.nan,
        description="score, grade or mark; of an order the rank turned so that more is better; NaN of labels",
    )
    label: str = Field(
        default="",
        description="the label as the data set has it; of several a JSON list; a cluster's number; of bitext the id of"
        " the candidate that was chosen, empty where none is the translation; empty for the others",
    )
    abstained: bool = Field(default=False, description="whether the rater cannot tell: then there is nothing else")
    place: int = Field(
        default=0, description="where the candidate stood for this rater, from 1; 0 without candidates, or if unknown"
    )
    seconds: Number = Field(default=math.nan, description="seconds spent on the item; NaN if unknown")
    simulated: bool = Field(default=False, description="true where a program answered in a person's place")
