"""The items of a data set's scored split with their gold answers, for drawing and scoring.

Gold answers are never shown to raters: `annotation.human` takes only the texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import BITEXT, text_columns
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import StudyError
from plumbline.languages import language_pair
from plumbline.records import nfc
from plumbline.words import shows

SENTENCES = ("sentence1", "sentence2")
SUMMARIES, SUMMARY = "human_summaries", "summary"


@dataclass(frozen=True)
class ScoredItem:
    """An item that is scored, and its gold."""

    subset: str  #: empty if the data set has only one
    item: str  #: its id in `texts.parquet`
    language: str  #: code of its first text's language
    output_language: str  #: of its second text; the same without one
    fields: Mapping[str, str | list[str]]  #: its texts
    labels: tuple[str, ...] = ()  #: for classification, clustering and pairs ("1" or "0")
    score: float = math.nan  #: for STS, STR and summaries
    drawn_with: str = ""  #: items with the same are drawn together: summaries, a set to cluster
    candidates: Mapping[str, str] = field(default_factory=dict)  #: texts by id: a query's passages, a translation
    relevant: frozenset[str] = frozenset()  #: ids of the right candidates

    @property
    def whole(self) -> bool:
        """True if each of its texts shows something."""
        texts = [text for value in self.fields.values() for text in ([value] if isinstance(value, str) else value)]
        return bool(texts) and all(isinstance(text, str) and shows(text) for text in texts)


@dataclass(frozen=True)
class _DatasetRow:
    """A row of a subset, with the column names of local files."""

    subset: str
    name: str
    languages: tuple[str, str]
    cells: Mapping[str, Any]

    def item(self, fields: Mapping[str, str | list[str]], part: str = "", **gold: Any) -> ScoredItem:
        """Return the row, or a part of it, as an item."""
        return ScoredItem(self.subset, f"{self.name}{part}", *self.languages, fields, **gold)


class _TextForm:
    """How the rows of a task become items: here each has a text with its labels, or a list of both."""

    TEXTS: ClassVar[tuple[str, ...]] = ("text",)  #: columns of texts in local files
    GOLD: ClassVar[str] = "label"  #: the column of gold answers; empty if there is none

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def columns(self, task: Any) -> list[str]:
        return list(text_columns(task, self.dataset.task))

    def gold_column(self, task: Any) -> str:
        return str(getattr(task, "label_column_name", "label"))

    def items(self, row: _DatasetRow) -> Iterator[ScoredItem]:
        row = replace(row, languages=(row.languages[0],) * 2)
        text, label = row.cells["text"], row.cells["label"]
        if isinstance(text, list):
            column = self.columns(self.dataset.loaded.task)[0] if isinstance(self.dataset, MtebTask) else "text"
            for index, (each, gold) in enumerate(zip(text, _each(label, text), strict=True)):
                yield row.item({"text": _text(each)}, f"/{column}/{index}", labels=_labels(gold), drawn_with=row.name)
        else:
            yield row.item({"text": _text(text)}, labels=self.labels(label))

    def labels(self, label: Any) -> tuple[str, ...]:
        return tuple(map(str, label)) if isinstance(label, (list, tuple)) else _labels(label)


class _ClusteringForm(_TextForm):
    """Texts to cluster: of labels on several levels the first, the coarsest, counts."""

    def labels(self, label: Any) -> tuple[str, ...]:
        return super().labels((label[0] if label else None) if isinstance(label, list) else label)


class _SentencesForm(_TextForm):
    """Two sentences and their similarity."""

    TEXTS: ClassVar[tuple[str, ...]] = SENTENCES
    GOLD: ClassVar[str] = "score"

    def gold_column(self, task: Any) -> str:
        return "score"

    def items(self, row: _DatasetRow) -> Iterator[ScoredItem]:
        yield row.item({name: _text(row.cells[name]) for name in SENTENCES}, **self.gold(row.cells[self.GOLD]))

    def gold(self, cell: Any) -> dict[str, Any]:
        return {"score": _number(cell)}


class _PairsForm(_SentencesForm):
    """Two sentences that mean the same, or not."""

    GOLD: ClassVar[str] = "label"
    gold_column = _TextForm.gold_column

    def gold(self, cell: Any) -> dict[str, Any]:
        return {"labels": (str(int(cell)),) if cell in (0, 1) else ()}


class _TranslationsForm(_TextForm):
    """A sentence and its translation, which is to be found."""

    TEXTS: ClassVar[tuple[str, ...]] = SENTENCES
    GOLD: ClassVar[str] = ""

    def columns(self, task: Any) -> list[str]:
        return list(BITEXT)

    def items(self, row: _DatasetRow) -> Iterator[ScoredItem]:
        counterpart = {row.name: _text(row.cells["sentence2"])}
        sentence = {"sentence1": _text(row.cells["sentence1"])}
        yield row.item(sentence, candidates=counterpart, relevant=frozenset(counterpart))


class _SummariesForm(_TextForm):
    """Summaries by machines, each with its relevance, beside those by people."""

    TEXTS: ClassVar[tuple[str, ...]] = (SUMMARIES, "machine_summaries")
    GOLD: ClassVar[str] = "relevance"

    def gold_column(self, task: Any) -> str:
        return str(task.relevancy_column_name)

    def items(self, row: _DatasetRow) -> Iterator[ScoredItem]:
        human, texts = [_text(summary) for summary in row.cells[SUMMARIES]], row.cells["machine_summaries"]
        for index, (text, score) in enumerate(zip(texts, _each(row.cells["relevance"], texts), strict=True)):
            fields: dict[str, str | list[str]] = {SUMMARIES: human, SUMMARY: _text(text)}
            yield row.item(fields, f"/machine_summaries/{index}", score=_number(score), drawn_with=row.name)


_FORMS: dict[str, type[_TextForm]] = {
    "sts": _SentencesForm,
    "str": _SentencesForm,
    "pair_classification": _PairsForm,
    "bitext_mining": _TranslationsForm,
    "summarisation": _SummariesForm,
    "clustering": _ClusteringForm,
}


def scored_items(dataset: Dataset) -> list[ScoredItem]:
    """Return all items of the scored split, in order. Raises StudyError for a task that people cannot do."""
    if dataset.task == "instruction_reranking":
        raise StudyError(
            f"data set {dataset.name!r}: instruction reranking is scored by changes of ranks between two instructions,"
            " which people cannot do; write each query with its instruction as a data set of type reranking"
        )
    if not isinstance(dataset, (MtebTask, TableDataset)):
        raise TypeError(f"no items of {type(dataset).__name__}")
    if dataset.task in ("reranking", "retrieval"):
        return [
            ScoredItem(
                *(search.subset, search.item, *search.languages),
                {"query": _text(search.query)},
                candidates={name: _text(text) for name, text in search.passages.items()},
                relevant=search.relevant,
            )
            for search in dataset.searches()
        ]
    form = _FORMS.get(dataset.task, _TextForm)(dataset)
    rows = _rows_of_mteb(dataset, form) if isinstance(dataset, MtebTask) else _rows_of_files(dataset)
    return [item for row in rows for item in form.items(row)]


def all_labels(dataset: Dataset) -> set[str]:
    """Return the labels of classification in all splits: those that a trained model can return."""
    if isinstance(dataset, MtebTask):
        loaded = dataset.loaded
        name, splits = loaded.task.label_column_name, [split for _, split in loaded.splits()]
        columns = [parts[split][name] for parts in loaded.task.dataset.values() for split in splits]
    else:
        columns = [frame["label"] for frame in dataset.splits.values()] if isinstance(dataset, TableDataset) else []
    cells = [cell for column in columns for cell in column if cell is not None]
    return {str(label) for cell in cells for label in (cell if isinstance(cell, (list, tuple)) else [cell])}


def label_words(dataset: Dataset) -> dict[str, str]:
    """Return the names of labels, if an mteb task gives names beside numbers."""
    if not isinstance(dataset, MtebTask) or dataset.task not in ("classification", "multilabel_classification"):
        return {}
    words: dict[str, str] = {}
    for parts in dataset.loaded.task.dataset.values():
        part, column = parts[dataset.loaded.split], dataset.loaded.task.label_column_name
        feature = part.features[column]
        names = getattr(getattr(feature, "feature", feature), "names", None)
        words |= {str(number): name for number, name in enumerate(names or ())}
        if dataset.task == "classification" and "label_text" in part.column_names and column != "label_text":
            words |= {str(label): str(name) for label, name in zip(part[column], part["label_text"], strict=True)}
    return words


def _rows_of_files(dataset: TableDataset) -> Iterator[_DatasetRow]:
    frame = dataset.splits["test"]
    languages = frame["language"] if "language" in frame else [dataset.language] * len(frame)
    columns = {str(name): list(frame[name]) for name in frame}
    for index, language in enumerate(languages):
        cells = {name: column[index] for name, column in columns.items()}
        yield _DatasetRow("", str(index), language_pair(language), cells)


def _rows_of_mteb(dataset: MtebTask, form: _TextForm) -> Iterator[_DatasetRow]:
    task = dataset.loaded.task
    for subset, parts in task.dataset.items():
        part, prefix = parts[dataset.loaded.split], "" if subset == "default" else f"{subset}/"
        columns = {name: list(part[column]) for name, column in zip(form.TEXTS, form.columns(task), strict=True)}
        if form.GOLD:  # the owners of some test sets withhold it
            column = form.gold_column(task)
            columns[form.GOLD] = list(part[column]) if column in part.column_names else [None] * len(part)
        for index in range(len(part)):
            cells = {name: column[index] for name, column in columns.items()}
            yield _DatasetRow(prefix.rstrip("/"), f"{prefix}{index}", dataset.loaded.languages[subset], cells)


def _labels(label: Any) -> tuple[str, ...]:
    return () if label is None else (str(label),)


def _number(cell: Any) -> float:
    return math.nan if cell is None else float(cell)


def _each(gold: Sequence[Any] | None, texts: Sequence[Any]) -> Sequence[Any]:
    """Return the gold of each text of a list; None for each if all of it is withheld."""
    return [None] * len(texts) if gold is None else gold


def _text(value: Any) -> str:
    return nfc(value) if isinstance(value, str) else ""
