"""Each pair's own means, by which an evaluation scores accepted pairs alone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from annotation.questions import labels_of
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import answers
from annotation.verdicts.rules import rules_for
from plumbline.study.campaign import RuleSpec


def pair_means(ratings: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Each rated pair's own mean on each question, and whether it reaches the threshold: columns of `PairMean`.

    `ratings` are those that count. A pair with fewer than `min_raters` on any question is undecided. Of texts there are
    no rows. With rules of their own each row says whether the pair's own ratings meet them together.
    """
    own = ratings[ratings["question"].isin([name for name in design.questions if design.asked(name).kind != "text"])]
    keys = ["pair_id", "transformation", "language", "question"]
    means = own.groupby(keys, as_index=False).agg(n_ratings=("value", "size"), mean=("value", "mean"))
    means["mean"] = means["mean"].astype(float)
    if design.rule.rules:
        reached = means["pair_id"].map(_own_decisions(own, design))
    else:
        unjudged = [name for name in design.questions if design.asked(name).kind != "rating"]
        kept = (means["mean"] >= design.rule.threshold) | means["question"].isin(unjudged)
        reached = pd.Series(np.where(kept, "accepted", "rejected"), index=means.index)
    enough = means["pair_id"].map(answers(ratings, design)) >= design.rule.min_raters
    means["decision"] = np.where(enough, reached, "undecided")
    return means


def _own_decisions(ratings: pd.DataFrame, design: Design) -> pd.Series:
    """Of each pair whether its own mean or share keeps to each rule of its pool (or to any of them, as combined)."""
    pools = ratings["transformation"].astype(str).map(design.pool_of)
    decided: dict[str, str] = {}
    for pool, of_pool in ratings.groupby(pools):
        pairs = pd.Index(of_pool["pair_id"].unique())
        kept = [_keeps(of_pool, rule).reindex(pairs, fill_value=False) for rule in rules_for(str(pool), design.rule)]
        together = np.logical_and if design.rule.combine == "all" else np.logical_or
        met = together.reduce([one.to_numpy(np.bool_) for one in kept])
        decided |= dict(zip(pairs, np.where(met, "accepted", "rejected"), strict=True))
    return pd.Series(decided)


def _keeps(ratings: pd.DataFrame, rule: RuleSpec) -> pd.Series:
    """Which pairs keep to a rule by their own number: the mean of their ratings, or the share of a label."""
    own = ratings[ratings["question"] == rule.question]
    value = own["value"].astype(float)
    if rule.label:
        value = own["answer"].astype(str).map(lambda answer: float(rule.label in labels_of(answer)))
    numbers = value.groupby(own["pair_id"]).mean()
    return numbers >= rule.limit if rule.at_least is not None else numbers <= rule.limit


def accepted_pairs(means: pd.DataFrame, questions: Collection[str]) -> frozenset[str]:
    """Ids of the pairs that every question accepts that they were asked; `means` are those of `pair_means`."""
    own = means[means["question"].isin(questions)]
    return frozenset(own["pair_id"]) - frozenset(own.loc[own["decision"] != "accepted", "pair_id"])
