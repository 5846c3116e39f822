"""Made-up raters who read, and some who do not: how often a verdict on their ratings waits for a look at them.

`python -m tests.annotation.verdicts.attention` prints the table in docs/decisions/0005-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.summaries import Design
from annotation.verdicts.held import Checks, reasons_to_look

Values = NDArray[np.float64]
DESIGN = Design()
BATCH = 50  # pairs, each with a positive and a negative control
Keys = Callable[[np.random.Generator, int], Values]


@dataclass(frozen=True)
class Reader:
    """Reads: what a pair is worth, with noise; misses a control now and then."""

    noise: float = 0.6
    misses: float = 0.05


@dataclass(frozen=True)
class Clicker:
    """Reads nothing: so many keys in turn, or at random."""

    keys: Keys


def random(low: int, high: int) -> Clicker:
    """Points at random, from the lowest to the highest."""
    return Clicker(lambda draw, n: draw.integers(low, high + 1, n).astype(np.float64))


def turns(*keys: int) -> Clicker:
    """The same keys one after another, in an order of pairs that is each rater's own."""
    return Clicker(lambda draw, n: draw.permutation(np.resize(np.array(keys, np.float64), n)))


Raters = Sequence[Reader | Clicker]
EASY, MIXED, EVEN, WEAK = (4.9, 0.2), (3.5, 1.0), (4.3, 0.2), (4.0, 0.5)  # mean and spread of pairs
READ, SLOPPY = [Reader()] * 3, [Reader(misses=0.15)] * 3
HONEST: Mapping[str, tuple[tuple[float, float], Raters]] = {
    "read, nearly everything a 5": (EASY, [Reader(noise=0.4)] * 3),
    "read, all pairs about as good (4.3)": (EVEN, READ),
    "read, pairs differ": (MIXED, READ),
    "read, pairs differ less than raters err": (WEAK, [Reader(noise=0.8)] * 3),
    "read, all pairs about as good, noise 0.9": (EVEN, [Reader(noise=0.9)] * 3),
    "read, all pairs about as good, noise 1.0": (EVEN, [Reader(noise=1.0)] * 3),
    "read, and miss 15% of the controls": (MIXED, SLOPPY),
}
CARELESS: Mapping[str, tuple[tuple[float, float], Raters]] = {
    "5 throughout": (MIXED, [turns(5)] * 3),
    "3 throughout": (MIXED, [turns(3)] * 3),
    "keys 4, 5 in turn": (MIXED, [turns(4, 5)] * 3),
    "keys 3, 4, 5 in turn": (MIXED, [turns(3, 4, 5)] * 3),
    "at random, 4 and 5": (MIXED, [random(4, 5)] * 3),
    "at random, 1 to 5": (MIXED, [random(1, 5)] * 3),
    "two read, the third 5 throughout": (MIXED, [Reader(), Reader(), turns(5)]),
    "two read, the third at random 1 to 5": (MIXED, [Reader(), Reader(), random(1, 5)]),
}


def share_waiting(worth: tuple[float, float], raters: Raters, pairs: int, queues: int, number: int) -> float:
    """Of so many campaigns the share in which the verdict on a queue of `pairs` waits, when `queues` are done.

    Without queues there are no controls. Raters answer queue after queue; what they missed in earlier ones counts.
    """
    draw = np.random.default_rng([pairs, queues, number])
    waits = sum(
        bool(list(reasons_to_look(_ratings(draw, worth, raters, pairs), DESIGN, _checks(draw, raters, pairs, queues))))
        for _ in range(number)
    )
    return waits / number


def _ratings(draw: np.random.Generator, worth: tuple[float, float], raters: Raters, pairs: int) -> pd.DataFrame:
    """Both questions: quality of what pairs are worth, fluency good throughout."""
    given = []
    for mean, spread in (worth, (max(worth[0], 4.6), 0.3)):
        true = draw.normal(mean, spread, pairs)
        said = [one.keys(draw, pairs) if isinstance(one, Clicker) else true + _felt(draw, one, pairs) for one in raters]
        given.append(np.clip(np.rint(said), 1, 5))
    question, rater, pair = np.indices((2, len(raters), pairs)).reshape(3, -1)
    columns = {
        "pair_id": pair,
        "rater_id": pd.Categorical.from_codes(rater, [str(number) for number in range(len(raters))]),
        "question": pd.Categorical.from_codes(question, ["quality", "fluency"]),
        "value": np.ravel(given),
    }
    return pd.DataFrame(columns)


def _felt(draw: np.random.Generator, rater: Reader, pairs: int) -> Values:
    """A rater's own severity and noise."""
    return draw.normal(0, 0.3) + draw.normal(0, rater.noise, pairs)


def _checks(draw: np.random.Generator, raters: Raters, pairs: int, queues: int) -> Checks:
    """What raters missed: a positive (right: 5) and a negative (right: 1) for each batch."""
    each = queues * -(-pairs // BATCH)
    if not each:
        return Checks()
    missed = {}
    for name, rater in enumerate(raters):
        if isinstance(rater, Reader):
            found = dict(zip(("positive", "negative"), draw.binomial(each, rater.misses, 2), strict=True))
        else:
            keys = rater.keys(draw, 2 * each)
            found = {"positive": (keys[:each] < 4).sum(), "negative": (keys[each:] > 2).sum()}
        missed[str(name)] = {kind: (int(number), each) for kind, number in found.items()}
    return Checks(missed)


def table(number: int) -> pd.DataFrame:
    """Every kind of raters by how many pairs and queues, in percent."""
    sizes = [(20, 0), (100, 0), (20, 1), (100, 1), (100, 4)]
    return pd.DataFrame(
        {
            name: {f"{n} pairs, {q} queues": 100 * share_waiting(worth, raters, n, q, number) for n, q in sizes}
            for name, (worth, raters) in {**HONEST, **CARELESS}.items()
        }
    ).T


if __name__ == "__main__":
    print(table(200).round(1).to_string())
