"""Wordings that people wrote, in a file: a row each, for a data set or for all of a task type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from generation.datasets.table_files import read_frame, row_number
from generation.instructions.replies import InvalidReplyError, wording
from generation.instructions.tasks import TaskWords
from plumbline.errors import DataError, nearest
from plumbline.study import Study

COLUMNS = ("task", "prompt")
MOST = 1000  # wordings of one task: each is compared with each


@dataclass(frozen=True)
class Worded:
    """A wording for a data set, or, where `task` is empty, for all of a type."""

    text: str
    task: str
    task_type: str


def by_people(study: Study, path: str, tasks: Sequence[TaskWords]) -> Iterator[Worded]:
    """The file's rows, in its order. Raises DataError with file and row for what cannot be used."""
    file = study.resolve(path)
    if not file.is_file():
        raise DataError(f"no file {file}; correct `subject.prompts` in the study")
    frame = read_frame(file)
    for column in COLUMNS:
        if column not in frame.columns:
            raise DataError(f"{file}: no column {column!r}; {nearest(column, list(map(str, frame.columns)))}")
    if frame.empty:
        raise DataError(f"{file}: has no rows; give it wordings, or take `subject.prompts` out")
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
    return Worded(text, name, tasks[name].task_type) if name in tasks else Worded(text, "", name)
