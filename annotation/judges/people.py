"""How far people bear a judge out: agreement, error, gap and calibration against their ratings of the same outputs.

`ratings` are of one question or several (pair_id, rater_id, question, value, transformation), and those count of which
columns of a study's `ratings.parquet` say nothing else (`plumbline.frames.that_count`);
`scores` are those of `annotation.judges.records.over_orders`. What says nothing of a judge beside people says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from annotation.judges.effects import ac2_of, mean_with_interval, pearson, spearman
from plumbline.frames import filled, need, numbers, once, that_count
from plumbline.scales import nearest_points
from plumbline.statistics.estimates import Floats

ALL = "all"  # of the rows over all transformations
FAR = 2.0  # points; PTEB, appendix B
FOLDS = 5
AGAINST = ["judge", "question", "transformation", "n", "failed", "pearson", "spearman", "ac2", "ac2_rater"]
AGAINST += ["mean_absolute_error", "gap", "low", "high", "reason"]  # columns of `against_people`


def against_people(ratings: pd.DataFrame, scores: pd.DataFrame, scale: Sequence[float]) -> pd.DataFrame:
    """A row for each judge, question and transformation, then one over all transformations.

    Columns: judge, question, transformation, n (pairs with a score), failed (rated pairs without), pearson, spearman
    and ac2 (with the mean of a pair's ratings; for AC2 both are rounded to the scale), ac2_rater (the mean of AC2 with
    each single rater), mean_absolute_error, gap (judge minus people) with low and high (95%, t over pairs), reason (why
    the gap has no interval). Numbers that are undefined are NaN.
    """
    rated = _checked(ratings)
    rows = []
    for (judge, question), of_judge in scores.groupby(["judge", "question"]):
        by_pair = of_judge.set_index("pair_id")["score"]
        of_question = rated[rated["question"] == question]
        parts = [*of_question.groupby("transformation"), (ALL, of_question)]
        for transformation, part in parts:
            if len(part):
                rows.append((judge, question, transformation, *_row(part, by_pair, scale)))
    return pd.DataFrame(rows, columns=AGAINST)


def with_each_rater(ratings: pd.DataFrame, scores: pd.DataFrame, scale: Sequence[float]) -> pd.DataFrame:
    """A row for each judge, question and rater: n, ac2, pearson, mean_absolute_error, gap (judge minus rater)."""
    rated, rows = _checked(ratings), []
    for (judge, question), of_judge in scores.groupby(["judge", "question"]):
        by_pair = of_judge.set_index("pair_id")["score"]
        for rater, part in rated[rated["question"] == question].groupby("rater_id"):
            x, y = _both(part.set_index("pair_id")["value"], by_pair)
            apart = (float(np.abs(y - x).mean()), float((y - x).mean())) if len(x) else (math.nan, math.nan)
            rows.append((judge, question, rater, len(x), ac2_of(x, y, scale), pearson(x, y), *apart))
    names = ["judge", "question", "rater_id", "n", "ac2", "pearson", "mean_absolute_error", "gap"]
    return pd.DataFrame(rows, columns=names)


def pair_means(ratings: pd.DataFrame) -> pd.Series:
    """The mean of each pair's ratings that count; `ratings` are of one question."""
    return that_count(ratings).groupby("pair_id")["value"].mean()


def calibrated(scores: Floats, people: Floats, seed: int, folds: int = FOLDS) -> Floats:
    """What people would say, by the judge's scores: an isotonic curve, fitted each time on the other folds' pairs.

    `people` are the pairs' mean ratings. Out of fold, so that a curve tells of pairs that it has not seen; it never
    stands in for ratings. NaN where a score is NaN, and for fewer than 2 pairs in a fold's rest.

    Source: isotonic regression by scikit-learn (pool adjacent violators); scores beyond those seen get the curve's end.
    """
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 (seconds)

    if len(scores) != len(people):
        raise ValueError(f"scores and ratings are of the same pairs; there are {len(scores)} and {len(people)}")
    usable = np.flatnonzero(~np.isnan(scores) & ~np.isnan(people))
    predicted = np.full(len(scores), np.nan)
    shuffled = np.random.default_rng(seed).permutation(usable)
    for fold in range(folds):
        held, rest = shuffled[fold::folds], np.concatenate([shuffled[i::folds] for i in range(folds) if i != fold])
        if len(rest) >= 2 and len(held):
            curve = IsotonicRegression(out_of_bounds="clip").fit(scores[rest], people[rest])
            predicted[held] = curve.predict(scores[held])
    return predicted


def reliability(scores: Floats, people: Floats, scale: Sequence[float], seed: int) -> pd.DataFrame:
    """People's mean rating by the judge's score, rounded to the scale: score, n, people, calibrated (out of fold)."""
    curve = calibrated(scores, people, seed)
    frame = pd.DataFrame({"score": nearest_points(scores, scale), "people": people, "calibrated": curve}).dropna()
    table: pd.DataFrame = frame.groupby("score")[["people", "calibrated"]].mean()
    table.insert(0, "n", frame["score"].value_counts().reindex(table.index))
    return table.reset_index()


def far_ratings(
    ratings: pd.DataFrame, scores: pd.DataFrame, flag: Literal["both", "any"] = "both", far: float = FAR
) -> pd.DataFrame:
    """Ratings that lie more than `far` points from the judges: from each of them (both), or from one at least (any).

    They are to be read by a person, and decide nothing. With `both` a pair that a judge failed on has no flag; with
    `any` the other judges tell. PTEB's text (appendix B: from their own estimates) can be read in either way. The
    judges have to be blind to the ratings, which the paper's were not. Columns: pair_id, rater_id, question, value,
    nearest and farthest (judge minus rating, by size), judges.
    """
    if flag not in ("both", "any"):
        raise ValueError(f"flag is 'both' or 'any', not {flag!r}")
    rated = _checked(ratings)
    wide = scores.pivot(index=["question", "pair_id"], columns="judge", values="score")
    keys = pd.MultiIndex.from_frame(rated[["question", "pair_id"]])
    apart = wide.reindex(keys).to_numpy(np.float64) - rated["value"].to_numpy(np.float64)[:, None]
    size = np.abs(apart)
    judged = ~np.isnan(size)
    over = size > far + 1e-9
    flagged = (over.all(axis=1) if flag == "both" else over.any(axis=1)) & judged.any(axis=1)
    apart, size = apart[flagged], size[flagged]
    rows = np.arange(len(apart))
    near, distant = np.nan_to_num(size, nan=np.inf).argmin(axis=1), np.nan_to_num(size, nan=-1).argmax(axis=1)
    far_rows: pd.DataFrame = rated.loc[flagged, ["pair_id", "rater_id", "question", "value"]].reset_index(drop=True)
    return far_rows.assign(nearest=apart[rows, near], farthest=apart[rows, distant], judges=judged[flagged].sum(axis=1))


def _row(part: pd.DataFrame, scores: pd.Series, scale: Sequence[float]) -> tuple[object, ...]:
    means = pair_means(part)
    people, judge = _both(means, scores)
    gap = mean_with_interval(judge - people, "the judge has no score of any rated pair")
    raters = [_both(of_rater.set_index("pair_id")["value"], scores) for _, of_rater in part.groupby("rater_id")]
    each = [value for value in (ac2_of(x, y, scale) for x, y in raters) if not math.isnan(value)]
    correlations = pearson(people, judge), spearman(people, judge), ac2_of(people, judge, scale)
    of_rater, error = float(np.mean(each)) if each else math.nan, np.abs(judge - people)
    apart = float(error.mean()) if len(people) else math.nan
    numbers_of = len(people), len(means) - len(people)
    return (*numbers_of, *correlations, of_rater, apart, gap.value, gap.low, gap.high, gap.reason)


def _both(people: pd.Series, scores: pd.Series) -> tuple[Floats, Floats]:
    """(people's number, judge's score) of the pairs that have both."""
    judged = scores.reindex(people.index).to_numpy(np.float64)
    judged_rows = ~np.isnan(judged)
    return people.to_numpy(np.float64)[judged_rows], judged[judged_rows]


def _checked(ratings: pd.DataFrame) -> pd.DataFrame:
    """The ratings that count, checked."""
    ratings = that_count(ratings)
    filled(ratings, ("pair_id", "rater_id", "question", "transformation"), "ratings")
    need(ratings, ("value",), "ratings")
    once(ratings, ("pair_id", "rater_id", "question"), "ratings")
    values = numbers(ratings["value"], "ratings")
    if np.isnan(values).any():
        raise ValueError("ratings: some have no value; judges are held against ratings that count")
    return ratings.assign(value=values)
