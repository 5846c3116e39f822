"""Argilla's filters: SQL conditions if a column has the answer, else tests of values.

The meaning is that of Argilla on Elasticsearch. What is well-formed but senseless (a range of words over ratings, a
status that does not exist) matches nothing; what cannot be read at all (a date) is refused with a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from argilla_server.enums import QuestionType, RecordStatus, ResponseStatus, ResponseStatusFilter
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Response
from argilla_server.search_engine import (
    AndFilter,
    Filter,
    FilterScope,
    MetadataFilterScope,
    RangeFilter,
    RecordFilterScope,
    ResponseFilterScope,
    SuggestionFilterScope,
    TermsFilter,
)
from sqlalchemy import ColumnElement, false, or_, select

from .reading import Answer, Reading, Schema

Leaf: TypeAlias = TermsFilter | RangeFilter
Test = Callable[[Any], bool]  #: of one value
Values: TypeAlias = Callable[[str], Sequence[Any]]  #: what a record, by id, has where a scope points

DATES = ("inserted_at", "updated_at")
LABELS = (QuestionType.label_selection, QuestionType.multi_label_selection)
#: The kinds of value that are compared differently.
NUMBER, TEXT, DATE, NOTHING = "number", "text", "date", "nothing"


def leaves(condition: Filter | None) -> list[Leaf]:
    """The single filters of a filter; all of them must hold."""
    if condition is None:
        return []
    if isinstance(condition, AndFilter):
        return [leaf for part in condition.filters or [] for leaf in leaves(part)]
    return [condition]


def is_queue(condition: Filter | None) -> bool:
    """Whether a filter selects the records pending for a user, perhaps with drafts: not answered by enough people."""
    queue = (["pending"], ["pending", "draft"])
    asked = [leaf.scope for leaf in leaves(condition) if isinstance(leaf, TermsFilter) and leaf.values in queue]
    kinds = {type(scope) for scope in asked if getattr(scope, "property", None) == "status"}
    return {ResponseFilterScope, RecordFilterScope} <= kinds


def condition(leaf: Leaf) -> ColumnElement[bool] | None:
    """A filter as an SQL condition on records; None where only the values themselves tell."""
    scope = leaf.scope
    if isinstance(scope, ResponseFilterScope) and scope.question is None:
        return answered(leaf, scope)
    if not isinstance(scope, RecordFilterScope):
        return None
    name = str(scope.property)
    column = getattr(Record, name)
    if name in DATES:
        if isinstance(leaf, TermsFilter):
            return column.in_([date(value) for value in leaf.values])
        low = [] if leaf.ge is None else [column >= date(leaf.ge)]
        high = [] if leaf.le is None else [column <= date(leaf.le, end=True)]
        return (low + high)[0] if len(low + high) == 1 else (low[0] & high[0])
    if isinstance(leaf, RangeFilter):
        return None  # databases order words in ways of their own
    known: dict[str, Callable[[str], Any]] = {"status": RecordStatus, "id": UUID, "external_id": plain}
    values = [one for one in (readable(known[name], value) for value in leaf.values) if one is not None]
    return column.in_(values) if values else false()


def answered(leaf: Leaf, scope: ResponseFilterScope) -> ColumnElement[bool]:
    """Response statuses, ORed; `pending` holds where this user (without one: anybody) has not responded at all."""
    if not isinstance(leaf, TermsFilter) or scope.property != "status":
        raise UnprocessableEntityError("a filter of responses needs a question's values or a list of statuses")
    own = [] if scope.user is None else [Response.user_id == scope.user.id]
    theirs = select(Response.id).where(Response.record_id == Record.id, *own)
    asked = [readable(ResponseStatus, value) for value in leaf.values]
    statuses = [status for status in asked if status is not None]
    holds = [theirs.where(Response.status.in_(statuses)).exists()] if statuses else []
    if str(ResponseStatusFilter.pending) in leaf.values:
        holds.append(~theirs.exists())
    return or_(*holds) if holds else false()


def readable(read: Callable[[str], Any], value: str) -> Any:
    """The value as the column holds it; None when it cannot hold it, so that it matches nothing."""
    try:
        found = read(value)
    except ValueError:
        return None
    return found if str(found) == value else None


def plain(value: str) -> str | None:
    """A text that a database can hold: without NUL, and in UTF-8."""
    value.encode("utf-8")
    return None if "\0" in value else value


def test(leaf: Leaf, reading: Reading) -> Callable[[str], bool]:
    """The test that a filter puts to a record, by its id. Raises UnprocessableEntityError for what cannot be read."""
    scope = leaf.scope
    holds = value_test(leaf, kind_of(scope, reading.schema))
    values = values_of(scope, reading)
    return lambda id_: any(map(holds, values(id_)))


def values_of(scope: FilterScope, reading: Reading) -> Values:
    """Return the values of a scope, a list for each record."""
    if isinstance(scope, MetadataFilterScope):
        metadata, name = reading.metadata, scope.metadata_property
        return lambda id_: elements(metadata[id_].get(name)) if id_ in metadata else ()
    if isinstance(scope, SuggestionFilterScope):
        hints, part = reading.hints(scope.question), suggestion_part(scope)
        return lambda id_: elements(getattr(hints[id_], part)) if id_ in hints else ()
    if isinstance(scope, ResponseFilterScope):
        given = answers_of(scope, reading)
        if scope.question is None:
            return lambda id_: [answer.status for answer in given.get(id_, ())]
        question = scope.question
        return lambda id_: [one for answer in given.get(id_, ()) for one in elements(answer.values.get(question))]
    if isinstance(scope, RecordFilterScope):
        column = reading.column(str(scope.property))
        return lambda id_: elements(column.get(id_))
    raise UnprocessableEntityError(f"records cannot be searched by {type(scope).__name__}")


def answers_of(scope: ResponseFilterScope, reading: Reading) -> dict[str, list[Answer]]:
    """The responses that a scope sees: its user's, or everyone's."""
    return reading.answers(None if scope.user is None else scope.user.id, scope.question is not None)


def elements(value: Any) -> Sequence[Any]:
    """A value as a list: of its elements, of itself, or of nothing."""
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def suggestion_part(scope: SuggestionFilterScope) -> str:
    """value, score, agent or type; Argilla turns a missing one into the word None, and means the value."""
    return scope.property if scope.property in ("score", "agent", "type") else "value"


def kind_of_question(schema: Schema, name: str) -> str:
    """Return how the answers to a question are compared; only ratings and labels can be searched by."""
    question = schema.questions.get(name)
    if question == QuestionType.rating:
        return NUMBER
    return TEXT if question in LABELS else NOTHING


def kind_of(scope: FilterScope, schema: Schema) -> str:
    """Return how the values of a scope are compared."""
    if isinstance(scope, MetadataFilterScope):
        return TEXT if schema.properties.get(scope.metadata_property) == "terms" else NUMBER
    if isinstance(scope, SuggestionFilterScope):
        part = suggestion_part(scope)
        return {"value": kind_of_question(schema, scope.question), "score": NUMBER}.get(part, TEXT)
    if isinstance(scope, ResponseFilterScope):
        return TEXT if scope.question is None else kind_of_question(schema, scope.question)
    if isinstance(scope, RecordFilterScope):
        return DATE if scope.property in DATES else TEXT
    return NOTHING


def value_test(leaf: Leaf, kind: str) -> Test:
    """Return a test of a value of this kind: whether it is among the terms or in the (inclusive) range."""
    if kind == NOTHING:
        return lambda value: False
    convert = CONVERTERS[kind]
    if isinstance(leaf, TermsFilter):
        asked = {term for term in map(convert, leaf.values) if term is not None}
        return lambda value: convert(value) in asked
    low = None if leaf.ge is None else convert(leaf.ge)
    high = None if leaf.le is None else convert(leaf.le)
    if (leaf.ge is not None and low is None) or (leaf.le is not None and high is None):
        return lambda value: False  # a word where a number stands

    def inside(value: Any) -> bool:
        one = convert(value)
        return one is not None and (low is None or one >= low) and (high is None or one <= high)

    return inside


def number(value: Any) -> float | None:
    """A number, also one written as text; None for anything else. Whole numbers stay exact."""
    if isinstance(value, int):
        return value
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(found):
        return None
    return int(value) if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() else found


def written(value: Any) -> str:
    """A value as a term, as JSON writes it: numbers compare as strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def date(value: Any, end: bool = False) -> datetime:
    """A moment in UTC without a zone, from ISO 8601 or milliseconds since 1970; a bare date as `end` is its last."""
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value / 1000, UTC).replace(tzinfo=None)
        found = datetime.fromisoformat(value.strip())
        found = found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
        if end and found.time() == time.min and len(value.strip()) <= len("2026-01-31"):
            return found + timedelta(days=1) - timedelta(microseconds=1)
        return found
    except (ValueError, OverflowError, OSError) as error:
        raise UnprocessableEntityError(f"{value!r} is not a date; write 2026-01-31 or 2026-01-31T12:00:00Z") from error


#: How the values of a kind are read before they are compared; None means that a value is not of the kind.
CONVERTERS: dict[str, Callable[[Any], Any]] = {NUMBER: number, DATE: date, TEXT: written}
