"""Tasks of mteb as data sets: their texts, and copies with outputs in the originals' places.

Attributes of mteb's task objects say which columns hold texts. Instructions and prompts do not count as texts, so
instruction reranking changes queries and no instructions. Bitext mining transforms the first side and searches the
unchanged second side for it. A passage is one text, as mteb embeds it: its title, a space and its text; a copy has the
output as its text and no title.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generation.datasets.dataset import Change, Dataset, QueryPassages, Replacement, TextTable, drawn_others
from generation.datasets.mteb_loading import MtebTaskData, load_task, quiet, text_columns
from plumbline.records import Text
from plumbline.study.datasets import SEARCHES, SIMILARITIES, TRAINED, DatasetSpec, TaskType

QUERY, PASSAGE = "query", "passage"


@dataclass(frozen=True)
class MtebTask(Dataset):
    """A task of mteb with its data; with `passages` the passages of searches are texts too."""

    name: str
    task: TaskType
    revision: str
    loaded: MtebTaskData
    passages: bool = False

    def texts(self) -> Iterator[Text]:
        for subset, parts in self.loaded.task.dataset.items():
            for ours, split in self.loaded.splits():
                for table in self._tables(subset, ours, parts[split]):
                    yield from table.texts()

    def replaced(self, change: Change) -> MtebTask:
        data = {}
        with quiet():
            for subset, parts in self.loaded.task.dataset.items():
                splits = self.loaded.splits()
                changed = {split: self._changed(subset, ours, parts[split], change) for ours, split in splits}
                data[subset] = type(parts)(changed)
        return dataclasses.replace(self, loaded=self.loaded.with_data(data))

    def fresh(self) -> Any:
        """Return an mteb task object with these data, for one evaluation."""
        data = self.loaded.task.dataset
        if self._searches:  # mteb filters queries in these dictionaries while it evaluates
            data = {name: {split: dict(part) for split, part in parts.items()} for name, parts in data.items()}
        return self.loaded.with_data(data).task

    def sizes(self) -> dict[str, int]:
        """Return the number of rows or queries of the scored split by subset; of texts if a row holds a list."""
        sizes = {}
        for subset, parts in self.loaded.task.dataset.items():
            part = parts[self.loaded.split]
            if self._searches:
                sizes[subset] = len(part["queries"])
                continue
            lists = [
                len(cell)
                for name in text_columns(self.loaded.task, self.task)
                for cell in part[name]
                if isinstance(cell, list)
            ]
            sizes[subset] = sum(lists) if lists else len(part)
        return sizes

    def gold_scores(self) -> dict[str, float]:
        scores_by: dict[str, float] = {}
        for subset, parts in self.loaded.task.dataset.items() if self.task in SIMILARITIES else ():
            prefix = "" if subset == "default" else f"{subset}/"
            scores = parts[self.loaded.split]["score"]
            scores_by |= {f"{prefix}{row}": float(score) for row, score in enumerate(scores)}
        return scores_by

    def searches(self) -> Iterator[QueryPassages]:
        for subset, parts in self.loaded.task.dataset.items() if self._searches else ():
            part, languages = parts[self.loaded.split], self.loaded.languages[subset]
            name = "" if subset == "default" else subset
            texts = dict(zip(part["corpus"]["id"], passage_texts(part["corpus"]), strict=True))
            ids = list(texts)
            for query, text in zip(part["queries"]["id"], part["queries"]["text"], strict=True):
                judged = part["relevant_docs"].get(query, {})
                ranked = (part["top_ranked"] or {}).get(query) or drawn_others(ids, list(judged), query)
                excluded = query if self.loaded.task.ignore_identical_ids else None
                wanted = dict.fromkeys(passage for passage in (*judged, *ranked) if passage != excluded)
                passages = {passage: texts[passage] for passage in wanted if passage in texts}
                relevant = frozenset(passage for passage in passages if judged.get(passage, 0) > 0)
                yield QueryPassages(name, f"{name}/{query}" if name else query, languages, text, passages, relevant)

    def labels(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield each subset's labels: of classification's train split, of clustering's and pairs' scored split."""
        task = self.loaded.task
        if self.task not in (*TRAINED, "clustering", "pair_classification"):
            return
        split = self.loaded.splits()[0][1]
        for subset, parts in task.dataset.items():
            location = f"split {split!r}" if len(task.dataset) == 1 else f"split {split!r} of subset {subset!r}"
            labels = parts[split][task.label_column_name]
            if self._nested(parts[split]):
                yield location, [label for row in labels for label in row]
            elif self.task == "multilabel_classification":
                yield location, [", ".join(sorted(map(str, row))) for row in labels]
            else:
                yield location, [str(label) for label in labels]

    @property
    def _searches(self) -> bool:
        return self.task in SEARCHES

    def _nested(self, rows: Any) -> bool:
        """Return whether clustering has a whole set of texts in a row."""
        return (
            self.task == "clustering"
            and len(rows) > 0
            and isinstance(rows[0][text_columns(self.loaded.task, self.task)[0]], list)
        )

    def _tables(self, subset: str, ours: str, part: Any) -> Iterator[TextTable]:
        """Yield the texts of one split: queries (and passages), or the columns of a table."""
        first, second = self.loaded.languages[subset]
        if self._searches:
            yield self._table(subset, ours, {QUERY: list(part["queries"]["text"])}, [first], ids=part["queries"]["id"])
            if self.passages:
                yield self._table(
                    subset, ours, {PASSAGE: passage_texts(part["corpus"])}, [second], ids=part["corpus"]["id"]
                )
            return
        names = text_columns(self.loaded.task, self.task)
        partners = {}
        if self.task == "summarisation":
            relevance = self.loaded.task.relevancy_column_name
            partners = {names[1]: {relevance: list(part[relevance])}}
        elif self._nested(part):
            label = self.loaded.task.label_column_name
            partners = {names[0]: {label: list(part[label])}}
        # A pair's first column has the first language; single texts and summaries have one language anyway.
        columns = {name: list(part[name]) for name in names}
        yield self._table(subset, ours, columns, [first, second], partners=partners)

    def _table(
        self,
        subset: str,
        ours: str,
        columns: Mapping[str, list[Any]],
        languages: Sequence[str],
        *,
        ids: Sequence[str] | None = None,
        partners: Mapping[str, Mapping[str, list[list[Any]]]] | None = None,
    ) -> TextTable:
        rows = len(next(iter(columns.values())))
        prefix = "" if subset == "default" else f"{subset}/"
        return TextTable(
            dataset=self.name,
            task=self.task,
            split=ours,
            items=[f"{prefix}{name}" for name in (range(rows) if ids is None else ids)],
            columns=columns,
            languages={name: [code] * rows for name, code in zip(columns, languages, strict=False)},
            partners=partners or {},
        )

    def _changed(self, subset: str, ours: str, part: Any, change: Change) -> Any:
        if not self._searches:
            (table,) = self._tables(subset, ours, part)
            return _with(part, table.replaced(change))
        part = dict(part)
        if self.passages:
            _, table = self._tables(subset, ours, part)
            replacement = table.replaced(change)
            columns = {"text": replacement.columns[PASSAGE]}
            if "title" in part["corpus"].column_names:
                columns["title"] = [""] * len(replacement.rows)
            _narrow(part, _with(part["corpus"], Replacement(columns, replacement.rows)))
        table = next(self._tables(subset, ours, part))
        replacement = table.replaced(change)
        part["queries"] = _with(part["queries"], Replacement({"text": replacement.columns[QUERY]}, replacement.rows))
        queries = set(part["queries"]["id"])
        for name in ("relevant_docs", "top_ranked"):
            if part[name] is not None:
                part[name] = {query: judged for query, judged in part[name].items() if query in queries}
        return _paired(part) if self.task == "instruction_reranking" else part


def load_mteb(spec: DatasetSpec) -> MtebTask:
    """Load an mteb task with its data. Raises as `generation.datasets.mteb_loading.load_task`."""
    loaded = load_task(spec)
    return MtebTask(spec.name, loaded.kind, loaded.revision, loaded, spec.passages)


def passage_texts(corpus: Any) -> list[str]:
    """Return the text that mteb embeds for each passage."""
    titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
    return [f"{title} {text}".strip() if title else text for title, text in zip(titles, corpus["text"], strict=True)]


def _narrow(part: dict[str, Any], corpus: Any) -> None:
    """Replace the corpus by a smaller one; drop judgements of lost passages, and queries without a relevant passage."""
    passages = set(corpus["id"])
    judged = part["relevant_docs"]
    relevant = {
        query: [name for name, value in judgements.items() if value > 0] for query, judgements in judged.items()
    }
    unanswerable = {query for query, wanted in relevant.items() if wanted and not passages.intersection(wanted)}
    part["corpus"] = corpus
    part["relevant_docs"] = {
        q: {p: v for p, v in judgements.items() if p in passages} for q, judgements in judged.items()
    }
    if part["top_ranked"] is not None:
        part["top_ranked"] = {
            query: [name for name in names if name in passages] for query, names in part["top_ranked"].items()
        }
    rows = [row for row, query in enumerate(part["queries"]["id"]) if query not in unanswerable]
    part["queries"] = part["queries"].select(rows)


def _paired(part: dict[str, Any]) -> dict[str, Any]:
    """Drop queries that lost their other instruction, or all passages that it changes."""
    queries, passages = set(part["queries"]["id"]), set(part["corpus"]["id"])
    changed = {query: [name for name in names if name in passages] for query, names in part["changed"].items()}
    complete = {query for query, names in changed.items() if names and {f"{query}-og", f"{query}-changed"} <= queries}
    ids = [query.removesuffix("-og").removesuffix("-changed") for query in part["queries"]["id"]]
    part["queries"] = part["queries"].select([row for row, query in enumerate(ids) if query in complete])
    part["changed"] = {query: names for query, names in changed.items() if query in complete}
    remaining = set(part["queries"]["id"])
    for name in ("relevant_docs", "top_ranked"):
        part[name] = {query: judged for query, judged in part[name].items() if query in remaining}
    return part


def _with(rows: Any, replacement: Replacement) -> Any:
    """Return a table with new cells in some columns, and some rows only; columns keep their types and order."""
    order = rows.column_names
    remaining = rows if len(replacement.rows) == len(rows) else rows.select(replacement.rows)
    for name, cells in replacement.columns.items():
        feature = remaining.features[name]
        remaining = remaining.remove_columns(name).add_column(name, cells, feature=feature)
    return remaining.select_columns(order)
