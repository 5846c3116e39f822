"""How far raters were drawn towards the scores that half of the pairs showed them: frame in, frame out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from annotation.anchoring.noted import read_shown
from annotation.ratings.collected import Collected
from annotation.ratings.ratings import counting_ratings
from annotation.shown_records import ShownScore
from annotation.statistics.two_arms import two_arms
from plumbline.frames import that_count
from plumbline.study import Study

#: measure: what of a pair is compared
RATING, DISTANCE = "mean rating", "distance from the judges"
COLUMNS = ["question", "measure", "n_shown", "n_hidden", "shown", "hidden", "difference", "low", "high", "left_out"]
COLUMNS += ["reason"]


def anchoring(ratings: pd.DataFrame, scores: Iterable[ShownScore], strata: Mapping[str, str]) -> pd.DataFrame:
    """Two rows for each question: the mean rating, and how far ratings are from the judges, with and without them.

    `ratings` are those that count, of both halves (pair_id, question, value); `scores` what was noted, `strata` those
    within which chance chose, by pair. A pair has the mean of its ratings, and the mean of their distances from the
    judges' score, which the hidden half has as well. Pairs without a score are in neither row. Columns: question,
    measure, n_shown, n_hidden (pairs), shown, hidden (means), difference (shown minus hidden) with low and high (95%, t
    over pairs within strata, raters as they are), left_out (pairs of strata with fewer than two of a half), reason.
    """
    noted = pd.DataFrame(
        [(one.pair_id, one.question, one.shown, one.value) for one in scores],
        columns=["pair_id", "question", "is_shown", "score"],
    )
    given = that_count(ratings)[["pair_id", "question", "value"]].merge(noted, on=["pair_id", "question"])
    given = given.assign(value=given["value"].astype(float))
    given["apart"] = (given["value"] - given["score"]).abs()
    pairs = given.groupby(["question", "pair_id"], as_index=False).agg(
        rating=("value", "mean"), apart=("apart", "mean"), is_shown=("is_shown", "first")
    )
    rows = []
    for question, own in pairs.groupby("question"):
        arm = own["is_shown"].to_numpy(bool)
        places = pd.factorize(own["pair_id"].map(strata))[0].astype(np.int64)
        for measure, column in ((RATING, "rating"), (DISTANCE, "apart")):
            found = two_arms(own[column].to_numpy(np.float64), arm, places)
            by = found.difference
            numbers = (found.n_first, found.n_second, found.first, found.second, by.value, by.low, by.high)
            rows.append((question, measure, *numbers, found.left_out, by.reason))
    return pd.DataFrame(rows, columns=COLUMNS)


def read_anchoring(study: Study, collected: Collected) -> pd.DataFrame:
    """The same of a study's records; no row where it makes no such experiment, or nobody has rated yet."""
    if study.raters.suggestions == "none" or not (scores := read_shown(study)):
        return pd.DataFrame(columns=COLUMNS)
    drawn = [pair for pair in (*collected.sample_pairs, *collected.control_pairs) if pair.drawn]
    strata = {pair.pair_id: f"{pair.transformation}/{pair.language}" for pair in drawn}
    rated = collected.plain_ratings[collected.plain_ratings["pair_id"].isin(list(strata))]
    return anchoring(counting_ratings(rated, study.raters.per_pair), scores, strata)


ABOUT = (
    "An experiment: of each transformation a random half of the pairs showed raters the judges' score as a suggestion."
    " That half counts in no verdict, no mean and no agreement. The other half does, though its raters had seen judges'"
    " scores elsewhere; so no judge stands beside these verdicts."
)


INTERVALS = (
    "95%, t over pairs within transformations and languages, of these raters; a distance that falls says that they are"
    " drawn to the judges."
)


def anchoring_lines(found: pd.DataFrame) -> list[str]:
    """What the experiment found, a line for each question and measure, and what the intervals are."""
    lines = []
    for row in found.to_dict("records"):
        what = f"{row['question']}, {row['measure']}"
        if row["n_shown"] == 0:
            lines.append(f"{what}: no number ({row['reason']})")
            continue
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]"
        interval = f" (no interval: {row['reason']})" if row["reason"] else interval
        lines.append(
            f"{what}: {row['shown']:.2f} with scores in sight, {row['hidden']:.2f} without: {row['difference']:+.2f}"
            f"{interval}; {row['n_shown']} and {row['n_hidden']} pairs"
        )
    return [*lines, INTERVALS] if lines else ["Nobody has rated a pair of both halves yet."]
