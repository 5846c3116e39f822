"""A unit of generation: one transformation with one seed, with what it wants, what is there, and what is left to do.

`plumbline generate --shard 3/16` makes a part of a study's texts, for schedulers that start one command many
times. Processes on many machines share nothing but the study's folder: what a shard makes stands in journals of its own
beside the units' tables. The next run without `--shard` takes these over, makes what is left, and writes the tables.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from generation.output import with_language
from plumbline.file_hashes import FactCache, cached_file_hash
from plumbline.hashes import return_unused
from plumbline.journal import Journal
from plumbline.manifest import Manifest
from plumbline.models.asking import AnswerTable
from plumbline.records import Text, TransformedText
from plumbline.store import as_record, is_remote, read_batches, write_table
from plumbline.study import Study

COMMAND = "generation.run"
WORTH = 20_000  # outputs of a unit; whether there are fewer is found out in half a second
MOST = 9999  # shards


class Shard(NamedTuple):
    """One of so many parts of a study's texts, counted from 1."""

    number: int
    of: int

    def has(self, text: str) -> bool:
        """Whether a text (in NFC) is of this shard: by its hash, so that equal texts are of one."""
        return zlib.crc32(text.encode()) % self.of == self.number - 1

    @property
    def name(self) -> str:
        """As its files are called."""
        return f"shard-{self.number}-of-{self.of}"


def journal_files(journal: Path) -> list[Path]:
    """The journals that a unit has (`Study.journal_file`): its shards' by name, then its own.

    Shards of other sizes may have the same text: which line of it came last cannot be told, and need not be, for what
    is `ok` is asked for no more. So that one counts, wherever it stands.
    """
    return [*sorted(journal.parent.glob(f"{journal.stem}.shard-*.journal")), *([journal] if journal.exists() else [])]


def take_over(journals: Iterable[Path]) -> None:
    """Put what shards have made of units into the units' own journals. No shard may be at work."""
    for journal in map(Journal, journals):
        for path in journal_files(journal.path):
            if path != journal.path:
                journal.take_over(path)


def refuse_other_outputs(study: Study, transformation: str, seed: int) -> None:
    """Raise DataError where a unit's outputs are there and not those that were written."""
    name = str(study.transformation_file(transformation, seed).relative_to(study.folder))
    Manifest.of(study).refuse_replaced(name, study.command(COMMAND))


class Unit(AnswerTable[Job, TransformedText]):
    """One transformation with one seed of a study; `texts` is the table of all texts.

    `characters` are those of the texts that are left to do. Whether a large unit is complete is found out once, until
    anything changes. A `shard`'s unit has a journal of its own and no table.
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
        self._shard = shard
        name = str(plan.study.transformation_file(transformation, seed).relative_to(plan.study.folder))
        super().__init__(plan.study, name, TransformedText, self._all_jobs, COMMAND, again=again)

    def characters(self) -> int:
        """Characters of all texts that are left to do."""
        return sum(len(job.text) for job in self.jobs())

    def settle(self) -> None:
        """Turn the journal into the table, but for a shard's."""
        if not self._shard:
            super().settle()

    def _journal_file(self) -> Path:
        return self._study.journal_file(self.transformation, self.seed, self._shard.name if self._shard else "")

    def _finished(self, answer: TransformedText) -> TransformedText:
        return with_language(answer, self.plan.kinds[self.transformation])

    def _journals(self) -> list[Path]:
        paths = journal_files(self._study.journal_file(self.transformation, self.seed))
        same = f"-of-{self._shard.of}" if self._shard else None
        return [path for path in paths if path != self.journal.path and not (same and path.stem.endswith(same))]

    def _counted(self) -> tuple[int, int]:
        state, cache = self._state(), self.plan.complete
        if cache.has(state):
            refuse_other_outputs(self.plan.study, self.transformation, self.seed)
            return cache.found(state, dict)["wanted"], 0
        wanted, todo = super()._counted()
        if not todo and wanted >= WORTH:
            cache.found(state, lambda: {"wanted": wanted})
        return wanted, todo

    def _state(self) -> str:
        """The identity of all that decides what is left; empty where a unit has no whole table, or it is far."""
        plan, study, name = self.plan, self.plan.study, self.transformation
        journals = self._shard or journal_files(study.journal_file(name, self.seed))
        if is_remote(self.path) or journals or plan.by_recordings or not self.path.exists():
            return ""
        files = [cached_file_hash(file) for file in (self.texts, self.path, study.file)]
        made_by = plan.makers[name].hash, plan.prompt_hashes[name] or "none"
        return FactCache.key("complete-v1", *files, *made_by, name, self.seed, sorted(self._again))

    def _all_jobs(self) -> Iterator[tuple[str, Job]]:
        """The job of every text with its key; equal texts have equal jobs."""
        for table in read_batches(self.texts, Text, self._command):
            for text in table.to_pylist():
                job = self.plan.job(as_record(text, Text), self.transformation, self.seed)
                yield job.key, job


@contextlib.contextmanager
def planned(
    plan: Plan, *, again: bool = False, texts: Path | None = None, shard: Shard | None = None
) -> Iterator[list[Unit]]:
    """The units of a study, with what each has and lacks; of a `shard`, where there is one, its texts alone.

    The texts are read and written to `texts` first (by default the study's `texts.parquet`).
    """
    study = plan.study
    file = texts or study.folder / "texts.parquet"
    all_texts = (text for dataset in iter_datasets(study) for text in dataset.texts())
    write_table(file, (text for text in all_texts if shard is None or shard.has(text.text)), Text)
    return_unused()  # what the data sets took, which a long run has no more use for
    places = [(name, seed) for name in study.transformations for seed in study.seeds]
    units: list[Unit] = []
    try:
        for name, seed in tqdm(places, unit="unit", desc="planning", leave=False, delay=1):
            units.append(Unit(plan, name, seed, file, again=again, shard=shard))
        if texts is None:  # a dry run leaves nothing
            plan.complete.keep()
        yield units
    finally:
        for unit in units:
            unit.close()
