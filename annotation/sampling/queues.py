"""What a rater works through: the pairs of one pool in one pair of languages, a dataset of Argilla's.

Groups of texts share a queue (`Pair.queue`): who rates is not to know of which a text is.

Argilla lets people into workspaces, not into datasets, so those whose texts the same people can read share a workspace.
Language codes are in capitals there: a study's name has none, so no two studies' names can run into each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from annotation.questions import ENGLISH
from plumbline.records import Pair


@dataclass(frozen=True, order=True)
class Queue:
    """A pool of transformations with the languages of its originals and of its transformed texts (codes)."""

    pool: str
    language: str
    output_language: str

    @classmethod
    def of(cls, pair: Pair) -> Queue:
        """The queue that a pair stands in."""
        return cls(pair.queue or pair.pool, pair.language, pair.output_language)

    @property
    def languages(self) -> frozenset[str]:
        """What its raters must read."""
        return frozenset({self.language, self.output_language})

    @property
    def rarer(self) -> str:
        """The language that fewer people read.

        That is the output language, since texts are translated from English more than into it; where it is English,
        it is the original's.
        """
        return self.language if self.output_language == ENGLISH else self.output_language

    def dataset(self, study_name: str) -> str:
        """What it is called in Argilla: `demo-paraphrasing-EN`, `demo-translation-EN-DE`."""
        codes = dict.fromkeys((self.language.upper(), self.output_language.upper()))
        return "-".join([study_name, self.pool, *codes])

    def workspace(self, study_name: str) -> str:
        """The workspace of its raters: `demo-EN`, `demo-DE-EN`."""
        return workspace_name(study_name, self.languages)


def workspace_name(study_name: str, languages: Iterable[str]) -> str:
    """What the workspace of those who read these languages is called."""
    return "-".join([study_name, *(code.upper() for code in sorted(languages))])


def frames_by_queue(pairs: pd.DataFrame) -> Iterator[tuple[Queue, pd.DataFrame]]:
    """Rows of `Pair` by queue."""
    queue, pool = pairs["queue"].astype(str), pairs["pool"].astype(str)
    names = queue.where(queue != "", pool)
    for key, rows in pairs.groupby([names, "language", "output_language"], observed=True, sort=False):
        yield Queue(*map(str, key)), rows


def queues_of(pairs: Iterable[Pair]) -> dict[Queue, list[Pair]]:
    """Pairs by queue, in their order."""
    queues: dict[Queue, list[Pair]] = {}
    for pair in pairs:
        queues.setdefault(Queue.of(pair), []).append(pair)
    return queues
