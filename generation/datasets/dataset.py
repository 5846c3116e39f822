"""The positions of a data set's texts: one walk both reads texts and puts outputs in their places.

Local files and mteb's tasks have the same few layouts: a text a row, two texts a row, or lists of texts in a row. A
`TextTable` is one split of any of them, seen as columns of cells.
"""

from __future__ import annotations

import abc
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.records import Text, nfc, text_id
from plumbline.statistics.estimates import stream
from plumbline.study.datasets import TaskType
from plumbline.words import shows

# Takes a text and its cell as it is; returns the new cell, or None to drop the item.
Change = Callable[[Text, str], str | None]


@dataclass(frozen=True)
class QueryPassages:
    """A query with its passages by id: judged ones first, then others."""

    subset: str  #: empty if the data set has only one
    item: str  #: the item of the query
    languages: tuple[str, str]  #: of the query and of the passages, codes
    query: str
    passages: Mapping[str, str]
    relevant: frozenset[str]  #: ids of the relevant ones


class Dataset(abc.ABC):
    """A data set in memory. `revision` changes with its content."""

    name: str
    task: TaskType
    revision: str

    @abc.abstractmethod
    def texts(self) -> Iterator[Text]:
        """Yield every text to transform, in order. Blank cells are not texts."""

    @abc.abstractmethod
    def replaced(self, change: Change) -> Self:
        """Return a copy with changed texts, without the items that are dropped; the original stays as it is.

        An item is scored as a whole: a row; a query with its judgements; a passage; in lists of summaries or of texts
        to cluster, one text with its relevance or label. A row or query that loses all its items is dropped too.
        """

    def gold_scores(self) -> dict[str, float]:
        """Return people's similarity scores by item; empty for other tasks."""
        return {}

    def searches(self) -> Iterator[QueryPassages]:
        """Yield each scored query with its passages; none for tasks without a search."""
        yield from ()

    @abc.abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the number of scored items by part (`""` or the subset of an mteb task)."""

    @abc.abstractmethod
    def labels(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each part's name and its labels, which must differ for a score to exist."""


@dataclass(frozen=True)
class Replacement:
    """The result of `TextTable.replaced`: new cells of the changed columns, and the numbers of the remaining rows."""

    columns: Mapping[str, list[Any]]
    rows: list[int]


@dataclass(frozen=True)
class TextTable:
    """The texts of one split.

    `items` names its rows. `columns` hold the texts: a cell is a text, or a list of texts. `languages` has a code for
    each row of each column. `partners` are lists parallel to a column of lists.
    """

    dataset: str
    task: TaskType
    split: str
    items: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    languages: Mapping[str, Sequence[str]]
    partners: Mapping[str, Mapping[str, Sequence[list[Any]]]] = field(default_factory=dict)

    def texts(self) -> Iterator[Text]:
        """Yield every text, column by column. Raises DataError for a cell without a text or list of texts."""
        for name, cells in self.columns.items():
            for row, cell in enumerate(cells):
                places = enumerate(cell) if isinstance(cell, list) else [(None, cell)]
                for index, value in places:
                    text = self._text(name, row, index, value)
                    if text is not None:
                        yield text

    def replaced(self, change: Change) -> Replacement:
        """Return the table with each text changed; `Dataset.replaced` says which items are dropped."""
        partners = [name for lists in self.partners.values() for name in lists]
        columns: dict[str, list[Any]] = {name: [] for name in (*self.columns, *partners)}
        rows = []
        for row in range(len(self.items)):
            cells = self._row(row, change)
            if cells is not None:
                rows.append(row)
                for name, cell in cells.items():
                    columns[name].append(cell)
        return Replacement(columns, rows)

    def _row(self, row: int, change: Change) -> dict[str, Any] | None:
        """Return the changed cells of a row, or None if it is dropped."""
        cells: dict[str, Any] = {}
        for name, column in self.columns.items():
            cell = column[row]
            if not isinstance(cell, list):
                cells[name] = self._changed(name, row, None, cell, change)
                if cells[name] is None:
                    return None
                continue
            changed = [self._changed(name, row, index, value, change) for index, value in enumerate(cell)]
            indices = [index for index, value in enumerate(changed) if value is not None]
            if cell and not indices:
                return None
            cells[name] = [changed[index] for index in indices]
            for partner, lists in self.partners.get(name, {}).items():
                cells[partner] = [lists[row][index] for index in indices]
        return cells

    def _changed(self, name: str, row: int, index: int | None, value: Any, change: Change) -> Any:
        text = self._text(name, row, index, value)
        return value if text is None else change(text, value)

    def _text(self, name: str, row: int, index: int | None, value: Any) -> Text | None:
        """Return the record of one text, or None if the cell is blank."""
        if not isinstance(value, str):
            raise DataError(
                f"data set {self.dataset!r}: {self.split} split, item {self.items[row]}, column {name!r} has"
                f" {type(value).__name__} instead of a text"
            )
        if not shows(value):
            return None
        language, text = self.languages[name][row], nfc(value)
        item = self.items[row] if index is None else f"{self.items[row]}/{name}/{index}"
        return Text(
            dataset=self.dataset,
            task_type=self.task,
            split=self.split,
            item=item,
            field=name,
            language=language,
            text_id=text_id(text, language),
            text=text,
        )


_OTHERS = 50  # passages of a query beside those that somebody judged


def drawn_others(ids: Sequence[str], judged: Sequence[str], item: str) -> list[str]:
    """Draw at most `_OTHERS` ids of passages that nobody judged for a query, by the query's id; never that id."""
    excluded, size = {item, *judged}, min(len(ids), _OTHERS + len(judged))
    places = stream(0, "others", item).choice(len(ids), size, replace=False)
    return [ids[index] for index in places if ids[index] not in excluded][:_OTHERS]


CANDIDATES = "candidates"


@dataclass
class DatasetItem:
    """One item of the scored split: texts, or lists of texts, by field."""

    item: str  #: its number or id
    language: str = ""  #: of its first text
    output_language: str = ""  #: of its second text; the same without one
    fields: dict[str, str | list[str]] = field(default_factory=dict)


def items_of(dataset: Dataset, candidates: int) -> Iterator[DatasetItem]:
    """Yield the items of the scored split, in order, with at most `candidates` passages of a query.

    An item lacks a text that shows as nothing.
    """
    items = defaultdict[str, DatasetItem](lambda: DatasetItem(""))
    for text in dataset.texts():
        inner = re.fullmatch(rf"(.*)/{re.escape(text.field)}/\d+", text.item)
        if text.split != "test" or text.field in ("passage", "positive", "negative"):
            continue
        item = items[inner[1] if inner else text.item]
        item.item = inner[1] if inner else text.item
        item.language, item.output_language = item.language or text.language, text.language
        if inner:
            entries = item.fields.setdefault(text.field, [])
            if isinstance(entries, list):
                entries.append(text.text)
        else:
            item.fields[text.field] = text.text
    for search in dataset.searches():
        if search.item in items and (passages := chosen(search, candidates)):
            items[search.item].fields[CANDIDATES] = passages
            items[search.item].output_language = search.languages[1]
    yield from items.values()


def chosen(search: QueryPassages, most: int) -> list[str]:
    """Return at most `most` passages to show with a query, in an order that reveals nothing about relevance."""

    def order(text: str) -> str:
        return identity("candidate-order-v1", search.item, text)

    texts = {name: nfc(text) for name, text in search.passages.items()}
    relevant = sorted({texts[name] for name in search.relevant}, key=order)
    rest = sorted(set(texts.values()) - set(relevant), key=order)
    number = min(len(relevant), max(most // 2, most - len(rest)))
    return sorted([*relevant[:number], *rest[: most - number]], key=order)
