"""Scores by transformation, axis and data set (HTEB, Tables 14 and 15), and what is in none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from annotation.records import Verdict
from evaluation.statistics import sample_sd
from generation.transformations import AXES, ORIGINAL, TRANSFORMATIONS, Axis

TOTAL = "hteb_total"
NOTHING = "nothing of it was evaluated"
_UNIT = ["model", "dataset", "transformation"]


def transformation_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """A row for each model x transformation that has scores: its score beside the original's.

    `scores` holds `generation.records.Score` rows. Columns: model, axis, transformation, n_datasets, n_failed (items
    whose outputs failed, summed over data sets and seeds), original, score, difference (points), included_rejected.
    Seeds are averaged first, then data sets (METHOD: HTEB, 2.3); `original` is the mean over the same data sets. With
    `include_rejected` the rows that the gate refused but the user included count too.
    """
    return _by_transformation(paired_scores(counting_scores(scores, include_rejected), scores))


def axis_table(
    scores: pd.DataFrame, verdicts: Iterable[Verdict] = (), *, include_rejected: bool = False
) -> pd.DataFrame:
    """A row for each model: Original, the three axes and the HTEB total (HTEB, 2.3, Tables 14 and 15).

    An axis is the mean over its transformations (`transformation_table`), the total the unweighted mean of the
    three axes. Columns: model, n_datasets, n_failed (as there), original; for each axis and for `hteb_total` the score,
    `<name>_difference` in points against the originals of exactly the data sets that it rests on, and
    `<name>_reason` (why it is NaN, or what of it is missing); included_rejected (names, comma-separated);
    simulated (whether any verdict rests on simulated ratings). `original` is the mean over all data sets of
    which at least one transformation counts.
    """
    paired = paired_scores(counting_scores(scores, include_rejected), scores)
    by_transformation = _by_transformation(paired)
    parts = dict(iter(by_transformation.groupby("model", sort=False)))
    first = paired.drop_duplicates(["model", "dataset"])  # each model and data set with the original's score
    own = dict(iter(first.groupby("model", sort=False)["original"]))
    models = scores["model"].drop_duplicates()
    values = axis_means(paired, "score").reindex(models)
    differences = axis_means(paired, "difference").reindex(models)
    simulated = any(verdict.simulated for verdict in verdicts)
    wanted = {axis: transformations_of(scores, axis) for axis in AXES}
    rows = []
    for model in models:
        mine = parts.get(model, by_transformation.head(0))
        originals = own.get(model, first["original"].head(0))
        row: dict[str, object] = {"model": model, "n_datasets": len(originals), "n_failed": int(mine["n_failed"].sum())}
        row["original"] = mean(originals)
        for name in (*AXES, TOTAL):
            row |= {name: values.at[model, name], f"{name}_difference": differences.at[model, name]}
        for axis in AXES:
            row[f"{axis}_reason"] = _coverage(mine[mine["axis"] == axis], len(originals), wanted[axis])
        undefined = list(values.columns[values.loc[model].isna()].drop(TOTAL, errors="ignore"))
        row |= {
            f"{TOTAL}_reason": f"no score for: {', '.join(undefined)}" if undefined else _incomplete(mine, wanted),
            "included_rejected": ", ".join(mine.loc[mine["included_rejected"].astype(bool), "transformation"]),
            "simulated": simulated,
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=_axis_columns())


def axis_means(paired: pd.DataFrame, column: str) -> pd.DataFrame:
    """Means over data sets, then over an axis's transformations, then over axes (HTEB, 2.3), of a column.

    `paired` are rows of `paired_scores`. A row a model (the index), a column for each axis and for the total; NaN where
    an axis has nothing, and then for the total too: two axes are not a total.
    """
    keys = ["model", "axis", "transformation"]
    by_axis = paired.groupby(keys, sort=False)[column].mean().groupby(level=["model", "axis"], sort=False).mean()
    table = by_axis.unstack("axis").reindex(columns=list(AXES))
    table[TOTAL] = table.mean(axis=1, skipna=False)
    return table


def dataset_table(scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each model x data set x transformation (original among them), averaged over seeds.

    Columns: model, dataset, task_type, metric, axis, transformation, n_seeds, n_failed (items whose outputs failed,
    over all seeds), score, sd (sample SD over seeds, as PTEB's Tables 6, 9 and 10 have it; NaN for one seed), original,
    difference (points), status. Rows that were left out are not in it (`left_out`).
    """
    counted = scores[scores["status"] != "left_out"]
    keys = ["model", "dataset", "task_type", "metric", "axis", "transformation"]
    table = counted.groupby(keys, sort=False, as_index=False).agg(
        n_seeds=("seed", "nunique"),
        n_failed=("n_failed", "sum"),
        score=("score", mean),
        sd=("score", lambda values: sample_sd(values.to_numpy()).value),
        status=("status", "max"),
    )
    table = table.merge(originals(scores), on=["model", "dataset", "task_type"], how="left")
    table["difference"] = 100 * (table["score"] - table["original"])
    return table[[*keys, "n_seeds", "n_failed", "score", "sd", "original", "difference", "status"]]


def left_out(scores: pd.DataFrame) -> pd.DataFrame:
    """What was left out or is undefined, or was included although the verdict refuses it, and why.

    Columns: transformation, status, reason, datasets (comma-separated), seeds (comma-separated). Equal rows
    of several models, data sets and seeds are one. Items whose outputs failed have a row for each transformation.
    """
    refused = scores[(scores["status"] != "evaluated") | scores["score"].isna()]
    refused = pd.concat([refused, _failed(scores)])
    refused = refused.assign(seed=refused["seed"].astype(str))
    table = refused.groupby(["transformation", "status", "reason"], sort=False, as_index=False).agg(
        datasets=("dataset", _names), seeds=("seed", _names)
    )
    return table[["transformation", "status", "reason", "datasets", "seeds"]]


def originals(scores: pd.DataFrame) -> pd.DataFrame:
    """Score of each model on each original data set: model, dataset, task_type, original."""
    rows = scores[(scores["transformation"] == ORIGINAL) & scores["score"].notna()]
    return rows[["model", "dataset", "task_type", "score"]].rename(columns={"score": "original"})


def counting_scores(scores: pd.DataFrame, include_rejected: bool) -> pd.DataFrame:
    """The scores of transformed data sets that count, a row a seed."""
    statuses = ("evaluated", "included_rejected") if include_rejected else ("evaluated",)
    return scores[scores["status"].isin(statuses) & (scores["transformation"] != ORIGINAL) & scores["score"].notna()]


def paired_scores(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Model x data set x transformation with its score, averaged over seeds, beside the original's.

    `counted` are rows of `counting_scores`; `scores` has the originals. Columns: model, dataset, transformation, axis,
    task_type, score, n_failed, included_rejected, original, difference (points).
    """
    counted = counted.assign(included_rejected=counted["status"] == "included_rejected")
    means = counted.groupby([*_UNIT, "axis", "task_type"], sort=False, as_index=False).agg(
        score=("score", "mean"), n_failed=("n_failed", "sum"), included_rejected=("included_rejected", "max")
    )
    paired = means.merge(originals(scores), on=["model", "dataset", "task_type"])
    return paired.assign(difference=100 * (paired["score"] - paired["original"]))


def shared_scores(scores: pd.DataFrame, include_rejected: bool) -> tuple[pd.DataFrame, str]:
    """The rows of `paired_scores` for data sets and transformations that every model has, and what that leaves out.

    Comparisons between models, and means over them, need the same ground for all.
    """
    paired = paired_scores(counting_scores(scores, include_rejected), scores)
    models = paired.groupby(["dataset", "transformation"])["model"].transform("nunique")
    shared = paired[models == paired["model"].nunique()]
    total, left = (len(rows.drop_duplicates(["dataset", "transformation"])) for rows in (paired, shared))
    lost = f"without {total - left} of {total} data sets x transformations that not every model has"
    return shared, lost if left < total else ""


def _by_transformation(paired: pd.DataFrame) -> pd.DataFrame:
    """`transformation_table` of rows of `paired_scores`."""
    columns = ["model", "axis", "transformation", "n_datasets", "n_failed"]
    columns += ["original", "score", "difference", "included_rejected"]
    if paired.empty:
        return pd.DataFrame(columns=columns)
    table = paired.groupby(["model", "axis", "transformation"], sort=False, as_index=False).agg(
        n_datasets=("dataset", "nunique"),
        n_failed=("n_failed", "sum"),
        original=("original", "mean"),
        score=("score", "mean"),
        included_rejected=("included_rejected", "max"),
    )
    table["difference"] = 100 * (table["score"] - table["original"])
    return in_order(table)[columns].reset_index(drop=True)


def _failed(scores: pd.DataFrame) -> pd.DataFrame:
    """Scored rows that lack items, or hold originals of items, whose outputs failed; the reason counts them all."""
    words = {
        "drop": ("were dropped", "was dropped"),
        "original": ("are scored with their originals", "is scored with its original"),
    }
    failed = scores[(scores["n_failed"] > 0) & (scores["status"] != "left_out")]
    failed = failed.drop_duplicates(["dataset", "transformation", "seed"])  # the same for every model
    counts = failed.groupby(["transformation", "failed_policy"])["n_failed"].transform("sum")
    reasons = [
        f"{count} {'item' if count == 1 else 'items'} whose outputs failed {words[how][count == 1]}"
        for count, how in zip(counts, failed["failed_policy"], strict=True)
    ]
    return failed.assign(reason=reasons)


def transformations_of(scores: pd.DataFrame, axis: str) -> list[str]:
    """The study's transformations of an axis, whether they were evaluated or left out, in the method's order."""
    there = set(scores.loc[scores["axis"] == axis, "transformation"])
    return [name for name in TRANSFORMATIONS if name in there]


def _coverage(part: pd.DataFrame, n_datasets: int, wanted: Sequence[str]) -> str:
    """What of an axis is not in its score: transformations, or data sets of some; empty if nothing."""
    if part.empty:
        return "no transformation of this axis was evaluated"
    absent = [name for name in wanted if name not in set(part["transformation"])]
    fewer = part[part["n_datasets"] < n_datasets]
    names = zip(fewer["transformation"], fewer["n_datasets"], strict=True)
    notes = [f"without {', '.join(absent)}"] if absent else []
    return "; ".join([*notes, *(f"{name}: {count} of {n_datasets} data sets" for name, count in names)])


def _incomplete(mine: pd.DataFrame, wanted: Mapping[Axis, Sequence[str]]) -> str:
    """How many of the study's transformations (`wanted`, by axis) a total rests on; empty if on all."""
    there, number = mine["transformation"].nunique(), sum(map(len, wanted.values()))
    return f"rests on {there} of {number} transformations" if there < number else ""


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of models (as they came) and then of the method's transformations."""
    rank = {name: number for number, name in enumerate(TRANSFORMATIONS)}
    models = {name: number for number, name in enumerate(table["model"].drop_duplicates())}
    keys = pd.DataFrame({"m": table["model"].map(models), "t": table["transformation"].map(rank)}, index=table.index)
    return table.loc[keys.sort_values(["m", "t"], kind="stable").index]


def _axis_columns() -> list[str]:
    parts = [f"{name}{end}" for name in (*AXES, TOTAL) for end in ("", "_difference", "_reason")]
    return ["model", "n_datasets", "n_failed", "original", *parts, "included_rejected", "simulated"]


def mean(values: pd.Series[float]) -> float:
    """The mean, NaN for nothing and for anything that is not a number."""
    return float(values.mean(skipna=False)) if len(values) else float("nan")


def _names(values: Sequence[str] | pd.Series[str]) -> str:
    return ", ".join(dict.fromkeys(values))
