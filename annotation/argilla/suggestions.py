"""What Argilla shows as already answered: a suggestion for a question of one record.

A rater accepts a suggestion with one key, and is drawn towards it by having seen it. So no pair that counts ever has
one: only those of a review after the ratings, and that half of an experiment which no verdict counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from annotation.argilla.client import Argilla

_NO_AGENT = re.compile(r"[^a-zA-Z0-9-_:./ ]")  # what Argilla does not take in an agent's name
_LONGEST = 200  # characters of it


@dataclass(frozen=True)
class Suggestion:
    """One answer that is shown before a person gives theirs."""

    question: str
    value: int  #: a point of the question's scale
    agent: str  #: who says so
    score: float  #: how sure, from 0 to 1; NaN where nobody knows

    def given(self, questions: dict[str, str]) -> dict[str, Any]:
        """As Argilla takes it; `questions` are the dataset's ids of questions, by name."""
        agent = _NO_AGENT.sub("-", self.agent)[:_LONGEST]
        sure = {} if math.isnan(self.score) else {"score": min(max(self.score, 0.0), 1.0)}
        found = {"question_id": questions[self.question], "value": self.value, "agent": agent, "type": "model"}
        return found | sure


def suggested(argilla: Argilla, dataset_id: str, found: Iterable[Suggestion]) -> list[dict[str, Any]]:
    """Suggestions as the records of a dataset take them. Raises ServiceError."""
    items = argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
    questions = {one["name"]: one["id"] for one in items}
    return [one.given(questions) for one in found]
