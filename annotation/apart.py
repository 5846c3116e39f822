"""How far apart two systems must be to be told apart, and the originals that it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotation.statistics.shared_blocks import LEAST
from annotation.variation import RatingVariation, Variation, is_two_points, latent_mean, rated, rated_mean
from plumbline.importing import scipy
from plumbline.statistics.estimates import Floats
from plumbline.statistics.group_sequential import ALPHA, levels

POWER = 0.8  #: share of campaigns that tell two systems apart
_MOST = 10_000  # originals that are tried
_INSIDE = 1e-3  # of the scale: how far within its ends the means lie
_STEP = 0.1  # of the ratings' deviation: by it their mean's slope is found
_AT_ONCE = 10_000_000  # ratings of a system that are simulated at a time


def least_difference(
    size: tuple[int, int], differences: int, assumed: RatingVariation, looks: Sequence[float] = (1.0,)
) -> float:
    """Return the difference between two systems' means, in points, that 80% of campaigns find; NaN for one pair.

    The paired t-test has the level that Holm's correction for so many differences begins with. The outputs of one
    original vary as different pairs do, which errs to the safe side; a rater's habits cancel. The ends of the scale
    are left out: near them ratings vary less.

    Args:
        size: pairs of each system, and raters of each pair.
        differences: how many Holm's correction is for.
        assumed: the variation of ratings.
        looks: shares of the pairs after which the campaign looks; the difference is one that the last look finds.

    Returns:
        The difference.

    Source: power of the t-test by the noncentral t distribution: Cohen (1988), Statistical Power Analysis, chapter 2.

    >>> round(least_difference((100, 3), 1, RatingVariation()), 2)
    0.41
    """
    pairs, raters = size
    level = float(levels(looks, "pocock", ALPHA / differences)[-1])
    if pairs < LEAST:
        return math.nan
    error = math.sqrt(2 * (assumed.spread**2 + assumed.noise**2 / raters) / pairs)
    limit = scipy.special.stdtrit(pairs - 1, 1 - level)
    return float(scipy.special.nctdtrinc(pairs - 1, 1 - POWER, limit)) * error


def originals_needed(  # noqa: PLR0913
    apart: float,
    raters: int,
    differences: int,
    variation: Variation,
    scale: Sequence[float],
    generator: np.random.Generator,
    *,
    looks: Sequence[float] = (1.0,),
    campaigns: int = 1000,
) -> tuple[float, float]:
    """Return how many originals tell two systems apart in 80% of simulated campaigns: at least, and at most.

    Both are rated by the same raters; their means lie around the middle of the scale, where ratings vary most, shares
    around the variation's. The paired t-test has the level that Holm's correction for so many differences begins with.

    Args:
        apart: the difference of the systems' means, in points.
        raters: of each output.
        differences: how many Holm's correction is for.
        variation: of the ratings; the numbers are those for the least and the most that its systems differ by. With a
            leaning the raters are a sample too.
        scale: of the question.
        generator: of random numbers.
        looks: shares of the originals after which the campaign looks, the last of them 1.
        campaigns: how many are simulated.

    Returns:
        Two numbers; NaN where 10,000 originals do not do, or the scale is no wider than the difference.

    >>> import numpy as np
    >>> from annotation.variation import RatingVariation
    >>> given = Variation(RatingVariation(), "as given", (1.0, 1.0))
    >>> originals_needed(0.41, 3, 1, given, (1, 2, 3, 4, 5), np.random.default_rng(1))
    (80.0, 80.0)
    """
    length, assumed = scale[-1] - scale[0], variation.deviations
    level = levels(looks, "pocock", ALPHA / differences)
    if apart >= length or not _found_by_raters(apart, raters, variation.leaning, level[-1]):
        return math.nan, math.nan
    middle = (scale[0] + scale[-1]) / 2 if variation.mean is None else variation.mean
    room = apart / 2 + _INSIDE * length
    middle = min(max(middle, scale[0] + room), scale[-1] - room) if room < length / 2 else (scale[0] + scale[-1]) / 2
    originals, means = dict[float, float](), (middle, apart, variation.leaning)
    for share in dict.fromkeys(variation.apart):
        n, of_answers = LEAST, assumed.as_rated(scale, middle) if is_two_points(scale) else assumed
        error = 2 * (share * of_answers.spread**2 + of_answers.noise**2 / raters)
        error = max(error, apart * (length - apart))  # of systems that differ by all of the scale or by nothing
        while n <= _MOST and not _found_by_formula(n, apart, error, level[-1]):
            n = math.ceil(n * 1.05)
        curve = np.zeros(1)
        for most in _sizes(n, over_raters=not math.isnan(variation.leaning)):
            size = max(min(campaigns, _AT_ONCE // (most * raters)), 100), most, raters
            curve = _told_apart(means, size, share, assumed, scale, generator, looks, level)
            if curve[-1] >= POWER:
                break
        enough, short = np.flatnonzero(curve >= POWER), np.flatnonzero(curve < POWER)  # around it chance decides
        originals[share] = float(math.ceil((enough[0] + short[-1] + 1) / 2)) if curve[-1] >= POWER else math.nan
    low, high = (originals[share] for share in variation.apart)
    return low, high


def _sizes(n: int, *, over_raters: bool) -> list[int]:
    """Return the numbers of originals to simulate, until one is enough: raters take more than the formula says."""
    sizes = [min(math.ceil(n * 1.5) + 30, _MOST)] if n <= _MOST else []
    while over_raters and sizes and sizes[-1] < _MOST:
        sizes.append(min(2 * sizes[-1], _MOST))
    return sizes


def _found_by_formula(n: int, apart: float, variance: float, level: float) -> bool:
    """Return whether 80% of t-tests of n differences find it, were all normal."""
    limit, drift = scipy.special.stdtrit(n - 1, 1 - level), apart / math.sqrt(variance / n)
    return bool(1 - scipy.special.nctdtr(n - 1, drift, limit) >= POWER)


def _found_by_raters(apart: float, raters: int, leaning: float, level: float) -> bool:
    """Return whether 80% of tests find it in any number of originals, however many."""
    if math.isnan(leaning) or raters < 2 or not leaning:
        return math.isnan(leaning) or raters > 1
    limit, drift = scipy.special.stdtrit(raters - 1, 1 - level), apart * math.sqrt(raters) / leaning
    return bool(1 - scipy.special.nctdtr(raters - 1, drift, limit) >= POWER)


def _told_apart(  # noqa: PLR0913
    means: tuple[float, float, float],
    size: tuple[int, int, int],
    unlike: float,
    assumed: RatingVariation,
    scale: Sequence[float],
    generator: np.random.Generator,
    looks: Sequence[float],
    level: Floats,
) -> Floats:
    """Return the share of campaigns that tell the better system apart, by number of originals from 0 on.

    `means` is the mean of the two systems' means, their difference, and the deviation of raters in it (NaN where these
    are no sample); `size` is campaigns, originals and raters; `unlike` the share of the ratings' variance between pairs
    that the systems do not have in common.
    """
    campaigns, most, raters = size
    (middle, apart, leaning), spread = means, assumed.spread
    unlike = assumed.unlike_before_rating(unlike, scale, middle)
    shared = generator.normal(0, math.sqrt(1 - unlike) * spread, (campaigns, most, 1))
    shared = shared + generator.normal(0, assumed.bias, (campaigns, 1, raters))
    outputs, leans = list[Floats](), np.zeros((campaigns, 1, raters))
    if leaning > 0:
        centre, step = latent_mean(middle, assumed.total, scale), _STEP * assumed.total
        low, high = rated_mean(np.array([centre - step, centre + step]), assumed.total, scale)
        leans = generator.normal(0, leaning * 2 * step / float(high - low), leans.shape)
    for side in (0.5, -0.5):
        felt = shared + generator.normal(0, math.sqrt(unlike) * spread, (campaigns, most, 1))
        felt += latent_mean(middle + side * apart, assumed.total, scale)
        felt = felt + side * leans + generator.normal(0, assumed.noise, size)
        outputs.append(rated(felt, scale))
    of_raters = outputs[0] - outputs[1]
    differences = of_raters.mean(axis=2)
    n = np.arange(1, most + 1)
    mean = differences.cumsum(axis=1) / n
    squares = np.maximum((differences**2).cumsum(axis=1) - n * mean**2, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        over_pairs, over_raters = squares / (n * (n - 1)), np.zeros_like(mean)
        if not math.isnan(leaning):
            residuals = of_raters.cumsum(axis=1) / n[:, None] - mean[..., None]
            over_raters = (residuals**2).sum(axis=2) / (raters * (raters - 1))
        variance = over_pairs + over_raters
        raters_share = np.where(variance > 0, over_raters / variance, 0.0)
        t = mean / np.sqrt(variance)
    unequal = (np.abs(differences) > 1e-9).cumsum(axis=1)
    told_by: NDArray[np.bool_] = np.zeros((campaigns, most + 1), np.bool_)
    for share, of_look in zip(looks, level, strict=True):
        by_pairs, by_raters = (
            scipy.special.stdtrit(np.maximum(freedom, 1), 1 - of_look) for freedom in (n - 1, raters - 1)
        )
        tells = (
            (t >= by_pairs + (by_raters - by_pairs) * raters_share) & (unequal >= LEAST) & (2.0**-unequal <= of_look)
        )
        at = np.floor(share * np.arange(most + 1)).astype(int)
        told_by |= np.hstack([np.zeros((campaigns, 1), np.bool_), tells])[:, at]
    shares: Floats = told_by.mean(axis=0)
    return shares
