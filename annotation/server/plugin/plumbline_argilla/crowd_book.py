"""What the server remembers of participants: who consented when, which questions they missed, which tickets are used.

`crowd/entries.db` in the home. Participants stand there by pseudonym alone: no id of a platform is ever kept.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ATTEMPTS = 2  #: at each question; Prolific wants that many
TICKET_SECONDS = 2 * 3600
#: So long who consented holds a place in the room without the platform's word that they take part.
HELD_SECONDS = 6 * 3600
SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    room TEXT NOT NULL, worker TEXT NOT NULL, consented_at TEXT, questions TEXT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (room, worker));
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, room TEXT NOT NULL, worker TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires REAL NOT NULL);
"""


@dataclass(frozen=True)
class Entry:
    """How one participant stands in one room."""

    state: str = "new"  #: new; in: may work; out: missed a question too often
    missed: tuple[int, ...] = ()  #: times, by question
    right: tuple[bool, ...] = ()  #: by question

    def open_questions(self, number: int) -> list[int]:
        """The questions that are still to be answered, of so many."""
        return [place for place in range(number) if not (place < len(self.right) and self.right[place])]


class Book:
    """The entries; each process of the server opens them for itself."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=10)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(SCHEMA)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """No other process writes between what is read and what is written inside; what was written stays."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._database.in_transaction:
                self._database.execute("COMMIT")

    def entry(self, room: str, worker: str) -> Entry:
        """How a participant stands."""
        row = self._database.execute(
            "SELECT state, questions FROM entries WHERE room = ? AND worker = ?", (room, worker)
        ).fetchone()
        if row is None:
            return Entry()
        missed, right = json.loads(row[1])
        return Entry(row[0], tuple(missed), tuple(right))

    def judge(self, room: str, worker: str, right: Sequence[int], given: Sequence[int | None]) -> Entry:
        """Note a consent with answers to the questions that were open; how the participant stands then."""
        before = self.entry(room, worker)
        if before.state != "new":
            return before
        missed = [*before.missed, *[0] * (len(right) - len(before.missed))]
        known = [*before.right, *[False] * (len(right) - len(before.right))]
        for place in before.open_questions(len(right)):
            known[place] = given[place] == right[place]
            missed[place] += not known[place]
        state = "in" if all(known) else "out" if max(missed) >= ATTEMPTS else "new"
        self._database.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET questions = excluded.questions,"
            " state = excluded.state",
            (room, worker, datetime.now(UTC).isoformat(timespec="seconds"), json.dumps([missed, known]), state),
        )
        return Entry(state, tuple(missed), tuple(known))

    def strangers(self, room: str, known: Collection[str]) -> int:
        """How many consented of late of whom the platform has not said that they take part."""
        since = (datetime.now(UTC) - timedelta(seconds=HELD_SECONDS)).isoformat(timespec="seconds")
        rows = self._database.execute("SELECT worker FROM entries WHERE room = ? AND consented_at > ?", (room, since))
        return sum(worker not in known for (worker,) in rows)

    def owns(self, session: str, room: str, worker: str) -> bool:
        """Whether a session is this participant's; it is from now on where nobody has come with it."""
        self._database.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?)", (session, room, worker))
        found = self._database.execute("SELECT room, worker FROM sessions WHERE session = ?", (session,)).fetchone()
        return tuple(found) == (room, worker)

    def use(self, nonce: str, expires: float) -> bool:
        """Whether a ticket is used for the first time; it is used from now on."""
        self._database.execute("DELETE FROM used WHERE expires < ?", (time.time(),))
        done = self._database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (nonce, expires))
        return done.rowcount == 1


class Seal:
    """Values that only this server can have written: tickets in forms, and the cookie of who is at work."""

    def __init__(self, secret: str) -> None:
        self._key = hmac.new(secret.encode(), b"plumbline-crowd-v1", hashlib.sha256).digest()

    def close(self, kind: str, *values: str, seconds: float) -> str:
        """Sealed values of a kind, good for so long; each has a number of its own."""
        content = json.dumps([kind, time.time() + seconds, secrets.token_hex(8), *values])
        body = base64.urlsafe_b64encode(content.encode()).decode("ascii")
        return f"{body}.{self._sign(body)}"

    def open(self, kind: str, sealed: str) -> tuple[float, str, list[str]] | None:
        """Until when it is good, its number, its values; None where it is not ours, of another kind, or too old."""
        body, _, signature = sealed.partition(".")
        if not hmac.compare_digest(self._sign(body).encode(), signature.encode()):
            return None
        try:
            found, expires, nonce, *values = json.loads(base64.urlsafe_b64decode(body.encode()))
        except (ValueError, binascii.Error):
            return None
        return (expires, nonce, values) if found == kind and expires > time.time() else None

    def _sign(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()
