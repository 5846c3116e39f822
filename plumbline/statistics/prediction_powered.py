"""Make means of ratings more precise with a judge's scores: prediction-powered inference, pure functions of arrays.

People rate some outputs; a judge scores these and many more. The judge's score of an output is not trusted: it only
corrects the ratings for how far, by its scores, the rated outputs differ from their whole stratum. A judge that knows
nothing changes nothing, and a constant error of a judge has no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.estimates import (
    Floats,
    Mean,
    adding_raters,
    known,
    over_pairs,
    over_pairs_and_raters,
    spread_over_pairs,
)

Integers = NDArray[np.int64]
Formula = Literal["small_samples", "published"]

FEWEST_RATED = 30  # fewest rated pairs; with fewer, coverage is too low for skewed ratings
_SHARE = 0.75  # share of the slope that is used
_CAUTIOUS = 1.1  # factor on the variance, which omits part of the slope's own error


@dataclass(frozen=True)
class RatedPairs:
    """The rated pairs: sums and counts of ratings, the judge's scores, and strata (numbered from 0)."""

    sums: Floats
    counts: Floats
    scores: Floats
    strata: Integers


@dataclass(frozen=True)
class Pool:
    """Outputs of the same transformation that only the judge has scored."""

    scores: Floats
    strata: Integers


@dataclass(frozen=True)
class PoweredMean:
    """A mean of people and judge, beside people's own mean of the same pairs."""

    people: Mean
    mean: Mean
    slope: float  #: points of people's ratings for a point of the judge's; 0 where it says nothing
    rho: float  #: Pearson's r of the judge's scores with the pairs' mean ratings; NaN where one does not vary
    worth: float  #: number of rated pairs that alone would be as precise; NaN without variation


def powered(
    rated: RatedPairs, pool: Pool, raters: tuple[Floats, Floats] | None = None, formula: Formula = "small_samples"
) -> PoweredMean:
    """Return the mean rating of all outputs that the rated pairs represent, with its 95% interval (PPI++).

    With y the mean rating of a pair, f its score, in stratum h (n_h rated, N_h in the pool, share w_h of the ratings):

        theta = mean over rated pairs i of y_i - lam_i (f_i - f_pool,h),   lam_i = 0.75 b_i N_h / (n_h + N_h),
        b_i   = cov(y, f within strata; rated pairs but i) / var(f within strata, rated and pool)
        var   = 1.1 (var(y - lam_i (f - f_pool,h)) / n + sum_h w_h^2 lam_h^2 var(f within strata, pool) / N_h)

    A slope that comes of the pairs it corrects moves the mean: a judge that gives its top score to nearly everything
    made it 0.07 too high with 30 pairs. Each pair is corrected by the slope of the others, so that nothing moves the
    mean, whatever the judge; three quarters of that slope keep 94% of what a judge saves and half of the noise of a
    slope that is not worth having; a tenth more variance keeps the interval's errors to either side below 2.5% with
    judges that are made to break it (simulations: docs/method/judges.md). `published` is that of Angelopoulos, Duchi
    and Zrnic (2023, arXiv:2311.01453): the whole slope of all pairs, the normal quantile, divisors n, no tenth; it is
    the regression estimator of survey sampling (Cochran, Sampling Techniques, 3rd ed., chapter 7). In strata: Fisch et
    al. 2024, arXiv:2406.04291, with one b. Strata have the shares that they have among the ratings, whatever they have
    in the pool; one that the pool lacks is people's alone. The first variance leaves what lies between strata in, as
    people's own interval does: no interval is narrower for the strata alone. With b = 0 the result is people's own
    mean.

    `small_samples` takes Student's t with n - 2 degrees of freedom and divides by n - 3, as for a regression estimator
    (Cochran, chapter 7). `raters` are (sums, counts) of each rater's ratings: then the interval is over raters too,
    whose variance stays what it is (`estimates.over_pairs_and_raters`).

    Scores are finite: `filled` puts something neutral where a judge failed.

    Args:
        rated: the pairs that people rated, with the judge's scores.
        pool: the judge's scores of further outputs.
        raters: (sums, counts) of each rater's ratings, where raters are a sample too.
        formula: that for small samples, or the published one.

    Returns:
        The mean beside people's own.

    Source: Angelopoulos, Duchi and Zrnic (2023), arXiv:2311.01453; Fisch et al. (2024), arXiv:2406.04291.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> scores, counts = rng.random(130), np.full(30, 2.0)
    >>> rated = RatedPairs(2 * (scores[:30] + rng.normal(0, 0.1, 30)), counts, scores[:30], np.zeros(30, np.int64))
    >>> pool = Pool(scores[30:], np.zeros(100, np.int64))
    >>> found = powered(rated, pool)
    >>> bool(found.mean.error < found.people.error), found.worth > 30
    (True, True)
    """
    people = over_pairs(rated.sums, rated.counts)
    people_mean = over_pairs_and_raters(rated.sums, rated.counts, *raters) if raters else people
    n, published = len(rated.counts), formula == "published"
    slope, without = _slopes(rated, pool)
    variance = float(spread_over_pairs(rated.sums, rated.counts))
    ratings = rated.sums / rated.counts
    varies = n > 2 and np.ptp(ratings) >= 1e-12 and np.ptp(rated.scores) >= 1e-12
    rho = float(np.corrcoef(ratings, rated.scores)[0, 1]) if varies else math.nan
    if slope == 0 or n < 4:
        return PoweredMean(people_mean, people_mean, 0.0, rho, float(n) if variance > 0 else math.nan)
    strata = max(rated.strata.max(), pool.strata.max(initial=0)) + 1
    here, pool_n = (np.bincount(sample.strata, minlength=strata) for sample in (rated, pool))
    share = (1.0 if published else _SHARE) * pool_n / np.maximum(here + pool_n, 1)
    means = np.bincount(pool.strata, pool.scores, minlength=strata) / np.maximum(pool_n, 1)
    lam = share[rated.strata] * (slope if published else without)
    adjusted = rated.sums - rated.counts * (lam * (rated.scores - means[rated.strata]))
    within = float(((pool.scores - means[pool.strata]) ** 2).sum())
    within /= max(len(pool.scores) - (0 if published else int((pool_n > 0).sum())), 1)
    of_ratings = np.bincount(rated.strata, rated.counts, minlength=strata) / rated.counts.sum()
    of_pool = within * float((of_ratings**2 * (slope * share) ** 2 / np.maximum(pool_n, 1)).sum())
    of_rated = float(spread_over_pairs(adjusted, rated.counts)) * (n - 1) / (n if published else n - 3)
    value = over_pairs(adjusted, rated.counts).value
    spread = (of_rated + of_pool) * (1 if published else _CAUTIOUS)
    powered_mean = known(value, np.array(spread), np.array(math.inf if published else n - 2.0))
    if raters:
        powered_mean = adding_raters(powered_mean, np.array(spread), *raters)
    worth = n * variance / spread if spread > 0 else math.nan
    return PoweredMean(people_mean, powered_mean, slope, rho, worth)


def _slopes(rated: RatedPairs, pool: Pool) -> tuple[float, Floats]:
    """Return (the slope b of all rated pairs, b_i without each pair)."""
    scores = np.concatenate([rated.scores, pool.scores])
    strata = np.concatenate([rated.strata, pool.strata])
    means = np.bincount(strata, scores) / np.maximum(np.bincount(strata), 1)
    away, n = scores - means[strata], len(rated.scores)
    variance = float((away**2).sum()) / max(len(scores) - 1, 1)
    if not len(pool.scores) or variance < 1e-12 or n < 2:
        return 0.0, np.zeros(n)
    weights = (rated.counts / rated.counts.mean()) ** 2 * away[:n]
    products = weights * rated.sums / rated.counts
    total, counts = rated.sums.sum(), rated.counts.sum()
    slope = float(products.sum() - total / counts * weights.sum()) / n
    mean_without = (total - rated.sums) / (counts - rated.counts)  # people's mean with each pair left out
    without = (products.sum() - products - mean_without * (weights.sum() - weights)) / (n - 1)
    return slope / variance, without / variance


def unlike(rated: RatedPairs, pool: Pool) -> float:
    """Return how many standard errors the judge's scores of rated outputs differ from the pool's, within strata.

    If the rated outputs are a random part, only chance makes a difference. NaN without variation or without a pool.

    Args:
        rated: the pairs that people rated.
        pool: the further outputs.

    Returns:
        The number of standard errors.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> scores, counts = rng.random(130), np.full(30, 2.0)
    >>> rated = RatedPairs(2 * (scores[:30] + rng.normal(0, 0.1, 30)), counts, scores[:30], np.zeros(30, np.int64))
    >>> pool = Pool(scores[30:], np.zeros(100, np.int64))
    >>> abs(unlike(rated, pool)) < 3
    True
    """
    strata = int(max(rated.strata.max(), pool.strata.max(initial=0))) + 1
    number = np.bincount(pool.strata, minlength=strata)
    means = np.bincount(pool.strata, pool.scores, minlength=strata) / np.maximum(number, 1)
    pooled = number[rated.strata] > 0
    away = (rated.scores - means[rated.strata])[pooled]
    shares = np.bincount(rated.strata[pooled], minlength=strata) / max(len(away), 1)
    within = float(((pool.scores - means[pool.strata]) ** 2).sum()) / max(len(pool.scores) - int((number > 0).sum()), 1)
    if within < 1e-12 or not len(away):
        return math.nan
    return float(away.mean() / math.sqrt(within * (1 / len(away) + float((shares**2 / np.maximum(number, 1)).sum()))))


def filled(rated: RatedPairs, pool: Pool) -> tuple[RatedPairs, Pool]:
    """Fill missing judge scores (NaN) with a neutral one: the mean of the others of the stratum.

    Left out, such outputs would bias the mean where they are worse or better than others. With a score that says
    nothing of them, their ratings count as they are.

    Args:
        rated: the pairs that people rated.
        pool: the further outputs.

    Returns:
        Both without NaN.

    >>> import numpy as np
    >>> zero = np.zeros(2, np.int64)
    >>> rated = RatedPairs(np.ones(2), np.ones(2), np.array([1.0, np.nan]), zero)
    >>> rated, pool = filled(rated, Pool(np.array([3.0, 2.0]), zero))
    >>> rated.scores.tolist()
    [1.0, 2.0]
    """
    scores = np.concatenate([rated.scores, pool.scores])
    strata = np.concatenate([rated.strata, pool.strata])
    scored = ~np.isnan(scores)
    if scored.all():
        return rated, pool
    overall = float(scores[scored].mean()) if scored.any() else 0.0
    number = np.bincount(strata[scored], minlength=int(strata.max()) + 1)
    sums = np.bincount(strata[scored], scores[scored], minlength=len(number))
    means = np.where(number > 0, sums / np.maximum(number, 1), overall)
    scores = np.where(scored, scores, means[strata])
    n = len(rated.scores)
    return RatedPairs(rated.sums, rated.counts, scores[:n], rated.strata), Pool(scores[n:], pool.strata)
