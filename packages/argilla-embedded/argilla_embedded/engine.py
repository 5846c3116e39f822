"""Argilla's search engine on Argilla's own tables.

A search reads only what it needs, in a thread, so that it never blocks the server's event loop: a queue reads ids and
response statuses, a filter the column or the values that it compares. Only the words of the texts are kept in memory
between searches (`index` describes how much that is, and why it is never out of date). Argilla's calls that update an
index therefore do nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from argilla_server.enums import MetadataPropertyType, RecordStatus, ResponseStatus, SimilarityOrder
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
from sqlalchemy import Connection, Engine, case, func, literal, select

from . import ordering, predicates
from .arrivals import Arrivals
from .connections import open_sync
from .evaluation import matches
from .handing import Handing
from .index import Cache, Stamps
from .privacy import own_user_id
from .query import QueryTooLargeError, parse
from .reading import Reading
from .setup import Grouping, GroupName

T = TypeVar("T")
MOST_DATASETS = 1000  #: whose records' arrivals stay in memory


@dataclass(frozen=True)
class Queues:
    """The differences of annotators' queues and progress from Argilla's own."""

    handing: Handing | None  #: records' holders, for all processes; None: everybody's queue has all pending records
    grouping: Grouping | None  #: the groups of records that stay together
    own_progress: bool  #: whether annotators see their own progress, and not everybody's


def register(name: str, queues: Queues) -> Engine:
    """Register this engine under Argilla's setting `search_engine=name`; return its connections for closing."""
    engine, cache, arrivals = open_sync(), Cache(), dict[UUID, Arrivals]()

    class Registered(SqlSearchEngine):
        @classmethod
        async def new_instance(cls) -> SearchEngine:
            return cls(engine, cache, arrivals, queues)

    SearchEngine.register(name)(Registered)
    return engine


class SqlSearchEngine(SearchEngine):  # type: ignore[misc]  # argilla_server is not where types are checked
    """Searches by reading; Argilla makes one for each request and closes it after."""

    def __init__(self, engine: Engine, cache: Cache, arrivals: dict[UUID, Arrivals], queues: Queues) -> None:
        self.engine = engine
        self.cache = cache
        self.arrivals = arrivals
        self.queues = queues

    async def reading(self, work: Callable[[Connection], T]) -> T:
        """Do `work` on a connection of its own, in a thread."""

        def read() -> T:
            with self.engine.connect() as connection:
                return work(connection)

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def ping(self) -> bool:
        """Return whether the database answers."""
        return await self.reading(lambda connection: connection.scalar(select(1)) == 1)

    async def info(self) -> dict[str, str]:
        """Return the content of /api/v1/status, which anybody may read: the name alone."""
        return {"name": "sql"}

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
        """Return a page of the matching records, and the number of all matching ones.

        Without `sort`: better text matches first, then (or without a query) in the order of insertion, or for a
        `user_id` in that user's own order (`arrivals`), the same at every call and while others answer. If records are
        handed out, an annotator's queue leaves out records that others hold, and begins with the annotator's own.
        """
        refuse_names(filter, sort)
        handing, grouping = self.queues.handing, self.queues.grouping
        rater = own_user_id() if handing is not None and predicates.is_queue(filter) else None
        group_name = grouping(dataset.metadata_ or {}) if grouping is not None else None

        def ordered(connection: Connection) -> tuple[list[str], dict[str, float] | None]:
            reading = Reading(connection, dataset.id)
            found = Found(reading, filter, with_moments=query is not None or bool(sort) or user_id is None)
            scores = None if query is None else text_scores(reading, self.cache, found.stamps, query)
            ids = found.ids if scores is None else [id_ for id_ in found.ids if id_ in scores]
            if sort:
                return ordering.arranged(found.in_order(ids), sort, reading), scores
            ids = found.in_order(ids) if user_id is None else self.own_order(reading, ids, user_id, group_name)
            if scores is not None:
                ids.sort(key=lambda id_: -scores[id_])
            return ids, scores

        def work(connection: Connection) -> SearchResponses:
            ids, scores = ordered(connection)
            if handing is not None and rater is not None:
                shown, own_first = slice(offset, offset + limit), not sort and scores is None
                wanted = dataset.distribution["min_submitted"]
                ids = handing.queue(connection, dataset.id, rater, wanted, ids, shown, own_first=own_first)
            return page(ids, scores, offset, limit)

        return await self.reading(work)

    def own_order(self, reading: Reading, ids: Sequence[str], user_id: UUID, group_name: GroupName | None) -> list[str]:
        """Return some records in a user's own order, the same whichever records of the dataset they are."""
        arrived, wanted = self.arrivals.get(reading.dataset_id), set(ids)
        if arrived is None or not wanted <= set().union(*arrived.parts):
            if len(self.arrivals) == MOST_DATASETS:
                self.arrivals.clear()
            arrived = self.arrivals[reading.dataset_id] = reading.arrivals()
        groups = None
        if group_name is not None:
            groups = {id_: group_name(id_, reading.metadata.get(id_)) for part in arrived.parts for id_ in part}
        return [id_ for id_ in arrived.own_order(user_id, groups) if id_ in wanted]

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
        refuse_names(filter)
        target = value or (record.vector_value_by_vector_settings(vector_settings) if record is not None else None)
        if not target or len(target) != vector_settings.dimensions or not np.isfinite(target).all():
            raise UnprocessableEntityError(f"the vector must have {vector_settings.dimensions} numbers")
        sign = -1.0 if order == SimilarityOrder.least_similar else 1.0

        def work(connection: Connection) -> SearchResponses:
            reading = Reading(connection, dataset.id)
            found = Found(reading, filter)
            texts = None if query is None else text_scores(reading, self.cache, found.stamps, query)
            vectors = reading.vectors(vector_settings.id)
            left_out = None if record is None else record.id.hex
            ids = [
                id_ for id_ in found.in_order(found.ids)
                if id_ in vectors and id_ != left_out and (texts is None or id_ in texts)
            ]  # fmt: skip
            near = ordering.similarities([vectors[id_] for id_ in ids], sign * np.asarray(target, dtype=float))
            scores = dict(zip(ids, near, strict=True))
            ids = [id_ for id_ in ids if threshold is None or scores[id_] >= threshold]
            ids.sort(key=lambda id_: -scores[id_])
            return page(ids[:max_results], scores, 0, max_results)

        return await self.reading(work)

    async def get_dataset_progress(self, dataset: Dataset) -> dict[str, int]:
        """The number of records, in all and by status; nothing for a draft.

        With own progress, an annotator's pending records are those left in the annotator's queue. The others are
        completed, but for those that come back to this queue unless their holders answer.
        """
        status: Any = Record.status
        handing = self.queues.handing
        own = own_user_id() if self.queues.own_progress else None
        if own is not None:
            done = Response.user_id == own, Response.status.in_((ResponseStatus.submitted, ResponseStatus.discarded))
            answered = select(Response.id).where(Response.record_id == Record.id, *done).exists()
            status = case((answered, literal(RecordStatus.completed, Record.status.type)), else_=Record.status)
        counted = select(status.label("stands"), func.count()).where(Record.dataset_id == dataset.id)
        counted = counted.group_by("stands")

        def work(connection: Connection) -> dict[str, int]:
            if own is None or handing is None:
                return counts(connection, counted)
            # Each record is counted once, because others answer meanwhile.
            wanted = dataset.distribution["min_submitted"]
            held, left, back = handing.elsewhere(connection, dataset.id, own, wanted)
            found = Counter(counts(connection, counted.where(Record.id.not_in(held))))
            found.update(total=len(held), pending=left, completed=len(held) - left - back)
            return dict(found)

        return {} if dataset.is_draft else await self.reading(work)

    async def get_dataset_user_progress(self, dataset: Dataset, user: User) -> dict[str, int]:
        """The number of this user's responses, in all and by status; nothing for a draft."""
        counted = select(Response.status, func.count()).join(Record).group_by(Response.status)
        counted = counted.where(Record.dataset_id == dataset.id, Response.user_id == user.id)
        return {} if dataset.is_draft else await self.reading(lambda connection: counts(connection, counted))

    async def compute_metrics_for(self, metadata_property: MetadataProperty) -> MetadataMetrics:
        """A terms property's values with their counts; a numeric one's least and greatest value, None without any."""
        name, kind, dataset_id = metadata_property.name, metadata_property.type, metadata_property.dataset_id
        records = await self.reading(lambda connection: Reading(connection, dataset_id).metadata)
        values = [one for metadata in records.values() for one in predicates.elements(metadata.get(name))]
        if kind == MetadataPropertyType.terms:
            count = Counter(map(predicates.written, values))
            ordered = sorted(count.items(), key=lambda item: (-item[1], item[0]))
            terms = [TermsMetrics.TermCount(term=term, count=number) for term, number in ordered]
            return TermsMetrics(total=count.total(), values=terms)
        metrics = IntegerMetadataMetrics if kind == MetadataPropertyType.integer else FloatMetadataMetrics
        numbers = [one for one in map(predicates.number, values) if one is not None]
        return metrics(min=min(numbers, default=None), max=max(numbers, default=None))

    async def create_index(self, dataset: Dataset) -> None:
        """Do nothing, because there is no index; likewise the methods below."""

    async def delete_index(self, dataset: Dataset) -> None:
        """Do nothing."""

    async def configure_metadata_property(self, dataset: Dataset, metadata_property: MetadataProperty) -> None:
        """Do nothing."""

    async def configure_index_vectors(self, vector_settings: VectorSettings) -> None:
        """Do nothing."""

    async def index_records(self, dataset: Dataset, records: Sequence[Record]) -> None:
        """Do nothing."""

    async def partial_record_update(self, record: Record, **update: Any) -> None:
        """Do nothing."""

    async def delete_records(self, dataset: Dataset, records: Sequence[Record]) -> None:
        """Do nothing."""

    async def update_record_response(self, response: Any) -> None:
        """Do nothing."""

    async def delete_record_response(self, response: Any) -> None:
        """Do nothing."""

    async def update_record_suggestion(self, suggestion: Any) -> None:
        """Do nothing."""

    async def delete_record_suggestion(self, suggestion: Any) -> None:
        """Do nothing."""


class Found:
    """The records that pass a search's filters; without the moments at which they came, which most queues need not."""

    def __init__(self, reading: Reading, condition: Filter | None, with_moments: bool = True) -> None:
        leaves = predicates.leaves(condition)
        in_sql = [(leaf, predicates.condition(leaf)) for leaf in leaves]
        conditions = [one for _, one in in_sql if one is not None]
        tests = [predicates.test(leaf, reading) for leaf, one in in_sql if one is None]
        self.reading = reading
        self.every = not conditions
        self.moments = reading.moments(conditions) if with_moments else {}
        self.ids = list(self.moments) if with_moments else reading.ids(conditions)
        for test in tests:
            self.ids = [id_ for id_ in self.ids if test(id_)]

    @property
    def stamps(self) -> Stamps:
        """The time of change of every record of the dataset, whether or not it passes."""
        moments = self.moments if self.every else self.reading.moments()
        return {id_: changed for id_, (_, changed) in moments.items()}

    def in_order(self, ids: Sequence[str]) -> list[str]:
        """Return some records in the order in which they came."""
        return ordering.by_insertion({id_: self.moments[id_] for id_ in ids})


def refuse_names(condition: Filter | None, sort: Sequence[Order] | None = None) -> None:
    """Refuse an annotator's search by external ids, which may say more of a record than the annotator may know."""
    scopes = [leaf.scope for leaf in predicates.leaves(condition)] + [order.scope for order in sort or ()]
    if own_user_id() is not None and any(getattr(scope, "property", "") == "external_id" for scope in scopes):
        raise UnprocessableEntityError("annotators can neither filter nor sort records by external_id")


def text_scores(reading: Reading, cache: Cache, stamps: Stamps, query: TextQuery | str) -> dict[str, float]:
    """The score of each record of the dataset that matches a text query. Raises UnprocessableEntityError."""
    text, name = (query, None) if isinstance(query, str) else (query.q, query.field)
    try:
        tree = parse(text)
    except QueryTooLargeError as error:
        raise UnprocessableEntityError(str(error)) from error
    fields = reading.schema.fields
    number = None if not name else list(fields).index(name) if name in fields else -1
    kept = cache.of(reading.dataset_id.hex, fields)
    words = kept.current(stamps, reading.parts)
    cache.shrink()
    # -1 and -2 are no field's numbers: a field that is not there, which Argilla has refused before, holds nothing.
    return matches(words, tree, None if number is None else (2 * number, 2 * number + 1))


def page(ids: Sequence[str], scores: Mapping[str, float] | None, offset: int, limit: int) -> SearchResponses:
    """One page and the total; the score is 1 where nothing gave one."""
    items = [
        SearchResponseItem(record_id=UUID(id_), score=1.0 if scores is None else scores[id_])
        for id_ in ids[offset : offset + limit]
    ]
    return SearchResponses(items=items, total=len(ids))


def counts(connection: Connection, statement: Any) -> dict[str, int]:
    """The rows (status, number) of a statement as Argilla's progress: with the total."""
    by_status = {str(status): int(number) for status, number in connection.execute(statement)}
    return {"total": sum(by_status.values()), **by_status}
