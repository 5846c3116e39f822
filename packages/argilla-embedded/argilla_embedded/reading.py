"""The reads of a search: only the needed tables and columns, each once, from Argilla's own tables.

Names of fields, questions and properties are compared as values and never become part of SQL or of a JSON path. Records
are identified by their id as 32 hexadecimal digits, as SQLite stores it: at tens of thousands of rows, creating objects
takes longer than reading. All statements are SQLAlchemy's and run on SQLite and PostgreSQL alike.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from argilla_server.enums import FieldType
from argilla_server.models import Field, MetadataProperty, Question, Record, Response, Suggestion, Vector
from sqlalchemy import ColumnElement, Connection, Select, String, select, type_coerce

from .arrivals import Arrivals
from .index import Parts

MOST_IN_A_STATEMENT = 500  #: ids; for more, the whole dataset is read


@dataclass(frozen=True)
class Answer:
    """One user's response to one record."""

    status: str
    values: dict[str, Any]  #: question's name to value; empty unless the search asks for values


@dataclass(frozen=True)
class Hint:
    """One suggestion."""

    value: Any
    score: Any  #: None, a number, or a list with a number for each element of the value
    agent: str | None
    type: str | None


@dataclass(frozen=True)
class Schema:
    """A dataset's names and types."""

    fields: dict[str, str]  #: name to type: text, image, chat, custom
    questions: dict[str, str]  #: name to type: rating, label_selection ...
    properties: dict[str, str]  #: name to type: terms, integer, float


class Reading:
    """One search's view of one dataset. A record that comes or goes meanwhile may be in one part and not in another."""

    def __init__(self, connection: Connection, dataset_id: UUID) -> None:
        self.connection = connection
        self.dataset_id = dataset_id

    def rows(self, statement: Select[Any]) -> Iterator[Any]:
        """The rows of a statement whose first column is a record's raw id, with that as hexadecimal digits."""
        rows = self.connection.execute(statement)
        if self.connection.dialect.name == "sqlite":
            return iter(rows)
        return ((str(row[0]).replace("-", ""), *row[1:]) for row in rows)

    @functools.cached_property
    def schema(self) -> Schema:
        """The dataset's fields, questions and metadata properties."""

        def types(table: Any) -> dict[str, str]:
            wanted = select(table.name, table.settings).where(table.dataset_id == self.dataset_id).order_by(table.name)
            return {name: settings["type"] for name, settings in self.connection.execute(wanted)}

        return Schema(types(Field), types(Question), types(MetadataProperty))

    def ids(self, conditions: Sequence[ColumnElement[bool]]) -> list[str]:
        """The records that meet the conditions, in no order."""
        return [id_ for (id_,) in self.rows(of_records(self.dataset_id).where(*conditions))]

    def moments(self, conditions: Sequence[ColumnElement[bool]] = ()) -> dict[str, tuple[Any, Any]]:
        """When each record that meets the conditions came and changed last, as the database gives it."""
        return {id_: (came, changed) for id_, came, changed in self.rows(moments(self.dataset_id, conditions))}

    def arrivals(self) -> Arrivals:
        """All records as they came."""
        statement = of_records(self.dataset_id, Record.inserted_at, Record.fields)
        return Arrivals.of(self.rows(statement.order_by(Record.inserted_at, Record.id)))

    @functools.cached_property
    def metadata(self) -> dict[str, dict[str, Any]]:
        """The metadata of each record that has any."""
        statement = of_records(self.dataset_id, Record.metadata_).where(Record.metadata_.is_not(None))
        return {id_: metadata for id_, metadata in self.rows(statement) if metadata}

    @functools.lru_cache(maxsize=8)  # noqa: B019  # a reading lives for one search
    def column(self, name: str) -> dict[str, Any]:
        """One of a record's own columns: external_id, status, inserted_at, updated_at, id."""
        return {row[0]: row[1] for row in self.rows(of_records(self.dataset_id, getattr(Record, name)))}

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def answers(self, user_id: UUID | None, with_values: bool) -> dict[str, list[Answer]]:
        """The responses of each record that has any: one user's, or everyone's."""
        found: dict[str, list[Answer]] = defaultdict(list)
        for id_, status, *values in self.rows(answers(self.dataset_id, user_id, with_values)):
            given = (values[0] if values else None) or {}
            found[id_].append(Answer(str(status), {name: value.get("value") for name, value in given.items()}))
        return dict(found)

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def hints(self, question: str) -> dict[str, Hint]:
        """The suggestions for a question."""
        return {row[0]: Hint(*row[1:]) for row in self.rows(hints(self.dataset_id, question))}

    def vectors(self, settings_id: UUID) -> dict[str, list[float]]:
        """The vectors of these settings, of the records that have one."""
        statement = select(raw(Vector.record_id), Vector.value).where(Vector.vector_settings_id == settings_id)
        return dict(self.rows(statement))

    def parts(self, ids: Sequence[str]) -> dict[str, tuple[Any, Parts]]:
        """The time of change and the searched text of some records, in the order in which they came."""
        statement = of_records(self.dataset_id, raw(Record.updated_at), Record.fields)
        statement = statement.order_by(Record.inserted_at, Record.id)
        if len(ids) <= MOST_IN_A_STATEMENT:
            statement = statement.where(Record.id.in_([UUID(id_) for id_ in ids]))
        wanted = set(ids)
        fields = list(self.schema.fields.items())
        return {id_: (changed, parts(values, fields)) for id_, changed, values in self.rows(statement) if id_ in wanted}


def raw(column: Any) -> Any:
    """A column as the database gives it, without making objects of it."""
    return type_coerce(column, String)


def of_records(dataset_id: UUID, *columns: Any) -> Select[Any]:
    """Raw id and columns of a dataset's records."""
    return select(raw(Record.id), *columns).where(Record.dataset_id == dataset_id)


def moments(dataset_id: UUID, conditions: Iterable[ColumnElement[bool]]) -> Select[Any]:
    """When the records that meet the conditions came and changed last."""
    return of_records(dataset_id, raw(Record.inserted_at), raw(Record.updated_at)).where(*conditions)


def answers(dataset_id: UUID, user_id: UUID | None, with_values: bool) -> Select[Any]:
    """The responses of one user, or of everyone."""
    columns = [Response.status, *([Response.values] if with_values else [])]
    statement = select(raw(Response.record_id), *columns).join(Record, Response.record_id == Record.id)
    statement = statement.where(Record.dataset_id == dataset_id)
    return statement if user_id is None else statement.where(Response.user_id == user_id)


def hints(dataset_id: UUID, question: str) -> Select[Any]:
    """The suggestions for a question."""
    columns = Suggestion.value, Suggestion.score, Suggestion.agent, Suggestion.type
    statement = select(raw(Suggestion.record_id), *columns).join(Question, Suggestion.question_id == Question.id)
    return statement.where(Question.dataset_id == dataset_id, Question.name == question)


def parts(values: dict[str, Any], fields: Sequence[tuple[str, str]]) -> Parts:
    """What of a record is searched: texts, a chat's contents and its roles, a custom field as it is written.

    Field i of the schema has the numbers 2i and, for a chat's roles, 2i + 1.
    """
    found: list[tuple[int, Sequence[str]]] = []
    for number, (name, kind) in enumerate(fields):
        value = values.get(name)
        if value is None or kind == FieldType.image:
            continue
        if kind == FieldType.chat:
            for part, key in enumerate(("content", "role")):
                found.append((2 * number + part, [str(message.get(key) or "") for message in value]))
        else:
            found.append((2 * number, [value if isinstance(value, str) else str(value)]))
    return found
