"""Models ranked over tasks, with means over tasks and over their types: the form of MMTEB's Tables 2 and 18."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from evaluation.statistics.rank_intervals import rank_intervals
from evaluation.statistics.rankings import borda
from plumbline.streams import stream

ENDS = ("rank_low", "rank_high", "borda_low", "borda_high", "mean_low", "mean_high", "group", "interval_reason")


def board(grid: pd.DataFrame, types: Mapping[str, str], *, seed: int | None = None) -> pd.DataFrame:
    """Models (rows of `grid`) ranked by Borda count over tasks (its columns), best rank first.

    `types` name each task's type. Columns: model, rank, borda, mean (over tasks), category_mean (over types' means),
    with a `seed` the ends of 95% intervals over tasks and the groups that cannot be told apart (`ENDS`;
    `evaluation.statistics.rank_intervals`), n_datasets (tasks with a score), one for each type (the mean over its
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
    by_kind = pd.DataFrame({kind: grid[own].mean(axis=1, skipna=False) for kind, own in of.items()}, index=models)
    table["category_mean"] = by_kind.mean(axis=1, skipna=False).to_numpy()
    for name in ENDS:
        if name in counted:
            table[name] = counted[name].to_numpy()
    table["n_datasets"] = grid.notna().sum(axis=1).to_numpy()
    table[kinds] = by_kind.to_numpy()
    n_tasks = grid.shape[1]
    table["reason"] = [f"without {n_tasks - n} of these" if n < n_tasks else "" for n in table["n_datasets"]]
    return table.sort_values("rank", kind="stable").reset_index(drop=True)
