"""Language models that do people's tasks beside people: agreement, a rater's place, and what is hard for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.judges.alternative import CROWD, AlternativeTest, result_of
from evaluation.human.agreement import with_people
from evaluation.human.answers import ScorerAnswers, TaskItems
from evaluation.human.metrics import OF_CANDIDATES, OF_LABELS
from evaluation.human.standing import pairs_by_scorer, shared_difficulty
from plumbline.statistics.estimates import Floats

COLUMNS = ("task", "language", "model", "measure", "value", "low", "high", "interval", "n", "epsilon",
           "winning_rate", "advantage", "passes", "raters", "reason")  # fmt: skip
DIFFICULTY = ("model", "rho", "low", "high", "p", "n", "reason")
FEWEST_RATERS = 3  # for the alternative annotator test
PEOPLE = "raters_mean"


def annotators(
    task: TaskItems,
    models: Sequence[ScorerAnswers],
    raters: Sequence[ScorerAnswers],
    *,
    otherwise: Mapping[str, str] | None = None,
    n_resamples: int = 1000,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """A row (`COLUMNS`) for each model: its agreement with raters, and the alternative annotator test.

    `otherwise` says how models were asked for relevance that were not asked as people were: an order is on no common
    scale with grades, so that these have no test.
    """
    rows = []
    for model in models:
        measure, found, interval = with_people(task, model, raters, n_resamples=n_resamples, rng=rng)
        asked = (otherwise or {}).get(model.scorer, task.asked)
        test = in_a_raters_place(task, model, raters) if asked == task.asked else None
        why = test.reason if test else f"it was asked for what is {asked}, and people were not"
        numbers = (found.value, found.low, found.high, "" if math.isnan(found.low) else interval, found.n)
        omega, rho, passes, n = (test.omega, test.rho, test.passes, len(test.raters)) if test else (*_NONE, False, 0)
        reason = "; ".join(filter(None, (found.reason, why)))
        said = (task.name, task.language, model.scorer, measure, *numbers)
        rows.append((*said, CROWD, omega, rho, passes, n, reason))
    return pd.DataFrame(rows, columns=list(COLUMNS))


_NONE = (math.nan, math.nan)


def in_a_raters_place(
    task: TaskItems, model: ScorerAnswers, raters: Sequence[ScorerAnswers], epsilon: float = CROWD
) -> AlternativeTest:
    """The alternative annotator test of a model (`annotation.judges.alternative`), an item a pair.

    How close an answer is to the other raters' of the item: of labels, marks and choices the share of others who gave
    the same, of scores minus the mean square distance, and of candidates the same over an item's candidates. NaN with a
    reason for fewer than three raters, and for clusterings: the numbers of one rater's clusters are not another's.

    Source: Calderon, Reichart and Dror 2025, ACL, pages 16051-16081, section 3.
    """
    why = "a cluster's number is each rater's own" if task.asked == "cluster" else ""
    if len(raters) < FEWEST_RATERS:
        why = f"the alternative annotator test takes {FEWEST_RATERS} raters"
    if why:
        return AlternativeTest(epsilon, math.nan, math.nan, False, pd.DataFrame(), why)
    apart = _apart(task)
    found: dict[str, tuple[Floats, Floats]] = {}
    for place, rater in enumerate(raters):
        others = [one.values for number, one in enumerate(raters) if number != place]
        human, machine = list[float](), list[float]()
        for said, own, *each in zip(rater.values, model.values, *others, strict=True):
            there = [one for one in each if one is not None]
            if said is not None and own is not None and there:
                human.append(float(np.mean([apart(said, one) for one in there])))
                machine.append(float(np.mean([apart(own, one) for one in there])))
        if human:
            first, second = np.array(human), np.array(machine)
            tie = np.isclose(first, second, rtol=0, atol=1e-9)
            closer = ((second < first) | tie).astype(np.float64), ((first < second) | tie).astype(np.float64)
            found[rater.scorer] = closer
    return result_of(found, epsilon)


def _apart(task: TaskItems) -> Callable[[Any, Any], float]:
    """How far apart two answers are."""
    if task.asked in OF_LABELS or task.asked == "same":
        return lambda one, other: float(one != other)
    if task.asked in OF_CANDIDATES or task.candidates:
        return lambda one, other: float(np.mean((one - other) ** 2))
    return lambda one, other: float((one - other) ** 2)


def difficulty(scores: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Whether tasks that are hard for people are hard for each language model too: a row (`DIFFICULTY`) each.

    `scores` are by the tasks' own metrics, with the columns that `scores.score` gives (HUME, Table 13).
    """
    own = scores[scores["scorer_kind"].isin((PEOPLE, "llm")) & scores["score"].notna()]
    names = own.loc[own["scorer_kind"] == "llm", "scorer"].unique()
    if "subset" in own:  # which may be several of one task and language
        own = own.assign(task=own["task"] + " " + own["subset"])
    rows = []
    for name in names:
        both = own[(own["scorer"] == name) | (own["scorer_kind"] == PEOPLE)]
        wide = pairs_by_scorer(both, complete=False)
        if PEOPLE not in wide:
            continue
        found, p = shared_difficulty(wide, PEOPLE, name, rng)
        rows.append((name, found.value, found.low, found.high, p, found.n, found.reason))
    return pd.DataFrame(rows, columns=list(DIFFICULTY))
