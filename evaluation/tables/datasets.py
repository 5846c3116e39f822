"""Scores of data sets and their spread (HTEB, Tables 16 to 21), of models by size (Figure 5); drift; abstention."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.campaign.counting import counting_ratings
from evaluation.tables.scores import (
    axis_table,
    counting_scores,
    in_order,
    of_estimate,
    originals,
    paired_scores,
    with_originals,
)
from plumbline.statistics.abstention import CONFIDENCES
from plumbline.statistics.estimates import Estimate, stream
from plumbline.statistics.paired import sample_sd, spearman_intervals
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import Axes

AVERAGE = "Average"
_CELL = ["dataset", "task_type", "model"]
_NUMBERS = ["original", "score", "difference"]
_SIZE = re.compile(r"[-_ ]?(\d+(?:\.\d+)?)([mb])(?![a-z0-9])", re.IGNORECASE)


def dataset_totals(
    scores: pd.DataFrame, transformation: str = "", *, counted: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return each data set x model's original score and axis-balanced one, with the spread over runs.

    HTEB, Tables 17 to 21; with a `transformation`, its scores (PTEB, Tables 6, 9 and 10). Columns: dataset,
    task_type, model, original (of the whole data set, as in the papers), score (seeds averaged first), sd (sample
    SD over complete runs; NaN for one run), original_same (balanced like the score, on the same items), difference
    (score - original_same, points), n_runs (those runs), reason (why the score is NaN, or what it rests on). A
    total needs a score on each of its axes (`plumbline.study.transformations.Axes`). `counted` are the rows of
    `counting_scores` that count, if not all do.
    """
    counted = counting_scores(scores) if counted is None else counted
    if transformation:
        counted = counted[counted["transformation"] == transformation]
        axes = list(scores.loc[scores["transformation"] == transformation, "axis"].unique())
        wanted = [transformation]
    else:
        axes = list(Axes.of(scores).of_total)
        counted = counted[counted["axis"].isin(axes)]
        wanted = list(scores.loc[scores["axis"].isin(axes), "transformation"].unique())
    paired = paired_scores(counted, scores)
    cells = paired.groupby(_CELL, sort=False).agg(there=("transformation", "nunique"), why=("why", "max"))
    of_run = counted.groupby([*_CELL, "seed"])["transformation"].transform("nunique")
    complete = counted[of_run == counted.groupby(_CELL)["transformation"].transform("nunique")]
    runs = _balanced(complete, [*_CELL, "seed"], axes).groupby(_CELL, sort=False)
    table = originals(scores).set_index(_CELL)
    table["score"] = _balanced(paired, _CELL, axes)
    table["original_same"] = _balanced(paired, _CELL, axes, "original")
    table["sd"] = runs.agg(lambda totals: sample_sd(totals.to_numpy()).value)
    table["difference"] = 100 * (table["score"] - table["original_same"])
    table["n_runs"] = runs.size().reindex(table.index, fill_value=0)
    n_cells = cells["there"].reindex(table.index, fill_value=0)
    undefined = cells["why"].reindex(table.index, fill_value="")
    table["reason"] = [
        reason or _reason(bool(without_score), count, len(wanted))
        for without_score, count, reason in zip(table["score"].isna(), n_cells, undefined, strict=True)
    ]
    return table.reset_index()


def dataset_averages(totals: pd.DataFrame) -> pd.DataFrame:
    """Return the rows "Average" of Tables 17 to 21: a row a model, from rows of `dataset_totals`.

    Columns: model, original, score, original_same, sd (the mean of the data sets' SDs, as in the paper), difference
    (points), n_datasets (with a score; only these count), reason.
    """
    scored = totals[totals["score"].notna()]
    table = scored.groupby("model", sort=False, as_index=False).agg(
        original=("original", "mean"),
        original_same=("original_same", lambda values: values.mean(skipna=False)),
        score=("score", "mean"),
        sd=("sd", "mean"),
        n_datasets=("dataset", "nunique"),
    )
    table["difference"] = 100 * (table["score"] - table["original_same"])
    n_datasets = totals.groupby("model", sort=False)["dataset"].nunique().reindex(table["model"]).to_numpy()
    table["reason"] = [
        "" if count == total else f"rests on {count} of {total} data sets"
        for count, total in zip(table["n_datasets"], n_datasets, strict=True)
    ]
    return table[["model", "original", "score", "sd", "original_same", "difference", "n_datasets", "reason"]]


def translation_table(
    totals: pd.DataFrame, original: str, translated: str, groups: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a data set beside its translation, models grouped (HTEB, Table 16), from rows of `dataset_totals`.

    `groups` has the models of each group. Columns: group, model, and original, score and difference (points) of the
    data set and, prefixed `translated_`, of its translation. After each group a row "Subtotal" has its means; the last
    row, "Total", has those of all models. Models without scores on both are left out.
    """
    sides = [totals[totals["dataset"] == name].set_index("model")[_NUMBERS] for name in (original, translated)]
    both = sides[0].join(sides[1].add_prefix("translated_"), how="inner").dropna()
    parts = []
    for group, members in groups.items():
        mine = both[both.index.isin(members)]
        if not mine.empty:
            parts.append(mine.reset_index().assign(group=group))
            parts.append(mine.mean().to_frame().T.assign(group=group, model="Subtotal"))
    if parts:
        parts.append(both.mean().to_frame().T.assign(group="", model="Total"))
    columns = ["group", "model", *_NUMBERS, *(f"translated_{name}" for name in _NUMBERS)]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def size_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return models of one family by size (HTEB, Figure 5): a row a model, smallest first.

    Family and size are read from the model's name ("Qwen3-Embedding-0.6B"); models without a size in their name, and
    families of one model, are left out. Columns: family, parameters (millions), model, original, the axes, the total.
    """
    table = axis_table(scores)
    matches = [_SIZE.search(name) for name in table["model"]]
    table["family"] = [_SIZE.sub("", name, count=1) for name in table["model"]]
    scale = {"m": 1.0, "b": 1000.0}
    table["parameters"] = [float(m[1]) * scale[m[2].lower()] if m else float("nan") for m in matches]
    table = table[table["parameters"].notna()]
    table = table[table.groupby("family")["parameters"].transform("nunique") > 1]
    columns = ["family", "parameters", "model", "original", *Axes.of(scores).names]
    return table.sort_values(["family", "parameters"])[columns].reset_index(drop=True)


def _balanced(
    scored: pd.DataFrame, keys: Sequence[str], axes: Sequence[str], column: str = "score"
) -> pd.Series[float]:
    """Return the mean over axes of their transformations' means, for each of `keys`; NaN if an axis has none."""
    by_axis = scored.groupby([*keys, "axis"], sort=False)[column].mean(skipna=False).unstack("axis")
    return by_axis.reindex(columns=pd.Index(axes)).mean(axis=1, skipna=False)


def _reason(undefined: bool, scored: int, wanted: int) -> str:
    if not scored:
        return "none of its transformations was evaluated"
    rests = f"rests on {scored} of {wanted} transformations" if scored < wanted else ""
    return f"an axis has no score: {rests}" if undefined else rests


_KEYS = ["model", "axis", "transformation"]


def accepted_table(rows: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each model x transformation's scores on the items of accepted pairs only, before and after.

    `rows` are those of `evaluation.records.AcceptedScore`; `scores` are the study's. Columns: model, axis,
    transformation, n_datasets, n_items (summed over data sets and seeds), original, score, difference (points; seeds
    averaged first, then data sets), difference_all (of all items of the same data sets and seeds), reason (why it is
    NaN, or how many data sets and seeds it lacks).
    """
    counted = rows[rows["status"] == "evaluated"]
    units = ["model", "dataset", "transformation", "seed"]
    on_all_items = with_originals(scores, scores)
    on_all_items = on_all_items.assign(difference_all=100 * (on_all_items["score"] - on_all_items["original"]))
    joined = counted.merge(on_all_items[[*units, "difference_all"]], on=units, how="left")
    joined = joined.assign(difference=100 * (joined["score"] - joined["original"]))
    records = [
        _transformation(dict(zip(_KEYS, key, strict=True)), part) for key, part in joined.groupby(_KEYS, sort=False)
    ]
    columns = [*_KEYS, "n_datasets", "n_items", "original", "score", "difference", "difference_all", "reason"]
    return in_order(pd.DataFrame(records, columns=columns)).reset_index(drop=True)


def _transformation(key: Mapping[str, object], part: pd.DataFrame) -> dict[str, object]:
    """Return a row from the rows of its data sets and seeds."""
    scored = part[part["difference"].notna()]
    numbers = ["original", "score", "difference", "difference_all"]
    means = scored.groupby("dataset", sort=False)[numbers].mean(skipna=False).mean(skipna=False)
    undefined = part[part["difference"].isna()]
    reasons = f"no difference for {len(undefined)} of {len(part)} data sets and seeds" if len(undefined) else ""
    if len(undefined):
        nearest = undefined.iloc[int(undefined["n"].argmax())]
        among = ", which has the most items of these" if len(undefined) > 1 else ""
        reasons = f"{reasons}; on {nearest['dataset']}{among}: {nearest['reason']}"
    return {
        **key,
        **{str(name): value for name, value in means.items()},
        "n_datasets": scored["dataset"].nunique(),
        "n_items": int(scored["n"].sum()),
        "reason": reasons,
    }


ENGLISH, OTHERS = "English", "Other languages"
_COLUMNS = ["model", "axis", "size", "rank", "ordering"]


def score_drops(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each data set x model x transformation's original score and drop (HTEB, Figure 9).

    Columns: setting (`ENGLISH` or `OTHERS`, by the languages of the data set's texts), dataset, model, transformation,
    axis, original (on the same items), score, drop (original - score, in points; seeds averaged first). Undefined
    values, and transformations on none of the total's axes, are left out.
    """
    paired = paired_scores(counting_scores(scores, of_total=True), scores)
    paired = paired[paired["difference"].notna()]
    languages = scores.drop_duplicates("dataset").set_index("dataset")["language"]
    english = paired["dataset"].map(languages) == "en"
    table = paired.assign(setting=english.map({True: ENGLISH, False: OTHERS}), drop=-paired["difference"])
    return table[["setting", "dataset", "model", "transformation", "axis", "original", "score", "drop"]]


def profile_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the size of each axis's effect on each model (HTEB, Figures 10 and 11): a row for each model x axis.

    Columns: model, axis, size (of the axis's difference from the original, in points), rank (1: the largest effect),
    ordering (the axes from largest to smallest, by " > "). Models with the same ordering come together, the commonest
    ordering first. Models that lack an axis are left out. The axes are those of the total.
    """
    table = axis_table(scores)
    axes = list(Axes.of(scores).of_total)
    differences = table.set_index("model")[[f"{axis}_difference" for axis in axes]].dropna().abs()
    differences.columns = pd.Index(axes)
    long = differences.rename_axis("model").reset_index().melt("model", var_name="axis", value_name="size")
    if long.empty:
        return pd.DataFrame(columns=_COLUMNS)
    long["rank"] = long.groupby("model")["size"].rank(ascending=False, method="first").astype(int)
    long = long.sort_values(["model", "rank"])
    orderings = long.groupby("model")["axis"].agg(" > ".join)
    long["ordering"] = long["model"].map(orderings)
    common = long["ordering"].map(orderings.value_counts())
    position = long["model"].map({model: number for number, model in enumerate(differences.index)})
    keys = pd.DataFrame({"common": -common, "ordering": long["ordering"], "position": position, "rank": long["rank"]})
    order = keys.sort_values(["common", "ordering", "position", "rank"]).index
    return long.loc[order, _COLUMNS].reset_index(drop=True)


def drift_by_quality(
    pairs: pd.DataFrame, ratings: pd.DataFrame, drift: pd.DataFrame, *, per_pair: int, question: str = "quality"
) -> pd.DataFrame:
    """Return each rated pair x model's drift and mean rating (HTEB, Figure 3).

    `pairs`, `ratings` and `drift` are `plumbline.records` rows; `per_pair` is the study's `raters.per_pair`,
    which decides which ratings count. Columns: pair_id, transformation, axis, model, drift (1 - cos), mean_quality
    (mean of the counting ratings of `question`), n_ratings, simulated, language, output_language, original,
    transformed. Pairs without a counting rating are left out.
    """
    counting = counting_ratings(ratings, per_pair)
    counting = counting[counting["question"] == question]
    means = counting.groupby("pair_id", as_index=False).agg(
        mean_quality=("value", "mean"), n_ratings=("value", "size"), simulated=("simulated", "max")
    )
    means["mean_quality"] = means["mean_quality"].astype(float)
    names = ["pair_id", "transformation", "axis", "language", "output_language", "original", "transformed"]
    # Each text once in memory: Arrow's strings would be copied for every model.
    rated = pairs[names].merge(means, on="pair_id").astype({"original": object, "transformed": object})
    places = pd.Index(rated["pair_id"]).get_indexer(drift["pair_id"])
    rows = np.argsort(places, kind="stable")[(places < 0).sum() :]  # by pair, then in the given order
    moved = drift.iloc[rows][["model", "drift"]].reset_index(drop=True)
    kinds = rated["transformation"].to_numpy(object)[places[rows]]
    order = in_order(moved[["model"]].assign(transformation=kinds)).index
    of_pairs = rated.iloc[places[rows][order]].reset_index(drop=True)
    frame = of_pairs.assign(
        model=moved["model"].array[order],
        drift=moved["drift"].array[order],
        simulated=of_pairs["simulated"].astype(bool),
    )
    first = ["pair_id", "transformation", "axis", "model", "drift", "mean_quality", "n_ratings", "simulated"]
    ordered: pd.DataFrame = frame[[*first, *names[3:]]]
    return ordered


def drift_correlations(frame: pd.DataFrame, seed: int, *, n_resamples: int = 1000) -> pd.DataFrame:
    """Return Spearman's rho between drift and mean quality, a row for each transformation x model.

    `frame` is `drift_by_quality`'s. Columns: transformation, axis, model, rho, low, high (95% percentile
    bootstrap over pairs), n (pairs), reason (why a value is NaN), simulated. Each transformation has its own
    random numbers, by `seed`; models with the same pairs share its resamples.
    """
    estimates, rows = dict[tuple[str, str], Estimate](), []
    numbered = frame.assign(pair=pd.factorize(frame["pair_id"])[0])
    for name, of_all in numbered.groupby("transformation", sort=False):
        parts = {str(label): part for label, part in of_all.groupby("model", sort=False)}
        with_pairs = defaultdict[bytes, list[str]](list)
        for label, part in parts.items():
            with_pairs[part["pair"].to_numpy().tobytes()].append(label)
        for labels in with_pairs.values():
            drifts = [parts[label]["drift"].to_numpy(float) for label in labels]
            quality, rng = parts[labels[0]]["mean_quality"].to_numpy(float), stream(seed, "drift", str(name))
            rhos = spearman_intervals(drifts, quality, n_resamples=n_resamples, rng=rng)
            estimates |= {(str(name), label): rho for label, rho in zip(labels, rhos, strict=True)}
    for (transformation, axis, model), part in frame.groupby(["transformation", "axis", "model"], sort=False):
        of_part = {"transformation": transformation, "axis": axis, "model": model}
        of_rho = of_estimate("rho", estimates[str(transformation), str(model)])
        rows.append(of_part | of_rho | {"simulated": bool(part["simulated"].any())})
    columns = ["transformation", "axis", "model", "rho", "low", "high", "n", "reason", "simulated"]
    return pd.DataFrame(rows, columns=columns)


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
        first, undefined = part[part["confidence"] == CONFIDENCES[0]], part[part["reason"] != ""]
        naucs: dict[str, float] = {}
        for name in CONFIDENCES:
            naucs |= {f"nauc{which}_{name}": value for which, value in _nauc(part[part["confidence"] == name]).items()}
        records.append(
            {
                **dict(zip(_KEYS, key, strict=True)),
                "n_datasets": first["dataset"].nunique(),
                "n_queries": int(first["n"].sum()),
                **naucs,
                "reason": "; ".join(dict.fromkeys(undefined["dataset"] + ": " + undefined["reason"])),
            }
        )
    table = pd.DataFrame(records, columns=[*_KEYS, "n_datasets", "n_queries", *_NAUCS, *_ENDS, "reason"])
    return in_order(table, ORIGINAL).reset_index(drop=True)


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
    unsearched = rows[(rows["n"] == 0) & (rows["reason"] != "")].drop_duplicates("dataset")
    return dict(zip(unsearched["dataset"], unsearched["reason"], strict=True))
