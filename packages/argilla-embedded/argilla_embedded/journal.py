"""The jobs and their statuses, in a small file of their own: a crash loses none of them.

It is written before the request for a job is answered. A killed process loses nothing; texts in a job's arguments (a
webhook's event) are deleted from the file when the job has ended.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rq.job import JobStatus

from .errors import StartError

REMEMBERED = 1000  #: jobs that have ended, for those who ask how
FINAL = (JobStatus.FINISHED.value, JobStatus.FAILED.value)
TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, name TEXT NOT NULL, arguments TEXT, status TEXT NOT NULL,
    changed REAL NOT NULL, worker INTEGER NOT NULL DEFAULT 0)"""
BUSY_SECONDS = 30.0


def inherit(file: Path) -> None:
    """Assign the unfinished jobs of an earlier start to the server's first process, before any process serves."""
    journal = Journal(file)
    try:
        journal.connection.execute("UPDATE jobs SET worker = 0 WHERE arguments IS NOT NULL")
    except sqlite3.Error as error:
        raise unusable(file, error) from error
    journal.connection.close()


def unusable(file: Path, error: sqlite3.Error) -> StartError:
    """Return the error for a file that is not a journal."""
    return StartError(
        f"{file} in the server's folder cannot be used ({error}); move it away: jobs that have not run are lost"
    )


class Journal:
    """The journal's file; the server's threads use it in turn, and each process for the jobs that it took."""

    def __init__(self, file: Path, worker: int = 0) -> None:
        self.worker = worker
        try:
            self.connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=BUSY_SECONDS)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = NORMAL")
            self.connection.execute(TABLE)
            if "worker" not in [column[1] for column in self.connection.execute("PRAGMA table_info(jobs)")]:
                self.connection.execute("ALTER TABLE jobs ADD COLUMN worker INTEGER NOT NULL DEFAULT 0")
        except sqlite3.Error as error:
            raise unusable(file, error) from error
        self.lock = threading.Lock()

    def add(self, job_id: str, name: str, arguments: tuple[list[Any], dict[str, Any]]) -> None:
        """Add a job, as queued."""
        written = json.dumps(arguments, default=tagged)
        values = (job_id, name, written, JobStatus.QUEUED.value, time.time(), self.worker)
        with self.lock:
            self.connection.execute(
                "INSERT INTO jobs (id, name, arguments, status, changed, worker) VALUES (?, ?, ?, ?, ?, ?)", values
            )

    def change(self, job_id: str, status: JobStatus) -> None:
        """Write a job's status; an ended job loses its arguments, and the oldest ended jobs are removed."""
        ended = status.value in FINAL
        clear = ", arguments = NULL" if ended else ""
        with self.lock:
            self.connection.execute(
                f"UPDATE jobs SET status = ?, changed = ?{clear} WHERE id = ?",  # noqa: S608  # our own words
                (status.value, time.time(), job_id),
            )
            if ended:
                self.connection.execute(
                    "DELETE FROM jobs WHERE arguments IS NULL AND number <= (SELECT max(number) FROM jobs) - ?",
                    (REMEMBERED,),
                )

    def status(self, job_id: str) -> JobStatus | None:
        """Return a job's status, or None for an unknown job."""
        with self.lock:
            row = self.connection.execute("SELECT status FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if row is None else JobStatus(row[0])

    def unfinished(self) -> list[tuple[str, str, list[Any], dict[str, Any]]]:
        """The jobs of this process that have not ended, oldest first: id, name, arguments."""
        with self.lock:
            rows = self.connection.execute(
                "SELECT id, name, arguments FROM jobs WHERE arguments IS NOT NULL AND worker = ? ORDER BY number",
                (self.worker,),
            ).fetchall()
        return [(job_id, name, *json.loads(arguments, object_hook=untagged)) for job_id, name, arguments in rows]


def tagged(value: Any) -> dict[str, str]:
    """Return a value of a type that JSON lacks as a tagged object."""
    if isinstance(value, UUID):
        return {"$uuid": str(value)}
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    raise TypeError(f"a job cannot have an argument of type {type(value).__name__}")


def untagged(value: dict[str, Any]) -> Any:
    """Reverse `tagged`."""
    if value.keys() == {"$uuid"}:
        return UUID(value["$uuid"])
    if value.keys() == {"$time"}:
        return datetime.fromisoformat(value["$time"])
    return value
