"""The server's records of browsers: participants' times of consent and used tickets, and raters' links.

They are in `crowd/entries.db` in the home; participants by pseudonym only: no id of a platform is ever kept. A browser
is the hash of the secret in its cookie. A link has the number of its token, empty once it is revoked.
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
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

TICKET_SECONDS = 2 * 3600
#: Seconds that a participant who consented holds a place before the platform confirms that they take part.
HELD_SECONDS = 6 * 3600
SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    room TEXT NOT NULL, worker TEXT NOT NULL, consented_at TEXT NOT NULL, browser TEXT, refused_at TEXT,
    PRIMARY KEY (room, worker));
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, room TEXT NOT NULL, worker TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS links (account TEXT PRIMARY KEY, number TEXT NOT NULL, browser TEXT);
CREATE TABLE IF NOT EXISTS used (nonce TEXT PRIMARY KEY, expires REAL NOT NULL);
"""


class Book:
    """The entries; each process of the server opens them for itself."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=10)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(SCHEMA)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Keep other processes from writing inside the block; writes before an error stay."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._database.in_transaction:
                self._database.execute("COMMIT")

    def consented(self, room: str, worker: str) -> bool:
        """Return whether a participant has consented."""
        found = self._database.execute("SELECT 1 FROM entries WHERE room = ? AND worker = ?", (room, worker))
        return found.fetchone() is not None

    def consent(self, room: str, worker: str, browser: str) -> None:
        """Record a consent and its browser; of several the first stays, a browser until `crowd release` removes it."""
        row = (room, worker, _now(), browser)
        self._database.execute(
            "INSERT INTO entries (room, worker, consented_at, browser) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET browser = COALESCE(browser, excluded.browser)",
            row,
        )

    def browser(self, room: str, worker: str) -> str | None:
        """Return the browser in which a participant began; None before, and once it is released."""
        found = self._database.execute("SELECT browser FROM entries WHERE room = ? AND worker = ?", (room, worker))
        return (found.fetchone() or (None,))[0]

    def note_refused(self, room: str, worker: str) -> None:
        """Record that another browser came with a participant's id, for `crowd status`."""
        self._database.execute(
            "UPDATE entries SET refused_at = ? WHERE room = ? AND worker = ?", (_now(), room, worker)
        )

    def strangers(self, room: str, known: Collection[str]) -> int:
        """Count the people who consented lately and whom the platform has not confirmed."""
        since = (datetime.now(UTC) - timedelta(seconds=HELD_SECONDS)).isoformat(timespec="seconds")
        rows = self._database.execute("SELECT worker FROM entries WHERE room = ? AND consented_at > ?", (room, since))
        return sum(worker not in known for (worker,) in rows)

    def owns(self, session: str, room: str, worker: str) -> bool:
        """Return whether a session is this participant's; an unused session becomes theirs."""
        self._database.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?)", (session, room, worker))
        found = self._database.execute("SELECT room, worker FROM sessions WHERE session = ?", (session,)).fetchone()
        return tuple(found) == (room, worker)

    def renew(self, account: str, number: str) -> None:
        """Make another link the only one of an account, used in no browser yet."""
        self._database.execute("INSERT OR REPLACE INTO links (account, number) VALUES (?, ?)", (account, number))

    def link(self, account: str) -> tuple[str, str | None] | None:
        """Return the number of an account's link and the browser that used it; None if it never had one."""
        found = self._database.execute("SELECT number, browser FROM links WHERE account = ?", (account,)).fetchone()
        return None if found is None else (found[0], found[1])

    def bind(self, account: str, number: str, browser: str) -> str | None:
        """Return the browser that used an account's link first, now this one if none did; None for another link."""
        change = (
            "UPDATE links SET browser = COALESCE(browser, ?) WHERE account = ? AND number = ? RETURNING browser",
            (browser, account, number),
        )
        return (self._database.execute(*change).fetchone() or (None,))[0]

    def use(self, nonce: str, expires: float) -> bool:
        """Return whether a ticket is used for the first time, and mark it as used."""
        self._database.execute("DELETE FROM used WHERE expires < ?", (time.time(),))
        done = self._database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (nonce, expires))
        return done.rowcount == 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Seal:
    """Values that only this server can have written: tickets in forms, and the cookies of participants' browsers."""

    def __init__(self, secret: str) -> None:
        self._key = hmac.new(secret.encode(), b"plumbline-crowd-v1", hashlib.sha256).digest()

    def close(self, kind: str, *values: str, seconds: float) -> str:
        """Seal values of a kind, valid for these seconds, with a number of their own."""
        content = json.dumps([kind, time.time() + seconds, secrets.token_hex(8), *values])
        body = base64.urlsafe_b64encode(content.encode()).decode("ascii")
        return f"{body}.{self._sign(body)}"

    def open(self, kind: str, sealed: str) -> tuple[float, str, list[str]] | None:
        """Return the expiry, number and values; None if the seal is not ours, of another kind, or too old."""
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
