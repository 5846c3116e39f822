"""What disrupts a model, and how much (HTEB, Figures 9 to 11)."""

from __future__ import annotations

import pandas as pd

from evaluation.tables.pairs import counting_scores, of_total, paired_scores
from evaluation.tables.scores import axis_table
from plumbline.transformations import Axes

ENGLISH, OTHERS = "English", "Other languages"
_COLUMNS = ["model", "axis", "size", "rank", "ordering"]


def drop_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """A row for each data set x model x transformation: its original score and what is lost (HTEB, Figure 9).

    Columns: setting (`ENGLISH` or `OTHERS`, by the languages of the data set's texts), dataset, model, transformation,
    axis, original (on the same items), score, drop (original - score, in points; seeds averaged first). What is
    undefined is not in it, nor what stands on none of the total's axes.
    """
    paired = paired_scores(of_total(counting_scores(scores, include_rejected), scores), scores)
    paired = paired[paired["difference"].notna()]
    languages = scores.drop_duplicates("dataset").set_index("dataset")["language"]
    english = paired["dataset"].map(languages) == "en"
    table = paired.assign(setting=english.map({True: ENGLISH, False: OTHERS}), drop=-paired["difference"])
    return table[["setting", "dataset", "model", "transformation", "axis", "original", "score", "drop"]]


def profile_table(scores: pd.DataFrame, *, include_rejected: bool = False) -> pd.DataFrame:
    """How much each axis moves each model, whichever way (HTEB, Figures 10 and 11): a row for each model x axis.

    Columns: model, axis, size (of the axis's difference from the original, in points), rank (1: the axis that moves the
    model most), ordering (the axes from most to least, by " > "). Models with the same ordering stand together, in
    the order of the orderings' numbers of models. Models that lack an axis are not in it. The axes are those that the
    total rests on.
    """
    table = axis_table(scores, include_rejected=include_rejected)
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
    place = long["model"].map({model: number for number, model in enumerate(differences.index)})
    keys = pd.DataFrame({"common": -common, "ordering": long["ordering"], "place": place, "rank": long["rank"]})
    order = keys.sort_values(["common", "ordering", "place", "rank"]).index
    return long.loc[order, _COLUMNS].reset_index(drop=True)
