"""A short-term memory of accounts and addresses, shared by all processes of the server.

It is in memory for one process, and for several in a file that ends with the server. Accounts and addresses are stored
as digests under a key that only these processes have, so nobody else can read them, then or later.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

Key = tuple[str, ...]
KEPT = 50_000  #: the oldest are forgotten first
LOOK_EVERY = 500  #: writes of a process between two looks at how many there are
SCHEMA = """
CREATE TABLE IF NOT EXISTS recent (key BLOB PRIMARY KEY, number INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS recent_at ON recent (at);
"""


class Recent:
    """Numbers by key, each with the time at which it was written; `now` is a clock in seconds, one for all processes.

    Make it before the processes part, for they share its key and find the file made; each opens it when it needs it.
    """

    def __init__(self, now: Callable[[], float], file: Path | None = None, kept: int = KEPT) -> None:
        self.now, self.file, self.kept = now, file, kept
        self._secret = secrets.token_bytes(32)
        self._opened: sqlite3.Connection | None = None
        self._writes = 0
        if file is not None:
            self._database.close()
            self._opened = None

    def number(self, key: Key, seconds: float) -> int:
        """Return a key's number; 0 if it was not written within these seconds."""
        row = self._database.execute("SELECT number, at FROM recent WHERE key = ?", (self._digest(key),)).fetchone()
        return int(row[0]) if row is not None and self.now() - row[1] < seconds else 0

    def put(self, key: Key, number: int) -> None:
        """Write a key's number; 0 removes the key."""
        if number:
            values = self._digest(key), number, self.now()
            self._database.execute("INSERT OR REPLACE INTO recent VALUES (?, ?, ?)", values)
        else:
            self._database.execute("DELETE FROM recent WHERE key = ?", (self._digest(key),))
        self._writes += 1
        if self._writes % LOOK_EVERY == 0:
            older = "SELECT key FROM recent ORDER BY at DESC LIMIT -1 OFFSET ?"
            self._database.execute(f"DELETE FROM recent WHERE key IN ({older})", (self.kept,))  # noqa: S608 (our words)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Keep others from writing inside the block."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._database.in_transaction:
                self._database.execute("COMMIT")

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM recent").fetchone()[0])

    @property
    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = opened(self.file, SCHEMA)
        return self._opened

    def _digest(self, key: Key) -> bytes:
        return hmac.digest(self._secret, "\0".join(key).encode("utf-8", "surrogatepass"), "sha256")


def opened(file: Path | None, schema: str) -> sqlite3.Connection:
    """Open a database that need not outlive the server: in memory, or in a file for several processes."""
    database = sqlite3.connect(file or ":memory:", isolation_level=None, timeout=10, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(schema)
    return database
