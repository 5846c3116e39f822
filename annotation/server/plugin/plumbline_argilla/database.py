"""The database under Argilla: how connections behave with many writers, and what is put right before each start.

Measured with Argilla's own settings: simultaneous submissions on the same records left 23 of 1,640 with a wrong
status, its connection pool dead-locked at 16 raters, and SQLite answered "database is locked" at 32. Against these:
no pool, a write-ahead log, a long busy time-out, and a write lock from the first statement on for the transactions
that Argilla asks to be serialisable (all of them would lock themselves out within one request).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import argilla_server
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from argilla_server import database as argilla_database
from argilla_server.contexts import accounts
from argilla_server.enums import RecordStatus, ResponseStatus, UserRole
from argilla_server.models import Dataset, Record, Response, User
from argilla_server.models.database import generate_user_api_key
from argilla_server.settings import settings
from sqlalchemy import Connection, Engine, create_engine, event, func, or_, select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from .hardening import WELL_KNOWN_KEYS, WELL_KNOWN_PASSWORDS
from .launch import StartError

LOGGER = logging.getLogger("plumbline_argilla.database")


def tune(engine: Engine) -> Engine:
    """Give an engine's connections the behaviour described above. Returns the engine."""

    def sync_with_the_log_only(connection: Any, record: Any) -> None:
        # In WAL mode NORMAL cannot corrupt, and a killed process loses nothing; FULL would sync at every commit.
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    def lock_serialisable(connection: Connection) -> None:
        # The driver begins a transaction only at the first change, so what was read before it could be stale.
        if connection.get_execution_options().get("isolation_level") == "SERIALIZABLE":
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", sync_with_the_log_only)
    event.listen(engine, "begin", lock_serialisable)
    return engine


def open_sync() -> Engine:
    """A synchronous engine on Argilla's database, for use in threads and before the start."""
    return tune(
        create_engine(
            argilla_database.database_url_sync(),
            poolclass=NullPool,
            connect_args={"timeout": settings.database_sqlite_timeout},
        )
    )


def apply(owner: dict[str, str]) -> None:
    """Migrate, put accounts and statuses right, and bind Argilla's sessions to connections that count rightly.

    `owner` has username, password and api_key. Raises StartError when the database cannot be used.
    """
    engine = open_sync()
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        migrate(engine)
        with Session(engine) as session, session.begin():
            replace_well_known(session)
            ensure_owner(session, owner)
            repair_statuses(session)
    except DatabaseError as error:
        raise StartError(
            f"argilla.db in the server's folder cannot be used ({error.orig}); restore it from a copy or move it away"
        ) from error
    asynchronous = create_async_engine(
        settings.database_url, poolclass=NullPool, connect_args={"timeout": settings.database_sqlite_timeout}
    )
    tune(asynchronous.sync_engine)
    argilla_database.AsyncSessionLocal.configure(bind=asynchronous)


def migrate(engine: Engine) -> None:
    """Bring the tables to this Argilla's version; nothing happens when they are there already."""
    # Without the .ini file of Argilla, whose logging section would silence the server's own loggers.
    config = Config()
    config.set_main_option(
        "script_location", str(Path(argilla_server.__file__).with_name("alembic")).replace("%", "%%")
    )
    scripts = ScriptDirectory.from_config(config)
    with engine.connect() as connection:
        present = set(MigrationContext.configure(connection).get_current_heads())
    if present == set(scripts.get_heads()):
        return
    if not present <= {script.revision for script in scripts.walk_revisions()}:
        raise StartError(
            "argilla.db was written by a newer Argilla than 2.8.0; update the platform or move the file away"
        )
    command.upgrade(config, "head")


def replace_well_known(session: Session) -> None:
    """Draw new passwords and keys for accounts that came with a brought-along database and have well-known ones."""
    users = session.scalars(select(User).where(or_(User.api_key.in_(WELL_KNOWN_KEYS), User.username == "argilla")))
    for user in users:
        guessable = any(accounts.verify_password(password, user.password_hash) for password in WELL_KNOWN_PASSWORDS)
        if guessable or user.api_key in WELL_KNOWN_KEYS:
            LOGGER.warning("the account %s had a well-known password or key; both are replaced", user.username)
            user.api_key = generate_user_api_key()
            user.password_hash = accounts.hash_password(generate_user_api_key()[:40])


def ensure_owner(session: Session, owner: dict[str, str]) -> None:
    """Make the owner's account what the home's credentials file says it is."""
    user = session.scalars(select(User).where(User.username == owner["username"])).one_or_none()
    if user is not None and user.api_key == owner["api_key"]:
        return
    if user is None:
        user = User(first_name="Owner", username=owner["username"], role=UserRole.owner)
        session.add(user)
    user.role = UserRole.owner
    user.api_key = owner["api_key"]
    user.password_hash = accounts.hash_password(owner["password"])


def repair_statuses(session: Session) -> None:
    """Recount every record's status, for a crash may have come between an answer and its counting."""
    submitted = (
        select(func.count(Response.id))
        .where(Response.record_id == Record.id, Response.status == ResponseStatus.submitted)
        .scalar_subquery()
    )
    for dataset_id, distribution in session.execute(select(Dataset.id, Dataset.distribution)).all():
        enough = submitted >= distribution["min_submitted"]
        for status, holds in ((RecordStatus.completed, enough), (RecordStatus.pending, ~enough)):
            wrong = Record.dataset_id == dataset_id, Record.status != status, holds
            # The record itself has not changed: its time of change stays.
            change = update(Record).where(*wrong).values(status=status, updated_at=Record.updated_at)
            session.execute(change.execution_options(synchronize_session=False))
