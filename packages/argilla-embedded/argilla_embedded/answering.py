"""New answers in a few statements, without Argilla's objects.

For one answer Argilla loads the record, its dataset, all questions and metadata properties as objects, and then the
answer again: most of its processor time. Here Argilla's own validator checks the answer, and statements on Argilla's
tables store it. Argilla's handler does the rest: it refuses answers to unknown records, of other workspaces and second
ones, and tells webhooks.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import UUID, uuid4

from argilla_server.api.handlers.v1.records import create_record_response
from argilla_server.api.schemas.v1.questions import QuestionSettings
from argilla_server.api.schemas.v1.responses import Response as Stored
from argilla_server.api.schemas.v1.responses import ResponseCreate
from argilla_server.database import get_async_db
from argilla_server.enums import UserRole
from argilla_server.errors import UnauthorizedError
from argilla_server.models import Dataset, Question, Record, Response, User, Webhook, WorkspaceUser
from argilla_server.search_engine import SearchEngine, get_search_engine
from argilla_server.security import auth
from argilla_server.validators.responses import ResponseCreateValidator
from fastapi import Depends, FastAPI, Security
from fastapi.encoders import jsonable_encoder
from pydantic import TypeAdapter
from sqlalchemy import Engine, bindparam, exists, insert, or_, select, true
from sqlalchemy.ext.asyncio import AsyncSession

from . import recount
from .connections import LOCKING
from .turns import Turns

_RECORDS, _DATASETS, _RESPONSES, _QUESTIONS = (one.__table__ for one in (Record, Dataset, Response, Question))
_USERS, _MEMBERS, _WEBHOOKS = (one.__table__ for one in (User, WorkspaceUser, Webhook))
_RECORD, _USER = bindparam("record_id"), bindparam("user_id")
_PLACE = (
    select(
        _RECORDS.c.dataset_id,
        _RECORDS.c.fields,
        _DATASETS.c["metadata"],
        or_(
            exists().where(_MEMBERS.c.workspace_id == _DATASETS.c.workspace_id, _MEMBERS.c.user_id == _USER),
            exists().where(_USERS.c.id == _USER, _USERS.c.role == UserRole.owner),
        ),
        exists().where(_RESPONSES.c.record_id == _RECORD, _RESPONSES.c.user_id == _USER),
        exists().where(_WEBHOOKS.c.enabled == true()),
    )
    .join(_DATASETS, _DATASETS.c.id == _RECORDS.c.dataset_id)
    .where(_RECORDS.c.id == _RECORD)
)
_ASKED = select(_QUESTIONS.c.name, _QUESTIONS.c.required, _QUESTIONS.c.settings)
_ASKED = _ASKED.where(_QUESTIONS.c.dataset_id == bindparam("dataset_id")).order_by(_QUESTIONS.c.inserted_at)
_SETTINGS: TypeAdapter[Any] = TypeAdapter(QuestionSettings)
_Session = Annotated[AsyncSession, Depends(get_async_db)]
_Search = Annotated[SearchEngine, Depends(get_search_engine)]
_Sender = Annotated[User, Security(auth.get_current_user)]


def apply(api: FastAPI, engine: Engine, turns: Turns) -> None:
    """Put this route in the place of Argilla's, after plugins' own. Call it once.

    `engine` is one for threads (`connections.open_sync`).
    """
    # Threads of their own: searches may take all others for a while.
    writers = ThreadPoolExecutor(turns.writers, thread_name_prefix="answers")

    async def create(
        db: _Session, search_engine: _Search, record_id: UUID, response_create: ResponseCreate, current_user: _Sender
    ) -> Any:
        await db.commit()  # gives the connection back, which a request that has its turn may wait for
        async with turns.together():
            stored = await asyncio.get_running_loop().run_in_executor(
                writers, store, engine, record_id, current_user.id, response_create
            )
        if stored is not None:
            return stored
        async with turns.answer():
            # As the account is now: it may have changed while this waited for its turn.
            sender = await db.get(User, current_user.id, populate_existing=True)
            if sender is None:
                raise UnauthorizedError
            return await create_record_response(
                db=db, search_engine=search_engine, record_id=record_id, response_create=response_create,
                current_user=sender,
            )  # fmt: skip

    routes = api.router.routes
    place = [getattr(route, "endpoint", None) for route in routes].index(create_record_response)
    api.add_api_route(routes[place].path, create, methods=["POST"], status_code=201, response_model=Stored)
    routes[place] = routes.pop()


def store(engine: Engine, record_id: UUID, user_id: UUID, answer: ResponseCreate) -> dict[str, Any] | None:
    """Store a user's first answer to a record and recount the record; return the answer's row.

    Returns None, without a change, where Argilla's handler is to decide. Raises what Argilla's validator raises.
    """
    now = datetime.utcnow()
    row = {"id": uuid4(), "record_id": record_id, "user_id": user_id, "status": answer.status,
           "values": jsonable_encoder(answer.values), "inserted_at": now, "updated_at": now}  # fmt: skip
    with engine.execution_options(**{LOCKING: True}).begin() as connection:
        found = connection.execute(_PLACE, {"record_id": record_id, "user_id": user_id}).one_or_none()
        if found is None:
            return None
        dataset_id, fields, metadata, allowed, answered, heard = found
        if answered or heard or not allowed:
            return None
        questions = [
            SimpleNamespace(name=name, required=required, parsed_settings=_SETTINGS.validate_python(settings))
            for name, required, settings in connection.execute(_ASKED, {"dataset_id": dataset_id})
        ]
        dataset = SimpleNamespace(questions=questions, metadata_=metadata)
        ResponseCreateValidator.validate(answer, SimpleNamespace(fields=fields, dataset=dataset))
        connection.execute(insert(_RESPONSES), row)
        recount.note_work(connection, dataset_id)
        recount.note_worker(connection, dataset_id, user_id)
    recount.again(recount.alone)(engine, record_id)
    return row
