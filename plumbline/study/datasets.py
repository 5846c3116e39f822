"""How a study names its data sets; `generation.datasets` and `generation.datasets.mteb_tasks` read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from plumbline.errors import StudyError
from plumbline.languages import language_pair
from plumbline.study.base import Line, SparseModel, StudyPart, refuse_duplicates

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


def _known_language(value: str) -> str:
    """One code, or two with a hyphen: the first text's language and the second's."""
    try:
        first, second = language_pair(value)
    except StudyError as error:
        raise ValueError(str(error)) from None
    return first if first == second else f"{first}-{second}"


LanguageOrPair = Annotated[str, AfterValidator(_known_language)]


class _WithGold(SparseModel, StudyPart):
    LATER: ClassVar[frozenset[str]] = frozenset({"gold_scale"})

    gold_scale: tuple[float, float] = Field(
        default=(0.0, 5.0), description="of tasks with scores: the lowest and highest that people could give"
    )

    @field_validator("gold_scale")
    @classmethod
    def _ascends(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] >= value[1]:
            raise ValueError("has the lowest score first, then the highest, such as [1, 5]")
        return value


class LocalDataset(_WithGold):
    """A file or folder on disk; `generation.datasets` says which columns each task needs."""

    name: DatasetName = Field(description="the data set's name in every record and table")
    task: TaskType = Field(description="what embeddings are used for; decides columns, metric and evaluator")
    path: Line = Field(description="a CSV, TSV, JSONL or Parquet file, or a folder in BEIR's layout for retrieval")
    language: LanguageOrPair = Field(
        description="language of the texts, BCP 47 or ISO 639-3; `en-de` for pairs; a column `language` overrides it"
    )
    rows: Literal["test", "all"] = Field(default="test", description="rows to score: the test split, or all")
    columns: dict[str, str] = Field(default={}, description="column that the task needs: its name in the file")
    passages: bool = Field(default=False, description="also transform the passages that are searched")

    @model_validator(mode="after")
    def _pairs_have_two_texts(self) -> LocalDataset:
        refuse_pair(self.task, self.language)
        return self


class MtebDataset(_WithGold):
    """A task of the library mteb, read through mteb's own loading."""

    mteb: str = Field(description="the task's name in mteb, such as STS17")
    name: DatasetName = Field(description="its name in every record and table; default: mteb's")
    path: str = Field(default="", description="the data's repository on the hub; default: mteb's")
    revision: str = Field(default="", description="the data's revision on the hub, a full commit hash; default: mteb's")
    task: TaskType | None = Field(default=None, description="default: mteb's; `str` for semantic relatedness")
    language: str = Field(
        default="", description="language of all texts, `en-de` for pairs; default: from mteb's metadata"
    )
    languages: dict[str, LanguageOrPair] = Field(
        default={}, description="subset: its language, where mteb does not say it or does not know the subset"
    )
    subsets: tuple[str, ...] = Field(default=(), description="subsets of the task to use, such as en-de; default: all")
    split: str = Field(default="", description="the split that is scored; default: mteb's")
    columns: dict[str, str] = Field(default={}, description="column that the task needs: its name at this revision")
    passages: bool = Field(default=False, description="also transform the passages that are searched")

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        return {"name": data["mteb"], **data} if isinstance(data, dict) and "mteb" in data else data

    @field_validator("language")
    @classmethod
    def _known_or_none(cls, value: str) -> str:
        return _known_language(value) if value else value

    @field_validator("revision")
    @classmethod
    def _one_commit(cls, value: str) -> str:
        if value and not re.fullmatch("[0-9a-f]{40}", value):
            raise ValueError(f"{value!r} is not a commit hash of 40 characters, and whatever else it names can change")
        return value

    @field_validator("subsets")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        refuse_duplicates(list(value), "subset")
        return value


def refuse_pair(task: TaskType, language: str) -> None:
    """Raise ValueError for two languages where a task's items hold one text."""
    if "-" in language and task not in TWO_TEXTS:
        raise ValueError(f"language {language!r} is a pair, and {task} has single texts; give one language")


def _kind(value: Any) -> str:
    named = "mteb" in value if isinstance(value, dict) else isinstance(value, MtebDataset)
    return "mteb" if named else "local"


DatasetSpec = Annotated[
    Annotated[LocalDataset, Tag("local")] | Annotated[MtebDataset, Tag("mteb")], Discriminator(_kind)
]


Text = tuple[str, str]  # the language and the task of a text
Texts = Mapping[str, Collection[Text]]  # by what is judged


def texts_of(datasets: Iterable[DatasetSpec]) -> set[Text]:
    """The languages and tasks of data sets as far as the study's file says them: those of mteb it may leave to mteb."""
    texts, untold = set[Text](), set[str]()
    for spec in datasets:
        named = [spec.language] if isinstance(spec, LocalDataset) else [spec.language, *spec.languages.values()]
        for language in filter(None, named):
            codes = languages_of(spec.task, language_pair(language), passages=spec.passages)
            texts |= {(code, spec.task) for code in codes if spec.task}
            untold |= set() if spec.task else codes
    return texts | {(code, "") for code in untold - {code for code, _ in texts}}


def languages_of(task: TaskType | None, pair: tuple[str, str], *, passages: bool) -> set[str]:
    """The languages of the texts that are transformed, in a data set whose first and second texts have these."""
    both = (task in PAIRED and task != "bitext_mining") or (task in SEARCHES and passages)
    return set(pair) if both else {pair[0]}
