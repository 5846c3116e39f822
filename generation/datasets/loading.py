"""Load any data set of a study, local or mteb's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from generation.datasets.dataset import Dataset
from generation.datasets.local import load_local
from generation.datasets.mteb_loading import task_of
from generation.datasets.mteb_tasks import load_mteb
from plumbline.languages import language_pair
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, TaskType, Text, languages_of


def iter_datasets(study: Study) -> Iterator[Dataset]:
    """Yield the data sets of a study in its order, so that only one is in memory at a time."""
    for spec in study.datasets:
        yield load_dataset(spec, study.file.parent)


def load_dataset(spec: DatasetSpec, base: Path) -> Dataset:
    """Load one data set; `base` is the folder that local paths are relative to.

    Raises DataError with file, row and field for unusable data, StudyError for settings that an mteb task does not
    allow, and ServiceError if the hub cannot be reached.
    """
    if spec.mteb:
        return load_mteb(spec)
    return load_local(spec, (base / spec.path).resolve())


def texts_in(spec: DatasetSpec, base: Path) -> set[Text]:
    """Return the languages and tasks of a data set's texts; mteb's registry tells them without loading data.

    Raises as `load_dataset`.
    """
    if not spec.mteb:
        return {(text.language, text.task_type) for text in load_dataset(spec, base).texts()}
    _, kind, _, pairs = task_of(spec)
    return {(code, kind) for pair in pairs.values() for code in languages_of(kind, pair, passages=spec.passages)}


def languages_in(texts: pd.Series[Any], codes: pd.Series[Any], task: TaskType) -> dict[str, int]:
    """Return the number of a table's texts in each language; `codes` are those of the rows, of pairs `en-de`."""
    by_language: dict[str, set[str]] = {}
    for name, text in zip(codes, texts.astype(str), strict=True):
        for code in languages_of(task, language_pair(name), passages=False):
            by_language.setdefault(code, set()).add(text)
    return {code: len(distinct) for code, distinct in by_language.items()}
