"""Made-up ratings as campaigns bring them: waves, languages, queue after queue, raters who do uneven parts.

Who rates what is fixed beforehand; raters differ by offsets that are drawn anew for each campaign. Means and intervals
are those of the functions that judge real ratings.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.variation import rated_mean
from plumbline.statistics.estimates import Floats, Mean, over_pairs, over_pairs_and_raters
from plumbline.statistics.group_sequential import ALPHA, p_above

Integers = NDArray[np.int64]
SCALE, ENDS = (1, 2, 3, 4, 5), (1.0, 5.0)
SPREAD, NOISE, OFFSETS = 0.8, 0.9, 0.4  # of pairs, of single ratings and of raters, in points
LANGUAGES_APART, WAVES_APART = 0.6, 0.3


@dataclass(frozen=True)
class Way:
    """Who rates what: pairs by ratings, numbers of raters, -1 where there is none; verdicts at each of the `looks`."""

    who: Integers
    language: Integers
    looks: tuple[int, ...]  #: the pairs that are rated when somebody looks
    kinder: Floats  #: by rater, in every campaign

    @property
    def there(self) -> NDArray[np.bool_]:
        return self.who >= 0


def _way(who: Integers, language: Integers | None = None, looks: tuple[int, ...] = ()) -> Way:
    n = len(who)
    none = np.zeros(n, np.int64)
    return Way(who, none if language is None else language, (*looks, n), np.zeros(int(who.max()) + 1))


def _teams(team: Integers) -> Integers:
    return 3 * team[:, None] + np.arange(3)


def even(n: int) -> Way:
    return _way(_teams(np.zeros(n, np.int64)))


def uneven(n: int) -> Way:
    """Two ratings a pair: one rater gives half of all, five others the rest."""
    return _way(np.stack([np.zeros(n, np.int64), 1 + np.arange(n) % 5], axis=1))


def queues(n: int) -> Way:
    """Five queues one after the other; each has three raters, one of whom also does the next. The last is half done."""
    queue = np.arange(n) * 5 // n
    who = 2 * queue[:, None] + np.arange(3)
    who[queue == 4, 1:] = -1
    return _way(who)


def waves(n: int) -> Way:
    """Three fifths by three raters, a look, then an extension by three others, who are less kind."""
    first = n * 3 // 5
    found = _way(_teams((np.arange(n) >= first).astype(np.int64)), looks=(first,))
    return Way(found.who, found.language, found.looks, np.repeat([WAVES_APART / 2, -WAVES_APART / 2], 3))


def languages(n: int) -> Way:
    """Two languages, each with three raters of its own."""
    language = np.arange(n) % 2
    return _way(_teams(language), language)


def two_or_three(n: int) -> Way:
    """Four raters in turn; every other pair has two ratings."""
    who = (np.arange(n)[:, None] + np.arange(3)) % 4
    who[1::2, 2] = -1
    return _way(who)


WAYS: tuple[Callable[[int], Way], ...] = (even, uneven, queues, waves, languages, two_or_three)


@dataclass(frozen=True)
class Campaigns:
    """Ratings of many campaigns (campaigns by pairs by ratings; 0 where there is none), and what is true."""

    way: Way
    ratings: Floats
    by_these: dict[int, Floats]  #: by look: the mean over pairs of what those who rated each would give it, by campaign
    by_all: dict[int, float]  #: the same of all raters, of whom these are a sample

    def truth(self, look: int, *, raters: bool) -> Floats | float:
        """The mean that an interval over pairs, or over pairs and raters, is to hold."""
        return self.by_all[look] if raters else self.by_these[look]

    def totals(self, look: int) -> tuple[Floats, Floats]:
        """(sums, numbers) of each pair's ratings."""
        counts = self.way.there[:look].sum(axis=1).astype(np.float64)
        return self.ratings[:, :look].sum(axis=-1), np.broadcast_to(counts, (len(self.ratings), look))

    def of_raters(self, look: int) -> tuple[Floats, Floats]:
        """The same of each rater's."""
        own = (self.way.who[:look, :, None] == np.arange(self.way.who.max() + 1)).astype(np.float64)
        own = own[..., own.any(axis=(0, 1))]
        counts = own.sum(axis=(0, 1))
        return np.einsum("cij,ijr->cr", self.ratings[:, :look], own), np.broadcast_to(
            counts, (len(self.ratings), len(counts))
        )


def by_t(found: Campaigns, look: int, *, raters: bool) -> Mean:
    """The t interval, over pairs or over raters too."""
    pairs = found.totals(look)
    return over_pairs_and_raters(*pairs, *found.of_raters(look)) if raters else over_pairs(*pairs)


def surely(found: Campaigns, look: int, *, raters: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a verdict's interval lies above the truth, and whether it lies below it."""
    sums, counts = found.totals(look)
    truth, t = np.asarray(found.truth(look, raters=raters)), by_t(found, look, raters=True)
    above = (p_above(sums / counts, truth, ENDS[0]) <= ALPHA) & (t.value >= truth)
    below = (p_above(-sums / counts, -truth, -ENDS[1]) <= ALPHA) & (t.value <= truth)
    return (above & (t.low > truth), below & (t.high < truth)) if raters else (above, below)


@functools.cache
def _curve(deviation: float) -> tuple[Floats, Floats]:
    latent = np.linspace(-2, 8, 501)
    return latent, np.array([rated_mean(float(one), deviation, SCALE) for one in latent])


def _expected(latent: Floats, deviation: float) -> Floats:
    return np.interp(latent, *_curve(deviation))


def by_quality(way: Way, number: int, draw: np.random.Generator) -> Campaigns:
    """Ratings of pairs of normal quality."""
    base = 3.0 + LANGUAGES_APART * (way.language - 0.5) * (way.language.max() > 0)
    quality = base + draw.normal(0, SPREAD, (number, len(way.who)))
    offsets = way.kinder + draw.normal(0, OFFSETS, (number, len(way.kinder)))
    ratings = np.clip(
        np.round(quality[..., None] + offsets[:, way.who] + draw.normal(0, NOISE, (number, *way.who.shape))), 1, 5
    )

    these = _expected(base[:, None] + offsets[:, way.who], float(np.hypot(SPREAD, NOISE)))
    of_all = float(np.sqrt(SPREAD**2 + NOISE**2 + OFFSETS**2))
    return _campaigns(way, ratings, these, _expected(base[:, None] + way.kinder[way.who], of_all))


def _campaigns(way: Way, ratings: Floats, these: Floats, everybody: Floats) -> Campaigns:
    """With `these` and `everybody` what each rating is on average."""
    share = way.there / way.there.sum(axis=1, keepdims=True)  # of a pair's mean
    by_these = {look: (these[:, :look] * share[:look]).sum(axis=(1, 2)) / look for look in way.looks}
    by_all = {look: float(everybody[:look][way.there[:look]].mean()) for look in way.looks}
    return Campaigns(way, np.where(way.there, ratings, 0.0), by_these, by_all)


def nearly_alike(way: Way, number: int, draw: np.random.Generator, bad: float, *, varied: bool) -> Campaigns:
    """Everything is a 5 but for a share of `bad` pairs, which are a 1; of two languages all in the second.

    `varied`: raters overlook a fifth of the bad ones, and give a 4 to up to a tenth of the others, each to a share of
    its own.
    """
    n = len(way.who)
    shares = 2 * bad * way.language if way.language.max() > 0 else np.full(n, bad)
    fours = draw.uniform(0, 0.1 * varied, (number, len(way.kinder)))
    is_bad = draw.random((number, n, 1)) < shares[:, None]
    seen = is_bad & (draw.random((number, *way.who.shape)) >= 0.2 * varied)
    four = draw.random(seen.shape) < fours[:, way.who]
    ratings = np.where(seen, 1.0, np.where(four & ~is_bad, 4.0, 5.0))

    def expected(fours: Floats) -> Floats:
        found: Floats = 5 - 4 * (1 - 0.2 * varied) * shares[:, None] - (1 - shares[:, None]) * fours
        return found

    these, everybody = expected(fours[:, way.who]), expected(np.full(way.who.shape, 0.05 * varied))
    return _campaigns(way, ratings, these, everybody)


def wrongly_above(found: Campaigns, *, raters: bool, t_alone: bool = False) -> float:
    """The share of campaigns in which a lower end is above the true mean at any look."""
    above = np.zeros(len(found.ratings), np.bool_)
    for look in found.way.looks:
        if t_alone:
            above |= by_t(found, look, raters=raters).low > found.truth(look, raters=raters) + 1e-9
        else:
            above |= surely(found, look, raters=raters)[0]
    return float(above.mean())


BAD = (0.01, 0.02, 0.05)
THRESHOLDS = (3.0, 4.0, 4.5)


def rare(
    way: Way, number: int, *, varied: bool, raters: bool, shares: tuple[float, ...] = BAD, t_alone: bool = False
) -> float:
    draw = np.random.default_rng(1)
    made = (nearly_alike(way, number, draw, bad, varied=varied) for bad in shares)
    return max(wrongly_above(one, raters=raters, t_alone=t_alone) for one in made)


FIVES = {5.0: 1.0}
#: Shares of the ratings of good pairs with which a t interval erred most at each threshold.
WORST = {3.0: {3.0: 0.5, 4.0: 0.5}, 4.0: {4.0: 0.5, 5.0: 0.5}, 4.5: {4.0: 0.4, 5.0: 0.6}}


def just_missed(
    way: Way, number: int, threshold: float, *, raters: bool, good: Mapping[float, float] = FIVES, t_alone: bool = False
) -> float:
    """The share of campaigns whose lower end is above a mean that is this one, with bad pairs of 1 and good ones."""
    draw, points = np.random.default_rng(2), np.array([*good])
    mean = float(points @ np.array([*good.values()]))
    bad = (mean - threshold) / (mean - 1)
    shares = 2 * bad * way.language if way.language.max() > 0 else np.full(len(way.who), bad)
    is_bad = draw.random((number, len(way.who), 1)) < shares[:, None]
    ratings = np.where(is_bad, 1.0, draw.choice(points, size=(number, *way.who.shape), p=[*good.values()]))
    truth = np.broadcast_to(mean - (mean - 1) * shares[:, None], way.who.shape)
    found = _campaigns(way, ratings, np.broadcast_to(truth, ratings.shape), truth)
    return wrongly_above(found, raters=raters, t_alone=t_alone)


def of_the_worse_language(number: int, *, varied: bool, raters: bool, t_alone: bool = False) -> float:
    """The same of a verdict of 20 pairs in the language that has all the bad ones of two."""
    shares = tuple(2 * bad for bad in BAD)
    return rare(even(20), number, varied=varied, raters=raters, shares=shares, t_alone=t_alone)


def rows() -> Iterator[str]:
    """A row of the table in docs/decisions/0005-verdicts.md for each way and interval."""
    number = 20_000
    for raters in (False, True):
        worse = [of_the_worse_language(number, varied=varied, raters=raters) for varied in (False, True)]
        by_t = [of_the_worse_language(number, varied=varied, raters=raters, t_alone=True) for varied in (False, True)]
        yield " | ".join(["20 of a language", str(raters), *(f"{cell:.1%}" for cell in (*worse, *by_t))])
    for make in WAYS:
        for raters in (False, True):
            ways = [(make(n), varied) for varied in (False, True) for n in (20, 50, 100)]
            cells = [rare(way, number, varied=varied, raters=raters) for way, varied in ways]
            cells += [rare(way, number, varied=varied, raters=raters, t_alone=True) for way, varied in ways]
            for good in (dict.fromkeys(THRESHOLDS, FIVES), WORST):
                cells += [
                    just_missed(make(n), number, at, raters=raters, good=good[at])
                    for at in THRESHOLDS
                    for n in (20, 100)
                ]
            kind = "pairs and raters" if raters else "pairs"
            yield " | ".join([make.__name__, kind, *(f"{cell:.1%}" for cell in cells)])


if __name__ == "__main__":
    for line in rows():
        print(line, flush=True)
