"""One item of a subject: what raters read, of which group it is, and its right answers where they are known."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.questions import Asked
from plumbline.errors import DataError
from plumbline.fields import Kind, Value, kept, messages, plain
from plumbline.identity import identity
from plumbline.records import Pair, nfc
from plumbline.study.judged import Judged
from plumbline.study.subject import Group
from plumbline.words import shows

_WHAT = {"text": "a text", "chat": "a list of messages", "list": "a list of texts"}


@dataclass(frozen=True)
class Item:
    """An item that may be drawn."""

    group: str
    language: str  #: code
    output_language: str  #: of its second text; else the same
    dataset: str  #: the file or data set that it is of
    task_type: str
    fields: Mapping[str, Value]  #: those that the rubric shows, in its order
    apart: tuple[str, ...] = ()  #: fields by which it is another item where its text is the same
    expected: Mapping[str, Any] = field(default_factory=dict)  #: right answers by question, as they are kept
    maker: tuple[str, str] = ("", "")  #: where it comes from, and a hash of that where there is one

    @property
    def key(self) -> str:
        """Its identity: equal items of a group are one."""
        return identity("item-v1", self.group, self.language, self.output_language, dict(self.fields))

    @property
    def text(self) -> str:
        """What it is compared by with others, as plain text."""
        return "\n\n".join(plain(value) for name, value in self.fields.items() if name not in self.apart)

    def pair(self, kind: Judged) -> Pair:
        """As a row of the sample, or, where right answers are known, of the controls."""
        known, key = bool(self.expected), self.key
        expected = {name: self.expected[name] for name in sorted(self.expected)}
        return Pair(
            pair_id=identity("known-v1", key, expected) if known else identity("pair-v1", key, ""),
            key=key,
            transformation=self.group,
            axis=kind.axis,
            pool=kind.pool,
            dataset=self.dataset,
            task_type=self.task_type,
            language=self.language,
            output_language=self.output_language,
            seed=0,
            control="known" if known else "",
            original="",
            transformed="",
            model=self.maker[0],
            generator_hash=self.maker[1],
            prompt_hash="",
            generator_kind=kind.axis,
            fields=kept(self.fields),
            expected=json.dumps(expected, ensure_ascii=False) if known else "",
            queue=kind.queue if isinstance(kind, Group) else "",
        )


def field_value(cell: Any, kind: Kind, where: str) -> Value:
    """A cell as a field's value, in NFC. Raises DataError for what is none; `where` names file, row and field.

    Lists and chats in tables of text stand there as JSON.
    """
    if kind != "text" and isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except ValueError:
            raise DataError(f"{where} is no {kind}: it takes {_WHAT[kind]}, in a CSV file as JSON") from None
    if kind == "text":
        if not isinstance(cell, str) or not shows(cell) or "\0" in cell:
            raise DataError(f"{where} has no text; give it one, or remove the row")
        return nfc(cell)
    if kind == "chat":
        if wrong := messages(cell):
            raise DataError(f"{where} {wrong}; a chat is a list like [{{role: user, content: Hello}}]")
        return [{name: nfc(part) for name, part in one.items()} for one in cell]
    if not isinstance(cell, list) or not cell or not all(isinstance(one, str) and shows(one) for one in cell):
        raise DataError(f"{where} is not a list of texts; every entry needs one")
    return [nfc(one) for one in cell]


def right_answer(cell: Any, asked: Asked, where: str) -> Any:
    """A cell of a column of right answers in the form in which answers are kept; None where it is empty.

    Raises DataError for what is no answer to the question.
    """
    if cell is None or cell != cell or (isinstance(cell, str) and not shows(cell)):  # noqa: PLR0124 (NaN)
        return None
    value = cell.strip() if isinstance(cell, str) else cell
    if asked.kind == "rating" and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError):
            value = int(value) if float(value).is_integer() else value
    elif isinstance(value, Sequence) and not isinstance(value, str):
        value = ", ".join(map(str, value))
    value = asked.kept(value if isinstance(value, int) else str(value))
    if wrong := asked.wrong(value):
        raise DataError(f"{where}: {wrong}")
    return value
