"""Student's t intervals of means over pairs, and over pairs and raters: pure functions of arrays.

The last axis is always that of pairs (or raters); axes before it are campaigns, so that planning and tests run the same
code as verdicts. Undefined results are NaN. Verdicts over pairs alone are by `plumbline.statistics.group_sequential`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from plumbline.importing import scipy
from plumbline.statistics.estimates import CONFIDENCE, Floats

_FEWEST_RATERS = 1.5  # fewest effective raters from which to generalise to others


@dataclass(frozen=True)
class Mean:
    """Means with standard errors, degrees of freedom and 95% t intervals."""

    value: Floats
    error: Floats
    freedom: Floats

    @property
    def low(self) -> Floats:
        """The lower end; NaN if it cannot be computed."""
        return self.value - quantile(self.freedom) * self.error

    @property
    def high(self) -> Floats:
        """The upper end."""
        return self.value + quantile(self.freedom) * self.error

    def at_least(self, threshold: float) -> Floats:
        """Return one minus the one-sided p-value, 0.975 where the lower end is at the threshold."""
        return np.asarray(scipy.special.stdtr(self.freedom, (self.value - threshold) / self.error))


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
    # the number of equally busy raters who would tell as much about others (Kish 1965)
    effective = rater_counts.sum(axis=-1) ** 2 / (rater_counts**2).sum(axis=-1)
    effective = np.where(effective < _FEWEST_RATERS, np.nan, effective)
    raters = _variance(rater_sums, rater_counts, effective)
    with np.errstate(invalid="ignore", divide="ignore"):
        both = (spread * quantile(pairs.freedom) + raters * quantile(effective - 1)) / (spread + raters)
        freedom = 1 / np.interp(both, *_quantiles())  # of the t distribution with this upper quantile
    return known(pairs.value, spread + raters, freedom)


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
    return np.asarray(scipy.special.stdtrit(freedom, sure))


@functools.cache
def _quantiles() -> tuple[Floats, Floats]:
    """Return (upper quantiles of t, 1 / their degrees of freedom): one is a smooth function of the other."""
    inverse = np.linspace(0, 1 / (_FEWEST_RATERS - 1), 4001)
    with np.errstate(divide="ignore"):
        return quantile(1 / inverse), inverse
