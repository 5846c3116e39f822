"""Where the texts of a data set stand: one walk, for reading them and for putting outputs in their places.

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

# Given a text and its cell as it stands: what is to stand there, or None to drop its item.
Change = Callable[[Text, str], str | None]


@dataclass(frozen=True)
class Passages:
    """What a query of a search is to find, and what else is searched."""

    item: str  #: the query's item
    language: str  #: of the passages, a code
    relevant: Sequence[str]
    others: Sequence[str]


class Dataset(abc.ABC):
    """A data set in memory. `revision` changes with its content."""

    name: str
    task: TaskType
    revision: str

    @abc.abstractmethod
    def texts(self) -> Iterator[Text]:
        """Every text that is transformed, in order. Blank cells are no texts."""

    @abc.abstractmethod
    def replaced(self, change: Change) -> Self:
        """A copy with other texts in their places, without the items that are dropped; the original stays as it is.

        An item is what is scored as one: a row; a query with its judgements; a passage; of summaries and of sets to be
        clustered, a text with its relevance or label. Where all of a row's or a query's items go, so does it.
        """

    def gold_scores(self) -> dict[str, float]:
        """How similar people found the two texts of each scored item, by item; nothing where they were not asked."""
        return {}

    def passages_of(self) -> Iterator[Passages]:
        """The passages of each query that is scored; nothing where nothing is searched."""
        yield from ()

    @abc.abstractmethod
    def sizes(self) -> dict[str, int]:
        """Items that are scored, by part (`""` or the subset of an mteb task)."""

    @abc.abstractmethod
    def labels(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Labels that must differ for there to be a score, and a name for where they stand."""


@dataclass(frozen=True)
class Replacement:
    """What `TextTable.replaced` made of a table: new cells of the changed columns, and the numbers of the rows left."""

    columns: Mapping[str, list[Any]]
    rows: list[int]


@dataclass(frozen=True)
class TextTable:
    """The texts of one split.

    `items` names its rows. `columns` are those that hold texts: a cell is a text, or a list of texts. `languages`
    has a code for each row of each column. `partners` are lists that go with a column of lists, element by element.
    """

    dataset: str
    task: TaskType
    split: str
    items: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    languages: Mapping[str, Sequence[str]]
    partners: Mapping[str, Mapping[str, Sequence[list[Any]]]] = field(default_factory=dict)

    def texts(self) -> Iterator[Text]:
        """Every text, column by column. Raises DataError for a cell that holds neither a text nor a list of texts."""
        for name, cells in self.columns.items():
            for row, cell in enumerate(cells):
                places = enumerate(cell) if isinstance(cell, list) else [(None, cell)]
                for index, value in places:
                    text = self._text(name, row, index, value)
                    if text is not None:
                        yield text

    def replaced(self, change: Change) -> Replacement:
        """The table with each text changed; see `Dataset.replaced` for what is dropped."""
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
        """The changed cells of a row, or None where it is dropped."""
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
        """The record of one place, or None for a blank."""
        if not isinstance(value, str):
            raise DataError(
                f"data set {self.dataset!r}: {self.split} split, item {self.items[row]}, column {name!r} holds"
                f" {type(value).__name__} where a text should be"
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


def drawn_others(ids: Sequence[str], judged: Sequence[str], item: str, number: int = 50) -> list[str]:
    """So many ids of passages that nobody judged for a query: drawn by its id, for a query may have millions."""
    excluded, size = set(judged), min(len(ids), number + len(judged))
    places = stream(0, "others", item).choice(len(ids), size, replace=False)
    return [ids[index] for index in places if ids[index] not in excluded][:number]


CANDIDATES = "candidates"


@dataclass
class DatasetItem:
    """One item of the split that is scored: texts, or lists of texts, by field."""

    item: str  #: its number or id
    language: str = ""  #: of its first text
    output_language: str = ""  #: of its second; the same where there is none
    fields: dict[str, str | list[str]] = field(default_factory=dict)


def items_of(dataset: Dataset, candidates: int) -> Iterator[DatasetItem]:
    """The items of the scored split, in order, with at most so many passages of a query (`candidates`).

    A text that shows as nothing is missing in its item.
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
    for passages in dataset.passages_of():
        if passages.item in items:
            shown = chosen(passages, candidates)
            if shown:
                items[passages.item].fields[CANDIDATES] = shown
                items[passages.item].output_language = passages.language
    yield from items.values()


def chosen(passages: Passages, most: int) -> list[str]:
    """The passages that stand beside a query, in an order that tells nothing of their relevance."""

    def order(text: str) -> str:
        return identity("candidate-order-v1", passages.item, text)

    relevant = sorted(dict.fromkeys(map(nfc, passages.relevant)), key=order)
    others = sorted(set(map(nfc, passages.others)) - set(relevant), key=order)
    number = min(len(relevant), max(most // 2, most - len(others)))
    return sorted([*relevant[:number], *others[: most - number]], key=order)
