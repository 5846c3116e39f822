"""What a filter lets through, and what a sort goes by: Argilla's filters and orders as functions of one record.

The meaning is that of Argilla on Elasticsearch. What is well-formed but senseless (a range over a label, a word where
a number stands) matches nothing; what cannot be read at all (a date) is refused with a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from argilla_server.enums import QuestionType, ResponseStatusFilter, SortOrder
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.search_engine import (
    AndFilter,
    Filter,
    FilterScope,
    MetadataFilterScope,
    Order,
    RangeFilter,
    RecordFilterScope,
    ResponseFilterScope,
    SuggestionFilterScope,
    TermsFilter,
)

from .candidates import Answer, Candidate, Schema, Wanted

Predicate = Callable[[Candidate], bool]
Test = Callable[[Any], bool]  #: of one value

DATES = ("inserted_at", "updated_at")
LABELS = (QuestionType.label_selection, QuestionType.multi_label_selection)
#: The kinds of value that are compared differently.
NUMBER, TEXT, DATE, NOTHING = "number", "text", "date", "nothing"


def leaves(condition: Filter | None) -> list[TermsFilter | RangeFilter]:
    """The single filters of a filter; all of them must hold."""
    if condition is None:
        return []
    if isinstance(condition, AndFilter):
        return [leaf for part in condition.filters or [] for leaf in leaves(part)]
    return [condition]


def wanted(scopes: Iterable[FilterScope]) -> Wanted:
    """Which parts of the records these scopes look at."""
    parts = Wanted()
    for scope in scopes:
        parts.metadata |= isinstance(scope, MetadataFilterScope)
        parts.hints |= isinstance(scope, SuggestionFilterScope)
        if isinstance(scope, ResponseFilterScope):
            parts.statuses = True
            parts.values |= scope.question is not None
    return parts


def predicate(leaf: TermsFilter | RangeFilter, schema: Schema) -> Predicate:
    """The test that one filter puts to a record. Raises UnprocessableEntityError for what cannot be read."""
    scope = leaf.scope
    if isinstance(scope, ResponseFilterScope):
        if scope.question is None:
            return status_predicate(leaf, scope)
        question, test = scope.question, value_test(leaf, kind_of_question(schema, scope.question))
        return lambda record: any(
            any(map(test, elements(answer.values.get(question)))) for answer in answers_of(record, scope)
        )
    test = value_test(leaf, kind_of(scope, schema))
    return lambda record: any(map(test, values_of(record, scope)))


def status_predicate(leaf: TermsFilter | RangeFilter, scope: ResponseFilterScope) -> Predicate:
    """Response statuses, ORed; `pending` holds where this user (without one: anybody) has not responded at all."""
    if not isinstance(leaf, TermsFilter) or scope.property != "status":
        raise UnprocessableEntityError("responses are filtered by a question's values or by a list of statuses")
    asked = {str(value) for value in leaf.values}
    pending = str(ResponseStatusFilter.pending) in asked

    def holds(record: Candidate) -> bool:
        answers = answers_of(record, scope)
        return any(answer.status in asked for answer in answers) or (pending and not answers)

    return holds


def answers_of(record: Candidate, scope: ResponseFilterScope) -> list[Answer]:
    """The responses that a scope sees: its user's, or everyone's."""
    if scope.user is None:
        return record.answers
    return [answer for answer in record.answers if answer.user_id == scope.user.id]


def elements(value: Any) -> Sequence[Any]:
    """A value as a list: of its elements, of itself, or of nothing."""
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def values_of(record: Candidate, scope: FilterScope) -> Sequence[Any]:
    """What stands in a record where a scope points, as a list."""
    if isinstance(scope, MetadataFilterScope):
        return elements(record.metadata.get(scope.metadata_property))
    if isinstance(scope, SuggestionFilterScope):
        hint = record.hints.get(scope.question)
        return () if hint is None else elements(getattr(hint, suggestion_part(scope)))
    if isinstance(scope, RecordFilterScope):
        value = getattr(record, str(scope.property))
        return elements(str(value) if isinstance(value, UUID) else value)
    raise UnprocessableEntityError(f"records cannot be searched by {type(scope).__name__}")


def suggestion_part(scope: SuggestionFilterScope) -> str:
    """value, score, agent or type; Argilla turns a missing one into the word None, and means the value."""
    return scope.property if scope.property in ("score", "agent", "type") else "value"


def kind_of_question(schema: Schema, name: str) -> str:
    """How the answers to a question are compared; only ratings and labels can be searched by."""
    question = schema.questions.get(name)
    if question == QuestionType.rating:
        return NUMBER
    return TEXT if question in LABELS else NOTHING


def kind_of(scope: FilterScope, schema: Schema) -> str:
    """How the values are compared to which a scope points."""
    if isinstance(scope, MetadataFilterScope):
        return TEXT if schema.properties.get(scope.metadata_property) == "terms" else NUMBER
    if isinstance(scope, SuggestionFilterScope):
        part = suggestion_part(scope)
        return {"value": kind_of_question(schema, scope.question), "score": NUMBER}.get(part, TEXT)
    if isinstance(scope, RecordFilterScope):
        return DATE if scope.property in DATES else TEXT
    return NOTHING


def value_test(leaf: TermsFilter | RangeFilter, kind: str) -> Test:
    """Whether one value, of this kind, is among the terms or in the (inclusive) range."""
    if kind == NOTHING:
        return lambda value: False
    convert = CONVERTERS[kind]
    if isinstance(leaf, TermsFilter):
        asked = {term for term in map(convert, leaf.values) if term is not None}
        return lambda value: convert(value) in asked
    low = None if leaf.ge is None else convert(leaf.ge)
    high = None if leaf.le is None else (date(leaf.le, end=True) if kind == DATE else convert(leaf.le))
    if (leaf.ge is not None and low is None) or (leaf.le is not None and high is None):
        return lambda value: False  # a word where a number stands

    def inside(value: Any) -> bool:
        one = convert(value)
        return one is not None and (low is None or one >= low) and (high is None or one <= high)

    return inside


def number(value: Any) -> float | None:
    """A number, also one written as text; None for anything else."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def written(value: Any) -> str:
    """A value as a term: numbers compare as strings, and 3.0 is written 3."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
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


def arranged(found: list[Candidate], orders: Sequence[Order], schema: Schema) -> list[Candidate]:
    """The records by several keys; where a record has no value it comes last, in either direction."""
    for order in reversed(orders):  # stable: the first key is sorted by last, and ties keep the order they came in
        descending = order.order == SortOrder.desc
        keys = {record.id: sort_key(record, order.scope, schema, descending) for record in found}
        with_key = [record for record in found if keys[record.id] is not None]
        without = [record for record in found if keys[record.id] is None]
        with_key.sort(key=lambda record: keys[record.id], reverse=descending)
        found = with_key + without
    return found


def sort_key(record: Candidate, scope: FilterScope, schema: Schema, descending: bool) -> Any:
    """One record's key: the mean of the ratings that a scope sees; else the least value, or descending the greatest."""
    if isinstance(scope, ResponseFilterScope):
        answers = answers_of(record, scope)
        if scope.question is None:
            return extreme([answer.status for answer in answers], descending)
        kind = kind_of_question(schema, scope.question)
        given = [one for answer in answers for one in elements(answer.values.get(scope.question))]
        if kind == NUMBER:
            numbers = [one for one in map(number, given) if one is not None]
            return math.fsum(numbers) / len(numbers) if numbers else None
    else:
        kind, given = kind_of(scope, schema), list(values_of(record, scope))
    if kind == NOTHING:
        return None
    convert = CONVERTERS[kind]
    return extreme([one for one in map(convert, given) if one is not None], descending)


def extreme(values: Sequence[Any], descending: bool) -> Any:
    """The greatest or the least of the values, None of none."""
    if not values:
        return None
    return max(values) if descending else min(values)
