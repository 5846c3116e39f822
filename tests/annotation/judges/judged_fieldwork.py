"""Made-up campaigns as people bring them, with a judge beside: pools with near-duplicates, raters who differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from annotation.judges.pool import _drawn
from annotation.judges.records import UNDRAWN
from annotation.sampling.candidates import Candidate
from annotation.sampling.sample import PoolDrawing
from plumbline.records import Pair
from plumbline.study import Study, load_study
from tests.annotation.judges.test_pool import STRATUM, Made, made
from tests.annotation.verdicts import fieldwork
from tests.annotation.verdicts.fieldwork import (
    LANGUAGES_APART,
    SPREAD,
    Floats,
    Integers,
    Way,
    accepted,
    by_quality,
    held,
    with_judge,
)

MIXES = {
    "7%, in twos": [1] * 930 + [2] * 35,
    "20%, in elevens": [1] * 800 + [11] * 18 + [2],
    "30%, in fours": [1] * 700 + [4] * 75,
}
GAP = 0.8
DRAWS = 10  # of sample and pool; texts of one number of near-duplicates are alike
BESIDE = 9  # outputs beside each rated pair, where there are no near-duplicates


@dataclass(frozen=True)
class Drawn:
    """Judged outputs, those of the sample first."""

    near: Floats
    strata: Integers
    language: Integers


@dataclass(frozen=True)
class InLanguages(Made):
    """Every other cluster is in German."""

    def of(self, name: str) -> list[Candidate]:
        """As a study's own."""
        return [replace(one, stratum=(_language(one.pair), *STRATUM[1:])) for one in super().of(name)]


def _cluster(pair: Pair) -> int:
    return int(pair.original.split("word")[0].removeprefix("cluster"))


def _language(pair: Pair) -> str:
    return ("en", "de")[_cluster(pair) % 2]


def drawn(study: Study, clusters: list[int], way: Way, draw: np.random.Generator) -> Drawn:
    """Sample and pool by the functions that draw a study's own, wave after wave."""
    sample: list[Pair] = []
    order = draw.permutation(sum(clusters)).tolist()
    kind = InLanguages if way.language.any() else Made
    for look in way.looks:
        plain = made(study, clusters, pairs=look)
        source = kind(plain.study, plain.pairs, order)
        sample += PoolDrawing(source, ["paraphrasing"], sample).sample()
    judged = [one for one in _drawn(source, ["paraphrasing"], sample)["paraphrasing"] if one[1] != UNDRAWN]
    language = np.array([int(way.language.any()) * (_cluster(pair) % 2) for pair, _ in judged])
    n, places = len(way.who), np.arange(len(judged))
    if way.language.any():  # in turn, as raters are dealt out
        places[:n] = np.stack([np.flatnonzero(language[:n] == one) for one in (0, 1)], axis=1).ravel()
    near = np.array([float(clusters[_cluster(pair)] > 1) for pair, _ in judged])
    strata = pd.factorize(np.array([stratum for _, stratum in judged], dtype=object)[places])[0]
    return Drawn(near[places], strata.astype(np.int64), language[places])


def pool_quality(of: Drawn, way: Way, share: float, gap: float, draw: np.random.Generator) -> Floats:
    """The quality of the outputs beyond the sample, made as `by_quality` makes that of the sample."""
    n = len(way.who)
    shift = LANGUAGES_APART * (of.language[n:] - 0.5) * float(way.language.any())
    found: Floats = 3.0 + shift + gap * (of.near[n:] - share) + draw.normal(0, SPREAD, len(of.near) - n)
    return found


def says(quality: Floats, of: Drawn, noise: float, draw: np.random.Generator) -> Floats:
    """A judge's scores: too kind to near-duplicates and to the second language."""
    return np.clip(quality + 0.4 * of.near + 0.3 * of.language + draw.normal(0, noise, len(quality)), 1, 5)


@dataclass(frozen=True)
class Wrongly:
    """Shares of campaigns accepted at a threshold that is the true mean, at any look, and Pearson's r of the judge."""

    people: float
    both: float
    rho: float


def at_the_threshold(
    way: Way, draws: list[Drawn], gap: float, number: int, *, raters: bool, noise: float = 0.35
) -> Wrongly:
    """Accepted by people alone, and by people and judge."""
    draw, n = np.random.default_rng(3), len(way.who)
    near = np.array([draws[row % len(draws)].near[:n] for row in range(number)])
    found = by_quality(way, number, draw, near=near, gap=gap)
    decided, rho = np.zeros((number, 2), np.bool_), []
    for row in range(number):
        of = draws[row % len(draws)]
        quality = np.concatenate([found.quality[row], pool_quality(of, way, float(near.mean()), gap, draw)])
        scores = says(quality, of, noise, draw)
        for look in way.looks:
            both, *judged = with_judge(found, row, look, scores, of.strata, raters=raters)
            truth = np.broadcast_to(found.truth(look, raters=raters), number)[row]
            decided[row] |= accepted(both, *judged, float(truth))
        rho.append(both.rho)
    return Wrongly(*(float(one) for one in decided.mean(axis=0)), float(np.mean(rho)))


@dataclass(frozen=True)
class Holding:
    """Shares of campaigns whose interval over pairs and raters holds the mean; the mean slope of the judge."""

    people: float
    both: float
    pairs_alone: float  #: by an interval over pairs, of people alone
    slope: float


def holding(way: Way, slope: float, number: int) -> Holding:
    """With a judge that says the same of everything (slope 0), or that follows quality by as much."""
    draw, n = np.random.default_rng(4), len(way.who)
    found = by_quality(way, number, draw)
    language = np.concatenate([way.language, np.repeat(way.language, BESIDE)])
    of, held_by = Drawn(np.zeros(len(language)), language, language), np.zeros((number, 2), np.bool_)
    slopes, truth = [], found.by_all[n]
    for row in range(number):
        scores = np.full(len(language), 4.0)
        if slope:
            quality = np.concatenate([found.quality[row], pool_quality(of, way, 0.0, 0.0, draw)])
            scores = quality + draw.normal(0, SPREAD * np.sqrt(1 / slope - 1), len(quality))
        both, *_ = with_judge(found, row, n, scores, language, raters=True)
        held_by[row] = [bool(one.low <= truth <= one.high) for one in (both.people, both.mean)]
        slopes.append(both.slope)
    alone = held(fieldwork.interval(found, n, raters=False), truth)
    return Holding(*(float(one) for one in held_by.mean(axis=0)), alone, float(np.mean(slopes)))


SLOPES = (0.0, 0.3, 0.6)
PEOPLES = (fieldwork.even, fieldwork.uneven, fieldwork.queues, fieldwork.waves, fieldwork.languages)


def drawings(study: Study, way: Way, mix: str) -> list[Drawn]:
    """Samples and pools with such near-duplicates."""
    draw = np.random.default_rng(5)
    return [drawn(study, MIXES[mix], way, draw) for _ in range(DRAWS)]


def worse_sign(way: Way, draws: list[Drawn], number: int, *, raters: bool) -> Wrongly:
    """With near-duplicates that are better, or worse: the sign by which people and judge accept more."""
    each = (at_the_threshold(way, draws, gap, number, raters=raters) for gap in (GAP, -GAP))
    return max(each, key=lambda one: one.both)


def main(study: Study) -> None:
    """Print what the tables of docs/judges_simulated.md have."""
    for make in PEOPLES:
        for slope in SLOPES:
            print(make.__name__, slope, [holding(make(n), slope, 1000) for n in (30, 100)], flush=True)
    for make in PEOPLES:
        for mix in MIXES:
            draws = drawings(study, make(100), mix)
            found = [worse_sign(make(100), draws, 1000, raters=raters) for raters in (False, True)]
            print(make.__name__, mix, found, flush=True)


if __name__ == "__main__":
    main(load_study(Path("studies/demo.yaml"), Path("exports")))
