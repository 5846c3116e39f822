"""How ratings vary, for plans: by the ratings that a study has (a pilot's, an import's), or else by its scale."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from types import MappingProxyType
from typing import Self

import numpy as np
import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.campaign.records import PAIRS, RATINGS, CampaignRecords
from annotation.statistics.summaries import HTEB_SCALE, Design
from annotation.verdicts.systems import original_of
from plumbline.errors import StudyError
from plumbline.importing import scipy
from plumbline.scales import Continuous, is_whole, nearest_points
from plumbline.statistics.estimates import CONFIDENCE, Floats
from plumbline.study import Study
from plumbline.words import count

_NORMAL = np.linspace(-6, 6, 4000)  # standard errors of a normal value; none is 0, where a label may be none too
_WEIGHTS = np.exp(-(_NORMAL**2) / 2) / np.exp(-(_NORMAL**2) / 2).sum()
_LEAST = 1e-9  # deviation, of the scale's range
_STEPS = 30  # until the variation before rating is found
FEWEST = 20  #: pairs that several raters rated, and shared originals, from which standard deviations are computed


@dataclass(frozen=True)
class RatingVariation:
    """The variation of ratings: standard deviations in points of the scale, before rounding to it.

    At a mean of 4.09 these give the standard deviation (1.04) and the AC2 (0.69; there 0.68) of HTEB's Table 2, quality
    overall; the paper does not report how much of it is the raters' bias. A label is given if a latent value is above
    a limit (a probit model), so that for shares (two points) only the proportions of these numbers matter.
    """

    spread: float = 0.8  # of the pairs' true quality
    bias: float = 0.25  # of the raters' habits
    noise: float = 1.1  # of single ratings

    @classmethod
    def on(cls, scale: Sequence[float], deviations: Mapping[str, float] = MappingProxyType({})) -> RatingVariation:
        """Return that of ratings on a scale: by these deviations, or in proportion to that of ratings from 1 to 5."""
        times = (scale[-1] - scale[0]) / 4
        return cls(**{name: deviations.get(name, times * usual) for name, usual in asdict(cls()).items()})

    def as_rated(self, scale: Sequence[float], mean: float | None = None) -> RatingVariation:
        """Return that of the ratings on the scale: rounded, and kept within its ends.

        Their mean is the scale's middle if none is given. What pair and rater do not add up to is noise.
        """
        spread, bias, noise = self.spread**2, self.bias**2, self.noise**2
        middle = (scale[0] + scale[-1]) / 2 if mean is None else latent_mean(mean, self.total, scale)

        def variance(values: Floats) -> float:
            return float(_WEIGHTS @ (values - _WEIGHTS @ values) ** 2)

        of_all = variance(rated(middle + math.sqrt(spread + bias + noise) * _NORMAL, scale))
        of_pairs, of_raters = (
            variance(rated_mean(middle + math.sqrt(part) * _NORMAL, math.sqrt(spread + bias + noise - part), scale))
            if part
            else 0.0
            for part in (spread, bias)
        )
        return RatingVariation(
            math.sqrt(of_pairs), math.sqrt(of_raters), math.sqrt(max(of_all - of_pairs - of_raters, 0))
        )

    def before_rating(self, scale: Sequence[float], mean: float | None = None) -> RatingVariation:
        """Return the variation whose ratings on the scale vary as this says: the inverse of `as_rated`.

        With two points their mean says how much ratings vary, so the proportions alone are as this says.
        """
        felt, most = self, scale[-1] - scale[0]
        for _ in range(_STEPS):
            reached = felt.as_rated(scale, mean)
            times = reached.total / self.total if is_two_points(scale) else 1.0
            felt = RatingVariation(
                *(
                    min(part * times * wanted / got, most) if got else 0.0
                    for part, wanted, got in zip(astuple(felt), astuple(self), astuple(reached), strict=True)
                )
            )
        return felt

    def unlike_before_rating(self, unlike: float, scale: Sequence[float], mean: float) -> float:
        """Return the share of `spread` squared not in common to two whose ratings have not `unlike` of it in common."""
        if not (self.spread and 0 < unlike < 1):
            return unlike
        of_all = self.as_rated(scale, mean).spread ** 2

        def too_much(common: float) -> float:
            part = replace(self, spread=math.sqrt(common) * self.spread)
            part = replace(part, noise=math.sqrt(self.total**2 - part.spread**2 - self.bias**2))
            return part.as_rated(scale, mean).spread ** 2 - (1 - unlike) * of_all

        return 1 - float(scipy.optimize.brentq(too_much, 0.0, 1.0, xtol=1e-4))

    @property
    def total(self) -> float:
        """The standard deviation of a rating of any pair by any rater."""
        return math.sqrt(self.spread**2 + self.bias**2 + self.noise**2)


@dataclass(frozen=True)
class Variation:
    """The variation of a question's ratings, and where it comes from."""

    deviations: RatingVariation
    source: str  #: in words
    #: least and most share of the ratings' variance between pairs that systems have not in common
    apart: tuple[float, float] = (0.0, 1.0)
    mean: float | None = None  #: around which ratings vary so; None for the middle of the scale
    leaning: float = math.nan  #: deviation of raters' differences between two systems; NaN where no ratings tell

    def between_systems(self, scale: Sequence[float]) -> RatingVariation:
        """Return the most that ratings of systems' outputs of one original vary by."""
        as_rated = self.deviations.as_rated(scale, self.mean)
        return replace(as_rated, spread=math.sqrt(self.apart[1]) * as_rated.spread)

    def shown(self, scale: Sequence[float]) -> RatingVariation:
        """Return the standard deviations as a plan prints them: for shares those of the answers."""
        return self.deviations.as_rated(scale, self.mean) if is_two_points(scale) else self.deviations

    @classmethod
    def of(
        cls, answers: pd.DataFrame, scale: Sequence[float], assumed: Mapping[str, float] = MappingProxyType({})
    ) -> Self:
        """Return the variation of answers to a question, of those that are assumed, or else of its scale.

        `answers` have a row each: transformation, original, pair_id, rater_id, value. A share (two points)
        varies by its mean, and in the proportions of `assumed` only if all are given.
        """
        usual, of_share = RatingVariation.on(scale, assumed), is_two_points(scale)
        usual_source = "as HTEB's" if tuple(scale) == HTEB_SCALE else "HTEB's on 1 to 5, in proportion to the scale"
        if len(assumed) == len(asdict(usual)):
            return cls(usual, "in the proportions given" if of_share else "as given")
        unused = f"; {' and '.join(assumed)} unused: a share takes all three deviations or none" if of_share else ""
        rest = (unused or ", where none is given") if assumed else ""
        if of_share:
            usual = RatingVariation((scale[-1] - scale[0]) / 2, 0.0, 0.0)
            usual_source = "of a share of a half on which raters agree, the most that shares vary by"
        several = (answers["pair_id"].value_counts() > 1).sum()
        as_rated = _components(answers) if several >= FEWEST else RatingVariation(0.0, 0.0, 0.0)
        if not as_rated.total:  # too few ratings, or all of a system are equal
            return cls(usual, usual_source + rest)
        source = f"of the study's {count(len(answers), 'rating')} so far{rest}"
        apart, mean = _apart(answers, as_rated), float(answers["value"].mean()) if of_share else None
        felt = RatingVariation(**{**asdict(as_rated.before_rating(scale, mean)), **({} if of_share else assumed)})
        return cls(felt, source, apart, mean, _leaning(answers))


def _components(answers: pd.DataFrame) -> RatingVariation:
    """Return the standard deviations by Hoeffding's averages over two ratings: of a pair, of a rater, of neither.

    Half the squared difference of two ratings of a pair is on average bias^2 + noise^2, of two by a rater spread^2 +
    noise^2, of any others all three.

    Source: Koch (1967), Technometrics 9, 93-118 (variance components by symmetric sums, for any numbers of ratings).
    """
    values = answers["value"] - answers.groupby("transformation")["value"].transform("mean")
    pair, rater, every = (
        _halves(values, by) for by in (answers["pair_id"], answers["rater_id"], pd.Series(0, answers.index))
    )
    neither = every - pair - rater
    of_pair, of_rater, of_others = (sums / number if number else math.nan for sums, number in (pair, rater, neither))
    of_rater = of_others if math.isnan(of_rater) else of_rater  # nobody rated two pairs
    parts = of_others - of_pair, of_others - of_rater, of_pair + of_rater - of_others
    return RatingVariation(*(math.sqrt(max(part, 0.0)) for part in parts))


def _halves(values: pd.Series, by: pd.Series) -> Floats:
    """Return half the sum of squared differences of two values of a group, over all groups, and how many these are."""
    groups = pd.DataFrame({"sum": values, "squares": values**2, "number": 1}).groupby(by.to_numpy()).sum()
    sums, squares, number = groups.to_numpy(np.float64).T
    return np.array([(number * squares - sums**2).sum() / 2, (number * (number - 1) / 2).sum()])


def _apart(answers: pd.DataFrame, as_rated: RatingVariation) -> tuple[float, float]:
    """Return the range of the share of `spread` squared that outputs of one original do not have in common.

    The differences of two systems vary by it and by noise; the range is that of their variance's 95% interval, over
    all systems that share enough originals. It is everything from none to all where there are none.
    """
    keys = ["original", "transformation"]
    grid = answers.groupby(keys, observed=True)["value"].agg(["mean", "size"]).unstack()
    lows, highs = list[float](), list[float]()
    for first, second in itertools.combinations(grid["mean"].columns, 2):
        means, sizes = (grid[name][[first, second]].dropna() for name in ("mean", "size"))
        if len(means) < FEWEST or not as_rated.spread:
            continue
        freedom, variance = len(means) - 1, float((means[first] - means[second]).var())
        error = as_rated.noise**2 * float((1 / sizes.to_numpy(np.float64)).sum(axis=1).mean())
        ends = (freedom * variance / scipy.special.chdtri(freedom, (1 + side * CONFIDENCE) / 2) for side in (-1, 1))
        low, high = sorted((float(end) - error) / (2 * as_rated.spread**2) for end in ends)
        lows.append(low)
        highs.append(high)
    if not lows:
        return 0.0, 1.0
    least, most = (min(max(sum(ends) / len(ends), 0.0), 1.0) for ends in (lows, highs))
    return least, most


def _leaning(answers: pd.DataFrame) -> float:
    """Return the standard deviation of raters in how far they prefer one system to another, over all of two systems.

    NaN where no two raters rated several outputs of both.
    """
    grid = answers.pivot_table(index=["original", "rater_id"], columns="transformation", values="value", observed=True)
    variances = []
    for first, second in itertools.combinations(grid.columns, 2):
        both = (grid[first] - grid[second]).dropna().rename("value").reset_index()
        n_originals = both.groupby("rater_id")["original"].nunique()
        if both["original"].nunique() >= FEWEST and (n_originals > 1).sum() > 1:
            differences = both.rename(columns={"original": "pair_id"}).assign(transformation="")
            variances.append(_components(differences).bias ** 2)
    return math.sqrt(sum(variances) / len(variances)) if variances else math.nan


class StudyVariations:
    """How the answers to a study's questions vary: by its ratings, by what is given, or by their scales."""

    def __init__(self, study: Study, design: Design, assumed: Mapping[str, float] = MappingProxyType({})) -> None:
        self._design, self._assumed, records = design, assumed, CampaignRecords(study)
        columns = ["transformation", "original", "pair_id", "rater_id", "question", "answer", "value"]
        self._answers = pd.DataFrame(columns=columns)
        if records.has(PAIRS) and records.has(RATINGS):
            originals = {pair.pair_id: original_of(pair, study.judging) for pair in records.collected.sample_pairs}
            counting = counting_ratings(records.collected.sample_ratings, design.per_pair)
            self._answers = counting.assign(original=counting["pair_id"].map(originals).replace("", None))

    def of(self, question: str, label: str = "") -> Variation:
        """Return the variation of a question, or of a label's share; with a leaning if raters are a sample too."""
        form, rows = self._design.asked(question), self._answers[self._answers["question"] == question]
        variation = Variation.of(rows.assign(value=form.numbers(rows, label)), form.judged_scale, self._assumed)
        return replace(variation, leaning=math.nan) if self._design.rule.interval == "pairs" else variation


def is_two_points(scale: Sequence[float]) -> bool:
    """Return whether answers are one of two numbers, as a label or none, so that their mean is a share."""
    return len(scale) == 2 and not isinstance(scale, Continuous)


def rated(felt: Floats, scale: Sequence[float]) -> Floats:
    """Return the ratings on the scale that are nearest to what raters feel."""
    return np.clip(np.round(felt), scale[0], scale[-1]) if is_whole(scale) else nearest_points(felt, scale)


def rated_mean(latent: float | Floats, deviation: float, scale: Sequence[float]) -> Floats:
    """Return the mean of ratings for each mean of what raters feel, which is normal: rounded, or kept between ends."""
    middle, deviation = np.asarray(latent, np.float64), max(deviation, _LEAST * (scale[-1] - scale[0]))
    if isinstance(scale, Continuous):  # the integral of P(value > t) between the ends
        low, high = ((middle - end) / deviation for end in scale)
        integrals = [z * scipy.special.ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (low, high)]
        between: Floats = scale[0] + deviation * (integrals[0] - integrals[1])
        return between
    points = np.array(scale, np.float64)  # a rating is the lowest point plus the steps that the value is above
    steps = np.diff(points)
    above = scipy.special.ndtr((middle[..., None] - points[:-1] - steps / 2) / deviation)
    on_points: Floats = points[0] + above @ steps
    return on_points


def latent_mean(mean: float, deviation: float, scale: Sequence[float]) -> float:
    """The inverse of `rated_mean`. Raises StudyError for a mean that ratings on the scale cannot have."""
    if deviation <= 0 or not scale[0] < mean < scale[-1]:
        raise StudyError(f"ratings that vary cannot have a mean of {mean:g} on a scale from {scale[0]} to {scale[-1]}")
    reach = 20 * deviation
    low, high = scale[0] - reach, scale[-1] + reach
    return float(scipy.optimize.brentq(lambda m: float(rated_mean(m, deviation, scale)) - mean, low, high))
