"""The content of a task, in one form for all types: items with texts and gold, and searches; and the checks.

The checks are listed in the order of their table, with the values for `look` and `fail`. `fail` means that mteb's own
test of new tasks fails, or that no score is possible; `look` asks a person to review. In the end people decide about
both: MMTEB examines a task that fails. Thresholds of our own are marked as such.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from evaluation.tasks.kinds import KINDS, TaskScorer, TextPart, label_names
from evaluation.tasks.scoring import make_task
from evaluation.units import ScoreUnit
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class CheckedTask:
    """A task to check: a data set, untransformed or with an accepted transformation.

    `name` is the data set's, followed by transformation and seed if any; `unit` is the study's unit of scoring.
    """

    name: str
    dataset: Dataset
    unit: ScoreUnit | None = None


@dataclass(frozen=True)
class ContentPart:
    """Items of one kind (`noun`, such as texts, pairs, queries) in one split of one subset.

    `texts` has the text or texts of each item. `gold` is empty if items have none.
    """

    subset: str
    split: str
    noun: str
    items: Sequence[str]
    texts: Sequence[tuple[str, ...]]
    gold: Sequence[Any] = ()

    @property
    def label(self) -> str:
        """The split, and the subset if it has a name."""
        return f"split {self.split}" + ("" if self.subset in ("", "default") else f", subset {self.subset}")


@dataclass(frozen=True)
class Search:
    """The searches of a subset; `relevant` has judgements by query.

    `ignores_own_id` tells whether a passage with a query's id is left out of its results.
    """

    subset: str
    queries: Sequence[str]
    passages: frozenset[str]
    relevant: Mapping[str, Mapping[str, int]]
    ignores_own_id: bool


@dataclass(frozen=True)
class Contents:
    """A task's parts and searches."""

    kind: TaskScorer
    parts: Sequence[ContentPart]
    searches: Sequence[Search] = ()

    @property
    def scored(self) -> list[ContentPart]:
        """The parts of the scored split."""
        return [part for part in self.parts if part.split == TEST]


def contents_of(dataset: Dataset) -> Contents:
    """Return the content of a data set, as in mteb's task object."""
    kind, task = KINDS[dataset.task], make_task(dataset, "mteb")
    parts, searches = list[ContentPart](), list[Search]()
    (scored,) = task.eval_splits
    splits = ({TRAIN: task.train_split} if kind.trained and task.train_split != scored else {}) | {TEST: scored}
    for subset, data in task.dataset.items():
        for ours, name in splits.items():
            parts += [_part(subset, ours, text_part, data[name]) for text_part in kind.parts(task)]
            if not kind.parts(task):
                parts += _search_parts(subset, ours, data[name])
                queries, corpus = list(data[name]["queries"]["id"]), frozenset(data[name]["corpus"]["id"])
                searches.append(Search(subset, queries, corpus, data[name]["relevant_docs"], task.ignore_identical_ids))
    if isinstance(dataset, TableDataset) and (names := label_names(dataset)):
        parts = [dataclasses.replace(part, gold=[names[number] for number in part.gold]) for part in parts]
    return Contents(kind, parts, searches)


def _part(subset: str, split: str, text_part: TextPart, rows: Any) -> ContentPart:
    """Return the items of one part of a split; lists of texts become one list, with items named by row and place."""
    columns = [list(rows[name]) for name in text_part.columns]
    gold = list(rows[text_part.gold]) if text_part.gold else []
    if columns[0] and isinstance(columns[0][0], list):
        (cells,) = columns
        items = [f"{row}/{position}" for row, cell in enumerate(cells) for position in range(len(cell))]
        texts = [(_text(text),) for cell in cells for text in cell]
        return ContentPart(subset, split, text_part.noun, items, texts, list(itertools.chain.from_iterable(gold)))
    rows_of_texts = list(zip(*(map(_text, column) for column in columns), strict=True))
    return ContentPart(subset, split, text_part.noun, list(map(str, range(len(columns[0])))), rows_of_texts, gold)


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)


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


Verdict = Literal["pass", "look", "fail"]


@dataclass(frozen=True)
class Threshold:
    """The limits of a check's value for look and fail, on the side that `worse` names."""

    meaning: str  #: of the value
    look: float
    fail: float
    source: str
    worse: Literal["above", "below"] = "above"
    share: bool = False

    def verdict(self, value: float, fails: float | None = None) -> Verdict:
        """Return pass, look or fail; an undefined value (NaN) never passes: it gives at least "look".

        `fails` is the value for the limit of failing, if it is another one.
        """
        if self._beyond(value if fails is None else fails, self.fail):
            return "fail"
        return "look" if math.isnan(value) or self._beyond(value, self.look) else "pass"

    def _beyond(self, value: float, limit: float) -> bool:
        return value > limit if self.worse == "above" else value < limit

    @property
    def words(self) -> str:
        """The threshold in words, for the table."""
        limits = [
            f"'{verdict}' {self.worse} {limit:.0%}" if self.share else f"'{verdict}' {self.worse} {limit:g}"
            for verdict, limit in (("look", self.look), ("fail", self.fail))
            if math.isfinite(limit)
        ]
        return f"{': '.join(filter(None, [self.meaning, ', '.join(limits)]))} ({self.source})"


_MTEB = "mteb's test of new tasks"
_OURS = "Plumbline's own threshold"
_NO_NUMBER = f"{_OURS}, as MMTEB, 2.2, gives no number"
THRESHOLDS = {
    "items": Threshold("items in the smallest scored part", 1, 1, _MTEB, "below"),
    "duplicates": Threshold("share of items that repeat an earlier one of their split", 0, 0.01, _MTEB, share=True),
    "leakage": Threshold("share of scored items that are in the train split", 0, 0, _MTEB, share=True),
    "conflicts": Threshold("share of items whose text has a different gold elsewhere", 0, 0.01, _OURS, share=True),
    "labels": Threshold("smallest number of labels in any part", 2, 2, _MTEB, "below"),
    "constant_gold": Threshold("smallest number of distinct gold values in any part", 2, 2, _MTEB, "below"),
    "empty_texts": Threshold("items with a text without visible characters", 0, 0, _MTEB),
    "short_texts": Threshold("items with a text of at most 3 characters", 0, math.inf, _MTEB),
    "without_relevant": Threshold("scored queries without a relevant passage", 0, 0, _MTEB),
    "missing_passages": Threshold("judged passages that are not in the corpus", 0, 0, _MTEB),
    "random": Threshold("score minus the random baseline's ('look' by the weakest model's score, 'fail' by the best's)",
                        0.02, 0.02, "MMTEB, 2.2: within 2 points", "below"),
    "near_perfect": Threshold("score ('look' by the best model's score, 'fail' by the weakest's)", 0.95, 0.95,
                              _NO_NUMBER),
    "equal_scores": Threshold("the best model's score minus the weakest's", 0.02, 1e-9,
                              f"'look': {_OURS}; 'fail': MMTEB, 2.4", "below"),
}  # fmt: skip

_SHOWN = 200  # most characters of a text in a file of rows
ROWS = ("subset", "split", "part", "item", "text", "detail")


@dataclass(frozen=True)
class Finding:
    """A check's verdict on a task, with the reason; `value` is NaN if it is undefined."""

    check: str
    verdict: Verdict
    value: float
    reason: str
    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(ROWS)))

    @property
    def threshold(self) -> str:
        """The check's threshold in words."""
        return THRESHOLDS[self.check].words


def finding(
    check: str, value: float, reason: str, rows: pd.DataFrame | None = None, *, fails: float | None = None
) -> Finding:
    """Return a finding by the check's threshold (`Threshold.verdict`)."""
    verdict = THRESHOLDS[check].verdict(value, fails)
    return Finding(check, verdict, value, reason) if rows is None else Finding(check, verdict, value, reason, rows)


def undefined(check: str, reason: str) -> Finding:
    """Return a finding with an undefined value, which never passes."""
    return finding(check, math.nan, f"not known: {reason}", fails=math.nan)


def flagged(parts: Sequence[ContentPart], details: Sequence[Mapping[int, str]]) -> tuple[int, pd.DataFrame]:
    """Return how many items have a detail (by position, for each part), and their rows; long texts are cut."""
    rows = [
        {"subset": part.subset, "split": part.split, "part": part.noun, "item": part.items[index]}
        | {"text": " | ".join(map(str, part.texts[index]))[:_SHOWN], "detail": detail}
        for part, of_part in zip(parts, details, strict=True)
        for index, detail in of_part.items()
    ]
    return len(rows), pd.DataFrame(rows, columns=list(ROWS))
