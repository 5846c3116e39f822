"""Columns of a local file whose cells are lists of something else than texts, checked and in one form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from generation.datasets.table_files import label_of, row_number, texts_of
from plumbline.errors import DataError
from plumbline.study.datasets import TaskType


def _labels(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Lists of labels as texts; a text may have none."""
    column = frame["label"]
    for row, value in column.items():
        if not isinstance(value, list):
            raise DataError(f"{path}: row {row_number(row)}, field 'label' is not a list of labels: {value!r}")
    made = [[label_of(label, path, row) for label in labels] for row, labels in column.items()]
    return pd.Series(made, index=column.index, dtype=object)


def _changed(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Of each positive passage whether the changed instruction makes it irrelevant."""
    made = []
    for row, changed, positive in zip(frame.index, frame["changed"], frame["positive"], strict=True):
        foreign = [text for text in texts_of(changed, path, row, "changed") if text not in positive]
        if foreign:
            where = f"{path}: row {row_number(row)}, field 'changed'"
            raise DataError(f"{where} holds a text that 'positive' does not: {foreign[0][:60]!r}")
        made.append([text in changed for text in positive])
    return pd.Series(made, index=frame.index, dtype=object)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _relevance(frame: pd.DataFrame, path: Path) -> pd.Series[Any]:
    """Lists of numbers, one for each machine summary."""
    made = []
    for row, values, summaries in zip(frame.index, frame["relevance"], frame["machine_summaries"], strict=True):
        wanted = len(summaries)
        given = values if isinstance(values, list) else []
        if len(given) != wanted or not all(map(_finite, given)):
            raise DataError(
                f"{path}: row {row_number(row)}, field 'relevance' is not a list of {wanted} numbers, one"
                " a machine summary"
            )
        made.append([float(value) for value in given])
    return pd.Series(made, index=frame.index, dtype=object)


# The column of each task that has one, and what makes it of a frame, or raises DataError with file, row and field.
LISTS: Mapping[TaskType, tuple[str, Callable[[pd.DataFrame, Path], pd.Series[Any]]]] = {
    "multilabel_classification": ("label", _labels),
    "summarisation": ("relevance", _relevance),
    "instruction_reranking": ("changed", _changed),
}
