"""A unit of generation: one transformation with one seed; its jobs, those with an output, and those left.

`plumbline generate --shard 3/16` makes a part of a study's texts, for schedulers that start one command many times.
Processes on many machines share only the study's folder: each shard writes its own journals beside the units' tables.
The next run without `--shard` takes these over, makes the missing outputs, and writes the tables.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from generation.datasets.loading import iter_datasets
from generation.jobs import COMMAND, Job, Plan, journal_files
from generation.output import with_language
from plumbline.errors import StudyError
from plumbline.hashes import return_unused
from plumbline.journal import Journal
from plumbline.manifest import OFFERED
from plumbline.models.asking import AnswerTable
from plumbline.records import Text, TransformedText
from plumbline.store import as_record, read_batches, read_json, write_table

MOST = 9999  # shards


class Shard(NamedTuple):
    """One of several parts of a study's texts, counted from 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard that a text such as `3/16` names. Raises ValueError."""
        number, _, of = text.partition("/")
        if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST:
            return cls(int(number), int(of))
        raise ValueError(f"{text!r} is not a shard K/N, such as 3/16, with N up to {MOST}")

    def has(self, text: str) -> bool:
        """Return whether a text (in NFC) belongs to this shard: by its hash, so that equal texts share a shard."""
        return zlib.crc32(text.encode()) % self.of == self.number - 1

    @property
    def name(self) -> str:
        """The shard's part of file names."""
        return f"shard-{self.number}-of-{self.of}"


def take_over(journals: Iterable[Path]) -> None:
    """Move the outputs of shards into the units' own journals. No shard may be running."""
    for journal in map(Journal, journals):
        for path in journal_files(journal.path):
            if path != journal.path:
                journal.take_over(path)


class Unit(AnswerTable[Job, TransformedText]):
    """One transformation with one seed of a study; `texts` is the table of all texts.

    A `shard`'s unit has its own journal and no table.
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
        """Return the number of characters of all texts that are left to do."""
        return sum(len(job.text) for job in self.jobs())

    def settle(self) -> None:
        """Turn the journal into the table, except for a shard."""
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

    def _all_jobs(self) -> Iterator[tuple[str, Job]]:
        """Yield the key and job of every text; equal texts have equal jobs."""
        for table in read_batches(self.texts, Text, self._command):
            for text in table.to_pylist():
                job = self.plan.job(as_record(text, Text), self.transformation, self.seed)
                yield job.key, job


@contextlib.contextmanager
def planned(
    plan: Plan, *, again: bool = False, texts: Path | None = None, shard: Shard | None = None
) -> Iterator[list[Unit]]:
    """Plan a study's units, or with `shard` only its texts, as a context that closes them.

    First the texts are read and written to `texts` (by default the study's `texts.parquet`). Raises StudyError for
    `again` once raters were offered some of the outputs.
    """
    study = plan.study
    offers = study.folder / OFFERED
    if again and offers.exists() and not all(offer["to"].startswith("sandbox ") for offer in read_json(offers, "")):
        raise StudyError(
            f"{study.file}: --again would change outputs that people rate a sample of, and no verdict would cover them;"
            " leave the failed ones, or give the new study another name"
        )
    file = texts or study.folder / "texts.parquet"
    all_texts = (text for dataset in iter_datasets(study) for text in dataset.texts())
    write_table(file, (text for text in all_texts if shard is None or shard.has(text.text)), Text)
    return_unused()  # the data sets' memory, which a long run does not need
    places = [(name, seed) for name in study.transformations for seed in study.seeds]
    units: list[Unit] = []
    try:
        for name, seed in tqdm(places, unit="unit", desc="planning", leave=False, delay=1):
            units.append(Unit(plan, name, seed, file, again=again, shard=shard))
        yield units
    finally:
        for unit in units:
            unit.close()
