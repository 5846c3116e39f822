"""Checks of a study's judges: against its people, length and each other, beside verdicts, and on single pairs.

Everything is shown only after the verdicts, so that it is not an unrecorded look at the ratings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.judges.effects import between_judges, length_ratios, length_slope
from annotation.judges.people import (
    CROWD,
    against_people,
    alternative_test,
    calibration,
    far_ratings,
    pair_means,
    with_each_rater,
)
from annotation.judges.powered import JudgesOutcome, outcome_of, read_judging
from annotation.judges.records import checked
from annotation.statistics.summaries import Design
from annotation.verdicts.conclusion import refuse_unlooked
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import SIMULATED, display
from plumbline import cli
from plumbline.exhibits.table import number
from plumbline.scales import is_fine, nearest_points
from plumbline.study.subject import PAIRS, ItemNames

FOLDER = "judge_check"


@dataclass(frozen=True)
class JudgeCheck:
    """The checks' tables by name, without empty ones."""

    tables: Mapping[str, pd.DataFrame]
    recorded: tuple[str, ...]  #: judges whose judgements come from a file: nobody was asked
    simulated: bool  #: whether ratings are simulated


def check(evidence: Evidence, epsilon: float = CROWD) -> JudgeCheck:
    """Compare a study's judges with its ratings. Raises DataError if verdicts or judgements are missing."""
    refuse_unlooked(evidence)
    outcome, design = outcome_of(evidence), evidence.design
    judging = outcome.judging
    counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
    rated = counting[counting["question"].isin(design.rated)]
    tables = held_against(rated, judging.judgements, judging.judged, design, epsilon=epsilon)
    tables["means"] = outcome.means
    filled = {name: table for name, table in tables.items() if len(table)}
    return JudgeCheck(filled, outcome.recorded, outcome.simulated)


def held_against(
    ratings: pd.DataFrame, judgements: pd.DataFrame, judged: pd.DataFrame, design: Design, *, epsilon: float = CROWD
) -> dict[str, pd.DataFrame]:
    """Return tables of judges beside people and each other; `ratings` are ratings that count, on scales.

    `judged` has the outputs' `original` and `transformed`, from which lengths are computed.
    """
    scores = checked(judgements)
    parts: dict[str, list[pd.DataFrame]] = {}
    for question, rated in ratings.groupby("question"):
        scale = design.asked(str(question)).scale
        of_judges = scores[scores["question"] == question]
        if of_judges.empty:
            continue
        every = judgements[judgements["question"] == question]
        of_question = {
            "people": against_people(rated, of_judges, scale),
            "calibration": pd.DataFrame() if is_fine(scale) else calibration(rated, of_judges, scale),
            "raters": with_each_rater(rated, of_judges, scale),
            "alternative": _alternative(rated, of_judges, scale, epsilon),
            "length": length_effects(rated, of_judges, judged),
            "between": between_judges(every, scale),
            "far": far_ratings(rated, of_judges),
        }
        for name, table in of_question.items():
            parts.setdefault(name, []).append(table)
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def _alternative(ratings: pd.DataFrame, scores: pd.DataFrame, scale: tuple[float, ...], epsilon: float) -> pd.DataFrame:
    """Return a row for each judge: the alternative annotator test of its scores, rounded to the scale."""
    rows = []
    for (judge, question), of_judge in scores.groupby(["judge", "question"]):
        points = pd.Series(nearest_points(of_judge["score"].to_numpy(np.float64), scale), index=of_judge["pair_id"])
        test = alternative_test(ratings, points, epsilon)
        rows.append((judge, question, epsilon, test.omega, test.rho, len(test.raters), test.passes, test.reason))
    return pd.DataFrame(rows, columns=["judge", "question", "epsilon", "omega", "rho", "raters", "passes", "reason"])


def length_effects(ratings: pd.DataFrame, scores: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each judge: the slope of the gap (judge minus people) on the logarithm of the length ratio."""
    people, ratios, rows = pair_means(ratings), length_ratios(judged), []
    for (judge, question), of_judge in scores.groupby(["judge", "question"]):
        gaps = of_judge.set_index("pair_id")["score"].reindex(people.index) - people
        slope = length_slope(gaps.to_numpy(np.float64), ratios.reindex(people.index).to_numpy(np.float64))
        rows.append((judge, question, slope.value, slope.low, slope.high, slope.reason))
    return pd.DataFrame(rows, columns=["judge", "question", "slope", "low", "high", "reason"])


_WHOSE = {"judge": "Judge", "question": "Question"}
INTERVAL = {"low": "from", "high": "to"}
#: table: its title, its columns with their headings
_SHOWN: Mapping[str, tuple[str, dict[str, str]]] = {
    "people": (
        "Judges against each pair's mean rating; gap: judge minus people, with its 95% interval",
        {**_WHOSE, "transformation": "Transformation", "n": "Pairs", "failed": "Failed", "spearman": "Spearman",
         "ac2": "AC2", "mean_absolute_error": "Error", "gap": "Gap", **INTERVAL},
    ),
    "calibration": (
        "Calibration: people's mean rating of the pairs with each of the judge's scores, rounded to the scale",
        {**_WHOSE, "score": "Score", "n": "Pairs", "people": "People"},
    ),
    "alternative": (
        "Alternative annotator test: a judge that passes is as good as one more rater; its mean may still be wrong",
        {**_WHOSE, "epsilon": "Epsilon", "omega": "Raters beaten", "rho": "Closer", "passes": "Passes", "reason": ""},
    ),
    "length": (
        "Slope of the gap (judge minus people) over length: points per unit of log length ratio (natural)",
        {**_WHOSE, "slope": "Slope", **INTERVAL, "reason": ""},
    ),
    "means": (
        "People's mean, and the same corrected by the judges' scores of further outputs; no verdict rests on it",
        {"pool": "Pool", "question": "Question", "n_rated": "Rated", "n_judged": "Judged too", "people_mean": "People",
         "people_low": "from", "people_high": "to", "mean": "With judges", **INTERVAL, "worth": "As precise as rated",
         "reason": ""},
    ),
    "between": (
        "Agreement between judges",
        {"question": "Question", "first": "Judge", "second": "Judge", "n": "Outputs", "spearman": "Spearman",
         "ac2": "AC2", "difference": "Difference"},
    ),
}  # fmt: skip


PEOPLE_DECIDE = "People alone decide the verdicts; judges decide nothing."


def means_text(outcome: JudgesOutcome) -> str:
    """Return what `plumbline accept` prints of judges: people's means with their help, and how precise these are."""
    title, columns = _SHOWN["means"]
    lines = [title, PEOPLE_DECIDE, *_recorded(outcome.recorded), *([SIMULATED] if outcome.simulated else [])]
    return "\n".join([*lines, "", text_of(printed(outcome.means, columns))])


def _recorded(judges: Sequence[str]) -> list[str]:
    return [f"Judges whose answers come from a file: {', '.join(judges)}"] if judges else []


def check_text(name: str, checked: JudgeCheck, called: ItemNames = PAIRS) -> str:
    """Return the tables of a study called `name`, doubts first, in its words for what is judged."""
    parts = [f"Judges of study {name}", *_recorded(checked.recorded)]
    if checked.simulated:
        parts.append(SIMULATED)
    parts.append(PEOPLE_DECIDE)
    for table, (title, headings) in _SHOWN.items():
        if (frame := checked.tables.get(table)) is not None:
            shown = printed(frame, headings).rename(columns={"Transformation": called.judged.capitalize()})
            parts.append(f"\n{title}\n\n{text_of(shown)}")
    far = len(checked.tables.get("far", ()))
    parts.append(f"\nRatings more than 2 points from the judges, for a person to check: {far} ({FOLDER}/far.csv)")
    return "\n".join(parts)


def printed(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of judges in words, with the headings of these columns."""
    rows = [[_cell(name, row[name]) for name in columns] for row in frame.to_dict("records")]
    return pd.DataFrame(rows, columns=list(columns.values()))


def text_of(frame: pd.DataFrame) -> str:
    """Return a printed table for a terminal."""
    return cli.columns(list(frame.columns), frame.to_numpy().tolist())


def _cell(column: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if column == "p_holm" and not math.isnan(value):
        return p_words(value)
    return number(value, 1, times=100, unit="%") if column == "error_rate" else number(value)


def p_words(p: float, until: str = "") -> str:
    """Return a p in words; `until` stands before one that is not below 0.001."""
    return "< 0.001" if p < 0.001 else f"{until}{p:.3f}"


DOUBTFUL_MASS = 0.9  # with less probability on the points of the scale a judgement is flagged
COLUMNS = ["pair_id", "transformation", "question", "people", "judges", "apart", "spread", "raters", "far", "flags"]
SHOWN = 20  # pairs in the printed list


def disagreements(ratings: pd.DataFrame, judgements: pd.DataFrame, least: int) -> pd.DataFrame:
    """Return a row for each question on each pair that people and judges rated, pairs that are farthest apart first.

    `ratings` are those that count, on questions with a scale; pairs with fewer than `least` raters are left out, as
    they are of verdicts. Columns: pair_id, transformation, question, people (mean rating), judges (mean score
    of those that have one), apart (judges minus people), spread (between the judges' scores), raters, far (ratings more
    than 2 points from every judge; PTEB, appendix B), flags (in words: `far`, label mass below 0.9).
    """
    rated = ratings.groupby(["pair_id", "question"]).agg(
        transformation=("transformation", "first"), people=("value", "mean"), raters=("rater_id", "nunique")
    )
    scores = checked(judgements)
    by_question = scores.dropna(subset=["score"]).groupby(["pair_id", "question"])["score"]
    judges = pd.DataFrame({"judges": by_question.mean(), "spread": by_question.max() - by_question.min()})
    both = rated[rated["raters"] >= least].astype({"people": float}).join(judges, how="inner")
    far = far_ratings(ratings, scores).groupby(["pair_id", "question"]).size()
    both = both.assign(apart=both["judges"] - both["people"], far=far.reindex(both.index, fill_value=0))
    low = judgements[judgements["label_mass"] < DOUBTFUL_MASS]
    doubtful, both = set(zip(low["pair_id"], low["question"], strict=True)), both.reset_index()
    keys = zip(both["pair_id"], both["question"], both["far"], strict=True)
    flags = [["far"] * (far > 0) + ["label mass"] * (tuple(key) in doubtful) for *key, far in keys]
    both["flags"] = [", ".join(reasons) for reasons in flags]
    both["widest"] = both.groupby("pair_id")["apart"].transform(lambda gaps: gaps.abs().max())
    both["varied"] = both.groupby("pair_id")["spread"].transform("max")
    ordered: pd.DataFrame = both.sort_values(
        ["widest", "varied", "pair_id", "question"], ascending=[False, False, True, True], ignore_index=True
    )
    return ordered[COLUMNS]


def differences_text(evidence: Evidence) -> str:
    """Return the pairs on which people and judges differ most, for a terminal.

    Raises DataError before there are verdicts and judgements, and for stale verdicts: who saw the list before the
    verdicts could decide about raters by it, without a record.
    """
    refuse_unlooked(evidence.read_whole())
    design, study, judgements = evidence.design, evidence.study, read_judging(evidence).judgements
    counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
    ratings = counting[counting["question"].isin(evidence.rubric.rating_names())]
    rows = disagreements(ratings, judgements, design.rule.min_raters)
    pairs = list(dict.fromkeys(rows["pair_id"]))
    cells = [
        [
            row["pair_id"][:12],
            display(row["transformation"], pooled=False),
            row["question"],
            f"{row['people']:.2f}",
            f"{row['judges']:.2f}",
            f"{row['apart']:+.2f}",
            row["flags"],
        ]
        for row in rows[rows["pair_id"].isin(pairs[:SHOWN])].to_dict("records")
    ]
    judged, item = study.called
    recorded = sorted(judgements.loc[judgements["kind"] == "recorded", "judge"].unique())
    parts = [f"Pairs on which people and judges differ most, study {study.name}; read them, as either may be wrong"]
    parts += [SIMULATED] if ratings["simulated"].any() else []
    parts += _recorded(recorded)
    header = [item.capitalize(), judged.capitalize(), "Question", "People", "Judges", "Difference", "Flags"]
    parts.append(cli.columns(header, cells, empty="none: no pair has both enough ratings and a judge's score"))
    parts += [f"... and {len(pairs) - SHOWN} more"] if len(pairs) > SHOWN else []
    return "\n\n".join(parts)
