"""Wordings that people wrote, in a file: a row each, for a data set or for all of a task type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from generation.datasets.table_files import read_frame, row_number
from generation.instructions.replies import InvalidReplyError, wording
from generation.instructions.tasks import TaskWords
from plumbline.errors import DataError, nearest
from plumbline.study import Study

COLUMNS = ("task", "prompt")
Label = Literal["acceptable", "irrelevant", "unnatural"]  # arXiv 2605.22544
LABELS: tuple[Label, ...] = get_args(Label)
MOST = 1000  # wordings of one task: each is compared with each


@dataclass(frozen=True)
class Worded:
    """A wording for a data set, or, where `task` is empty, for all of a type."""

    text: str
    task: str
    task_type: str
    right: str = ""  #: the label that is certain, of a known item


def by_people(study: Study, key: str, tasks: Sequence[TaskWords]) -> Iterator[Worded]:
    """The rows of the file that a key of the subject names, in its order; those of `known` have their right label.

    Raises DataError with file and row for what cannot be used.
    """
    file, columns = study.resolve(getattr(study.subject, key)), (*COLUMNS, *(["label"] if key == "known" else []))
    if not file.is_file():
        raise DataError(f"no file {file}; correct `subject.{key}` in the study")
    frame = read_frame(file)
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{file}: no column {column!r}; {nearest(column, list(map(str, frame.columns)))}")
    if frame.empty:
        raise DataError(f"{file}: has no rows; give it wordings, or take `subject.{key}` out")
    name, most = frame["task"].astype(str).str.strip().value_counts().agg(["idxmax", "max"])
    if most > MOST:
        raise DataError(f"{file}: {most:,} wordings for {name[:60]!r}; {MOST:,} are enough, for people label each")
    for row, cells in zip(frame.index, frame.to_dict("records"), strict=True):
        yield _worded(cells, f"{file}: row {row_number(row)}", {one.name: one for one in tasks})


def _worded(cells: Mapping[object, object], where: str, tasks: Mapping[str, TaskWords]) -> Worded:
    name, types = str(cells["task"]).strip(), {one.task_type for one in tasks.values()}
    if name not in tasks and name not in types:
        raise DataError(
            f"{where}, field 'task': the study has no data set, and no type of task, {name[:60]!r};"
            f" {nearest(name, [*tasks, *types])}"
        )
    try:
        text = wording(str(cells["prompt"]))
    except InvalidReplyError as error:
        raise DataError(f"{where}, field 'prompt': {error}") from None
    right = str(cells["label"]).strip() if "label" in cells else ""
    if "label" in cells and right not in LABELS:
        raise DataError(f"{where}, field 'label': no label {right[:60]!r}; {nearest(right, list(LABELS))}")
    return Worded(text, name, tasks[name].task_type, right) if name in tasks else Worded(text, "", name, right)
