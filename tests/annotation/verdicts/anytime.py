"""Made-up campaigns under an anytime rule, looked at while people work, by the functions that judge real ones.

Queues are worked off one after the other. In each, some raters do the pairs that come first and others, who give other
ratings, the rest; so what is finished early is not like what comes late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from annotation.planning import rated_mean
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import sequence
from annotation.verdicts.rules import outcomes, short
from plumbline.statistics.estimates import Floats
from plumbline.statistics.intervals import confidence_sequence, holding
from plumbline.study.campaign import AcceptanceSpec

SCALE = (1, 2, 3, 4, 5)
RULE = AcceptanceSpec(rule="lower_bound", stop="anytime", scope="transformation")
DESIGN = Design(("quality",), SCALE, 3, RULE)
SPREAD, NOISE = 0.6, 0.9  # of pairs' quality and of single ratings, in points
LOOK = 10  # pairs from one look to the next

Order = Callable[[list[str], list[str], int], list[str]]


@dataclass(frozen=True)
class Queue:
    """One queue: its pairs, how much better they are than others, and how much kinder who rates first and last is."""

    pairs: int
    shift: float = 0.0
    strata: float = 0.0  # how far apart the two halves of its pairs are
    early: float = 0.35
    late: float = -0.35

    def felt(self) -> Floats:
        """What is added to each pair's quality by its stratum: a fixed composition, as the sample has it."""
        return np.float64(self.shift) + self.strata * (np.arange(self.pairs, dtype=np.float64) % 2 - 0.5)


@dataclass(frozen=True)
class Found:
    """What many campaigns came to."""

    accepted: float  #: share accepted at any look
    decided: float  #: share decided at any look
    sequence: float  #: pairs of the sequence when it decided, or at the end
    complete: float  #: pairs complete by then


def by_sample(ids: list[str], finished: list[str], seed: int) -> list[str]:
    """The rule's own order."""
    return in_order(ids, seed)


def by_answers(ids: list[str], finished: list[str], seed: int) -> list[str]:
    """The order in which pairs became complete, as the rule had it once: to see that these campaigns are hard."""
    return finished


def campaigns(queues: list[Queue], mean: float, number: int, seed: int = 1, order: Order = by_sample) -> Found:
    """Look at each campaign after every 10 pairs. `mean` is that of all ratings, over pairs, raters and noise."""
    draw = np.random.default_rng(seed)
    work = rated(queues, mean, number, draw)
    return judged(work.values, counting(work, order))


@dataclass(frozen=True)
class Work:
    """What raters did in many campaigns: campaigns by pairs."""

    expected: Floats  #: the quality that pairs of its stratum have on average
    quality: Floats  #: each pair's own
    values: Floats  #: the mean of its ratings
    given: NDArray[np.int64]  #: how many ratings it got
    finished: NDArray[np.int64]  #: the pairs as they were worked off


def rated(queues: list[Queue], mean: float, number: int, draw: np.random.Generator) -> Work:
    """Queue after queue, by raters who are kinder early than late; some pairs are discarded by one or two of three."""
    felt, late, finished = _worked(queues, number, draw)
    biases = np.where(
        late,
        np.concatenate([np.full(one.pairs, one.late) for one in queues]),
        np.concatenate([np.full(one.pairs, one.early) for one in queues]),
    )
    latent = _latent(queues, mean)
    expected = latent + felt
    quality = expected + draw.normal(0, SPREAD, felt.shape)
    ratings = np.clip(np.round((quality + biases)[..., None] + draw.normal(0, NOISE, (*felt.shape, 3))), 1, 5)
    # One pair in twelve is discarded by one of its three raters, one in fifty by two: these are passed over.
    given = 3 - draw.choice(3, p=[1 - 1 / 12 - 1 / 50, 1 / 12, 1 / 50], size=felt.shape)
    there = np.arange(3) < given[..., None]
    return Work(expected, quality, np.where(there, ratings, 0).sum(axis=-1) / given, given, finished)


Looks = list[list[tuple[int, list[int]]]]  # of each campaign, at each look: pairs complete, pairs of the sequence


def counting(work: Work, order: Order = by_sample) -> Looks:
    """What counts at each look."""
    return [_counting(work.given[i], work.finished[i], i, order) for i in range(len(work.given))]


Ends = Callable[[Floats, NDArray[np.int64], NDArray[np.int64]], tuple[Floats, Floats]]


def by_people(values: Floats, rows: NDArray[np.int64], pairs: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The rule's own interval."""
    return confidence_sequence(values, (SCALE[0], SCALE[-1]))


def _worked(
    queues: list[Queue], number: int, draw: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """(shifts of strata, whether those who rate last do it, pairs as they are worked off), campaigns by pairs."""
    parts, lates, orders, start = [], [], [], 0
    for one in queues:
        order = draw.permuted(np.tile(np.arange(one.pairs), (number, 1)), axis=1)
        late = np.zeros((number, one.pairs), np.bool_)
        np.put_along_axis(late, order[:, one.pairs // 2 :], True, axis=1)
        parts.append(np.tile(one.felt(), (number, 1)))
        lates.append(late)
        orders.append(start + order)
        start += one.pairs
    return np.concatenate(parts, axis=1), np.concatenate(lates, axis=1), np.concatenate(orders, axis=1)


def _latent(queues: list[Queue], mean: float) -> float:
    """What makes the mean of all ratings this one, whatever is rounded and cut off at the scale's ends."""
    deviation = float(np.hypot(SPREAD, NOISE))

    def miss(latent: float) -> float:
        total, pairs = 0.0, 0
        for one in queues:
            last = one.pairs - one.pairs // 2
            for shift in one.felt():
                found = [rated_mean(latent + shift + bias, deviation, SCALE) for bias in (one.early, one.late)]
                total += (found[0] * (one.pairs - last) + found[1] * last) / one.pairs
            pairs += one.pairs
        return total / pairs - mean

    return float(optimize.brentq(miss, 0, 6))


def _counting(
    given: NDArray[np.int64], finished: NDArray[np.int64], seed: int, order: Order
) -> list[tuple[int, list[int]]]:
    """(pairs complete, pairs of the sequence in its order) at each look."""
    names = [f"pair-{place}" for place in range(len(given))]
    done = [names[place] for place in finished]
    line = order(names, done, seed)
    found = []
    for end in [*range(LOOK, len(names), LOOK), len(names)]:
        answered = {name: int(given[int(name[5:])]) for name in done[:end]}
        dealt = dict.fromkeys(done[:end], DESIGN.per_pair)
        standing, counting = sequence(line, answered, DESIGN, dealt)
        found.append((standing.complete, [int(name[5:]) for name in counting]))
    return found


def judged(values: Floats, looks: Looks, ends: Ends = by_people) -> Found:
    """The rule at every look: campaigns whose sequences are equally long are judged together.

    `ends` gives the interval of (campaigns, the places of their pairs in the sequence).
    """
    decisions = np.full((len(values), len(looks[0])), "undecided")
    lengths = np.array([[len(pairs) for _, pairs in looked] for looked in looks])
    for length in np.unique(lengths[lengths >= RULE.min_pairs]):
        rows, places = np.nonzero(lengths == length)
        pairs = np.array([looks[row][place][1] for row, place in zip(rows, places, strict=True)])
        own = values[rows[:, None], pairs]
        mean = own.mean(axis=1)
        low, high = holding(ends(own, rows, pairs), mean)
        decisions[rows, places] = outcomes(mean, low, high, short("quality", RULE))
    decided = decisions != "undecided"
    first = np.where(decided.any(axis=1), decided.argmax(axis=1), len(looks[0]) - 1)
    complete = np.array([looked[place][0] for looked, place in zip(looks, first, strict=True)])
    return Found(
        float((decisions == "accepted").any(axis=1).mean()),
        float(decided.any(axis=1).mean()),
        float(lengths[np.arange(len(values)), first].mean()),
        float(complete.mean()),
    )
