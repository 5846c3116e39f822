"""Connections to the database that work with many writers.

Measured with Argilla's own settings: simultaneous submissions on the same records left 23 of 1,640 with a wrong status,
its connection pool dead-locked at 16 raters, and SQLite answered "database is locked" at 32. Therefore this module uses
a write-ahead log, a long busy time-out, and a write lock from the first statement of a transaction whose reads must not
be stale. Connections are kept in pools, because a new one costs SQLite 1 ms and PostgreSQL 8 ms of processor time, and
an answer took five. No request waits for a second connection of a pool while it holds one, so no pool can dead-lock.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from argilla_server import database as argilla_database
from argilla_server.settings import settings
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from .errors import StartError

#: The execution option of a transaction that is to lock what it reads before it reads it.
LOCKING = "argilla_embedded_locking"
IDLE = "argilla_embedded_idle"  #: since when a connection is
IDLE_SECONDS = 1.0  #: after which PostgreSQL is asked whether it is there, before a connection is used
#: Threads of one process that store new answers: SQLite lets one transaction write at a time.
WRITERS = {"sqlite": 1, "postgresql": 2}
#: Connections of one process: for these threads and for those of its searches (`asyncio.to_thread` has six on two
#: processors), and for its sessions. Beside them come few: one for a job at a time, those of the start.
THREADS, SESSIONS, BESIDE = 8, 22, 4
#: As few sessions will do for a process: those of the changes that are written together, and one that reads. So many
#: connections of PostgreSQL are left to backups and to people.
LEAST_SESSIONS, OTHERS = 9, 10
CONNECT_SECONDS = 10
#: PostgreSQL compiles a statement of many rows in more time than it takes; 0.1 s for what asyncpg asks at first.
PLAIN = {"jit": "off", "application_name": "argilla-embedded"}


def tune(engine: Engine) -> Engine:
    """Give an engine's connections the behaviour described above. Returns the engine."""

    def looked_at(connection: Any, record: Any, _: Any) -> None:
        # Not each time, for it is a trip of its own: a PostgreSQL that began anew was away for longer.
        if time.monotonic() - record.info.get(IDLE, time.monotonic()) > IDLE_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError from error  # the pool takes another one then

    def given_back(_: Any, record: Any) -> None:
        record.info[IDLE] = time.monotonic()

    def sync_with_the_log_only(connection: Any, record: Any) -> None:
        # In WAL mode NORMAL cannot corrupt, and a killed process loses nothing; FULL would sync at every commit.
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    def lock(connection: Connection) -> None:
        # SQLite's driver begins a transaction only at the first change, so what was read before it could be stale.
        options = connection.get_execution_options()
        if LOCKING in options or options.get("isolation_level") == "SERIALIZABLE":
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    if is_sqlite(engine):
        event.listen(engine, "connect", sync_with_the_log_only)
        event.listen(engine, "begin", lock)
    else:
        event.listen(engine, "checkout", looked_at)
        event.listen(engine, "checkin", given_back)
    return engine


def is_sqlite(engine: Engine) -> bool:
    """Return whether the engine uses SQLite; else it uses PostgreSQL."""
    return bool(engine.dialect.name == "sqlite")


def named(engine: Engine) -> str:
    """Return the database's name for messages, without its password."""
    if is_sqlite(engine):
        return "argilla.db in the server's folder"
    url = engine.url
    host = url.host or url.query.get("host") or "this machine"
    return f"the PostgreSQL database {url.database or url.username!r} on {host}"


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
        arguments: dict[str, Any] = {"timeout": settings.database_sqlite_timeout, "check_same_thread": False}
    else:
        arguments = {"options": " ".join(f"-c {name}={value}" for name, value in PLAIN.items())}
        arguments["connect_timeout"] = CONNECT_SECONDS
    return tune(
        create_engine(sync_url(), pool_size=THREADS, max_overflow=0, connect_args=arguments, hide_parameters=True)
    )  # fmt: skip


def open_async(most: int | None) -> AsyncEngine:
    """The engine of Argilla's sessions, with at most `most` connections; None: no pool, for other event loops."""
    pool = {"poolclass": NullPool} if most is None else {"pool_size": most, "max_overflow": 0, "pool_use_lifo": True}
    if settings.database_is_sqlite:
        arguments: dict[str, Any] = {"timeout": settings.database_sqlite_timeout}
    else:
        arguments = {"server_settings": PLAIN}
    engine = create_async_engine(settings.database_url, connect_args=arguments, hide_parameters=True, **pool)
    tune(engine.sync_engine)
    return engine


def share(engine: Engine, workers: int) -> int:
    """Return the number of connections for the sessions of each process. Raises StartError for too few."""
    if is_sqlite(engine):
        return SESSIONS
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, setting FROM pg_settings WHERE name LIKE '%connections'"))
        known = {name: int(number) for name, number in rows if number.isdecimal()}
    most = known["max_connections"]
    free = most - known.get("superuser_reserved_connections", 0) - known.get("reserved_connections", 0) - OTHERS
    each = min(SESSIONS, free // workers - THREADS - BESIDE)
    if each < LEAST_SESSIONS:
        least = most - free + workers * (THREADS + BESIDE + LEAST_SESSIONS)
        raise StartError(
            f"PostgreSQL allows {most} connections, too few for {workers} processes of this server; set its"
            f" max_connections to {least} or more, or start fewer processes (--workers)"
        )
    return each


class Sessions:
    """The engines of Argilla's sessions: pooled ones for the server's event loop, which runs in the main thread.

    A connection belongs to the event loop that made it, and background jobs run in loops of their own.
    """

    def __init__(self, most: int) -> None:
        self.pooled, self.single = open_async(most), open_async(None)

    def here(self) -> AsyncEngine:
        """The engine for the calling thread."""
        return self.pooled if threading.current_thread() is threading.main_thread() else self.single

    def bind(self) -> None:
        """Have Argilla's sessions take their connections from here."""
        sessions = self

        class Bound(Session):  # type: ignore[misc]  # sqlalchemy is not where types are checked
            def get_bind(self, *_: Any, **__: Any) -> Engine:
                return sessions.here().sync_engine

        argilla_database.AsyncSessionLocal.configure(bind=self.pooled, sync_session_class=Bound)

    async def set_up(self) -> None:
        """Open each engine's first connection, while there is only one event loop.

        SQLAlchemy sets up an engine at its first connection, under a lock that cannot wake a waiter in another loop: a
        job that was cut off, and begins beside another one at the next start, would wait for ever.
        """
        for engine in (self.pooled, self.single):
            async with engine.connect():
                pass
        await self.pooled.dispose()  # what it keeps belongs to this loop, and the server's is another

    async def close(self) -> None:
        """Close the pool's connections; SQLite's log is then gone, and the database is one file."""
        await self.pooled.dispose()
