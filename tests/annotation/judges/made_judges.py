"""Judges of made-up campaigns: good, useless, contrary, constant, wrong by stratum, failing on bad outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from annotation.variation import rated_mean
from plumbline.statistics.estimates import Floats
from plumbline.statistics.prediction_powered import Pool, PoweredMean, RatedPairs, filled, powered

SCALE = (1, 2, 3, 4, 5)
SPREAD, NOISE = 0.6, 0.9  # of pairs' quality and of single ratings, in points
BESIDE = 9  # outputs of the pool for each rated pair
TOO_KIND = 0.36  # HTEB's judges beside its people, over the eight transformations


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
class Work:
    """What raters did in many campaigns: campaigns by pairs."""

    expected: Floats  #: the quality that pairs of its stratum have on average
    quality: Floats  #: each pair's own
    values: Floats  #: the mean of its ratings
    given: NDArray[np.int64]  #: how many ratings it got


def rated(queues: list[Queue], mean: float, number: int, draw: np.random.Generator) -> Work:
    """Raters are kinder early than late in each queue; some pairs are discarded by one or two of three.

    `mean` is that of all ratings, over pairs, raters and noise.
    """
    biases = []
    for one in queues:
        late = draw.permuted(np.tile(np.arange(one.pairs) >= one.pairs // 2, (number, 1)), axis=1)
        biases.append(np.where(late, one.late, one.early))
    expected = np.tile(_latent(queues, mean) + np.concatenate([one.felt() for one in queues]), (number, 1))
    quality = expected + draw.normal(0, SPREAD, expected.shape)
    felt = (quality + np.concatenate(biases, axis=1))[..., None] + draw.normal(0, NOISE, (*expected.shape, 3))
    # One pair in twelve is discarded by one of its three raters, one in fifty by two.
    given = 3 - draw.choice(3, p=[1 - 1 / 12 - 1 / 50, 1 / 12, 1 / 50], size=expected.shape)
    kept = np.where(np.arange(3) < given[..., None], np.clip(np.round(felt), 1, 5), 0)
    return Work(expected, quality, kept.sum(axis=-1) / given, given)


def _latent(queues: list[Queue], mean: float) -> float:
    """What makes the mean of all ratings this one, whatever is rounded and cut off at the scale's ends."""
    deviation = float(np.hypot(SPREAD, NOISE))

    def miss(latent: float) -> float:
        total = 0.0
        for one in queues:
            last = one.pairs - one.pairs // 2
            for shift in one.felt():
                found = [rated_mean(latent + shift + bias, deviation, SCALE) for bias in (one.early, one.late)]
                total += (found[0] * (one.pairs - last) + found[1] * last) / one.pairs
        return total / sum(one.pairs for one in queues) - mean

    return float(optimize.brentq(miss, 0, 6))


Judge = Callable[[Floats, Floats, np.random.Generator], Floats]  # (quality, what is expected of it) to scores


def good(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Near people's opinion, and too kind."""
    return np.clip(quality + TOO_KIND + draw.normal(0, 0.35, quality.shape), 1, 5)


def usual(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """As far from people as today's judges are (rho of about 0.5)."""
    return np.clip(quality + TOO_KIND + draw.normal(0, 0.6, quality.shape), 1, 5)


def useless(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    return np.clip(draw.normal(4, 0.8, quality.shape), 1, 5)


def contrary(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    return np.clip(6 - quality + draw.normal(0, 0.5, quality.shape), 1, 5)


def constant(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    return np.full(quality.shape, 4.0)


def partial(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Takes a point off in the better strata, and adds one in the others: its gap is another in each."""
    off = np.where(expected > np.median(expected), -1.0, 1.0)
    return np.clip(quality + off + draw.normal(0, 0.35, quality.shape), 1, 5)


def failing(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Fails on half of what is worse than usual, and on few others."""
    lost = draw.random(quality.shape) < np.where(quality < expected, 0.5, 0.05)
    return np.where(lost, np.nan, good(quality, expected, draw))


JUDGES: tuple[Judge, ...] = (good, usual, useless, contrary, constant, partial, failing)


def judged_work(work: Work, judge: Judge, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """(scores of the pairs, scores of the outputs beside each): the latter are drawn as the pairs were."""
    expected = np.repeat(work.expected[..., None], BESIDE, axis=-1)
    beside = expected + draw.normal(0, SPREAD, expected.shape)
    return judge(work.quality, work.expected, draw), judge(beside, expected, draw)


def fixed(queues: list[Queue], mean: float, number: int, judge: Judge, seed: int = 1) -> list[PoweredMean]:
    """People's mean and that with the judge of each campaign, all pairs rated; a stratum has one expectation."""
    draw = np.random.default_rng(seed)
    work = rated(queues, mean, number, draw)
    scores, beside = judged_work(work, judge, draw)
    found = []
    for i in range(number):
        strata = np.unique(work.expected[i], return_inverse=True)[1].astype(np.int64)
        own = RatedPairs(work.values[i] * work.given[i], work.given[i].astype(np.float64), scores[i], strata)
        found.append(powered(*filled(own, Pool(beside[i].ravel(), np.repeat(strata, BESIDE)))))
    return found
