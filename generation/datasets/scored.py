"""The items of a data set's scored split with their gold answers, for drawing and scoring.

Gold answers are never shown to raters: `annotation.human` takes only the texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generation.datasets.dataset import Dataset, drawn_others
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import passage_names
from generation.datasets.mteb_registry import BITEXT, text_columns
from generation.datasets.mteb_tasks import MtebTask, candidates_of, passage_texts
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
class _SubsetRows:
    """The rows of one subset, with the column names of local files."""

    subset: str
    names: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    languages: Sequence[tuple[str, str]]


def scored_items(dataset: Dataset) -> list[ScoredItem]:
    """Return all items of the scored split, in order. Raises StudyError for a task that people cannot do."""
    if dataset.task == "instruction_reranking":
        raise StudyError(
            f"data set {dataset.name!r}: instruction reranking is scored by changes of ranks between two instructions,"
            " which people cannot do; write each query with its instruction as a data set of type reranking"
        )
    if isinstance(dataset, MtebTask):
        return list(_searches_of_mteb(dataset) if _searches(dataset) else _of_rows(dataset, _rows_of_mteb(dataset)))
    if not isinstance(dataset, TableDataset):
        raise TypeError(f"no items of {type(dataset).__name__}")
    return list(_searches_of_files(dataset) if _searches(dataset) else _of_rows(dataset, [_rows_of_files(dataset)]))


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


def split_of(dataset: Dataset) -> str:
    """Return the name of the scored split."""
    return dataset.loaded.split if isinstance(dataset, MtebTask) else "test"


def _searches(dataset: Dataset) -> bool:
    return dataset.task in ("reranking", "retrieval")


def _rows_of_files(dataset: TableDataset) -> _SubsetRows:
    frame = dataset.splits["test"]
    languages = frame["language"] if "language" in frame else [dataset.language] * len(frame)
    columns = {str(name): list(frame[name]) for name in frame}
    return _SubsetRows(
        "", [str(row) for row in range(len(frame))], columns, [language_pair(language) for language in languages]
    )


def _rows_of_mteb(dataset: MtebTask) -> Iterator[_SubsetRows]:
    task, kind = dataset.loaded.task, dataset.task
    texts = BITEXT if kind == "bitext_mining" else text_columns(task, kind)
    ours = {1: ("text",), 2: SENTENCES}[len(texts)] if kind != "summarisation" else (SUMMARIES, "machine_summaries")
    gold = {"sts": "score", "str": "score", "bitext_mining": ""}.get(kind, "label")
    theirs = "" if not gold else "score" if gold == "score" else getattr(task, "label_column_name", "label")
    if kind == "summarisation":
        gold, theirs = "relevance", task.relevancy_column_name
    for subset, parts in task.dataset.items():
        part, prefix = parts[dataset.loaded.split], "" if subset == "default" else f"{subset}/"
        columns = {name: list(part[column]) for name, column in zip(ours, texts, strict=True)}
        if gold:  # the owners of some test sets withhold it
            columns[gold] = list(part[theirs]) if theirs in part.column_names else [None] * len(part)
        names = [f"{prefix}{row}" for row in range(len(part))]
        languages = [dataset.loaded.languages[subset]] * len(names)
        yield _SubsetRows("" if subset == "default" else subset, names, columns, languages)


def _of_rows(dataset: Dataset, tables: Sequence[_SubsetRows] | Iterator[_SubsetRows]) -> Iterator[ScoredItem]:
    for rows in tables:
        for index, name in enumerate(rows.names):
            row = {column: cells[index] for column, cells in rows.columns.items()}
            yield from _of_row(dataset, rows, name, row, rows.languages[index])


def _of_row(
    dataset: Dataset, rows: _SubsetRows, name: str, row: Mapping[str, Any], languages: tuple[str, str]
) -> Iterator[ScoredItem]:
    """Yield the items of one row: the row itself, or each text of its list."""
    kind, (first, second) = dataset.task, languages
    if kind in ("sts", "str", "pair_classification"):
        fields = {field: _text(row[field]) for field in SENTENCES}
        paired = kind == "pair_classification"
        labels = (str(int(row["label"])),) if paired and row["label"] in (0, 1) else ()
        score = math.nan if paired or row["score"] is None else float(row["score"])
        yield ScoredItem(rows.subset, name, first, second, fields, labels, score)
    elif kind == "bitext_mining":
        counterpart = {name: _text(row["sentence2"])}
        yield ScoredItem(
            rows.subset, name, first, second, {"sentence1": _text(row["sentence1"])},
            candidates=counterpart, relevant=frozenset(counterpart),
        )  # fmt: skip
    elif kind == "summarisation":
        human = [_text(summary) for summary in row[SUMMARIES]]
        texts = row["machine_summaries"]
        for index, (text, score) in enumerate(zip(texts, _each(row["relevance"], texts), strict=True)):
            value = math.nan if score is None else float(score)
            yield ScoredItem(
                rows.subset, f"{name}/machine_summaries/{index}", first, second,
                {SUMMARIES: human, SUMMARY: _text(text)}, score=value, drawn_with=name,
            )  # fmt: skip
    elif isinstance(row["text"], list):
        column = text_columns(dataset.loaded.task, kind)[0] if isinstance(dataset, MtebTask) else "text"
        for index, (text, label) in enumerate(zip(row["text"], _each(row["label"], row["text"]), strict=True)):
            item, labels = f"{name}/{column}/{index}", () if label is None else (str(label),)
            yield ScoredItem(rows.subset, item, first, first, {"text": _text(text)}, labels, drawn_with=name)
    else:
        label = row["label"]
        if dataset.task == "clustering" and isinstance(label, list):
            label = label[0] if label else None  # the first level is the coarsest
        several = isinstance(label, (list, tuple))
        yield ScoredItem(
            rows.subset, name, first, first, {"text": _text(row["text"])},
            tuple(map(str, label)) if several else (() if label is None else (str(label),)),
        )  # fmt: skip


def _each(gold: Sequence[Any] | None, texts: Sequence[Any]) -> Sequence[Any]:
    """Return the gold of each text of a list; None for each if all of it is withheld."""
    return [None] * len(texts) if gold is None else gold


def _searches_of_files(dataset: TableDataset) -> Iterator[ScoredItem]:
    frame = dataset.splits["test"]
    languages = frame["language"] if "language" in frame else [dataset.language] * len(frame)
    ids = list(dataset.corpus)
    for row, language in enumerate(languages):
        (first, second), query = language_pair(language), _text(frame["query"].iloc[row])
        if dataset.task == "retrieval":
            name = str(frame["id"].iloc[row])
            judged = dataset.qrels.get(name, {})
            passage_ids = [*judged, *drawn_others(ids, list(judged), name)]
            shown = [passage for passage in passage_ids if passage in dataset.corpus and passage != name]
            passages = {passage: _text(dataset.corpus[passage]) for passage in shown}
            right = frozenset(passage for passage, value in judged.items() if value > 0 and passage in passages)
        else:
            name, lists = str(row), (frame["positive"].iloc[row], frame["negative"].iloc[row])
            texts = [*map(_text, lists[0]), *map(_text, lists[1])]
            passages = dict(zip(passage_names(f"q{row}", [*lists[0], *lists[1]]), texts, strict=True))
            right = frozenset(list(passages)[: len(lists[0])])
        yield ScoredItem("", name, first, second, {"query": query}, candidates=passages, relevant=right)


def _searches_of_mteb(dataset: MtebTask) -> Iterator[ScoredItem]:
    for subset, parts in dataset.loaded.task.dataset.items():
        part, prefix = parts[dataset.loaded.split], "" if subset == "default" else f"{subset}/"
        texts = dict(zip(part["corpus"]["id"], passage_texts(part["corpus"]), strict=True))
        ids, (first, second) = list(texts), dataset.loaded.languages[subset]
        for query, text in zip(part["queries"]["id"], part["queries"]["text"], strict=True):
            judged = part["relevant_docs"].get(query, {})
            passages = {passage: _text(texts[passage]) for passage in candidates_of(dataset, part, query, ids, texts)}
            right = frozenset(passage for passage, value in judged.items() if value > 0 and passage in passages)
            yield ScoredItem(
                prefix.rstrip("/"), f"{prefix}{query}", first, second, {"query": _text(text)},
                candidates=passages, relevant=right,
            )  # fmt: skip


def _text(value: Any) -> str:
    return nfc(value) if isinstance(value, str) else ""
