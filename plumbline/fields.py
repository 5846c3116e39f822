"""What raters read of a pair: its fields, in order, whatever the pair is of.

A pair of a transformation has two, `original` and `transformed`. What another subject gives (a text with what stands
beside it, the texts of a task's item) is kept as JSON in `Pair.fields`; a value's form says its kind. Whoever shows,
counts or compares what raters read asks `fields_of`, and no one else knows where it stands.
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
PAIR = ("original", "transformed")  # the fields of a pair of a transformation
SECOND = ("transformed", "sentence2", "candidates", "passage")  # fields in the item's second language, where it has two
ROLE, CONTENT = "role", "content"  # of a message of a chat


@dataclass(frozen=True)
class Field:
    """One field of a pair."""

    name: str
    value: Value
    language: str  #: code

    @property
    def kind(self) -> Kind:
        """A text, a chat (messages with role and content), or a list of texts."""
        return kind_of(self.value)

    @property
    def text(self) -> str:
        """Its value as plain text: messages with their roles, entries with their numbers."""
        return plain(self.value)


def fields_of(pair: Pair) -> list[Field]:
    """What raters read of a pair."""
    values = json.loads(pair.fields) if pair.fields else {name: getattr(pair, name) for name in PAIR}
    return [
        Field(name, value, pair.output_language if name in SECOND else pair.language) for name, value in values.items()
    ]


def kept(values: Mapping[str, Value]) -> str:
    """Values as `Pair.fields` keeps them."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def kind_of(value: Value) -> Kind:
    """The kind of a value."""
    if isinstance(value, str):
        return "text"
    return "chat" if value and isinstance(value[0], dict) else "list"


def plain(value: Value) -> str:
    """A value as plain text."""
    if isinstance(value, str):
        return value
    lines = [
        f"{message[ROLE]}: {message[CONTENT]}" if isinstance(message, dict) else f"{number}. {message}"
        for number, message in enumerate(value, 1)
    ]
    return "\n\n".join(lines)


def columns_read(pairs: pd.DataFrame) -> list[pd.Series]:
    """The columns of text that raters read of a frame of `Pair` rows; what stands in `fields` is one, as plain text."""
    columns = [pairs[name] for name in PAIR]
    if "fields" in pairs and (has := pairs["fields"].astype(str) != "").any():
        texts = pd.Series("", index=pairs.index, dtype=object)
        texts[has] = pairs.loc[has, "fields"].astype(str).map(_all)
        columns.append(texts)
    return columns


def _all(fields: str) -> str:
    return "\n\n".join(map(plain, json.loads(fields).values()))


def expected_of(pair: Pair) -> dict[str, Any]:
    """The right answers that stand with a known item, by question; {} for any other pair."""
    return dict(json.loads(pair.expected)) if pair.expected else {}


def messages(value: Any) -> str:
    """Why a value is no chat, in words; empty where it is one."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return "is no list of messages"
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict) or set(message) != {ROLE, CONTENT}:
            return f"message {number} is not a role and a content"
        if not all(isinstance(part, str) and part.strip() for part in message.values()):
            return f"message {number} has an empty role or content"
    return ""
