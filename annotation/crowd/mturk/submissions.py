"""MTurk's assignments in our terms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from annotation.crowd.platform import State, Submission

STATES: dict[str, State] = {"Submitted": "submitted", "Approved": "approved", "Rejected": "rejected"}


def submission_of(one: dict[str, Any], bonuses: Sequence[int]) -> Submission:
    """An assignment as the API gives it, with the cents of bonuses that were paid for it."""
    at = one.get("SubmitTime")
    seconds = (at - one["AcceptTime"]).total_seconds() if at and one.get("AcceptTime") else float("nan")
    return Submission(
        one["AssignmentId"],
        one["HITId"],
        one["WorkerId"],
        STATES[one["AssignmentStatus"]],
        seconds,
        at.astimezone(UTC) if at else None,
        tuple(bonuses),
    )
