"""Annotators read only their own answers: on every route, whatever its handler reads from the database.

Argilla's handlers load all responses of a record, everybody's progress and everybody's names, and rely on each route to
withhold other people's; several do not. Here the database session itself leaves out other people's rows while it serves
an annotator's read. Writing requests need everybody's answers (a record is complete when enough people answered) and
return only what was written.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from argilla_server.models import DatasetUser, Response, User, WorkspaceUser
from argilla_server.security.authentication import provider
from fastapi import Request
from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.orm.attributes import set_committed_value

from .gate import writes


@dataclass(frozen=True)
class Reader:
    """The account that sent the request."""

    user_id: UUID
    is_owner: bool
    reads_own_only: bool  #: an annotator's request that changes nothing


READER: ContextVar[Reader | None] = ContextVar("reader", default=None)


def know_readers() -> None:
    """Record the account of each request. Call it once, after Argilla is imported."""
    remember = provider.set_request_user

    def note_reader(request: Request, user: User) -> None:
        own_only = not (user.is_owner or user.is_admin) and not writes(request.scope)
        READER.set(Reader(user.id, user.is_owner, own_only))
        remember(request, user)

    provider.set_request_user = note_reader


def apply() -> None:
    """Restrict sessions to the reader's rows; `know_readers` must run, too. Call it once, after Argilla is imported."""
    event.listen(Session, "do_orm_execute", only_own)
    event.listen(User, "load", without_anothers_key)
    event.listen(User, "refresh", without_anothers_key)


def only_own(state: ORMExecuteState) -> None:
    """Narrow a statement, and what it loads, to the reader's own rows."""
    own = own_user_id()
    if own is None:
        return
    # Argilla takes out of its copy of a record what the reader may not know: that is no change of the record's.
    state.session.autoflush = False
    if not state.is_select or state.is_column_load or state.is_relationship_load:
        return
    owners: tuple[tuple[Any, Any], ...] = (
        (Response, Response.user_id),
        (DatasetUser, DatasetUser.user_id),
        (WorkspaceUser, WorkspaceUser.user_id),
        (User, User.id),
    )
    narrowed = (with_loader_criteria(kind, column == own) for kind, column in owners)
    state.statement = state.statement.options(*narrowed)


def own_user_id() -> UUID | None:
    """Return the annotator who reads in this request; None for other accounts and for writing requests."""
    reader = READER.get()
    return reader.user_id if reader is not None and reader.reads_own_only else None


def without_anothers_key(user: User, *_: object) -> None:
    """Hide other users' API keys: an admin may list a workspace's members, but not act as one of them."""
    reader = READER.get()
    if reader is not None and not reader.is_owner and reader.user_id != user.id:
        set_committed_value(user, "api_key", "")  # of this object alone: it does not count as a change to be written
