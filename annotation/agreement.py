"""Means, spread and agreement of ratings: pure functions from a frame of ratings to numbers.

A frame of ratings is `ratings.parquet`: one row a pair, rater and question. Which ratings count is decided
once, by `counting_ratings`; everything else takes what it returns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from annotation.records import Group, Summary
from generation.records import Rating
from generation.store import read_frame
from generation.study import Study
from generation.transformations import AXES, TRANSFORMATIONS

CONFIDENCE = 0.95
# HTEB, section 2.4: translation and cross-translation are rated as one pool, since a rater sees one sentence.
POOLS: dict[str, str] = {name: "translation" if name == "cross_translation" else name for name in TRANSFORMATIONS}


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval; what is undefined is NaN, and `reason` says why."""

    value: float
    low: float
    high: float
    reason: str = ""


def read_ratings(study: Study) -> pd.DataFrame:
    """The ratings collected so far."""
    return read_frame(study.folder / "ratings.parquet", Rating, "python -m annotation collect --study ...")


def counting_ratings(ratings: pd.DataFrame, per_pair: int) -> pd.DataFrame:
    """The ratings that count: submitted ones, of each pair the first `per_pair` raters' by time of submission.

    More can come in when raters work at once; the rule is fixed beforehand, so nobody chooses among ratings.
    Ties in time are broken by the rater's pseudonym.
    """
    submitted = ratings[ratings["status"] == "submitted"]
    turns = submitted.groupby(["pair_id", "rater_id"], as_index=False).agg(submitted_at=("submitted_at", "max"))
    turns = turns.sort_values(["submitted_at", "rater_id"])
    first = turns.groupby("pair_id").head(per_pair)[["pair_id", "rater_id"]]
    return submitted.merge(first, on=["pair_id", "rater_id"], how="inner")


def mean_interval(ratings: pd.DataFrame) -> Interval:
    """The mean over single ratings (columns pair_id, value) with a 95% t interval over pairs.

    Ratings of one pair hang together, so pairs and not ratings are the independent units: the mean is a ratio
    of pairs' sums to pairs' counts and its standard error that of a ratio estimator (Cochran, Sampling
    Techniques, 3rd ed., section 6.4); with equally many ratings a pair this is the t interval of pair means.
    """
    if ratings.empty:
        return Interval(math.nan, math.nan, math.nan, "no ratings")
    pairs = ratings.groupby("pair_id")["value"].agg(["sum", "count"])
    n, mean = len(pairs), float(ratings["value"].mean())
    if n < 2:
        return Interval(mean, math.nan, math.nan, "one pair has no spread")
    residuals = pairs["sum"] - mean * pairs["count"]
    error = math.sqrt(n / (n - 1) * float((residuals**2).sum())) / float(pairs["count"].sum())
    if error == 0:
        return Interval(mean, math.nan, math.nan, "all pairs have the same mean, so their spread is unknown")
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return Interval(mean, mean - reach, mean + reach)


def gwet_ac2(ratings: pd.DataFrame, scale: Sequence[int]) -> Interval:
    """Gwet's AC2 with ordinal weights (columns pair_id, rater_id, value), by irrCAC.

    Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48; HTEB, section 2.4. `scale` is the full list of points:
    without it irrCAC on pandas 3 counts missing ratings as a category, and unused points would change the
    chance agreement. NaN where no pair has two ratings; irrCAC rounds to five decimals.
    """
    nothing = Interval(math.nan, math.nan, math.nan, "no pair has two ratings, so nothing can agree")
    if ratings.empty:
        return nothing
    matrix = ratings.pivot(index="pair_id", columns="rater_id", values="value").astype(float)
    shared = int((matrix.notna().sum(axis=1) >= 2).sum())
    if shared == 0:
        return nothing
    everything_alike = matrix.stack().nunique() == 1
    if len(matrix) == 1:  # irrCAC divides by n - 1; a pair counted twice has the same agreement
        matrix = pd.concat([matrix, matrix], ignore_index=True)
    from irrCAC.raw import CAC  # noqa: PLC0415 (takes half a second, and only this function needs it)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # irrCAC divides by zero where there is no variation; handled below
        estimate = CAC(matrix, weights="ordinal", categories=list(scale), confidence_level=CONFIDENCE).gwet()["est"]
    value = float(estimate["coefficient_value"])
    low, high = (float(end) for end in estimate["confidence_interval"])
    if math.isnan(value):
        return Interval(math.nan, math.nan, math.nan, "chance agreement is complete, so agreement is undefined")
    if shared < 2:
        return Interval(value, math.nan, math.nan, "one pair with two ratings has no spread")
    if everything_alike:
        return Interval(value, math.nan, math.nan, "every rating is the same, so the spread is unknown")
    return Interval(value, low, high)


def summarise(ratings: pd.DataFrame, question: str, scale: Sequence[int]) -> Summary:
    """One question's ratings (those that count, of any number of pairs) in the numbers of HTEB's Table 2."""
    own = ratings[ratings["question"] == question]
    mean, ac2 = mean_interval(own), gwet_ac2(own, scale)
    return Summary(
        question=question,
        n_pairs=own["pair_id"].nunique(),
        n_ratings=len(own),
        mean=mean.value,
        sd=float(own["value"].astype(float).std(ddof=1)) if len(own) > 1 else math.nan,
        low=mean.low,
        high=mean.high,
        interval_reason=mean.reason,
        ac2=ac2.value,
        ac2_low=ac2.low,
        ac2_high=ac2.high,
        ac2_reason=ac2.reason,
    )


def table_two(ratings: pd.DataFrame, questions: Iterable[str], scale: Sequence[int]) -> list[Group]:
    """HTEB's Table 2: each axis with its pools below it, then all; single ratings are pooled, not means.

    `ratings` are those that count. Axes and pools without ratings are left out.
    """
    questions = list(questions)
    pools = ratings["transformation"].map(POOLS)
    axes = ratings["transformation"].map(lambda name: TRANSFORMATIONS[name].axis)
    groups = []
    for axis in AXES:
        groups.append(_group("axis", axis, axis, ratings[axes == axis], questions, scale))
        for pool in dict.fromkeys(POOLS[name] for name, t in TRANSFORMATIONS.items() if t.axis == axis):
            groups.append(_group("pool", pool, axis, ratings[pools == pool], questions, scale))
    groups.append(_group("overall", "overall", "", ratings, questions, scale))
    return [group for group in groups if group.questions and any(summary.n_ratings for summary in group.questions)]


def _group(
    level: str, name: str, axis: str, ratings: pd.DataFrame, questions: list[str], scale: Sequence[int]
) -> Group:
    present = set(ratings["transformation"])
    return Group.model_validate(
        {
            "level": level,
            "name": name,
            "axis": axis,
            "transformations": tuple(t for t in TRANSFORMATIONS if t in present),
            "simulated": bool(ratings["simulated"].any()),
            "questions": tuple(summarise(ratings, question, scale) for question in questions),
        }
    )
