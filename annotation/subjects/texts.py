"""The texts of a file, a row each, with their groups and what raters see beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from annotation.rubric import Rubric
from annotation.subjects.item import Item, field_value, right_answer
from generation.datasets.table_files import read_frame, row_number
from plumbline.errors import DataError, StudyError, nearest
from plumbline.languages import language_code
from plumbline.study import Study
from plumbline.study.subject import TEXT, InstructionsSubject, TextsSubject


def read_texts(study: Study, subject: TextsSubject | InstructionsSubject, rubric: Rubric) -> list[Item]:
    """The file's items, in its order; rows with right answers among them. Raises DataError with file, row and field."""
    path = subject.file(study)
    if not path.is_file() and isinstance(subject, InstructionsSubject):
        raise DataError(f"{path} is not there yet; run `{study.command('generation.instructions')}` first")
    if not path.is_file():
        raise DataError(f"subject: no file {path}; correct `path` in the study")
    frame = read_frame(path)
    if frame.empty:
        raise DataError(f"{path}: has no rows; give it texts")
    columns = {
        "text": subject.text,
        **({"group": subject.group} if subject.group else {}),
        **{f"context.{name}": column for name, column in subject.context.items()},
        **{f"expected.{name}": column for name, column in subject.expected.items()},
    }
    for key, column in columns.items():
        if column not in frame.columns:
            hint = nearest(column, [str(known) for known in frame.columns])
            raise DataError(f"{path}: no column {column!r}; {hint} (`subject.{key}` names it)")
    reader = _Rows(subject, rubric, path)
    items = [reader.item(row, cells) for row, cells in zip(frame.index, frame.to_dict("records"), strict=True)]
    right = dict[str, Any]()
    for row, item in zip(frame.index, items, strict=True):
        if item.expected and right.setdefault(item.key, item.expected) != item.expected:
            raise DataError(
                f"{path}: row {row_number(row)}: the same text has other right answers in an earlier row; keep one"
            )
    there = {item.group for item in items if not item.expected}
    if empty := [name for name in subject.groups if name not in there]:
        raise DataError(f"{path}: has no text of the group {empty[0]!r}; add some, or take it out of `subject.groups`")
    return items


class _Rows:
    """The rows of a file as items."""

    def __init__(self, subject: TextsSubject | InstructionsSubject, rubric: Rubric, path: Path) -> None:
        self._subject, self._path = subject, path
        self._asked = {one.name: one for one in rubric.asked()}
        self._shown = [(one.name, one.kind) for one in rubric.fields.shown]

    def item(self, row: Any, cells: dict[Any, Any]) -> Item:
        subject, where = self._subject, f"{self._path}: row {row_number(row)}"
        columns = {TEXT: subject.text, **subject.context}
        fields = {
            name: field_value(cells[columns[name]], kind, f"{where}, field {columns[name]!r}")
            for name, kind in self._shown
        }
        answers = {
            name: right_answer(cells[column], self._asked[name], f"{where}, field {column!r}")
            for name, column in subject.expected.items()
        }
        language = self._language(cells.get("language"), where)
        return Item(
            group=self._group(cells, where),
            language=language,
            output_language=language,
            dataset=self._path.stem[:100],
            task_type=subject.kind,
            fields=fields,
            apart=tuple(subject.context),
            expected={name: answer for name, answer in answers.items() if answer is not None},
            maker=(self._path.name, ""),
        )

    def _group(self, cells: dict[Any, Any], where: str) -> str:
        groups = self._subject.groups
        if not self._subject.group:
            return groups[0]
        found = cells[self._subject.group]
        name = found.strip() if isinstance(found, str) else str(found)
        if name not in groups:
            known = nearest(name, list(groups))
            raise DataError(f"{where}, field {self._subject.group!r}: no group is called {name[:60]!r}; {known}")
        return name

    def _language(self, cell: Any, where: str) -> str:
        if cell is None or pd.isna(cell) or not str(cell).strip():
            return self._subject.language
        try:
            return language_code(str(cell))
        except StudyError as error:
            raise DataError(f"{where}, field 'language': {error}") from None
