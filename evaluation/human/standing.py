"""People's rank among models, from a table of scores by task, language and scorer.

A pair is a task in a language. Every number that compares scorers uses the pairs that all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from plumbline.frames import filled, numbers, once
from plumbline.importing import scipy
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.paired import spearman_interval

PAIR = ["task_type", "task", "language"]
EASY, HARD = 0.7, 0.5  # people's scores: easy from the first on, hard below the second (HUME, Figure 15)
V_MEASURE = "v_measure"
AGAINST = {"best": "max", "median": "median", "mean": "mean"}


def pairs_by_scorer(scores: pd.DataFrame, *, complete: bool = True) -> pd.DataFrame:
    """Return scores with pairs (task_type, task, language) as rows and scorers as columns.

    `scores` has the columns task_type, task, language, scorer and score, a row for each pair and scorer, of one metric
    each. With `complete` only pairs that every scorer has; `attrs["left_out"]` counts the others. Raises ValueError for
    a missing column, a score that is not a number, and a scorer that has two scores on a pair.
    """
    columns = [*PAIR, "scorer"]
    filled(scores, columns, "scores")
    once(scores, columns, "scores")
    scored = scores.assign(score=numbers(scores["score"], "scores"))
    wide = scored.pivot(index=PAIR, columns="scorer", values="score")
    order = pd.MultiIndex.from_frame(scores[PAIR].drop_duplicates())
    wide = wide.loc[order, list(dict.fromkeys(scores["scorer"]))]
    counted = wide.dropna() if complete else wide
    counted.attrs["left_out"] = len(wide) - len(counted)
    return counted


def with_ami(scores: pd.DataFrame, by: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield (place, its rows of the task's own metric); for clusterings AMI comes first, which hardly depends on n."""
    for key, every in scores.groupby(by, sort=False):
        main = every[every["main"]]
        if (main["metric"] == V_MEASURE).any() and len(adjusted := every[every["metric"] == "ami"]):
            yield key, adjusted
        if len(main):
            yield key, main


def by_group(wide: pd.DataFrame) -> pd.DataFrame:
    """Return each scorer's mean in each group of pairs of one task type and language, and over all (HUME, Table 1).

    Scorers are rows; columns are (task_type, language), the last ("overall", ""): the plain mean over pairs, not over
    groups. `attrs["pairs"]` has the number of pairs behind each column.
    """
    groups = wide.groupby(level=["task_type", "language"])
    table = groups.mean().T
    table[("overall", "")] = wide.mean()
    table.attrs["pairs"] = {**{key: int(n) for key, n in groups.size().items()}, ("overall", ""): len(wide)}
    return table


def by_type(wide: pd.DataFrame) -> pd.DataFrame:
    """Return each scorer's mean over the pairs of each task type, and over all pairs (HUME, Table 2).

    Scorers are rows. The last column, "overall", is the plain mean over pairs, as in the paper. `attrs["pairs"]` has
    the number of pairs behind each column.
    """
    groups = wide.groupby(level="task_type", sort=False)
    table = groups.mean().T.assign(overall=wide.mean())
    table.attrs["pairs"] = {**groups.size().to_dict(), "overall": len(wide)}
    return table


def rank(wide: pd.DataFrame, people: str) -> tuple[int, int]:
    """Return (people's rank among models by the mean over pairs, the number of ranks).

    Raises ValueError if there is no column of people, as do `wins` and `gaps`.
    """
    means = _models(wide, people).mean()
    return 1 + int((means > wide[people].mean() + 1e-12).sum()), len(means) + 1


def wins(wide: pd.DataFrame, people: str, by: str | list[str] = "") -> pd.DataFrame:
    """Return on how many pairs people are above the best, the median and the mean model.

    `by` is "", "task_type", "language", or a group for each pair, such as `in_languages` gives. The frame has the
    columns group ("" for all), against (best, median, mean), wins, ties, n and share (of wins).
    """
    models = _models(wide, people)
    named = [""] * len(wide) if by == "" else by
    groups = wide.index.get_level_values(named) if isinstance(named, str) else pd.Index(named)
    rows = []
    for group in dict.fromkeys(groups):
        for against, how in AGAINST.items():
            lead = (wide[people] - models.agg(how, axis=1))[groups == group]
            won, tied = int((lead > 1e-12).sum()), int((lead.abs() <= 1e-12).sum())
            rows.append((group, against, won, tied, len(lead), won / len(lead)))
    return pd.DataFrame(rows, columns=["group", "against", "wins", "ties", "n", "share"])


def in_languages(tasks: Iterable[str], languages: Iterable[str]) -> list[str]:
    """Return for each pair whether its task is "in several languages" or "in one language".

    HUME's 29% of wins on multilingual tasks and 0% on English ones use this split: English pairs of tasks in several
    languages count as multilingual.
    """
    both = pd.DataFrame({"task": list(tasks), "language": list(languages)})
    number = both.groupby("task")["language"].transform("nunique")
    return ["in several languages" if n > 1 else "in one language" for n in number.tolist()]


def gaps(wide: pd.DataFrame, people: str) -> pd.DataFrame:
    """Return for each pair people's score, the models' range, people's lead over each of `AGAINST`, and its difficulty.

    Columns: task_type, task, language, people, worst, median, mean, best, best_model, over_best, over_median,
    over_mean, difficulty ("easy" from 0.7 on, "hard" below 0.5, else "moderate"), relative (the best model's score as a
    share of people's: 1.85 is 185%; NaN where people's is not above 0). HUME, Figures 2, 13, 14 and 15.
    """
    models = _models(wide, people)
    table = pd.DataFrame({"people": wide[people], "worst": models.min(axis=1)})
    for against in ("median", "mean", "best"):
        table[against] = models.agg(AGAINST[against], axis=1)
    table["best_model"] = models.idxmax(axis=1)
    for against in AGAINST:
        table[f"over_{against}"] = table["people"] - table[against]
    table["difficulty"] = table["people"].map(difficulty)
    table["relative"] = (table["best"] / table["people"]).where(table["people"] > 0)
    return table.reset_index()


def difficulty(score: float) -> str:
    """Return how hard a pair is by people's score; empty without one."""
    if math.isnan(score):
        return ""
    return "easy" if score >= EASY else "hard" if score < HARD else "moderate"


def relative(score: float, people: float, trivial: float = math.nan) -> tuple[float, float]:
    """Return (score / people, the same after subtracting a trivial score from both); NaN if people are not above it.

    A trivial score is part of both: for a V-measure of .85 and people's .49, with .64 for one cluster an item, the
    first ratio is 173%, and the second undefined, as people are below it.
    """
    plain = score / people if people > 0 else math.nan
    return plain, (score - trivial) / (people - trivial) if people > trivial else math.nan


def shared_difficulty(wide: pd.DataFrame, people: str, model: str, rng: np.random.Generator) -> tuple[Estimate, float]:
    """Return (Spearman's rho of people's and another scorer's scores over pairs, its p).

    It shows whether the same pairs are hard for both (HUME, Table 13, for language models). The interval is a
    percentile bootstrap over pairs, p is scipy's, from the t distribution. Pairs that one of the two lacks do not
    count.
    """
    both = wide[[people, model]].dropna().to_numpy(np.float64)
    rho = spearman_interval(both[:, 0], both[:, 1], rng=rng)
    return rho, math.nan if math.isnan(rho.value) else float(scipy.stats.spearmanr(both[:, 0], both[:, 1]).pvalue)


def _models(wide: pd.DataFrame, people: str) -> pd.DataFrame:
    if people not in wide:
        raise ValueError(f"scores: no scorer is called {people!r}; there are {', '.join(map(str, wide.columns))}")
    models = wide.drop(columns=people)
    if models.empty:
        raise ValueError("scores: no model to compare people with, or no pair that all scorers have")
    return models


Z = 1.96
TABLE_8 = ("task", "subset", "language", "task_type", "n", "raters", "answers", "people", "low", "high", "interval",
           "measure", "agreement", "best", "best_model", "star", "reason")  # fmt: skip
_CORRELATED, _CLASSIFIED = ("sts", "str", "summarisation"), ("classification", "multilabel_classification")
AGGREGATED = (*_CORRELATED, *_CLASSIFIED)  # where HUME scores people's joint answers


def wilson_interval(share: float, n: int, z: float = Z) -> tuple[float, float]:
    """Return Wilson's score interval of a share of n items (Wilson 1927, JASA 22, 209-212).

    The centre is (p + z^2 / 2n) / (1 + z^2 / n), the half width z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4n^2).
    """
    centre, scale = share + z**2 / (2 * n), 1 + z**2 / n
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / scale, (centre + half) / scale


def fisher_interval(correlation: float, n: int, z: float = Z) -> tuple[float, float]:
    """Return Fisher's interval of a correlation over n items: tanh(atanh r -+ z / sqrt(n - 3)).

    For Spearman's rho it is approximate, and too narrow: the error is about 1.03 / sqrt(n - 3) (Fieller et al. 1957).
    Source: Fisher 1915, Biometrika 10.
    """
    middle, reach = math.atanh(correlation), z / math.sqrt(n - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def paper_interval(task_type: str, value: float, n: int, raters: Sequence[float]) -> tuple[Estimate, str]:
    """Return HUME's interval of people's score, and its kind: "Wilson", "Fisher z" or "range of raters".

    `value` is its score of people (`table_8`), `raters` each rater's. Undefined for a share outside 0 to 1, for a
    correlation of 1 or -1, and for fewer items than the formula needs.
    """
    if task_type not in AGGREGATED and len(raters) > 1:
        low, high = min(raters), max(raters)
        no_range = "all raters have the same score, so their range says nothing"
        span = Estimate(value=value, low=low, high=high, n=n) if low < high else Estimate.alone(value, no_range, n)
        return span, "range of raters"
    limits: Callable[[float, int], tuple[float, float]]
    if task_type in _CORRELATED:
        kind, limits, defined = "Fisher z", fisher_interval, n > 3 and abs(value) < 1
        reason = "Fisher's z needs more than 3 items, and a rho between -1 and 1"
    else:
        kind, limits, defined = "Wilson", wilson_interval, n > 0 and 0 <= value <= 1
        reason = "Wilson's interval needs items, and a score from 0 to 1"
    if not defined:
        return Estimate.alone(value, reason, n), kind
    low, high = limits(value, n)
    return Estimate(value=value, low=low, high=high, n=n), kind


def table_8(scores: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """Return people's scores with intervals, agreement and stars, a row a task in a language, as HUME's Table 8.

    `scores` has rows of `HumanScore` (of each task's own metric), `agreement` of `HumanAgreement`, the measure that the
    paper prints first. Columns: task, subset, language, task_type, n (items, NaN if unknown), raters, answers, people
    (their joint score for classification and STS, else the mean of raters; HUME's votes settle ties by the alphabet:
    `answers.aggregate(..., ties="first")`), low, high, interval (which of HUME's), measure and agreement (empty and NaN
    for one rater), best (model's score), best_model, star (whether it lies outside people's interval, which HUME calls
    significant) and reason. Tasks without a score of people are left out.

    A star is no test: it looks at the best of many models, ignores the model's uncertainty, and the items are the same.
    `scores.score` has the paired difference.
    """
    keys = ["task", "subset", "language"]
    first = agreement.drop_duplicates(keys).set_index(keys)
    rows = []
    for key, rows_of_task in scores.groupby(keys, sort=False):
        of_kind = {kind: rows_of_task[rows_of_task["scorer_kind"] == kind] for kind in ("rater", "aggregate", "model")}
        raters, together = of_kind["rater"].dropna(subset="score"), of_kind["aggregate"]
        counted = together if len(together) else rows_of_task  # a rater alone may have others
        kind, n = str(rows_of_task["task_type"].iloc[0]), int(counted["n_items"].max())
        people = together.head(1) if kind in AGGREGATED else raters
        value = float(people["score"].mean())
        if math.isnan(value):
            continue
        estimate, interval = paper_interval(kind, value, n, raters["score"].tolist())
        top = of_kind["model"].dropna(subset="score").sort_values("score", ascending=False, kind="stable").head(1)
        best, agreed = float(top["score"].max()), key in first.index and len(raters) > 1
        row = {
            **dict(zip(keys, key, strict=True)), "task_type": kind, "n": n or math.nan, "raters": len(raters),
            "answers": int(raters["n_items"].sum()), "people": value, "low": estimate.low, "high": estimate.high,
            "interval": interval, "measure": first.at[key, "measure"] if agreed else "",
            "agreement": first.at[key, "value"] if agreed else math.nan, "best": best,
            "best_model": "".join(top["scorer"]), "star": best < estimate.low or best > estimate.high,
            "reason": estimate.reason,
        }  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows, columns=list(TABLE_8))
