"""What people decided about raters: `decisions.json`, and its mark on `ratings.parquet`.

Nothing is ever deleted: excluded answers stay, with the reason; a later decision about a rater goes before earlier
ones, which stay too. Verdicts that rest on other answers are refused until they are reached again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from annotation.agreement import read_ratings
from annotation.records import Decision, Sign
from generation.exceptions import StudyError
from generation.parts import nearest
from generation.records import Rating
from generation.store import read_models, write_json, write_table
from generation.study import Study

COMMAND = "python -m annotation review --study ..."


def read_decisions(study: Study) -> list[Decision]:
    """All decisions, the oldest first; none before the first."""
    path = study.folder / "decisions.json"
    return read_models(path, Decision, COMMAND) if path.exists() else []


def decide(study: Study, rater: str, *, exclude: bool, reason: str, signs: Sequence[Sign] = ()) -> Decision:
    """Note a decision about a rater and mark the ratings; `signs` are those that the person saw.

    Raises StudyError for a rater without ratings and for a decision without a reason.
    """
    ratings = read_ratings(study)
    raters = sorted(set(ratings["rater_id"]))
    if rater not in raters:
        raise StudyError(f"{study.name} has no rater {rater!r}; {nearest(rater, raters)}")
    if not reason.strip():
        raise StudyError(f"a decision about {rater} needs a reason; add --reason 'why'")
    decision = Decision(
        rater_id=rater,
        exclude=exclude,
        reason=" ".join(reason.split()),
        decided_at=datetime.now(UTC),
        signs=tuple(f"{sign.rule}: {sign.evidence}" for sign in signs if sign.rater_id == rater),
    )
    decisions = [*read_decisions(study), decision]
    write_json(study.folder / "decisions.json", decisions)
    write_table(study.folder / "ratings.parquet", marked(ratings, decisions), Rating)
    return decision


def marked(ratings: pd.DataFrame, decisions: Sequence[Decision]) -> pd.DataFrame:
    """The ratings with `excluded` as the last decision about each rater says; empty where nobody decided."""
    last = {decision.rater_id: decision for decision in decisions}
    reasons = {rater: decision.reason for rater, decision in last.items() if decision.exclude}
    return ratings.assign(excluded=[reasons.get(rater, "") for rater in ratings["rater_id"]])
