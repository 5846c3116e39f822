"""What the study's rule would decide with the judges' help, beside what people's ratings alone decide."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.judged_mean import JudgedMean
from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import SCOPES
from annotation.verdicts.judged import together, worth_in_words
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

    `means` are those of `powered_means`. The rule is the study's own, on the same pairs, as
    `annotation.verdicts.judged.together` says. Judges never decide alone: a verdict without its least number of
    rated pairs or raters stays undecided, and so does one whose agreement is too low. Columns: transformation,
    language, task_type, decision (people), with_judges (empty where no question has judges), reasons (of it), rests_on
    (`people + judges: 100 rated, 900 judged, worth 179`, by question), differ, why_not (why judges are refused).
    """
    rows: list[tuple[object, ...]] = []
    for verdict in verdicts:
        own = of_verdict(verdict, means)
        usable = [judged_mean(row) for row in own.to_dict("records") if not row["reason"]]
        why = "; ".join(_refused(own))
        named = (verdict.transformation, verdict.language, verdict.task_type, verdict.alone)
        if not usable:
            rows.append((*named, "", (), "", False, why or "judges have no score of it"))
            continue
        decision, reasons = together(verdict, usable, rule)
        rests = "; ".join(f"{one.question}: {worth_in_words(one.n_rated, one.n_judged, one.worth)}" for one in usable)
        rows.append((*named, decision, reasons[: -len(usable)], rests, decision != verdict.alone, why))
    return pd.DataFrame(rows, columns=COLUMNS)


def saved(means: pd.DataFrame, scope: Sequence[str], design: Design) -> pd.DataFrame:
    """A row for each group that the rule judges apart: how many rated pairs the judges have been worth beyond them.

    `means` are those of `powered_means`, `scope` its columns. Every question must reach its decision, so that of a
    group the least saving counts. Columns: those of the scope, n_rated, n_judged, worth, pairs_saved (worth - n_rated;
    below 0 for judges that make a mean less sure), ratings_saved (times raters of a pair and questions that must be
    answered), reason (why there is no number). No number is promised by it: it says what the same interval would have
    cost by people alone.
    """
    rows = []
    for place, own in means.groupby(list(scope), sort=False):
        alone = [name for name in design.needed(str(place[0])) if name not in set(own["question"])]
        refused = "; ".join([*_refused(own), *(f"{name}: no judge rates it, so people alone decide" for name in alone)])
        worth = math.nan if refused else float(own["worth"].min(skipna=False))
        reason = refused or ("what the judges are worth is undefined" if not math.isfinite(worth) else "")
        rated, judged = int(own["n_rated"].min()), int(own["n_judged"].min())
        pairs = math.nan if reason else worth - rated
        answers = design.per_pair * len(design.needed(str(place[0])))
        rows.append((*place, rated, judged, worth, pairs, pairs * answers, reason))
    columns = [*scope, "n_rated", "n_judged", "worth", "pairs_saved", "ratings_saved", "reason"]
    return pd.DataFrame(rows, columns=columns)


def warnings(decided: pd.DataFrame) -> Sequence[str]:
    """A line for each verdict that would be another with the judges' help."""
    return [
        f"{row['transformation']} ({row['language']}): people alone say {row['decision']}, people and judges"
        f" {row['with_judges']}; {row['rests_on']}"
        for _, row in decided[decided["differ"]].iterrows()
    ]


def _refused(means: pd.DataFrame) -> list[str]:
    """Why judges are refused: a line a reason, with the questions that have it."""
    why: dict[str, list[str]] = {}
    for _, row in means[means["reason"] != ""].iterrows():
        why.setdefault(str(row["reason"]), []).append(str(row["question"]))
    return [f"{', '.join(questions)}: {reason}" for reason, questions in why.items()]


def judged_mean(
    row: Mapping[Hashable, Any], recorded: Sequence[str] = (), judgements: str = "", late: int = 0
) -> JudgedMean:
    """A row of `powered_means` as a record of what people and judges say together."""
    names = ("question", "n_rated", "n_judged", "n_failed", "mean", "low", "high", "lean_low", "lean_high", "worth")
    judges = tuple(str(row["judges"]).split(", "))
    made_up = tuple(one for one in recorded if one in judges)
    return JudgedMean.model_validate(
        {name: row[name] for name in (*names, "reason")}
        | {"judges": judges, "recorded": made_up, "judgements": judgements, "late": late}
    )


def of_verdict(verdict: Verdict, means: pd.DataFrame) -> pd.DataFrame:
    """The rows of the group that a verdict rests on."""
    own = means["pool"] == verdict.pool
    for name in SCOPES[verdict.scope][1:]:
        own &= means[name] == getattr(verdict, name)
    return means[own]
