"""Looks at the difference of two systems after blocks of originals that all systems share."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.importing import scipy
from plumbline.statistics.estimates import Floats, over_pairs
from plumbline.statistics.group_sequential import ALPHA, error_reached, levels, spent

LEAST = 6  #: originals on which two systems must differ: the signs of 5 are all equal by chance in 1 of 16 cases
EQUAL = 1e-9  #: means of ratings that differ by less are equal
_SAME_LEVEL = 1e-12


@dataclass(frozen=True)
class DifferenceLook:
    """A look at the difference of two systems after a block of originals."""

    pairs: int  #: originals that both have
    mean: float
    low: float  #: lower end of the repeated interval
    high: float
    level: float  #: one-sided level of the look
    above: float  #: p-value of "the difference is at most 0"
    below: float


Couple = tuple[str, str]  # two systems, in the order of their names


@dataclass(frozen=True)
class SharedBlocks:
    """Blocks of originals that all systems share: looks are after each, until two systems are told apart."""

    shares: Sequence[float]  #: of the originals, up to each block
    block: Mapping[str, int]  #: of each original, from 0; an original beyond the last has none
    complete: Mapping[Couple, int]  #: how many looks at two systems there are to take
    past: Mapping[Couple, Mapping[str, Sequence[DifferenceLook]]]  #: those that were taken, by question

    def up_to(self, n_looks: int, originals: pd.Index) -> NDArray[np.bool_]:
        """Return which originals are in the first blocks."""
        return np.array([self.block.get(str(original), n_looks) < n_looks for original in originals], dtype=np.bool_)

    def looks(self, couple: Couple, question: str, differences: pd.Series) -> list[DifferenceLook]:
        """Return the looks at two systems: those that were taken, with what now speaks less, and further ones."""
        past, n_looks = self.past.get(couple, {}).get(question, ()), self.complete[couple]
        ends = range(1, n_looks + 1)
        of_looks = [differences[self.up_to(end, differences.index)].to_numpy(np.float64) for end in ends]
        pairs, shares = [len(values) for values in of_looks], list(self.shares)
        own_parts = ALPHA * np.diff(spent(shares, "pocock", 1.0), prepend=0.0)
        is_rising, has_changed = (np.diff(pairs, prepend=0) > 0).all(), False
        looks = list[DifferenceLook]()
        for number, values in enumerate(of_looks):
            taken = past[number] if number < len(past) else None
            if taken is not None:
                level = taken.level
            elif is_rising and not has_changed:
                level = _level(tuple(shares[: number + 1]), tuple(pairs[: number + 1]))
            else:
                level = float(own_parts[number])
            look = _look(values, level)
            if taken is not None:
                has_changed |= abs(look.above - taken.above) > EQUAL
                look = replace(look, above=max(look.above, taken.above), below=max(look.below, taken.below))
            looks.append(look)
        return looks

    def p(self, looks: Sequence[DifferenceLook]) -> float:
        """Return the two-sided p-value of all looks so far, on the side of the last difference."""
        if not looks or math.isnan(looks[-1].mean):
            return math.nan
        if abs(looks[-1].mean) <= EQUAL:
            return 1.0
        pairs, own_parts = [look.pairs for look in looks], np.diff(spent(self.shares, "pocock", 1.0), prepend=0.0)
        errors = [
            error_reached(
                look.above if looks[-1].mean > 0 else look.below,
                self.shares[:number],
                pairs[:number],
                alone=(number > 1 and abs(look.level - ALPHA * own_parts[number - 1]) < _SAME_LEVEL)
                or bool((np.diff(pairs[:number], prepend=0) <= 0).any()),
            )
            for number, look in enumerate(looks, 1)
        ]
        return 2 * min(errors)


@functools.lru_cache(maxsize=256)
def _level(shares: Sequence[float], pairs: Sequence[int]) -> float:
    """Return the one-sided level of the last of these looks."""
    return float(levels(shares, "pocock", ALPHA, pairs)[-1])


def _look(differences: Floats, level: float) -> DifferenceLook:
    """Return a look at these differences by the paired t-test, without p-values where they say too little."""
    n_unequal, above, below = int((np.abs(differences) > EQUAL).sum()), 1.0, 1.0
    value = low = high = math.nan
    if len(differences):
        value = float(differences.mean())
    if n_unequal >= LEAST:
        mean, least = over_pairs(differences, np.ones(len(differences))), 2.0**-n_unequal
        at_least = float(mean.at_least(0.0))
        if math.isnan(at_least):  # all differences are equal
            at_least = float(value > 0)
        else:
            reach = float(-scipy.special.stdtrit(mean.freedom, level) * mean.error)
            low, high = value - reach, value + reach
        above, below = max(1 - at_least, least), max(at_least, least)
    return DifferenceLook(len(differences), value, low, high, level, above, below)
