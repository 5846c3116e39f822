"""Ask models all jobs that have no answer yet; each answer goes to a journal when it arrives.

A resumed run asks the wanted keys minus those in the table and its journal. There may be millions, so they are not held
in memory: jobs are generated again, a temporary SQLite database holds the keys, and the journal holds the answers until
the last one arrives. Then they become the table, in the jobs' order. `kill -9` loses only requests in flight.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import pandas as pd
from tqdm import tqdm

from plumbline.errors import PlumblineError
from plumbline.journal import Journal
from plumbline.manifest import Manifest
from plumbline.models.chat import Client
from plumbline.store import BATCH, as_record, read_batches
from plumbline.study import Study

J = TypeVar("J")
R = TypeVar("R", bound=Any)  # a Record type with a key and a status
T = TypeVar("T", bound="AnswerTable[Any, Any]")
SYNC_SECONDS = 0.5  # so a received answer is on the disk within a second
IN_TABLE, ELSEWHERE = -1, -2
# place: the job's number; a higher number for answers that the study does not want now.
# line: place in the journal, IN_TABLE, or ELSEWHERE (another process's journal); NULL: no answer yet.
# todo: 1 if this run asks for it, 0 if it is answered, NULL if the study does not want it.
# ok: 1 if the existing answer is ok.
_SCHEMA = "CREATE TABLE answers (place INTEGER PRIMARY KEY, key TEXT UNIQUE, line INTEGER, todo INTEGER, ok INTEGER)"


class AnswerTable(Generic[J, R]):
    """The answers to jobs in a table of a study's records: which are wanted, present, and left to ask.

    `jobs_by_key` yields each job with its key, in the table's order; equal keys are one job. `wanted` and `todo` count
    distinct jobs. `again` asks failed jobs again; unanswered jobs are always asked again. Answers that the study does
    not want now (to another prompt, for example) cost GPU time, so they stay.
    """

    def __init__(
        self,
        study: Study,
        name: str,
        record: type[R],
        jobs_by_key: Callable[[], Iterable[tuple[str, J]]],
        command: str,
        *,
        again: bool = False,
    ) -> None:
        self._study, self._name, self._command = study, name, study.command(command)
        self._manifest = Manifest.of(study)
        self._record: type[R] = record
        self._jobs_by_key = jobs_by_key
        self.path = study.folder / name
        self.journal = Journal(self._journal_file())
        self._keys = sqlite3.connect("", check_same_thread=False)  # a temporary file that ends with the process
        weakref.finalize(self, self._keys.close)
        self._keys.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        # The first of equal keys determines the place. An existing answer is the table's if it is ok, else an ok one,
        # else a journal's last line.
        rows = ((row, key) for row, (key, _) in enumerate(self._jobs_by_key()))
        self._keys.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, NULL, 1, 0)", rows)
        if self.path.exists():
            for table in read_batches(self.path, self._record, self._command, ["key", "status"]):
                self._note((row["key"], IN_TABLE, row["status"]) for row in table.to_pylist())
            self._manifest.refuse_replaced(self._name, self._command)
        for path in self._journals():
            lines = Journal(path).lines(self._record)
            self._note((row["key"], ELSEWHERE, row["status"]) for _, row in lines)
        self._note((row["key"], line, row["status"]) for line, row in self.journal.lines(self._record))
        self.wanted: int
        self.todo: int
        query = "SELECT count(todo), coalesce(sum(todo), 0) FROM answers"
        self.wanted, self.todo = self._keys.execute(query).fetchone()
        self.left = self.todo

    def jobs(self) -> Iterator[J]:
        """Yield the jobs left to ask, in order."""
        rows = (row for row, _ in self._column("todo", "todo"))
        next_row = next(rows, None)
        for row, (_, job) in enumerate(self._jobs_by_key()):
            if next_row is None:
                return
            if row == next_row:
                yield job
                next_row = next(rows, None)

    def add(self, answer: R) -> bool:
        """Write an answer to the journal before returning; return True if it was the last one."""
        line = self.journal.append(answer)
        self._keys.execute("UPDATE answers SET line = ? WHERE key = ?", (line, answer.key))
        self.left -= 1
        return not self.left

    def settle(self) -> None:
        """Turn the journal into the table: answers in the jobs' order, others last. Does nothing without a journal."""
        if self.path.exists() and not self.journal.path.exists():
            return
        self._move_table()
        answers: Iterable[R] = ()
        if self.journal.path.exists():
            lines = (line for _, line in self._column("line", "line IS NOT NULL"))
            answers = (self._finished(answer) for answer in self.journal.records(lines, self._record))
        self._manifest.write_table(self._name, answers, self._record)
        self.journal.remove()

    def frame(self) -> pd.DataFrame:
        """Return the wanted answers that are in the table."""
        frame = self._manifest.frame(self._name, self._record, self._command)
        return frame[frame["key"].isin({key for key, _ in self._jobs_by_key()})].reset_index(drop=True)

    async def answer(self, client: Any, job: J) -> R:
        """Return the answer of a client to a job."""
        raise NotImplementedError

    async def ask_left(self, client: Client, unit: str, doing: str) -> Counter[str]:
        """Ask everything left, as `ask_all`, and close the client."""
        try:
            return await ask_all([self], lambda _, job: self.answer(client, job), client.concurrency, unit, doing)
        finally:
            await client.close()

    def close(self) -> None:
        """Close all files; received answers stay in the journal."""
        self.journal.close()
        self._keys.close()

    def _journal_file(self) -> Path:
        return (self._study.scratch / self._name).with_suffix(".journal")

    def _finished(self, answer: R) -> R:
        return answer

    def _journals(self) -> Iterable[Path]:
        return ()

    def _note(self, answers: Iterable[tuple[str, int, str]]) -> None:
        query = (
            "INSERT INTO answers VALUES ((SELECT coalesce(max(place), 0) + 1 FROM answers), ?, ?, NULL, ?)"
            " ON CONFLICT (key) DO UPDATE SET line = excluded.line, todo = iif(todo IS NULL, NULL, ?), ok = excluded.ok"
            " WHERE excluded.ok > ok OR (excluded.ok = ok AND NOT (ok AND line IS ?))"
        )
        rows = ((key, line, status == "ok", status in self._again, IN_TABLE) for key, line, status in answers)
        self._keys.executemany(query, rows)

    def _move_table(self) -> None:
        """Copy answers that are only in the table into the journal, so that all can be read in any order."""
        if not self.path.exists():
            return
        for table in read_batches(self.path, self._record, self._command):
            for row in table.to_pylist():
                (line,) = self._keys.execute("SELECT line FROM answers WHERE key = ?", (row["key"],)).fetchone()
                if line == IN_TABLE:
                    line = self.journal.append(as_record(row, self._record))
                    self._keys.execute("UPDATE answers SET line = ? WHERE key = ?", (line, row["key"]))

    def _column(self, name: str, condition: str) -> Iterator[tuple[int, int]]:
        """Yield places and a column of answers in order, in pieces, because rows change during the work."""
        last = -1
        query = f"SELECT place, {name} FROM answers WHERE {condition} AND place > ? ORDER BY place LIMIT {BATCH}"  # noqa: S608
        while rows := self._keys.execute(query, (last,)).fetchall():
            yield from rows
            last = rows[-1][0]


async def ask_all(
    tables: Sequence[T], ask: Callable[[T, Any], Awaitable[Any]], at_once: int, unit: str, doing: str
) -> Counter[str]:
    """Ask everything left in some tables, `at_once` at a time; journal and show each answer on arrival.

    A finished table is written at once. Returns the number of answers by status.
    """
    counts: Counter[str] = Counter()
    jobs = ((table, job) for table in tables for job in table.jobs())
    total = sum(table.todo for table in tables)
    with tqdm(total=total, unit=unit, desc=doing) as bar:

        async def answer(table_and_job: tuple[T, Any]) -> None:
            table, job = table_and_job
            record = await ask(table, job)
            last = table.add(record)
            show(bar, counts, record.status)
            if last:
                await asyncio.to_thread(table.settle)  # in a thread: a large table takes seconds

        await all_through(jobs, answer, min(at_once, total), [table.journal for table in tables])
    return counts


def show(bar: tqdm[NoReturn], counts: Counter[str], status: str) -> None:
    """Count an answer and show it."""
    counts[status] += 1
    if status != "ok":
        bar.set_postfix(failed=counts["failed"], unanswered=counts["unanswered"], refresh=False)
    bar.update()


async def all_through(
    jobs: Iterator[J], work: Callable[[J], Awaitable[None]], workers: int, journals: Sequence[Journal]
) -> None:
    """Do all jobs, a fixed number at a time, while journals are synced to the disk.

    Raises the first PlumblineError or OSError; the journals keep what they hold.
    """

    async def worker() -> None:
        for job in jobs:
            await work(job)

    try:
        async with asyncio.TaskGroup() as outer:  # a failing disk ends the whole run, not only the syncing
            syncing = outer.create_task(sync_always(journals))
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(worker())
            syncing.cancel()
    except* (PlumblineError, OSError) as errors:
        raise first_error(errors) from None


async def sync_always(journals: Sequence[Journal]) -> None:
    """Sync the journals to the disk every half second until cancelled."""
    while True:
        await asyncio.sleep(SYNC_SECONDS)
        for journal in journals:
            await asyncio.to_thread(journal.sync)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first single error of a group, however deep."""
    first = errors.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
