"""Judges against people's ratings of the same outputs: agreement, error, gap and calibration.

`ratings` are of one question or several (pair_id, rater_id, question, value, transformation); those count that no
column of a study's `ratings.parquet` excludes (`plumbline.frames.that_count`). `scores` are those of
`annotation.judges.records.checked`. A number that cannot be computed comes with its reason.

The alternative annotator test (Calderon, Reichart and Dror, ACL 2025) tells whether a judge is as good as one more
rater. Passing says that, and not that the judge's mean is right: a judge that is 0.4 too kind passes and would accept
what people reject (docs/judges.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.judges.effects import ac2_of, mean_with_interval, pearson, spearman
from plumbline.frames import filled, need, numbers, once, that_count
from plumbline.importing import scipy
from plumbline.scales import nearest_points
from plumbline.statistics.agreement import rater_numbers
from plumbline.statistics.estimates import Floats

ALL = "all"  # transformation of the rows over all transformations
FAR = 2.0  # points; PTEB, appendix B
AGAINST = ["judge", "question", "transformation", "n", "failed", "pearson", "spearman", "ac2", "ac2_rater"]
AGAINST += ["mean_absolute_error", "gap", "low", "high", "reason"]  # columns of `against_people`


def against_people(ratings: pd.DataFrame, scores: pd.DataFrame, scale: Sequence[float]) -> pd.DataFrame:
    """Return a row for each judge, question and transformation, then one over all transformations.

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
    """Return a row by judge, question and rater: n, ac2, pearson, mean_absolute_error, gap (judge minus rater)."""
    rated, rows = _checked(ratings), []
    rated = rated[rater_numbers(rated["rater_id"]) >= 0]
    for (judge, question), of_judge in scores.groupby(["judge", "question"]):
        by_pair = of_judge.set_index("pair_id")["score"]
        for rater, part in rated[rated["question"] == question].groupby("rater_id"):
            x, y = _both(part.set_index("pair_id")["value"], by_pair)
            errors = (float(np.abs(y - x).mean()), float((y - x).mean())) if len(x) else (math.nan, math.nan)
            rows.append((judge, question, rater, len(x), ac2_of(x, y, scale), pearson(x, y), *errors))
    names = ["judge", "question", "rater_id", "n", "ac2", "pearson", "mean_absolute_error", "gap"]
    return pd.DataFrame(rows, columns=names)


def pair_means(ratings: pd.DataFrame) -> pd.Series:
    """Return the mean of each pair's ratings that count; `ratings` are of one question."""
    return that_count(ratings).groupby("pair_id")["value"].mean()


def calibration(ratings: pd.DataFrame, scores: pd.DataFrame, scale: Sequence[float]) -> pd.DataFrame:
    """Return people's mean at each of a judge's scores, rounded to the scale: a row for each judge, question and score.

    Columns: judge, question, score, n (pairs), people (mean of the pairs' mean ratings). A judge is calibrated if
    `people` equals `score` in every row.
    """
    people = pair_means(ratings)
    both = scores.assign(people=scores["pair_id"].map(people)).dropna(subset=["score", "people"])
    both["score"] = nearest_points(both["score"].to_numpy(np.float64), scale)
    at_score = both.groupby(["judge", "question", "score"], as_index=False)
    return at_score.agg(n=("people", "count"), people=("people", "mean"))


def far_ratings(ratings: pd.DataFrame, scores: pd.DataFrame, far: float = FAR) -> pd.DataFrame:
    """Return ratings more than `far` points away from every judge.

    A person should read them; they decide nothing. A pair that a judge failed on has no flag. PTEB's text (appendix B:
    from their own estimates) could also mean any judge. The judges have to be blind to the ratings, which the paper's
    were not. Columns: pair_id, rater_id, question, value, nearest and farthest (judge minus rating, by size), judges.
    """
    rated = _checked(ratings)
    wide = scores.pivot(index=["question", "pair_id"], columns="judge", values="score")
    keys = pd.MultiIndex.from_frame(rated[["question", "pair_id"]])
    gaps = wide.reindex(keys).to_numpy(np.float64) - rated["value"].to_numpy(np.float64)[:, None]
    size = np.abs(gaps)
    flagged = (size > far + 1e-9).all(axis=1) & (size.shape[1] > 0)
    gaps, size = gaps[flagged], size[flagged]
    rows = np.arange(len(gaps))
    ends = (gaps[rows, size.argmin(axis=1)], gaps[rows, size.argmax(axis=1)]) if len(rows) else (rows, rows)
    far_rows: pd.DataFrame = rated.loc[flagged, ["pair_id", "rater_id", "question", "value"]].reset_index(drop=True)
    return far_rows.assign(nearest=ends[0], farthest=ends[1], judges=size.shape[1])


def _row(part: pd.DataFrame, scores: pd.Series, scale: Sequence[float]) -> tuple[object, ...]:
    means = pair_means(part)
    people, judge = _both(means, scores)
    gap = mean_with_interval(judge - people, "the judge has scored none of the rated pairs")
    named = part[rater_numbers(part["rater_id"]) >= 0]
    raters = [_both(of_rater.set_index("pair_id")["value"], scores) for _, of_rater in named.groupby("rater_id")]
    each = [value for value in (ac2_of(x, y, scale) for x, y in raters) if not math.isnan(value)]
    correlations = pearson(people, judge), spearman(people, judge), ac2_of(people, judge, scale)
    of_rater, error = float(np.mean(each)) if each else math.nan, np.abs(judge - people)
    mean_error = float(error.mean()) if len(people) else math.nan
    numbers_of = len(people), len(means) - len(people)
    return (*numbers_of, *correlations, of_rater, mean_error, gap.value, gap.low, gap.high, gap.reason)


def _both(people: pd.Series, scores: pd.Series) -> tuple[Floats, Floats]:
    """Return people's numbers and the judge's scores of the pairs that have both."""
    judged = scores.reindex(people.index).to_numpy(np.float64)
    judged_rows = ~np.isnan(judged)
    return people.to_numpy(np.float64)[judged_rows], judged[judged_rows]


def _checked(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings that count, checked."""
    ratings = that_count(ratings)
    filled(ratings, ("pair_id", "rater_id", "question", "transformation"), "ratings")
    need(ratings, ("value",), "ratings")
    once(ratings, ("pair_id", "rater_id", "question"), "ratings")
    values = numbers(ratings["value"], "ratings")
    if np.isnan(values).any():
        raise ValueError("ratings: some have no value; remove them, or give them the `status` discarded")
    return ratings.assign(value=values)


CROWD = 0.1  # the paper's epsilon, the loss that a cheaper judge may bring; 0.15 for skilled raters, 0.2 for experts
FALSE_DISCOVERIES = 0.05
PASSES = 0.5  # of the raters, whom it must do better than
FEWEST_ITEMS = 30  # for Student's t; below, an exact test
_SHARES = 101  # values that the exact test tries for the unknown share


@dataclass(frozen=True)
class AlternativeTest:
    """The test's result, and a row for each rater."""

    epsilon: float
    omega: float  #: winning rate: share of raters that the judge is at least as good as, less epsilon
    rho: float  #: average advantage probability, by which judges compare: mean share of pairs where the judge is closer
    passes: bool  #: omega is at least 0.5
    raters: pd.DataFrame  #: rater_id, n, judge_closer, rater_closer (shares; ties count for both), p, test, better
    reason: str  #: why there is no result; empty where there is one


def alternative_test(ratings: pd.DataFrame, scores: pd.Series, epsilon: float = CROWD) -> AlternativeTest:
    """Compare a judge with each rater in turn, measured by the pair's other raters.

    `ratings` are of one question (pair_id, rater_id, value), of which those count that a study's would
    (`plumbline.frames.that_count`); `scores` the judge's by pair_id: rounded to the scale first, since an expected
    score never ties with whole numbers and so loses (`plumbline.scales.nearest_points`). A pair counts for a
    rater if another rated it and the judge has a score (no NaN). Closeness is minus the root mean square distance
    from the others. For rater j, with d = 1{rater closer or as close} - 1{judge closer or as close} over j's pairs,
    mean(d) < epsilon is tested: by Student's t, and where d never varies by its value, as in the paper; with fewer than
    30 pairs by `exact_p`. (The paper names Wilcoxon's signed ranks there. They suppose that d lies evenly about
    epsilon, and with d of -1, 0 and 1 reject at 5% what is true in 8 to 94% of simulations.) Benjamini and Yekutieli
    (2001, Ann. Stat. 29, 1165-1188) hold the false discoveries to 5%.

    NaN with a reason for fewer than two raters who share pairs. Raters who had seen what the judge says make it void.

    Source: Calderon, Reichart and Dror 2025, ACL, pages 16051-16081, section 3.
    """
    differences = _differences(ratings, scores)
    if len(differences) < 2:
        table = pd.DataFrame(columns=["rater_id", "n", "judge_closer", "rater_closer", "p", "test", "better"])
        reason = "the test needs two raters who share judged pairs"
        return AlternativeTest(epsilon, math.nan, math.nan, False, table, reason)
    p_values, tests = zip(*(_p_value(rater - judge, epsilon) for judge, rater in differences.values()), strict=True)
    closer = [(len(judge), judge.mean(), rater.mean()) for judge, rater in differences.values()]
    table = pd.DataFrame(closer, columns=["n", "judge_closer", "rater_closer"])
    table.insert(0, "rater_id", list(differences))
    better = scipy.stats.false_discovery_control(p_values, method="by") <= FALSE_DISCOVERIES
    table = table.assign(p=p_values, test=tests, better=better)
    omega = float(better.mean())
    return AlternativeTest(epsilon, omega, float(table["judge_closer"].mean()), omega >= PASSES, table, "")


def _differences(ratings: pd.DataFrame, scores: pd.Series) -> dict[str, tuple[Floats, Floats]]:
    """Return for each rater, by pair, 1 where the judge is as close or closer, and 1 where the rater is; else 0."""
    ratings = that_count(ratings)
    ratings = ratings[rater_numbers(ratings["rater_id"]) >= 0]
    wide = ratings.pivot(index="pair_id", columns="rater_id", values="value").astype(np.float64)
    values, judged = wide.to_numpy(), scores.reindex(wide.index).to_numpy(np.float64)
    rated = ~np.isnan(values)
    differences = {}
    for j, rater in enumerate(wide.columns):
        usable = rated[:, j] & (rated.sum(axis=1) > 1) & ~np.isnan(judged)
        if not usable.any():
            continue
        other_values = np.delete(values[usable], j, axis=1)
        human = np.nanmean((values[usable, j][:, None] - other_values) ** 2, axis=1)
        machine = np.nanmean((judged[usable][:, None] - other_values) ** 2, axis=1)
        tie = np.isclose(human, machine, rtol=0, atol=1e-9)
        closer = ((machine < human) | tie, (human < machine) | tie)
        differences[str(rater)] = closer[0].astype(np.float64), closer[1].astype(np.float64)
    return differences


def _p_value(d: Floats, epsilon: float) -> tuple[float, str]:
    """Return one rater's p of mean(d) < epsilon, and the name of the test."""
    n = len(d)
    if n >= FEWEST_ITEMS and np.ptp(d) == 0:
        return (0.0 if d[0] < epsilon else 1.0), "value"
    if n >= FEWEST_ITEMS:
        t = (d.mean() - epsilon) / (d.std(ddof=1) / math.sqrt(n))
        return float(scipy.stats.t.cdf(t, n - 1)), "t"
    return exact_p(int((d > 0).sum()), int((d < 0).sum()), n, epsilon), "exact"


def exact_p(closer: int, farther: int, n: int, epsilon: float) -> float:
    """Return P of mean(d) < epsilon; d is 1 (the rater closer) in `closer` of n pairs, -1 in `farther`, else 0.

    P is the chance of a result as extreme, maximised over all shares of -1 that pairs may have where mean(d) is
    epsilon; so the test errs at most as often as its level, for every n. A result is extreme if its score statistic is
    low: mean(d) - epsilon over the standard error where mean(d) is epsilon. Of 10 pairs with d = 0 and epsilon 0.1, p
    is at least 0.9 ** 10.

    Source: the unconditional exact test of noninferiority for paired shares; Hsueh, Liu and Chen 2001, Biometrics 57,
    478-483, with the estimate of Nam 1997, Biometrics 53, 1422-1430.
    """
    plus, minus = (places.ravel() for places in np.indices((n + 1, n + 1)))
    plus, minus = plus[plus + minus <= n], minus[plus + minus <= n]
    # The likeliest share of -1 where mean(d) is epsilon: the larger root of 2nq^2 - bq - minus epsilon (1 - epsilon).
    b = (plus + minus) * (1 - epsilon) - 2 * epsilon * (n - plus)
    share = (b + np.sqrt(b**2 + 8 * n * minus * epsilon * (1 - epsilon))) / (4 * n)
    error = np.sqrt(np.maximum(2 * share + epsilon - epsilon**2, 1e-12) / n)
    score = np.round(((plus - minus) / n - epsilon) / error, 9)
    extreme = score <= score[(plus == closer) & (minus == farther)][0]
    share_minus = np.linspace(0, (1 - epsilon) / 2, _SHARES)[:, None]
    shares = np.stack([share_minus + epsilon, share_minus, 1 - epsilon - 2 * share_minus], axis=-1).clip(0, 1)
    results = np.stack([plus, minus, n - plus - minus], axis=-1)[extreme]
    return min(1.0, float(scipy.stats.multinomial.pmf(results, n, shares).sum(axis=1).max()))
