"""How far a study's judges can be trusted: held against its people, order, length and each other, and beside verdicts.

Everything is shown after the verdicts were reached, so that what is seen here is no look that nobody noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from annotation.judges.alternative import CROWD, alternative_test
from annotation.judges.beside import Beside, beside, read_judging
from annotation.judges.effects import between_judges, length_slope, order_effects, rounded
from annotation.judges.judgements import over_orders
from annotation.judges.people import against_people, far_ratings, pair_means, with_each_rater
from annotation.ratings.ratings import counting_ratings
from annotation.statistics.summaries import Design
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from plumbline.study import Study
from plumbline.words import count_words

FOLDER = "judge_check"
Flag = Literal["both", "any"]


@dataclass(frozen=True)
class Checked:
    """What was found, as tables by name; a table without rows is left out."""

    tables: Mapping[str, pd.DataFrame]
    warnings: tuple[str, ...]  #: a line for each verdict that would be another with the judges
    recorded: tuple[str, ...]  #: judges whose judgements come from a file: nobody was asked
    simulated: bool  #: whether ratings are a program's
    decides: bool = False  #: whether people and judges decide together


def check(study: Study, epsilon: float = CROWD, flag: Flag = "both") -> Checked:
    """Hold the study's judges against its ratings. Raises DataError where verdicts or judgements are not there yet."""
    evidence = Evidence.whole(study)
    found = read_verdicts(study)
    refuse_stale(study, found, evidence.rubric)
    judging = read_judging(study, evidence.collected)
    return checked(evidence, beside(evidence, found, judging), epsilon, flag)


def checked(evidence: Evidence, made: Beside, epsilon: float = CROWD, flag: Flag = "both") -> Checked:
    """The same of what was read before. Where the rules let no judge speak of verdicts, it is of agreement alone."""
    design, judging = evidence.design, made.judging
    counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
    rated = counting[[design.asked(str(name)).kind == "rating" for name in counting["question"]]]
    tables = held_against(rated, judging.judgements, judging.judged, design, epsilon=epsilon, flag=flag)
    if judging.refused and "alternative" in tables:
        refused = tables["alternative"].assign(omega=np.nan, rho=np.nan, passes=False, reason=judging.refused)
        tables["alternative"] = refused
    shown = evidence.study.acceptance.judges.use != "none"
    if shown:
        tables |= {"together": made.together, "decisions": made.decisions, "saved": made.saved}
    return Checked(
        {name: table for name, table in tables.items() if len(table)},
        tuple(made.warnings) if shown else (),
        made.recorded,
        made.simulated,
        made.decides,
    )


def held_against(
    ratings: pd.DataFrame,
    judgements: pd.DataFrame,
    judged: pd.DataFrame,
    design: Design,
    *,
    epsilon: float = CROWD,
    flag: Flag = "both",
) -> dict[str, pd.DataFrame]:
    """Tables of judges beside people and each other; `ratings` are those that count, of questions with a scale.

    `judged` has the outputs' `original` and `transformed`, by which length is told.
    """
    scores = over_orders(judgements)
    parts: dict[str, list[pd.DataFrame]] = {}
    for question, own in ratings.groupby("question"):
        scale = design.asked(str(question)).scale
        said = scores[scores["question"] == question]
        if said.empty:
            continue
        every = judgements[judgements["question"] == question]
        found = {
            "people": against_people(own, said, scale),
            "raters": with_each_rater(own, said, scale),
            "alternative": _alternative(own, said, scale, epsilon),
            "length": length_effects(own, said, judged),
            "between": between_judges(every, scale),
            "far": far_ratings(own, said, flag=flag),
        }
        if {"up", "down"} <= set(every["order"]):
            found["order"] = order_effects(every, "up", "down")
        for name, table in found.items():
            parts.setdefault(name, []).append(table)
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def _alternative(ratings: pd.DataFrame, scores: pd.DataFrame, scale: tuple[int, ...], epsilon: float) -> pd.DataFrame:
    """A row a judge: the alternative annotator test of its scores, rounded to the scale."""
    rows = []
    for (judge, question), own in scores.groupby(["judge", "question"]):
        points = pd.Series(rounded(own["score"].to_numpy(np.float64), scale), index=own["pair_id"])
        test = alternative_test(ratings, points, epsilon)
        rows.append((judge, question, epsilon, test.omega, test.rho, len(test.raters), test.passes, test.reason))
    return pd.DataFrame(rows, columns=["judge", "question", "epsilon", "omega", "rho", "raters", "passes", "reason"])


def length_effects(ratings: pd.DataFrame, scores: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """A row a judge: how the gap (judge minus people) rises with the logarithm of the length ratio."""
    people, outputs = pair_means(ratings), judged.drop_duplicates("pair_id").set_index("pair_id")
    before, after = (outputs[name].astype(str).map(count_words) for name in ("original", "transformed"))
    ratios = after / before.where(before > 0)
    rows = []
    for (judge, question), own in scores.groupby(["judge", "question"]):
        gaps = own.set_index("pair_id")["score"].reindex(people.index) - people
        found = length_slope(gaps.to_numpy(np.float64), ratios.reindex(people.index).to_numpy(np.float64))
        rows.append((judge, question, found.value, found.low, found.high, found.reason))
    return pd.DataFrame(rows, columns=["judge", "question", "slope", "low", "high", "reason"])
