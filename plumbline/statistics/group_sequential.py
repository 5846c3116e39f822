"""Group sequential tests of a bounded mean: look after each block of pairs, and stop once the mean is decided.

At each look both sides of a threshold are tested. The levels of the looks come from an alpha-spending function (Lan and
DeMets), so that the looks together err as rarely as a single look would; the p-values correct for skewness, so that
twenty skewed ratings are not trusted more than they deserve.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import filled, numbers, with_names
from plumbline.statistics.estimates import CONFIDENCE, Estimate, Floats

#: Spending functions, from the earliest stops to the most power: `pocock` spends almost evenly, `quadratic` by the
#: square of the share of pairs, `obrien_fleming` saves nearly all for the last look.
Spending = Literal["pocock", "quadratic", "obrien_fleming"]
ALPHA = (1 - CONFIDENCE) / 2  #: the error on each side
FEWEST = 8  #: pairs at a look; fewer give no p-value
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)  # by which the score between looks is integrated
_REACH = 9.0  # standard errors beyond which no score lies
_ROUNDING = 1e-9  # of a mean
_LEAST_STEP = 1e-14  # of the error that a look may spend
_HALVINGS = 40  # until a bound is known to 1e-10 of the scale


@dataclass(frozen=True)
class Blocks:
    """A rule for looks after blocks of pairs; to be fixed before anybody rates.

    Raises ValueError where blocks do not rise or begin below 8 pairs, or the threshold is not within the scale.

    >>> from annotation import Blocks
    >>> Blocks((20, 40, 60, 80, 100), 3.0, (1, 5)).levels(2).round(4).tolist()
    [0.001, 0.0033]
    """

    ends: Sequence[int]  #: pairs up to each look, rising; the last is what the campaign would rate at most
    threshold: float  #: what the mean must reach
    scale: tuple[float, float]  #: least and greatest rating
    spending: Spending = "quadratic"  #: how early the error is spent

    def __post_init__(self) -> None:
        ends, (bottom, top) = list(self.ends), self.scale
        if not ends or ends[0] < FEWEST or any(later <= before for before, later in itertools.pairwise(ends)):
            raise ValueError(f"blocks rise from at least {FEWEST} pairs to all of them; these are {ends}")
        if not bottom < self.threshold < top:
            raise ValueError(f"the threshold {self.threshold:g} is not within the scale, {bottom:g} to {top:g}")

    def levels(self, looks: int) -> Floats:
        """One-sided levels of the first looks: a p-value at most this decides."""
        return levels([end / self.ends[-1] for end in self.ends[:looks]], self.spending) if looks else np.empty(0)


@dataclass(frozen=True)
class Path:
    """The looks at one mean: where it stood, what each look asked for, and which look decided."""

    pairs: NDArray[np.int64]  #: pairs at each look
    means: Floats  #: mean at each look
    low: Floats  #: the mean is above this: the ends of repeated intervals, which hold at all looks at once
    high: Floats  #: the mean is below this
    levels: Floats  #: one-sided level of each look
    above: Floats  #: p-value of "the mean is at most the threshold" at each look
    below: Floats  #: p-value of "the mean is at least the threshold" at each look

    def until(self, n_looks: int) -> Path:
        """The first looks alone."""
        return Path(*(getattr(self, field.name)[:n_looks] for field in fields(self)))


@dataclass(frozen=True)
class Looks:
    """The looks at a campaign's blocks so far, of all questions that must hold together."""

    paths: dict[str, Path]  #: of each question
    unbiased: dict[str, Estimate]  #: of each question the mean without the bias of stopping, at the last look
    pairs: int  #: that count: those of the blocks up to the last look

    @property
    def decision(self) -> str:
        """What the last look says: accepted, rejected or undecided; undecided without any look."""
        n_looks = min((len(path.pairs) for path in self.paths.values()), default=0)
        return _decision(self.paths, n_looks) if n_looks else "undecided"

    def frame(self) -> pd.DataFrame:
        """A row for each look and question: look, pairs, question, mean, low, high, level, p_above, p_below."""
        columns = ("pairs", "mean", "low", "high", "level", "p_above", "p_below")
        rows = [
            {"look": look, "question": question, **dict(zip(columns, values, strict=True))}
            for question, path in self.paths.items()
            for look, values in enumerate(
                zip(path.pairs, path.means, path.low, path.high, path.levels, path.above, path.below, strict=True), 1
            )
        ]
        return pd.DataFrame(rows, columns=["look", "question", *columns]).sort_values("look", kind="stable")


def looks(
    ratings: pd.DataFrame,
    blocks: Blocks,
    *,
    order: str = "order",
    pair: str = "pair_id",
    question: str = "question",
    value: str = "value",
) -> Looks:
    """Look at ratings after each block of pairs, and say whether their means are decided.

    Fix the blocks before anybody rates, draw the order of the pairs at random, and rate block after block: stop at the
    first look that decides; ratings after it play no part. The error on each side of the threshold is at most 2.5% over
    all looks, for each question; all must hold for acceptance. A block counts once each of its pairs is rated on every
    question.

    Args:
        ratings: a row each: the pair, its place in the random order (`order`, 1 for the first), the question and a
            number (`value`).
        blocks: pairs up to each look, threshold, scale and spending.
        order: the column of places.
        pair: the column of pairs.
        question: the column of questions.
        value: the column of numbers.

    Returns:
        The looks at complete blocks, their decision, and means without the bias of stopping early.

    Raises:
        ValueError: a column is missing, a value is beyond the scale, a pair has two places or two pairs have one.

    Source: Jennison and Turnbull (2000), Group Sequential Methods; Hall (1992), J. R. Stat. Soc. B 54, 221-228.

    >>> import numpy as np, pandas as pd
    >>> from annotation import Blocks, looks
    >>> rng, places = np.random.default_rng(4), np.repeat(np.arange(1, 41), 3)
    >>> ratings = pd.DataFrame(
    ...     {"pair_id": places, "order": places, "question": "quality", "value": rng.choice([3, 4, 5], len(places))}
    ... )
    >>> result = looks(ratings, Blocks((20, 40, 60, 80, 100), threshold=3.0, scale=(1, 5)))
    >>> result.decision
    'accepted'
    >>> result.frame()[["look", "pairs", "mean", "low"]].round(2).to_dict("records")
    [{'look': 1, 'pairs': 20, 'mean': 4.17, 'low': 3.24}]
    """
    frame = with_names(ratings, "ratings", pair_id=pair, order=order, question=question, value=value)
    filled(frame, ["pair_id", "order", "question", "value"], "ratings")
    frame = frame.assign(value=numbers(frame["value"], "ratings"))
    if not frame["value"].between(*blocks.scale).all():
        raise ValueError("ratings: a value lies beyond the scale, {:g} to {:g}".format(*blocks.scale))
    places = frame[["pair_id", "order"]].drop_duplicates()
    if places["pair_id"].duplicated().any() or places["order"].duplicated().any():
        raise ValueError("ratings: each pair has one place in the order, and each place one pair")
    means = frame.pivot_table(index="order", columns="question", values="value", aggfunc="mean", observed=True)
    means = means.reindex(range(1, blocks.ends[-1] + 1))
    rated = means.notna().all(axis=1).to_numpy()
    complete = [end for end in blocks.ends if rated[:end].all()]
    columns = {str(name): means[name].to_numpy(np.float64) for name in means}
    paths = {name: path(values, len(complete), blocks) for name, values in columns.items()}
    n_looks = next(
        (look for look in range(1, len(complete) + 1) if _decision(paths, look) != "undecided"), len(complete)
    )
    return Looks(
        {name: path.until(n_looks) for name, path in paths.items()},
        {name: _unbiased(columns[name], name, paths, n_looks, blocks) for name in paths},
        complete[n_looks - 1] if n_looks else 0,
    )


def _decision(paths: Mapping[str, Path], look: int) -> str:
    """What a look (from 1) says of all questions together."""
    if all(path.above[look - 1] <= path.levels[look - 1] for path in paths.values()):
        return "accepted"
    rejected = any(path.below[look - 1] <= path.levels[look - 1] for path in paths.values())
    return "rejected" if rejected else "undecided"


def _unbiased(values: Floats, name: str, paths: Mapping[str, Path], n_looks: int, blocks: Blocks) -> Estimate:
    """The mean of a question without the bias of stopping; accepting hung on it where all others were decided."""
    if not n_looks:
        return Estimate.undefined("no block is complete")
    others = [path for question, path in paths.items() if question != name]
    alone = [all(path.above[look] <= path.levels[look] for path in others) for look in range(n_looks - 1)]
    return unbiased_mean(values, n_looks, blocks, alone)


def spent(fractions: Sequence[float] | Floats, spending: Spending, alpha: float = ALPHA) -> Floats:
    """The error that may be spent up to each look.

    `pocock`: alpha log(1 + (e - 1) t). `quadratic`: alpha t^2. `obrien_fleming`: 2 - 2 Phi(z / sqrt(t)) with z the
    upper quantile of alpha / 2.

    Args:
        fractions: share t of the planned pairs at each look, above 0 and at most 1.
        spending: name of the function.
        alpha: one-sided error of all looks together.

    Returns:
        Cumulative errors, a number for each look.

    Source: Lan and DeMets (1983), Biometrika 70, 659-663; Kim and DeMets (1987), Biometrika 74, 149-154.

    >>> spent([0.5, 1.0], "pocock").round(4).tolist()
    [0.0155, 0.025]
    """
    from scipy import special  # noqa: PLC0415 (half a second; `--help` goes without)

    shares = np.asarray(fractions, dtype=float)
    if spending == "pocock":
        errors: Floats = alpha * np.log1p((math.e - 1) * shares)
    elif spending == "quadratic":
        errors = alpha * shares**2
    else:
        errors = 2 * special.ndtr(special.ndtri(alpha / 2) / np.sqrt(shares))
    return errors


def bounds(fractions: Sequence[float] | Floats, spending: Spending, alpha: float = ALPHA) -> Floats:
    """Critical values of the looks, in standard errors, for one side; the other side does not loosen them.

    The density of the score among campaigns that go on is carried from look to look (recursive integration of
    Armitage, McPherson and Rowe), so the probability of crossing at any look is alpha where the mean is the threshold.

    Args:
        fractions: share of the planned pairs at each look, rising, at most 1.
        spending: name of the spending function.
        alpha: one-sided error of all looks together.

    Returns:
        Critical values, a number for each look.

    Raises:
        ValueError: fractions do not rise from above 0 to at most 1.

    Source: Jennison and Turnbull (2000), Group Sequential Methods, chapters 7 and 19.

    >>> bounds([0.2, 0.4, 0.6, 0.8, 1.0], "obrien_fleming").round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    from scipy import optimize  # noqa: PLC0415 (as above)

    shares = np.asarray(fractions, dtype=float)
    if not shares.size or shares[0] <= 0 or shares[-1] > 1 + 1e-12 or (np.diff(shares) <= 0).any():
        raise ValueError(f"fractions of looks rise from above 0 to at most 1; these are {shares.tolist()}")
    steps = np.diff(spent(shares, spending, alpha), prepend=0.0)
    scores = _Scores(shares)
    values: list[float] = []
    for step in steps:
        # Below 1e-14 the integral says nothing: such a look cannot stop.
        critical = math.inf if step < _LEAST_STEP else optimize.brentq(scores.excess, -_REACH, _REACH, args=(step,))
        values.append(critical)
        scores.go_on(-math.inf, critical)
    return np.array(values)


def levels(fractions: Sequence[float] | Floats, spending: Spending, alpha: float = ALPHA) -> Floats:
    """One-sided level of each look: a p-value at most this stops.

    Args:
        fractions: share of the planned pairs at each look.
        spending: name of the spending function.
        alpha: one-sided error of all looks together.

    Returns:
        Levels, a number for each look; a single look at all pairs has alpha itself.

    Source: Lan and DeMets (1983), Biometrika 70, 659-663.

    >>> levels([1.0], "pocock").round(4).tolist()
    [0.025]
    """
    from scipy import special  # noqa: PLC0415 (as above)

    return np.asarray(special.ndtr(-bounds(fractions, spending, alpha)))


def p_above(values: Floats, threshold: float, bottom: float) -> Floats:
    """p-value of "the mean is at most the threshold", for skewed values of few pairs.

    Student's t after Hall's cubic transformation, which takes the skewness out: after twenty ratings of which a few are
    very low, t itself errs at three times its level. In addition p is at least the probability that a share of pairs
    large enough to pull the mean down to the threshold, were they all at the bottom of the scale, is missed by n pairs:
    what was not seen may exist.

    Args:
        values: means of pairs that are drawn independently; campaigns by pairs.
        threshold: above the bottom of the scale.
        bottom: the least that a value can be. For the other side negate all three.

    Returns:
        A p-value for each campaign; NaN for fewer than 8 pairs, 0.5 at least where the mean is not above the threshold.

    Raises:
        ValueError: the threshold is not above the bottom, or a value is below it.

    Source: Hall (1992), J. R. Stat. Soc. B 54, 221-228; Clopper and Pearson (1934), Biometrika 26, 404-413.

    >>> import numpy as np
    >>> ratings = np.repeat([1.0, 4.0, 5.0], [3, 10, 7])
    >>> round(float(p_above(ratings, 3.0, 1.0)), 3)
    0.026
    """
    if threshold <= bottom:
        raise ValueError(f"the threshold {threshold:g} is not above the end of the scale, {bottom:g}")
    if (values < bottom - _ROUNDING).any():
        raise ValueError(f"a value lies beyond the end of the scale, {bottom:g}")
    return _p(_Shape.of(values), values.mean(axis=-1), threshold, bottom)


def lower_end(values: Floats, bottom: float, level: float) -> float:
    """The largest threshold that the values of a campaign refute at this level.

    Args:
        values: means of pairs.
        bottom: the least that a value can be. For an upper end negate both, and the result.
        level: one-sided.

    Returns:
        Lower end of the mean; NaN for fewer than 8 pairs.

    Source: Hall (1992), J. R. Stat. Soc. B 54, 221-228.

    >>> import numpy as np
    >>> round(lower_end(np.repeat([1.0, 4.0, 5.0], [3, 10, 7]), 1.0, 0.025), 2)
    2.98
    """
    if values.shape[-1] < FEWEST:
        return math.nan
    low, high = bottom, float(values.mean())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = middle > bottom and p_above(values, middle, bottom) <= level
        low, high = (middle, high) if refuted else (low, middle)
    return low


def path(values: Floats, looks: int, blocks: Blocks) -> Path:
    """The looks at one campaign's mean.

    Args:
        values: means of pairs, in the order of the blocks.
        looks: how many blocks are complete.
        blocks: the rule.

    Returns:
        The looks with means, p-values, levels and repeated intervals.

    Source: Jennison and Turnbull (2000), Group Sequential Methods, chapter 9 (repeated intervals).

    >>> import numpy as np
    >>> ratings = np.random.default_rng(1).choice([3.0, 4.0, 5.0], 40)
    >>> seen = path(ratings, 2, Blocks((20, 40, 100), 3.0, (1, 5)))
    >>> bool(seen.above[0] <= seen.levels[0]), bool(seen.low[0] > 3)
    (True, True)
    """
    (bottom, top), limits = blocks.scale, blocks.levels(looks)
    first = [np.asarray(values[:end], dtype=float) for end in blocks.ends[:looks]]
    ends = [
        (lower_end(block, bottom, level), -lower_end(-block, -top, level))
        for block, level in zip(first, limits, strict=True)
    ]
    return Path(
        np.array(blocks.ends[:looks], dtype=np.int64),
        np.array([block.mean() for block in first]),
        np.array([low for low, _ in ends]),
        np.array([high for _, high in ends]),
        limits,
        np.array([float(p_above(block, blocks.threshold, bottom)) for block in first]),
        np.array([float(p_above(-block, -blocks.threshold, -top)) for block in first]),
    )


def unbiased_mean(values: Floats, looks: int, blocks: Blocks, alone: Sequence[bool] = ()) -> Estimate:
    """The mean after stopping at the last of the looks, without the bias of having stopped there.

    A campaign stops early where its mean happens to be far from the threshold, so the plain mean lies too far from it.
    Results are ordered by the look at which they stop and by the mean within it; the estimate is the mean under which
    the result is in the middle, its interval holds the means under which it is in neither 2.5%. Scores are taken for
    normal, with the spread at the last look.

    Args:
        values: means of pairs up to the last look.
        looks: how many blocks are complete; the last look is the one that stopped.
        blocks: the rule.
        alone: for each earlier look whether acceptance hung on this mean alone, since all other questions held there;
            without any it always did.

    Returns:
        Median-unbiased mean with its 95% interval; NaN without spread, or where an earlier look should have stopped.

    Source: Tsiatis, Rosner and Mehta (1984), Biometrics 40, 797-803; Jennison and Turnbull (2000), section 8.4.

    >>> import numpy as np
    >>> ratings = np.random.default_rng(1).choice([2.0, 3.0, 4.0, 5.0], 40)
    >>> blocks = Blocks((20, 40, 100), threshold=3.0, scale=(1, 5), spending="pocock")
    >>> round(float(ratings.mean()), 2), round(unbiased_mean(ratings, 2, blocks).value, 2)
    (3.55, 3.53)
    """
    from scipy import optimize  # noqa: PLC0415 (as above)

    n, threshold, (bottom, top) = blocks.ends[looks - 1], blocks.threshold, blocks.scale
    mean = float(np.mean(values[:n]))
    error = float(np.std(values[:n], ddof=1)) / math.sqrt(n)
    if not error > 0:
        return Estimate.undefined("the pairs' means do not vary", n)
    earlier, limits = blocks.ends[: looks - 1], blocks.levels(looks)[:-1]
    past = [np.asarray(values[:end], dtype=float) for end in earlier]
    # A campaign that was to go on has a mean between these, for all that is seen of its spread.
    highs = [_stopping(block, threshold, bottom, top, level) for block, level in zip(past, limits, strict=True)]
    highs = [high if hung else math.inf for high, hung in zip(highs, alone or [True] * len(highs), strict=True)]
    lows = [-_stopping(-block, -threshold, -top, -bottom, level) for block, level in zip(past, limits, strict=True)]
    shares = np.array(blocks.ends[:looks]) / blocks.ends[-1]
    unit = error * math.sqrt(n)

    def at_least(true_mean: float) -> float:
        """P(a result at least as high as this), where this is the mean."""
        scores, crossed = _Scores(shares, (true_mean - threshold) / unit * math.sqrt(blocks.ends[-1])), 0.0
        for n_pairs, low, high in zip(earlier, lows, highs, strict=True):
            ends = [(end - threshold) / unit * math.sqrt(n_pairs) for end in (low, high)]
            crossed += scores.above(ends[1])
            scores.go_on(*ends)
        return crossed + scores.above((mean - threshold) / error)

    reach = (mean - 9 * error, mean + 9 * error)
    if not at_least(reach[0]) < ALPHA < 1 - ALPHA < at_least(reach[1]):
        return Estimate.undefined("an earlier look should have stopped the campaign", n)

    def where(probability: float) -> float:
        return float(optimize.brentq(lambda true: at_least(true) - probability, *reach))

    return Estimate(value=where(0.5), low=where(ALPHA), high=where(1 - ALPHA), n=n)


@dataclass(frozen=True)
class _Shape:
    """What a p-value takes from the values beside their mean."""

    n: int
    spread: Floats
    skewness: Floats

    @classmethod
    def of(cls, values: Floats) -> _Shape:
        mean, spread = values.mean(axis=-1), values.std(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            skewness = ((values - mean[..., None]) ** 3).mean(axis=-1) / spread**3
        return cls(values.shape[-1], spread, skewness)


def _p(shape: _Shape, mean: Floats, threshold: float, bottom: float) -> Floats:
    from scipy import special  # noqa: PLC0415 (half a second; `--help` goes without)

    n, spread, skewness = shape.n, shape.spread, shape.skewness
    if n < FEWEST:
        return np.full(mean.shape, np.nan)
    varies = spread > _ROUNDING
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = (mean - threshold) / spread
        straight = distance + skewness * distance**2 / 3 + skewness**2 * distance**3 / 27 + skewness / (6 * n)
        p = special.stdtr(n - 1, -math.sqrt(n - 1) * straight)
        unseen = ((threshold - bottom) / (mean - bottom)) ** n
    p = np.where(varies, p, np.where(mean > threshold, 0.0, 1.0))
    above: Floats = np.where(mean > threshold, np.maximum(p, unseen), np.maximum(p, 0.5))
    return above


def _stopping(values: Floats, threshold: float, bottom: float, top: float, level: float) -> float:
    """The least mean that stops a look at values of this spread and skewness; infinite where none on the scale does."""
    shape = _Shape.of(values)
    if not _p(shape, np.array(top), threshold, bottom) <= level:
        return math.inf
    low, high = threshold, top
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _p(shape, np.array(middle), threshold, bottom) <= level else (middle, high)
    return high


class _Scores:
    """Scores of the campaigns that go on, from look to look, where the drift at all pairs is `drift`."""

    def __init__(self, shares: Floats, drift: float = 0.0) -> None:
        self._shares, self._drift, self._look = shares, drift, 0
        self._points, self._masses = np.zeros(1), np.ones(1)  # of the score at the look before

    def above(self, z: float) -> float:
        """P(the campaign reaches this look and its score is at least z)."""
        from scipy import special  # noqa: PLC0415 (as above)

        return float(self._masses @ special.ndtr(-self._steps(z)))

    def excess(self, z: float, probability: float) -> float:
        """How far `above` exceeds a probability: zero at the critical value."""
        return self.above(z) - probability

    def go_on(self, low: float, high: float) -> None:
        """Let those whose score is between these go on to the next look."""
        share, before = self._shares[self._look], self._before
        middle = self._drift * math.sqrt(share)
        start = max(low, middle - _REACH)
        half = max(min(high, middle + _REACH) - start, 0.0) / 2
        points = start + half * (1 + _NODES)
        slope = math.sqrt(share / (2 * math.pi * (share - before)))
        density = slope * np.exp(-(self._steps(points[:, None]) ** 2) / 2) @ self._masses
        self._points, self._masses = points, half * _WEIGHTS * density
        self._look += 1

    @property
    def _before(self) -> float:
        return float(self._shares[self._look - 1]) if self._look else 0.0

    def _steps(self, z: Floats | float) -> Floats:
        """What the pairs since the look before must add for a score of z, in standard errors."""
        share, before = self._shares[self._look], self._before
        step = share - before
        wanted: Floats = z * math.sqrt(share) - self._points * math.sqrt(before) - self._drift * step
        return wanted / math.sqrt(step)
