"""An experiment: how far raters are drawn towards judges' scores that they see (`raters.suggestions: half`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.adjudication import suggestions_of
from annotation.argilla.dataset import Suggested, Suggestion
from annotation.campaign_records import CampaignRecords
from annotation.judges.decisions import read_judging
from annotation.offering import alone
from annotation.ratings.ratings import counting_ratings
from annotation.records import ShownScore
from annotation.sampling.sample import refuse_other_half
from annotation.statistics.summaries import Design
from plumbline.errors import DataError
from plumbline.frames import that_count
from plumbline.manifest import Manifest, RecordFile
from plumbline.records import SUGGESTED
from plumbline.statistics.estimates import Estimate, Floats
from plumbline.statistics.intervals import quantile
from plumbline.study import Study

SHOWN = RecordFile("suggestions.json", ShownScore, "publish", noted=True)  #: of both halves


def suggestions_to_show(study: Study) -> Suggested:
    """Return the scores that an experiment shows, by pair: those noted earlier, or else noted now from the judgements.

    Empty if the study makes no experiment. A pair without a judge's score shows nothing, and stays in its half. Raises
    DataError if judges have not rated all pairs yet.
    """
    if study.raters.suggestions == "none":
        return {}
    with alone(study):
        records = CampaignRecords.open(study)
        noted = records.models(SHOWN) or _note(records)
    by_pair: dict[str, tuple[Suggestion, ...]] = {}
    for score in noted:
        if score.shown:
            suggestion = Suggestion(score.question, score.value, score.agent, score.label_mass)
            by_pair[score.pair_id] = (*by_pair.get(score.pair_id, ()), suggestion)
    return by_pair


def _note(records: CampaignRecords) -> list[ShownScore]:
    study, collected, rubric = records.study, records.collected, records.rubric
    pairs = [*collected.sample_pairs, *collected.control_pairs]
    refuse_other_half(study, pairs)
    halves = {pair.pair_id: pair.control == SUGGESTED for pair in pairs if pair.drawn}
    judgements, design = read_judging(records).judgements, Design.of(study, rubric)
    drawn = judgements[judgements["pair_id"].isin(list(halves))]
    waiting = set(halves) - set(drawn["pair_id"]) | set(drawn.loc[drawn["status"] == "unanswered", "pair_id"])
    if waiting or set(drawn["judge"]) != {judge.name for judge in study.judges}:
        raise DataError(
            f"{study.name}: judges have not rated all pairs of the experiment yet; run"
            f" `{study.command('judge run')}` first"
        )
    scales = {name: design.asked(name).scale for name in rubric.rating_names()}
    noted = [
        ShownScore(
            pair_id=pair_id,
            shown=halves[pair_id],
            question=suggestion.question,
            value=suggestion.value,
            agent=suggestion.agent,
            label_mass=suggestion.score,
        )
        for pair_id, suggestions in sorted(suggestions_of(drawn, scales).items())
        for suggestion in suggestions
    ]
    Manifest.of(study).write_models(SHOWN.name, noted)
    return noted


LEAST = 2  # of each group in a stratum: with fewer there is no variance


@dataclass(frozen=True)
class Arms:
    """The difference between two groups, and both means with the weights of that difference."""

    difference: Estimate  #: first minus second
    first: float
    second: float
    n_first: int  #: values that count
    n_second: int
    left_out: int  #: values of strata in which a group has fewer than two


def two_arms(values: Floats, first: NDArray[np.bool_], strata: NDArray[np.int64]) -> Arms:
    """The difference of two groups' means within strata, with its 95% interval.

    Each stratum weighs as many values as it has: D = sum of w_k (m1_k - m0_k), its variance the sum of w_k^2
    (s1_k^2 / n1_k + s0_k^2 / n0_k), and the interval is Student's t with the degrees of freedom of Satterthwaite
    (Welch 1947, Biometrika 34, 28-35). With one stratum it is Welch's. NaN with a reason where no stratum has two of
    each, or nothing varies.
    """
    parts, left_out = [], 0
    for stratum in np.unique(strata):
        inside = values[strata == stratum]
        arm = first[strata == stratum]
        arm_1, arm_0 = inside[arm], inside[~arm]
        if min(len(arm_1), len(arm_0)) < LEAST:
            left_out += len(inside)
        else:
            errors = arm_1.var(ddof=1) / len(arm_1), arm_0.var(ddof=1) / len(arm_0)
            parts.append((len(inside), arm_1.mean(), arm_0.mean(), *errors, len(arm_1), len(arm_0)))
    if not parts:
        none = Estimate.undefined(f"no stratum has {LEAST} pairs of each group")
        return Arms(none, math.nan, math.nan, 0, 0, left_out)
    n, means_1, means_0, error_1, error_0, n_1, n_0 = np.array(parts, np.float64).T
    weights = n / n.sum()
    mean_1, mean_0 = float(weights @ means_1), float(weights @ means_0)
    variance = float(weights**2 @ (error_1 + error_0))
    estimate = Estimate.alone(mean_1 - mean_0, "no variance within the groups")
    if variance > 0:
        freedom = variance**2 / float(weights**4 @ (error_1**2 / (n_1 - 1) + error_0**2 / (n_0 - 1)))
        reach = float(quantile(np.array([freedom]))[0]) * math.sqrt(variance)
        estimate = Estimate(value=estimate.value, low=estimate.value - reach, high=estimate.value + reach)
    return Arms(estimate, mean_1, mean_0, int(n_1.sum()), int(n_0.sum()), left_out)


#: measures by which pairs are compared
RATING, DISTANCE = "mean rating", "distance from the judges"
COLUMNS = ["question", "measure", "n_shown", "n_hidden", "shown", "hidden", "difference", "low", "high", "left_out"]
COLUMNS += ["reason"]


def anchoring(ratings: pd.DataFrame, scores: Iterable[ShownScore], strata: Mapping[str, str]) -> pd.DataFrame:
    """Two rows for each question: the mean rating, and how far ratings are from the judges, with and without them.

    `ratings` are those that count, of both halves (pair_id, question, value); `scores` the recorded ones, `strata` the
    strata within which the half was drawn, by pair. A pair has the mean of its ratings, and the mean of their distances
    from the judges' score, which the hidden half has as well. Pairs without a score are in neither row. Columns:
    question, measure, n_shown, n_hidden (pairs), shown, hidden (means), difference (shown minus hidden) with low and
    high (95%, t over pairs within strata, raters as they are), left_out (pairs of strata with fewer than two of a
    half), reason.
    """
    noted = pd.DataFrame(
        [(score.pair_id, score.question, score.shown, score.value) for score in scores],
        columns=["pair_id", "question", "is_shown", "score"],
    )
    rated = that_count(ratings)[["pair_id", "question", "value"]].merge(noted, on=["pair_id", "question"])
    rated = rated.assign(value=rated["value"].astype(float))
    rated["apart"] = (rated["value"] - rated["score"]).abs()
    pairs = rated.groupby(["question", "pair_id"], as_index=False).agg(
        rating=("value", "mean"), apart=("apart", "mean"), is_shown=("is_shown", "first")
    )
    rows = []
    for question, group in pairs.groupby("question"):
        arm = group["is_shown"].to_numpy(bool)
        places = pd.factorize(group["pair_id"].map(strata))[0].astype(np.int64)
        for measure, column in ((RATING, "rating"), (DISTANCE, "apart")):
            arms = two_arms(group[column].to_numpy(np.float64), arm, places)
            by = arms.difference
            numbers = (arms.n_first, arms.n_second, arms.first, arms.second, by.value, by.low, by.high)
            rows.append((question, measure, *numbers, arms.left_out, by.reason))
    return pd.DataFrame(rows, columns=COLUMNS)


def read_anchoring(records: CampaignRecords) -> pd.DataFrame:
    """Return `anchoring` of a study's records; no row without such an experiment or without ratings."""
    study, collected = records.study, records.collected
    if study.raters.suggestions == "none" or not (scores := records.models(SHOWN)):
        return pd.DataFrame(columns=COLUMNS)
    drawn = [pair for pair in (*collected.sample_pairs, *collected.control_pairs) if pair.drawn]
    strata = {pair.pair_id: f"{pair.transformation}/{pair.language}" for pair in drawn}
    rated = collected.plain_ratings[collected.plain_ratings["pair_id"].isin(list(strata))]
    return anchoring(counting_ratings(rated, study.raters.per_pair), scores, strata)


ABOUT = (
    "An experiment: on a random half of each transformation's pairs, raters saw the judges' score as a suggestion. That"
    " half counts in no verdict, mean or agreement. The other half counts, but its raters had seen judges' scores on"
    " other pairs, so these verdicts are not compared with judges."
)


ANCHORING_INTERVALS = (
    "95% t intervals over pairs within transformations and languages, for these raters; a distance that is"
    " smaller with scores shown means that raters are drawn to the judges."
)


def anchoring_lines(effects: pd.DataFrame) -> list[str]:
    """Return the experiment's results, a line for each question and measure, with an explanation of the intervals."""
    lines = []
    for row in effects.to_dict("records"):
        what = f"{row['question']}, {row['measure']}"
        if row["n_shown"] == 0:
            lines.append(f"{what}: not computed ({row['reason']})")
            continue
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]"
        interval = f" (no interval: {row['reason']})" if row["reason"] else interval
        lines.append(
            f"{what}: {row['shown']:.2f} with scores shown, {row['hidden']:.2f} without: {row['difference']:+.2f}"
            f"{interval}; {row['n_shown']} and {row['n_hidden']} pairs"
        )
    return [*lines, ANCHORING_INTERVALS] if lines else ["No pair with a judge's score has been rated yet."]
