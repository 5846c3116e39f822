"""Raters who had seen judges' scores: as adjudicators (`annotation.adjudication`), before they rated further pairs."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.shown_records import Review


def saw_scores(reviews: Sequence[Review], ratings: pd.DataFrame) -> list[str]:
    """Pseudonyms of those whose submitted ratings came in after they had been given judges' scores to adjudicate by."""
    first: dict[str, pd.Timestamp] = {}
    for review in reviews:
        for rater in review.adjudicators:
            first.setdefault(rater, pd.Timestamp(review.at))
    own = ratings[(ratings["status"] == "submitted") & ratings["rater_id"].isin(list(first))]
    late = own["submitted_at"] > own["rater_id"].astype(str).map(first)
    return sorted(own.loc[late, "rater_id"].astype(str).unique()) if len(own) else []
