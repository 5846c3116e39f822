"""Judges of made-up campaigns: good, useless, contrary, constant, wrong by stratum, failing on bad outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plumbline.statistics.estimates import Floats
from plumbline.statistics.prediction_powered import Pool, PoweredMean, RatedPairs, filled, powered, powered_sequence
from tests.annotation.verdicts.anytime import SCALE, SPREAD, Queue, Work, counting, judged, rated

BESIDE = 9  # outputs of the pool for each rated pair
TOO_KIND = 0.36  # HTEB's judges beside its people, over the eight transformations

Judge = Callable[[Floats, Floats, np.random.Generator], Floats]  # (quality, what is expected of it) to scores


def good(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Near people's opinion, and too kind."""
    return np.clip(quality + TOO_KIND + draw.normal(0, 0.35, quality.shape), 1, 5)


def usual(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """As far from people as today's judges are (rho of about 0.5)."""
    return np.clip(quality + TOO_KIND + draw.normal(0, 0.6, quality.shape), 1, 5)


def useless(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Says anything."""
    return np.clip(draw.normal(4, 0.8, quality.shape), 1, 5)


def contrary(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Likes what people dislike."""
    return np.clip(6 - quality + draw.normal(0, 0.5, quality.shape), 1, 5)


def constant(quality: Floats, expected: Floats, draw: np.random.Generator) -> Floats:
    """Says the same of everything."""
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


def anytime(queues: list[Queue], mean: float, number: int, judge: Judge, seed: int = 1) -> tuple[float, float]:
    """(share of campaigns that people alone accept at any look, share that people and the judge accept)."""
    draw = np.random.default_rng(seed)
    work = rated(queues, mean, number, draw)
    scores, beside = judged_work(work, judge, draw)
    looks = counting(work)

    def ends(values: Floats, rows: np.ndarray, pairs: np.ndarray) -> tuple[Floats, Floats]:
        return powered_sequence(values, scores[rows[:, None], pairs], beside[rows[:, None], pairs], SCALE)

    return judged(work.values, looks).accepted, judged(work.values, looks, ends).accepted
