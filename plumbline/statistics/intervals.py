"""Intervals of means and of agreement: pure functions of arrays, one campaign or thousands at a time.

The last axis is always that of pairs (or raters, or features); axes before it are campaigns, so that planning and tests
run the same code as verdicts. Undefined results are NaN.

The module is long so that every interval of a verdict is in one place and can be compared.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.estimates import CONFIDENCE, Floats

_FEWEST_RATERS = 1.5  # fewest effective raters from which to generalise to others


@dataclass(frozen=True)
class Mean:
    """Means with standard errors, degrees of freedom and 95% t intervals, wider where `bounded` says so."""

    value: Floats
    error: Floats
    freedom: Floats
    units: Floats | float = math.nan  #: pairs (or raters) for the bound on unseen values; NaN: t interval alone
    scale: tuple[float, float] = (-math.inf, math.inf)

    @property
    def low(self) -> Floats:
        """The lower end; NaN if it cannot be computed."""
        return self.ends((1 + CONFIDENCE) / 2)[0]

    @property
    def high(self) -> Floats:
        """The upper end."""
        return self.ends((1 + CONFIDENCE) / 2)[1]

    @property
    def is_bounded(self) -> NDArray[np.bool_]:
        """Whether an end is from the bound and not from the t interval."""
        reach, (low, high) = quantile(self.freedom) * self.error, self.ends((1 + CONFIDENCE) / 2)
        return ~np.isnan(low) & ~((low >= self.value - reach) & (high <= self.value + reach))

    def ends(self, sure: float) -> tuple[Floats, Floats]:
        """Return both ends of the interval of which each holds with this probability."""
        reach = quantile(self.freedom, sure) * self.error
        if np.isnan(self.units).all():
            return self.value - reach, self.value + reach
        unseen, (bottom, top) = 1 - (1 - sure) ** (1 / np.asarray(self.units)), self.scale
        low = np.fmin(self.value - reach, self.value - unseen * (self.value - bottom))
        return low, np.fmax(self.value + reach, self.value + unseen * (top - self.value))

    def at_least(self, threshold: float) -> Floats:
        """P(mean >= threshold): the share of the t distribution around the mean that lies there.

        This is the posterior of the normal model with flat priors on the mean and the logarithm of the error
        (Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.2), and one minus the one-sided p-value. Where the
        bound is wider it is that of the bound, so that P is 0.975 where the lower end is at the threshold; the bound
        makes a side less sure, down to 0.5, and never the other side the likelier one.
        """
        from scipy import special  # noqa: PLC0415 (importing `scipy.stats` takes half a second)

        probability = np.asarray(special.stdtr(self.freedom, (self.value - threshold) / self.error))
        if np.isnan(self.units).all() or math.isnan(threshold):
            return probability
        bottom, top = self.scale
        above = self.value >= threshold
        room = np.where(above, self.value - bottom, top - self.value)
        with np.errstate(invalid="ignore", divide="ignore"):
            missed = np.clip(1 - np.abs(self.value - threshold) / room, 0, 1) ** self.units
        most = 1.0 if threshold >= top else 0.5  # nothing lies beyond the end of the scale
        missed = np.where(self.value == threshold, most, np.minimum(missed, most))
        return np.where(above, np.fmin(probability, 1 - missed), np.fmax(probability, missed))


def bounded(
    mean: Mean, sums: Floats, counts: Floats, scale: tuple[float, float], raters: Floats | float = math.inf
) -> Mean:
    """Widen a mean's interval over pairs by what n pairs may have missed.

    If most pairs have the same mean (or all, so that there is no t interval), a t interval underestimates the few that
    differ: pairs at the end of the scale may be rare enough to be missed. A share q of pairs is missed by n of them
    with probability (1 - q)^n, so that with 97.5% no more than q = 1 - 0.025^(1/n) differ from what all showed; were
    all these at the end of the scale, the mean would be q of the way to it. That is exact where nothing varies (for
    shares the interval of Clopper and Pearson 1934, Biometrika 26, 404-413), and else the least that an interval
    reaches (simulations: docs/method/verdicts.md). n is the effective number of pairs; where nothing varies and raters
    are a sample too, at most their effective number, `raters` (NaN: too few). One pair has none.

    Args:
        mean: the mean with its t interval.
        sums: of each pair's ratings; campaigns by pairs.
        counts: how many ratings each pair has.
        scale: the smallest and largest possible rating.
        raters: their effective number, where they are a sample too.

    Returns:
        The mean, with `units` where most pairs have one and the same mean.

    Source: Clopper and Pearson (1934), Biometrika 26, 404-413.

    >>> import numpy as np
    >>> sums, counts = np.array([5.0, 5.0, 5.0, 5.0]), np.ones(4)
    >>> round(float(bounded(over_pairs(sums, counts), sums, counts, (1, 5)).low), 3)
    2.591
    """
    values = np.round(sums / counts, 9)
    n = values.shape[-1]
    middle = np.partition(values, n // 2, axis=-1)[..., n // 2]
    most = (2 * (values == middle[..., None]).sum(axis=-1) > n) & (n > 1)
    pairs = counts.sum(axis=-1) ** 2 / (counts**2).sum(axis=-1)
    units = np.where(np.isnan(mean.error), np.minimum(pairs, raters), pairs)
    return replace(mean, units=np.where(most, units, np.nan), scale=scale)


def effective_raters(counts: Floats) -> Floats:
    """Return the number of equally busy raters who would tell as much about other raters; NaN for too few.

    Args:
        counts: ratings of each rater; campaigns by raters.

    Returns:
        (sum of counts)^2 / sum of counts^2, a number for each campaign.

    Source: Kish (1965), Survey Sampling, section 8.2.

    >>> import numpy as np
    >>> float(effective_raters(np.array([30.0, 30.0, 30.0])))
    3.0
    """
    effective = counts.sum(axis=-1) ** 2 / (counts**2).sum(axis=-1)
    raters: Floats = np.where(effective < _FEWEST_RATERS, np.nan, effective)
    return raters


def over_pairs(sums: Floats, counts: Floats) -> Mean:
    """Return the mean over single ratings, with pairs as a sample and raters as fixed.

    `sums` and `counts` are those of each pair's ratings. Ratings of one pair hang together, so pairs and not ratings
    are the independent units: the mean is a ratio of sums to counts, its error that of a ratio estimator (Cochran,
    Sampling Techniques, 3rd ed., section 6.4); with equal counts this is the t interval of pair means.

    Args:
        sums: of each pair's ratings; campaigns by pairs.
        counts: how many ratings each pair has.

    Returns:
        The mean with its error and n - 1 degrees of freedom.

    Source: Cochran, Sampling Techniques, 3rd ed., section 6.4.

    >>> import numpy as np
    >>> mean = over_pairs(np.array([4.0, 6.0, 8.0]), np.array([2.0, 2.0, 2.0]))
    >>> float(mean.value), round(float(mean.low), 2), round(float(mean.high), 2)
    (3.0, 0.52, 5.48)
    """
    freedom = np.full(sums.shape[:-1], sums.shape[-1] - 1.0)
    return known(_mean(sums, counts), spread_over_pairs(sums, counts), freedom)


def over_pairs_and_raters(sums: Floats, counts: Floats, rater_sums: Floats, rater_counts: Floats) -> Mean:
    """Return the same mean, with raters too as a sample of those who could have rated.

    `rater_sums` and `rater_counts` are those of each rater's ratings. The variance is that over pairs plus that over
    raters, both as above; the noise of single ratings is in both and so counted twice, which errs to the
    safe side (taking it off again, and taking Satterthwaite's degrees of freedom, covered as little as 92%
    with three raters). The t quantiles of both are weighted by their variances (Cochran and Cox 1957, Experimental
    Designs, 2nd ed., section 4.14); the raters' has the degrees of freedom of their effective number, which uneven
    shares of the work make smaller. With three raters the interval is wide: they say little about all people.
    NaN below 1.5 effective raters.

    Args:
        sums: of each pair's ratings; campaigns by pairs.
        counts: how many ratings each pair has.
        rater_sums: of each rater's ratings; campaigns by raters.
        rater_counts: how many ratings each rater gave.

    Returns:
        The mean with its error and degrees of freedom.

    Source: Cochran and Cox (1957), Experimental Designs, 2nd ed., section 4.14.

    >>> import numpy as np
    >>> pairs, raters = (np.array([7.0, 9.0, 8.0]), np.full(3, 2.0)), (np.array([11.0, 13.0]), np.full(2, 3.0))
    >>> mean = over_pairs_and_raters(*pairs, *raters)
    >>> float(mean.value), bool(mean.low < over_pairs(*pairs).low)
    (4.0, True)
    """
    return adding_raters(over_pairs(sums, counts), spread_over_pairs(sums, counts), rater_sums, rater_counts)


def adding_raters(pairs: Mean, spread: Floats, rater_sums: Floats, rater_counts: Floats) -> Mean:
    """Return a mean over pairs, of variance `spread` over pairs, with raters as a sample too, as above.

    Args:
        pairs: the mean over pairs.
        spread: its variance over pairs.
        rater_sums: of each rater's ratings; campaigns by raters.
        rater_counts: how many ratings each rater gave.

    Returns:
        The mean with the larger error.

    >>> import numpy as np
    >>> pairs = np.array([3.0, 4.0, 5.0]), np.ones(3)
    >>> mean = adding_raters(over_pairs(*pairs), spread_over_pairs(*pairs), np.array([3.0, 9.0]), np.array([1.0, 2.0]))
    >>> bool(mean.error > over_pairs(*pairs).error)
    True
    """
    effective = effective_raters(rater_counts)
    raters = _variance(rater_sums, rater_counts, effective)
    with np.errstate(invalid="ignore", divide="ignore"):
        both = (spread * quantile(pairs.freedom) + raters * quantile(effective - 1)) / (spread + raters)
    return known(pairs.value, spread + raters, _freedom(both))


def wilson(share: Mean, pairs: int) -> tuple[Floats, Floats]:
    """Return 95% intervals of shares whose answers come in clusters: Wilson's, with an effective sample size.

    Wilson (1927), JASA 22, 209-212, with n = p (1 - p) / error^2, as many independent answers as would be as sure, and
    Student's quantile for the normal one: the modified Wilson interval of Franco et al. (2019), J. Survey Stat.
    Methodol. 7, 334-364. n is at most the number of `pairs`, as if each had one answer: where few pairs differ, the
    error knows too little of how alike their answers are (with all answers as the limit, a share of 95% was covered in
    92% of campaigns). NaN where there are no degrees of freedom.

    Args:
        share: the mean of noughts and ones, as `over_pairs` gives it.
        pairs: how many pairs it is of.

    Returns:
        (low, high) within 0 and 1.

    >>> import numpy as np
    >>> share = over_pairs(np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4))
    >>> [round(float(end), 2) for end in wilson(share, 4)]
    [0.13, 0.98]
    """
    p, n, t = share.value, _effective(share, pairs), quantile(share.freedom)
    middle, reach = p + t**2 / (2 * n), t * np.sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    scale = 1 + t**2 / n
    low, high = np.minimum(p, (middle - reach) / scale), np.maximum(p, (middle + reach) / scale)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def score_at_least(share: Mean, pairs: int, limit: float) -> Floats:
    """Return P(share >= limit): one minus the one-sided p-value of the score test that `wilson` inverts.

    0 < limit < 1. The error is that of the limit and not of the share: sqrt(limit (1 - limit) / n), with n as there.

    Args:
        share: the mean of noughts and ones.
        pairs: how many pairs it is of.
        limit: the share to reach, between 0 and 1.

    Returns:
        The probability, a number for each campaign.

    Source: Wilson (1927), JASA 22, 209-212.

    >>> import numpy as np
    >>> share = over_pairs(np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4))
    >>> round(float(score_at_least(share, 4, 0.5)), 2)
    0.77
    """
    from scipy import stats  # noqa: PLC0415 (takes half a second, which reading verdicts saves)

    error = np.sqrt(limit * (1 - limit) / _effective(share, pairs))
    return np.asarray(stats.t.cdf((share.value - limit) / error, share.freedom))


def _effective(share: Mean, pairs: int) -> Floats:
    """Return the number of independent answers of the same precision; at most one per pair."""
    p, error = share.value, share.error
    unknown = np.isnan(error) | (p <= 0) | (p >= 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        answers: Floats = np.where(unknown, float(pairs), np.minimum(p * (1 - p) / error**2, float(pairs)))
    return answers


def _mean(sums: Floats, counts: Floats) -> Floats:
    mean: Floats = sums.sum(axis=-1) / counts.sum(axis=-1)
    return mean


def _variance(sums: Floats, counts: Floats, units: Floats) -> Floats:
    """Return the variance of the mean of ratings that come in `units` independent clusters."""
    residuals = sums - _mean(sums, counts)[..., None] * counts
    with np.errstate(invalid="ignore", divide="ignore"):
        variance: Floats = units / (units - 1) * (residuals**2).sum(axis=-1) / counts.sum(axis=-1) ** 2
    return variance


def spread_over_pairs(sums: Floats, counts: Floats) -> Floats:
    """Return the variance of the mean over pairs.

    Args:
        sums: of each pair's ratings; campaigns by pairs.
        counts: how many ratings each pair has.

    Returns:
        A variance for each campaign.

    Source: Cochran, Sampling Techniques, 3rd ed., section 6.4.

    >>> import numpy as np
    >>> round(float(spread_over_pairs(np.array([3.0, 4.0, 5.0]), np.ones(3))), 4)
    0.3333
    """
    return _variance(sums, counts, np.full(sums.shape[:-1], float(sums.shape[-1])))


def known(mean: Floats, variance: Floats, freedom: Floats) -> Mean:
    """Set the error to NaN if the sample has no spread: the population may vary all the same.

    Args:
        mean: a number for each campaign.
        variance: of that mean.
        freedom: its degrees of freedom.

    Returns:
        The mean; its error is NaN if the variance is zero up to rounding.

    >>> import numpy as np
    >>> float(known(np.array(3.0), np.array(0.25), np.array(9.0)).error)
    0.5
    """
    tiny = 1e-9 * np.maximum(np.abs(mean), 1)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(variance)
        return Mean(mean, np.where(error > tiny, error, np.nan), freedom)


def quantile(freedom: Floats, sure: float = (1 + CONFIDENCE) / 2) -> Floats:
    """Return how many standard errors a Student t interval reaches to either side, by degrees of freedom.

    Args:
        freedom: degrees of freedom, of any shape; infinite for the normal distribution.
        sure: the probability below.

    Returns:
        Quantiles of the same shape.

    Source: Student (1908), Biometrika 6, 1-25.

    >>> import numpy as np
    >>> round(float(quantile(np.array(2.0))), 3)
    4.303
    """
    from scipy import special  # noqa: PLC0415 (importing `scipy.stats` takes half a second)

    return np.asarray(special.stdtrit(freedom, sure))


def _freedom(error_times: Floats) -> Floats:
    """Return the degrees of freedom whose t distribution has this upper quantile; infinite for the normal one."""
    with np.errstate(divide="ignore"):
        freedom: Floats = 1 / np.interp(error_times, *_quantiles())
    return freedom


@functools.cache
def _quantiles() -> tuple[Floats, Floats]:
    """Return (upper quantiles of t, 1 / their degrees of freedom): one is a smooth function of the other."""
    inverse = np.linspace(0, 1 / (_FEWEST_RATERS - 1), 4001)
    with np.errstate(divide="ignore"):
        return quantile(1 / inverse), inverse
