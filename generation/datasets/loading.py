"""Load any data set of a study, local or mteb's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from generation.datasets.dataset import Dataset
from generation.datasets.local import ColumnError, load_local
from generation.datasets.mteb_loading import task_of
from generation.datasets.mteb_tasks import load_mteb
from plumbline.errors import DataError
from plumbline.languages import language_pair
from plumbline.reading import with_lines
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, TaskType, Text, languages_of


def iter_datasets(study: Study) -> Iterator[Dataset]:
    """Yield the data sets of a study in its order, so that only one is in memory at a time.

    Raises DataError with the faults of all data sets, and else as `load_dataset`.
    """
    faults = list[str]()
    for number, spec in enumerate(study.datasets):
        try:
            yield load_dataset(spec, study.file.parent)
        except ColumnError as error:  # the file and the study differ, and the study's line is the one to correct
            faults += with_lines(study.file, [f"datasets.{number}: {fault}" for fault in error.args])
        except DataError as error:
            faults += error.args
    if faults:
        raise DataError(*faults)


def refuse_missing_files(study: Study) -> None:
    """Raise DataError with all local files of data sets, outputs and training that do not exist, each with its line."""
    paths = {f"datasets.{n}.path": study.resolve(spec.path) for n, spec in enumerate(study.datasets) if not spec.mteb}
    for number, kind in enumerate(study.transforming.values()):
        if kind.outputs and not kind.file:  # a file of its own names its outputs itself
            paths[f"transformations.{number}.outputs.path"] = kind.base / kind.outputs.path
    if study.training:
        paths["training"] = study.resolve(study.training)
    if faults := [f"{key}: no file {path}; correct it" for key, path in paths.items() if not path.exists()]:
        raise DataError(*with_lines(study.file, faults))


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
