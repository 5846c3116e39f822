"""Scores of transformed data sets beside those of the original texts of the same items: what all differences rest on.

Where failed outputs were dropped, the original's score is that of the items that are left (`Score.original_score`), and
not the whole data set's: the items whose outputs fail are no random ones. The whole data set's stands beside it for
the papers' tables, which print the original once.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from plumbline.transformations import ORIGINAL, Axes

EARLIER = (
    "an earlier version did not score the original on the same items, which `evaluation.run` does when it runs again"
)
NO_ORIGINAL = "the original has no score"
NO_SCORE = "there is no score"
_UNIT = ["model", "dataset", "transformation"]
_NUMBERS = ["score", "original", "original_all"]


def originals(scores: pd.DataFrame) -> pd.DataFrame:
    """Score of each model on each whole original data set: model, dataset, task_type, original; NaN if undefined."""
    rows = scores[(scores["transformation"] == ORIGINAL) & (scores["status"] == "evaluated")]
    return rows[["model", "dataset", "task_type", "score"]].rename(columns={"score": "original"})


def counting_scores(scores: pd.DataFrame, include_rejected: bool) -> pd.DataFrame:
    """The scores of transformed data sets that count, a row a seed; NaN where the metric is undefined."""
    statuses = ("evaluated", "included_rejected") if include_rejected else ("evaluated",)
    return scores[scores["status"].isin(statuses) & (scores["transformation"] != ORIGINAL)]


def of_total(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of `counting_scores` on the axes that a total rests on: of one's own beside HTEB's nothing counts there."""
    return counted[counted["axis"].isin(Axes.of(scores).of_total)]


def with_originals(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of `counting_scores` beside their originals, a row a seed.

    Added columns: original (on the same items), original_all (on the whole data set), why (what is undefined, if
    anything is).
    """
    whole = originals(scores).rename(columns={"original": "original_all"})
    rows = counted.merge(whole, on=["model", "dataset", "task_type"], how="left")
    dropped = ((rows["n_failed"] > 0) & (rows["failed_policy"] == "drop")).to_numpy(bool)
    same = rows["original_score"] if "original_score" in rows else pd.Series(np.nan, index=rows.index)
    rows["original"] = np.where(dropped, same.to_numpy(float), rows["original_all"].to_numpy(float))
    undefined = rows[["score", "original"]].isna().any(axis=1).to_numpy(bool)
    unsaid = np.where(rows["score"].isna(), NO_SCORE, np.where(dropped, EARLIER, NO_ORIGINAL))
    why = np.where(rows["reason"].str.contains("undefined"), rows["reason"], unsaid)
    return rows.assign(why=np.where(undefined, why, ""))


def paired_scores(counted: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Model x data set x transformation with its score, averaged over seeds, beside the original's on the same items.

    `counted` are rows of `counting_scores`; `scores` has the originals. Columns: model, dataset, transformation, axis,
    task_type, score, original, original_all (of the whole data set), n_failed, included_rejected, difference (points),
    why. What is undefined for one of the seeds is NaN, and `why` says so.
    """
    return averaged(with_originals(counted, scores))


def shared_scores(scores: pd.DataFrame, include_rejected: bool) -> tuple[pd.DataFrame, str]:
    """The rows of `paired_scores` for what every model has, and what that leaves out.

    Comparisons between models, and means over them, need the same ground for all: data sets, transformations, seeds.
    """
    rows = with_originals(counting_scores(scores, include_rejected), scores)
    defined = rows[rows["why"] == ""]
    keys = ["dataset", "transformation", "seed"]
    models = defined.groupby(keys)["model"].transform("nunique")
    shared = defined[models == defined["model"].nunique()]
    total, shared_n = (len(some.drop_duplicates(keys)) for some in (rows, shared))
    what = "data sets x transformations" + (" x seeds" if rows["seed"].nunique() > 1 else "")
    return averaged(shared), f"without {total - shared_n} of {total} {what} that not every model has" * (
        shared_n < total
    )


def whole_data_sets(counted: pd.DataFrame) -> pd.DataFrame:
    """Rows of those models and data sets that have each transformation and seed that any model has on the data set.

    A mean over fewer transformations or seeds is no match for another model's.
    """
    keys = ["dataset", "transformation", "seed"]
    wanted = counted.drop_duplicates(keys).groupby("dataset").size()
    runs = counted.groupby(["model", "dataset"])["seed"].transform("size")
    return counted[runs == counted["dataset"].map(wanted)]


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `with_originals`, averaged over seeds."""
    marked = rows.assign(included_rejected=rows["status"] == "included_rejected")
    groups = marked.groupby([*_UNIT, "axis", "task_type"], sort=False)
    means = groups[_NUMBERS].mean(skipna=False)
    counts = groups.agg(
        n_failed=("n_failed", "sum"), included_rejected=("included_rejected", "max"), why=("why", "max")
    )
    paired = means.join(counts).reset_index()
    return paired.assign(difference=100 * (paired["score"] - paired["original"]))
