"""The fields that raters read of a pair, in order, whatever the pair's subject.

A pair of a transformation has two: `original` and `transformed`. `Pair.fields` holds those of other subjects as JSON (a
text with its context, the texts of a task's item); the type of a value tells its kind. All code that shows, counts or
compares fields calls `fields_of`; only this module knows where they are stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from plumbline.records import Pair

Kind = Literal["text", "chat", "list"]
Value = str | list[str] | list[dict[str, str]]
PAIR = ("original", "transformed")  # fields of a transformation's pair
SECOND = ("transformed", "sentence2", "candidates", "passage")  # fields in the item's second language, where it has two
ROLE, CONTENT = "role", "content"  # keys of a chat message


@dataclass(frozen=True)
class Field:
    """One field of a pair."""

    name: str
    value: Value
    language: str  #: code

    @property
    def kind(self) -> Kind:
        """The kind of the value: a text, a chat (messages with role and content), or a list of texts."""
        return kind_of(self.value)

    @property
    def text(self) -> str:
        """The value as plain text: messages with their roles, entries with their numbers."""
        return plain(self.value)


def fields_of(pair: Pair) -> list[Field]:
    """Return the fields that raters read of a pair."""
    values = json.loads(pair.fields) if pair.fields else {name: getattr(pair, name) for name in PAIR}
    return [
        Field(name, value, pair.output_language if name in SECOND else pair.language) for name, value in values.items()
    ]


def fields_json(values: Mapping[str, Value]) -> str:
    """Return values in the form of `Pair.fields`."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def kind_of(value: Value) -> Kind:
    """Return the kind of a value."""
    if isinstance(value, str):
        return "text"
    return "chat" if value and isinstance(value[0], dict) else "list"


def plain(value: Value) -> str:
    """Return a value as plain text."""
    if isinstance(value, str):
        return value
    lines = [
        f"{message[ROLE]}: {message[CONTENT]}" if isinstance(message, dict) else f"{number}. {message}"
        for number, message in enumerate(value, 1)
    ]
    return "\n\n".join(lines)


def columns_read(pairs: pd.DataFrame) -> list[pd.Series]:
    """Return the columns of text that raters read in a frame of `Pair` rows; `fields` becomes one, as plain text."""
    columns = [pairs[name] for name in PAIR]
    if "fields" in pairs and (has := pairs["fields"].astype(str) != "").any():
        texts = pd.Series("", index=pairs.index, dtype=object)
        values = pairs.loc[has, "fields"].astype(str).map(json.loads)
        texts[has] = values.map(lambda fields: "\n\n".join(map(plain, fields.values())))
        columns.append(texts)
    return columns


def expected_of(pair: Pair) -> dict[str, Any]:
    """Return the right answers of a known item, by question; {} for any other pair."""
    return dict(json.loads(pair.expected)) if pair.expected else {}


def systems_of(pair: Pair) -> dict[str, str]:
    """Return the system behind each label of a choice between systems; {} for any other pair."""
    return dict(json.loads(pair.systems)) if pair.systems else {}


def messages(value: Any) -> str:
    """Return why a value is not a chat; empty where it is one."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return "is not a list of messages"
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict) or set(message) != {ROLE, CONTENT}:
            return f"message {number} is not an object with a role and a content"
        if not all(isinstance(part, str) and part.strip() for part in message.values()):
            return f"message {number} has an empty role or content"
    return ""
