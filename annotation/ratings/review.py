"""`plumbline review`: the evidence for a person's decision about a rater, and the decision."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from annotation.campaign.counting import counting_ratings, stays
from annotation.campaign.names import named
from annotation.campaign.records import CampaignRecords
from annotation.ratings.decisions import decision_words
from annotation.records import Sign, Verdict
from plumbline.cli import columns
from plumbline.fields import columns_read
from plumbline.study.campaign import QualityLimits

MOST = 30  # pairs
_PAIR = ["pair_id", "transformation", "language", "original", "transformed"]
_NUMBERS = ["question", "lowest", "highest", "mean", "n_ratings", "comments"]
_COLUMNS = [*_PAIR[:3], *_NUMBERS, *_PAIR[3:]]


def pairs_to_read(pairs: pd.DataFrame, ratings: pd.DataFrame, per_pair: int, most: int = MOST) -> pd.DataFrame:
    """Return the pairs to read first: most comments, then ratings farthest apart, then low means.

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
    table = rated.merge(comments, how="outer", on="pair_id")
    table = table.fillna({"comments": 0, "n_ratings": 0, "question": ""})
    types: dict[Hashable, Any] = {
        "lowest": "Int64",
        "highest": "Int64",
        "n_ratings": int,
        "comments": int,
        "question": str,
    }
    first, _, *more = columns_read(pairs)
    read = pairs.assign(original=more[0].where(more[0] != "", first)) if more else pairs
    table = table.astype(types).merge(read[_PAIR], on="pair_id", how="inner")
    keys = ["comments", "apart", "mean", "pair_id"]
    return table.sort_values(keys, ascending=[False, False, True, True]).head(most)[_COLUMNS].reset_index(drop=True)


def low_pairs(ratings: pd.DataFrame, rules: QualityLimits) -> pd.DataFrame:
    """Pairs whose mean over raters is at most `rules.low` for a question, lowest first; `ratings` are the sample's.

    Columns: pair_id, transformation, question, mean, n. PTEB, appendix B, step 3: they are read by a person.
    """
    counting = ratings[(ratings["status"] == "submitted") & ratings["value"].notna()]
    means = counting.groupby(["pair_id", "transformation", "question"], as_index=False).agg(
        mean=("value", "mean"), n=("value", "size")
    )
    means["mean"] = means["mean"].astype(float)
    return means[means["mean"] <= rules.low].sort_values(["mean", "pair_id", "question"], ignore_index=True)


SHOWN = 20  # pairs in the printed list


def review_text(
    records: CampaignRecords,
    signs: Sequence[Sign],
    unlooked: Sequence[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return signs by rater, pairs rated low, and the decisions so far about raters and pairs.

    `unlooked` has lines on rules that could not check some raters.
    """
    study, of_sample = records.study, records.collected.of_sample
    ratings = of_sample[stays(of_sample)]
    simulated = " (simulated ratings)" if ratings["simulated"].any() else ""
    rows = [[named(sign.rater_id, names), sign.rule, sign.evidence] for sign in signs]
    low = low_pairs(ratings, records.rubric.quality)
    pairs = [
        [row["pair_id"][:12], row["transformation"], row["question"], f"{row['mean']:.2f}", str(row["n"])]
        for row in low.head(SHOWN).to_dict(orient="records")
    ]
    decisions = [
        [
            named(decision.rater_id, names),
            decision_words(decision),
            f"{decision.decided_at:%Y-%m-%d %H:%M}",
            decision.reason,
        ]
        for decision in records.decisions
    ]
    withdrawals = [
        [decision.pair_id[:12], decision_words(decision), f"{decision.decided_at:%Y-%m-%d %H:%M}", decision.reason]
        for decision in records.withdrawals
    ]
    more = f"\n... and {len(low) - SHOWN} more" if len(low) > SHOWN else ""
    rated = ratings.empty or bool(ratings["value"].notna().any())  # labels have no mean
    item = study.called.item
    to_read = [
        f"{item.capitalize()}s to read, with a mean of {records.rubric.quality.low:g} or less",
        columns([item, study.called.judged, "question", "mean", "ratings"], pairs, empty="none") + more,
    ]
    return "\n\n".join(
        [
            f"Signs of careless answers in study {study.name}{simulated}; they decide nothing",
            columns(["rater", "rule", "evidence"], rows, empty="no sign in any rater's answers"),
            *(["Signs that could not be checked", "\n".join(unlooked)] if unlooked else []),
            *(to_read if rated else []),
            "Decisions",
            columns(["rater", "decision", "when", "reason"], decisions, empty="none so far"),
            *([] if not withdrawals else ["Pairs", columns(["pair", "decision", "when", "reason"], withdrawals)]),
        ]
    )


def waiting_text(verdicts: Sequence[Verdict], names: Mapping[str, str]) -> str:
    """Return which verdicts wait for a look at which raters, and why; empty where none does."""
    rows = [
        [
            verdict.transformation,
            f"{verdict.language} {verdict.task_type}".strip(),
            ", ".join(named(rater, names) for rater in verdict.review.to_look_at),
            verdict.reasons[0],
        ]
        for verdict in verdicts
    ]
    if not rows:
        return ""
    title = "Verdicts of the last `accept` that wait until these raters are excluded or kept"
    return f"{title}\n\n{columns(['transformation', 'language', 'raters', 'why'], rows)}\n\n"
