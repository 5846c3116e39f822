"""Recount of a record's answers after each one: in two statements, correct however many answer at once.

Argilla reads the record, its dataset and all its answers into objects, in a serialisable transaction. Here the record
is locked, its submitted answers are counted, and its status is written if it changed. Every answer is committed before
it is counted, and the counts of one record follow one another, so the last of them sees all answers: on SQLite because
such a transaction is the only one that writes, on PostgreSQL because it waits for the record's row and then reads what
is committed by that time. An answer's other changes are written separately, each in one statement.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import Any
from uuid import UUID

import backoff
from argilla_server.contexts import datasets, distribution
from argilla_server.database import AsyncSessionLocal
from argilla_server.enums import DatasetDistributionStrategy, RecordStatus, ResponseStatus
from argilla_server.errors.future import NotFoundError
from argilla_server.models import Dataset, DatasetUser, Record, Response, Webhook
from argilla_server.webhooks.v1.enums import RecordEvent
from sqlalchemy import Connection, Engine, bindparam, exists, func, select, true, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from .connections import LOCKING, Sessions

#: Decorates what a database that is away for a moment must not leave undone.
again = backoff.on_exception(backoff.expo, SQLAlchemyError, max_time=15)
#: Whether anybody has webhooks, as far as this request has asked: it is asked for with the counting.
HEARD: ContextVar[bool | None] = ContextVar("heard", default=None)
_RECORDS, _DATASETS, _RESPONSES = Record.__table__, Dataset.__table__, Response.__table__
_THIS = bindparam("this")
#: PostgreSQL's lock is the one that lets others refer to the record meanwhile, as a new answer does.
_STANDS = (
    select(_RECORDS.c.status, _DATASETS.c.distribution)
    .join(_DATASETS, _DATASETS.c.id == _RECORDS.c.dataset_id)
    .where(_RECORDS.c.id == _THIS)
    .with_for_update(of=_RECORDS, key_share=True)
)
_COUNTED = select(func.count(), exists().where(Webhook.__table__.c.enabled == true())).where(
    _RESPONSES.c.record_id == _THIS, _RESPONSES.c.status == ResponseStatus.submitted
)
_CHANGE = update(_RECORDS).where(_RECORDS.c.id == _THIS)
_NOW = bindparam("now")
#: Somebody answered: the dataset's time of change stays.
_ACTIVE = update(_DATASETS).where(_DATASETS.c.id == _THIS)
_ACTIVE = _ACTIVE.values(last_activity_at=_NOW, updated_at=_DATASETS.c.updated_at)
_MEMBERS = DatasetUser.__table__
_PAIR = [_MEMBERS.c.dataset_id, _MEMBERS.c.user_id]
_TAKES_PART = {
    dialect: insert(_MEMBERS).on_conflict_do_update(index_elements=_PAIR, set_={"updated_at": _NOW})
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}


def apply(sessions: Sessions) -> None:
    """Replace Argilla's own recount. Call it once, after Argilla is imported."""

    async def update_record_status(search_engine: object, record_id: UUID) -> None:
        async with sessions.here().execution_options(**{LOCKING: True}).begin() as connection:
            heard = await connection.run_sync(count, record_id)
        if heard is None:
            raise NotFoundError(f"Record with id `{record_id}` not found")
        HEARD.set(heard)
        if heard:
            await tell(record_id)

    distribution.update_record_status = again(update_record_status)
    datasets._touch_dataset_last_activity_at = note_activity
    DatasetUser.upsert = note_part


async def note_activity(db: AsyncSession, dataset: Dataset) -> None:
    """Record that a dataset was worked on now; Argilla's own code builds the statement anew each time."""
    await db.flush()  # the answer first: from here on, others' answers to this dataset wait
    await (await db.connection()).run_sync(note_work, dataset.id)


async def note_part(db: AsyncSession, schema: dict[str, UUID], **_: Any) -> None:
    """Record that a user takes part in a dataset (their ids); Argilla compiles this statement anew for each answer."""
    await (await db.connection()).run_sync(note_worker, **schema)


def note_work(connection: Connection, dataset_id: UUID) -> None:
    """Record that a dataset was worked on now."""
    connection.execute(_ACTIVE, {"this": dataset_id, "now": datetime.utcnow()})


def note_worker(connection: Connection, dataset_id: UUID, user_id: UUID) -> None:
    """Record that a user takes part in a dataset."""
    ids = {"dataset_id": dataset_id, "user_id": user_id}
    connection.execute(_TAKES_PART[connection.dialect.name], {**ids, "now": datetime.utcnow()})


def count(connection: Connection, record_id: UUID) -> bool | None:
    """Write a record's status by its answers; return whether any webhook is enabled, or None without the record.

    The transaction must have been begun for it alone, with LOCKING.
    """
    this: dict[str, Any] = {"this": record_id}
    found = connection.execute(_STANDS, this).one_or_none()
    if found is None:
        return None
    status, rule = found
    if rule["strategy"] != DatasetDistributionStrategy.overlap:
        raise NotImplementedError(f"unsupported distribution strategy `{rule['strategy']}`")
    submitted, heard = connection.execute(_COUNTED, this).one()
    if status != (wanted := right(submitted, rule)):
        connection.execute(_CHANGE.values(status=wanted), this)
    return bool(heard)


def alone(engine: Engine, record_id: UUID) -> None:
    """Recount a record, if it is still there, in a transaction of its own."""
    with engine.execution_options(**{LOCKING: True}).begin() as connection:
        count(connection, record_id)


def right(submitted: int, rule: dict[str, Any]) -> RecordStatus:
    """Return the status of a record with this number of submitted answers."""
    return RecordStatus.completed if submitted >= rule["min_submitted"] else RecordStatus.pending


def put_right(engine: Engine) -> int:
    """Recount the records whose status contradicts their answers, while others answer; return their number.

    A process may have been killed, or a database have been away, between an answer and its counting.
    """
    enough = _DATASETS.c.distribution["min_submitted"].as_integer() <= (
        select(func.count())
        .where(_RESPONSES.c.record_id == _RECORDS.c.id, _RESPONSES.c.status == ResponseStatus.submitted)
        .scalar_subquery()
    )
    suspects = select(_RECORDS.c.id).join(_DATASETS, _DATASETS.c.id == _RECORDS.c.dataset_id)
    suspects = suspects.where((_RECORDS.c.status == RecordStatus.completed) != enough)
    with engine.connect() as connection:
        found = connection.scalars(suspects).all()
    for one in found:
        alone(engine, one)
    return len(found)


async def tell(record_id: UUID) -> None:
    """Send the record's webhooks, as Argilla does."""
    async with AsyncSessionLocal() as db:
        loaded = selectinload(Record.dataset), selectinload(Record.responses_submitted)
        record = await Record.get_or_raise(db, record_id, options=list(loaded))
        await distribution.notify_record_event_v1(db, RecordEvent.updated, record)
        if record.is_completed():
            await distribution.notify_record_event_v1(db, RecordEvent.completed, record)
