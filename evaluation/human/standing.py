"""Where people stand among models: from a table of scores, one for each task, language and scorer.

A pair is a task in a language. Every number that compares scorers rests on the pairs that all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from plumbline.frames import filled, numbers, once
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.paired import spearman_interval

PAIR = ["task_type", "task", "language"]
EASY, HARD = 0.7, 0.5  # people's scores from which on a pair is easy, and below which it is hard (HUME, Figure 15)
AGAINST = {"best": "max", "median": "median", "mean": "mean"}


def pairs_by_scorer(scores: pd.DataFrame, *, complete: bool = True) -> pd.DataFrame:
    """Scores with pairs (task_type, task, language) as rows and scorers as columns.

    `scores` has the columns task_type, task, language, scorer and score, a row for each pair and scorer, of one metric
    each. With `complete` only pairs that every scorer has; `attrs["left_out"]` counts the others. Raises ValueError for
    a column that is missing, a score that is no number, and a scorer who is twice on a pair.
    """
    columns = [*PAIR, "scorer"]
    filled(scores, columns, "scores")
    once(scores, columns, "scores")
    known = scores.assign(score=numbers(scores["score"], "scores"))
    wide = known.pivot(index=PAIR, columns="scorer", values="score")
    order = pd.MultiIndex.from_frame(scores[PAIR].drop_duplicates())
    wide = wide.loc[order, list(dict.fromkeys(scores["scorer"]))]
    whole = wide.dropna() if complete else wide
    whole.attrs["left_out"] = len(wide) - len(whole)
    return whole


def by_group(wide: pd.DataFrame) -> pd.DataFrame:
    """Each scorer's mean in each group of pairs of one task type and language, and over all pairs (HUME, Table 1).

    Scorers are rows; columns are (task_type, language), the last ("overall", ""): the plain mean over pairs, not over
    groups. `attrs["pairs"]` has how many pairs each column rests on.
    """
    groups = wide.groupby(level=["task_type", "language"])
    table = groups.mean().T
    table[("overall", "")] = wide.mean()
    table.attrs["pairs"] = {**{key: int(n) for key, n in groups.size().items()}, ("overall", ""): len(wide)}
    return table


def by_type(wide: pd.DataFrame) -> pd.DataFrame:
    """Each scorer's mean over the pairs of each task type, and over all pairs (HUME, Table 2): scorers by types.

    The last column, "overall", is the plain mean over pairs, as the paper's is. `attrs["pairs"]` has how many pairs
    each column rests on.
    """
    groups = wide.groupby(level="task_type", sort=False)
    table = groups.mean().T.assign(overall=wide.mean())
    table.attrs["pairs"] = {**groups.size().to_dict(), "overall": len(wide)}
    return table


def by_task(wide: pd.DataFrame, task_type: str) -> pd.DataFrame:
    """Each scorer's mean over the languages of each task of a type (HUME, Tables 4 to 7): scorers by tasks.

    Of `pairs_by_scorer(..., complete=False)` each scorer has the mean over its own languages. So has the paper, whose
    models have French items that nobody rated.
    """
    own = wide[wide.index.get_level_values("task_type") == task_type]
    return own.groupby(level="task").mean().T


def rank(wide: pd.DataFrame, people: str, others: Sequence[str] = ()) -> tuple[int, int]:
    """(people's rank among models by the mean over pairs, of how many): 1 and the number of models with more.

    `others` are columns that are no models, such as people by another rule. Raises ValueError for people who are no
    column.
    """
    means = _models(wide, people, others).mean()
    return 1 + int((means > wide[people].mean() + 1e-12).sum()), len(means) + 1


def wins(wide: pd.DataFrame, people: str, others: Sequence[str] = (), by: str | list[str] = "") -> pd.DataFrame:
    """On how many pairs people are above the best, the median and the mean model.

    `by` is "", "task_type", "language", or a group for each pair, such as `in_languages` gives. The frame has the
    columns group ("" for all), against (best, median, mean), wins, ties, n and share (of wins).
    """
    models = _models(wide, people, others)
    named = [""] * len(wide) if by == "" else by
    groups = wide.index.get_level_values(named) if isinstance(named, str) else pd.Index(named)
    rows = []
    for group in dict.fromkeys(groups):
        for against, how in AGAINST.items():
            apart = (wide[people] - models.agg(how, axis=1))[groups == group]
            won, tied = int((apart > 1e-12).sum()), int((apart.abs() <= 1e-12).sum())
            rows.append((group, against, won, tied, len(apart), won / len(apart)))
    return pd.DataFrame(rows, columns=["group", "against", "wins", "ties", "n", "share"])


def in_languages(tasks: Iterable[str], languages: Iterable[str]) -> list[str]:
    """Of each pair whether its task is "in several languages" or "in one language".

    HUME's 29% of wins on multilingual tasks and 0% on English ones are of this split: the English pairs of tasks in
    several languages are among the first.
    """
    both = pd.DataFrame({"task": list(tasks), "language": list(languages)})
    number = both.groupby("task")["language"].transform("nunique")
    return ["in several languages" if one > 1 else "in one language" for one in number.tolist()]


def gaps(wide: pd.DataFrame, people: str, others: Sequence[str] = ()) -> pd.DataFrame:
    """Of each pair people's score, the models' range, how far people are above each of `AGAINST`, and how hard it is.

    Columns: task_type, task, language, people, worst, median, mean, best, best_model, over_best, over_median,
    over_mean, difficulty ("easy" from 0.7 on, "hard" below 0.5, else "moderate"), relative (the best model's score as a
    share of people's: 1.85 is 185%; NaN where people's is not above 0). HUME, Figures 2, 13, 14 and 15.
    """
    models = _models(wide, people, others)
    table = pd.DataFrame({"people": wide[people], "worst": models.min(axis=1)})
    for against in ("median", "mean", "best"):
        table[against] = models.agg(AGAINST[against], axis=1)
    table["best_model"] = models.idxmax(axis=1)
    for against in AGAINST:
        table[f"over_{against}"] = table["people"] - table[against]
    table["difficulty"] = [difficulty(one) for one in table["people"]]
    table["relative"] = (table["best"] / table["people"]).where(table["people"] > 0)
    return table.reset_index()


def difficulty(score: float) -> str:
    """How hard a pair is by people's score; empty where there is none."""
    if math.isnan(score):
        return ""
    return "easy" if score >= EASY else "hard" if score < HARD else "moderate"


def relative(score: float, people: float, trivial: float = math.nan) -> tuple[float, float]:
    """(score / people, the same with a trivial baseline's score taken off both); NaN where people have no more.

    A score that needs no reading is part of both: of a V-measure of .85 beside people's .49, where one cluster an item
    has .64, the first ratio says 173%, and the second nothing, as people are below it.
    """
    plain = score / people if people > 0 else math.nan
    return plain, (score - trivial) / (people - trivial) if people > trivial else math.nan


def shared_difficulty(wide: pd.DataFrame, people: str, other: str, rng: np.random.Generator) -> tuple[Estimate, float]:
    """(Spearman's rho of people's and another scorer's scores over pairs, its p): whether the same is hard for both.

    HUME, Table 13, of language models; the interval is a percentile bootstrap over pairs, p is scipy's, of the t
    distribution. Pairs that one of the two lacks do not count.
    """
    from scipy import stats  # noqa: PLC0415 (half a second)

    both = wide[[people, other]].dropna().to_numpy(np.float64)
    found = spearman_interval(both[:, 0], both[:, 1], rng=rng)
    return found, math.nan if math.isnan(found.value) else float(stats.spearmanr(both[:, 0], both[:, 1]).pvalue)


def _models(wide: pd.DataFrame, people: str, others: Sequence[str]) -> pd.DataFrame:
    if people not in wide:
        raise ValueError(f"scores: no scorer is called {people!r}; there are {', '.join(map(str, wide.columns))}")
    models = wide.drop(columns=[people, *others])
    if models.empty:
        raise ValueError("scores: there is no model to compare people with, or no pair that all have")
    return models
