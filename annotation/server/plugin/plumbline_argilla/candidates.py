"""One dataset's records as plain values, read from Argilla's own tables: only the columns that a search looks at.

Nothing is copied or indexed, so nothing can get out of step: what a request has committed, the next search sees.
Names of fields, questions and properties are compared as values and never become part of SQL or of a JSON path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from argilla_server.enums import FieldType
from argilla_server.models import Field, MetadataProperty, Question, Record, Response, Suggestion, Vector
from sqlalchemy import Connection, select

from .text import Words, words


@dataclass(frozen=True)
class Answer:
    """One user's response to one record."""

    user_id: UUID
    status: str
    values: dict[str, Any]  #: question's name to value; empty unless the search asks for values


@dataclass(frozen=True)
class Hint:
    """One suggestion."""

    value: Any
    score: Any  #: None, a number, or a list with a number for each element of the value
    agent: str | None
    type: str | None


@dataclass
class Candidate:
    """One record; the parts that the search did not ask for stay empty."""

    id: UUID
    external_id: str | None
    status: str
    inserted_at: datetime  #: UTC, without a zone, as Argilla stores it
    updated_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    hints: dict[str, Hint] = field(default_factory=dict)  #: by the question's name
    vector: list[float] | None = None
    score: float = 1.0  #: of the text query, or of the similarity


@dataclass
class Wanted:
    """Which parts a search looks at."""

    metadata: bool = False
    statuses: bool = False  #: who has answered, and with which status
    values: bool = False  #: what they have answered
    hints: bool = False


@dataclass(frozen=True)
class Schema:
    """A dataset's names and types."""

    fields: dict[str, str]  #: name to type: text, image, chat, custom
    questions: dict[str, str]  #: name to type: rating, label_selection ...
    properties: dict[str, str]  #: name to type: terms, integer, float


def read_schema(connection: Connection, dataset_id: UUID) -> Schema:
    """The dataset's fields, questions and metadata properties."""

    def types(table: Any) -> dict[str, str]:
        rows = connection.execute(select(table.name, table.settings).where(table.dataset_id == dataset_id))
        return {name: settings["type"] for name, settings in rows}

    return Schema(types(Field), types(Question), types(MetadataProperty))


def read(connection: Connection, dataset_id: UUID, wanted: Wanted) -> dict[UUID, Candidate]:
    """Every record of the dataset in the order in which they came, by id."""
    columns = [Record.id, Record.external_id, Record.status, Record.inserted_at, Record.updated_at]
    if wanted.metadata:
        columns.append(Record.metadata_)
    rows = connection.execute(
        select(*columns).where(Record.dataset_id == dataset_id).order_by(Record.inserted_at, Record.id)
    )
    found = {}
    for id_, external_id, status, inserted_at, updated_at, *metadata in rows:
        found[id_] = Candidate(
            id_, external_id, str(status), inserted_at, updated_at, (metadata[0] if metadata else None) or {}
        )
    if wanted.statuses or wanted.values:
        add_answers(connection, dataset_id, found, with_values=wanted.values)
    if wanted.hints:
        add_hints(connection, dataset_id, found)
    return found


def add_answers(connection: Connection, dataset_id: UUID, found: dict[UUID, Candidate], with_values: bool) -> None:
    """Give each candidate its responses. A record made since `found` was read is not in it, and is passed over."""
    columns = [Response.record_id, Response.user_id, Response.status, *([Response.values] if with_values else [])]
    rows = connection.execute(select(*columns).join(Record).where(Record.dataset_id == dataset_id))
    for record_id, user_id, status, *values in rows:
        if (candidate := found.get(record_id)) is not None:
            given = {name: value.get("value") for name, value in ((values[0] if values else None) or {}).items()}
            candidate.answers.append(Answer(user_id, str(status), given))


def add_hints(connection: Connection, dataset_id: UUID, found: dict[UUID, Candidate]) -> None:
    """Give each candidate its suggestions."""
    columns = Suggestion.record_id, Question.name, Suggestion.value, Suggestion.score, Suggestion.agent, Suggestion.type
    rows = connection.execute(select(*columns).join(Question).where(Question.dataset_id == dataset_id))
    for record_id, question, value, score, agent, type_ in rows:
        if (candidate := found.get(record_id)) is not None:
            candidate.hints[question] = Hint(value, score, agent, None if type_ is None else str(type_))


def add_vectors(connection: Connection, settings_id: UUID, found: dict[UUID, Candidate]) -> None:
    """Give each candidate its vector of these settings, where it has one."""
    rows = connection.execute(select(Vector.record_id, Vector.value).where(Vector.vector_settings_id == settings_id))
    for record_id, value in rows:
        if (candidate := found.get(record_id)) is not None:
            candidate.vector = value


def read_words(
    connection: Connection, dataset_id: UUID, schema: Schema, names: Sequence[str] | None
) -> dict[UUID, list[Words]]:
    """The words of the named fields (None: all that hold text), a list for each field, by record."""
    searched = {name: kind for name, kind in schema.fields.items() if kind != FieldType.image}
    if names is not None:
        searched = {name: kind for name, kind in searched.items() if name in names}
    found: dict[UUID, list[Words]] = defaultdict(list)
    for id_, fields in connection.execute(select(Record.id, Record.fields).where(Record.dataset_id == dataset_id)):
        for name, kind in searched.items():
            found[id_] += [words(text) for text in texts(fields.get(name), kind)]
    return found


def texts(value: Any, kind: str) -> list[str]:
    """What of a field's value is searched: a text, a chat's contents and roles, a custom field as it is written."""
    if value is None:
        return []
    if kind == FieldType.chat:
        return [str(message.get(key) or "") for key in ("content", "role") for message in value]
    return [value if isinstance(value, str) else str(value)]
