"""One trip to a connection's thread for each statement to SQLite, and none to end a transaction that was not begun.

aiosqlite gives each connection a thread, and SQLAlchemy makes four trips there for a statement: for a cursor, for the
statement, for its rows, and to close the cursor. Each trip wakes two threads; of the 19 ms of processor time that an
answer took the server, 2.5 were spent on these trips. A session that has only read is ended by two more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sqlalchemy.dialects.sqlite import aiosqlite

_Cursor, _Connection = aiosqlite.AsyncAdapt_aiosqlite_cursor, aiosqlite.AsyncAdapt_aiosqlite_connection
_in_four_trips = _Cursor.execute


def apply() -> None:
    """Have SQLAlchemy's cursors and connections do so. Call it once, before the first connection."""
    _Cursor.execute = _in_one_trip
    _Connection.commit, _Connection.rollback = map(_where_begun, (_Connection.commit, _Connection.rollback))


def _where_begun(end: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return `end`, a connection's commit or rollback, without its trip where there is nothing to end."""

    def ending(self: Any) -> None:
        if self._connection.in_transaction:
            end(self)

    return ending


def _in_one_trip(self: Any, operation: Any, parameters: Any = None) -> Any:
    """Execute a statement and take its rows along; as `AsyncAdapt_aiosqlite_cursor.execute` leaves the cursor."""
    if self.server_side:  # its rows stay there
        return _in_four_trips(self, operation, parameters)

    def there() -> tuple[Any, list[Any], Any, int]:
        cursor = self._connection._conn.cursor()
        try:
            cursor.execute(operation, () if parameters is None else parameters)
            rows = cursor.fetchall() if cursor.description else []
            return cursor.description, rows, cursor.lastrowid, cursor.rowcount
        finally:
            cursor.close()

    try:
        description, rows, last, count = self.await_(self._connection._execute(there))
    except Exception as error:
        self._adapt_connection._handle_exception(error)
        raise
    self.description, self._rows = description, deque(rows)
    self.lastrowid, self.rowcount = (-1, -1) if description else (last, count)
    return None
