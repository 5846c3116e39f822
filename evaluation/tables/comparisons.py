"""Shifts with tests: of each transformation (HTEB, Figure 7), and of models against others (PTEB, Tables 7, 14)."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from evaluation.tables.datasets import totals_of
from evaluation.tables.pairs import counting_scores, of_total, shared_scores, whole_data_sets
from evaluation.tables.scores import NOTHING, transformations_of
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.paired import (
    hodges_lehmann,
    hodges_lehmann_bootstrap,
    holm,
    median_absolute_difference,
    paired_bootstrap,
    wilcoxon,
)
from plumbline.statistics.seeding import stream
from plumbline.transformations import Axes

_COLUMNS = ["shift", "low", "high", "p", "p_holm", "method", "n", "reason"]


def shift_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """How far each transformation moves scores, over data sets (HTEB, Figure 7 and Table 13).

    An observation is a data set: the difference between means over models (seeds averaged first), in points, of the
    original and the transformed texts of the same items. Columns:
    name, axis, shift (Hodges-Lehmann) with low and high (95%, from Walsh averages, not corrected), p (Wilcoxon's signed
    ranks), p_holm (over the transformations on the total's axes, and over the others), method, median_absolute,
    n (data sets), reason. Rows of axes have
    median_absolute alone, pooled over their transformations (n counts data sets x transformations). What not every
    model has does not count. Transformations that were left out have rows, too.
    """
    shared, note = shared_scores(scores, include_rejected)
    keys = ["axis", "transformation", "dataset"]
    means = shared.groupby(keys, sort=False, as_index=False)[["score", "original"]].mean()
    rows: list[dict[str, object]] = []
    for axis in Axes.of(scores).shown:
        mine = means[means["axis"] == axis]
        spread = _spread(mine)
        spread["reason"] = "; ".join(filter(None, [str(spread["reason"] or "tested by transformation"), note]))
        rows.append({"name": axis, "axis": axis, "method": "", **spread})
        for name in transformations_of(scores, axis):
            part = mine[mine["transformation"] == name]
            before, after = (100 * part[column].to_numpy(float) for column in ("original", "score"))
            tested = _tested(after, before, hodges_lehmann(after, before), note)
            if part.empty:
                tested["reason"] = NOTHING
            rows.append({"name": name, "axis": axis, **_spread(part), **tested})
    table = pd.DataFrame(rows).reindex(columns=["name", "axis", "median_absolute", *_COLUMNS])
    in_total = table["axis"].isin(Axes.of(scores).of_total)
    for some in (in_total, ~in_total):
        table.loc[some, "p_holm"] = holm(table.loc[some, "p"].to_numpy(float))
    return table


def baseline_table(
    scores: pd.DataFrame,
    baseline: str,
    *,
    seed: int | None,
    n_resamples: int = 1000,
    include_rejected: bool = False,
) -> pd.DataFrame:
    """Each model against a baseline on transformed data sets (PTEB, Tables 7 and 14).

    A score is the mean over the total's axes of the means over their transformations that both have. With `seed` the
    observations are pairs of data set and seed, and the interval is the percentile bootstrap's (Table 7); without it
    seeds are averaged first and the interval comes from Walsh averages, where the paper has none (Table 14). Columns:
    model, shift (Hodges-Lehmann, baseline - model, in points: negative values favour the model), low, high, p
    (Wilcoxon's), p_holm (over the models), method, n, reason. Each model has its own random numbers.
    """
    counted = of_total(counting_scores(scores, include_rejected), scores)
    counted = counted[counted["score"].notna()]
    unit = ["dataset"] if seed is None else ["dataset", "seed"]
    keys = [*unit, "axis", "transformation"]
    cells = counted.groupby(["model", *keys], sort=False)["score"].mean().unstack("model")
    others = [model for model in scores["model"].drop_duplicates() if model != baseline]
    rows = []
    for model in others:
        both = cells.reindex(columns=[baseline, model]).dropna()
        by_axis = both.groupby([*unit, "axis"], sort=False).mean()
        means = by_axis.groupby(unit, sort=False).mean()
        first, second = (100 * means[name].to_numpy(float) for name in (baseline, model))
        if seed is None:
            estimate = hodges_lehmann(first, second)
        else:
            rng = stream(seed, "baseline", baseline, model)
            estimate = hodges_lehmann_bootstrap(first, second, n_resamples=n_resamples, rng=rng)
        lost = len(cells) - len(both)
        note = f"without {lost} of {len(cells)} scores that not both models have" if lost else ""
        rows.append({"model": model, **_tested(first, second, estimate, note)})
    table = pd.DataFrame(rows, columns=["model", *_COLUMNS])
    table["p_holm"] = holm(table["p"].to_numpy(float))
    return table


def difference_table(
    scores: pd.DataFrame, seed: int, *, n_resamples: int = 10_000, include_rejected: bool = False
) -> pd.DataFrame:
    """Which models differ: a row for each two, by the paired bootstrap over data sets with Holm's correction.

    HTEB compares generators so (I, Table 13; Table 6); here the observations are data sets, and a score is the
    axis-balanced one (`dataset_totals`). A model that lacks a transformation or seed which another has on a data set
    has no score there: a mean over others is no match for it. Columns: first, second (models), difference (first -
    second, mean over the data sets that both have, points), low, high (95%, percentile), p, p_holm (over all rows), n,
    reason. Each row has its own random numbers, by `seed` and the two models.
    """
    totals = totals_of(whole_data_sets(of_total(counting_scores(scores, include_rejected), scores)), scores)
    cells = 100 * totals.pivot(index="dataset", columns="model", values="score")
    models = list(totals["model"].drop_duplicates())
    rows = []
    for first, second in itertools.combinations(models, 2):
        both = cells[[first, second]].dropna()
        values = (both[name].to_numpy(float) for name in (first, second))
        rng = stream(seed, "difference", *sorted((first, second)))
        test = paired_bootstrap(*values, n_resamples=n_resamples, rng=rng)
        estimate = test.estimate
        rows.append(
            {"first": first, "second": second, "difference": estimate.value, "low": estimate.low}
            | {"high": estimate.high, "p": test.p, "n": estimate.n, "reason": estimate.reason}
        )
    columns = ["first", "second", "difference", "low", "high", "p", "p_holm", "n", "reason"]
    table = pd.DataFrame(rows, columns=columns)
    table["p_holm"] = holm(table["p"].to_numpy(float))
    return table


def _spread(part: pd.DataFrame) -> dict[str, object]:
    spread = median_absolute_difference(100 * part["score"].to_numpy(float), 100 * part["original"].to_numpy(float))
    return {"median_absolute": spread.value, "n": spread.n, "reason": spread.reason}


def _tested(first: np.ndarray, second: np.ndarray, estimate: Estimate, note: str) -> dict[str, object]:
    """A shift with its test; what either of them has to say."""
    test = wilcoxon(first, second)
    return {
        "shift": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p": test.p,
        "method": test.method,
        "n": estimate.n,
        "reason": "; ".join(dict.fromkeys(filter(None, [estimate.reason, test.reason, note]))),
    }
