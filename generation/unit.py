"""A unit of generation: one transformation with one seed. What it wants, what is there, and what is left to do.

Resume is a set difference: wanted keys minus keys that stand in the unit's table and journal. A unit may have
millions of texts, so none of this is held in memory: texts are read in pieces from `texts.parquet`, keys stand in a
temporary SQLite database, outputs in the journal until the unit's last one has come; then they become its table, in
the texts' order, whatever order they came in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from generation.jobs import Job, Plan
from generation.output import with_language
from generation.shards import Shard, journal_files
from plumbline.file_hashes import FactCache, cached_file_hash
from plumbline.journal import Journal
from plumbline.manifest import refuse_replaced_table, write_kept_table
from plumbline.records import Text, TransformedText
from plumbline.store import BATCH, as_record, is_remote, read_batches
from plumbline.study import Study

COMMAND = "generation.run"
WORTH = 20_000  # outputs of a unit; whether there are fewer is found out in half a second
IN_TABLE, ELSEWHERE = -1, -2
# place: number of the text's row; for outputs that the study does not want now, a number after those.
# line: place in the journal, IN_TABLE, or ELSEWHERE (another process's journal); NULL: there is none yet.
# todo: 1 if it is asked for in this run, 0 if it is there, NULL if the study does not want it.
# ok: 1 if what is there is ok.
_SCHEMA = "CREATE TABLE outputs (place INTEGER PRIMARY KEY, key TEXT UNIQUE, line INTEGER, todo INTEGER, ok INTEGER)"


def refuse_other_outputs(study: Study, transformation: str, seed: int) -> None:
    """Raise DataError where a unit's outputs are there and not those that were written."""
    refuse_replaced_table(study, _name(study, transformation, seed), study.command(COMMAND))


def _name(study: Study, transformation: str, seed: int) -> str:
    """A unit's table as the manifest names it."""
    return str(study.transformation_file(transformation, seed).relative_to(study.folder))


class Unit:
    """One transformation with one seed of a study; `texts` is the table of all texts.

    `wanted` and `todo` are numbers of distinct outputs, `characters` those of the texts that are left to do. With
    `again` failed outputs are asked for again; unanswered ones always are. Outputs that the study does not want now
    (of another prompt, say, or a data set that was taken out) cost GPU time, so they are kept. A `shard`'s unit has a
    journal of its own and no table.
    """

    def __init__(
        self,
        plan: Plan,
        transformation: str,
        seed: int,
        texts: Path,
        *,
        again: bool = False,
        shard: Shard | None = None,
    ) -> None:
        self.plan, self.transformation, self.seed, self.texts = plan, transformation, seed, texts
        self.path = plan.study.transformation_file(transformation, seed)
        self._name = _name(plan.study, transformation, seed)
        self._shard = shard
        self.journal = Journal(plan.study.journal_file(transformation, seed, shard.name if shard else ""))
        self._keys = sqlite3.connect("", check_same_thread=False)  # a temporary file, gone with the process
        self._keys.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        self.wanted, self.todo = self._counted()
        self.left: int = self.todo

    def jobs(self) -> Iterator[Job]:
        """What is left to do, in the texts' order."""
        places = (row for row, _ in self._column("todo", "todo"))
        next_row = next(places, None)
        for row, job in self._all_jobs():
            if row == next_row:
                yield job
                next_row = next(places, None)

    def characters(self) -> int:
        """Characters of all texts that are left to do."""
        return sum(len(job.text) for job in self.jobs())

    def add(self, output: TransformedText) -> bool:
        """Keep an output; true if it was the unit's last one."""
        line = self.journal.append(output)
        self._keys.execute("UPDATE outputs SET line = ? WHERE key = ?", (line, output.key))
        self.left -= 1
        return not self.left

    def settle(self) -> None:
        """Turn the journal into the table: outputs in the texts' order, kept ones last. Without a journal, nothing."""
        if self._shard or (self.path.exists() and not self.journal.path.exists()):
            return
        self._move_table()
        if self.journal.path.exists():
            lines = (line for _, line in self._column("line", "line IS NOT NULL"))
            kind = self.plan.kinds[self.transformation]
            outputs = (with_language(output, kind) for output in self.journal.records(lines, TransformedText))
            write_kept_table(self.plan.study, self._name, outputs, TransformedText)
        else:
            write_kept_table(self.plan.study, self._name, [], TransformedText)
        self.journal.remove()

    def close(self) -> None:
        """Let go of files; what was received stays in the journal."""
        self.journal.close()
        self._keys.close()

    def _counted(self) -> tuple[int, int]:
        """How many outputs are wanted and to do; of a unit that was found complete once, until anything changes."""
        state, cache = self._state(), self.plan.complete
        if cache.has(state):
            refuse_other_outputs(self.plan.study, self.transformation, self.seed)
            return cache.found(state, dict)["wanted"], 0
        self._want()
        self._find()
        (wanted,) = self._keys.execute("SELECT count(*) FROM outputs WHERE todo IS NOT NULL").fetchone()
        (todo,) = self._keys.execute("SELECT count(*) FROM outputs WHERE todo").fetchone()
        if not todo and wanted >= WORTH:
            cache.found(state, lambda: {"wanted": wanted})
        return wanted, todo

    def _state(self) -> str:
        """The identity of all that decides what is left; empty where a unit has no whole table, or it is far."""
        plan, study, name = self.plan, self.plan.study, self.transformation
        journals = self._shard or journal_files(study, name, self.seed)
        if is_remote(self.path) or journals or plan.by_recordings or not self.path.exists():
            return ""
        files = [cached_file_hash(file) for file in (self.texts, self.path, study.file)]
        made_by = plan.makers[name].hash, plan.prompt_hashes[name] or "none"
        return FactCache.key("complete-v1", *files, *made_by, name, self.seed, sorted(self._again))

    def _all_jobs(self) -> Iterator[tuple[int, Job]]:
        """The job of every text with the text's row; equal texts have equal jobs."""
        row = 0
        for table in read_batches(self.texts, Text, self.plan.study.command(COMMAND)):
            for text in table.to_pylist():
                yield row, self.plan.job(as_record(text, Text), self.transformation, self.seed)
                row += 1

    def _want(self) -> None:
        """Note the key of every text; the first of equal texts has the place."""
        rows = ((row, job.key) for row, job in self._all_jobs())
        self._keys.executemany("INSERT OR IGNORE INTO outputs VALUES (?, ?, NULL, 1, 0)", rows)

    def _find(self) -> None:
        """Note what is there: what is ok, else the last line of a journal, else the table's."""
        if self.path.exists():
            for table in read_batches(self.path, TransformedText, self.plan.study.command(COMMAND), ["key", "status"]):
                self._note((row["key"], IN_TABLE, row["status"]) for row in table.to_pylist())
            refuse_other_outputs(self.plan.study, self.transformation, self.seed)
        for path in journal_files(self.plan.study, self.transformation, self.seed):
            if path != self.journal.path and not (self._shard and path.stem.endswith(f"-of-{self._shard.of}")):
                lines = Journal(path).lines(TransformedText)
                self._note((row["key"], ELSEWHERE, row["status"]) for _, row in lines)
        self._note((row["key"], line, row["status"]) for line, row in self.journal.lines(TransformedText))

    def _note(self, rows_there: Iterable[tuple[str, int, str]]) -> None:
        query = (
            "INSERT INTO outputs VALUES ((SELECT coalesce(max(place), 0) + 1 FROM outputs), ?, ?, NULL, ?)"
            " ON CONFLICT (key) DO UPDATE SET line = excluded.line, todo = iif(todo IS NULL, NULL, ?), ok = excluded.ok"
            " WHERE excluded.ok >= ok"
        )
        rows = ((key, line, status == "ok", status in self._again) for key, line, status in rows_there)
        self._keys.executemany(query, rows)

    def _move_table(self) -> None:
        """Put outputs that stand in the table alone into the journal, so that all can be read in any order."""
        if not self.path.exists():
            return
        for table in read_batches(self.path, TransformedText, self.plan.study.command(COMMAND)):
            for row in table.to_pylist():
                (line,) = self._keys.execute("SELECT line FROM outputs WHERE key = ?", (row["key"],)).fetchone()
                if line == IN_TABLE:
                    line = self.journal.append(as_record(row, TransformedText))
                    self._keys.execute("UPDATE outputs SET line = ? WHERE key = ?", (line, row["key"]))

    def _column(self, name: str, condition: str) -> Iterator[tuple[int, int]]:
        """Place and a column of outputs in order; in pieces, because the rows change while they are worked on."""
        last = -1
        query = f"SELECT place, {name} FROM outputs WHERE {condition} AND place > ? ORDER BY place LIMIT {BATCH}"  # noqa: S608
        while rows := self._keys.execute(query, (last,)).fetchall():
            yield from rows
            last = rows[-1][0]
