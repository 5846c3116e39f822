"""Estimates with their 95% intervals: one bootstrap (percentile and BCa) and one jackknife for every statistic.

Each result has its own random numbers, which do not depend on other results. Of means over pairs, and over pairs and
raters, the intervals are Student's t: their last axis is that of pairs (or raters), axes before it are campaigns, so
that planning and tests run the same code as verdicts; undefined results are NaN. Verdicts over pairs alone are by
`plumbline.statistics.group_sequential`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from plumbline.identity import identity
from plumbline.importing import scipy
from plumbline.records import Number, Record

AT_ONCE = 2**22  # most numbers in memory at a time


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator of one result.

    Args:
        seed: the study's seed.
        names: what the result shows; other names have other numbers.

    Returns:
        A generator that starts anew at each call.

    >>> from plumbline.statistics.estimates import stream
    >>> bool(stream(1337, "tau").integers(100) == stream(1337, "tau").integers(100))
    True
    """
    return np.random.default_rng([seed, int(identity(*names), 16)])


def draw_indices(
    rng: np.random.Generator, n: int, n_resamples: int, at_once: int = AT_ONCE
) -> Iterator[NDArray[np.int64]]:
    """Yield resamples of n units as rows of indices, some rows at a time: all of 50,000 units take gigabytes.

    Args:
        rng: the generator; the numbers do not depend on `at_once`.
        n: the units; each is drawn with the same chance.
        n_resamples: the resamples.
        at_once: the numbers in memory at a time.

    Yields:
        Arrays of resamples by n, with numbers from 0 to n - 1.

    >>> import numpy as np
    >>> [rows.shape for rows in draw_indices(np.random.default_rng(1), 10, 5, at_once=30)]
    [(3, 10), (2, 10)]
    """
    rows = max(1, at_once // n)
    for start in range(0, n_resamples, rows):
        yield rng.integers(0, n, size=(min(rows, n_resamples - start), n))


def draw_counts(
    rng: np.random.Generator,
    n: int,
    n_resamples: int,
    shares: NDArray[np.float64] | None = None,
    at_once: int = AT_ONCE,
) -> Iterator[NDArray[np.int64]]:
    """Yield resamples of n units as rows of multinomial counts of each kind of unit, some rows at a time.

    Args:
        rng: the generator; the numbers do not depend on `at_once`.
        n: the units that are drawn.
        n_resamples: the resamples.
        shares: the chance of each kind of unit; without them there are n kinds, all with the same chance.
        at_once: the numbers in memory at a time.

    Yields:
        Arrays of resamples by kinds, each row with the sum n.

    >>> import numpy as np
    >>> [int(counts.sum()) for counts in draw_counts(np.random.default_rng(1), 10, 4)]
    [40]
    """
    shares = np.full(n, 1 / n) if shares is None else shares
    rows = max(1, at_once // len(shares))
    for start in range(0, n_resamples, rows):
        yield rng.multinomial(n, shares, size=min(rows, n_resamples - start))


Floats = NDArray[np.float64]
Statistic = Callable[[NDArray[Any]], Floats]  # maps draws (a row each) to values (one each)

CONFIDENCE = 0.95
RESAMPLES = 1000
# With fewer defined resamples the interval would describe a selection.
DEFINED_SHARE = 0.9
_TAIL = (1 - CONFIDENCE) / 2  # with more undefined resamples a whole tail of the interval could be missing
_EQUAL = 1e-12  # closer values differ only by rounding
_ENDLESS = (-math.inf, math.inf)
_FEWEST_RATERS = 1.5  # fewest effective raters from which to generalise to others
_LEAST = 1e-50  # of a tail; in smaller ones, below 1e-60, scipy's quantiles of t are infinite with the wrong sign
ALIKE = "the value is the same in all resamples, so its spread is unknown"
NOT_RESAMPLED = "not resampled: no decision rests on it"
SCARCE = "the ratings vary too little to be resampled"


class Estimate(Record):
    """A number with its 95% interval; what is undefined is NaN, null in a file."""

    value: Number = Field(description="the number")
    low: Number = Field(description="lower end of its 95% interval over pairs")
    high: Number = Field(description="upper end")
    n: int = Field(default=0, exclude=True, description="number of units; not written to files")
    reason: str = Field(default="", description="reason why the number or the interval is missing; empty if neither is")

    @classmethod
    def undefined(cls, reason: str, n: int = 0) -> Estimate:
        """Return an estimate without a number, and why.

        >>> Estimate.undefined("no ratings").reason
        'no ratings'
        """
        return cls(value=math.nan, low=math.nan, high=math.nan, n=n, reason=reason)

    @classmethod
    def alone(cls, value: float, reason: str, n: int = 0) -> Estimate:
        """Return a number without an interval, and why it has none.

        >>> print(Estimate.alone(0.5, "only one pair, so no interval").low)
        nan
        """
        return cls(value=value, low=math.nan, high=math.nan, n=n, reason=reason)


@dataclass(frozen=True)
class Value:
    """A number without an interval, from `n` units; NaN where `reason` says why."""

    value: float
    n: int
    reason: str


@dataclass(frozen=True)
class Bootstrap:
    """A statistic of `n` units, and its values in resamples of them; NaN where it is undefined."""

    value: float
    n: int
    distribution: Floats

    @property
    def defined(self) -> Floats:
        """The values of the resamples in which the statistic is defined."""
        return self.distribution[np.isfinite(self.distribution)]

    @property
    def standard_error(self) -> float:
        """The standard deviation over resamples (divisor B - 1); NaN where too few are defined.

        Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 6.
        """
        enough = max(2, DEFINED_SHARE * len(self.distribution))
        return float(self.defined.std(ddof=1)) if len(self.defined) >= enough else math.nan

    @property
    def p(self) -> float:
        """Two-sided p of the statistic being zero: (1 + #{|t_b - t| >= |t|}) / (1 + B), of B defined resamples.

        The sample itself counts as one, so that p is never 0.

        Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 16.4.
        """
        as_far = np.abs(self.defined - self.value) >= abs(self.value) - _EQUAL
        return float((1 + as_far.sum()) / (1 + len(self.defined)))

    def percentile(self, undefined: str = "no interval: undefined", ends: tuple[float, float] = _ENDLESS) -> Estimate:
        """Return the statistic with its 95% percentile interval over the defined resamples (2.5% and 97.5%).

        Args:
            undefined: begins the reason where the statistic, or more than a tenth of the resamples, is undefined.
            ends: the least and the most that the statistic can be.

        Returns:
            The estimate, whose ends are NaN where `reason` says why: where all resamples are equal, for one.

        Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 13.3.
        """
        defined, number = self.defined, len(self.distribution)
        if math.isnan(self.value) or len(defined) < DEFINED_SHARE * number:
            return Estimate.alone(self.value, f"{undefined} in {number - len(defined)} of {number} resamples", self.n)
        if np.ptp(defined) < _EQUAL:
            return Estimate.alone(self.value, ALIKE, self.n)
        low, high = percentiles(defined)
        return Estimate(value=self.value, low=max(ends[0], low), high=min(ends[1], high), n=self.n)


def expanded_tail(n: int) -> float:
    """Return the share of resamples beyond either end of a 95% percentile interval: below 2.5% for few units.

    Args:
        n: the units that are resampled.

    Returns:
        The share; 2.5% for one unit, of which there is no spread.

    Source: Hesterberg (2015), The American Statistician 69, 371-386.

    >>> round(expanded_tail(8), 4), round(expanded_tail(1000), 4)
    (0.0057, 0.0248)
    """
    if n < 2:
        return _TAIL
    return float(scipy.special.ndtr(math.sqrt(n / (n - 1)) * scipy.special.stdtrit(n - 1, _TAIL)))


def percentiles(values: Floats) -> tuple[float, float]:
    """Return the 2.5% and the 97.5% quantile of values, interpolated linearly.

    Args:
        values: at least one number, in any order; NaN makes both ends NaN.

    Returns:
        (low, high), between which 95% of the values lie.

    Raises:
        IndexError: there is no value.

    Source: Hyndman and Fan (1996), The American Statistician 50, 361-365, definition 7.

    >>> import numpy as np
    >>> percentiles(np.arange(41.0))
    (1.0, 39.0)
    """
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def bootstrap(statistic: Statistic, draws: Iterable[NDArray[Any]], *, value: float, n: int) -> Bootstrap:
    """Compute a statistic's values t_b = t(x_b) in resamples x_b of n units.

    Where no resample is undefined, the percentile interval over `draw_indices` is that of
    `scipy.stats.bootstrap(method="percentile")` with the same generator, but for rounding.

    Args:
        statistic: maps draws (resamples by units) to a value for each resample.
        draws: arrays of draws, some resamples at a time: indices of `draw_indices` (resamples by n), or how
            often each unit was drawn, of `draw_counts`.
        value: the statistic of the sample itself.
        n: the units of the sample.

    Returns:
        The resampled values, of which `percentile`, `standard_error` and `p` are made.

    Raises:
        ValueError: there is no draw.

    Source: Efron (1979), The Annals of Statistics 7, 1-26.

    >>> import numpy as np
    >>> from plumbline.statistics.estimates import draw_indices
    >>> values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> draws = draw_indices(np.random.default_rng(1), len(values), 1000)
    >>> mean = bootstrap(lambda rows: values[rows].mean(axis=1), draws, value=3.0, n=5).percentile()
    >>> mean.value, round(mean.low, 1), round(mean.high, 1)
    (3.0, 1.8, 4.2)
    """
    return Bootstrap(value, n, np.concatenate([statistic(rows) for rows in draws]))


def bca(
    statistic: Callable[[Floats], Floats],
    features: Floats,
    counts: NDArray[np.int64],
    rng: np.random.Generator | None,
    *,
    value: float = math.nan,
) -> Estimate:
    """Return a statistic of sums with its 95% bootstrap interval over units, bias-corrected and accelerated.

    With z_0 the normal quantile of the share of resamples below the statistic, and U_i = mean of t_(-j) less t_(-i) of
    the jackknife, the ends are the quantiles Phi(z_0 + (z_0 + z) / (1 - a (z_0 + z))) of the resamples, for z of 2.5%
    and 97.5% and a = sum U_i^3 / (6 (sum U_i^2)^1.5).

    Args:
        statistic: maps sums of units' features (rows by features) to a number for each row.
        features: kinds of units by features. Units with equal features are one row: to draw units with replacement is
            to draw how many of each kind there are from a multinomial distribution, so that 1,000 resamples of 100,000
            units cost no more than those of 100.
        counts: how many units are of each kind.
        rng: the generator; 1,000 multinomial draws are taken from it. None leaves the interval out.
        value: the number that the estimate shows; that of `statistic` where it is NaN.

    Returns:
        The estimate; without an interval where more than 2.5% of the resamples have no statistic, or none differs from
        another.

    Source: Efron (1987), Journal of the American Statistical Association 82, 171-185.

    >>> import numpy as np
    >>> wins = np.array([[0.0, 1.0], [1.0, 1.0]])  # 5 units without and 15 with
    >>> share = lambda sums: sums[:, 0] / sums[:, 1]
    >>> found = bca(share, wins, np.array([5, 15]), np.random.default_rng(1))
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (0.75, 0.51, 0.9)
    """
    n = int(counts.sum())
    total = counts @ features
    statistic_value = float(statistic(total[None])[0])
    if rng is None:
        return Estimate.alone(statistic_value if math.isnan(value) else value, NOT_RESAMPLED)
    draws = draw_counts(rng, n, RESAMPLES, counts / n, at_once=RESAMPLES * len(counts))
    defined = bootstrap(lambda drawn: statistic(drawn @ features), draws, value=statistic_value, n=n).distribution
    defined = defined[~np.isnan(defined)]
    left_out = statistic(total - features)  # the jackknife, a row for each kind of unit
    value = statistic_value if math.isnan(value) else value
    if len(defined) < (1 - _TAIL) * RESAMPLES or np.ptp(defined) < _EQUAL or np.isnan(left_out).any():
        return Estimate.alone(value, SCARCE)
    below = (np.mean(defined < statistic_value - _EQUAL) + np.mean(defined <= statistic_value + _EQUAL)) / 2
    bias = scipy.special.ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    pulls = counts @ left_out / n - left_out
    size = float(counts @ pulls**2)
    acceleration = float(counts @ pulls**3) / (6 * size**1.5) if size > 1e-24 else 0.0
    z = bias + scipy.special.ndtri([_TAIL, (1 + CONFIDENCE) / 2])
    low, high = np.quantile(defined, scipy.special.ndtr(bias + z / (1 - acceleration * z)))
    return Estimate(value=value, low=float(low), high=float(high), reason=SCARCE if math.isnan(low) else "")


def jackknife(value: float, left_out: Floats, *, ends: tuple[float, float] = _ENDLESS, n: int = 0) -> Estimate:
    """Return a statistic with its 95% t interval from its values with each unit left out.

    The error is sqrt((n - 1) / n sum (t_(-i) - mean t_(-i))^2), and the interval t -/+ t(0.975; n - 1) errors.

    Args:
        value: the statistic of all units.
        left_out: its n values, each without one unit.
        ends: the least and the most that the statistic can be: a t interval knows no ends.
        n: the units that the estimate names.

    Returns:
        The estimate.

    Source: Tukey (1958), The Annals of Mathematical Statistics 29, 614; Efron and Tibshirani (1993), An Introduction to
    the Bootstrap, chapter 11.

    >>> import numpy as np
    >>> values = np.array([1.0, 2.0, 3.0])
    >>> mean = jackknife(2.0, (values.sum() - values) / 2)  # of a mean it is Student's own interval
    >>> round(mean.low, 3), round(mean.high, 3)
    (-0.484, 4.484)
    """
    m = len(left_out)
    error = math.sqrt((m - 1) / m * float(((left_out - left_out.mean()) ** 2).sum()))
    if error < _EQUAL:
        return Estimate.alone(value, ALIKE, n)
    reach = float(scipy.special.stdtrit(m - 1, (1 + CONFIDENCE) / 2)) * error
    return Estimate(value=value, low=max(ends[0], value - reach), high=min(ends[1], value + reach), n=n)


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


def p_with_raters(reach: float, variances: tuple[float, float], freedoms: tuple[float, float]) -> float:
    """Return the p of two sides of a mean over pairs and raters: at most a level where its interval excludes 0.

    Both quantiles are those of the level, so p is not that of a t distribution with the degrees of freedom of the
    95% interval: below 5%, the quantiles of few raters grow faster.

    Args:
        reach: how many standard errors the mean is from 0.
        variances: over pairs, and over raters.
        freedoms: degrees of freedom of both.

    Returns:
        The level at which the interval ends at 0.

    Source: Cochran and Cox (1957), Experimental Designs, 2nd ed., section 4.14.

    >>> round(p_with_raters(4.303, (0.0, 1.0), (99.0, 2.0)), 3)
    0.05
    """
    pairs, raters = (variance / sum(variances) for variance in variances)

    def beyond(log_tail: float) -> float:
        of_pairs, of_raters = quantile(np.array(freedoms), math.exp(log_tail))
        return float(pairs * of_pairs + raters * of_raters) + abs(reach)

    least, most = math.log(_LEAST), math.log(0.5)
    return 2 * (_LEAST if beyond(least) > 0 else math.exp(scipy.optimize.brentq(beyond, least, most)))


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
