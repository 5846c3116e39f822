"""Argilla's search engine on Argilla's own tables.

Every search reads the dataset's rows, puts its predicates to them in a thread, and answers with ids: proportional to
the size of the dataset (10,000 records: a page of a queue in about 0.2 s, a text search in about 1 s), never blocking
the server's event loop, and with no copy of the data. Everything that Argilla tells an engine in order that it keeps
its index is therefore nothing to do.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from argilla_server.enums import MetadataPropertyType, SimilarityOrder
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Dataset, MetadataProperty, Record, Response, User, VectorSettings
from argilla_server.search_engine import (
    Filter,
    FloatMetadataMetrics,
    IntegerMetadataMetrics,
    MetadataMetrics,
    Order,
    SearchEngine,
    SearchResponseItem,
    SearchResponses,
    TermsMetrics,
    TextQuery,
)
from sqlalchemy import Connection, Engine, func, select

from . import candidates, predicates
from .candidates import Candidate, Schema
from .database import open_sync
from .text import UnsupportedQueryError, parse

T = TypeVar("T")


def register(name: str) -> None:
    """Make this the engine that Argilla's setting `search_engine=name` means."""
    engine = open_sync()

    class Registered(SqlSearchEngine):
        @classmethod
        async def new_instance(cls) -> SearchEngine:
            return cls(engine)

    SearchEngine.register(name)(Registered)


class SqlSearchEngine(SearchEngine):  # type: ignore[misc]  # argilla_server is not in the platform's environment
    """Searches by reading; Argilla makes one for each request and closes it after."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def reading(self, work: Callable[[Connection], T]) -> T:
        """Do `work` on a connection of its own, in a thread."""

        def read() -> T:
            with self.engine.connect() as connection:
                return work(connection)

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def ping(self) -> bool:
        """Whether the database answers."""
        return await self.reading(lambda connection: connection.scalar(select(1)) == 1)

    async def info(self) -> dict[str, str]:
        """What /api/v1/status shows, without signing in: no more than the name."""
        return {"name": "plumbline"}

    async def search(  # noqa: PLR0913  # Argilla's signature
        self,
        dataset: Dataset,
        query: TextQuery | str | None = None,
        filter: Filter | None = None,  # noqa: A002  # Argilla's name
        sort: list[Order] | None = None,
        offset: int = 0,
        limit: int = 100,
        user_id: UUID | None = None,
    ) -> SearchResponses:
        """A page of the records that match, and the number of all that do.

        Without `sort`: better text matches first, and after that (or without a query) in the order of insertion, or
        for a `user_id` in that user's own shuffle, which is the same at every call and while others answer.
        """

        def work(connection: Connection) -> SearchResponses:
            schema = candidates.read_schema(connection, dataset.id)
            found = matching(connection, dataset.id, schema, query, filter, sort or ())
            if sort:
                found = predicates.arranged(found, sort, schema)
            else:
                if user_id is not None:
                    found.sort(key=lambda record: shuffled(user_id, record.id))
                found.sort(key=lambda record: -record.score)
            return page(found, offset, limit)

        return await self.reading(work)

    async def similarity_search(  # noqa: PLR0913  # Argilla's signature
        self,
        dataset: Dataset,
        vector_settings: VectorSettings,
        value: list[float] | None = None,
        record: Record | None = None,
        query: TextQuery | str | None = None,
        filter: Filter | None = None,  # noqa: A002  # Argilla's name
        max_results: int = 100,
        order: SimilarityOrder = SimilarityOrder.most_similar,
        threshold: float | None = None,
    ) -> SearchResponses:
        """The `max_results` records nearest to a vector, or to a record, which is left out itself.

        The score is (1 + cosine) / 2; least similar means nearest to the negated vector.
        """
        target = value or (record.vector_value_by_vector_settings(vector_settings) if record is not None else None)
        if not target or len(target) != vector_settings.dimensions:
            raise UnprocessableEntityError(f"the vector must have {vector_settings.dimensions} numbers")
        sign = -1.0 if order == SimilarityOrder.least_similar else 1.0

        def work(connection: Connection) -> SearchResponses:
            schema = candidates.read_schema(connection, dataset.id)
            rows = {one.id: one for one in matching(connection, dataset.id, schema, query, filter, ())}
            if record is not None:
                rows.pop(record.id, None)
            candidates.add_vectors(connection, vector_settings.id, rows)
            found = [one for one in rows.values() if one.vector is not None]
            for one, score in zip(found, similarities(found, sign * np.asarray(target, dtype=float)), strict=True):
                one.score = score
            if threshold is not None:
                found = [one for one in found if one.score >= threshold]
            found.sort(key=lambda one: -one.score)
            return page(found[:max_results], 0, max_results)

        return await self.reading(work)

    async def get_dataset_progress(self, dataset: Dataset) -> dict[str, int]:
        """The number of records, in all and by status; nothing for a draft."""
        counted = select(Record.status, func.count()).where(Record.dataset_id == dataset.id).group_by(Record.status)
        return {} if dataset.is_draft else await self.reading(lambda connection: counts(connection, counted))

    async def get_dataset_user_progress(self, dataset: Dataset, user: User) -> dict[str, int]:
        """The number of this user's responses, in all and by status; nothing for a draft."""
        counted = select(Response.status, func.count()).join(Record).group_by(Response.status)
        counted = counted.where(Record.dataset_id == dataset.id, Response.user_id == user.id)
        return {} if dataset.is_draft else await self.reading(lambda connection: counts(connection, counted))

    async def compute_metrics_for(self, metadata_property: MetadataProperty) -> MetadataMetrics:
        """A terms property's values with their counts; a numeric one's least and greatest value, None without any."""
        name, kind = metadata_property.name, metadata_property.type
        wanted = select(Record.metadata_).where(Record.dataset_id == metadata_property.dataset_id)
        rows = await self.reading(lambda connection: connection.scalars(wanted).all())
        values = [one for row in rows for one in predicates.elements((row or {}).get(name))]
        if kind == MetadataPropertyType.terms:
            count = Counter(map(predicates.written, values))
            ordered = sorted(count.items(), key=lambda item: (-item[1], item[0]))
            terms = [TermsMetrics.TermCount(term=term, count=number) for term, number in ordered]
            return TermsMetrics(total=count.total(), values=terms)
        metrics = IntegerMetadataMetrics if kind == MetadataPropertyType.integer else FloatMetadataMetrics
        return metrics(min=min(values, default=None), max=max(values, default=None))

    async def create_index(self, dataset: Dataset) -> None:
        """Nothing to do: there is no index. So it is for all that follow."""

    async def delete_index(self, dataset: Dataset) -> None:
        """Nothing to do."""

    async def configure_metadata_property(self, dataset: Dataset, metadata_property: MetadataProperty) -> None:
        """Nothing to do."""

    async def configure_index_vectors(self, vector_settings: VectorSettings) -> None:
        """Nothing to do."""

    async def index_records(self, dataset: Dataset, records: Sequence[Record]) -> None:
        """Nothing to do."""

    async def partial_record_update(self, record: Record, **update: Any) -> None:
        """Nothing to do."""

    async def delete_records(self, dataset: Dataset, records: Sequence[Record]) -> None:
        """Nothing to do."""

    async def update_record_response(self, response: Any) -> None:
        """Nothing to do."""

    async def delete_record_response(self, response: Any) -> None:
        """Nothing to do."""

    async def update_record_suggestion(self, suggestion: Any) -> None:
        """Nothing to do."""

    async def delete_record_suggestion(self, suggestion: Any) -> None:
        """Nothing to do."""


def matching(
    connection: Connection,
    dataset_id: UUID,
    schema: Schema,
    query: TextQuery | str | None,
    condition: Filter | None,
    orders: Sequence[Order],
) -> list[Candidate]:
    """The records that pass text and filters, in the order of insertion, each with its text score."""
    leaves = predicates.leaves(condition)
    tests = [predicates.predicate(leaf, schema) for leaf in leaves]
    wanted = predicates.wanted([*(leaf.scope for leaf in leaves), *(order.scope for order in orders)])
    rows = candidates.read(connection, dataset_id, wanted).values()
    found = [record for record in rows if all(test(record) for test in tests)]
    if query is None:
        return found
    text, name = (query, None) if isinstance(query, str) else (query.q, query.field)
    try:
        parsed = parse(text)
    except UnsupportedQueryError as error:
        raise UnprocessableEntityError(str(error)) from error
    words = candidates.read_words(connection, dataset_id, schema, None if name is None else [name])
    for record in found:
        record.score = parsed.score(words.get(record.id, ()))
    return [record for record in found if record.score > 0]


def page(found: Sequence[Candidate], offset: int, limit: int) -> SearchResponses:
    """One page and the total."""
    items = [SearchResponseItem(record_id=one.id, score=one.score) for one in found[offset : offset + limit]]
    return SearchResponses(items=items, total=len(found))


def shuffled(user_id: UUID, record_id: UUID) -> bytes:
    """A key that puts the records in an order of its own for each user, the same in every process and for ever."""
    return hashlib.blake2b(user_id.bytes + record_id.bytes, digest_size=16).digest()


def similarities(found: Sequence[Candidate], target: np.ndarray[Any, Any]) -> list[float]:
    """(1 + cosine) / 2 of each candidate's vector with `target`; a vector of zeros has the cosine 0 with everything."""
    if not found:
        return []
    vectors = np.asarray([one.vector for one in found], dtype=float)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(target)
    cosines = np.divide(vectors @ target, lengths, out=np.zeros(len(found)), where=lengths > 0)
    return [float(score) for score in (1 + cosines) / 2]


def counts(connection: Connection, statement: Any) -> dict[str, int]:
    """The rows (status, number) of a statement as Argilla's progress: with the total."""
    by_status = {str(status): int(number) for status, number in connection.execute(statement)}
    return {"total": sum(by_status.values()), **by_status}
