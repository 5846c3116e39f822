"""Invented ratings in files, and the command that takes them in."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from plumbline.study import Study, load_study
from tests.commands import here

TOWNS = ["Bremen", "Ulm", "Trier", "Passau", "Hof", "Celle", "Jena", "Emden", "Fulda", "Gera", "Halle", "Worms"]
RATERS = ("ada@example.org", "bob@example.org", "cy@example.org")
#: The options that name the columns of answers of `write_long`.
LONG = ("--column", "answer=fluency", "--column", "answer=meaning")
SYSTEMS = ("Rules (v2)", "neural")


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


class Workplace:
    """A folder in which commands are run, each in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> Done:
        """`plumbline WORDS` in the folder."""
        done = here(*words, folder=self.folder)
        return Done(done.returncode, done.stdout, done.stderr)

    def take(self, *words: str) -> Done:
        """`plumbline import WORDS --out studies/mine.yaml`, which must end well."""
        done = self.run("import", *words, "--out", "studies/mine.yaml")
        assert done.status == 0, done.err
        return done

    def refused(self, *words: str) -> str:
        """What is said where an import is refused."""
        done = self.run("import", *words, "--out", "studies/mine.yaml")
        assert done.status == 2, done.out
        return done.err

    @property
    def study(self) -> Study:
        return load_study(self.folder / "studies" / "mine.yaml", self.folder / "exports")

    @property
    def listed(self) -> list[tuple[int, str]]:
        """What is not in the study: lines and reasons."""
        frame = pd.read_csv(self.study.folder / "not_imported.csv", keep_default_na=False)
        return list(zip(frame["line"], frame["reason"], strict=True))

    def ratings(self) -> pd.DataFrame:
        """The ratings with their pairs' texts."""
        ratings = pd.read_parquet(self.study.folder / "ratings.parquet")
        pairs = pd.read_parquet(self.study.folder / "pairs.parquet")
        return ratings.merge(pairs[["pair_id", "original", "transformed", "fields"]], on="pair_id")

    def everything(self) -> bytes:
        """All bytes of records and study, in one."""
        files = [*(self.folder / "exports").rglob("*"), *(self.folder / "studies").rglob("*")]
        return b"".join(path.read_bytes() for path in sorted(files) if path.is_file())


def original(number: int) -> str:
    """A text that is no other's."""
    town = TOWNS[number % len(TOWNS)]
    return f"The old bridge of {town} was closed in {1900 + number} because nobody wanted to pay for its repair."


def output(number: int, system: str) -> str:
    """What a system made of it."""
    town = TOWNS[number % len(TOWNS)]
    verb = "shut" if system == SYSTEMS[0] else "no longer open"
    return f"In {1900 + number} the bridge in {town} was {verb}, since nobody paid for it."


def answer(number: int, system: str, rater: str, question: str = "meaning") -> int:
    """A point from 1 to 5, in which raters differ a little."""
    return 1 + (number * 7 + len(system) + 2 * RATERS.index(rater) // 2 + len(question)) % 5


def triples(items: int = 24) -> Iterable[tuple[int, str, str]]:
    return itertools.product(range(items), SYSTEMS, RATERS)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], separator: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(header)
        writer.writerows(rows)


def write_long(path: Path, items: int = 24) -> None:
    """A row for each rater and output, with two questions."""
    header = ["sys", "source_text", "system_output", "annotator", "fluency", "meaning", "submitted"]
    rows = [
        [system, original(number), output(number, system), rater, answer(number, system, rater, "fluency"),
         answer(number, system, rater), f"2024-03-{1 + number:02d}T10:{RATERS.index(rater):02d}:{number:02d}Z"]
        for number, system, rater in triples(items)
    ]  # fmt: skip
    write_csv(path, header, rows)
