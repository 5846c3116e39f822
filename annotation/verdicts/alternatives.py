"""Decisions on imported ratings by each of the usual rules, since their study's rules were fixed after the ratings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.judged import unit_of
from annotation.verdicts.preregistration import imported
from annotation.verdicts.tables import chance, scoped
from annotation.verdicts.verdicts import conclude
from plumbline.cli import columns
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec

USUAL = {"mean": "Mean (HTEB)", "lower_bound": "Interval", "pairs_and_raters": "Interval, raters too"}
ABOUT = (
    "The study's rules were fixed after the ratings were given. For comparison, these are the decisions of the usual"
    " rules on the same ratings: HTEB's, by the mean alone; `lower_bound`, by the mean's 95% interval; and the same by"
    " an interval that also treats raters as a sample."
)
_UNIT = ["transformation", "language", "task_type", "probability"]


def usual_rules(rule: AcceptanceSpec) -> Mapping[str, AcceptanceSpec]:
    """Return the acceptance by each of the usual rules, with the study's limits and numbers of pairs and raters."""
    specs = {}
    for name in USUAL:
        interval = "pairs_and_raters" if name == "pairs_and_raters" else "pairs"
        by = "value" if name == "mean" else "interval"
        shape = {"rules": tuple(spec.model_copy(update={"by": by}) for spec in rule.rules)}
        short = {} if rule.rules else {"rule": "mean" if name == "mean" else "lower_bound"}
        specs[name] = rule.model_copy(update={**shape, **short, "interval": interval, "stop": "fixed"})
    return specs


def by_usual_rules(
    pairs: Sequence[Pair],
    ratings: pd.DataFrame,
    design: Design,
    verdicts: Sequence[Verdict],
    withdrawn: Collection[str] = (),
) -> pd.DataFrame:
    """Return a row for each verdict: transformation, language, task_type, probability, decision by each usual rule.

    No rows if nothing was imported, if the rules were fixed before the first rating, or if a median decides, which has
    no interval over raters.
    """
    by_median = any(rule.statistic == "median" for rule in design.rule.rules)
    late = any(verdict.rules_fixed for verdict in verdicts)
    if by_median or not late or not imported(ratings).any():
        return pd.DataFrame(columns=[*_UNIT, *USUAL])
    decisions = []
    for rule in usual_rules(design.rule).values():
        nothing = dict.fromkeys(("pairs_sha256", "ratings_sha256", "rule_id"), "")
        _, reached, _ = conclude(pairs, ratings, replace(design, rule=rule), nothing, None, withdrawn)
        decisions.append({unit_of(verdict): verdict.decision for verdict in reached})
    rows = [
        [*unit_of(verdict), verdict.probability, *(by_unit.get(unit_of(verdict), "") for by_unit in decisions)]
        for verdict in verdicts
    ]
    return pd.DataFrame(rows, columns=[*_UNIT, *USUAL])


def printed_rules(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the usual rules' decisions formatted for readers."""
    rows = [
        [scoped(row["transformation"], row["language"], row["task_type"]), chance(row["probability"]),
         *(row[name] for name in USUAL)]
        for row in frame.to_dict("records")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["", "P", *USUAL.values()])


def usual_rules_text(frame: pd.DataFrame) -> str:
    """Return the usual rules' decisions as text for a terminal."""
    printed = printed_rules(frame)
    return f"{ABOUT}\n\n{columns(list(printed.columns), printed.to_numpy().tolist())}"
