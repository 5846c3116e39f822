"""Systems side by side: whose outputs of the same originals people rate better, and how surely."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from annotation.statistics.shared_blocks import EQUAL, LEAST, Couple, DifferenceLook, SharedBlocks
from plumbline.frames import filled, numbers, that_count, with_names
from plumbline.statistics.estimates import (
    CONFIDENCE,
    Floats,
    Mean,
    adding_raters,
    over_pairs,
    p_with_raters,
    spread_over_pairs,
)
from plumbline.statistics.paired import holm, letter_display

Over = Literal["pairs", "pairs_and_raters"]
RANKS = ("rank", "rank_low", "rank_high")
SYSTEMS = ("question", "system", "n", "mean", *RANKS, "group")
DIFFERENCES = ("question", "system", "other", "n", "difference", "low", "high", "p", "p_holm")
SHARES = ("better", "equal", "worse")
_NO_BETTER_END = "no rule says which end is the better one, so there is no rank"  #: of a label's share


@dataclass(frozen=True)
class SideBySide:
    """Systems compared on the same originals; see `side_by_side` for the columns."""

    systems: pd.DataFrame
    differences: pd.DataFrame
    looks: Mapping[tuple[str, ...], Sequence[DifferenceLook]] = field(default_factory=dict)  #: after blocks
    over: Over = "pairs"  #: what is a sample
    lower: frozenset[str] = frozenset()  #: questions whose lower numbers are the better ones
    unruled: Mapping[str, str] = field(default_factory=dict)  #: labels without a better end, with their questions
    excluded: int = 0  #: raters of a study whose ratings people excluded


def side_by_side(  # noqa: PLR0913 (five of them name columns)
    ratings: pd.DataFrame,
    *,
    over: Over = "pairs",
    lower_is_better: Collection[str] = (),
    system: str = "system",
    original: str = "original",
    rater: str = "rater_id",
    question: str = "question",
    value: str = "value",
) -> SideBySide:
    """Compare systems by people's ratings of their outputs of the same originals.

    The ratings of one system's output of an original give one mean; two systems differ by the mean of the differences
    over the originals that both have. Its interval and p are the paired t-test's, with the originals as a sample; with
    the raters too, those of `p_with_raters`. Both are undefined where the systems differ on fewer than 6 originals, and
    p is at least 2 ** (1 - n), the least that n differences of one sign can give, and just that where all are equal.
    Holm's correction is for all pairs of systems of a question; languages are compared apart. A rank's interval goes
    from one more than the systems told apart as better to the number of systems less those told apart as worse: with
    95% confidence all ranks lie in theirs at once. Systems that share a letter (`group`) are not told apart.

    Args:
        ratings: a row each: the system, the original, the rater, the question, and a number. As in a study's
            `ratings.parquet`, `status`, `excluded`, `withdrawn` and `surplus` decide which count, if there.
        over: what is a sample: the originals, with raters taken as fixed, or originals and raters.
        lower_is_better: questions whose lower numbers are the better ones.
        system: the column of systems.
        original: the column of originals.
        rater: the column of raters.
        question: the column of questions.
        value: the column of numbers.

    Returns:
        Two frames. `systems`: question, system, n (originals that all systems have), mean (over these), rank (one more
        than the systems that are better by `difference`: that of the mean where all have the same originals),
        rank_low, rank_high, group, reason. `differences`: question, system, other, n (originals that both have),
        difference (of the means, in points), low, high, p, p_holm, better, equal, worse (shares of the originals on
        which the system is), reason. NaN with the reason where a number is undefined.

    Raises:
        ValueError: a column is missing, or a value is no number.

    Source: Student's paired t-test; raters as a sample: Cochran and Cox (1957), Experimental Designs, 2nd ed., section
    4.14; Holm (1979), Scand. J. Stat. 6, 65-70; ranks: Al Mohamad, Goeman and van Zwet (2022), Biometrics 78, 157-168;
    letters: Piepho (2004), J. Comput. Graph. Stat. 13, 456-466. The bound of p is ours.

    >>> import pandas as pd
    >>> from annotation import side_by_side
    >>> points = {"A": [5, 4, 4, 5, 3, 4, 5, 4], "B": [3, 3, 4, 4, 2, 2, 4, 3]}
    >>> ratings = pd.DataFrame(
    ...     [(name, n, "ada", "quality", v) for name, values in points.items() for n, v in enumerate(values)],
    ...     columns=["system", "original", "rater_id", "question", "value"],
    ... )
    >>> row = side_by_side(ratings).differences.iloc[0]
    >>> print(f"{row['system']} - {row['other']} = {row['difference']:.2f} [{row['low']:.2f}, {row['high']:.2f}]")
    A - B = 1.12 [0.59, 1.66]
    """
    if over not in ("pairs", "pairs_and_raters"):
        raise ValueError(f"over must be 'pairs' or 'pairs_and_raters', not {over!r}")
    names = {"system": system, "original": original, "rater_id": rater, "question": question, "value": value}
    counting = that_count(with_names(ratings, "ratings", **names))
    filled(counting, list(names), "ratings")
    counting = counting.assign(value=numbers(counting["value"], "ratings"))
    return compared_by(counting, over, lower_is_better)


def compared_by(
    ratings: pd.DataFrame,
    over: Over,
    lower_is_better: Collection[str] = (),
    blocks: SharedBlocks | None = None,
    unruled: Mapping[str, str] = MappingProxyType({}),
) -> SideBySide:
    """Compare systems as `side_by_side` does, by ratings that count; with `blocks`, after each of them.

    With blocks an interval is the repeated one of the last look, p that of all looks so far (`error_reached`), so both
    hold whatever stops the campaign, and means are over the originals of the blocks that are complete for all systems.

    `unruled` are names of `question` without a better end, which get no rank, with what they are labels of: Holm's
    correction is for all labels of one together.
    """
    comparisons = dict[str, _RatingComparison]()
    looks = dict[tuple[str, ...], Sequence[DifferenceLook]]()
    for name, rows in ratings.groupby("question", sort=False, observed=True):
        sign = -1 if name in lower_is_better else 1
        if blocks is None:
            comparisons[str(name)] = _RatingComparison(rows, over, sign)
        else:
            comparisons[str(name)] = of_blocks = _BlockComparison(rows, sign, blocks)
            looks |= {(str(name), *couple): of_couple for couple, of_couple in of_blocks.looks.items()}
    for labelled in set(unruled.values()):
        _correct([compared for name, compared in comparisons.items() if unruled.get(name) == labelled])
    differences = [{"question": name, **row} for name, compared in comparisons.items() for row in compared.differences]
    systems = [{"question": name, **row} for name, compared in comparisons.items() for row in compared.systems()]
    for row in systems:
        if row["question"] in unruled:
            row.update(dict.fromkeys(RANKS, math.nan), reason=row["reason"] or _NO_BETTER_END)
    return SideBySide(
        pd.DataFrame(systems, columns=[*SYSTEMS, "reason"]),
        pd.DataFrame(differences, columns=[*DIFFERENCES, *SHARES, "reason", *([] if blocks is None else ["look"])]),
        looks,
        over,
        frozenset(comparisons) & frozenset(lower_is_better),
        {name: labelled for name, labelled in unruled.items() if name in comparisons},
    )


class Comparison:
    """The systems of one question, the best first, compared two by two; a subclass knows how two differ.

    `sign` is -1 where lower numbers are better.
    """

    together: ClassVar[str]  #: the reason where two were not compared

    def __init__(self, order: Sequence[Hashable], over: Over, sign: int = 1) -> None:
        self._over, self._sign = over, sign
        self.n_better = dict.fromkeys(order, 0)
        for first, second in itertools.combinations(order, 2):
            gain = sign * self.ahead(first, second)
            self.n_better[second] += gain > EQUAL
            self.n_better[first] += gain < -EQUAL
        self.order = sorted(order, key=self.n_better.__getitem__)
        self.differences = [self._difference(*both) for both in itertools.combinations(self.order, 2)]
        _correct([self])

    def every_p(self) -> list[float]:
        """Return the p of each difference, for Holm's correction."""
        return [row["p"] for row in self.differences]

    def ahead(self, first: Hashable, second: Hashable) -> float:
        """Return a number with the sign of the difference of two systems; 0 if neither is known to be ahead."""
        return float(self.of_originals(first, second).sum())

    def of_originals(self, first: Hashable, second: Hashable) -> Floats:
        """Return the difference of two systems on each original that both have."""
        raise NotImplementedError

    def of_raters(self, first: Hashable, second: Hashable) -> Floats:
        """Return each rater's sum of differences of two systems, and their number: raters by 2."""
        raise NotImplementedError

    def _difference(self, first: Hashable, second: Hashable) -> dict[str, Any]:
        difference = self.of_originals(first, second)
        gain, n_unequal = self._sign * difference, int((np.abs(difference) > EQUAL).sum())
        row = {"system": first, "other": second, "n": len(difference)}
        row |= dict.fromkeys(("difference", "low", "high", "p", "p_holm", *SHARES), math.nan)
        if not len(difference):
            return row | {"reason": self.together}
        shares = (gain > EQUAL).mean(), (np.abs(gain) <= EQUAL).mean(), (gain < -EQUAL).mean()
        row |= {"difference": difference.mean(), **dict(zip(SHARES, shares, strict=True))}
        if n_unequal < LEAST:
            return row | {"reason": f"the two differ on {n_unequal} originals, and fewer than {LEAST} say too little"}
        ones, p_least = np.ones(len(difference)), 2.0 ** (1 - n_unequal)
        mean, alike = over_pairs(difference, ones), np.ptp(difference) < EQUAL
        if self._over != "pairs":
            raters = self.of_raters(first, second)
            spread, (sums, counts) = spread_over_pairs(difference, ones), raters.T
            mean = adding_raters(mean, spread, sums, counts) if len(raters) else Mean(*[np.array(math.nan)] * 3)
            p_least = max(p_least, 2.0 ** (1 - len(raters))) if alike else p_least
        above = float(mean.at_least(0.0))
        p = 2 * min(above, 1 - above)
        if math.isnan(above):
            why = "all differences are equal" if alike else "too few raters rated outputs of both"
            return row | {"p": p_least if alike else math.nan, "reason": f"{why}, so there is no interval"}
        if self._over != "pairs":
            variances = float(spread), max(float(mean.error) ** 2 - float(spread), 0.0)
            effective = counts.sum() ** 2 / (counts**2).sum()
            p = p_with_raters(float(mean.value / mean.error), variances, (len(difference) - 1, effective - 1))
        return row | {"low": float(mean.low), "high": float(mean.high), "p": max(p, p_least), "reason": ""}

    def places(self) -> Iterator[dict[str, Any]]:
        """Yield the systems, each with the interval of its rank and its letters."""
        apart = [row for row in self.differences if row["p_holm"] < 1 - CONFIDENCE]
        ends = [(row["system"], row["other"]) for row in apart]
        winners = [
            pair if self._sign * row["difference"] > 0 else pair[::-1] for row, pair in zip(apart, ends, strict=True)
        ]
        better, worse = [loser for _, loser in winners], [winner for winner, _ in winners]
        letters = letter_display(list(map(str, self.order)), [(str(first), str(second)) for first, second in ends])
        for system in self.order:
            yield {
                "system": system,
                "rank_low": 1 + better.count(system),
                "rank_high": len(self.order) - worse.count(system),
                "group": letters[str(system)],
            }


def _correct(comparisons: Sequence[Comparison]) -> None:
    """Set the p of all differences by Holm's correction for all of them together."""
    every_p = itertools.chain.from_iterable(compared.every_p() for compared in comparisons)
    rows = itertools.chain.from_iterable(compared.differences for compared in comparisons)
    for row, adjusted in zip(rows, holm(list(every_p)), strict=True):
        row["p_holm"] = math.nan if math.isnan(row["p"]) else adjusted


class _RatingComparison(Comparison):
    """Systems whose outputs were rated."""

    together = "no original has enough ratings for both"

    def __init__(self, ratings: pd.DataFrame, over: Over, sign: int) -> None:
        self._ratings = ratings
        self._grid = ratings.pivot_table("value", "original", "system", observed=True).astype(float)
        self._shared = self.among_all(self._grid.dropna())
        means = (self._shared if len(self._shared) else self._grid).mean()
        super().__init__(list((sign * means).sort_values(ascending=False, kind="stable").index), over, sign)

    def among_all(self, shared: pd.DataFrame) -> pd.DataFrame:
        """Return the originals of all systems over which means are taken."""
        return shared

    def of_both(self, first: Hashable, second: Hashable) -> pd.Series:
        """Return the difference of two systems by original."""
        return (self._grid[first] - self._grid[second]).dropna()

    def of_originals(self, first: Hashable, second: Hashable) -> Floats:
        differences: Floats = self._grid[first].to_numpy() - self._grid[second].to_numpy()
        return differences[~np.isnan(differences)]

    @cached_property
    def _by_rater(self) -> pd.DataFrame:
        return self._ratings.pivot_table("value", ["rater_id", "original"], "system")

    def of_raters(self, first: Hashable, second: Hashable) -> Floats:
        differences = (self._by_rater[first] - self._by_rater[second]).dropna()
        return differences.groupby("rater_id").agg(["sum", "size"]).to_numpy(np.float64)

    def systems(self) -> Iterator[dict[str, Any]]:
        """Yield the systems, the best first."""
        for row in self.places():
            system = row["system"]
            yield row | {
                "n": len(self._shared),
                "mean": self._shared[system].mean() if len(self._shared) else math.nan,
                "rank": 1 + self.n_better[system] if len(self._shared) else math.nan,
                "reason": "" if len(self._shared) else "no original has enough ratings for all systems",
            }


class _BlockComparison(_RatingComparison):
    """Systems whose outputs were rated in blocks of originals that they share."""

    def __init__(self, ratings: pd.DataFrame, sign: int, blocks: SharedBlocks) -> None:
        self._blocks, self._question = blocks, str(ratings["question"].iloc[0])
        self.looks = dict[Couple, Sequence[DifferenceLook]]()
        super().__init__(ratings, "pairs", sign)

    def among_all(self, shared: pd.DataFrame) -> pd.DataFrame:
        return shared[self._blocks.up_to(min(self._blocks.complete.values(), default=0), shared.index)]

    def of_originals(self, first: Hashable, second: Hashable) -> Floats:
        differences = self.of_both(first, second)
        n_looks = self._blocks.complete[_couple(first, second)]
        return differences[self._blocks.up_to(n_looks, differences.index)].to_numpy(np.float64)

    def every_p(self) -> list[float]:
        """Return the p of each difference; 1 for one that has none yet, as it may have one after the next block."""
        return [1.0 if math.isnan(p) else p for p in super().every_p()]

    def _difference(self, first: Hashable, second: Hashable) -> dict[str, Any]:
        couple = _couple(first, second)
        self.looks[couple] = looks = self._blocks.looks(couple, self._question, self.of_both(*couple))
        row = super()._difference(first, second) | {"look": len(looks)}
        if not looks:
            return row | {"reason": "no block is complete"}
        if math.isnan(row["p"]):
            return row
        low, high = (-looks[-1].high, -looks[-1].low) if couple[0] != first else (looks[-1].low, looks[-1].high)
        return row | {"low": low, "high": high, "p": self._blocks.p(looks)}


def _couple(first: Hashable, second: Hashable) -> Couple:
    return min(str(first), str(second)), max(str(first), str(second))
