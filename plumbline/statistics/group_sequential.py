"""Group sequential tests of bounded means: look after each block of pairs, and stop once all means are decided.

At each look both sides of a limit are tested. The levels of the looks come from an alpha-spending function (Lan and
DeMets), so that the looks together err as rarely as a single look would; the p-values go by the empirical likelihood on
a bounded scale, so that the test keeps its level with twenty skewed ratings. Error spent at an earlier look stays
spent, whatever happens to its ratings.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import filled, numbers, with_names
from plumbline.importing import scipy
from plumbline.statistics.estimates import CONFIDENCE, Estimate, Floats

#: Spending functions, from the earliest stops to the most power: `pocock` spends almost evenly, `quadratic` by the
#: square of the share of pairs, `obrien_fleming` saves nearly all for the last look.
Spending = Literal["pocock", "quadratic", "obrien_fleming"]
Side = Literal["at_least", "at_most"]
ALPHA = (1 - CONFIDENCE) / 2  #: error on each side
FEWEST = 8  #: fewest pairs at a look for a p-value
FEW = f"fewer than {FEWEST} pairs say too little about the mean"  #: why there is no interval
_NODES = 200  # step for integrating the score between looks
_REACH = 9.0  # range of scores in standard errors
_ROUNDING = 1e-9  # of a mean
_LEAST_STEP = 1e-14  # of the error that a look may spend
_HALVINGS = 24  # steps until the best bet is known to 1e-7 and its gain to 1e-14
_ERRORS = 16  # for which the level of a look is computed; others are interpolated
_DULL = 0.3  # p-value of a side that no error worth a look reaches
_EXACT = 1e-10  # of an interval's end


@dataclass(frozen=True)
class Criterion:
    """The limit that a question's mean must reach, or must not exceed. A label's share is a mean of 0 and 1.

    Raises ValueError where the limit is not within the scale.

    >>> from annotation import Criterion
    >>> Criterion(6, scale=(1, 5))
    Traceback (most recent call last):
    ValueError: the threshold 6 is not within the scale, 1 to 5
    """

    limit: float
    scale: tuple[float, float]  #: smallest and largest value
    side: Side = "at_least"  #: on which side of the limit the mean must lie

    def __post_init__(self) -> None:
        bottom, top = self.scale
        if not bottom < self.limit < top:
            raise ValueError(f"the threshold {self.limit:g} is not within the scale, {bottom:g} to {top:g}")


@dataclass(frozen=True)
class Blocks:
    """A rule for looks after blocks of pairs; fix it before anybody rates.

    Raises ValueError where blocks do not rise or begin below 8 pairs, or a limit is not within its scale.

    >>> from annotation import Blocks
    >>> Blocks((20, 40, 60, 80, 100), 3.0, (1, 5)).levels(2).round(4).tolist()
    [0.0074, 0.0076]
    """

    ends: Sequence[int]  #: pairs up to each look, rising; the last is the campaign's maximum
    threshold: float = math.nan  #: limit for questions without their own criterion
    scale: tuple[float, float] = (math.nan, math.nan)  #: smallest and largest rating of these questions
    spending: Spending = "pocock"  #: how early the error is spent
    criteria: Mapping[str, Criterion] = field(default_factory=dict)  #: criteria of questions that have their own

    def __post_init__(self) -> None:
        ends = list(self.ends)
        if not ends or ends[0] < FEWEST or any(later <= earlier for earlier, later in itertools.pairwise(ends)):
            raise ValueError(f"blocks must rise from at least {FEWEST} pairs; these are {ends}")
        if not self.criteria or not math.isnan(self.threshold):
            Criterion(self.threshold, self.scale)

    def criterion(self, question: str) -> Criterion:
        """Return a question's criterion. Raises ValueError for a question without one."""
        if question not in self.criteria and math.isnan(self.threshold):
            raise ValueError(f"no criterion for {question!r}; known: {', '.join(self.criteria)}")
        return self.criteria.get(question) or Criterion(self.threshold, self.scale)

    def levels(self, looks: int, pairs: Sequence[int] = ()) -> Floats:
        """Return the one-sided levels of the first looks: a p-value at most this decides.

        The error is spent by the planned share of pairs; `pairs` are those that count at each look, where some were
        withdrawn: they determine the overlap of a look with earlier ones.
        """
        if not looks:
            return np.empty(0)
        return levels(
            [end / self.ends[-1] for end in self.ends[:looks]], self.spending, information=list(pairs) or None
        )

    def increments(self) -> Floats:
        """Return what each look may spend by itself: such levels hold however looks are correlated (Bonferroni)."""
        return np.diff(spent([end / self.ends[-1] for end in self.ends], self.spending), prepend=0.0)


@dataclass(frozen=True)
class Path:
    """The looks at one mean: the mean at each, the limit it needed, and which look decided."""

    pairs: NDArray[np.int64]  #: pairs at each look
    means: Floats  #: mean at each look
    low: Floats  #: lower end of the repeated interval; these intervals hold at all looks at once
    high: Floats  #: upper end of the repeated interval
    levels: Floats  #: one-sided level of each look
    above: Floats  #: p-value of "the mean is at most the threshold" at each look
    below: Floats  #: p-value of "the mean is at least the threshold" at each look

    def until(self, n_looks: int) -> Path:
        """Return the first looks alone."""
        return Path(*(getattr(self, field.name)[:n_looks] for field in fields(self)))

    def then(self, later: Path) -> Path:
        """Return these looks and those after them."""
        return Path(*(np.append(getattr(self, field.name), getattr(later, field.name)) for field in fields(self)))

    def outcome(self, look: int, criterion: Criterion) -> str:
        """Return a look's outcome (from 1): accepted, rejected or undecided."""
        above, below = (p[look - 1] <= self.levels[look - 1] for p in (self.above, self.below))
        accepts, rejects = (above, below) if criterion.side == "at_least" else (below, above)
        return "accepted" if accepts else "rejected" if rejects else "undecided"


_NO_LOOKS = Path(np.empty(0, dtype=np.int64), *[np.empty(0)] * 6)


@dataclass(frozen=True)
class Looks:
    """The looks at a campaign's blocks so far, over all questions."""

    paths: dict[str, Path]  #: looks at each question
    unbiased: dict[str, Estimate]  #: each question's mean at the last look, without the bias of stopping
    reached: dict[str, float]  #: each question's P for `at_least` at the last look, by the stage-wise order
    pairs: int  #: pairs that count: those of the blocks up to the last look
    decision: str  #: outcome of the last look: accepted, rejected or undecided; undecided before the first look

    def frame(self) -> pd.DataFrame:
        """Return a row per look and question: look, question, pairs, mean, low, high, level, p_above, p_below."""
        rows = [
            {"look": look, "question": question, **dict(zip(_COLUMNS, values, strict=True))}
            for question, path in self.paths.items()
            for look, values in enumerate(
                zip(*(getattr(path, field.name).tolist() for field in fields(path)), strict=True), 1
            )
        ]
        return pd.DataFrame(rows, columns=["look", "question", *_COLUMNS]).sort_values("look", kind="stable")


_COLUMNS = ("pairs", "mean", "low", "high", "level", "p_above", "p_below")  # columns for a path's fields, in order


def looks(  # noqa: PLR0913 (four of them name columns)
    ratings: pd.DataFrame,
    blocks: Blocks,
    *,
    without: Collection[int] = (),
    past: pd.DataFrame | None = None,
    order: str = "order",
    pair: str = "pair_id",
    question: str = "question",
    value: str = "value",
) -> Looks:
    """Test the means of ratings after each block of pairs, and return whether they are decided.

    Fix the blocks before anybody rates, draw the order of the pairs at random, and rate block after block: stop at the
    first look that decides; ratings after it play no part. The error on each side of the threshold is at most 2.5% over
    all looks, for each question; all must hold for acceptance. A block counts once each of its pairs is rated on every
    question, or is known to stay unrated (`without`).

    A campaign whose ratings may change after a look (raters excluded, pairs withdrawn, answers edited) gives the looks
    that it took, in `past`. They stand as they were: one that did not decide is not taken again, and what it spent
    does not come back. A look that decided must still decide on the ratings that count now, or the campaign goes on. If
    pairs or means of an earlier look have changed, each later look has as its level only what it may spend by itself.

    Args:
        ratings: a row each: the pair, its place in the random order (`order`, 1 for the first), the question and a
            number (`value`); for a label's share 1 where an answer has it and 0 where not.
        blocks: pairs up to each look, what the means must reach, and spending.
        without: places of pairs that are withdrawn or given up, for reasons other than their ratings; such ratings
            play no part.
        past: `frame()` of the looks that this campaign has taken.
        order: the column of places.
        pair: the column of pairs.
        question: the column of questions.
        value: the column of numbers.

    Returns:
        The looks at complete blocks, their decision, and means without the bias of stopping early.

    Raises:
        ValueError: a column is missing, a value is beyond the scale, a pair has two places or two pairs have one, or
            the looks taken are not of these questions.

    Source: Jennison and Turnbull (2000), Group Sequential Methods; Lan and DeMets (1989), Biometrics 45, 1017-1020 (the
    error is spent by planned shares); Owen (1990), Ann. Stat. 18, 90-120.

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
    [{'look': 1, 'pairs': 20, 'mean': 4.17, 'low': 3.48}]
    """
    frame = with_names(ratings, "ratings", pair_id=pair, order=order, question=question, value=value)
    means = _pair_means(frame, blocks, [] if past is None else past["question"].unique().tolist())
    values = {str(name): means[name].to_numpy(np.float64) for name in means}
    excluded = means.index.isin(list(without))
    rated = means.notna().all(axis=1).to_numpy() & ~excluded
    complete = sum(bool((rated | excluded)[:end].all()) for end in blocks.ends) if values else 0
    data = BlockData(values, [rated & (means.index <= end) for end in blocks.ends], complete)
    taken = dict[str, Path]()
    if past is not None:
        for name in values:
            rows = past[past["question"] == name].sort_values("look")
            pairs, *columns = (rows[column].to_numpy(np.float64) for column in _COLUMNS)
            taken[name] = Path(pairs.astype(np.int64), *columns)
    return take_looks(data, blocks, taken)


def _pair_means(ratings: pd.DataFrame, blocks: Blocks, past: Sequence[str]) -> pd.DataFrame:
    """Return the pairs' means, a row per place and a column per question; NaN where there is no rating."""
    filled(ratings, ["pair_id", "order", "question", "value"], "ratings")
    ratings = ratings.assign(value=numbers(ratings["value"], "ratings"), question=ratings["question"].astype(str))
    for name, values in ratings.groupby("question")["value"]:
        scale = blocks.criterion(str(name)).scale
        if not values.between(*scale).all():
            raise ValueError("ratings: a value lies beyond the scale, {:g} to {:g}".format(*scale))
    places = ratings[["pair_id", "order"]].drop_duplicates()
    if places["pair_id"].duplicated().any() or places["order"].duplicated().any():
        raise ValueError("ratings: each pair must have exactly one place in the order, and each place one pair")
    means = ratings.pivot_table(index="order", columns="question", values="value", aggfunc="mean")
    questions = sorted({*means.columns, *blocks.criteria, *past})
    if past and (new := set(questions) - set(past)):
        raise ValueError(f"the looks taken do not include {min(new)}, which has ratings or a criterion")
    return means.reindex(index=range(1, blocks.ends[-1] + 1), columns=questions)


@dataclass(frozen=True)
class BlockData:
    """The pairs' means that looks test, and which pairs count."""

    values: Mapping[str, Floats]  #: each question's means of pairs, in order; NaN where there is none
    counting: Sequence[NDArray[np.bool_]]  #: pairs that count at each look
    complete: int  #: number of complete blocks
    able: Sequence[bool] = ()  #: whether each look may decide; empty: every look may


def take_looks(data: BlockData, blocks: Blocks, past: Mapping[str, Path], decision: str | None = None) -> Looks:
    """Continue the looks already taken with those at further complete blocks, up to the first that decides.

    Args:
        data: the data that counts now.
        blocks: the rule, with a criterion for each question.
        past: earlier looks at each question.
        decision: the outcome of the last of them (default: computed from their numbers).

    Returns:
        As `looks`, which takes ratings.

    Source: as there.

    >>> import numpy as np
    >>> seen = BlockData({"quality": np.tile([4.0, 5.0], 10)}, [np.ones(20, bool)], 1)
    >>> take_looks(seen, Blocks((20,), 3.0, (1, 5)), {}).decision
    'accepted'
    """
    return _Campaign(data, blocks).looks(past, decision) if data.values else Looks({}, {}, {}, 0, "undecided")


class _Campaign:
    """The looks at a campaign by a rule."""

    def __init__(self, data: BlockData, blocks: Blocks) -> None:
        self.values, self._counting, self._complete, self._able = data.values, data.counting, data.complete, data.able
        self._blocks, self._criteria = blocks, {name: blocks.criterion(name) for name in self.values}

    def looks(self, past: Mapping[str, Path], decision: str | None) -> Looks:
        """Return the looks as `take_looks` does."""
        past = {name: past.get(name, _NO_LOOKS) for name in self.values}
        n_taken = min(len(path.pairs) for path in past.values())
        decision = (decision or self._decision(past, n_taken)) if n_taken else "undecided"
        changed = any(self._differs(path, name) for name, path in past.items())
        paths = {name: path.until(n_taken) for name, path in past.items()}
        if decision == "undecided" or changed:
            # a look that decided must still decide on the ratings that count now
            stay = n_taken - (decision != "undecided")
            paths, decision = self._continued(past, stay, max(n_taken, self._complete), changed=changed)
        n_looks = len(next(iter(paths.values())).pairs)
        if not n_looks:
            undefined = Estimate.undefined("no block is complete")
            return Looks(paths, dict.fromkeys(paths, undefined), dict.fromkeys(paths, math.nan), 0, decision)
        return Looks(
            paths,
            {name: self._unbiased(name, paths, n_looks) for name in paths},
            {name: self._reached(path, changed=changed) for name, path in paths.items()},
            max(int(path.pairs[-1]) for path in paths.values()),
            decision,
        )

    def _continued(
        self, past: Mapping[str, Path], stay: int, reach: int, *, changed: bool
    ) -> tuple[dict[str, Path], str]:
        """Return the looks with those after the first `stay`, up to the first that decides, and its decision."""
        limits = self._levels(past, reach, changed=changed)
        paths = {
            name: path.until(stay).then(_path(self._seen(name, stay, reach), limits[stay:], self._criteria[name]))
            for name, path in past.items()
        }
        for look in range(stay + 1, reach + 1):
            decision = self._decision(paths, look)
            if decision != "undecided" and (not self._able or self._able[look - 1]):
                return {name: path.until(look) for name, path in paths.items()}, decision
        return paths, "undecided"

    def _seen(self, name: str, start: int, stop: int) -> list[Floats]:
        """Return the pairs' means of a question that count at these looks."""
        values = self.values[name]
        return [values[counting & ~np.isnan(values)] for counting in self._counting[start:stop]]

    def _decision(self, paths: Mapping[str, Path], look: int) -> str:
        """Return a look's decision (from 1) over all questions."""
        outcomes = {path.outcome(look, self._criteria[name]) for name, path in paths.items()}
        return next((outcome for outcome in ("rejected", "undecided") if outcome in outcomes), "accepted")

    def _differs(self, path: Path, name: str) -> bool:
        """Tell whether pairs or means of earlier looks have changed."""
        current = self._seen(name, 0, len(path.pairs))
        return any(
            len(values) != pairs or (pairs > 0 and abs(values.mean() - mean) > _ROUNDING)
            for values, pairs, mean in zip(current, path.pairs, path.means, strict=True)
        )

    def _levels(self, past: Mapping[str, Path], looks: int, *, changed: bool) -> Floats:
        """Return the one-sided levels of the first looks; looks already taken keep theirs."""
        pairs = [int(counting.sum()) for counting in self._counting[:looks]]
        if changed or (np.diff(pairs, prepend=0) <= 0).any():
            limits = self._blocks.increments()[:looks]
        else:
            limits = self._blocks.levels(looks, pairs)
        earlier = next((path.levels for path in past.values()), limits[:0])
        return np.append(earlier, limits[len(earlier) :])

    def _reached(self, path: Path, *, changed: bool) -> float:
        """Return P for a mean of at least the limit at the last look of a path."""
        pairs = path.pairs.tolist()
        if changed:  # how looks with changed ratings correlate is unknown
            earlier = float(self._blocks.increments()[: len(pairs) - 1].sum())
            above, below = earlier + path.above[-1], earlier + path.below[-1]
        else:
            above, below = (stage_wise(float(p[-1]), pairs, path.levels) for p in (path.above, path.below))
        return float(_either(above, below))

    def _unbiased(self, name: str, paths: Mapping[str, Path], n_looks: int) -> Estimate:
        """Return a question's mean without the bias of stopping."""
        decisive = [
            all(
                path.outcome(look, self._criteria[question]) == "accepted"
                for question, path in paths.items()
                if question != name
            )
            for look in range(1, n_looks)
        ]
        path, (values,) = paths[name], self._seen(name, n_looks - 1, n_looks)
        return unbiased_of(values, path.pairs.tolist(), path.levels, self._criteria[name], decisive)


def spent(fractions: Sequence[float] | Floats, spending: Spending, alpha: float = ALPHA) -> Floats:
    """Return the error that may be spent up to each look.

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
    shares = np.asarray(fractions, dtype=float)
    if spending == "pocock":
        errors: Floats = alpha * np.log1p((math.e - 1) * shares)
    elif spending == "quadratic":
        errors = alpha * shares**2
    else:
        errors = 2 * scipy.special.ndtr(scipy.special.ndtri(alpha / 2) / np.sqrt(shares))
    return errors


def bounds(
    fractions: Sequence[float] | Floats,
    spending: Spending,
    alpha: float = ALPHA,
    information: Sequence[int] | None = None,
) -> Floats:
    """Return the critical values of the looks for one side, in standard errors.

    A crossing of the other side does not loosen them. The density of the score among campaigns that go on is carried
    from look to look (recursive integration of Armitage, McPherson and Rowe), so the probability of crossing at any
    look is alpha where the mean is the threshold.

    Args:
        fractions: share of the planned pairs at each look, rising, at most 1; by it the error is spent.
        spending: name of the spending function.
        alpha: one-sided error of all looks together.
        information: pairs at each look, where these are not the planned ones; the error of a look depends on how much
            it has in common with those before.

    Returns:
        Critical values, a number for each look.

    Raises:
        ValueError: fractions do not rise from above 0 to at most 1, or pairs do not rise.

    Source: Jennison and Turnbull (2000), Group Sequential Methods, chapters 7 and 19; Lan and DeMets (1989), Biometrics
    45, 1017-1020.

    >>> bounds([0.2, 0.4, 0.6, 0.8, 1.0], "obrien_fleming").round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    shares = np.asarray(fractions, dtype=float)
    if not shares.size or shares[0] <= 0 or shares[-1] > 1 + 1e-12 or (np.diff(shares) <= 0).any():
        raise ValueError(f"fractions of looks must rise from above 0 to at most 1; these are {shares.tolist()}")
    steps = np.diff(spent(shares, spending, alpha), prepend=0.0)
    pairs = shares if information is None else np.asarray(information, dtype=float)
    if len(pairs) != len(shares) or (np.diff(pairs, prepend=0.0) <= 0).any():
        raise ValueError(f"pairs must rise from look to look; these are {pairs.tolist()}")
    scores = _Scores(pairs / pairs[-1])
    values: list[float] = []
    for step in steps:
        # Below 1e-14 the integral is not reliable: such a look cannot stop.
        critical = (
            math.inf if step < _LEAST_STEP else scipy.optimize.brentq(scores.excess, -_REACH, _REACH, args=(step,))
        )
        values.append(critical)
        scores.go_on(-math.inf, critical)
    return np.array(values)


def levels(
    fractions: Sequence[float] | Floats,
    spending: Spending,
    alpha: float = ALPHA,
    information: Sequence[int] | None = None,
) -> Floats:
    """Return the one-sided level of each look: a p-value at most this stops.

    Args:
        fractions: share of the planned pairs at each look.
        spending: name of the spending function.
        alpha: one-sided error of all looks together.
        information: pairs at each look, where these are not the planned ones.

    Returns:
        Levels, a number for each look; a single look at all pairs has alpha itself.

    Source: Lan and DeMets (1983), Biometrika 70, 659-663.

    >>> levels([1.0], "pocock").round(4).tolist()
    [0.025]
    """
    return np.asarray(scipy.special.ndtr(-bounds(fractions, spending, alpha, information)))


def error_reached(p: float, shares: Sequence[float], pairs: Sequence[int], *, alone: bool = False) -> float:
    """Return the error of all looks together at which the p-value of the last of these looks is just at its level.

    The smallest over the looks so far is a p-value that holds whenever a campaign stops, since more looks can only make
    it smaller; so Holm's correction for several hypotheses holds too.

    Args:
        p: of one side, at the last of the looks.
        shares: of the planned pairs at each look so far, by which Pocock's function spends.
        pairs: that count at each look.
        alone: whether the look may only spend its own part of the error, which holds however looks are correlated.

    Returns:
        One-sided error, at most 0.5.

    Source: Liu and Anderson (2008), J. Am. Stat. Assoc. 103, 1621-1630 (sequential p-values); Maurer and Bretz (2013),
    Stat. Biopharm. Res. 5, 311-320, and Ye et al. (2013), Stat. Med. 32, 1112-1124 (several hypotheses).

    >>> shares, pairs = [0.2, 0.4, 0.6], [20, 40, 60]
    >>> level = float(levels(shares, "pocock")[-1])
    >>> round(error_reached(level, shares, pairs), 4), round(error_reached(level, shares, pairs, alone=True), 4)
    (0.025, 0.043)
    """
    if alone:
        return min(p / float(np.diff(spent(shares, "pocock", 1.0), prepend=0.0)[-1]), 0.5)
    if p >= _DULL:
        return 0.5
    least, error_at_least, curve = _errors_reached(tuple(shares), tuple(pairs))
    return p * error_at_least / least if p <= least else min(math.exp(curve(math.log(p))), 0.5)


@functools.lru_cache(maxsize=256)
def _errors_reached(shares: tuple[float, ...], pairs: tuple[int, ...]) -> tuple[float, float, np.polynomial.Polynomial]:
    """Return the last look's level under a tiny error of all looks, that error, and the errors by levels above it.

    Both are logarithms there, between which a smooth curve goes.
    """
    errors = np.geomspace(1e-7, 0.5, _ERRORS)
    reaching = np.array([levels(shares, "pocock", error, pairs)[-1] for error in errors])
    curve = np.polynomial.Polynomial.fit(np.log(reaching), np.log(errors), _ERRORS // 2)
    return float(reaching[0]), float(errors[0]), curve


def p_above(values: Floats, threshold: float | Floats, bottom: float) -> Floats:
    """Return the p-value of "the mean is at most the threshold", valid for skewed values of few pairs.

    K is the least divergence, for each pair, of the values from any distribution on the scale whose mean is the
    threshold: the empirical likelihood ratio, where values that no pair showed may exist at the bottom of the scale. It
    becomes Student's t as normal values would make it, t^2 = (n - 1) (exp(2 K) - 1): after twenty ratings of which a
    few are very low, t itself errs at three times its level. In addition p is at least the binomial probability of no
    more pairs at the bottom than there are, were so many there that they pull the mean down to the threshold; where all
    others have one value, as with shares on which raters agree, that is exact.

    Args:
        values: means of pairs that are drawn independently; campaigns by pairs.
        threshold: above the bottom of the scale; one, or one for each campaign.
        bottom: the smallest possible value. For the other side negate all three.

    Returns:
        A p-value for each campaign; NaN for fewer than 8 pairs, 0.5 where the mean is not above the threshold.

    Raises:
        ValueError: the threshold is not above the bottom, or a value is below it.

    Source: Owen (1990), Ann. Stat. 18, 90-120; Honda and Takemura (2010), COLT, 67-79 (K on a bounded scale); Clopper
    and Pearson (1934), Biometrika 26, 404-413.

    >>> import numpy as np
    >>> ratings = np.repeat([1.0, 4.0, 5.0], [3, 10, 7])
    >>> round(float(p_above(ratings, 3.0, 1.0)), 3)
    0.012
    """
    thresholds = np.asarray(threshold, dtype=float)
    if (thresholds <= bottom).any():
        raise ValueError(f"the threshold {thresholds.min():g} must be above the end of the scale, {bottom}")
    if (values < bottom - _ROUNDING).any():
        raise ValueError(f"a value lies beyond the end of the scale, {bottom:g}")
    if values.shape[-1] < FEWEST:
        return np.full(values.shape[:-1], np.nan)
    n = values.shape[-1]
    if values.ndim > 1:
        return _p(np.maximum(values, bottom), np.full(n, 1 / n), n, thresholds, bottom)
    distinct, counts = np.unique(np.maximum(values, bottom), return_counts=True)  # means of few ratings are often equal
    return _p(distinct, counts / n, n, thresholds, bottom)


def reached(values: Floats, limit: float, scale: tuple[float, float]) -> Floats:
    """Return P: 1 - p of "at most the limit" where the mean is above the limit, else p of "at least the limit".

    Args:
        values: means of pairs; campaigns by pairs.
        limit: within the scale.
        scale: smallest and largest possible value.

    Returns:
        P for each campaign, at least 0.975 where the lower end of `repeated_interval` at a level of 0.025
        reaches the limit, at most 0.025 where the upper end does not exceed it; NaN for fewer than 8 pairs.

    Source: as `p_above`.

    >>> import numpy as np
    >>> round(float(reached(np.repeat([1.0, 4.0, 5.0], [3, 10, 7]), 3.0, (1, 5))), 3)
    0.988
    """
    return _either(p_above(values, limit, scale[0]), p_above(-values, -limit, -scale[1]))


def _either(above: Floats | float, below: Floats | float) -> Floats:
    """Return P for a mean of at least the limit by the p-values of both sides, of which one at most is below 0.5."""
    return 0.5 + np.maximum(0.5 - np.asarray(above), 0) - np.maximum(0.5 - np.asarray(below), 0)


def lower_end(values: Floats, bottom: float, level: float) -> float:
    """Return the largest threshold that a campaign's values refute at this level.

    Args:
        values: means of pairs.
        bottom: the smallest possible value. For an upper end negate both, and the result.
        level: one-sided.

    Returns:
        Lower end of the mean; NaN for fewer than 8 pairs.

    Source: Owen (1990), Ann. Stat. 18, 90-120.

    >>> import numpy as np
    >>> round(lower_end(np.repeat([1.0, 4.0, 5.0], [3, 10, 7]), 1.0, 0.025), 2)
    3.12
    """
    if values.shape[-1] < FEWEST:
        return math.nan
    distinct, counts = np.unique(np.maximum(values, bottom), return_counts=True)
    shares = counts / len(values)

    def excess(threshold: float) -> float:
        return float(_p(distinct, shares, len(values), np.array(threshold), bottom)) - level

    mean = float(distinct @ shares)
    if mean <= bottom + _ROUNDING:
        return mean
    if excess(bottom) > 0:  # at the level of a look that cannot stop
        return bottom
    return _root(excess, bottom, mean)


@functools.lru_cache(maxsize=2_000)
def _lower_end(values: bytes, bottom: float, level: float) -> float:
    """Return `lower_end` of numbers' bytes; verdicts and the tables beside them ask for the same intervals."""
    return lower_end(np.frombuffer(values), bottom, level)


def _root(function: Callable[[float], float], a: float, b: float) -> float:
    """Return where a function is zero that has other signs at a and b, to within `_EXACT` or the numbers' precision.

    `scipy.optimize` has such functions, but its import takes as long as the rest of `status`.

    Source: Chandrupatla (1997), Advances in Engineering Software 28, 145-149.
    """
    at_a, at_b, share = function(a), function(b), 0.5
    while True:
        x = a + share * (b - a)
        at_x = function(x)
        if (at_x > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            b, at_b, c, at_c = a, at_a, b, at_b
        a, at_a = x, at_x
        least = max(_EXACT, 2**-50 * abs(a)) / abs(b - a)  # neighbours of large numbers lie further apart
        if at_a == 0 or least > 0.5:
            return a if abs(at_a) < abs(at_b) else b
        run, rise = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        share = 0.5
        if rise**2 < run and (1 - rise) ** 2 < 1 - run:  # a parabola through the points has one zero between them
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        share = min(max(share, least), 1 - least)


def _p(values: Floats, shares: Floats, n: int, threshold: Floats, bottom: float) -> Floats:
    """Compute `p_above` with a threshold for each campaign; the n pairs have these values in these shares."""
    mean, away = values @ shares, values - threshold[..., None]
    low, high = (
        np.zeros(away.shape[:-1]),
        np.broadcast_to(1 / np.maximum(threshold - bottom, _ROUNDING), away.shape[:-1]),
    )
    for _ in range(_HALVINGS):  # the sum of log(1 + bet away) is greatest where its slope is zero
        bet = (low + high) / 2
        rises = (away / (1 + bet[..., None] * away)) @ shares > 0
        low, high = np.where(rises, bet, low), np.where(rises, high, bet)
    divergence = np.maximum(np.log1p(low[..., None] * away) @ shares, 0)
    p = scipy.special.stdtr(n - 1, -np.sqrt((n - 1) * np.expm1(2 * divergence)))
    lowest = np.round((values <= bottom + _ROUNDING) @ shares * n)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((mean - threshold) / (mean - bottom), 0, 1)
        # number of pairs at the bottom that would pull the mean down to the threshold
        share += (1 - share) * lowest / n
    above: Floats = np.where(mean > threshold, np.maximum(p, scipy.special.bdtr(lowest, n, share)), 0.5)
    return above


def repeated_interval(
    values: Floats, scale: tuple[float, float], level: float, mean: float | None = None
) -> tuple[float, float]:
    """Return both ends of a look's interval; with the looks' levels, all intervals hold the mean together.

    Args:
        values: means of pairs.
        scale: smallest and largest possible value.
        level: one-sided level of the look.
        mean: a value that the interval must include, such as the mean of single ratings (default: none).

    Returns:
        Lower and upper end; NaN for fewer than 8 pairs.

    Source: Jennison and Turnbull (2000), Group Sequential Methods, chapter 9.

    >>> import numpy as np
    >>> low, high = repeated_interval(np.repeat([2.0, 4.0, 5.0], [3, 10, 7]), (1.0, 5.0), 0.001)
    >>> round(low, 2), round(high, 2)
    (3.16, 4.6)
    """
    (bottom, top), numbers = scale, np.asarray(values, np.float64)
    low, high = _lower_end(numbers.tobytes(), bottom, level), -_lower_end((-numbers).tobytes(), -top, level)
    return (low, high) if mean is None else (min(low, mean), max(high, mean))


def _path(means: Sequence[Floats], limits: Floats, criterion: Criterion) -> Path:
    """Return the path of looks at these pairs' means, at these levels."""
    limit, (bottom, top) = criterion.limit, criterion.scale
    ends = [repeated_interval(values, criterion.scale, level) for values, level in zip(means, limits, strict=True)]
    return Path(
        np.array([len(values) for values in means], dtype=np.int64),
        np.array([values.mean() if len(values) else math.nan for values in means]),
        np.array([low for low, _ in ends]),
        np.array([high for _, high in ends]),
        np.asarray(limits, dtype=float),
        np.array([float(p_above(values, limit, bottom)) for values in means]),
        np.array([float(p_above(-values, -limit, -top)) for values in means]),
    )


def outcomes(means: Sequence[Sequence[Floats]], limits: Floats, criteria: Sequence[Criterion]) -> NDArray[np.int64]:
    """Return the outcomes of looks at many campaigns over all questions: 1 accepts, -1 rejects, 0 neither.

    Args:
        means: at each look, for each question the means of pairs, campaigns by pairs.
        limits: one-sided level of each look; the last is at all pairs.
        criteria: of each question.

    Returns:
        Campaigns by looks.

    Source: `looks`, which says the same of a campaign.

    >>> import numpy as np
    >>> pairs = np.random.default_rng(1).choice([3.0, 4.0, 5.0], (2, 40))
    >>> outcomes([[pairs[:, :20]], [pairs]], levels([0.5, 1.0], "quadratic"), [Criterion(3.0, (1, 5))]).tolist()
    [[1, 1], [1, 1]]
    """
    by_look = []
    for questions, level in zip(means, limits, strict=True):
        holds, fails = [], []
        for values, criterion in zip(questions, criteria, strict=True):
            limit, (bottom, top) = criterion.limit, criterion.scale
            above, below = p_above(values, limit, bottom) <= level, p_above(-values, -limit, -top) <= level
            accepts, rejects = (above, below) if criterion.side == "at_least" else (below, above)
            holds.append(accepts)
            fails.append(rejects)
        by_look.append(np.where(np.any(fails, axis=0), -1, np.where(np.all(holds, axis=0), 1, 0)))
    return np.stack(by_look, axis=1)


def first(by_look: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first decision of each campaign.

    Args:
        by_look: of `outcomes`, campaigns by looks.

    Returns:
        (1 accepted, -1 rejected, 0 neither; the look from 0 on that said so, the last where none did).

    >>> first(np.array([[0, 1, 1], [0, 0, 0]]))
    (array([1, 0]), array([1, 2]))
    """
    look = np.where((by_look != 0).any(axis=1), (by_look != 0).argmax(axis=1), by_look.shape[1] - 1)
    return by_look[np.arange(len(by_look)), look], look


def stage_wise(p: float, pairs: Sequence[int], limits: Floats) -> float:
    """Return the p-value of a result after looks: P(a look before this one stops, or none does and this p or less).

    After a stop p itself is too small, as a stop is where p happened to be small. Results are ordered by the look at
    which they stop and by p within it. Scores are taken for normal, as in `bounds`. A stop of the other side, or of
    another question, makes the result no likelier.

    Args:
        p: of this side at the last look.
        pairs: how many count at each look; where they do not rise, the sum of all levels is the bound.
        limits: one-sided level of each look.

    Returns:
        A p-value, at most the error that may be spent up to the last look where p is at most its level; NaN for NaN.

    Source: Tsiatis, Rosner and Mehta (1984), Biometrics 40, 797-803.

    >>> limits = levels([0.2, 0.4, 0.6, 0.8, 1.0], "pocock")
    >>> round(stage_wise(0.007, [20], limits[:1]), 4), round(stage_wise(0.007, [20, 40, 60], limits[:3]), 4)
    (0.007, 0.017)
    """
    if (np.diff(pairs, prepend=0) <= 0).any():
        return float(np.sum(limits[:-1]) + p)
    scores, crossed = _Scores(np.array(pairs) / pairs[-1]), 0.0
    for bound in -scipy.special.ndtri(np.asarray(limits)[:-1]):
        crossed += scores.above(bound)
        scores.go_on(-math.inf, bound)
    return crossed + scores.above(-scipy.special.ndtri(p))


def unbiased_of(
    values: Floats, pairs: Sequence[int], limits: Floats, criterion: Criterion, decisive: Sequence[bool] = ()
) -> Estimate:
    """Return the mean after stopping at the last look, without the bias of having stopped there.

    A campaign stops early where its mean happens to be far from the threshold, so the plain mean lies too far from it.
    Results are ordered by the look at which they stop and by the mean within it; the estimate is the mean under which
    the result is in the middle, its interval holds the means under which it is in neither 2.5%. Scores are taken for
    normal, with the spread at the last look.

    Args:
        values: means of pairs up to the last look, in their order.
        pairs: how many count at each look; the last look is the one that stopped.
        limits: one-sided level of each look.
        criterion: what the mean must reach.
        decisive: for each earlier look whether acceptance hung on this mean alone, since all other questions held
            there; without any it always did.

    Returns:
        Median-unbiased mean with its 95% interval; NaN without spread, where an earlier look should have stopped, and
        where an earlier look saw pairs that no longer count.

    Source: Tsiatis, Rosner and Mehta (1984), Biometrics 40, 797-803; Jennison and Turnbull (2000), section 8.4.

    >>> import numpy as np
    >>> ratings = np.random.default_rng(1).choice([2.0, 3.0, 4.0, 5.0], 40)
    >>> limits = levels([0.2, 0.4], "pocock")
    >>> estimate = unbiased_of(ratings, [20, 40], limits, Criterion(3.0, (1, 5)))
    >>> round(float(ratings.mean()), 2), round(estimate.value, 2)
    (3.55, 3.51)
    """
    n, limit, (bottom, top) = len(values), criterion.limit, criterion.scale
    if n != pairs[-1] or (np.diff(pairs, prepend=0) <= 0).any():
        return Estimate.undefined("an earlier look saw pairs that no longer count", n)
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    if not error > 0:
        return Estimate.undefined("the pairs' means do not vary", n)
    earlier = pairs[:-1]
    past = list(zip((np.asarray(values[:end], dtype=float) for end in earlier), limits[:-1], strict=True))
    # A campaign that was to go on has a mean between these, for all that is seen of its spread.
    highs = [_stopping(block, limit, bottom, top, level) for block, level in past]
    lows = [-_stopping(-block, -limit, -top, -bottom, level) for block, level in past]
    for look, hung in enumerate(decisive):
        if not hung and criterion.side == "at_least":
            highs[look] = math.inf
        elif not hung:
            lows[look] = -math.inf
    shares = np.array(pairs) / n
    unit = error * math.sqrt(n)

    def at_least(true_mean: float) -> float:
        """Return P(a result at least as high as this) if this is the mean."""
        scores, crossed = _Scores(shares, (true_mean - limit) / error), 0.0
        for n_pairs, low, high in zip(earlier, lows, highs, strict=True):
            ends = [(end - limit) / unit * math.sqrt(n_pairs) for end in (low, high)]
            crossed += scores.above(ends[1])
            scores.go_on(*ends)
        return crossed + scores.above((mean - limit) / error)

    reach = (mean - 9 * error, mean + 9 * error)
    if not at_least(reach[0]) < ALPHA < 1 - ALPHA < at_least(reach[1]):
        return Estimate.undefined("an earlier look should have stopped the campaign", n)

    def where(probability: float) -> float:
        return float(scipy.optimize.brentq(lambda true: at_least(true) - probability, *reach))

    return Estimate(value=where(0.5), low=where(ALPHA), high=where(1 - ALPHA), n=n)


def _stopping(values: Floats, threshold: float, bottom: float, top: float, level: float) -> float:
    """Return the smallest mean that stops a look with this spread; infinite if none on the scale does."""
    least = threshold + float(values.mean()) - lower_end(values, bottom, level)
    return least if least < top else math.inf


@functools.cache
def _nodes() -> tuple[Floats, Floats]:
    """Gauss and Legendre's nodes and weights, which take a tenth of a second."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


class _Scores:
    """Distributions of the score over campaigns that continue, look by look, for a drift `drift` at all pairs."""

    def __init__(self, shares: Floats, drift: float = 0.0) -> None:
        self._shares, self._drift, self._look = shares, drift, 0
        self._points, self._masses = np.zeros(1), np.ones(1)  # density of the score at the previous look

    def above(self, z: float) -> float:
        """Return P(the campaign reaches this look and its score is at least z)."""
        return float(self._masses @ scipy.special.ndtr(-self._steps(z)))

    def excess(self, z: float, probability: float) -> float:
        """Return how far `above` exceeds a probability: zero at the critical value."""
        return self.above(z) - probability

    def go_on(self, low: float, high: float) -> None:
        """Continue to the next look with scores between these bounds."""
        share, previous = self._shares[self._look], self._before
        middle = self._drift * math.sqrt(share)
        start = max(low, middle - _REACH)
        half = max(min(high, middle + _REACH) - start, 0.0) / 2
        nodes, weights = _nodes()
        points = start + half * (1 + nodes)
        slope = math.sqrt(share / (2 * math.pi * (share - previous)))
        density = slope * np.exp(-(self._steps(points[:, None]) ** 2) / 2) @ self._masses
        self._points, self._masses = points, half * weights * density
        self._look += 1

    @property
    def _before(self) -> float:
        return float(self._shares[self._look - 1]) if self._look else 0.0

    def _steps(self, z: Floats | float) -> Floats:
        """Return what pairs since the previous look must add for a score of z, in standard errors."""
        share, previous = self._shares[self._look], self._before
        step = share - previous
        wanted: Floats = z * math.sqrt(share) - self._points * math.sqrt(previous) - self._drift * step
        return wanted / math.sqrt(step)
