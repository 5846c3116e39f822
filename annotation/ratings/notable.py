"""Which pairs a person reads first: those that raters commented on, disagree on, or rate low."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from annotation.ratings.ratings import counting_ratings, stays
from plumbline.fields import columns_read
from plumbline.study.campaign import QualitySpec

MOST = 30  # pairs
_PAIR = ["pair_id", "transformation", "language", "original", "transformed"]
_NUMBERS = ["question", "lowest", "highest", "mean", "n_ratings", "comments"]
_COLUMNS = [*_PAIR[:3], *_NUMBERS, *_PAIR[3:]]


def pairs_to_read(pairs: pd.DataFrame, ratings: pd.DataFrame, per_pair: int, most: int = MOST) -> pd.DataFrame:
    """The pairs to read first: those with most comments, then those whose ratings lie farthest apart, then low ones.

    Pairs that people withdrew are not among them. A pair has one row, of the question on which its ratings lie farthest
    apart (of such, that with the lowest mean). Columns: pair_id, transformation, language, question, lowest, highest,
    mean (of ratings that count; missing of a pair that has only comments), n_ratings, comments (raters who wrote one,
    counting or not), original, transformed (of another subject than pairs `original` has all that raters read).
    `pairs` and `ratings` are frames of `plumbline.records.Pair` and `Rating`.
    """
    counting = counting_ratings(ratings, per_pair)
    values = counting[counting["value"].notna()].groupby(["pair_id", "question"], sort=False, observed=True)["value"]
    rated = values.agg(lowest="min", highest="max", mean="mean", n_ratings="size").reset_index()
    rated["apart"] = rated["highest"] - rated["lowest"]
    rated = rated.sort_values(["apart", "mean", "question"], ascending=[False, True, True]).drop_duplicates("pair_id")
    written = ratings.loc[stays(ratings) & (ratings["comment"].str.strip() != ""), ["pair_id", "rater_id"]]
    comments = written.drop_duplicates()["pair_id"].value_counts().rename("comments").reset_index()
    found = rated.merge(comments, how="outer", on="pair_id")
    found = found.fillna({"comments": 0, "n_ratings": 0, "question": ""})
    whole: dict[Hashable, Any] = {
        "lowest": "Int64",
        "highest": "Int64",
        "n_ratings": int,
        "comments": int,
        "question": str,
    }
    first, _, *more = columns_read(pairs)
    read = pairs.assign(original=more[0].where(more[0] != "", first)) if more else pairs
    found = found.astype(whole).merge(read[_PAIR], on="pair_id", how="inner")
    keys = ["comments", "apart", "mean", "pair_id"]
    return found.sort_values(keys, ascending=[False, False, True, True]).head(most)[_COLUMNS].reset_index(drop=True)


def low_pairs(ratings: pd.DataFrame, rules: QualitySpec) -> pd.DataFrame:
    """Pairs whose mean over raters is at most `rules.low` for a question, lowest first; `ratings` are the sample's.

    Columns: pair_id, transformation, question, mean, n. PTEB, appendix B, step 3: they are read by a person.
    """
    counting = ratings[(ratings["status"] == "submitted") & ratings["value"].notna()]
    means = counting.groupby(["pair_id", "transformation", "question"], as_index=False).agg(
        mean=("value", "mean"), n=("value", "size")
    )
    means["mean"] = means["mean"].astype(float)
    return means[means["mean"] <= rules.low].sort_values(["mean", "pair_id", "question"], ignore_index=True)
