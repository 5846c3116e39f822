"""The items that people saw as a data set of their own: a sampled task, which mteb scores like any other.

Texts, candidates and gold are those of the data set, in the order of `human/items.parquet`; train splits stay complete.
In searches each query has the passages that raters saw, in bitext each sentence the rows that they chose among. Items
that give no score are left out for people and models alike, and counted.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.human.records import HumanItem, HumanTask
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import passage_names
from generation.datasets.mteb_registry import text_columns
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError
from plumbline.study.datasets import SEARCHES

#: Reasons to leave items out; each begins with a noun whose plural is regular or in `PLURALS`.
NOTHING_TO_FIND = "query whose candidates are all relevant or all irrelevant (every order scores the same)"
NO_ORDER = "text with fewer than 3 summaries, or with summaries of equal relevance (no order is right)"
ABSENT = "sentence whose translation is not among the candidates"
PLURALS = {"query": "queries"}
_PLACE = re.compile(r"(.+)/([^/]+)/(\d+)")  # a text in a list: row, column, position


@dataclass(frozen=True)
class SampledDataset:
    """The items of a task in one language and subset, as a data set that has no other scored items.

    `items` are those that give a score, in the data set's order; `units` are the scored units in that order: the items
    themselves, for summaries their texts. `among` has for each row of bitext (items first) the rows that it may match;
    None elsewhere. `judged` is the relevance of the candidates of each item of a search. `left_out` counts items
    without a score, by reason.
    """

    task: HumanTask
    subset: str
    language: str
    dataset: Dataset
    items: tuple[str, ...]
    units: tuple[str, ...]
    among: NDArray[np.bool_] | None = None
    judged: Sequence[Mapping[str, int]] = ()
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name if a task has several."""
        return f"{self.task.task} ({', '.join(filter(None, [self.language, self.subset]))})"


@dataclass(frozen=True)
class _ItemChoice:
    """The scored items with their rows in a table, changed columns, and the units if they are not the items."""

    items: Sequence[_Item]
    rows: Sequence[int] = ()
    cells: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)
    units: Sequence[str] = ()
    among: NDArray[np.bool_] | None = None
    judged: Sequence[Mapping[str, int]] = ()
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of_search(cls, items: Sequence[_Item], judged: Mapping[str, Mapping[str, int]]) -> _ItemChoice:
        """Choose the queries whose candidates have a best order."""
        usable = [item for item in items if len({value > 0 for value in judged[item.id].values()}) == 2]
        left_out = _counted(NOTHING_TO_FIND, len(items) - len(usable))
        return cls(usable, judged=[judged[item.id] for item in usable], left_out=left_out)


def sampled(dataset: Dataset, task: HumanTask, items: Sequence[HumanItem]) -> list[SampledDataset]:
    """Return a task's items as data sets, one for each subset and language, in the items' order.

    Raises DataError for items that the data set lacks.
    """
    groups: dict[tuple[str, str], list[HumanItem]] = {}
    for item in items:
        groups.setdefault((item.subset, item.language), []).append(item)
    try:
        return [_sampled(dataset, task, key, group) for key, group in groups.items()]
    except (KeyError, IndexError, ValueError) as error:
        raise DataError(
            f"data set {dataset.name!r} lacks an item that people saw in {task.task!r} ({error}); restore its revision"
            f" {task.revision}"
        ) from None


def _sampled(dataset: Dataset, task: HumanTask, key: tuple[str, str], items: Sequence[HumanItem]) -> SampledDataset:
    subset, language = key
    parsed = [_Item(item, subset) for item in items]
    if isinstance(dataset, MtebTask):
        scored, chosen = _of_mteb(dataset, subset or "default", parsed)
    elif isinstance(dataset, TableDataset):
        scored, chosen = _of_files(dataset, parsed)
    else:
        raise TypeError(f"no sample of {type(dataset).__name__}")
    names = tuple(item.name for item in chosen.items)
    units = tuple(chosen.units) or names
    return SampledDataset(task, subset, language, scored, names, units, chosen.among, chosen.judged, chosen.left_out)


class _Item:
    """An item's name in parts: its id without the subset, and the row, column and position of a text in a list."""

    def __init__(self, item: HumanItem, subset: str) -> None:
        self.name, self.candidates = item.item, item.candidates
        self.id = item.item.removeprefix(f"{subset}/") if subset else item.item
        self.prefix = item.item.removesuffix(self.id)
        match = _PLACE.fullmatch(self.id)
        self.row, self.column, self.place = (match[1], match[2], int(match[3])) if match else (self.id, "", 0)


def _of_files(dataset: TableDataset, items: Sequence[_Item]) -> tuple[Dataset, _ItemChoice]:
    frame = dataset.splits["test"]
    if dataset.task == "retrieval":
        queries = {str(query): row for row, query in enumerate(frame["id"])}
        judged = {item.id: _judged(dataset.qrels[item.id], item) for item in items}
        chosen = _ItemChoice.of_search(items, judged)
        rows = frame.iloc[[queries[item.id] for item in chosen.items]].reset_index(drop=True)
        ids = dict.fromkeys(passage for item in chosen.items for passage in item.candidates)
        scored = dataclasses.replace(
            dataset,
            splits={**dataset.splits, "test": rows},
            corpus={name: dataset.corpus[name] for name in ids},
            qrels={item.id: judged[item.id] for item in chosen.items},
            candidates={item.id: tuple(item.candidates) for item in chosen.items},
        )
        return scored, chosen
    if dataset.task == "reranking":
        return _reranked(dataset, frame, items)
    columns = {str(name): list(frame[name]) for name in frame}
    chosen = _chosen(dataset.task, items, columns, ("machine_summaries", "relevance"))
    return _with_rows(dataset, frame.iloc[list(chosen.rows)], chosen.cells), chosen


def _reranked(dataset: TableDataset, frame: pd.DataFrame, items: Sequence[_Item]) -> tuple[Dataset, _ItemChoice]:
    """Return rows of a query and its lists of passages, with only the passages that people saw."""
    lists: dict[str, dict[str, list[str]]] = {}
    judged: dict[str, dict[str, int]] = {}
    for item in items:
        row = frame.iloc[int(item.id)]
        passages = [*row["positive"], *row["negative"]]
        names = passage_names(f"q{item.id}", passages)
        relevant, texts = set(names[: len(row["positive"])]), dict(zip(names, passages, strict=True))
        judged[item.id] = marks = {name: int(name in relevant) for name in item.candidates}
        lists[item.id] = {
            side: [texts[name] for name in names if marks.get(name) == mark]
            for side, mark in (("positive", 1), ("negative", 0))
        }
        if missing := [name for name in item.candidates if name not in texts]:
            raise KeyError(f"candidate {missing[0]} of {item.name}")
    chosen = _ItemChoice.of_search(items, judged)
    cells = {side: [lists[item.id][side] for item in chosen.items] for side in ("positive", "negative")}
    return _with_rows(dataset, frame.iloc[[int(item.id) for item in chosen.items]], cells), chosen


def _with_rows(dataset: TableDataset, rows: pd.DataFrame, cells: Mapping[str, list[Any]]) -> TableDataset:
    """Return the data set with these scored rows, with changed cells in some columns."""
    columns = {name: pd.Series(values, dtype=object) for name, values in cells.items()}
    return dataclasses.replace(
        dataset, splits={**dataset.splits, "test": rows.reset_index(drop=True).assign(**columns)}
    )


def _of_mteb(dataset: MtebTask, subset: str, items: Sequence[_Item]) -> tuple[Dataset, _ItemChoice]:
    loaded, kind = dataset.loaded, dataset.task
    parts = loaded.task.dataset[subset]
    part = parts[loaded.split]
    if kind in SEARCHES:
        judged = {item.id: _judged(part["relevant_docs"][item.id], item) for item in items}
        chosen = _ItemChoice.of_search(items, judged)
        part = _searched(part, chosen.items, judged)
    else:
        texts = text_columns(loaded.task, kind)
        names = {"summarisation": "relevancy_column_name", "clustering": "label_column_name"}
        gold = str(getattr(loaded.task, names[kind])) if kind in names else ""
        columns = {name: part[name] for name in (*texts, gold)} if gold else {}
        chosen = _chosen(kind, items, columns, (texts[-1], gold))
        part = _with_cells(part.select(chosen.rows), chosen.cells)
        if kind == "clustering" and not chosen.cells:
            part = _first_level(part, gold)
    sample = loaded.with_data({subset: type(parts)({**parts, loaded.split: part})})
    sample.task.hf_subsets = [subset]
    if kind in SEARCHES:
        sample.task.skip_first_result = False  # the first result is the query's own text, which people did not see
    return dataclasses.replace(dataset, loaded=sample), chosen


def _searched(part: Mapping[str, Any], items: Sequence[_Item], judged: Mapping[str, Any]) -> dict[str, Any]:
    queries = {query: row for row, query in enumerate(part["queries"]["id"])}
    passages = {passage: row for row, passage in enumerate(part["corpus"]["id"])}
    wanted = dict.fromkeys(passage for item in items for passage in item.candidates)
    return {
        **part,
        "queries": part["queries"].select([queries[item.id] for item in items]),
        "corpus": part["corpus"].select([passages[name] for name in wanted]),
        "relevant_docs": {item.id: judged[item.id] for item in items},
        "top_ranked": {item.id: list(item.candidates) for item in items},
    }


def _judged(relevance: Mapping[str, int], item: _Item) -> dict[str, int]:
    """Return the relevance of a query's candidates; unjudged ones are irrelevant."""
    return {passage: int(relevance.get(passage, 0)) for passage in item.candidates}


def _ordered(relevance: Sequence[Sequence[float]], items: Sequence[_Item]) -> tuple[list[_Item], dict[str, int]]:
    """Return the summaries of texts whose summaries differ in relevance, and the number of other texts."""
    values: dict[str, list[float]] = {}
    for item in items:
        values.setdefault(item.row, []).append(float(relevance[int(item.row)][item.place]))
    ordered = {row for row, some in values.items() if len(some) > 2 and len(set(some)) > 1}
    return [item for item in items if item.row in ordered], _counted(NO_ORDER, len(values) - len(ordered))


def _counted(reason: str, number: int) -> dict[str, int]:
    return {reason: number} if number else {}


def _chosen(
    kind: str, items: Sequence[_Item], columns: Mapping[str, Sequence[Any]], lists: tuple[str, str]
) -> _ItemChoice:
    """Choose rows of a table; `lists` are its columns of texts and of their gold, element by element."""
    if kind == "summarisation":
        items, left_out = _ordered(columns[lists[1]], items)
        rows = list(dict.fromkeys(int(item.row) for item in items))
        by_row = [[item for item in items if int(item.row) == row] for row in rows]
        cells = {
            name: [[columns[name][row][item.place] for item in some] for row, some in zip(rows, by_row, strict=True)]
            for name in lists
        }
        units = [f"{some[0].prefix}{some[0].row}" for some in by_row]
        return _ItemChoice([item for some in by_row for item in some], rows, cells, units, left_out=left_out)
    if kind == "clustering" and items and items[0].column:
        cells = {name: [[columns[name][int(item.row)][item.place] for item in items]] for name in lists}
        return _ItemChoice(items, [int(items[0].row)], cells)
    if kind != "bitext_mining":
        return _ItemChoice(items, [int(item.id) for item in items])
    matched = [item for item in items if item.name in item.candidates]  # sentences whose translation is a candidate
    left_out = _counted(ABSENT, len(items) - len(matched))
    rows, items = [int(item.id) for item in matched], matched
    sought = [[int(name.removeprefix(item.prefix)) for name in item.candidates] for item in items]
    every = list(dict.fromkeys([*rows, *(row for indices in sought for row in indices)]))
    position = {row: number for number, row in enumerate(every)}
    among = np.ones((len(every), len(every)), dtype=bool)
    for number, own_rows in enumerate(sought):
        among[number] = False
        among[number, [position[row] for row in own_rows]] = True
    return _ItemChoice(items, every, among=among, left_out=left_out)


def _first_level(rows: Any, column: str) -> Any:
    """Return rows with one label each, if an mteb task has lists of labels: the first is the coarsest level."""
    if not len(rows) or not isinstance(rows[0][column], list):
        return rows
    return rows.remove_columns(column).add_column(column, [str(levels[0]) for levels in rows[column]])


def _with_cells(rows: Any, cells: Mapping[str, list[Any]]) -> Any:
    """Return a table of the library datasets with changed cells in some columns; columns keep their order."""
    order = rows.column_names
    for name, values in cells.items():
        feature = rows.features[name]
        rows = rows.remove_columns(name).add_column(name, values, feature=feature)
    return rows.select_columns(order)
