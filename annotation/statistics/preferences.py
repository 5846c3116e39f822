"""Systems by preference: whose outputs people prefer, from choices between two, and how surely (Bradley-Terry)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.systems import SHARES, Comparison, Over, SideBySide
from plumbline.frames import filled, that_count, with_names
from plumbline.importing import evalica
from plumbline.statistics.estimates import Estimate, Floats, adding_raters, over_pairs, spread_over_pairs

COUNTS = ("wins", "ties", "losses")
SYSTEMS = ("question", "system", "n", *COUNTS, "score", "low", "high", "rank", "rank_low", "rank_high", "group")
CHOICES = ("question", "system", "other", "n", *COUNTS, *SHARES, "difference", "low", "high", "p", "p_holm")
_EQUAL = 1e-6  # scores that differ by less are equal


def bradley_terry(  # noqa: PLR0913 (six of them name columns)
    choices: pd.DataFrame,
    *,
    over: Over = "pairs",
    system: str = "system",
    opponent: str = "opponent",
    preferred: str = "preferred",
    original: str = "original",
    rater: str = "rater_id",
    question: str = "question",
) -> SideBySide:
    """Compare systems by people's choices between their outputs of the same originals.

    Ties are kept, as half a win for either. Bradley and Terry's scores b are the logarithms of strengths, with the sum
    0: by the model, the one system is preferred to the other with the chance 1 / (1 + exp(b_other - b)), a tie counted
    as half. Their intervals are Student's t over originals, with all choices about one, by the sandwich estimator, and
    do not suppose that the model holds; with raters as a sample too, the variance over raters is added.

    Two systems differ, on each original, by the share of choices for the one less that for the other. The mean of that
    over originals has the interval and p of the paired t-test, as `side_by_side` has for means; so have Holm's
    correction, the intervals of ranks and the letters. No p rests on the Bradley-Terry model.

    Args:
        choices: a row each: the two systems, which of them was preferred (empty for a tie), the original, the rater and
            the question. `status`, `excluded`, `withdrawn` and `surplus` decide which count, if there.
        over: what is a sample: the originals, with raters taken as fixed, or originals and raters.
        system: the column of the one system.
        opponent: the column of the other.
        preferred: the column of the preferred one of the two.
        original: the column of originals.
        rater: the column of raters.
        question: the column of questions.

    Returns:
        Two frames. `systems`: question, system, n (originals), wins, ties, losses (of choices), score, low, high, rank
        (one more than the systems preferred to it by `difference`, or by the score where nobody chose between the two),
        rank_low, rank_high, group, reason. `differences`: question, system, other, n (originals), wins,
        ties, losses, better, equal, worse (the same as shares of the choices), difference (of the shares of originals'
        choices), low, high, p, p_holm, reason. NaN with the reason where a number is undefined: a system that is
        always preferred to the others it met has no score, nor do systems that were never compared, directly or
        through others.

    Raises:
        ValueError: a column is missing, a system is compared with itself, or neither of the two is the preferred one.

    Source: Bradley and Terry (1952), Biometrika 39, 324-345, by evalica (Ustalov 2025), which counts ties as Zermelo's
    half wins; that scores exist: Ford (1957), The American Mathematical Monthly 64 (8), 28-33; the sandwich over
    clusters: Liang and Zeger (1986), Biometrika 73, 13-22; raters as a sample, and tests, as in `side_by_side`.

    >>> import pandas as pd
    >>> from annotation import bradley_terry
    >>> choices = pd.DataFrame({"preferred": ["A"] * 12 + ["B"] * 6 + [""] * 2}).rename_axis("original").reset_index()
    >>> choices = choices.assign(system="A", opponent="B", rater_id="ada", question="preference")
    >>> row = bradley_terry(choices).systems.iloc[0]
    >>> print(f"{row['system']}: {row['wins']} wins, {row['ties']} ties, {row['losses']} losses, {row['score']:.2f}")
    A: 12 wins, 2 ties, 6 losses, 0.31
    """
    if over not in ("pairs", "pairs_and_raters"):
        raise ValueError(f"over must be 'pairs' or 'pairs_and_raters', not {over!r}")
    names = {"system": system, "opponent": opponent, "preferred": preferred, "original": original}
    names |= {"rater_id": rater, "question": question}
    counting = that_count(with_names(choices, "choices", **names))
    filled(counting, [name for name in names if name != "preferred"], "choices")
    for_first = (counting["preferred"] == counting["system"]).to_numpy(bool)
    for_other = (counting["preferred"] == counting["opponent"]).to_numpy(bool)
    tied = (counting["preferred"].isna() | (counting["preferred"] == "")).to_numpy(bool)
    if (alone := (counting["system"] == counting["opponent"]).to_numpy(bool)).any():
        raise ValueError(f"choices: {counting['system'].iloc[alone.argmax()]!r} is compared with itself")
    if (neither := ~(for_first | for_other | tied)).any():
        named = counting["preferred"].iloc[neither.argmax()]
        raise ValueError(f"choices: {named!r} is preferred, but is neither of the two; leave it empty for a tie")
    counting = counting.assign(gain=for_first.astype(np.float64) - for_other)
    systems, differences = list[dict[str, Any]](), list[dict[str, Any]]()
    for name, rows in counting.groupby("question", sort=False, observed=True):
        compared = _ChoiceComparison(rows, over)
        differences += [{"question": name, **row} for row in compared.choices()]
        systems += [{"question": name, **row} for row in compared.systems()]
    return SideBySide(
        pd.DataFrame(systems, columns=[*SYSTEMS, "reason"]),
        pd.DataFrame(differences, columns=[*CHOICES, "reason"]),
        over=over,
    )


class _ChoiceComparison(Comparison):
    """Systems between whose outputs people chose."""

    together = "nobody chose between the two"

    def __init__(self, choices: pd.DataFrame, over: Over) -> None:
        codes, self._names = pd.factorize(choices[["system", "opponent"]].to_numpy(object).ravel())
        both = codes.reshape(-1, 2).T
        self._gain = np.where(both[0] < both[1], 1, -1) * choices["gain"].to_numpy(np.int64)
        self._first, self._second = both.min(axis=0), both.max(axis=0)
        self._original, self._rater = (pd.factorize(choices[name])[0] for name in ("original", "rater_id"))
        self._wins = np.zeros((len(self._names), len(self._names)))  # a tie is half a win for either
        np.add.at(self._wins, (self._first, self._second), (1 + self._gain) / 2)
        np.add.at(self._wins, (self._second, self._first), (1 - self._gain) / 2)
        self._scores = self._fitted()
        compared = self._wins + self._wins.T
        shares = np.divide(self._wins, compared, out=np.full_like(compared, np.nan), where=compared > 0)
        by = np.nanmean(shares, axis=1) if np.isnan(self._scores).any() else self._scores
        super().__init__([self._names[number] for number in np.argsort(-by, kind="stable")], over)

    def ahead(self, first: Hashable, second: Hashable) -> float:
        gain = super().ahead(first, second)
        if self._gains(first, second)[1].any():
            return gain
        by_score = np.subtract(*self._scores[[list(self._names).index(name) for name in (first, second)]])
        return float(by_score) if abs(by_score) > _EQUAL else 0.0

    def of_originals(self, first: Hashable, second: Hashable) -> Floats:
        gain, of_both = self._gains(first, second)
        original = pd.factorize(self._original[of_both])[0]
        return np.bincount(original, gain) / np.bincount(original)

    def of_raters(self, first: Hashable, second: Hashable) -> Floats:
        gain, of_both = self._gains(first, second)
        rater = pd.factorize(self._rater[of_both])[0]
        return np.stack([np.bincount(rater, gain), np.bincount(rater)], axis=1).astype(np.float64)

    def _gains(self, first: Hashable, second: Hashable) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return 1, 0 or -1 for each choice between two systems, and which of all choices these are."""
        number, opponent = map(list(self._names).index, (first, second))
        of_both = (self._first == min(number, opponent)) & (self._second == max(number, opponent))
        return self._gain[of_both] * (1 if number < opponent else -1), of_both

    def choices(self) -> Iterator[dict[str, Any]]:
        """Yield the differences with the numbers of wins, ties and losses, and their shares."""
        for row in self.differences:
            gain, _ = self._gains(row["system"], row["other"])
            counts = [int((gain == sign).sum()) for sign in (1, 0, -1)]
            shares = dict(zip(SHARES, np.divide(counts, len(gain)), strict=True)) if len(gain) else {}
            yield row | dict(zip(COUNTS, counts, strict=True)) | shares

    def systems(self) -> Iterator[dict[str, Any]]:
        """Yield the systems, the best first."""
        scores = dict(zip(self._names, self._estimates(), strict=True))
        for row in self.places():
            number = list(self._names).index(row["system"])
            sides = [self._gain[self._first == number], -self._gain[self._second == number]]
            gain, score = np.concatenate(sides), scores[row["system"]]
            opponents = {*self._first[self._second == number], *self._second[self._first == number]}
            has_rank = not math.isnan(score.value) or len(opponents) == len(self._names) - 1
            rank = 1 + self.n_better[row["system"]] if has_rank else math.nan
            yield row | {
                "n": len(np.unique(self._original[(self._first == number) | (self._second == number)])),
                **{name: int((gain == sign).sum()) for name, sign in zip(COUNTS, (1, 0, -1), strict=True)},
                **{"score": score.value, "low": score.low, "high": score.high, "rank": rank, "reason": score.reason},
            }

    def _estimates(self) -> Iterator[Estimate]:
        """Yield each system's score with its interval."""
        if why := self._unbounded():
            yield from [Estimate.undefined(why)] * len(self._names)
            return
        design = np.eye(len(self._names))[self._first] - np.eye(len(self._names))[self._second]
        expected = 1 / (1 + np.exp(-design @ self._scores))
        information = (design * (expected * (1 - expected))[:, None]).T @ design
        residual = ((1 + self._gain) / 2 - expected)[:, None] * design
        # How far each choice moves the scores; adding 1 keeps their sum at 0, and so has an inverse.
        influence = residual @ np.linalg.inv(information + 1)
        by_original, by_rater = (
            pd.DataFrame(influence).groupby(codes).sum().to_numpy().T for codes in (self._original, self._rater)
        )
        n, scores, n_choices = by_original.shape[1], self._scores[:, None], np.bincount(self._rater).astype(np.float64)
        moved, ones = scores + n * by_original, np.ones(n)  # their mean is the score, its variance the sandwich
        mean, reason = over_pairs(moved, ones), "choices do not vary from original to original"
        if self._over != "pairs":
            spread = spread_over_pairs(moved, ones)
            mean = adding_raters(mean, spread, scores * n_choices + n_choices.sum() * by_rater, n_choices)
            reason = "choices do not vary, or there are too few raters"
        for score, low, high in zip(self._scores, mean.low, mean.high, strict=True):
            why = f"{reason}, so there is no interval" if math.isnan(low) else ""
            yield Estimate(value=float(score), low=float(low), high=float(high), n=n, reason=why)

    def _fitted(self) -> Floats:
        """Return the scores; NaN where they have no bounds."""
        if not _reached(self._wins).all():
            return np.full(len(self._names), np.nan)
        winners = (evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X)
        fit = evalica.bradley_terry(
            self._first.tolist(),
            self._second.tolist(),
            [winners[gain + 1] for gain in self._gain.tolist()],
            index=pd.RangeIndex(len(self._names)),
            tolerance=1e-9,
            limit=100_000,
        )
        scores = np.log(fit.scores.sort_index().to_numpy())
        centred: Floats = scores - scores.mean()
        return centred

    def _unbounded(self) -> str:
        """Return why the scores are undefined; empty if they are not."""
        if not np.isnan(self._scores).any():
            return ""
        if not _reached(self._wins + self._wins.T).all():
            return "not all systems were compared, not even through others, so there are no scores"
        reached = _reached(self._wins)
        top = [
            str(name) for number, name in enumerate(self._names) if not (reached[:, number] & ~reached[number]).any()
        ]
        return f"nobody preferred another to {' or '.join(top)}, or found it equal, so scores have no bounds"


def _reached(wins: Floats) -> NDArray[np.bool_]:
    """Return which system won, directly or through others, against which; scores exist if each did (Ford 1957)."""
    reached = (wins > 0) | np.eye(len(wins), dtype=np.bool_)
    for _ in range(len(wins).bit_length()):
        reached = (reached.astype(np.float32) @ reached) > 0
    return reached
