"""`python -m generation.run --shard 3/16`: a part of a study's texts, for schedulers that start one command many times.

Processes on many machines share nothing but the study's folder: what a shard makes stands in journals of its own beside
the units' tables. The next run without `--shard` takes these over, makes what is left, and writes the tables.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plumbline.journal import Journal
from plumbline.study import Study

MOST = 9999


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


def as_shard(value: str) -> Shard:
    """`3/16`, for an option."""
    number, _, of = value.partition("/")
    if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST:
        return Shard(int(number), int(of))
    raise argparse.ArgumentTypeError(f"{value!r} is not a shard of so many, such as 3/16")


def journal_files(study: Study, transformation: str, seed: int) -> list[Path]:
    """The journals that a unit has: its shards' by name, then its own.

    Shards of other sizes may have the same text: which line of it came last cannot be told, and need not be, for what
    is `ok` is asked for no more. So that one counts, wherever it stands.
    """
    journal = study.journal_file(transformation, seed)
    return [*sorted(journal.parent.glob(f"{seed}.shard-*.journal")), *([journal] if journal.exists() else [])]


def take_over(study: Study, units: Iterable[tuple[str, int]]) -> None:
    """Put what shards have made of these units into the units' journals. No shard may be at work."""
    for transformation, seed in units:
        journal = Journal(study.journal_file(transformation, seed))
        for path in journal_files(study, transformation, seed):
            if path != journal.path:
                journal.take_over(path)
