"""Scores that somebody brings in a frame: what they must say, and what is taken where they do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import pandas as pd

from plumbline.errors import nearest
from plumbline.frames import filled, need, once
from plumbline.records import Score
from plumbline.transformations import AXES, ORIGINAL, TRANSFORMATIONS

_UNSAID: dict[str, Any] = {"task_type": "", "seed": 0, "status": "evaluated", "reason": ""}
_UNSAID |= {"n_failed": 0, "failed_policy": ""}
_STATUSES = get_args(Score.model_fields["status"].annotation)


def checked_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores with all columns that tables need. Raises ValueError for what would silently be left out.

    model, dataset, transformation and score must be there; who says nothing else says that all was evaluated, no item
    failed, and the axes are the transformations' own.
    """
    filled(scores, ("model", "dataset", "transformation"), "scores")
    need(scores, ("score",), "scores")
    missing = {name: value for name, value in _UNSAID.items() if name not in scores}
    if missing:
        scores = scores.assign(**missing)
    if "axis" not in scores:
        _refuse_others(
            scores["transformation"], (ORIGINAL, *TRANSFORMATIONS), "transformation"
        )  # whose axis nobody said
        axes = {name: one.axis for name, one in TRANSFORMATIONS.items()} | {ORIGINAL: ORIGINAL}
        scores = scores.assign(axis=scores["transformation"].map(axes))
    htebs = scores["transformation"].isin([ORIGINAL, *TRANSFORMATIONS])
    _refuse_others(scores.loc[htebs, "axis"], (ORIGINAL, *AXES), "axis")
    if strange := sorted(set(scores.loc[~htebs, "axis"]) & {ORIGINAL, *AXES, *TRANSFORMATIONS}):
        raise ValueError(
            f"scores: axis {strange[0]!r} has HTEB's transformations alone; give others an axis of their own"
        )
    _refuse_others(scores["status"], _STATUSES, "status")
    once(scores, Score.KEY, "scores")
    return scores


def _refuse_others(column: pd.Series, known: Iterable[str], what: str) -> None:
    names = list(known)
    if strange := next((one for one in column.unique() if one not in names), None):
        raise ValueError(f"scores: unknown {what} {strange!r}; {nearest(str(strange), names)}")
