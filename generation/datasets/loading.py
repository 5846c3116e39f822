"""Any data set of a study, whichever way it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from generation.datasets.dataset import Dataset
from generation.datasets.local import load_local
from generation.datasets.mteb_registry import task_of
from generation.datasets.mteb_tasks import load_mteb
from plumbline.languages import language_pair
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, TaskType, Text, languages_of


def iter_datasets(study: Study) -> Iterator[Dataset]:
    """The data sets of a study one by one, in its order, so that one is in memory at a time."""
    for spec in study.datasets:
        yield load_dataset(spec, study.file.parent)


def load_dataset(spec: DatasetSpec, base: Path) -> Dataset:
    """One data set; `base` is the folder that local paths are relative to.

    Raises DataError with file, row and field for what cannot be used, StudyError for what cannot be asked of an mteb
    task, and ServiceError where the hub cannot be reached.
    """
    if spec.mteb:
        return load_mteb(spec)
    return load_local(spec, (base / spec.path).resolve())


def texts_in(spec: DatasetSpec, base: Path) -> set[Text]:
    """The languages and tasks of the texts of a data set: of mteb's by its registry, without their data.

    Raises as `load_dataset`.
    """
    if not spec.mteb:
        return {(text.language, text.task_type) for text in load_dataset(spec, base).texts()}
    _, kind, _, pairs = task_of(spec)
    return {(code, kind) for pair in pairs.values() for code in languages_of(kind, pair, passages=spec.passages)}


def languages_in(frame: pd.DataFrame, column: str, task: TaskType, language: str) -> dict[str, int]:
    """How many texts of a table's `column` are in each language: its column `language` says it, or else `language`."""
    named = frame["language"].fillna("").astype(str).str.strip() if "language" in frame else [""] * len(frame)
    texts: dict[str, set[str]] = {}
    for name, text in zip(named, frame[column].astype(str), strict=True):
        for code in languages_of(task, language_pair(name or language), passages=False):
            texts.setdefault(code, set()).add(text)
    return {code: len(distinct) for code, distinct in texts.items()}
