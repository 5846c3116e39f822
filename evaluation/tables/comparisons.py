"""Shifts with tests (HTEB, Figure 7; PTEB, Tables 7, 14), rankings (MMTEB), their stability (HTEB, Tables 3, 4)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from evaluation.tables.datasets import dataset_totals
from evaluation.tables.scores import (
    NOTHING,
    counting_scores,
    of_estimate,
    shared_scores,
    transformations_of,
    whole_data_sets,
)
from plumbline.statistics import paired, rankings
from plumbline.statistics.estimates import Estimate, stream
from plumbline.study.transformations import Axes

_COLUMNS = ["shift", "low", "high", "p", "p_holm", "method", "n", "reason"]


def shift_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each transformation's shift of scores, over data sets (HTEB, Figure 7 and Table 13).

    An observation is a data set: the difference in points between the means over models (seeds averaged first) of the
    original and the transformed texts of the same items. Columns: name, axis, shift (Hodges-Lehmann) with low and high
    (95%, from Walsh averages, not corrected), p (Wilcoxon's signed ranks), p_holm (over the transformations on the
    total's axes, and over the others), method, median_absolute, n (data sets), reason. Rows of axes have only
    median_absolute, pooled over their transformations (n counts data sets x transformations). Scores that some models
    lack do not count. Transformations that were left out have rows, too.
    """
    shared, note = shared_scores(scores)
    keys = ["axis", "transformation", "dataset"]
    means = shared.groupby(keys, sort=False, as_index=False)[["score", "original"]].mean()
    rows: list[dict[str, object]] = []
    for axis in Axes.of(scores).shown:
        mine = means[means["axis"] == axis]
        spread = _spread(mine)
        spread["reason"] = "; ".join(
            filter(None, [str(spread["reason"] or "only its transformations are tested"), note])
        )
        rows.append({"name": axis, "axis": axis, "method": "", **spread})
        for name in transformations_of(scores, axis):
            part = mine[mine["transformation"] == name]
            originals, transformed = (100 * part[column].to_numpy(float) for column in ("original", "score"))
            tested = _tested(transformed, originals, paired.hodges_lehmann(transformed, originals), note)
            if part.empty:
                tested["reason"] = NOTHING
            rows.append({"name": name, "axis": axis, **_spread(part), **tested})
    table = pd.DataFrame(rows).reindex(columns=["name", "axis", "median_absolute", *_COLUMNS])
    in_total = table["axis"].isin(Axes.of(scores).of_total)
    for some in (in_total, ~in_total):
        table.loc[some, "p_holm"] = paired.holm(table.loc[some, "p"].to_numpy(float))
    return table


def baseline_table(scores: pd.DataFrame, baseline: str, *, seed: int | None, n_resamples: int = 1000) -> pd.DataFrame:
    """Return each model's shift against a baseline on transformed data sets (PTEB, Tables 7 and 14).

    A score is the mean over the total's axes of the means over their transformations that both have. With `seed` the
    observations are pairs of data set and seed, and the interval is the percentile bootstrap's (Table 7); without it
    seeds are averaged first and the interval comes from Walsh averages; the paper has none (Table 14). Columns:
    model, shift (Hodges-Lehmann, baseline - model, in points: negative values favour the model), low, high, p
    (Wilcoxon's), p_holm (over the models), method, n, reason. Each model has its own random numbers.
    """
    counted = counting_scores(scores, of_total=True)
    counted = counted[counted["score"].notna()]
    unit = ["dataset"] if seed is None else ["dataset", "seed"]
    keys = [*unit, "axis", "transformation"]
    cells = counted.groupby(["model", *keys], sort=False)["score"].mean().unstack("model")
    models = [model for model in scores["model"].drop_duplicates() if model != baseline]
    rows = []
    for model in models:
        both = cells.reindex(columns=[baseline, model]).dropna()
        by_axis = both.groupby([*unit, "axis"], sort=False).mean()
        means = by_axis.groupby(unit, sort=False).mean()
        first, second = (100 * means[name].to_numpy(float) for name in (baseline, model))
        if seed is None:
            estimate = paired.hodges_lehmann(first, second)
        else:
            rng = stream(seed, "baseline", baseline, model)
            estimate = paired.hodges_lehmann_bootstrap(first, second, n_resamples=n_resamples, rng=rng)
        n_missing = len(cells) - len(both)
        note = f"without {n_missing} of {len(cells)} scores, which one of the two models lacks" if n_missing else ""
        rows.append({"model": model, **_tested(first, second, estimate, note)})
    table = pd.DataFrame(rows, columns=["model", *_COLUMNS])
    table["p_holm"] = paired.holm(table["p"].to_numpy(float))
    return table


def difference_table(scores: pd.DataFrame, seed: int, *, n_resamples: int = 10_000) -> pd.DataFrame:
    """Return the difference of each two models, by the paired bootstrap over data sets with Holm's correction.

    HTEB compares generators this way (I, Table 13; Table 6); here observations are data sets, and scores are
    axis-balanced (`dataset_totals`). A model that lacks a transformation or seed of another model on a data set has no
    score there, as their means would not be comparable. Columns: first, second (models), difference (first -
    second, mean over the data sets that both have, points), low, high (95%, percentile), p, p_holm (over all rows), n,
    reason. Each row has its own random numbers, by `seed` and the two models.
    """
    totals = dataset_totals(scores, counted=whole_data_sets(counting_scores(scores, of_total=True)))
    cells = 100 * totals.pivot(index="dataset", columns="model", values="score")
    models = list(totals["model"].drop_duplicates())
    rows = []
    for first, second in itertools.combinations(models, 2):
        both = cells[[first, second]].dropna()
        values = (both[name].to_numpy(float) for name in (first, second))
        rng = stream(seed, "difference", *sorted((first, second)))
        test = paired.paired_bootstrap(*values, n_resamples=n_resamples, rng=rng)
        rows.append({"first": first, "second": second, **of_estimate("difference", test.estimate), "p": test.p})
    columns = ["first", "second", "difference", "low", "high", "p", "p_holm", "n", "reason"]
    table = pd.DataFrame(rows, columns=columns)
    table["p_holm"] = paired.holm(table["p"].to_numpy(float))
    return table


def _spread(part: pd.DataFrame) -> dict[str, object]:
    spread = paired.median_absolute_difference(
        100 * part["score"].to_numpy(float), 100 * part["original"].to_numpy(float)
    )
    return {"median_absolute": spread.value, "n": spread.n, "reason": spread.reason}


def _tested(first: np.ndarray, second: np.ndarray, estimate: Estimate, note: str) -> dict[str, object]:
    test = paired.wilcoxon(first, second)
    reason = "; ".join(dict.fromkeys(filter(None, [estimate.reason, test.reason, note])))
    return {**of_estimate("shift", estimate), "p": test.p, "method": test.method, "reason": reason}


_OF = ("rank", "rank_single", "borda", "mean")
ENDS = (*(f"{name}_{end}" for name in _OF for end in ("low", "high")), "group", "interval_reason")


def board(grid: pd.DataFrame, types: Mapping[str, str], *, seed: int | None = None) -> pd.DataFrame:
    """Return models (rows of `grid`) ranked by Borda count over tasks (its columns), best rank first.

    `types` has each task's type. Columns: model, rank, borda, mean (over tasks), category_mean (over types' means),
    with a `seed` the ends of 95% intervals over tasks and the groups not distinguished (`ENDS`;
    `plumbline.statistics.rankings`), n_datasets (tasks with a score), one for each type (the mean over its
    tasks), reason (which scores a model lacks). As in mteb, means that lack a score are NaN.

    Source: MMTEB, 3.1, Tables 2 and 18.
    """
    models = list(grid.index)
    table = pd.DataFrame({"model": models})
    if seed is None or not grid.size:
        counted = rankings.borda(grid)
    else:
        counted = rankings.rank_intervals(grid, rng=stream(seed, "rank intervals"))
        counted = counted.rename(columns={"reason": "interval_reason"})
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
    table["reason"] = [f"lacks {n_tasks - n} of {n_tasks} scores" if n < n_tasks else "" for n in table["n_datasets"]]
    return table.sort_values("rank", kind="stable").reset_index(drop=True)


def separation_table(grid: pd.DataFrame, *, seed: int) -> pd.DataFrame:
    """Return how many pairs of models (rows of `grid`) differ significantly in Borda points over tasks (its columns).

    Rows: neighbours in rank, all pairs, and the first with each other. Columns: pairs, n, alone (each two looked at
    alone, `told_apart_singly`), together (all at once with Holm's correction, `told_apart`). Models that lack a score
    are in no pair.
    """
    points, scores = rankings.borda_points(grid)
    complete = points[np.isfinite(scores).all(axis=1)]
    complete = complete[np.argsort(-complete.sum(axis=1), kind="stable")]
    differing = {
        "alone": rankings.told_apart_singly(complete, rng=stream(seed, "pairs told apart")),
        "together": rankings.told_apart(complete),
    }
    first, second = np.triu_indices(len(complete), 1)
    of_pairs = {"neighbours": second == first + 1, "all": first >= 0, "first": first == 0}
    rows = []
    for name, chosen in of_pairs.items():
        pair = first[chosen], second[chosen]
        counts = {how: int((matrix[pair] | matrix.T[pair]).sum()) for how, matrix in differing.items()}
        rows.append({"pairs": name, "n": int(chosen.sum()), **counts})
    return pd.DataFrame(rows)


OVERALL = "overall"


def kendall_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return Kendall's tau-b between models' original and transformed scores (HTEB, Table 4).

    tau is computed on each data set: of a transformation's scores (seeds averaged first), of their means over an axis,
    of the axis-balanced total, and of their means over all transformations on its axes (`overall`). The paper does not
    define its row Overall. Totals printed in its Tables 17 to 21 give 0.526 (English) and 0.746 (multilingual) for its
    0.555 and 0.769, so it is not the total; a mean over transformations, in which Language weighs less, fits. Columns:
    name, axis, tau (mean over data sets), sd (sample SD over them), n_datasets, n_models, reason. Scores that some
    models lack do not count; transformations that were left out have rows, too, and so does the total if a data set
    lacks an axis.
    """
    shared, note = shared_scores(scores)
    axes, rows = Axes.of(scores), []
    for axis in axes.shown:
        mine = shared[shared["axis"] == axis]
        rows.append(_tau(axis, axis, mine, note))
        for name in transformations_of(scores, axis):
            rows.append(_tau(name, axis, mine[mine["transformation"] == name], note))
    of_axes = shared[shared["axis"].isin(axes.of_total)]
    rows += [_tau_of_total(of_axes, note, axes), _tau(OVERALL, "", of_axes, note)]
    return pd.DataFrame(rows, columns=["name", "axis", "tau", "sd", "n_datasets", "n_models", "reason"])


def split_half_table(scores: pd.DataFrame, seed: int, *, n_splits: int = 1000) -> pd.DataFrame:
    """Return each axis's split-half reliability (HTEB, Table 3): median rho over splits of the data sets, by task.

    A model's score on a half is the mean over its data sets of the means over the axis's transformations, seeds
    averaged first. Columns: axis, rho, n_splits (with a rho), n_datasets, n_models, reason. Scores that some
    models lack do not count. Each axis has its own random numbers.
    """
    shared, note = shared_scores(scores)
    rows = []
    for axis in Axes.of(scores).shown:
        mine = shared[shared["axis"] == axis]
        grid = mine.groupby(["model", "dataset"], sort=False)["score"].mean().unstack("dataset")
        tasks = mine.drop_duplicates("dataset").set_index("dataset")["task_type"].reindex(grid.columns)
        rng = stream(seed, "split_half", axis)
        reliability = rankings.split_half(grid.to_numpy(), tasks.tolist(), n_splits=n_splits, rng=rng)
        reason = "; ".join(filter(None, [reliability.reason, note]))
        rows.append(
            {"axis": axis, "rho": reliability.value, "n_splits": reliability.n, "n_datasets": grid.shape[1]}
            | {"n_models": grid.shape[0], "reason": reason}
        )
    return pd.DataFrame(rows, columns=["axis", "rho", "n_splits", "n_datasets", "n_models", "reason"])


def ranking_table(scores: pd.DataFrame, *, transformed: bool, seed: int | None = None) -> pd.DataFrame:
    """Return models ranked by Borda count, with means over data sets and categories (MMTEB, Table 2).

    The scores are those of whole originals, or with `transformed` the axis-balanced ones (`dataset_totals`). Columns
    are those of `board`, with intervals if there is a `seed`; categories are task types. A model that lacks a
    transformation or seed of another model lacks that data set's score; data sets without any score do not count. Best
    rank first.
    """
    totals = dataset_totals(scores, counted=whole_data_sets(counting_scores(scores, of_total=True)))
    value = "score" if transformed else "original"
    scored = totals[totals[value].notna()]
    models = list(totals["model"].drop_duplicates())
    grid = scored.pivot(index="model", columns="dataset", values=value).reindex(models)
    task_of = scored.drop_duplicates("dataset").set_index("dataset")["task_type"]
    table = board(grid[list(task_of.index)], {str(name): str(kind) for name, kind in task_of.items()}, seed=seed)
    n_scored, n_datasets = grid.shape[1], totals["dataset"].nunique()
    if n_scored < n_datasets:
        gap = f"{n_scored} of {n_datasets} data sets have scores"
        table["reason"] = ["; ".join(filter(None, [gap, reason])) for reason in table["reason"]]
    return table


def _tau_of_total(shared: pd.DataFrame, note: str, axes: Axes) -> dict[str, object]:
    """Return the axis-balanced total's row, from the data sets that have all its axes."""
    keys = ["dataset", "model", "axis"]
    by_axis = shared.groupby(keys, sort=False, as_index=False)[["score", "original"]].mean()
    balanced = by_axis[by_axis.groupby("dataset")["axis"].transform("nunique") == len(axes.of_total)]
    n_incomplete = by_axis["dataset"].nunique() - balanced["dataset"].nunique()
    gap = (
        f"without {n_incomplete} of {by_axis['dataset'].nunique()} data sets, which lack an axis"
        if n_incomplete
        else ""
    )
    return _tau(axes.total, "", balanced, "; ".join(filter(None, [gap, note])))


def _tau(name: str, axis: str, part: pd.DataFrame, note: str) -> dict[str, object]:
    """Return a row of Table 4: tau on each data set, of the means over the transformations in `part`."""
    means = part.groupby(["dataset", "model"], sort=False, as_index=False)[["score", "original"]].mean()
    estimates = [
        rankings.kendall(mine["original"].to_numpy(float), mine["score"].to_numpy(float))
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
        "sd": paired.sample_sd(taus).value,
        "n_datasets": len(taus),
        "n_models": means["model"].nunique(),
        "reason": "; ".join([*reasons, *filter(None, [note])]),
    }
