"""What people decided about raters: `decisions.json`, and its mark on the ratings.

Nothing is ever deleted: excluded answers stay, with the reason; a later decision about a rater goes before earlier
ones, which stay too. Verdicts that rest on other answers are refused until they are reached again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from annotation.ratings.ratings import exclusions, read_all_ratings, write_ratings
from annotation.records import Decision, Sign
from plumbline.errors import StudyError, nearest
from plumbline.manifest import read_kept, write_kept
from plumbline.study import Study

FILE = "decisions.json"
COMMAND = "annotation review"


def read_decisions(study: Study) -> list[Decision]:
    """All decisions, the oldest first; none before the first."""
    return read_kept(study, FILE, Decision, study.command(COMMAND))


def mark_as_decided(study: Study, ratings: pd.DataFrame, decisions: Sequence[Decision]) -> bool:
    """See that the ratings carry what was decided, and whether they had to be written for that.

    `decide` may have been killed before it marked them.
    """
    if list(ratings["excluded"]) == exclusions(ratings, decisions):
        return False
    write_ratings(study, ratings, decisions)
    return True


def decide(study: Study, rater: str, *, exclude: bool, reason: str, signs: Sequence[Sign] = ()) -> Decision:
    """Note a decision about a rater and mark the ratings; `signs` are those that the person saw.

    Raises StudyError for a rater without ratings and for a decision without a reason.
    """
    ratings = read_all_ratings(study)
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
    write_kept(study, FILE, decisions)
    write_ratings(study, ratings, decisions)
    return decision
