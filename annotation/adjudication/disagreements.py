"""Pairs on which people and judges differ most, to be read by a person: frame in, frame out. It decides nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotation.judges.effects import LARGE
from annotation.judges.judgements import over_orders
from annotation.judges.people import far_ratings

LEAST_MASS = 0.9  # less probability on the points of the scale deserves a look
COLUMNS = ["pair_id", "transformation", "question", "people", "judges", "apart", "spread", "raters", "far", "flags"]


def disagreements(ratings: pd.DataFrame, judgements: pd.DataFrame, least: int) -> pd.DataFrame:
    """A row for each question on each pair that people and judges rated, pairs that are farthest apart first.

    `ratings` are those that count, on questions with a scale; pairs with fewer than `least` raters are left out, as
    they are of verdicts. Columns: pair_id, transformation, question, people (mean rating), judges (mean score
    of those that have one), apart (judges minus people), spread (between the judges' scores), raters, far (ratings more
    than 2 points from every judge; PTEB, appendix B), flags (in words: `far`, label mass below 0.9, a point or more
    between both orders of the scale).
    """
    rated = ratings.groupby(["pair_id", "question"]).agg(
        transformation=("transformation", "first"), people=("value", "mean"), raters=("rater_id", "nunique")
    )
    scores = over_orders(judgements)
    said = scores.dropna(subset=["score"]).groupby(["pair_id", "question"])["score"]
    judges = pd.DataFrame({"judges": said.mean(), "spread": said.max() - said.min()})
    both = rated[rated["raters"] >= least].astype({"people": float}).join(judges, how="inner")
    far = far_ratings(ratings, scores).groupby(["pair_id", "question"]).size()
    both = both.assign(apart=both["judges"] - both["people"], far=far.reindex(both.index, fill_value=0))
    doubtful, both = _doubtful(judgements), both.reset_index()
    keys = zip(both["pair_id"], both["question"], both["far"], strict=True)
    flags = [["far"] * (far > 0) + doubtful.get((pair_id, question), []) for pair_id, question, far in keys]
    both["flags"] = [", ".join(one) for one in flags]
    both["widest"] = both.groupby("pair_id")["apart"].transform(lambda one: one.abs().max())
    both["varied"] = both.groupby("pair_id")["spread"].transform("max")
    found: pd.DataFrame = both.sort_values(
        ["widest", "varied", "pair_id", "question"], ascending=[False, False, True, True], ignore_index=True
    )
    return found[COLUMNS]


def _doubtful(judgements: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """What is doubtful about the judges' own answers, by pair and question."""
    found: dict[tuple[str, str], list[str]] = {}
    if "label_mass" in judgements:
        low = judgements[judgements["label_mass"] < LEAST_MASS]
        for key in dict.fromkeys(zip(low["pair_id"], low["question"], strict=True)):
            found.setdefault(key, []).append("label mass")
    wide = judgements.pivot(index=["pair_id", "question", "judge"], columns="order", values="score")
    if {"up", "down"} <= set(wide.columns):
        moved = wide[np.abs(wide["up"] - wide["down"]) >= LARGE]
        for pair_id, question, _ in moved.index:
            reasons = found.setdefault((pair_id, question), [])
            reasons += ["order"] * ("order" not in reasons)
    return found
