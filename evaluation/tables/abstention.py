"""The table of abstention: nAUC by transformation."""

from __future__ import annotations

import math

import pandas as pd

from evaluation.tables.scores import in_order
from plumbline.statistics.abstention import CONFIDENCES
from plumbline.transformations import ORIGINAL

_KEYS = ["model", "axis", "transformation"]
_NAUCS = [f"nauc{which}_{name}" for name in CONFIDENCES for which in ("", "_original")]
_ENDS = [f"nauc_{end}_{name}" for name in CONFIDENCES for end in ("low", "high")]
_NORMAL = 1.959964  # the normal distribution's 97.5% quantile


def abstention_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return nAUC for each model x transformation, including originals: how well confidence tells which to answer.

    `rows` are those of `evaluation.records.AbstentionRow`. Columns: model, axis, transformation,
    n_datasets, n_queries (summed over data sets and seeds), for each confidence nauc_<name> and nauc_original_<name>
    (of the same queries' original texts), nauc_low_<name> and nauc_high_<name> (95% interval over queries),
    reason. Seeds are averaged first, then data sets. Data sets that are not searches are left out (`not_searches`).

    The interval is the mean -/+ 1.96 standard errors, at most 1. Data sets have independent queries; seeds share
    theirs, so the error of their mean is taken as the mean of their errors, its upper bound.
    """
    records = []
    for key, part in rows[(rows["status"] == "evaluated") & (rows["n"] > 0)].groupby(_KEYS, sort=False):
        first, lost = part[part["confidence"] == CONFIDENCES[0]], part[part["reason"] != ""]
        naucs: dict[str, float] = {}
        for name in CONFIDENCES:
            naucs |= {f"nauc{which}_{name}": value for which, value in _nauc(part[part["confidence"] == name]).items()}
        records.append(
            {
                **dict(zip(_KEYS, key, strict=True)),
                "n_datasets": first["dataset"].nunique(),
                "n_queries": int(first["n"].sum()),
                **naucs,
                "reason": "; ".join(dict.fromkeys(lost["dataset"] + ": " + lost["reason"])),
            }
        )
    table = pd.DataFrame(records, columns=[*_KEYS, "n_datasets", "n_queries", *_NAUCS, *_ENDS, "reason"])
    return _originals_first(table)


def _nauc(rows: pd.DataFrame) -> dict[str, float]:
    """Return one confidence's mean nAUC over data sets, that of the original texts, and the ends of its interval."""
    by_dataset = rows.groupby("dataset", sort=False)[["nauc", "nauc_original", "nauc_error"]].mean(skipna=False)
    value, original = (float(by_dataset[name].mean(skipna=False)) for name in ("nauc", "nauc_original"))
    half = _NORMAL * math.sqrt((by_dataset["nauc_error"] ** 2).sum(skipna=False)) / len(by_dataset)
    return {
        "": value,
        "_original": original,
        "_low": value - half,
        "_high": min(value + half, 1.0) if half >= 0 else math.nan,
    }


def not_searches(rows: pd.DataFrame) -> dict[str, str]:
    """Return the data sets without abstention, with reasons."""
    lost = rows[(rows["n"] == 0) & (rows["reason"] != "")].drop_duplicates("dataset")
    return dict(zip(lost["dataset"], lost["reason"], strict=True))


def _originals_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows by model in the given order, originals first, then transformations in their order."""
    ordered = in_order(table)
    models = {name: number for number, name in enumerate(ordered["model"].drop_duplicates())}
    places = pd.DataFrame({"m": ordered["model"].map(models), "t": ordered["transformation"] != ORIGINAL})
    return ordered.loc[places.sort_values(["m", "t"], kind="stable").index].reset_index(drop=True)
