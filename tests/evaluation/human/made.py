"""Answers of raters who are known: what they mistake for what, how often they cannot tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evaluation.human.answers import ScorerAnswers, TaskItems, given_by

COLUMNS = ["item", "candidate", "rater_id", "value", "label", "abstained"]


def gold_of(right: Sequence[Any]) -> pd.DataFrame:
    """Gold of labels, of numbers, or of lists of numbers over candidates."""
    rows: list[tuple[str, str, float, str]] = []
    for item, one in enumerate(right):
        if isinstance(one, str):
            rows.append((str(item), "", np.nan, one))
        elif isinstance(one, int | float):
            rows.append((str(item), "", float(one), ""))
        else:
            rows += [(str(item), f"d{k}", float(grade), "") for k, grade in enumerate(one)]
    return pd.DataFrame(rows, columns=["item", "candidate", "value", "label"])


def answers_of(by_rater: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Answers as gold is written; None where there is none, "?" for an abstention."""
    parts = []
    for rater, said in by_rater.items():
        there = [(str(item), one) for item, one in enumerate(said) if one is not None]
        told = gold_of([one for _, one in there]).assign(rater_id=rater)
        told["item"] = [there[int(place)][0] for place in told["item"]]
        told["abstained"] = told["label"] == "?"
        told.loc[told["abstained"], "label"] = ""
        parts.append(told)
    return pd.concat(parts)[COLUMNS]


def task_of(right: Sequence[Any], asked: Any, metric: str, kind: str = "made") -> TaskItems:
    """A task of this gold."""
    return TaskItems.of(("made", "", "eng"), kind, asked, metric, gold_of(right))


def people(task: TaskItems, by_rater: Mapping[str, Sequence[Any]]) -> list[ScorerAnswers]:
    """What these raters gave."""
    return given_by(task, answers_of(by_rater))
