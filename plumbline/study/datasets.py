"""A study's data sets; `generation.datasets` and `generation.datasets.mteb_tasks` read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from plumbline.identity import identity
from plumbline.languages import language_pair, pair_code
from plumbline.study.base import Line, StudyPart, distinct

TaskType = Literal[
    "sts",
    "str",
    "pair_classification",
    "classification",
    "clustering",
    "reranking",
    "retrieval",
    "summarisation",
    "bitext_mining",
    "multilabel_classification",
    "instruction_reranking",
]
# The tasks whose items hold two texts that may be in two languages: two sentences, or a query and its passages.
PAIRED: tuple[TaskType, ...] = ("sts", "str", "pair_classification", "bitext_mining")
SEARCHES: tuple[TaskType, ...] = ("reranking", "retrieval", "instruction_reranking")
TWO_TEXTS: tuple[TaskType, ...] = (*PAIRED, *SEARCHES)
SIMILARITIES: tuple[TaskType, ...] = ("sts", "str")  # the tasks whose items people gave a score
# The tasks that train on one split and are scored on another.
TRAINED: tuple[TaskType, ...] = ("classification", "multilabel_classification")
DatasetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class DatasetSpec(StudyPart):
    """A data set: a file or folder on disk (docs/own_study.md lists the columns for each task), or a task of mteb.

    A file needs `name`, `task`, `path` and `language`; a task of mteb needs `mteb` alone.
    """

    mteb: str = Field(default="", description="the name of a task of mteb, such as STS17; leave out for a file")
    name: DatasetName = Field(description="its name in every record and table; default: mteb's")
    task: TaskType | None = Field(
        default=None,
        description=(
            "the task type, which determines columns, metric and evaluator; `str` is semantic relatedness; default:"
            " mteb's"
        ),
    )
    path: Line = Field(
        default="",
        description=(
            "a CSV, TSV, JSONL, Parquet or Excel file, or for retrieval a folder in BEIR's layout; with `mteb`: the"
            " data's repository on the hub, if it differs from mteb's"
        ),
    )
    sheet: str = Field(default="", description="the sheet of an Excel file, if several have rows")
    revision: str = Field(
        default="", description="with `mteb`: the revision of the data on the hub, a full commit hash; default: mteb's"
    )
    language: str | dict[str, str] = Field(
        default="",
        description="language of the texts, as a BCP 47 or ISO 639-3 code, `en-de` for pairs; a file's column"
        " `language` overrides it. For a task of mteb also a language for each subset, needed for subsets that mteb"
        " does not know. Default: from mteb's metadata",
    )
    subsets: Annotated[tuple[str, ...], distinct("subset")] = Field(
        default=(), description="subsets of the task to use, such as en-de; default: all"
    )
    split: str = Field(
        default="",
        description=(
            "the split to score. For a file: `test` (the rows marked so in its column `split`; without that column, all"
            " rows) or `all`; default: `test`. For a task of mteb: the name of a split; default: `test`, or the"
            " task's only split"
        ),
    )
    columns: dict[str, str] = Field(default={}, description="names of the task's columns in the data")
    passages: bool = Field(default=False, description="for searches: also transform the passages")
    gold_scale: tuple[float, float] = Field(
        default=(0.0, 5.0), description="for tasks with scores: the lowest and highest possible gold score"
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        return {"name": data["mteb"], **data} if isinstance(data, dict) and data.get("mteb") else data

    @field_validator("language")
    @classmethod
    def _known_or_none(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        if isinstance(value, dict):
            return {subset: pair_code(code) for subset, code in value.items()}
        return pair_code(value) if value else value

    @field_validator("revision")
    @classmethod
    def _one_commit(cls, value: str) -> str:
        if value and not re.fullmatch("[0-9a-f]{40}", value):
            raise ValueError(f"{value!r} is not a commit hash of 40 characters; branches and tags can change")
        return value

    @field_validator("gold_scale")
    @classmethod
    def _ascends(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] >= value[1]:
            raise ValueError("must be the lowest score, then the highest, such as [1, 5]")
        return value

    @model_validator(mode="after")
    def _whole(self) -> DatasetSpec:
        if self.mteb:
            if self.sheet:
                raise ValueError("sheet: applies to a file, not to a task of mteb; remove it")
            return self
        for name in ("task", "path", "language"):
            if not getattr(self, name):
                raise ValueError(f"{name} is missing; add it, or name a task of mteb with `mteb`")
        if isinstance(self.language, dict):
            raise ValueError("language: a file has no subsets; give one language")
        for name in _OF_MTEB:
            if getattr(self, name):
                raise ValueError(f"{name}: applies to a task of mteb (`mteb: NAME`), not to a file; remove it")
        if self.split not in ("", "test", "all"):
            raise ValueError(f"split: must be `test` or `all` for a file, not {self.split[:40]!r}")
        refuse_pair(self.task_type, self.code)
        return self

    @property
    def code(self) -> str:
        """The language of all texts, or both languages with a hyphen; empty if it is left to subsets or to mteb."""
        return "" if isinstance(self.language, dict) else self.language

    @property
    def by_subset(self) -> Mapping[str, str]:
        """The languages of subsets that the study gives."""
        return self.language if isinstance(self.language, dict) else {}

    def revision_of(self, file_hash: str) -> str:
        """Return the data's revision: the file's hash, and of one sheet also its name."""
        return identity("sheet-v1", file_hash, self.sheet) if self.sheet else file_hash

    @property
    def rows(self) -> Literal["test", "all"]:
        """The rows of a file to score."""
        return "all" if self.split == "all" else "test"

    @property
    def task_type(self) -> TaskType:
        """The task of a file, which always has one. Raises ValueError for a task of mteb that leaves it to mteb."""
        if self.task is None:
            raise ValueError(f"{self.name}: the study leaves its task to mteb")
        return self.task


_OF_MTEB = ("revision", "subsets")


def refuse_pair(task: TaskType, language: str) -> None:
    """Raise ValueError for two languages where a task's items hold one text."""
    if "-" in language and task not in TWO_TEXTS:
        raise ValueError(f"language {language!r} is a pair, but {task} has single texts; give one language")


Text = tuple[str, str]  # the language and the task of a text
Texts = Mapping[str, Collection[Text]]  # by what is judged


def texts_of(datasets: Iterable[DatasetSpec]) -> set[Text]:
    """The languages and tasks of data sets as far as the study file states them: it may leave those of mteb to mteb."""
    texts, untold = set[Text](), set[str]()
    for spec in datasets:
        for language in filter(None, [spec.code, *spec.by_subset.values()]):
            codes = languages_of(spec.task, language_pair(language), passages=spec.passages)
            texts |= {(code, spec.task) for code in codes if spec.task}
            untold |= set() if spec.task else codes
    return texts | {(code, "") for code in untold - {code for code, _ in texts}}


def languages_of(task: TaskType | None, pair: tuple[str, str], *, passages: bool) -> set[str]:
    """The languages of the texts that are transformed, in a data set whose first and second texts have these."""
    both = (task in PAIRED and task != "bitext_mining") or (task in SEARCHES and passages)
    return set(pair) if both else {pair[0]}
