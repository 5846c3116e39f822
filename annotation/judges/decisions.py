"""What the study's rule would decide with the judges' help, beside what people's ratings alone decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from annotation.judges.powered import worth_in_words
from annotation.records import Summary, Verdict
from annotation.verdicts.counted import SCOPES
from annotation.verdicts.rules import decide, rules_for
from plumbline.study.campaign import AcceptanceSpec

COLUMNS = [
    "transformation",
    "language",
    "task_type",
    "decision",
    "with_judges",
    "reasons",
    "rests_on",
    "differ",
    "why_not",
]


def with_judges(verdicts: Iterable[Verdict], means: pd.DataFrame, rule: AcceptanceSpec) -> pd.DataFrame:
    """A row for each verdict: what people's ratings decide, and what the same rule decides of people and judges.

    `means` are those of `powered_means`. The rule is the study's own, on the same pairs: only the means and intervals
    of questions that judges help with are others. Judges never decide alone: a verdict without its least number of
    rated pairs or raters stays undecided, and so does one whose agreement is too low. Columns: transformation,
    language, task_type, decision (people), with_judges (empty where no question has judges), reasons (of it), rests_on
    (`people + judges: 100 rated, 900 judged, worth 179`, by question), differ, why_not (why judges are refused).
    """
    rows: list[tuple[object, ...]] = []
    for verdict in verdicts:
        own = _of_verdict(verdict, means)
        usable = {str(row["question"]): row for _, row in own.iterrows() if not row["reason"]}
        why = "; ".join(f"{row['question']}: {row['reason']}" for _, row in own.iterrows() if row["reason"])
        named = (verdict.transformation, verdict.language, verdict.task_type, verdict.decision)
        if not usable:
            rows.append((*named, "", (), "", False, why or "judges have no score of it"))
            continue
        summaries = [_helped(one, usable.get(one.question)) for one in verdict.questions]
        rules = rules_for(verdict.pool, rule)
        decision, reasons = decide(summaries, verdict.n_pairs, rule, rules)
        rests = "; ".join(
            f"{name}: {worth_in_words(row['n_rated'], row['n_judged'], row['worth'])}" for name, row in usable.items()
        )
        rows.append((*named, decision, reasons, rests, decision != verdict.decision, why))
    return pd.DataFrame(rows, columns=COLUMNS)


def warnings(decided: pd.DataFrame) -> Sequence[str]:
    """A line for each verdict that would be another with the judges' help."""
    return [
        f"{row['transformation']} ({row['language']}): people alone say {row['decision']}, people and judges"
        f" {row['with_judges']}; {row['rests_on']}"
        for _, row in decided[decided["differ"]].iterrows()
    ]


def _of_verdict(verdict: Verdict, means: pd.DataFrame) -> pd.DataFrame:
    own = means["pool"] == verdict.pool
    for name in SCOPES[verdict.scope][1:]:
        own &= means[name] == getattr(verdict, name)
    return means[own]


def _helped(summary: Summary, row: pd.Series | None) -> Summary:
    """The summary with the mean and the interval of people and judges."""
    if row is None:
        return summary
    why = "" if not math.isnan(row["low"]) else "people and judges have no spread to tell it by"
    numbers = {name: float(row[name]) for name in ("mean", "low", "high")}
    return summary.model_copy(update={**numbers, "interval_reason": why})
