"""Records on raters' screens: none is shown to more raters at once than it still needs answers.

Argilla's page takes ten records at a time and asks for more when five are left. So a rater has up to fifteen records
that other raters would get as well, and all of them answer: to 100 records that want three answers each, eight raters
gave 438 in a simulation of that page. Here a record that was shown counts for a while as answered by its holder: queues
and progress leave out records that other raters hold. A rater who leaves without answering blocks a record no longer
than that, and one who is taken out of the workspace no longer at all.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from argilla_server.enums import RecordStatus, ResponseStatus
from argilla_server.models import Dataset, Record, Response, WorkspaceUser
from sqlalchemy import Connection, select

from .recent import opened

HELD_SECONDS = 20 * 60.0
MOST_HELD = 20  #: by one rater in one dataset: who asks for a thousand at once shall not close the queue to all others
SCHEMA = """
CREATE TABLE IF NOT EXISTS held (
    dataset TEXT NOT NULL, record TEXT NOT NULL, rater TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (dataset, rater, record)
) WITHOUT ROWID;
"""


class Handing:
    """The records shown lately, by dataset: in memory, or for several processes in a file that ends with the server.

    Records are ids of 32 hexadecimal digits. Create it before the processes fork: two processes that create the file at
    the same moment would find it locked. Argilla's database is never queried while other processes wait.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        if file is not None:
            opened(file, SCHEMA).close()

    def elsewhere(
        self, connection: Connection, dataset_id: UUID, rater: UUID, wanted: int
    ) -> tuple[list[UUID], int, int]:
        """Return the records that only other raters hold; how many are left for the rater; how many may come back.

        These do unless their holders answer.
        """
        members = Members.of(connection, dataset_id)
        with self._database() as database:
            held = Held.of(database, dataset_id, rater, members)
        answers = answers_of(connection, held.elsewhere(held.others))
        to_come = {record: one for record, one in answers.items() if one.to_come(rater.hex)}
        left = sum(held.is_open(record, one, wanted) for record, one in to_come.items())
        incomplete = sum(one.submitted < wanted for one in to_come.values())
        return [UUID(record) for record in answers], left, incomplete - left

    def queue(  # noqa: PLR0913
        self, connection: Connection, dataset_id: UUID, rater: UUID, wanted: int, pending: Sequence[str], shown: slice,
        *, own_first: bool,
    ) -> list[str]:  # fmt: skip
        """Return the pending records left for the rater, in this order; the shown ones are held from now on.

        So are the records before them that the rater holds: a rater who asks for more is at work, if slowly.
        `own_first` puts held records first, because Argilla's page asks for the records after its own. Records after
        the shown ones are not looked up: they count as left for the rater.
        """
        answers, number, members = dict[str, Answers](), 10 + shown.stop, Members.of(connection, dataset_id)
        while True:
            with self._database() as database:
                held = Held.of(database, dataset_id, rater, members)
                order = sorted(pending, key=lambda one: one not in held.own) if own_first else pending
                left, unknown = held.left(order, answers, wanted, shown.stop)
                if not unknown:
                    going_on = (one for one in left[: shown.start] if one in held.own)
                    give(database, dataset_id, rater, [*left[shown], *going_on])
                    return left
            # Holders who answer meanwhile count as before.
            unknown, number = unknown[:number], 2 * number
            answers |= dict.fromkeys(unknown, DELETED) | answers_of(connection, unknown)

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Lock the database of held records, and yield it."""
        with self._lock:
            if self._opened is None:
                self._opened = opened(self.file, SCHEMA)
            self._opened.execute("BEGIN IMMEDIATE")
            try:
                yield self._opened
            finally:
                self._opened.execute("COMMIT")


class Answers(NamedTuple):
    """The status of a record, and its responses by rater."""

    pending: bool
    given: dict[str, ResponseStatus]

    def to_come(self, rater: str) -> bool:
        """Whether a rater has not answered yet, and the record is pending; a draft is no answer."""
        return self.pending and self.given.get(rater) in (None, ResponseStatus.draft)

    @property
    def submitted(self) -> int:
        """The number of submitted responses."""
        return sum(status == ResponseStatus.submitted for status in self.given.values())


DELETED = Answers(pending=False, given={})


def answers_of(connection: Connection, records: Sequence[str]) -> dict[str, Answers]:
    """Return the status of records and the responses to them, as Argilla has them."""
    if not records:
        return {}
    columns = Record.id, Record.status, Response.user_id, Response.status
    asked = Record.id.in_([UUID(one) for one in records])
    found: dict[str, Answers] = {}
    for record, status, rater, given in connection.execute(
        select(*columns).outerjoin(Response, Response.record_id == Record.id).where(asked)
    ):
        known = found.setdefault(record.hex, Answers(status == RecordStatus.pending, {}))
        known.given.update({rater.hex: given} if rater else {})
    return found


class Members(NamedTuple):
    """Who is let into a dataset's workspace, and when that was looked up."""

    raters: list[str]
    at: float

    @classmethod
    def of(cls, connection: Connection, dataset_id: UUID) -> Members:
        """Return the members now, or a little later than `at`: whoever is given records after that is one."""
        at = time.monotonic()
        let_in = select(WorkspaceUser.user_id).join(Dataset, Dataset.workspace_id == WorkspaceUser.workspace_id)
        return cls([user.hex for user in connection.scalars(let_in.where(Dataset.id == dataset_id))], at)


class Held(NamedTuple):
    """The records of a dataset that a rater holds, and the holders of the others."""

    rater: str
    own: set[str]
    others: dict[str, set[str]]  #: record to raters

    @classmethod
    def of(cls, database: sqlite3.Connection, dataset_id: UUID, rater: UUID, members: Members) -> Held:
        """Return the present state, after what raters held who have been taken out is free."""
        gone = "DELETE FROM held WHERE dataset = ? AND at < ? AND rater NOT IN (SELECT value FROM json_each(?))"
        database.execute(gone, (dataset_id.hex, members.at, json.dumps(members.raters)))
        found = cls(rater.hex, set(), defaultdict(set))
        since = time.monotonic() - HELD_SECONDS  # one clock for all processes, which nobody sets
        rows = database.execute("SELECT record, rater FROM held WHERE dataset = ? AND at >= ?", (dataset_id.hex, since))
        for record, holder in rows:
            if holder == rater.hex:
                found.own.add(record)
            else:
                found.others[record].add(holder)
        return found

    def elsewhere(self, records: Iterable[str]) -> list[str]:
        """Return the records that others hold and the rater does not."""
        return [one for one in records if one in self.others and one not in self.own]

    def left(
        self, order: Sequence[str], answers: Mapping[str, Answers], wanted: int, enough: int
    ) -> tuple[list[str], list[str]]:
        """Return the records left for the rater, or the records to look up before `enough` of them are known."""
        left: list[str] = []
        for at, one in enumerate(order):
            if len(left) >= enough:
                return [*left, *order[at:]], []
            if one in self.own or one not in self.others:
                left.append(one)
            elif one not in answers:
                return [], [other for other in self.elsewhere(order[at:]) if other not in answers]
            elif self.is_open(one, answers[one], wanted):
                left.append(one)
        return left, []

    def is_open(self, record: str, answers: Answers, wanted: int) -> bool:
        """Return whether a record is open to the rater: the rater has it, or too few others answered or hold it.

        A holder with a draft is still to answer.
        """
        if self.rater in answers.given or record in self.own:
            return True
        to_come = sum(answers.to_come(one) for one in self.others.get(record, ()))
        return answers.pending and answers.submitted + to_come < wanted


def give(database: sqlite3.Connection, dataset_id: UUID, rater: UUID, records: Sequence[str]) -> None:
    """Record the records shown to a rater now; forget the oldest beyond MOST_HELD, and those held too long.

    Answered records stay recorded: such a record may have enough answers that are not counted yet.
    """
    dataset, who, now = dataset_id.hex, rater.hex, time.monotonic()
    database.execute("DELETE FROM held WHERE dataset = ? AND at < ?", (dataset, now - HELD_SECONDS))
    rows = [(dataset, record, who, now) for record in records[:MOST_HELD]]
    database.executemany("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?)", rows)
    held = "SELECT record FROM held WHERE dataset = ? AND rater = ? ORDER BY at DESC LIMIT -1 OFFSET ?"
    more = database.execute(held, (dataset, who, MOST_HELD)).fetchall()
    database.executemany(
        "DELETE FROM held WHERE dataset = ? AND rater = ? AND record = ?", [(dataset, who, *one) for one in more]
    )
