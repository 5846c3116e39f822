"""Scores that somebody brings in a frame: what they must say, and what is taken where they do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.errors import nearest
from plumbline.frames import filled, need, numbers, once
from plumbline.records import Score
from plumbline.transformations import AXES, ORIGINAL, TRANSFORMATIONS

_UNSAID: dict[str, Any] = {"task_type": "", "seed": 0, "status": "evaluated", "reason": ""}
_UNSAID |= {"n_failed": 0, "failed_policy": ""}
_ROUNDING = 1e-9  # by which a score may be off the scale
Floats = NDArray[np.float64]
_STATUSES = get_args(Score.model_fields["status"].annotation)


def checked_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores with all columns that tables need. Raises ValueError for what would silently be left out.

    model, dataset, transformation and score must be there; who says nothing else says that all was evaluated, no item
    failed, and the axes are the transformations' own.
    """
    filled(scores, ("model", "dataset", "transformation"), "scores")
    need(scores, ("score",), "scores")
    scores = scores.assign(score=_on_scale(scores["score"]), **_said(scores))
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


def _said(scores: pd.DataFrame) -> dict[str, Any]:
    """What rows may leave unsaid, as a whole column or in some rows: a frame read from CSV has nothing for empty."""
    said = {name: scores.get(name, value) for name, value in _UNSAID.items()}
    for name in ("task_type", "reason", "failed_policy"):
        if name in scores:
            said[name] = scores[name].astype(object).where(scores[name].notna(), "").astype(str)
    if "n_failed" in scores:
        said["n_failed"] = np.nan_to_num(numbers(scores["n_failed"], "scores")).astype(np.int64)
    return said


def _on_scale(column: pd.Series) -> Floats:
    """The scores as numbers, NaN where there is none."""
    found = numbers(column, "scores")
    if (off := np.abs(found) > 1 + _ROUNDING).any():
        what = f"{found[off.argmax()]:g} is no score from -1 to 1 ({off.sum()} of {len(off)} are none)"
        raise ValueError(f"scores: {what}; divide percentages by 100")
    return found


def _refuse_others(column: pd.Series, known: Iterable[str], what: str) -> None:
    names = list(known)
    if strange := [one for one in column.unique() if one not in names]:
        raise ValueError(f"scores: unknown {what} {strange[0]!r}; {nearest(str(strange[0]), names)}")
