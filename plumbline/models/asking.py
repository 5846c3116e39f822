"""One resumable asking: a table of answers, each in a journal when it was received, and all that is left asked at once.

Resume is a set difference: wanted keys minus keys that stand in the table and its journal. There may be millions, so
none of this is held in memory: jobs are made anew, keys stand in a temporary SQLite database, answers in the journal
until the last one has come; then they become the table, in the jobs' order, whatever order they came in. `kill -9`
loses what was in flight.
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
from plumbline.store import BATCH, as_record, read_batches
from plumbline.study import Study

J = TypeVar("J")
R = TypeVar("R", bound=Any)  # a Record with a key and a status
T = TypeVar("T", bound="AnswerTable[Any, Any]")
SYNC_SECONDS = 0.5  # an answer that was received is on the disk itself within a second
IN_TABLE, ELSEWHERE = -1, -2
# place: number of the job; for answers that the study does not want now, a number after those.
# line: place in the journal, IN_TABLE, or ELSEWHERE (another process's journal); NULL: there is none yet.
# todo: 1 if it is asked for in this run, 0 if it is there, NULL if the study does not want it.
# ok: 1 if what is there is ok.
_SCHEMA = "CREATE TABLE answers (place INTEGER PRIMARY KEY, key TEXT UNIQUE, line INTEGER, todo INTEGER, ok INTEGER)"


class AnswerTable(Generic[J, R]):
    """The answers to jobs, in a table of a study's records: what is wanted, what is there, and what is left to ask.

    `jobs_by_key` gives each job with its key, in the table's order, whenever it is called; equal keys are one job.
    `wanted` and `todo` are numbers of distinct jobs. With `again` failed ones are asked again; unanswered ones always
    are. Answers that the study does not want now (of another prompt, say) cost GPU time, so they are kept.
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
        self._keys = sqlite3.connect("", check_same_thread=False)  # a temporary file, gone with the process
        weakref.finalize(self, self._keys.close)
        self._keys.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        self.wanted, self.todo = self._counted()
        self.left: int = self.todo

    def jobs(self) -> Iterator[J]:
        """What is left to ask, in order."""
        rows = (row for row, _ in self._column("todo", "todo"))
        next_row = next(rows, None)
        for row, (_, job) in enumerate(self._jobs_by_key()):
            if next_row is None:
                return
            if row == next_row:
                yield job
                next_row = next(rows, None)

    def add(self, answer: R) -> bool:
        """Keep an answer, in the journal when this returns; true if it was the last one that is left."""
        line = self.journal.append(answer)
        self._keys.execute("UPDATE answers SET line = ? WHERE key = ?", (line, answer.key))
        self.left -= 1
        return not self.left

    def settle(self) -> None:
        """Turn the journal into the table: answers in the jobs' order, others last. Without a journal, nothing."""
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
        """The answers that the study wants, as far as they stand in the table."""
        frame = self._manifest.frame(self._name, self._record, self._command)
        return frame[frame["key"].isin({key for key, _ in self._jobs_by_key()})].reset_index(drop=True)

    def close(self) -> None:
        """Let go of files; what was received stays in the journal."""
        self.journal.close()
        self._keys.close()

    def _journal_file(self) -> Path:
        return (self._study.scratch / self._name).with_suffix(".journal")

    def _finished(self, answer: R) -> R:
        """An answer as the table has it."""
        return answer

    def _journals(self) -> Iterable[Path]:
        """Journals of other processes for this table."""
        return ()

    def _counted(self) -> tuple[int, int]:
        """How many answers are wanted, and to be asked for."""
        self._want()
        self._find()
        (wanted,) = self._keys.execute("SELECT count(*) FROM answers WHERE todo IS NOT NULL").fetchone()
        (todo,) = self._keys.execute("SELECT count(*) FROM answers WHERE todo").fetchone()
        return wanted, todo

    def _want(self) -> None:
        """Note the key of every job; the first of equal ones has the place."""
        rows = ((row, key) for row, (key, _) in enumerate(self._jobs_by_key()))
        self._keys.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, NULL, 1, 0)", rows)

    def _find(self) -> None:
        """Note what is there: what is ok, else the last line of a journal, else the table's."""
        if self.path.exists():
            for table in read_batches(self.path, self._record, self._command, ["key", "status"]):
                self._note((row["key"], IN_TABLE, row["status"]) for row in table.to_pylist())
            self._manifest.refuse_replaced(self._name, self._command)
        for path in self._journals():
            lines = Journal(path).lines(self._record)
            self._note((row["key"], ELSEWHERE, row["status"]) for _, row in lines)
        self._note((row["key"], line, row["status"]) for line, row in self.journal.lines(self._record))

    def _note(self, answers: Iterable[tuple[str, int, str]]) -> None:
        query = (
            "INSERT INTO answers VALUES ((SELECT coalesce(max(place), 0) + 1 FROM answers), ?, ?, NULL, ?)"
            " ON CONFLICT (key) DO UPDATE SET line = excluded.line, todo = iif(todo IS NULL, NULL, ?), ok = excluded.ok"
            " WHERE excluded.ok >= ok"
        )
        rows = ((key, line, status == "ok", status in self._again) for key, line, status in answers)
        self._keys.executemany(query, rows)

    def _move_table(self) -> None:
        """Put answers that stand in the table alone into the journal, so that all can be read in any order."""
        if not self.path.exists():
            return
        for table in read_batches(self.path, self._record, self._command):
            for row in table.to_pylist():
                (line,) = self._keys.execute("SELECT line FROM answers WHERE key = ?", (row["key"],)).fetchone()
                if line == IN_TABLE:
                    line = self.journal.append(as_record(row, self._record))
                    self._keys.execute("UPDATE answers SET line = ? WHERE key = ?", (line, row["key"]))

    def _column(self, name: str, condition: str) -> Iterator[tuple[int, int]]:
        """Place and a column of answers in order; in pieces, because the rows change while they are worked on."""
        last = -1
        query = f"SELECT place, {name} FROM answers WHERE {condition} AND place > ? ORDER BY place LIMIT {BATCH}"  # noqa: S608
        while rows := self._keys.execute(query, (last,)).fetchall():
            yield from rows
            last = rows[-1][0]


async def ask_all(
    tables: Sequence[T], ask: Callable[[T, Any], Awaitable[Any]], at_once: int, unit: str, doing: str
) -> Counter[str]:
    """Ask all that is left of some tables, so many at once; each answer is in its journal when it came, and shown.

    A table settles when it is done. Counts the answers by their status.
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
                await asyncio.to_thread(table.settle)  # beside the others' work: a large table takes seconds

        await all_through(jobs, answer, min(at_once, total), [table.journal for table in tables])
    return counts


def show(bar: tqdm[NoReturn], counts: Counter[str], status: str) -> None:
    """Count one that came, and show it."""
    counts[status] += 1
    if status != "ok":
        bar.set_postfix(failed=counts["failed"], unanswered=counts["unanswered"], refresh=False)
    bar.update()


async def all_through(
    jobs: Iterator[J], work: Callable[[J], Awaitable[None]], workers: int, journals: Sequence[Journal]
) -> None:
    """Do all jobs, so many at once: whoever is free takes the next. Journals go to the disk meanwhile.

    Raises the first PlumblineError or OSError; what stands in the journals stays.
    """

    async def worker() -> None:
        for job in jobs:
            await work(job)

    try:
        async with asyncio.TaskGroup() as beside:  # a disk that fails ends the run, not the syncing alone
            syncing = beside.create_task(sync_always(journals))
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(worker())
            syncing.cancel()
    except* (PlumblineError, OSError) as errors:
        raise first_error(errors) from None


async def sync_always(journals: Sequence[Journal]) -> None:
    """Hand the journals to the disk every half second, until cancelled."""
    while True:
        await asyncio.sleep(SYNC_SECONDS)
        for journal in journals:
            await asyncio.to_thread(journal.sync)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group, however deep."""
    first = errors.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
