"""The database under Argilla: how connections behave with many writers, and what is put right before each start.

Measured with Argilla's own settings: simultaneous submissions on the same records left 23 of 1,640 with a wrong
status, its connection pool dead-locked at 16 raters, and SQLite answered "database is locked" at 32. Against these:
no pool, a write-ahead log, a long busy time-out, and a write lock from the first statement on for the transactions
that Argilla asks to be serialisable (all of them would lock themselves out within one request).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
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
from argilla_server.models import database as argilla_models
from argilla_server.models.database import generate_user_api_key
from argilla_server.settings import settings
from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, or_, select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from . import trips
from .errors import MigrationNeededError, StartError
from .hardening import WELL_KNOWN_KEYS, WELL_KNOWN_PASSWORDS

LOGGER = logging.getLogger("plumbline_argilla.database")
#: PostgreSQL's advisory lock of the server that uses a database: "plumbline" as a number.
POSTGRES_LOCK = int.from_bytes(b"plumblin", "big")
POSTGRES_TRIES, POSTGRES_PAUSE = 20, 0.1


def tune(engine: Engine) -> Engine:
    """Give an engine's connections the behaviour described above. Returns the engine."""

    def sync_with_the_log_only(connection: Any, record: Any) -> None:
        # In WAL mode NORMAL cannot corrupt, and a killed process loses nothing; FULL would sync at every commit.
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    # SQLite's driver begins a transaction only at the first change, so what was read before it could be stale.
    # PostgreSQL's serialisable transactions do not see what others read and write at a lower level; a lock of the
    # table as the very first statement, before there is a snapshot, makes a recount wait for them.
    first = "BEGIN IMMEDIATE" if is_sqlite(engine) else "LOCK TABLE responses IN SHARE ROW EXCLUSIVE MODE"

    def lock_serialisable(connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") == "SERIALIZABLE":
            connection.exec_driver_sql(first)

    if is_sqlite(engine):
        event.listen(engine, "connect", sync_with_the_log_only)
    event.listen(engine, "begin", lock_serialisable)
    return engine


def is_sqlite(engine: Engine) -> bool:
    """Whether the engine speaks to SQLite; else it is PostgreSQL."""
    return bool(engine.dialect.name == "sqlite")


def sync_url() -> URL:
    """The database's address for drivers that block; psycopg2 calls `sslmode` what asyncpg calls `ssl`."""
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite":
        return url.set(drivername="sqlite")
    query = {("sslmode" if name == "ssl" else name): value for name, value in url.query.items()}
    return url.set(drivername="postgresql+psycopg2", query=query)


def open_sync() -> Engine:
    """A synchronous engine on Argilla's database, for use in threads and before the start.

    Parameters are hidden in its errors, and so in the log: they are answers, keys and the hashes of passwords.
    """
    if settings.database_is_sqlite:
        return tune(
            create_engine(
                sync_url(),
                poolclass=NullPool,
                connect_args={"timeout": settings.database_sqlite_timeout},
                hide_parameters=True,
            )
        )
    return tune(create_engine(sync_url(), pool_size=5, max_overflow=60, pool_pre_ping=True, hide_parameters=True))


def open_async() -> AsyncEngine:
    """The engine of Argilla's sessions; without a pool, for jobs run in event loops of their own."""
    arguments = {"timeout": settings.database_sqlite_timeout} if settings.database_is_sqlite else {}
    engine = create_async_engine(
        settings.database_url, poolclass=NullPool, connect_args=arguments, hide_parameters=True
    )
    tune(engine.sync_engine)
    return engine


async def set_up(engine: AsyncEngine) -> None:
    """Make an engine's first connection, while there is one event loop only.

    SQLAlchemy sets the engine up then, under a lock that cannot wake who waits in another loop: a job that was cut off
    and began beside another one at the next start would wait for ever.
    """
    async with engine.connect():
        pass


def apply(owner: dict[str, str], may_migrate: bool) -> Connection | None:
    """Migrate, put accounts and statuses right, and bind Argilla's sessions to connections that count rightly.

    `owner` has username, password and api_key. Returns what holds a PostgreSQL database for this server alone, to be
    kept for as long as it runs (SQLite's is held by the home's lock). Raises StartError when the database cannot be
    used, and MigrationNeededError when it has to be migrated, holds data, and `may_migrate` is false.
    """
    engine = open_sync()
    try:
        held = None if is_sqlite(engine) else hold(engine)
        if held is None:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        migrate(engine, may_migrate)
        if is_sqlite(engine):
            advise_planner(engine)
        with Session(engine) as session, session.begin():
            replace_well_known(session)
            ensure_owner(session, owner)
            repair_statuses(session)
        trips.apply()
        sessions = open_async()
        asyncio.run(set_up(sessions))
    except DatabaseError as error:
        raise StartError(f"{named(engine)} cannot be used ({error.orig}); {ADVICE[is_sqlite(engine)]}") from error
    argilla_database.AsyncSessionLocal.configure(bind=sessions)
    # Argilla builds a validator of all kinds of questions for each question of each answer (0.8 ms); one serves all.
    argilla_models.TypeAdapter = functools.cache(argilla_models.TypeAdapter)
    return held


ADVICE = {
    True: "restore a backup (python -m annotation restore) or move it away",
    False: "check the address, the user and the password in --database-url, and that the server runs",
}


def named(engine: Engine) -> str:
    """What a person calls the database; never with its password."""
    if is_sqlite(engine):
        return "argilla.db in the server's folder"
    url = engine.url
    host = url.host or url.query.get("host") or "this machine"
    return f"the PostgreSQL database {url.database or url.username!r} on {host}"


def hold(engine: Engine) -> Connection:
    """Take a PostgreSQL database for this server, for two would queue writes past each other. Raises StartError."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    # More than once, for that of a server that was just killed is let go only when PostgreSQL has noticed.
    for _ in range(POSTGRES_TRIES):
        if connection.scalar(select(func.pg_try_advisory_lock(POSTGRES_LOCK))):
            return connection
        time.sleep(POSTGRES_PAUSE)
    raise StartError(f"{named(engine)} is in use by another of our servers; stop that one, or use another database")


def migrate(engine: Engine, may_migrate: bool) -> None:
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
            f"{named(engine)} was written by a newer Argilla than 2.8.0; update the platform or use another database"
        )
    if present and not may_migrate:
        raise MigrationNeededError
    # Argilla's script takes the address from this function and puts it into an .ini option, where % is special.
    text = sync_url().render_as_string(hide_password=False).replace("%", "%%")
    argilla_database.database_url_sync = lambda: text
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


def advise_planner(engine: Engine) -> None:
    """Tell SQLite's planner how the indices of the answers divide them: rows in all, rows that share one key.

    Without statistics it looks for the submitted answers of one record among all submitted answers of the server:
    every submission would read them all, and the repair of 50,000 records takes minutes. ANALYZE would know only
    what there is at the start, and of empty tables nothing. https://www.sqlite.org/fileformat2.html#stat1tab
    """
    rows = (("ix_responses_status", 300_000), ("ix_responses_user_id", 30_000), ("ix_responses_record_id", 3))
    with engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE sqlite_master")  # makes the table of statistics, and fills in nothing
        connection.exec_driver_sql("DELETE FROM sqlite_stat1 WHERE tbl = 'responses'")
        for index, alike in rows:
            known = "responses", index, f"1000000 {alike}"
            connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", known)


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
