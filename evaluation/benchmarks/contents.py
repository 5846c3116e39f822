"""What a task holds, in one form for all types: items with their texts and gold, and what searches are to find."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.tasks.scoring import label_names, make_task
from evaluation.units import ScoreUnit
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_registry import BITEXT, gold_column, text_columns
from plumbline.study.datasets import SEARCHES, TRAINED, TaskType

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class CheckedTask:
    """A task that is checked: a data set as it is, or as an accepted transformation left it.

    `name` is the data set's, with transformation and seed behind it where there is one; `unit` is what a study scores.
    """

    name: str
    dataset: Dataset
    unit: ScoreUnit | None = None


@dataclass(frozen=True)
class ContentPart:
    """Items of one kind (`what`, such as texts, pairs, queries) in one split of one subset.

    `texts` has what a model reads of each item: one text, or several. `gold` is empty where items have none.
    """

    subset: str
    split: str
    what: str
    items: Sequence[str]
    texts: Sequence[tuple[str, ...]]
    gold: Sequence[Any] = ()


@dataclass(frozen=True)
class Search:
    """What a subset's queries are to find: `relevant` has judgements by query, `candidates` what is ranked for each."""

    subset: str
    queries: Sequence[str]
    passages: frozenset[str]
    relevant: Mapping[str, Mapping[str, int]]
    candidates: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Contents:
    """A task's parts and searches, with mteb's task object that holds the same (`splits`: ours, and mteb's name)."""

    kind: TaskType
    task: Any
    parts: Sequence[ContentPart]
    searches: Sequence[Search] = ()
    splits: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored(self) -> list[ContentPart]:
        """The parts of the split that is scored."""
        return [part for part in self.parts if part.split == TEST]

    @property
    def with_gold(self) -> list[ContentPart]:
        """Those of them whose items have a gold label or score."""
        return [part for part in self.scored if len(part.gold)]


def contents_of(dataset: Dataset) -> Contents:
    """What a data set holds, as mteb's task object has it."""
    task = make_task(dataset, "mteb")
    parts, searches = list[ContentPart](), list[Search]()
    splits = _splits(dataset, task)
    for subset, data in task.dataset.items():
        for ours, name in splits.items():
            if dataset.task in SEARCHES:
                parts += _search_parts(subset, ours, data[name])
                searches.append(_search(subset, data[name]))
            else:
                parts += _parts(dataset.task, task, subset, ours, data[name])
    if isinstance(dataset, TableDataset) and (names := label_names(dataset)):
        parts = [dataclasses.replace(part, gold=[names[number] for number in part.gold]) for part in parts]
    return Contents(dataset.task, task, parts, searches, splits)


def _splits(dataset: Dataset, task: Any) -> dict[str, str]:
    """Our names of the splits that are read, and mteb's."""
    (scored,) = task.eval_splits
    trained = dataset.task in TRAINED and task.train_split != scored
    return ({TRAIN: task.train_split} if trained else {}) | {TEST: scored}


def _parts(kind: TaskType, task: Any, subset: str, split: str, rows: Any) -> Iterator[ContentPart]:
    if kind == "summarisation":
        human, machine = text_columns(task, kind)
        relevance = rows[gold_column(task, kind)]
        for name, column, relevance_column in (("human summaries", human, None), ("summaries", machine, relevance)):
            yield ContentPart(subset, split, name, *_flat(rows[column], relevance_column))
        return
    names = BITEXT if kind == "bitext_mining" else text_columns(task, kind)
    if len(names) == 2:
        texts = list(zip(*(map(_text, rows[name]) for name in names), strict=True))
        gold = [] if kind == "bitext_mining" else list(rows[gold_column(task, kind)])
        yield ContentPart(subset, split, "pairs", _numbers(texts), texts, gold)
        return
    cells, labels = list(rows[names[0]]), list(rows[gold_column(task, kind)])
    if cells and isinstance(cells[0], list):
        yield ContentPart(subset, split, "texts", *_flat(cells, labels))
        return
    yield ContentPart(subset, split, "texts", _numbers(cells), [(_text(cell),) for cell in cells], labels)


def _text(cell: Any) -> str:
    """A cell as a text; one that is missing is empty."""
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)


def _numbers(rows: Sequence[Any]) -> list[str]:
    return list(map(str, range(len(rows))))


def _flat(
    cells: Sequence[list[str]], gold: Sequence[list[Any]] | None
) -> tuple[list[str], list[tuple[str]], list[Any]]:
    """Lists of texts one after the other: items are called by row and place."""
    items = [f"{row}/{position}" for row, cell in enumerate(cells) for position in range(len(cell))]
    texts = [(_text(text),) for cell in cells for text in cell]
    return items, texts, list(itertools.chain.from_iterable(gold)) if gold is not None else []


def _search_parts(subset: str, split: str, data: Mapping[str, Any]) -> Iterator[ContentPart]:
    queries, corpus = data["queries"], data["corpus"]
    names = [name for name in ("text", "instruction") if name in queries.column_names]
    query_texts = [list(map(_text, queries[name])) for name in names]
    yield ContentPart(subset, split, "queries", list(queries["id"]), list(zip(*query_texts, strict=True)))
    passage_texts = list(map(_text, corpus["text"]))
    titles = list(map(_text, corpus["title"])) if "title" in corpus.column_names else [""] * len(passage_texts)
    texts = [
        (f"{title} {text}".strip(),) if title else (text,) for title, text in zip(titles, passage_texts, strict=True)
    ]
    yield ContentPart(subset, split, "passages", list(corpus["id"]), texts)


def _search(subset: str, data: Mapping[str, Any]) -> Search:
    return Search(
        subset,
        list(data["queries"]["id"]),
        frozenset(data["corpus"]["id"]),
        data["relevant_docs"],
        data["top_ranked"] or {},
    )
