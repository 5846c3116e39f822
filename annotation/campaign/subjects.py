"""Subjects other than pairs of a transformation: the items that a study's subject gives."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pandas as pd

from annotation.campaign.rubric import Rubric
from annotation.human.forms import form_of
from annotation.human.records import HumanItem, HumanTask
from annotation.human.tasks import PreparedTask
from annotation.human.types import DrawnItem
from annotation.questions.question import Question
from generation.datasets.dataset import DatasetItem, items_of
from generation.datasets.loading import iter_datasets
from generation.datasets.tables import read_frame, row_of
from plumbline.errors import DataError, StudyError, nearest, read_each
from plumbline.fields import Kind, Value, fields_json, kind_of, messages, plain
from plumbline.identity import identity
from plumbline.languages import language_code
from plumbline.records import Pair, nfc
from plumbline.study import Study
from plumbline.study.subject import TEXT, Subject, VerdictUnit
from plumbline.study.subjects import InstructionsSubject, ItemsSubject, TextsSubject
from plumbline.words import shows

_WHAT = {"text": "a text", "chat": "a list of messages", "list": "a list of texts"}


@dataclass(frozen=True)
class SubjectItem:
    """An item that may be drawn."""

    group: str
    language: str  #: code
    output_language: str  #: of its second text; else the same
    dataset: str  #: the file or data set that it is of
    task_type: str
    fields: Mapping[str, Value]  #: those that the rubric shows, in the rubric's order
    distinct_by: tuple[str, ...] = ()  #: fields that tell items with equal texts apart
    expected: Mapping[str, Any] = field(default_factory=dict)  #: right answers by question, in their stored form
    systems: Mapping[str, str] = field(default_factory=dict)  #: the system behind each label of a choice
    maker: tuple[str, str] = ("", "")  #: its source, and the source's hash if there is one

    @functools.cached_property
    def key(self) -> str:
        """Its identity: equal items of a group are one."""
        parts = [self.group, self.language, self.output_language, dict(self.fields)]
        return identity("item-v1", *parts, *([dict(self.systems)] if self.systems else []))

    @property
    def text(self) -> str:
        """The text by which it is compared with others, without markup."""
        return "\n\n".join(plain(value) for name, value in self.fields.items() if name not in self.distinct_by)

    def pair(self, kind: VerdictUnit) -> Pair:
        """Return the item as a row of the sample, or, if right answers are known, of the controls."""
        is_known, key = bool(self.expected), self.key
        expected = {name: self.expected[name] for name in sorted(self.expected)}
        return Pair(
            pair_id=identity("known-v1", key, expected) if is_known else identity("pair-v1", key, ""),
            key=key,
            transformation=self.group,
            axis=kind.axis,
            pool=kind.pool,
            dataset=self.dataset,
            task_type=self.task_type,
            language=self.language,
            output_language=self.output_language,
            seed=0,
            control="known" if is_known else "",
            original="",
            transformed="",
            model=self.maker[0],
            generator_hash=self.maker[1],
            prompt_hash="",
            generator_kind=kind.axis,
            fields=fields_json(self.fields),
            expected=json.dumps(expected, ensure_ascii=False) if is_known else "",
            systems=json.dumps(self.systems, ensure_ascii=False) if self.systems else "",
            queue=kind.queue,
        )


def field_value(cell: Any, kind: Kind, location: str) -> Value:
    """A cell (a list or a chat as JSON) as a field's value, in NFC. Raises DataError, with `location`, for another."""
    if kind != "text" and isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except ValueError:
            raise DataError(f"{location} is not a {kind}; give {_WHAT[kind]}, in a CSV file as JSON") from None
    if kind == "text":
        if not isinstance(cell, str) or not shows(cell) or "\0" in cell:
            raise DataError(f"{location} has no text; give it one, or remove the row")
        return nfc(cell)
    if kind == "chat":
        if fault := messages(cell):
            raise DataError(f"{location} {fault}; a chat is a list like [{{role: user, content: Hello}}]")
        return [{name: nfc(part) for name, part in message.items()} for message in cell]
    if not isinstance(cell, list) or not cell or not all(isinstance(entry, str) and shows(entry) for entry in cell):
        raise DataError(f"{location} is not a list of texts; every entry must be a text")
    return [nfc(entry) for entry in cell]


def right_answer(cell: Any, question: Question, location: str) -> Any:
    """Return a cell of right answers in the form of stored answers; None for an empty one.

    Raises DataError for a cell that is not an answer to the question.
    """
    if cell is None or cell != cell or (isinstance(cell, str) and not shows(cell)):  # noqa: PLR0124 (NaN)
        return None
    try:
        return question.right(cell.strip() if isinstance(cell, str) else cell)
    except ValueError as error:
        raise DataError(f"{location}: {error}") from None


class ItemReader:
    """A reader of a subject's items; here of pairs, which are drawn from outputs and are no items of a file."""

    def __init__(self, study: Study, rubric: Rubric) -> None:
        self._study, self._rubric = study, rubric

    def items(self) -> Iterator[SubjectItem | str]:
        """Yield the items in their order; for one without a text that raters must see, its group's name.

        Raises DataError or StudyError for what cannot be judged.
        """
        raise StudyError(
            f"{self._study.file}: the study's subject is pairs, which are drawn from outputs and not read as items"
        )


class RowReader(ItemReader):
    """The rows of a file as items, rows with right answers among them. Errors name file, row and field."""

    def __init__(self, study: Study, rubric: Rubric) -> None:
        super().__init__(study, rubric)
        self._subject = cast("TextsSubject | InstructionsSubject", study.judging)
        self._path = self._subject.file_of(study)
        self._asked = {question.name: question for question in rubric.asked()}

    def items(self) -> Iterator[SubjectItem]:
        """Yield the file's items. Raises DataError."""
        frame, right = self._frame(), dict[str, Any]()

        def read(row: tuple[Any, dict[Any, Any]]) -> SubjectItem:
            location = row_of(self._path, row[0])
            item = self._item(location, row[1])
            if item.expected and right.setdefault(item.key, item.expected) != item.expected:
                raise DataError(f"{location}: the same text has other right answers in an earlier row; keep one")
            return item

        items = read_each(zip(frame.index, frame.to_dict("records"), strict=True), read)
        yield from items
        filled = {item.group for item in items if not item.expected}
        if empty := [name for name in self._subject.groups if name not in filled]:
            raise DataError(
                f"{self._path}: has no text of the group {empty[0]!r}; add one, or remove the group from"
                " `subject.groups`"
            )

    def _frame(self) -> pd.DataFrame:
        """Return the file's rows, which have all columns that the subject names."""
        subject, path = self._subject, self._path
        if not path.is_file():
            raise DataError(self._subject.missing_file(self._study, path))
        frame = read_frame(path)
        if frame.empty:
            raise DataError(f"{path}: has no rows; give it texts")
        columns = {
            "text": subject.text,
            **({"group": subject.group} if subject.group else {}),
            **{f"context.{name}": column for name, column in subject.context.items()},
            **{f"expected.{name}": column for name, column in subject.expected.items()},
            **{f"systems.{label}": column for label, column in subject.systems.items()},
        }
        for key, column in columns.items():
            if column not in frame.columns:
                hint = nearest(column, [str(name) for name in frame.columns])
                raise DataError(f"{path}: no column {column!r}; {hint} (`subject.{key}` names it)")
        return frame

    def _item(self, location: str, cells: dict[Any, Any]) -> SubjectItem:
        subject = self._subject
        columns = {TEXT: subject.text, **subject.context}
        fields = {
            field.name: field_value(
                cells[columns[field.name]], field.kind, f"{location}, field {columns[field.name]!r}"
            )
            for field in self._rubric.fields.shown
        }
        answers = {
            name: right_answer(cells[column], self._asked[name], f"{location}, field {column!r}")
            for name, column in subject.expected.items()
        }
        systems = {
            label: str(field_value(cells[column], "text", f"{location}, field {column!r}")).strip()
            for label, column in subject.systems.items()
        }
        language = self._language(cells.get("language"), location)
        return SubjectItem(
            group=self._group(cells, location),
            language=language,
            output_language=language,
            dataset=self._path.stem[:100],
            task_type=subject.kind,
            fields=fields,
            distinct_by=tuple(subject.context),
            expected={name: answer for name, answer in answers.items() if answer is not None},
            systems=systems,
            maker=(self._path.name, ""),
        )

    def _group(self, cells: dict[Any, Any], location: str) -> str:
        groups = self._subject.groups
        if not self._subject.group:
            return groups[0]
        cell = cells[self._subject.group]
        name = cell.strip() if isinstance(cell, str) else str(cell)
        if name not in groups:
            hint = nearest(name, list(groups))
            raise DataError(f"{location}, field {self._subject.group!r}: no group is called {name[:60]!r}; {hint}")
        return name

    def _language(self, cell: Any, location: str) -> str:
        if cell is None or pd.isna(cell) or not str(cell).strip():
            return self._subject.language
        try:
            return language_code(str(cell))
        except StudyError as error:
            raise DataError(f"{location}, field 'language': {error}") from None


class DatasetReader(ItemReader):
    """The items of all data sets, in order."""

    def items(self) -> Iterator[SubjectItem | str]:
        """Yield the items.

        Raises StudyError for a field that no item of a data set has, and what `load_dataset` raises.
        """
        for dataset in iter_datasets(self._study):
            wanted = {field.name: field.kind for field in self._rubric.fields.of(dataset.name)}
            items = list(items_of(dataset, ItemsSubject.candidates))
            self._refuse_unlike(dataset.name, wanted, items)
            for item in items:
                if not set(wanted) <= set(item.fields):
                    yield dataset.name
                    continue
                yield SubjectItem(
                    group=dataset.name,
                    language=item.language,
                    output_language=item.output_language,
                    dataset=dataset.name,
                    task_type=dataset.task,
                    fields={name: item.fields[name] for name in wanted},
                    maker=(dataset.name, dataset.revision),
                )

    def _refuse_unlike(self, group: str, wanted: Mapping[str, Kind], items: Sequence[DatasetItem]) -> None:
        """Raise StudyError if the rubric shows a field that the items do not have."""
        kinds = {name: kind_of(value) for item in items for name, value in item.fields.items()}
        for name, kind in wanted.items():
            if kinds.get(name) != kind:
                has = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
                raise StudyError(
                    f"{self._study.file}: rubric {self._rubric.name!r} shows the field {name!r} ({kind}), but items of"
                    f" {group!r} have {has}; correct the rubric's `fields`, or limit the field with `pools` to other"
                    " data sets"
                )


#: The readers of subjects' items; of other subjects none are read.
READERS: Mapping[type[Subject], type[ItemReader]] = {
    TextsSubject: RowReader,
    InstructionsSubject: RowReader,
    ItemsSubject: DatasetReader,
}


def read_items(study: Study, rubric: Rubric) -> tuple[list[SubjectItem], Counter[str]]:
    """All items of a subject, in their order, each once; and by group how many lack a text that raters must see.

    Raises DataError or StudyError for what cannot be judged.
    """
    n_incomplete, items = Counter[str](), list[SubjectItem]()
    for item_or_group in READERS.get(type(study.judging), ItemReader)(study, rubric).items():
        if isinstance(item_or_group, str):
            n_incomplete[item_or_group] += 1
        else:
            items.append(item_or_group)
    return list({(item.key, bool(item.expected)): item for item in reversed(items)}.values())[::-1], n_incomplete


def shown_items(prepared: PreparedTask, kind: VerdictUnit) -> Iterator[tuple[HumanItem, list[Pair]]]:
    """Yield each item of a task with its records as raters see them, without gold."""
    task = prepared.task
    for chosen in prepared.drawn.items:
        records, of_task = [item.pair(kind) for item in _items(task, chosen)], chosen.scored
        ids = [record.pair_id for record in records]
        if form_of(task).per_candidate:
            ids = [pair_id for _, pair_id in sorted(zip(chosen.shown, ids, strict=True))]
        item = HumanItem(
            task=task.task,
            subset=of_task.subset,
            item=of_task.item,
            language=of_task.language,
            shown=chosen.shown,
            records=tuple(ids),
        )
        yield item, records


def _items(task: HumanTask, chosen: DrawnItem) -> Iterator[SubjectItem]:
    """Yield an item for each record: with all its candidates, or with one of them."""
    item, per_candidate = chosen.scored, form_of(task).per_candidate
    texts = [item.candidates[name] for name in chosen.shown]
    candidates: list[dict[str, Value]] = [{"candidates": texts}] if texts else [{}]
    if per_candidate:
        candidates = [{"passage": text} for text in texts]
    for more in candidates:
        values: dict[str, Value] = {**item.fields, **more}
        yield SubjectItem(
            group=task.task,
            language=item.language,
            output_language=item.output_language,
            dataset=task.dataset,
            task_type=task.task_type,
            fields={name: values[name] for name in task.kind.fields_with(per_candidate=per_candidate)},
            maker=(task.source[:200], task.revision[:200]),
        )
