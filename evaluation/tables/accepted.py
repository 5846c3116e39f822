"""Scores on accepted pairs alone, beside those of all items."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from evaluation.tables.pairs import with_originals
from evaluation.tables.scores import in_order

_KEYS = ["model", "axis", "transformation"]


def accepted_table(rows: pd.DataFrame, scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """A row for each model x transformation: its scores on the items of accepted pairs alone, before and after.

    `rows` are those of `evaluation.measures.accepted_pairs.AcceptedScore`, `scores` the study's. Columns: model, axis,
    transformation, n_datasets, n_items (summed over data sets and seeds), original, score, difference (points; seeds
    averaged first, then data sets), difference_all (of all items of the same data sets and seeds), reason (why there is
    none, or how many data sets and seeds it lacks), included_rejected.
    """
    counted = rows[(rows["status"] == "evaluated") | include_rejected]
    units = ["model", "dataset", "transformation", "seed"]
    whole = with_originals(scores, scores)
    whole = whole.assign(difference_all=100 * (whole["score"] - whole["original"]))
    joined = counted.merge(whole[[*units, "difference_all"]], on=units, how="left")
    joined = joined.assign(
        difference=100 * (joined["score"] - joined["original"]),
        included_rejected=joined["status"] == "included_rejected",
    )
    made = [
        _transformation(dict(zip(_KEYS, key, strict=True)), part) for key, part in joined.groupby(_KEYS, sort=False)
    ]
    columns = [*_KEYS, "n_datasets", "n_items", "original", "score", "difference", "difference_all", "reason"]
    table = pd.DataFrame(made, columns=[*columns, "included_rejected"])
    return in_order(table).reset_index(drop=True)


def _transformation(key: Mapping[str, object], part: pd.DataFrame) -> dict[str, object]:
    """One row, from those of its data sets and seeds."""
    there = part[part["difference"].notna()]
    numbers = ["original", "score", "difference", "difference_all"]
    means = there.groupby("dataset", sort=False)[numbers].mean(skipna=False).mean(skipna=False)
    lost = part[part["difference"].isna()]
    reasons = f"{len(lost)} of {len(part)} data sets and seeds have no score" if len(lost) else ""
    if len(lost):
        nearest = lost.iloc[int(lost["n"].argmax())]
        reasons = f"{reasons}; nearest {nearest['dataset']}: {nearest['reason']}"
    return {
        **key,
        **{str(name): value for name, value in means.items()},
        "n_datasets": there["dataset"].nunique(),
        "n_items": int(there["n"].sum()),
        "reason": reasons,
        "included_rejected": bool(part["included_rejected"].any()),
    }
