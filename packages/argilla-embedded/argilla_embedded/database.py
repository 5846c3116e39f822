"""The database under Argilla: it is migrated and repaired before each start."""

from __future__ import annotations

import asyncio
import functools
import logging
from pathlib import Path

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
from sqlalchemy import Engine, func, or_, select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from . import recount, trips
from .connections import Sessions, is_sqlite, named, open_sync, share, sync_url
from .errors import MigrationNeededError, StartError
from .hardening import WELL_KNOWN_KEYS, WELL_KNOWN_PASSWORDS
from .holding import Holder

LOGGER = logging.getLogger("argilla_embedded.database")


def prepare(owner: dict[str, str], may_migrate: bool, workers: int, hardened: bool) -> tuple[Holder | None, int]:
    """Migrate the database and repair accounts and statuses, once, before any of the `workers` processes serves.

    `owner` has username, password and api_key. Returns the lock that reserves a PostgreSQL database for this server, to
    be kept while it runs (the home's lock does this for SQLite), and the number of connections for each process's
    sessions. If `hardened`, accounts with well-known passwords get new passwords. Raises StartError if the database
    cannot be used, and MigrationNeededError if it must be migrated, has data, and `may_migrate` is false.
    """
    engine = open_sync()
    try:
        held = None if is_sqlite(engine) else Holder(open_sync())
        if held is None:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        most = share(engine, workers)
        migrate(engine, may_migrate)
        if is_sqlite(engine):
            advise_planner(engine)
        with Session(engine) as session, session.begin():
            if hardened:
                replace_well_known(session)
            ensure_owner(session, owner)
            repair_statuses(session)
        return held, most
    except DatabaseError as error:
        raise StartError(f"{named(engine)} cannot be used ({error.orig}); {ADVICE[is_sqlite(engine)]}") from error
    finally:
        engine.dispose()


def open_sessions(most: int) -> Sessions:
    """Bind Argilla's sessions to at most `most` connections, and replace its recount; once in each serving process."""
    trips.apply()
    sessions = Sessions(most)
    asyncio.run(sessions.set_up())
    sessions.bind()
    recount.apply(sessions)
    # Argilla builds a validator of all kinds of questions for each question of each answer (0.8 ms); one serves all.
    argilla_models.TypeAdapter = functools.cache(argilla_models.TypeAdapter)
    return sessions


ADVICE = {
    True: "restore a backup or move it away",
    False: "check the address, the user and the password in --database-url, and that PostgreSQL runs",
}


def migrate(engine: Engine, may_migrate: bool) -> None:
    """Bring the tables to this Argilla's version, unless they already have it."""
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
            f"{named(engine)} was written by a newer Argilla than 2.8.0; update this server or use another database"
        )
    if present and not may_migrate:
        raise MigrationNeededError
    # Argilla's script takes the address from this function and puts it into an .ini option, where % is special.
    text = sync_url().render_as_string(hide_password=False).replace("%", "%%")
    argilla_database.database_url_sync = lambda: text
    command.upgrade(config, "head")


def replace_well_known(session: Session) -> None:
    """Draw new passwords and keys for accounts of an existing database that have well-known ones."""
    users = session.scalars(select(User).where(or_(User.api_key.in_(WELL_KNOWN_KEYS), User.username == "argilla")))
    for user in users:
        guessable = any(accounts.verify_password(password, user.password_hash) for password in WELL_KNOWN_PASSWORDS)
        if guessable or user.api_key in WELL_KNOWN_KEYS:
            LOGGER.warning("the account %s had a well-known password or key; both were replaced", user.username)
            user.api_key = generate_user_api_key()
            user.password_hash = accounts.hash_password(generate_user_api_key()[:40])


def ensure_owner(session: Session, owner: dict[str, str]) -> None:
    """Make the owner's account match the home's credentials file."""
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
    """Tell SQLite's planner how selective the indices of the answers are: rows in all, rows that share one key.

    Without statistics it looks for the submitted answers of one record among all submitted answers of the server: every
    submission would read them all, and the repair of 50,000 records takes minutes. ANALYZE would see only the rows
    present at the start, and nothing in empty tables. https://www.sqlite.org/fileformat2.html#stat1tab
    """
    rows = (("ix_responses_status", 300_000), ("ix_responses_user_id", 30_000), ("ix_responses_record_id", 3))
    with engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE sqlite_master")  # makes the table of statistics, and fills in nothing
        connection.exec_driver_sql("DELETE FROM sqlite_stat1 WHERE tbl = 'responses'")
        for index, alike in rows:
            known = "responses", index, f"1000000 {alike}"
            connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", known)


def repair_statuses(session: Session) -> None:
    """Recount every record's status, because a crash may have come between an answer and its counting."""
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
