"""How stable rankings of models are (HTEB, Tables 3 and 4), and the rankings themselves (MMTEB)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from evaluation.tables.datasets import totals_of
from evaluation.tables.pairs import counting_scores, of_total, shared_scores, whole_data_sets
from evaluation.tables.scores import NOTHING, transformations_of
from plumbline.statistics.paired import sample_sd
from plumbline.statistics.rankings import borda, kendall, rank_intervals, split_half
from plumbline.statistics.seeding import stream
from plumbline.transformations import Axes

ENDS = ("rank_low", "rank_high", "borda_low", "borda_high", "mean_low", "mean_high", "group", "interval_reason")


def board(grid: pd.DataFrame, types: Mapping[str, str], *, seed: int | None = None) -> pd.DataFrame:
    """Models (rows of `grid`) ranked by Borda count over tasks (its columns), best rank first.

    `types` name each task's type. Columns: model, rank, borda, mean (over tasks), category_mean (over types' means),
    with a `seed` the ends of 95% intervals over tasks and the groups that cannot be told apart (`ENDS`;
    `plumbline.statistics.rankings`), n_datasets (tasks with a score), one for each type (the mean over its
    tasks), reason (what scores a model lacks). As in mteb a model that lacks a score has no means where it lacks it.

    Source: MMTEB, 3.1, Tables 2 and 18.
    """
    models = list(grid.index)
    table = pd.DataFrame({"model": models})
    if seed is None or not grid.size:
        counted = borda(grid)
    else:
        counted = rank_intervals(grid, rng=stream(seed, "rank intervals")).rename(columns={"reason": "interval_reason"})
    for name in ("rank", "borda"):
        table[name] = counted[name].to_numpy()
    table["mean"] = grid.mean(axis=1, skipna=False).to_numpy()
    kinds = list(dict.fromkeys(types[str(task)] for task in grid))
    of = {kind: [task for task in grid if types[str(task)] == kind] for kind in kinds}
    by_kind = pd.DataFrame(
        {kind: grid[tasks_of_kind].mean(axis=1, skipna=False) for kind, tasks_of_kind in of.items()}, index=models
    )
    table["category_mean"] = by_kind.mean(axis=1, skipna=False).to_numpy()
    for name in ENDS:
        if name in counted:
            table[name] = counted[name].to_numpy()
    table["n_datasets"] = grid.notna().sum(axis=1).to_numpy()
    table[kinds] = by_kind.to_numpy()
    n_tasks = grid.shape[1]
    table["reason"] = [f"without {n_tasks - n} of these" if n < n_tasks else "" for n in table["n_datasets"]]
    return table.sort_values("rank", kind="stable").reset_index(drop=True)


OVERALL = "overall"


def kendall_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """Kendall's tau-b between models' original and transformed scores, by axis and transformation (HTEB, Table 4).

    tau is taken on each data set: of a transformation's scores (seeds averaged first), of their means over an axis, of
    the axis-balanced total, and of their means over all transformations on its axes (`overall`). The paper does not
    say which of the last two its row Overall is. Totals printed in its Tables 17 to 21 give 0.526 (English) and 0.746
    (multilingual) for its 0.555 and 0.769, so it is not the total; a mean over transformations, in which Language
    weighs less, fits. Columns: name, axis, tau (mean over data sets), sd (sample SD over them), n_datasets, n_models,
    reason. What not every model has does not count; transformations that were left out have rows, too, and so has the
    total where a data set lacks an axis.
    """
    shared, note = shared_scores(scores, include_rejected)
    axes, rows = Axes.of(scores), []
    for axis in axes.shown:
        mine = shared[shared["axis"] == axis]
        rows.append(_tau(axis, axis, mine, note))
        for name in transformations_of(scores, axis):
            rows.append(_tau(name, axis, mine[mine["transformation"] == name], note))
    of_axes = shared[shared["axis"].isin(axes.of_total)]
    rows += [_tau_of_total(of_axes, note, axes), _tau(OVERALL, "", of_axes, note)]
    return pd.DataFrame(rows, columns=["name", "axis", "tau", "sd", "n_datasets", "n_models", "reason"])


def split_half_table(
    scores: pd.DataFrame, seed: int, *, n_splits: int = 1000, include_rejected: bool = False
) -> pd.DataFrame:
    """Split-half reliability of each axis (HTEB, Table 3): median rho over splits of the data sets, by task.

    A model's score on a half is the mean over its data sets of the means over the axis's transformations, seeds
    averaged first. Columns: axis, rho, n_splits (with a rho), n_datasets, n_models, reason. What not every model has
    does not count. Each axis has its own random numbers.
    """
    shared, note = shared_scores(scores, include_rejected)
    rows = []
    for axis in Axes.of(scores).shown:
        mine = shared[shared["axis"] == axis]
        grid = mine.groupby(["model", "dataset"], sort=False)["score"].mean().unstack("dataset")
        tasks = mine.drop_duplicates("dataset").set_index("dataset")["task_type"].reindex(grid.columns)
        rng = stream(seed, "split_half", axis)
        reliability = split_half(grid.to_numpy(), tasks.tolist(), n_splits=n_splits, rng=rng)
        reason = "; ".join(filter(None, [reliability.reason, note]))
        rows.append(
            {"axis": axis, "rho": reliability.value, "n_splits": reliability.n, "n_datasets": grid.shape[1]}
            | {"n_models": grid.shape[0], "reason": reason}
        )
    return pd.DataFrame(rows, columns=["axis", "rho", "n_splits", "n_datasets", "n_models", "reason"])


def ranking_table(
    scores: pd.DataFrame,
    *,
    transformed: bool,
    same_items: bool = False,
    include_rejected: bool = False,
    seed: int | None = None,
) -> pd.DataFrame:
    """Models ranked by Borda count over data sets, with means over data sets and over categories (MMTEB, Table 2).

    The scores are the whole originals', or with `transformed` the axis-balanced ones (`dataset_totals`). `same_items`
    takes the originals on the data sets and items that the transformed ones rest on, to be laid beside these. The
    columns are those of `evaluation.tables.ranks.board`, with intervals where there is a `seed`; task types are the
    categories. A model that lacks a transformation or seed which another has lacks that data set's score; data sets on
    which no model has a score do not count. Best rank first.
    """
    totals = totals_of(whole_data_sets(of_total(counting_scores(scores, include_rejected), scores)), scores)
    value = "score" if transformed else "original_same" if same_items else "original"
    scored = totals[totals[value].notna()]
    models = list(totals["model"].drop_duplicates())
    grid = scored.pivot(index="model", columns="dataset", values=value).reindex(models)
    task_of = scored.drop_duplicates("dataset").set_index("dataset")["task_type"]
    table = board(grid[list(task_of.index)], {str(name): str(kind) for name, kind in task_of.items()}, seed=seed)
    n_scored, n_datasets = grid.shape[1], totals["dataset"].nunique()
    if n_scored < n_datasets:
        lacking = f"{n_scored} of {n_datasets} data sets have scores"
        table["reason"] = ["; ".join(filter(None, [lacking, reason])) for reason in table["reason"]]
    return table


def _tau_of_total(shared: pd.DataFrame, note: str, axes: Axes) -> dict[str, object]:
    """The row of the axis-balanced total, from the data sets that have all of its axes."""
    keys = ["dataset", "model", "axis"]
    by_axis = shared.groupby(keys, sort=False, as_index=False)[["score", "original"]].mean()
    balanced = by_axis[by_axis.groupby("dataset")["axis"].transform("nunique") == len(axes.of_total)]
    lost = by_axis["dataset"].nunique() - balanced["dataset"].nunique()
    lacking = f"without {lost} of {by_axis['dataset'].nunique()} data sets, which lack an axis" if lost else ""
    return _tau(axes.total, "", balanced, "; ".join(filter(None, [lacking, note])))


def _tau(name: str, axis: str, part: pd.DataFrame, note: str) -> dict[str, object]:
    """A row of Table 4: tau on each data set, of the means over the transformations in `part`."""
    means = part.groupby(["dataset", "model"], sort=False, as_index=False)[["score", "original"]].mean()
    estimates = [
        kendall(mine["original"].to_numpy(float), mine["score"].to_numpy(float))
        for _, mine in means.groupby("dataset", sort=False)
    ]
    taus = [tau.value for tau in estimates if not tau.reason]
    reasons = list(dict.fromkeys(tau.reason for tau in estimates if tau.reason))
    if reasons:
        reasons = [f"undefined on {len(estimates) - len(taus)} of {len(estimates)} data sets: {'; '.join(reasons)}"]
    if not estimates:
        reasons = [NOTHING]
    return {
        "name": name,
        "axis": axis,
        "tau": float(np.mean(taus)) if taus else float("nan"),
        "sd": sample_sd(taus).value,
        "n_datasets": len(taus),
        "n_models": means["model"].nunique(),
        "reason": "; ".join([*reasons, *filter(None, [note])]),
    }
