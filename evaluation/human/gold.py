"""What is right of the items that people saw, read from the data set when people and models are scored.

Nothing of it is in what raters are shown, nor in the records that come from them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from evaluation.human.sampled import Sampled
from generation.datasets.local import TableDataset
from generation.datasets.mteb_registry import gold_column
from generation.datasets.mteb_tasks import MtebTask
from plumbline.study.datasets import SEARCHES

COLUMNS = ("task", "subset", "language", "item", "candidate", "value", "label")


def gold_of(one: Sampled) -> pd.DataFrame:
    """The right answers of a sampled task, a row an item (of searches and summaries a candidate), as answers have them.

    Columns are `COLUMNS`: `item` is what is scored as one (`Sampled.units`), `value` the score, grade or mark, `label`
    the label as the data set has it (of several a JSON list in order; of bitext the item's own id).
    """
    rows = pd.DataFrame(_rows(one), columns=["item", "candidate", "value", "label"])
    named = {"task": one.task.task, "subset": one.subset, "language": one.language}
    return rows.assign(**named)[list(COLUMNS)]


def by_unit(one: Sampled, answers: pd.DataFrame) -> pd.DataFrame:
    """The answers (`human/answers.parquet`) to a sampled task, each under the unit that it is scored with.

    A summary is a candidate of its text then. Answers to items that give no score are left out.
    """
    own = answers[(answers["task"] == one.task.task) & answers["item"].isin(set(one.items))]
    if one.dataset.task != "summarisation":
        return own
    return own.assign(candidate=own["item"], item=own["item"].str.rsplit("/", n=2).str[0])


def _rows(one: Sampled) -> Iterator[tuple[str, str, float, str]]:
    """Item, candidate, value, label."""
    if one.dataset.task in SEARCHES:
        for item, judged in zip(one.items, one.judged, strict=True):
            yield from ((item, passage, float(value), "") for passage, value in judged.items())
        return
    column = _column(one)
    if one.dataset.task == "summarisation":
        places = [(unit, float(value)) for unit, values in zip(one.units, column, strict=True) for value in values]
        yield from ((unit, item, value, "") for item, (unit, value) in zip(one.items, places, strict=True))
        return
    nested = one.dataset.task == "clustering" and len(column) and isinstance(column[0], list)
    for item, value in zip(one.items, column[0] if nested else column, strict=False):
        yield item, "", *_answer(one, item, value)


def _answer(one: Sampled, item: str, value: Any) -> tuple[float, str]:
    kind = one.dataset.task
    if kind in ("sts", "str", "pair_classification"):
        return float(value), ""
    if kind == "multilabel_classification":
        return math.nan, json.dumps(sorted(map(str, value)), ensure_ascii=False)
    return math.nan, item if kind == "bitext_mining" else str(value)


def _column(one: Sampled) -> list[Any]:
    """What is right of each row of the scored split."""
    data = one.dataset
    if isinstance(data, MtebTask):
        (parts,) = data.loaded.task.dataset.values()
        return list(parts[data.loaded.split][gold_column(data.loaded.task, data.task)])
    if not isinstance(data, TableDataset):
        raise TypeError(f"no gold of {type(data).__name__}")
    names = {"sts": "score", "str": "score", "summarisation": "relevance", "bitext_mining": "sentence2"}
    return list(data.splits["test"][names.get(data.task, "label")])
