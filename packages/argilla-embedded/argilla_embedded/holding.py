"""The lock that reserves a PostgreSQL database for this server, also after PostgreSQL was away.

It is an advisory lock of PostgreSQL, which ends with its connection: when PostgreSQL restarts, when somebody ends the
connection, or when the network fails. So the parent of all processes checks it.
"""

from __future__ import annotations

import logging
import time

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from . import recount
from .connections import named
from .errors import StartError

LOGGER = logging.getLogger("argilla_embedded.holding")
#: PostgreSQL's advisory lock of the server that uses a database: an arbitrary number, the same in all versions.
POSTGRES_LOCK = 8100978942395836782
#: More than one try, for that of a server that was just killed is let go only when PostgreSQL has noticed.
POSTGRES_TRIES, POSTGRES_PAUSE = 20, 0.1
_MINE = text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
#: Behind a network that failed, PostgreSQL may believe in the old connection for hours.
_END = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start"
)


class Holder:
    """Holds the database's lock from its creation on."""

    def __init__(self, engine: Engine) -> None:
        """Raises StartError if another server has the lock."""
        self.engine = engine
        self.connection: Connection | None = None
        self._before = {"pid": 0, "backend_start": None}
        self.take()

    def take(self) -> None:
        """Take the lock, because two servers would not order their writes. Raises StartError if another has it."""
        connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(_END, self._before)
        for _ in range(POSTGRES_TRIES):
            if connection.scalar(select(func.pg_try_advisory_lock(POSTGRES_LOCK))):
                self._before = dict(connection.execute(_MINE).one()._mapping)
                self.connection = connection
                return
            time.sleep(POSTGRES_PAUSE)
        connection.close()
        raise StartError(
            f"another server of this kind uses {named(self.engine)}; stop that server, or use another database"
        )

    def look(self, cut_off: bool = False) -> None:
        """Take a lost lock again, and recount what was cut off meanwhile, or by the end of a process (`cut_off`).

        Raises StartError if another server took the lock.
        """
        try:
            if self.connection is not None:
                self.connection.execute(select(1))
            else:
                self.take()
                LOGGER.warning("PostgreSQL answers again")
                cut_off = True
            if cut_off:
                recount.put_right(self.engine)
        except DBAPIError as error:
            if self.connection is not None:
                LOGGER.warning("PostgreSQL does not answer: %s", str(error.orig).strip())
                self.close()

    def close(self) -> None:
        """Release the lock."""
        if self.connection is not None:
            self.connection.invalidate()
            self.connection.close()
            self.connection = None
