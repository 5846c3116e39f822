"""The strata of outputs, of however many texts: a key and a number are kept of each."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generation.jobs import Plan
from plumbline.hashes import Hashes, Packed
from plumbline.records import Text
from plumbline.words import count_words

Stratum = tuple[str, ...]  # language, task type, data set, output language, third by length


class Lengths:
    """Thirds by length, in words, of each data set's texts in each language.

    They are the texts' and not the outputs', so that no output that comes later moves a text to another third.
    """

    def __init__(self, texts: Iterable[Text]) -> None:
        counts: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for text in texts:
            counts[text.dataset, text.language][count_words(text.text)] += 1
        self._bounds = {place: (share_of(count, 1), share_of(count, 2)) for place, count in counts.items()}

    def third(self, text: Text) -> int:
        """0 for the shortest texts, 2 for the longest."""
        words = count_words(text.text)
        return sum(words > bound for bound in self._bounds[text.dataset, text.language])


def share_of(counts: Counter[int], thirds: int) -> int:
    """The length that at least so many thirds of the texts do not exceed."""
    reached = 0
    for words in sorted(counts):
        reached += counts[words]
        if 3 * reached >= thirds * counts.total():
            break
    return words


@dataclass(frozen=True)
class Strata:
    """The stratum of each output that a study wants: that of the first text that it serves.

    `keys` are the outputs', sorted; `numbers` say which of the `strata` each has.
    """

    keys: Packed
    numbers: NDArray[np.int32]
    strata: list[Stratum]

    @classmethod
    def of(cls, plan: Plan, texts: Iterable[Text], lengths: Lengths, transformation: str, seed: int) -> Strata:
        """Those of a unit."""
        known: dict[Stratum, int] = {}
        numbers = array("i")

        def keys() -> Iterator[str]:
            for text in texts:
                job = plan.job(text, transformation, seed)
                place = text.language, text.task_type, text.dataset
                stratum = *place, job.languages[-1], str(lengths.third(text))
                numbers.append(known.setdefault(stratum, len(known)))
                yield job.key

        wanted, firsts = np.unique(Hashes.of(keys(), "texts.parquet").packed, return_index=True)
        return cls(wanted, np.asarray(numbers, np.int32)[firsts], list(known))

    def find(self, keys: Packed) -> Iterator[Stratum | None]:
        """Those of some outputs; None for one that is not wanted."""
        if not len(self.keys):
            yield from [None] * len(keys)
            return
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        there = self.keys[at] == keys
        for place, known in zip(at.tolist(), there.tolist(), strict=True):
            yield self.strata[self.numbers[place]] if known else None
