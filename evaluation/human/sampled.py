"""The items that people saw as a data set of their own: a sampled task, which mteb scores like any other.

Texts, candidates and gold are those of the data set, in the order of `human/items.parquet`; train splits stay complete.
In searches each query has the passages that raters saw, in bitext each sentence the rows that they chose among. Items
that give no score are left out for people and models alike, and counted.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.human.records import HumanItem, HumanTask
from evaluation.tasks.protocols import Protocol
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import passage_names, text_columns
from generation.datasets.mteb_tasks import MtebTask
from generation.datasets.scored import ScoredItem, scored_items
from plumbline.errors import DataError

#: Reasons to leave items out; each begins with a noun whose plural is regular or in `PLURALS`.
NOTHING_TO_FIND = "query whose candidates are all relevant or all irrelevant (every order scores the same)"
NO_ORDER = "text with fewer than 3 summaries, or with summaries of equal relevance (no order is right)"
ABSENT = "sentence whose translation is not among the candidates"
PLURALS = {"query": "queries"}
GoldRow = tuple[str, str, float, str]  # item, candidate, value, label
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
    def kind(self) -> ItemSampling:
        """The type's class."""
        return SAMPLINGS[self.dataset.task]

    @property
    def key(self) -> tuple[str, str, str]:
        """The task, subset and language, which identify its rows in tables."""
        return self.task.task, self.subset, self.language

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


def sampled(dataset: Dataset, task: HumanTask, items: Sequence[HumanItem]) -> list[SampledDataset]:
    """Return a task's items as data sets, one for each subset and language, in the items' order.

    Raises DataError for items that the data set lacks.
    """
    groups: dict[tuple[str, str], list[HumanItem]] = {}
    for item in items:
        groups.setdefault((item.subset, item.language), []).append(item)
    try:
        return [_sampled(dataset, task, *key, group) for key, group in groups.items()]
    except (KeyError, IndexError, ValueError) as error:
        raise DataError(
            f"data set {dataset.name!r} lacks an item that people saw in {task.task!r} ({error}); restore its revision"
            f" {task.revision}"
        ) from None


def _sampled(
    dataset: Dataset, task: HumanTask, subset: str, language: str, items: Sequence[HumanItem]
) -> SampledDataset:
    scored, chosen = SAMPLINGS[dataset.task].sample(dataset, subset, [_Item(item, subset) for item in items])
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


class ItemSampling:
    """Sampling of a type of task: here rows of a table, one for each item, with scores; other types override this."""

    def sample(self, dataset: Dataset, subset: str, items: Sequence[_Item]) -> tuple[Dataset, _ItemChoice]:
        """Return a data set whose scored items are some of these, and which are."""
        if isinstance(dataset, TableDataset):
            return self._of_files(dataset, dataset.splits["test"], items)
        if not isinstance(dataset, MtebTask):
            raise TypeError(f"no sample of {type(dataset).__name__}")
        loaded, name = dataset.loaded, subset or "default"
        parts = loaded.task.dataset[name]
        part, chosen = self._of_mteb(dataset, parts[loaded.split], items)
        sample = loaded.with_data({name: type(parts)({**parts, loaded.split: part})})
        sample.task.hf_subsets = [name]
        self._prepare(sample.task)
        return dataclasses.replace(dataset, loaded=sample), chosen

    def _of_files(
        self, dataset: TableDataset, frame: pd.DataFrame, items: Sequence[_Item]
    ) -> tuple[Dataset, _ItemChoice]:
        columns = {name: list(frame[name]) for name in self._lists(dataset) if name in frame}
        chosen = self._chosen(items, columns)
        return _with_rows(dataset, frame.iloc[list(chosen.rows)], chosen.cells), chosen

    def _of_mteb(self, dataset: MtebTask, part: Any, items: Sequence[_Item]) -> tuple[Any, _ItemChoice]:
        chosen = self._chosen(items, {name: part[name] for name in self._lists(dataset)})
        rows = part.select(chosen.rows)
        order = rows.column_names
        for name, values in chosen.cells.items():
            feature = rows.features[name]
            rows = rows.remove_columns(name).add_column(name, values, feature=feature)
        return rows.select_columns(order), chosen

    def _prepare(self, task: Any) -> None:
        """Set what mteb's task needs beside its data."""

    def _lists(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the columns that may hold several items in a row: of texts, and of their gold."""
        del dataset
        return ()

    def _chosen(self, items: Sequence[_Item], columns: Mapping[str, Sequence[Any]]) -> _ItemChoice:
        del columns
        return _ItemChoice(items, [int(item.id) for item in items])

    def gold_rows(self, sample: SampledDataset) -> Iterator[GoldRow]:
        """Yield item, candidate, value and label of gold."""
        for item, scored in zip(sample.items, scored_items(sample.dataset), strict=False):  # candidates come last
            yield item, "", *self._gold(item, scored)

    def _gold(self, item: str, scored: ScoredItem) -> tuple[float, str]:
        del item
        return scored.score, ""

    def by_unit(self, answers: pd.DataFrame) -> pd.DataFrame:
        """Return answers to items by scored unit."""
        return answers

    def protocol(self, protocol: Protocol) -> Protocol:
        """Return the protocol by which a sampled task is scored."""
        return protocol

    def query_names(self, sample: SampledDataset) -> list[str]:
        """Return mteb's names of queries, in the order of the units; none if mteb keeps this order."""
        del sample
        return []


class MarkSampling(ItemSampling):
    """Pairs that are alike or not."""

    def _gold(self, item: str, scored: ScoredItem) -> tuple[float, str]:
        return float(scored.labels[0]), ""


class ClassSampling(ItemSampling):
    """Texts with a label."""

    def _gold(self, item: str, scored: ScoredItem) -> tuple[float, str]:
        return math.nan, scored.labels[0]


class ClassesSampling(ItemSampling):
    """Texts with several labels."""

    def _gold(self, item: str, scored: ScoredItem) -> tuple[float, str]:
        return math.nan, json.dumps(sorted(scored.labels), ensure_ascii=False)


class ClusterSampling(ClassSampling):
    """Texts with a label each, which may be lists in one row, or have lists of labels: the first is the coarsest."""

    def _lists(self, dataset: Dataset) -> tuple[str, ...]:
        if not isinstance(dataset, MtebTask):
            return ()
        task = dataset.loaded.task
        return text_columns(task, dataset.task)[-1], str(task.label_column_name)

    def _of_mteb(self, dataset: MtebTask, part: Any, items: Sequence[_Item]) -> tuple[Any, _ItemChoice]:
        rows, chosen = super()._of_mteb(dataset, part, items)
        _, column = self._lists(dataset)
        if chosen.cells or not len(rows) or not isinstance(rows[0][column], list):
            return rows, chosen
        return rows.remove_columns(column).add_column(column, [str(levels[0]) for levels in rows[column]]), chosen

    def _chosen(self, items: Sequence[_Item], columns: Mapping[str, Sequence[Any]]) -> _ItemChoice:
        if not items or not items[0].column:
            return super()._chosen(items, columns)
        cells = {name: [[rows[int(item.row)][item.place] for item in items]] for name, rows in columns.items()}
        return _ItemChoice(items, [int(items[0].row)], cells)

    def protocol(self, protocol: Protocol) -> Protocol:
        return "paper"


class SummarySampling(ItemSampling):
    """Summaries, which are scored by text: only texts whose summaries differ in relevance have an order."""

    def _lists(self, dataset: Dataset) -> tuple[str, ...]:
        if not isinstance(dataset, MtebTask):
            return "machine_summaries", "relevance"
        task = dataset.loaded.task
        return text_columns(task, dataset.task)[-1], str(task.relevancy_column_name)

    def _chosen(self, items: Sequence[_Item], columns: Mapping[str, Sequence[Any]]) -> _ItemChoice:
        *_, relevance = columns.values()
        by_row: dict[str, list[_Item]] = {}
        for item in items:
            by_row.setdefault(item.row, []).append(item)
        values = {row: {float(relevance[int(row)][item.place]) for item in some} for row, some in by_row.items()}
        texts = [some for row, some in by_row.items() if len(some) > 2 and len(values[row]) > 1]
        cells = {
            name: [[rows[int(item.row)][item.place] for item in some] for some in texts]
            for name, rows in columns.items()
        }
        return _ItemChoice(
            [item for some in texts for item in some],
            [int(some[0].row) for some in texts],
            cells,
            [f"{some[0].prefix}{some[0].row}" for some in texts],
            left_out=_counted(NO_ORDER, len(by_row) - len(texts)),
        )

    def gold_rows(self, sample: SampledDataset) -> Iterator[GoldRow]:
        for item, scored in zip(sample.items, scored_items(sample.dataset), strict=True):
            yield item.rsplit("/", 2)[0], item, scored.score, ""

    def by_unit(self, answers: pd.DataFrame) -> pd.DataFrame:
        return answers.assign(candidate=answers["item"], item=answers["item"].str.rsplit("/", n=2).str[0])


class BitextSampling(ItemSampling):
    """Sentences with rows that they may match: those whose translation is a candidate."""

    def _chosen(self, items: Sequence[_Item], columns: Mapping[str, Sequence[Any]]) -> _ItemChoice:
        matched = [item for item in items if item.name in item.candidates]
        sought = [[int(name.removeprefix(item.prefix)) for name in item.candidates] for item in matched]
        every = list(dict.fromkeys([*(int(item.id) for item in matched), *(row for rows in sought for row in rows)]))
        position = {row: number for number, row in enumerate(every)}
        among = np.ones((len(every), len(every)), dtype=bool)
        for number, own_rows in enumerate(sought):
            among[number] = False
            among[number, [position[row] for row in own_rows]] = True
        return _ItemChoice(matched, every, among=among, left_out=_counted(ABSENT, len(items) - len(matched)))

    def _gold(self, item: str, scored: ScoredItem) -> tuple[float, str]:
        return math.nan, item


class SearchSampling(ItemSampling):
    """Queries with passages: those whose candidates have a best order."""

    def _of_mteb(self, dataset: MtebTask, part: Any, items: Sequence[_Item]) -> tuple[Any, _ItemChoice]:
        chosen = self._with_best_order(items, {item.id: part["relevant_docs"][item.id] for item in items})
        queries = {query: row for row, query in enumerate(part["queries"]["id"])}
        passages = {passage: row for row, passage in enumerate(part["corpus"]["id"])}
        wanted = dict.fromkeys(passage for item in chosen.items for passage in item.candidates)
        return {
            **part,
            "queries": part["queries"].select([queries[item.id] for item in chosen.items]),
            "corpus": part["corpus"].select([passages[name] for name in wanted]),
            "relevant_docs": self._by_query(chosen),
            "top_ranked": {item.id: list(item.candidates) for item in chosen.items},
        }, chosen

    def _prepare(self, task: Any) -> None:
        task.skip_first_result = False  # the first result is the query's own text, which people did not see

    def _with_best_order(self, items: Sequence[_Item], relevance: Mapping[str, Mapping[str, int]]) -> _ItemChoice:
        """Choose queries by the relevance of their candidates; unjudged ones are irrelevant."""
        judged = {item.id: {name: int(relevance[item.id].get(name, 0)) for name in item.candidates} for item in items}
        usable = [item for item in items if len({value > 0 for value in judged[item.id].values()}) == 2]
        left_out = _counted(NOTHING_TO_FIND, len(items) - len(usable))
        return _ItemChoice(usable, judged=[judged[item.id] for item in usable], left_out=left_out)

    def _by_query(self, chosen: _ItemChoice) -> dict[str, Mapping[str, int]]:
        return {item.id: marks for item, marks in zip(chosen.items, chosen.judged, strict=True)}

    def query_names(self, sample: SampledDataset) -> list[str]:
        return [name.removeprefix(f"{sample.subset}/") if sample.subset else name for name in sample.units]

    def gold_rows(self, sample: SampledDataset) -> Iterator[GoldRow]:
        for item, judged in zip(sample.items, sample.judged, strict=True):
            yield from ((item, passage, float(value), "") for passage, value in judged.items())


class RetrievalSampling(SearchSampling):
    """Queries with passages of a corpus."""

    def _of_files(
        self, dataset: TableDataset, frame: pd.DataFrame, items: Sequence[_Item]
    ) -> tuple[Dataset, _ItemChoice]:
        chosen = self._with_best_order(items, {item.id: dataset.qrels[item.id] for item in items})
        queries = {str(query): row for row, query in enumerate(frame["id"])}
        rows = frame.iloc[[queries[item.id] for item in chosen.items]].reset_index(drop=True)
        ids = dict.fromkeys(passage for item in chosen.items for passage in item.candidates)
        scored = dataclasses.replace(
            dataset,
            splits={**dataset.splits, "test": rows},
            corpus={name: dataset.corpus[name] for name in ids},
            qrels=self._by_query(chosen),
            candidates={item.id: tuple(item.candidates) for item in chosen.items},
        )
        return scored, chosen


class RerankingSampling(SearchSampling):
    """Queries with lists of right and of wrong passages."""

    def query_names(self, sample: SampledDataset) -> list[str]:
        """Return the queries of files by their numbers."""
        local = isinstance(sample.dataset, TableDataset) and not sample.subset
        return [f"q{number}" for number in range(len(sample.units))] if local else super().query_names(sample)

    def _of_files(
        self, dataset: TableDataset, frame: pd.DataFrame, items: Sequence[_Item]
    ) -> tuple[Dataset, _ItemChoice]:
        """Return rows of a query and its lists of passages, with only the passages that people saw."""
        lists: dict[str, dict[str, list[str]]] = {}
        relevance: dict[str, dict[str, int]] = {}
        for item in items:
            row = frame.iloc[int(item.id)]
            passages = [*row["positive"], *row["negative"]]
            names = passage_names(f"q{item.id}", passages)
            if missing := [name for name in item.candidates if name not in names]:
                raise KeyError(f"candidate {missing[0]} of {item.name}")
            relevance[item.id] = {name: int(index < len(row["positive"])) for index, name in enumerate(names)}
            candidates = [(name, text) for name, text in zip(names, passages, strict=True) if name in item.candidates]
            lists[item.id] = {
                side: [text for name, text in candidates if relevance[item.id][name] == mark]
                for side, mark in (("positive", 1), ("negative", 0))
            }
        chosen = self._with_best_order(items, relevance)
        cells = {side: [lists[item.id][side] for item in chosen.items] for side in ("positive", "negative")}
        return _with_rows(dataset, frame.iloc[[int(item.id) for item in chosen.items]], cells), chosen


#: The types' classes, by name.
SAMPLINGS: Mapping[str, ItemSampling] = {
    "sts": ItemSampling(),
    "str": ItemSampling(),
    "pair_classification": MarkSampling(),
    "classification": ClassSampling(),
    "multilabel_classification": ClassesSampling(),
    "clustering": ClusterSampling(),
    "summarisation": SummarySampling(),
    "bitext_mining": BitextSampling(),
    "retrieval": RetrievalSampling(),
    "reranking": RerankingSampling(),
}


def gold_of(sample: SampledDataset) -> pd.DataFrame:
    """Return the gold of a sampled task, a row an item (for searches and summaries a candidate), as answers are.

    Columns: `item` is the scored unit (`SampledDataset.units`), `candidate`, `value` the score, grade or mark, `label`
    the data set's label (several as a sorted JSON list; for bitext the item's own id).
    """
    return pd.DataFrame(sample.kind.gold_rows(sample), columns=["item", "candidate", "value", "label"])


def by_unit(sample: SampledDataset, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers (`human/answers.parquet`) to a sampled task, by scored unit.

    Answers to items that give no score are left out.
    """
    answered = (answers["task"] == sample.task.task) & answers["item"].isin(set(sample.items))
    return sample.kind.by_unit(answers[answered])


def _with_rows(dataset: TableDataset, rows: pd.DataFrame, cells: Mapping[str, list[Any]]) -> TableDataset:
    columns = {name: pd.Series(values, dtype=object) for name, values in cells.items()}
    return dataclasses.replace(
        dataset, splits={**dataset.splits, "test": rows.reset_index(drop=True).assign(**columns)}
    )


def _counted(reason: str, number: int) -> dict[str, int]:
    return {reason: number} if number else {}
