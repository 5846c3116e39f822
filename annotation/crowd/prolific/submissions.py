"""Prolific's submissions in our terms (docs.prolific.com/api-reference/submissions/submission-object)."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from annotation.crowd.platform import State, Submission
from annotation.crowd.prolific.api import shortened
from plumbline.errors import ServiceError

STATES: dict[str, State] = {
    "RESERVED": "working",
    "ACTIVE": "working",
    "AWAITING REVIEW": "submitted",
    "PROCESSING": "working",  # undocumented, for moments: nothing can be decided then
    "APPROVED": "approved",
    "PARTIALLY APPROVED": "approved",
    "REJECTED": "rejected",
    "RETURNED": "returned",
    "TIMED OUT": "returned",
    "SCREENED OUT": "returned",
}


def plain(status: object) -> str:
    """A state as one place of the API or another writes it, in capitals with spaces."""
    return str(status).upper().replace("_", " ").replace("-", " ")


def submission_of(item: dict[str, Any], posted_id: str) -> Submission:
    """A submission as a list or the single call gives it. Raises ServiceError for a state that nobody has heard of."""
    state = STATES.get(plain(item.get("status")))
    worker = item.get("participant_id") or item.get("participant")
    if state is None or not worker:
        said = shortened(item.get("status"))
        raise ServiceError(f"Prolific calls a submission {said!r}, which this program does not know; nothing was done")
    begun, ended = _moment(item.get("started_at")), _moment(item.get("completed_at"))
    taken = item.get("time_taken")
    if isinstance(taken, int | float):
        seconds = float(taken)
    else:
        seconds = (ended - begun).total_seconds() if begun and ended else math.nan
    paid = tuple(round(amount) for amount in item.get("bonus_payments") or ())
    return Submission(str(item.get("id")), posted_id, str(worker), state, seconds, ended, paid)


def _moment(text: object) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(str(text))
    return moment if moment.tzinfo else datetime.fromisoformat(f"{text}+00:00")
