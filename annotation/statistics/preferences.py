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
from plumbline.importing import evalica, scipy
from plumbline.statistics.estimates import (
    AT_ONCE,
    RESAMPLES,
    Bootstrap,
    Estimate,
    Floats,
    draw_counts,
    expanded_tail,
    stream,
)

COUNTS = ("wins", "ties", "losses")
SYSTEMS = ("question", "system", "n", *COUNTS, "score", "low", "high", "rank", "rank_low", "rank_high", "group")
CHOICES = ("question", "system", "other", "n", *COUNTS, *SHARES, "difference", "low", "high", "p", "p_holm")
_FEWEST_RATERS = 2
_EQUAL = 1e-6  # scores that differ by less are equal


def bradley_terry(  # noqa: PLR0913 (six of them name columns)
    choices: pd.DataFrame,
    *,
    seed: int,
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
    as half. Their intervals are the percentile bootstrap's over originals, with all choices about one, expanded for few
    originals; with raters as a sample too, raters are drawn independently of originals, which errs to the safe side.

    Two systems differ, on each original, by the share of choices for the one less that for the other. The mean of that
    over originals has the interval and p of the paired t-test, as `side_by_side` has for means; so have Holm's
    correction, the intervals of ranks and the letters. No p rests on the Bradley-Terry model.

    Args:
        choices: a row each: the two systems, which of them was preferred (empty for a tie), the original, the rater and
            the question. `status`, `excluded`, `withdrawn` and `surplus` decide which count, if there.
        seed: of the resamples.
        over: what is a sample: the originals, with raters taken as fixed, or originals and raters.
        system: the column of the one system.
        opponent: the column of the other.
        preferred: the column of the preferred one of the two.
        original: the column of originals.
        rater: the column of raters.
        question: the column of questions.

    Returns:
        Two frames. `systems`: question, system, n (originals), wins, ties, losses (of choices), score, low, high, rank
        (of the score), rank_low, rank_high, group, reason. `differences`: question, system, other, n (originals), wins,
        ties, losses, better, equal, worse (the same as shares of the choices), difference (of the shares of originals'
        choices), low, high, p, p_holm, reason. NaN with the reason where a number is undefined: a system that is
        always preferred to the others it met has no score, nor do systems that were never compared, directly or
        through others.

    Raises:
        ValueError: a column is missing, a system is compared with itself, or neither of the two is the preferred one.

    Source: Bradley and Terry (1952), Biometrika 39, 324-345, by evalica (Ustalov 2025), which counts ties as Zermelo's
    half wins; that scores exist: Ford (1957), The American Mathematical Monthly 64 (8), 28-33; resampling originals and
    raters: Owen (2007), The Annals of Applied Statistics 1, 386-411; expansion: Hesterberg (2015), The American
    Statistician 69, 371-386; tests as in `side_by_side`.

    >>> import pandas as pd
    >>> from annotation import bradley_terry
    >>> choices = pd.DataFrame({"preferred": ["A"] * 12 + ["B"] * 6 + [""] * 2}).rename_axis("original").reset_index()
    >>> choices = choices.assign(system="A", opponent="B", rater_id="ada", question="preference")
    >>> row = bradley_terry(choices, seed=1).systems.iloc[0]
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
        systems += [{"question": name, **row} for row in compared.systems(stream(seed, "bradley_terry", str(name)))]
    return SideBySide(
        pd.DataFrame(systems, columns=[*SYSTEMS, "reason"]), pd.DataFrame(differences, columns=[*CHOICES, "reason"])
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
        # Choices between the same two with the same outcome are one cell.
        cells, cell = np.unique([self._first, self._second, self._gain], axis=1, return_inverse=True)
        places = np.arange(len(choices)), cell.ravel()
        self._cells, self._of_cell = cells, scipy.sparse.csr_array((np.ones(len(choices)), places))
        totals: Floats = np.asarray(self._of_cell.sum(axis=0))[None]
        self._wins, self._scores = self._won(totals)[0], self._fitted(totals)[0]
        compared = self._wins + self._wins.T
        shares = np.divide(self._wins, compared, out=np.full_like(compared, np.nan), where=compared > 0)
        by = np.nanmean(shares, axis=1) if np.isnan(self._scores).any() else self._scores
        super().__init__([self._names[number] for number in np.argsort(-by, kind="stable")], over)

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

    def systems(self, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Yield the systems, the best first."""
        scores = dict(zip(self._names, self._estimates(rng), strict=True))
        for row in self.places():
            number = list(self._names).index(row["system"])
            sides = [self._gain[self._first == number], -self._gain[self._second == number]]
            gain, score = np.concatenate(sides), scores[row["system"]]
            rank = 1 + int((self._scores > score.value + _EQUAL).sum()) if not math.isnan(score.value) else math.nan
            yield row | {
                "n": len(np.unique(self._original[(self._first == number) | (self._second == number)])),
                **{name: int((gain == sign).sum()) for name, sign in zip(COUNTS, (1, 0, -1), strict=True)},
                **{"score": score.value, "low": score.low, "high": score.high, "rank": rank, "reason": score.reason},
            }

    def _estimates(self, rng: np.random.Generator) -> list[Estimate]:
        """Return each system's score with its interval."""
        if why := self._unbounded():
            return [Estimate.undefined(why)] * len(self._names)
        n, n_raters = int(self._original.max()) + 1, int(self._rater.max()) + 1
        if self._over != "pairs" and n_raters < _FEWEST_RATERS:
            return [Estimate.alone(score, "too few raters, so there is no interval", n) for score in self._scores]
        tail = expanded_tail(n)
        resampled = np.concatenate([self._fitted(weights) for weights in self._resamples(rng, n, n_raters)])
        return [
            Bootstrap(float(score), n, values).percentile("no interval: scores have no bounds", tail=tail)
            for score, values in zip(self._scores, resampled.T, strict=True)
        ]

    def _resamples(self, rng: np.random.Generator, n: int, n_raters: int) -> Iterator[Floats]:
        """Yield resamples, some at a time: how often each cell's choices were drawn."""
        of_originals, of_raters = rng.spawn(2)
        at_once = max(1, AT_ONCE // len(self._gain))
        raters = draw_counts(of_raters, n_raters, RESAMPLES, at_once=at_once * n_raters)
        for drawn in draw_counts(of_originals, n, RESAMPLES, at_once=at_once * n):
            times = drawn[:, self._original].astype(np.float64)
            times = times if self._over == "pairs" else times * next(raters)[:, self._rater]
            yield np.asarray(times @ self._of_cell)

    def _won(self, weights: Floats) -> Floats:
        """Return how often each system won against each other, ties as half: resamples by systems by systems."""
        wins = np.zeros((len(weights), len(self._names), len(self._names)))
        for times, (first, second, gain) in zip(weights.T, self._cells.T, strict=True):
            wins[:, first, second] += times * (1 + gain) / 2
            wins[:, second, first] += times * (1 - gain) / 2
        return wins

    def _fitted(self, weights: Floats) -> Floats:
        """Return the scores of resamples (rows); NaN where a score has no bound."""
        first, second, gain = self._cells
        winners = [(evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X)[sign + 1] for sign in gain.tolist()]
        scores = np.full((len(weights), len(self._names)), np.nan)
        for row in np.flatnonzero(_reached(self._won(weights)).all(axis=(1, 2))):
            fit = evalica.bradley_terry(
                first.tolist(),
                second.tolist(),
                winners,
                index=pd.RangeIndex(len(self._names)),
                weights=weights[row].tolist(),
                tolerance=1e-9,
                limit=100_000,
            )
            scores[row] = np.log(fit.scores.sort_index().to_numpy())
        centred: Floats = scores - scores.mean(axis=1, keepdims=True)
        return centred

    def _unbounded(self) -> str:
        """Return why the scores are undefined; empty if they are not."""
        if not np.isnan(self._scores).any():
            return ""
        if not _reached((self._wins + self._wins.T)[None]).all():
            return "not all systems were compared, not even through others, so there are no scores"
        reached = _reached(self._wins[None])[0]
        top = [
            str(name) for number, name in enumerate(self._names) if not (reached[:, number] & ~reached[number]).any()
        ]
        return f"nobody preferred another to {' or '.join(top)}, or found it equal, so scores have no bounds"


def _reached(wins: Floats) -> NDArray[np.bool_]:
    """Return which system won, directly or through others, against which: resamples by systems by systems.

    Scores exist if each did against each (Ford 1957).
    """
    reached = (wins > 0) | np.eye(wins.shape[1], dtype=np.bool_)
    for _ in range(wins.shape[1].bit_length()):
        reached = (reached.astype(np.float32) @ reached) > 0
    return reached
