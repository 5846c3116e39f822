"""Drift of the rated pairs against what raters made of them (HTEB, Figure 3), and of all texts."""

from __future__ import annotations

import pandas as pd

from annotation.ratings.ratings import counting_ratings
from evaluation.tables.scores import in_order
from plumbline.statistics.paired import spearman_interval
from plumbline.statistics.seeding import stream

QUANTILES = {"low": 0.05, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "high": 0.95}


def drift_by_quality(
    pairs: pd.DataFrame,
    ratings: pd.DataFrame,
    drift: pd.DataFrame,
    *,
    per_pair: int,
    question: str = "quality",
) -> pd.DataFrame:
    """A row for each rated pair x model: how far it moved and how people judged it (HTEB, Figure 3).

    `pairs`, `ratings` and `drift` hold `plumbline.records` rows; `per_pair` is the study's `raters.per_pair`,
    which says which ratings count. Columns: pair_id, transformation, axis, model, drift (1 - cos), mean_quality
    (mean of the counting ratings of `question`), n_ratings, simulated, language, output_language, original,
    transformed. Pairs without a rating that counts are not in it.
    """
    counting = counting_ratings(ratings, per_pair)
    counting = counting[counting["question"] == question]
    means = counting.groupby("pair_id", as_index=False).agg(
        mean_quality=("value", "mean"), n_ratings=("value", "size"), simulated=("simulated", "max")
    )
    means["mean_quality"] = means["mean_quality"].astype(float)
    shown = pairs[["pair_id", "transformation", "axis", "language", "output_language", "original", "transformed"]]
    frame = shown.merge(means, on="pair_id").merge(drift[["pair_id", "model", "drift"]], on="pair_id")
    frame["simulated"] = frame["simulated"].astype(bool)
    order = ["pair_id", "transformation", "axis", "model", "drift", "mean_quality", "n_ratings", "simulated"]
    return in_order(frame)[[*order, "language", "output_language", "original", "transformed"]].reset_index(drop=True)


def drift_correlations(frame: pd.DataFrame, seed: int, *, n_resamples: int = 1000) -> pd.DataFrame:
    """Spearman's rho between drift and mean quality, a row for each transformation x model.

    `frame` is `drift_by_quality`'s. Columns: transformation, axis, model, rho, low, high (95% percentile
    bootstrap over pairs), n (pairs), reason (why something is NaN), simulated. Each row has random numbers of
    its own, by `seed`, transformation and model.
    """
    rows = []
    for (transformation, axis, model), part in frame.groupby(["transformation", "axis", "model"], sort=False):
        estimate = spearman_interval(
            part["drift"].to_numpy(float),
            part["mean_quality"].to_numpy(float),
            n_resamples=n_resamples,
            rng=stream(seed, "drift", str(transformation), str(model)),
        )
        rows.append(
            {
                "transformation": transformation,
                "axis": axis,
                "model": model,
                "rho": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "reason": estimate.reason,
                "simulated": bool(part["simulated"].any()),
            }
        )
    columns = ["transformation", "axis", "model", "rho", "low", "high", "n", "reason", "simulated"]
    return pd.DataFrame(rows, columns=columns)


def accepted_drift_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean drift of accepted pairs beside that of the other rated ones, a row for each transformation x model.

    `frame` is `drift_by_quality`'s with a column accepted (bool). Columns: transformation, axis, model, n_accepted,
    drift_accepted, n_others, drift_others (means of 1 - cos; NaN without a pair), difference (accepted - others),
    simulated.
    """
    rows = []
    for (transformation, axis, model), part in frame.groupby(["transformation", "axis", "model"], sort=False):
        good = part["accepted"].astype(bool)
        means = [float(part.loc[which, "drift"].mean()) for which in (good, ~good)]
        rows.append(
            {"transformation": transformation, "axis": axis, "model": model, "n_accepted": int(good.sum())}
            | {"drift_accepted": means[0], "n_others": int((~good).sum()), "drift_others": means[1]}
            | {"difference": means[0] - means[1], "simulated": bool(part["simulated"].any())}
        )
    columns = ["transformation", "axis", "model", "n_accepted", "drift_accepted", "n_others", "drift_others"]
    return pd.DataFrame(rows, columns=[*columns, "difference", "simulated"])


def text_drift_table(rows: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """How far each transformation moves all texts, a row for each transformation x model.

    `rows` are those of `measures.text_drift.TextDrift`. Columns: transformation, axis, model, mean and the quantiles
    low (5%), lower_quartile, median, upper_quartile, high (95%) of the drift (1 - cos) over a data set's texts, each
    averaged over seeds and then over data sets; n (texts, summed over data sets; of one seed), n_datasets,
    included_rejected.
    """
    numbers = ["mean", *QUANTILES]
    counted = rows[(rows["status"] == "evaluated") | include_rejected]
    counted = counted.assign(included_rejected=counted["status"] == "included_rejected")
    keys = ["transformation", "axis", "model"]
    by_dataset = counted.groupby([*keys, "dataset"], sort=False, as_index=False).agg(
        **{name: (name, "mean") for name in numbers}, n=("n", "max"), included_rejected=("included_rejected", "max")
    )
    table = by_dataset.groupby(keys, sort=False, as_index=False).agg(
        **{name: (name, "mean") for name in numbers},
        n=("n", "sum"),
        n_datasets=("dataset", "nunique"),
        included_rejected=("included_rejected", "max"),
    )
    return in_order(table)[[*keys, *numbers, "n", "n_datasets", "included_rejected"]].reset_index(drop=True)
