"""Intervals, aggregates and stars exactly as HUME has them, beside the ones that its numbers should have.

Its intervals are Wilson's of accuracies, Fisher's of correlations, and of clustering and reranking from the lower to
the higher rater; of a single rater there Wilson's again, with the V-measure or the average precision for a share of
right items (the paper does not say so; its ten such intervals are these). A range of two raters claims no coverage, and
an average precision is no binomial share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.statistics.paired import Estimate

Z = 1.96
TABLE_8 = ("task", "subset", "language", "task_type", "n", "raters", "answers", "people", "low", "high", "interval",
           "measure", "agreement", "best", "best_model", "star", "reason")  # fmt: skip
_CORRELATED, _CLASSIFIED = ("sts", "str", "summarisation"), ("classification", "multilabel_classification")
AGGREGATED = (*_CORRELATED, *_CLASSIFIED)  # where HUME's score of people is what they say together


def wilson_interval(share: float, n: int, z: float = Z) -> tuple[float, float]:
    """Wilson's score interval of a share of n items (Wilson 1927, JASA 22, 209-212).

    The centre is (p + z^2 / 2n) / (1 + z^2 / n), the half width z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4n^2).
    """
    centre, scale = share + z**2 / (2 * n), 1 + z**2 / n
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / scale, (centre + half) / scale


def fisher_interval(correlation: float, n: int, z: float = Z) -> tuple[float, float]:
    """Fisher's interval of a correlation over n items: tanh(atanh r -+ z / sqrt(n - 3)) (Fisher 1915, Biometrika 10).

    Of Spearman's rho it is approximate, and narrow: its error is some 1.03 / sqrt(n - 3) (Fieller et al. 1957).
    """
    middle, reach = math.atanh(correlation), z / math.sqrt(n - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def paper_interval(task_type: str, value: float, n: int, raters: Sequence[float]) -> tuple[Estimate, str]:
    """HUME's 95% interval of people's score, and which it is: "Wilson", "Fisher z" or "range of raters".

    `value` is its score of people (`paper_score`), `raters` each rater's. Undefined for a share outside 0 to 1, for a
    correlation of 1 or -1, and for fewer items than the formula takes.
    """
    kind = "Fisher z" if task_type in _CORRELATED else "Wilson"
    if task_type not in AGGREGATED and len(raters) > 1:
        return Estimate(value, min(raters), max(raters), n, ""), "range of raters"
    if kind == "Fisher z":
        reason = "" if n > 3 and abs(value) < 1 else "Fisher's z needs more than 3 items, and a rho within -1 and 1"
    else:
        reason = "" if n > 0 and 0 <= value <= 1 else "Wilson's interval needs items, and a score from 0 to 1"
    if reason:
        return Estimate(value, math.nan, math.nan, n, reason), kind
    low, high = (fisher_interval if kind == "Fisher z" else wilson_interval)(value, n)
    return Estimate(value, low, high, n, ""), kind


def paper_score(task_type: str, raters: Sequence[float], together: float) -> float:
    """HUME's score of people: of classification and STS what they say `together`, else the mean of `raters`.

    Its votes go to the alphabet where labels tie: `answers.aggregate(..., ties="first")`.
    """
    if task_type in AGGREGATED:
        return together
    return sum(raters) / len(raters) if raters else math.nan


def star(interval: Estimate, model: float) -> bool:
    """Whether a model lies outside people's interval, which HUME calls significant.

    It is no test: the best of many models is looked at, its own uncertainty is left out, and the items are the same.
    `scores.score` has the paired difference.
    """
    return bool(model < interval.low or model > interval.high)


def table_8(scores: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """People's scores with intervals, agreement and stars, a row a task in a language, exactly as HUME's Table 8.

    `scores` has rows of `HumanScore` (of each task's own metric), `agreement` of `HumanAgreement`, the measure that the
    paper prints first. Columns: task, subset, language, task_type, n (items), raters, answers (of all raters), people,
    low, high, interval (which of HUME's), measure and agreement (empty and NaN for one rater), best (model's score),
    best_model, star and reason. Tasks without a score of people are left out.
    """
    place = ["task", "subset", "language"]
    first = agreement.drop_duplicates(place).set_index(place)
    rows = []
    for key, own in scores.groupby(place, sort=False):
        by_kind = dict(iter(own.groupby("scorer_kind")))
        raters = by_kind["rater"].dropna(subset="score") if "rater" in by_kind else own.head(0)
        together = float(by_kind["aggregate"]["score"].iloc[0]) if "aggregate" in by_kind else math.nan
        counted = by_kind.get("aggregate", own)  # a rater alone may have others
        kind, n = str(own["task_type"].iloc[0]), int(counted["n_items"].max())
        value = paper_score(kind, raters["score"].tolist(), together)
        if math.isnan(value):
            continue
        found, interval = paper_interval(kind, value, n, raters["score"].tolist())
        models = by_kind["model"].dropna(subset="score") if "model" in by_kind else own.head(0)
        top = models.sort_values("score", ascending=False, kind="stable").head(1)
        best, name = (float(top["score"].iloc[0]), str(top["scorer"].iloc[0])) if len(top) else (math.nan, "")
        agreed = first.loc[[key]].iloc[0] if key in first.index and len(raters) > 1 else None
        rows.append(
            (*key, kind, n, len(raters), int(raters["n_items"].sum()), value, found.low, found.high, interval)
            + (("", math.nan) if agreed is None else (agreed["measure"], agreed["value"]))
            + (best, name, star(found, best), found.reason)
        )
    return pd.DataFrame(rows, columns=list(TABLE_8))
