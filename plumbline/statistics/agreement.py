"""Agreement of raters on one question: Gwet's AC2 and AC1, Krippendorff's alphas, kappas, raw agreement.

Each is an `Estimate` with a 95% interval over pairs. An undefined coefficient is NaN with a reason: ratings that never
vary, or a single pair, would give a 1 that nobody earned.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.records import UNKNOWN
from plumbline.scales import MOST_LEVELS, Continuous
from plumbline.statistics.estimates import Estimate, Floats, bca, jackknife, quantile

# Bands of kappa in words (HUME, appendix on agreement): above each limit.
BANDS = ((0.8, "excellent"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"), (-math.inf, "poor"))
ALIKE = "no two ratings of a pair differ, so the spread is unknown"
EVEN = "every pair has the same ratings, so the spread is unknown"
_ALONE = "no pair has two ratings, so nothing can agree"
UNKNOWN_RATERS = "the raters are unknown"
_NO_POINTS = "AC2 weighs the points of a scale, and a continuous one has none; read alpha and the ICC"
_SUBSET, _OVERLAP = 2 / 3, 1 / 3  # MASI's weights of sets of which one holds the other, and of those that only overlap
_NO_ERROR = 1e-12  # a standard error below is one of rounding
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """One question's ratings of some pairs: pair and rater by number, ratings by their place among the levels."""

    pair: Integers
    rater: Integers  #: -1 if it is unknown who rated
    point: Integers
    scale: tuple[float, ...]
    distinct: tuple[float, ...] = ()  #: of a continuous scale the numbers that were given, in order

    @classmethod
    def of(cls, ratings: pd.DataFrame, scale: Sequence[float], rows: NDArray[np.bool_] | None = None) -> Answers:
        """From a frame with the columns pair_id, rater_id and value, whose values are points of the scale.

        `rows` says which of its rows count (default: all).
        """
        names = ("pair_id", "rater_id", "value")
        pair_ids, rater_ids, values = (
            ratings[name].array if rows is None else ratings[name].array[rows] for name in names
        )
        pair = pd.factorize(pair_ids)[0]
        return cls.of_values(pair, rater_numbers(rater_ids), np.asarray(values, np.float64), scale)

    @classmethod
    def of_table(cls, table: Floats, scale: Sequence[float]) -> Answers:
        """From points of the scale in a table of pairs by raters, NaN for none; unrated pairs are left out."""
        rater, pair = np.nonzero(np.isfinite(table).T)
        return cls.of_values(np.unique(pair, return_inverse=True)[1], rater, table[pair, rater], scale)

    @classmethod
    def of_values(cls, pair: Integers, rater: Integers, values: Floats, scale: Sequence[float]) -> Answers:
        """From pairs and raters by number, and points of the scale."""
        distinct = tuple(np.unique(values).tolist()) if isinstance(scale, Continuous) else ()
        point = np.searchsorted(np.array(distinct or scale, np.float64), values)
        points = scale if isinstance(scale, tuple) else tuple(scale)
        pair, rater, point = (column.astype(np.int64, copy=False) for column in (pair, rater, point))
        return cls(pair, rater, point, points, distinct)

    @property
    def levels(self) -> tuple[float, ...]:
        """The points of the scale; for a continuous scale the numbers given."""
        return self.distinct or self.scale

    @functools.cached_property
    def value(self) -> Floats:
        """The ratings as numbers."""
        values: Floats = np.array(self.levels, np.float64)[self.point]
        return values

    def totals(self, by: Integers) -> tuple[Floats, Floats]:
        """(sums, counts) of the ratings by pair, or by rater."""
        return np.bincount(by, weights=self.value).astype(np.float64), np.bincount(by).astype(np.float64)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return int(self.pair.max(initial=-1)) + 1

    @property
    def raters(self) -> int | None:
        """The number of raters; None if it is unknown who rated."""
        return None if (self.rater < 0).any() else int(self.rater.max(initial=-1)) + 1

    @functools.cached_property
    def ratings(self) -> Integers:
        """The number of ratings of each pair."""
        return np.bincount(self.pair)

    @functools.cached_property
    def counts(self) -> Integers:
        """Pairs by points: how many gave each pair each point."""
        points = len(self.levels)
        return np.bincount(self.pair * points + self.point, minlength=self.pairs * points).reshape(-1, points)

    def slots(self) -> tuple[Integers, Integers]:
        """(points, raters), pairs by the most ratings of any pair: each pair's, one after another, then -1."""
        order = np.argsort(self.pair, kind="stable")
        pair = self.pair[order]
        sizes = np.bincount(pair)
        position = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        points, raters = (np.full((len(sizes), sizes.max(initial=0)), -1) for _ in range(2))
        points[pair, position], raters[pair, position] = self.point[order], self.rater[order]
        return points, raters


def rater_numbers(ids: Any, *, sort: bool = False) -> Integers:
    """Number raters from 0; an unknown one (`plumbline.records.UNKNOWN`) is -1.

    Args:
        ids: a rater's id for each rating.
        sort: whether numbers follow the order of the ids, and not that of appearance.

    Returns:
        A number for each rating.

    >>> rater_numbers(np.array(["ada", "unknown-1", "bob", "ada"])).tolist()
    [0, -1, 2, 0]
    """
    numbers, names = pd.factorize(ids, sort=sort)
    is_named = np.array([*(not str(name).startswith(UNKNOWN) for name in names), False])
    return np.where(is_named[numbers], numbers, -1).astype(np.int64)


def number_of_raters(ids: Any) -> int | None:
    """Return how many raters gave ratings; None if any of them is unknown.

    Args:
        ids: a rater's id for each rating.

    Returns:
        The number of different raters, or None.

    >>> number_of_raters(np.array(["ada", "bob", "ada"])), number_of_raters(np.array(["unknown-1", "unknown-2"]))
    (2, None)
    """
    numbers = rater_numbers(ids)
    return None if (numbers < 0).any() else len(np.unique(numbers))


def gwet_ac2(answers: Answers) -> Estimate:
    """Gwet's AC2 with ordinal weights, and its interval over pairs (of Student's t, n - 1 degrees of freedom).

    Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48; with missing ratings: Gwet (2014), Handbook of Inter-Rater
    Reliability, 4th ed., chapters 3 and 5; HTEB, section 2.4. Points that nobody used are part of the scale. Of a pair
    with r ratings, r_k of them on point k, of n pairs, m of them with two ratings or more:

        w_kl = 1 - C(|k - l| + 1, 2) / C(q, 2)          weights of q points; T their sum
        p_a  = mean over the m pairs of  sum_k r_k (sum_l w_kl r_l - 1) / (r (r - 1))
        p_e  = T / (q (q - 1)) sum_k pi_k (1 - pi_k),    pi_k the mean of r_k / r over all n pairs
        AC2  = (p_a - p_e) / (1 - p_e)
        variance = sum_i (x_i - AC2)^2 / (n (n - 1)),    x_i = (n / m) (p_a,i - p_e) / (1 - p_e)   [0 where r < 2]
                                                               - 2 (1 - AC2) (p_e,i - p_e) / (1 - p_e),
        p_e,i = T / (q (q - 1)) sum_k (1 - pi_k) r_k / r

    Args:
        answers: one question's ratings.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(gwet_ac2(answers).value, 3)
    0.893
    """
    if isinstance(answers.scale, Continuous):
        return Estimate.undefined(_NO_POINTS)
    points = max(len(answers.levels), 2)  # with a single point there is nothing to tell
    distance = np.abs(np.subtract.outer(np.arange(points), np.arange(points)))
    weights = 1 - (distance + 1) * distance / (points * (points - 1))  # 1 for equal points, 0 for the scale's ends
    total = weights.sum() / (points * (points - 1))
    return _corrected(answers, weights, lambda shares: total * (shares @ (1 - shares.mean(axis=0))))


def _corrected(answers: Answers, weights: Floats, chance: Callable[[Floats], Floats]) -> Estimate:
    """Agreement beyond chance by `weights` of two points, with `chance` by a pair's shares of ratings on each."""
    if reason := _nothing_to_tell(answers):
        return Estimate.undefined(reason)
    counts = answers.counts
    pairs = len(counts)
    ratings = answers.ratings
    several = ratings >= 2
    agreed = (counts * (counts @ weights - 1)).sum(axis=1) / np.maximum(ratings * (ratings - 1), 1)
    per_pair = chance(counts / ratings[:, None])
    by_chance = per_pair.mean()
    if math.isclose(by_chance, 1):
        return Estimate.undefined("chance agreement is complete, so agreement is undefined")
    value = float((agreed[several].mean() - by_chance) / (1 - by_chance))
    if _all_agree(answers):
        return Estimate.alone(value, ALIKE)
    linear = pairs / several.sum() * (agreed - by_chance * several) - 2 * (1 - value) * (per_pair - by_chance)
    error = math.sqrt(((linear / (1 - by_chance) - value) ** 2).sum() / (pairs * (pairs - 1)))
    if error < _NO_ERROR:
        return Estimate.alone(value, EVEN)
    half = float(quantile(np.array([pairs - 1.0]))[0]) * error
    return Estimate(value=value, low=value - half, high=min(1.0, value + half))


def krippendorff_alpha(answers: Answers, generator: np.random.Generator | None) -> Estimate:
    """Krippendorff's alpha with the ordinal metric; BCa bootstrap interval over pairs.

    Krippendorff (2019), Content Analysis, 4th ed., chapter 12; the tests compare the number with that of the package
    krippendorff. Pairs with one rating do not count. Of a continuous scale the metric is that of intervals.

    Args:
        answers: one question's ratings.
        generator: the generator of the bootstrap's resamples; None leaves the interval out.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(krippendorff_alpha(answers, np.random.default_rng(1)).value, 3)
    0.924
    """
    if reason := _nothing_to_tell(answers):
        return Estimate.undefined(reason)
    if isinstance(answers.scale, Continuous):
        return _interval_alpha(answers, generator)
    several = answers.ratings >= 2
    counts = answers.counts[several]
    if counts.shape[1] > MOST_LEVELS:  # points that nobody chose change nothing; the matrices grow with the square
        counts = counts[:, counts.any(axis=0)]
    return _alpha_over_pairs(answers, counts, generator)


def _alpha_over_pairs(
    answers: Answers, counts: Integers, generator: np.random.Generator | None, distance: Floats | None = None
) -> Estimate:
    """Return alpha of pairs with two ratings or more, by a distance of every two points or the ordinal one."""
    rows, times, kind = _kinds(counts)
    # each pair's part of the coincidence matrix, as a row: ordered pairs of its ratings over their number less 1
    both = rows[:, :, None] * rows[:, None, :] - rows[:, :, None] * np.eye(rows.shape[1])
    parts: Floats = (both / (rows.sum(axis=1) - 1)[:, None, None]).reshape(len(rows), -1)
    # the ordinal one is summed pair by pair, as the package krippendorff does: no digit differs
    summed = parts[kind].sum(axis=0) if distance is None else times @ parts
    value = float(_alpha(summed[None], distance)[0])
    if _all_agree(answers):
        return Estimate.alone(value, ALIKE)
    return bca(lambda sums: _alpha(sums, distance), parts, times, generator, value=value)


def _interval_alpha(answers: Answers, generator: np.random.Generator | None) -> Estimate:
    """Alpha with the squared difference of two ratings as their distance.

    With the sum of x and of x^2 over the ratings x of a pair it is 1 - (N - 1) sum_pairs ((r sum x^2 - (sum x)^2) /
    (r - 1)) / (N sum x^2 - (sum x)^2), of r ratings of a pair, two or more, and N in all.
    """
    several = np.bincount(answers.pair)[answers.pair] >= 2
    pair, values = np.unique(answers.pair[several], return_inverse=True)[1], answers.value[several]
    values = values - values.mean()
    ratings = np.bincount(pair)
    sums, squares = np.bincount(pair, values), np.bincount(pair, values**2)
    parts = np.column_stack([ratings, sums, squares, (ratings * squares - sums**2) / (ratings - 1)])
    if _all_agree(answers):
        return Estimate.alone(1.0, ALIKE)

    def alpha_of(sums: Floats) -> Floats:
        ratings, total, squares, within = sums.T
        with np.errstate(invalid="ignore", divide="ignore"):
            alpha: Floats = 1 - (ratings - 1) * within / (ratings * squares - total**2)
        return alpha

    return bca(alpha_of, parts, np.ones(len(parts), np.int64), generator)


def _alpha(sums: Floats, distance: Floats | None) -> Floats:
    """Alpha of summed coincidences, a row each: 1 - observed over expected disagreement; what `bca` resamples.

    The ordinal distance of two points is the number of ratings between them, both ends counted half.
    """
    points = math.isqrt(sums.shape[-1])
    observed = sums.reshape(-1, points, points)
    each = observed.sum(axis=-1)
    if distance is None:
        midpoint = np.cumsum(each, axis=-1) - each / 2
        distance = (midpoint[:, :, None] - midpoint[:, None, :]) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = each[:, :, None] * each[:, None, :] / (each.sum(axis=-1) - 1)[:, None, None]
        alpha: Floats = 1 - (observed * distance).sum(axis=(1, 2)) / (expected * distance).sum(axis=(1, 2))
    return alpha


def ac1(answers: Answers) -> Estimate:
    """Return Gwet's AC1, which is AC2 with weights for equal and unequal, with its interval over pairs.

    Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48; the formulas are those of `gwet_ac2`, with w_kl = 1
    for k = l and 0 otherwise, so that T = q. Labels that nobody chose are among the q.

    Args:
        answers: one question's ratings.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(ac1(answers).value, 3)
    0.588
    """
    points = len(answers.levels)
    return _corrected(answers, np.eye(points), lambda shares: shares @ (1 - shares.mean(axis=0)) / (points - 1))


def fleiss_kappa(answers: Answers) -> Estimate:
    """Fleiss' kappa, for any numbers of raters a pair, and its interval over pairs.

    Fleiss (1971), Psychological Bulletin 76, 378-382; with missing ratings and the variance: Gwet (2014), Handbook of
    Inter-Rater Reliability, 4th ed., chapters 2 and 5. As AC1, with p_e = sum_k pi_k^2 and p_e,i = sum_k pi_k r_k / r.

    Args:
        answers: one question's ratings.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(fleiss_kappa(answers).value, 3)
    0.564
    """
    return _corrected(answers, np.eye(len(answers.levels)), lambda shares: shares @ shares.mean(axis=0))


def nominal_alpha(answers: Answers, generator: np.random.Generator) -> Estimate:
    """Krippendorff's alpha with the nominal metric; BCa bootstrap interval over pairs.

    Krippendorff (2019), Content Analysis, 4th ed., chapter 12. Pairs with one answer do not count.

    Args:
        answers: one question's ratings.
        generator: the generator of the bootstrap's resamples.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(nominal_alpha(answers, np.random.default_rng(1)).value, 3)
    0.6
    """
    return _alpha_by(answers, 1 - np.eye(len(answers.scale)), generator)


def _alpha_by(answers: Answers, distance: Floats, generator: np.random.Generator) -> Estimate:
    """Return alpha with a given distance for every two points."""
    if reason := _nothing_to_tell(answers):
        return Estimate.undefined(reason)
    return _alpha_over_pairs(answers, answers.counts[answers.ratings >= 2], generator, distance)


def masi_alpha(answers: Answers, sets: Sequence[frozenset[str]], generator: np.random.Generator) -> Estimate:
    """Krippendorff's alpha of sets of labels, with MASI's distance; BCa bootstrap interval over pairs.

    Passonneau (2006), Measuring Agreement on Set-Valued Items, LREC: 1 - J M, with J the Jaccard index of two sets and
    M 1 for equal ones, 2/3 where one holds the other, 1/3 where they overlap otherwise, and 0 where they do not.

    Args:
        answers: one question's answers, whose points number the sets.
        sets: the labels of each point.
        generator: the generator of the bootstrap's resamples.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> sets = [frozenset("a"), frozenset("ab")]
    >>> answers = Answers.of_table(np.array([[0, 0], [1, 1.0]]), (0, 1))
    >>> masi_alpha(answers, sets, np.random.default_rng(1)).value
    1.0
    """
    return _alpha_by(answers, masi(sets), generator)


def masi(sets: Sequence[frozenset[str]]) -> Floats:
    """Return MASI's distance of every two sets of labels.

    Args:
        sets: sets of labels.

    Returns:
        Sets by sets, from 0 of equal ones to 1 of ones without a common label.

    >>> masi([frozenset("a"), frozenset("ab")]).round(2).tolist()
    [[0.0, 0.67], [0.67, 0.0]]
    """
    return np.array([[1 - _masi_likeness(first, second) for second in sets] for first in sets], np.float64)


def _masi_likeness(first: frozenset[str], second: frozenset[str]) -> float:
    both = first & second
    if not both:
        return 0.0
    weight = 1.0 if first == second else _SUBSET if both in (first, second) else _OVERLAP
    return weight * len(both) / len(first | second)


def raw_agreement(answers: Answers, generator: np.random.Generator) -> Estimate:
    """Return the share of equal ratings among combinations of two ratings of a pair; BCa bootstrap interval over pairs.

    Nothing is taken off for chance, so that it is defined even where all ratings are the same.

    Args:
        answers: one question's ratings.
        generator: the generator of the bootstrap's resamples.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> answers = Answers.of_table(np.array([[1, 1, 2], [3, 3, 3], [5, 4, 5], [2, 2, 2.0]]), (1, 2, 3, 4, 5))
    >>> round(raw_agreement(answers, np.random.default_rng(1)).value, 3)
    0.667
    """
    ratings = answers.ratings
    several = ratings >= 2
    if not several.any():
        return Estimate.undefined(_ALONE)
    rows, times, _ = _kinds(np.stack([_alike(answers), ratings * (ratings - 1)], axis=1)[several])
    equal, every = times @ rows
    value = float(equal / every)
    if several.sum() == 1 or equal == every:
        reason = "only one pair, so no interval" if several.sum() == 1 else ALIKE
        return Estimate.alone(value, reason)
    return bca(lambda sums: sums[:, 0] / sums[:, 1], rows.astype(np.float64), times, generator)


def _alike(answers: Answers) -> Integers:
    """Return how many ordered combinations of two ratings of each pair are equal."""
    if isinstance(answers.scale, Continuous):  # a matrix of pairs by points would have as many points as ratings
        cells, counts = np.unique(answers.pair * len(answers.levels) + answers.point, return_counts=True)
        equal: Integers = np.bincount(cells // len(answers.levels), counts * (counts - 1)).astype(np.int64)
        return equal
    counts = answers.counts
    ordered: Integers = np.einsum("ij,ij->i", counts, counts) - answers.ratings
    return ordered


def _kinds(rows: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the distinct rows of small whole numbers, how often each occurs, and each row's number among them."""
    base = int(rows.max()) + 1
    if base ** rows.shape[1] > np.iinfo(np.int64).max:  # of many sets of labels: a row is no number any more
        rows_found, kind, times = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        return rows_found, times, kind
    places = base ** np.arange(rows.shape[1])
    kind, codes = pd.factorize(rows @ places, sort=True)
    return codes[:, None] // places % base, np.bincount(kind), kind


def _all_agree(answers: Answers) -> bool:
    """Return whether no two ratings of a pair differ."""
    first = np.zeros(answers.pairs, np.int64)
    first[answers.pair] = answers.point
    return bool((answers.point == first[answers.pair]).all())


def _nothing_to_tell(answers: Answers) -> str:
    """Return why ratings cannot show agreement beyond chance; empty if they can."""
    several = answers.ratings >= 2
    if not several.any():
        return _ALONE
    if several.sum() == 1:
        return "only one pair has two or more ratings, so agreement cannot be told from chance"
    shared = answers.point if several.all() else answers.point[several[answers.pair]]
    if np.ptp(shared) == 0:
        which = "every rating" if np.ptp(answers.point) == 0 else "every rating of pairs with two or more"
        return f"{which} is the same, so agreement cannot be told from chance"
    return ""


def band(value: float) -> str:
    """A coefficient of agreement in words; an undefined one is a dash.

    Args:
        value: the coefficient.

    Returns:
        The band's word.

    >>> band(0.7)
    'substantial'
    """
    return "–" if math.isnan(value) else next(word for limit, word in BANDS if value > limit)


LEAST_SHARED = 5  # pairs that two raters must share, for a kappa of theirs: below, it is drawn towards 0
_CONSTANT = "of each two raters one gives every pair the same point, so that kappa is 0 whatever the other says"
_FLAT = "kappa stays the same whichever pair is left out, so the spread is unknown"


def mean_kappa(answers: Answers) -> Estimate:
    """The mean of Cohen's kappas of every two raters (Light 1971, Psychological Bulletin 76, 365-377), squared weights.

    Each counts in proportion to the pairs that the two share; those who share fewer than `LEAST_SHARED`, and those who
    both gave one and the same point throughout, are left out. A kappa is scikit-learn's
    `cohen_kappa_score(weights="quadratic")`, as the tests check; here all are computed at once, since a crowd has
    thousands. The interval is a jackknife over pairs: of those tried (percentile, BCa, Fisher's z) the one that covered
    94 to 96% with 30 pairs and three raters.

    Args:
        answers: one question's ratings.

    Returns:
        The coefficient with its 95% interval over pairs; NaN with a reason where undefined.

    >>> import numpy as np
    >>> table = np.array([[1, 1], [2, 3], [3, 3], [5, 4], [5, 5], [2, 2.0]])
    >>> answers = Answers.of_table(table, (1, 2, 3, 4, 5))
    >>> round(mean_kappa(answers).value, 3)
    0.917
    """
    if reason := _nothing_to_tell(answers) or (UNKNOWN_RATERS if answers.raters is None else ""):
        return Estimate.undefined(reason)
    pair, couple, first, second = _couples(answers)
    shared = np.bincount(couple)
    wanted = shared[couple] >= LEAST_SHARED
    if not wanted.any():
        return Estimate.undefined(f"no two raters share {LEAST_SHARED} pairs")
    pair, couple = pd.factorize(pair[wanted])[0], pd.factorize(couple[wanted])[0]
    first, second = first[wanted], second[wanted]
    # Ratings as places on the scale, as scikit-learn counts them: whole numbers, so that all sums of them are exact.
    places = np.arange(len(answers.levels), dtype=np.float64)
    if isinstance(answers.scale, Continuous):
        places = (np.array(answers.levels) - answers.scale[0]) / (answers.scale[-1] - answers.scale[0])
    kappas, shared, without = _kappas(couple, places[first], places[second])
    defined = ~np.isnan(kappas)
    if not defined.any():
        return Estimate.undefined("no two raters varied, so chance agreement is complete")
    total, weight = float((shared * kappas)[defined].sum()), float(shared[defined].sum())
    # Without a pair, each two who rated it have one pair less and another kappa, or none if nothing varies any more.
    undefined = np.isnan(without)
    change = np.where(undefined, 0, (shared[couple] - 1) * without) - (shared * kappas)[couple]
    loss = np.where(undefined, shared[couple], 1)
    keep = defined[couple]
    with np.errstate(invalid="ignore", divide="ignore"):  # a pair without which no two raters are left is no sample
        left_out = (total + np.bincount(pair, np.where(keep, change, 0))) / (weight - np.bincount(pair, loss * keep))
    kappa = jackknife(total / weight, left_out[np.isfinite(left_out)], ends=(-math.inf, 1.0))
    if math.isnan(kappa.low):
        points = pd.DataFrame({"first": first, "second": second}).groupby(couple).nunique()
        flat = _CONSTANT if (points == 1).any(axis=1).all() else _FLAT
        return Estimate.alone(kappa.value, ALIKE if _all_agree(answers) else flat)
    return kappa


def _couples(answers: Answers) -> tuple[Integers, Integers, Integers, Integers]:
    """(pair, who, point of the one, point of the other) for every two ratings of a pair; `who` numbers two raters."""
    points, raters = answers.slots()
    parts = []
    for i, j in itertools.combinations(range(points.shape[1]), 2):
        pair = np.flatnonzero(points[:, j] >= 0)
        swap = raters[pair, i] > raters[pair, j]  # two raters in one order, whoever came first
        ends = np.where(swap, j, i), np.where(swap, i, j)
        a, b = (raters[pair, end] for end in ends)
        parts.append((pair, a * (int(raters.max()) + 1) + b, points[pair, ends[0]], points[pair, ends[1]]))
    pair, who, first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
    return pair, pd.factorize(who)[0], first, second


def _kappas(couple: Integers, first: Floats, second: Floats) -> tuple[Floats, Integers, Floats]:
    """Return each two raters' kappa, the number of pairs they share, and kappa without each of these pairs.

    Squared differences of all ratings of the one and all of the other sum to n sum x^2 + n sum y^2 - 2 sum x sum y.
    """
    shared = np.bincount(couple)
    sums = [np.bincount(couple, numbers) for numbers in (first, second, first**2, second**2)]
    pair_distance = (first - second) ** 2
    observed = np.bincount(couple, pair_distance)
    expected = shared * (sums[2] + sums[3]) - 2 * sums[0] * sums[1]
    of_first, of_second, squares_first, squares_second = (numbers[couple] for numbers in sums)
    n = shared[couple]
    chance_first = n * first**2 - 2 * first * of_second + squares_second  # the one's rating beside all of the other's
    chance_second = n * second**2 - 2 * second * of_first + squares_first
    rest = expected[couple] - chance_first - chance_second + pair_distance
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = np.where(expected > _NO_ERROR, 1 - observed * shared / expected, np.nan)
        without = np.where(rest > _NO_ERROR, 1 - (observed[couple] - pair_distance) * (n - 1) / rest, np.nan)
    return kappas, shared, without
