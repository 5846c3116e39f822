"""Scores under two generators (HTEB, Table 22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evaluation.tables.pairs import averaged, counting_scores, with_originals
from evaluation.tables.scores import axis_means
from plumbline.transformations import Axes, in_order

_CELL = ["model", "dataset", "transformation"]
_RUN = [*_CELL, "seed"]
_SIDES = ("first", "second")
_NUMBERS = ["original", *_SIDES, "first_difference", "second_difference", "change"]
_COLUMNS = ["name", "axis", *_NUMBERS, "n_datasets", "n_models", "reason", "included_rejected"]


def generator_table(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The scores of two studies that differ in their generator (HTEB, Table 22): transformations under their axes.

    Only models, data sets, transformations and seeds count that both have, so that nothing but the generator differs,
    and the items that its outputs lost: each difference is from the originals of the items that are left. Of the second
    study what no verdict accepts counts too where its user included it: HTEB had one generator's outputs rated and took
    the other for a check of sensitivity (appendix O). Columns: name (transformation, axis or total), axis,
    original (of whole data sets), first, second, first_difference and second_difference (from each study's own
    originals, points), change (second_difference - first_difference), n_datasets, n_models, reason, included_rejected
    (whether any of the second's scores is such a one). Means are over data sets and models, then over transformations,
    then over axes (METHOD: HTEB, 2.3).
    """
    both, lost = _shared(first, second)
    if both.empty:
        return pd.DataFrame(columns=_COLUMNS)
    axes = Axes.of(both)
    pooled = {column: axis_means(both.assign(model=""), column, axes).loc[""] for column in _NUMBERS}
    rows = []
    for axis in axes.names:
        total = axis == axes.total
        mine = both[both["axis"].isin(axes.of_total if total else [axis])]
        if mine.empty:
            continue
        values = {column: means[axis] for column, means in pooled.items()}
        undefined = "an axis has no score that both studies have" if total and np.isnan(values["first"]) else ""
        reason = "; ".join(filter(None, [undefined, lost]))
        rows.append(_row(axis, "" if total else axis, mine, values, reason))
        for name in [] if total else in_order(mine["transformation"].unique()):
            part = mine[mine["transformation"] == name]
            rows.append(_row(name, axis, part, part[_NUMBERS].mean(skipna=False).to_dict(), lost))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _shared(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The scores that both studies have, side by side, and how many of each that leaves out."""
    sources = ((first, False), (second, True))
    found = [with_originals(counting_scores(scores, include), scores) for scores, include in sources]
    defined = [rows[rows["why"] == ""] for rows in found]
    common = defined[0][_RUN].merge(defined[1][_RUN])
    pairs = [averaged(rows.merge(common, on=_RUN)) for rows in defined]
    added = pairs[1][[*_CELL, "score", "difference", "included_rejected"]]
    both = pairs[0].drop(columns=["included_rejected", "original"]).rename(columns={"original_all": "original"})
    both = both.merge(added, on=_CELL, suffixes=("_1", "_2"))
    sides = {f"{old}_{number}": new for number, side in enumerate(_SIDES, 1) for old, new in _names_of(side).items()}
    both = both.rename(columns=sides)
    lost = [len(rows) - len(common) for rows in found]
    failed = [int(pair["n_failed"].sum()) for pair in pairs]
    notes = [f"without {lost[0]} scores of the first study and {lost[1]} of the second that the other lacks"] * any(
        lost
    )
    notes += [f"{failed[0]} items of the first study and {failed[1]} of the second had failed outputs"] * any(failed)
    return both.assign(change=both["second_difference"] - both["first_difference"]), "; ".join(notes)


def _names_of(side: str) -> dict[str, str]:
    return {"score": side, "difference": f"{side}_difference"}


def _row(name: str, axis: str, part: pd.DataFrame, values: Mapping[Any, Any], reason: str) -> dict[str, object]:
    counts = {"n_datasets": part["dataset"].nunique(), "n_models": part["model"].nunique()}
    return {"name": name, "axis": axis, **values, **counts, "reason": reason} | {
        "included_rejected": bool(part["included_rejected"].any())
    }
