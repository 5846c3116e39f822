"""One trip to a connection's thread for each statement to SQLite.

aiosqlite gives each connection a thread, and SQLAlchemy makes four trips there for a statement: for a cursor, for the
statement, for its rows, and to close the cursor. Each trip wakes two threads; of the 19 ms of processor time that an
answer took the server, 2.5 were spent on these trips.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from sqlalchemy.dialects.sqlite import aiosqlite

_Cursor = aiosqlite.AsyncAdapt_aiosqlite_cursor
_in_four_trips = _Cursor.execute


def apply() -> None:
    """Have SQLAlchemy's cursors execute so. Call it once, before the first connection."""
    _Cursor.execute = _in_one_trip


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
