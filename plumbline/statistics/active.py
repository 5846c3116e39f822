"""Mean ratings when judges choose which outputs people rate (active inference); pure functions of arrays.

Outputs on which judges are unsure are drawn with higher, known probabilities; each rated output is weighted by the
inverse of its own. Neither a judge's score nor its doubt is trusted: a wrong doubt widens the interval but does not
bias the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plumbline.statistics.estimates import Floats
from plumbline.statistics.intervals import Mean, known
from plumbline.statistics.prediction_powered import CAUTIOUS, SHARE

UNIFORM = 0.3  #: share of the probability that ignores the doubt, so that no weight exceeds 3.4
_ROUNDING = 1e-9
_FEWEST = 8  # fewest rated outputs to learn from


@dataclass(frozen=True)
class ActiveMean:
    """A mean of people and judge over outputs drawn with known probabilities."""

    mean: Mean
    slope: float  #: points of people's ratings for a point of the judge's
    #: number of outputs that people alone, drawn evenly, would need for the same precision; NaN without variation
    worth: float


def sampling_probabilities(
    doubt: Floats, number: int, uniform: float = UNIFORM, undrawn: NDArray[np.bool_] | None = None
) -> Floats:
    """Return each output's probability of being drawn: in part by the judges' doubt, in part equal for all.

    pi_i = number (uniform / N + (1 - uniform) doubt_i / sum of doubts), cut at 1 and the rest spread over the others.

    Args:
        doubt: of each output how far off judges may be, such as the standard deviation of several judges' scores, or
            what `expected_error` makes of it; at least 0. Where all are equal, all outputs have the same probability.
        number: how many are drawn.
        uniform: share that does not follow the doubt, above 0 and at most 1.
        undrawn: which outputs are left to draw from, N of them; all without it. The others have the probability that
            they would have had, for `in_any_block`.

    Returns:
        Probabilities that sum to the number over what is left.

    Raises:
        ValueError: a doubt is negative or missing, the number exceeds the outputs left, or `uniform` is not above 0.

    Source: Zrnic and Candes (2024), Active Statistical Inference, ICML, section 4 (mixing with the uniform rule).

    >>> import numpy as np
    >>> sampling_probabilities(np.array([0.0, 1.0, 1.0, 2.0]), 2).tolist()
    [0.15, 0.5, 0.5, 0.85]
    """
    undrawn = np.ones(len(doubt), np.bool_) if undrawn is None else undrawn
    if not 0 < number <= undrawn.sum() or not 0 < uniform <= 1:
        raise ValueError(
            f"{number} of {undrawn.sum()} outputs cannot be drawn with uniform = {uniform}; draw fewer, or pass "
            "a share above 0"
        )
    if not (np.isfinite(doubt).all() and (doubt >= 0).all()):
        raise ValueError("a doubt must be a number of at least 0")
    total, even = doubt[undrawn].sum(), 1 / undrawn.sum()
    wanted = uniform * even + (1 - uniform) * (doubt / total if total > 0 else even)
    certain = np.zeros(len(doubt), np.bool_)
    while True:
        free = undrawn & ~certain
        rate = (number - certain.sum()) / wanted[free].sum() if free.any() else 0.0
        beyond = free & (wanted * rate > 1 + _ROUNDING)
        if not beyond.any():
            return np.where(certain, 1.0, np.minimum(wanted * max(rate, _ROUNDING), 1.0))
        certain |= beyond


def expected_error(doubt: Floats, rated: NDArray[np.int64], errors: Floats) -> Floats:
    """Return the expected size of each output's error, learned from how the judges' doubt predicted errors so far.

    The line of errors on doubts, whose slope is drawn to 0 as far as chance could make it (positive-part James-Stein
    factor 1 - 1 / t^2), so that a doubt that says nothing leaves all outputs alike, and one that is wrong way round is
    turned. At least a quarter of the mean error.

    Args:
        doubt: of each output, by the judges.
        rated: places of the outputs that were rated so far.
        errors: how far the judges were from people there, in points; at least 0.

    Returns:
        An error for each output, to take as the doubt of the next block; all alike with fewer than 8 rated.

    Source: James and Stein (1961); Zrnic and Candes (2024), section 5 (doubts that are learned block after block).

    >>> import numpy as np
    >>> doubt = np.linspace(0, 1, 20)
    >>> expected_error(doubt, np.arange(20), 1 + doubt + 0.1 * (-1) ** np.arange(20))[[0, -1]].round(1).tolist()
    [1.0, 2.0]
    """
    x, mean = doubt[rated], float(errors.mean()) if len(errors) else 1.0
    spread = float(((x - x.mean()) ** 2).sum()) if len(x) else 0.0
    if len(rated) < _FEWEST or spread < _ROUNDING or mean < _ROUNDING:
        return np.ones(len(doubt))
    slope = float(((x - x.mean()) * (errors - mean)).sum()) / spread
    rest = float(((errors - mean - slope * (x - x.mean())) ** 2).sum()) / (len(x) - 2)
    drawn_in = max(0.0, 1 - rest / (slope**2 * spread)) if slope else 0.0
    sizes: Floats = np.maximum(mean + drawn_in * slope * (doubt - x.mean()), mean / 4)
    return sizes


def block_probabilities(values: Floats, scores: Floats, doubt: Floats, number: int) -> Floats:
    """Return the probabilities for the next block: equal in the first, then learned from earlier blocks.

    Args:
        values: mean rating of each output so far; NaN where it was not drawn.
        scores: of each output, by the judge.
        doubt: of each output, by the judges.
        number: how many the block has.

    Returns:
        Probabilities of all outputs, those that were drawn before among them, for `in_any_block`.

    Raises:
        ValueError: as `sampling_probabilities`.

    Source: Zrnic and Candes (2024), Active Statistical Inference, ICML, section 5.

    >>> import numpy as np
    >>> block_probabilities(np.full(4, np.nan), np.arange(4.0), np.ones(4), 2).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    rated = np.flatnonzero(~np.isnan(values))
    errors = np.empty(0)
    if len(rated) >= _FEWEST:
        line = np.column_stack([np.ones(len(rated)), scores[rated]])
        errors = np.abs(values[rated] - line @ np.linalg.lstsq(line, values[rated])[0])
    return sampling_probabilities(expected_error(doubt, rated, errors), number, undrawn=np.isnan(values))


def in_any_block(probabilities: Sequence[Floats]) -> Floats:
    """Return the probability of each output to be drawn in any of the blocks: 1 - product of (1 - pi).

    Args:
        probabilities: of each block those of all outputs, also of those that were drawn before.

    Returns:
        A probability for each output, for `active_mean`.

    Source: Kalton and Anderson (1986), J. R. Stat. Soc. A 149, 65-82 (one inclusion probability over several draws).

    >>> import numpy as np
    >>> in_any_block([np.array([0.5, 0.2]), np.array([0.5, 0.5])]).tolist()
    [0.75, 0.6]
    """
    missed: Floats = np.prod([1 - block for block in probabilities], axis=0)
    return 1 - missed


def drawn(probabilities: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw outputs by their probabilities, exactly as many as these sum to (systematic, in random order).

    Args:
        probabilities: of each output; they sum to a whole number.
        rng: the generator.

    Returns:
        Places of the outputs, in the random order in which people rate them.

    Source: Madow (1949), Ann. Math. Stat. 20, 333-354.

    >>> import numpy as np
    >>> len(drawn(np.full(8, 0.5), np.random.default_rng(1)))
    4
    """
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    ends[-1] = round(float(ends[-1]))
    steps = rng.random() + np.arange(int(ends[-1]))
    chosen = order[np.searchsorted(ends, steps, side="right")]
    return rng.permutation(chosen).astype(np.int64)


def active_mean(
    values: Floats,
    scores: Floats,
    probabilities: Floats,
    formula: Literal["small_samples", "published"] = "small_samples",
) -> ActiveMean:
    """Return the mean rating of all outputs from the rated ones, drawn with known probabilities, and a judge.

    With y the mean rating of an output, f its score less the mean of all scores, w = 1 / pi, over the n rated ones:

        theta = sum of w_i (y_i - lam_i f_i) / sum of w_i,   lam_i = 0.75 b_i
        b_i   = weighted covariance of y and f without i / its expected sum of w f^2
        var   = 1.1 (n / (n - 3) sum of w_i^2 (y_i - lam_i f_i - theta)^2 / (sum of w_i)^2
                     + (var y - var(y - lam f)) / N)

    with Student's t of n* - 2 degrees of freedom, n* = (sum of w)^2 / sum of w^2. Evenly drawn it is nearly `powered`.
    `published` is that of Zrnic and Candes for independent draws: mean of lam f + (y - lam f) drawn / pi over all
    outputs, with the lam that makes its variance least, and the normal quantile.

    Args:
        values: mean rating of each output; NaN where it was not drawn.
        scores: of each output, by the judge.
        probabilities: by which each output was drawn, above 0.
        formula: that for small samples, or the published one.

    Returns:
        The mean, with its error and degrees of freedom.

    Raises:
        ValueError: arrays of different lengths, a score is missing, a probability is not above 0 and at most 1.

    Source: Zrnic and Candes (2024), Active Statistical Inference, ICML; Saerndal, Swensson and Wretman (1992), Model
    Assisted Survey Sampling, chapters 5 and 6.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> scores, doubt = rng.normal(size=500), rng.uniform(0.2, 2, 500)
    >>> ratings = 3 + scores + doubt * rng.normal(size=500)
    >>> probabilities = sampling_probabilities(doubt, 60)
    >>> chosen = drawn(probabilities, rng)
    >>> values = np.full(500, np.nan)
    >>> values[chosen] = ratings[chosen]
    >>> found = active_mean(values, scores, probabilities)
    >>> bool(found.mean.low < 3 < found.mean.high), found.worth > 60
    (True, True)
    """
    if not len(values) == len(scores) == len(probabilities):
        raise ValueError("values, scores and probabilities must be of the same outputs, but have different lengths")
    if not np.isfinite(scores).all() or not ((probabilities > 0) & (probabilities <= 1)).all():
        raise ValueError("each output needs a score, and a probability above 0 and at most 1")
    rated = ~np.isnan(values)
    weights = rated / probabilities
    filled = np.where(rated, values, 0.0)
    if formula == "published":
        return _published(filled, scores, weights)
    n, away = int(rated.sum()), (scores - scores.mean())[rated]
    y, w = values[rated], weights[rated]
    people = float((w * y).sum() / w.sum()) if n else math.nan
    products, pulls = w**2 * away * y, w**2 * away
    beside = ((w * y).sum() - w * y) / np.maximum(w.sum() - w, 1e-300)  # people's mean with each output left out
    expected = float(((scores - scores.mean()) ** 2 / probabilities).sum())
    if n < 4 or expected < _ROUNDING:
        slope, without = 0.0, np.zeros(n)
    else:
        slope = float(products.sum() - people * pulls.sum()) / expected
        without = (products.sum() - products - beside * (pulls.sum() - pulls)) / expected * n / (n - 1)
    adjusted = y - SHARE * without * away
    theta = float((w * adjusted).sum() / w.sum()) if n else math.nan
    error = math.nan
    if n > 3:
        by_draw = n / (n - 3) * float((w**2 * (adjusted - theta) ** 2).sum()) / float(w.sum()) ** 2
        explained = float((w * ((y - people) ** 2 - (adjusted - theta) ** 2)).sum() / w.sum())
        error = CAUTIOUS * (by_draw + max(explained, 0.0) / len(values))
        if slope == 0:
            error = by_draw
    even = float((w * (y - people) ** 2).sum() / w.sum()) if n else math.nan
    freedom = float(w.sum() ** 2 / (w**2).sum()) - 2 if n else math.nan
    mean = known(np.array(theta), np.array(error), np.array(max(freedom, 1.0)))
    return ActiveMean(mean, slope, even / error if error > 0 else math.nan)


def _published(values: Floats, scores: Floats, weights: Floats) -> ActiveMean:
    """Return the estimate of Zrnic and Candes for independent draws."""
    number, of_people, of_judge = len(values), values * weights, scores * (weights - 1)
    covariances = np.cov(of_judge, of_people, ddof=1)
    slope = float(covariances[0, 1] / covariances[0, 0])
    rectified = of_people - slope * of_judge
    variance = float(rectified.var(ddof=1)) / number
    mean = known(np.array(rectified.mean()), np.array(variance), np.array(math.inf))
    return ActiveMean(mean, slope, float((weights > 0).sum()) * float(of_people.var(ddof=1)) / number / variance)
