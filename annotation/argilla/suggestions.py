"""What Argilla shows as already answered: a suggestion for a question of one record.

A rater accepts a suggestion with one key, and is drawn towards it by having seen it. So no pair that counts ever has
one: only those of a review after the ratings, and that half of an experiment which no verdict counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.argilla.client import Argilla
from plumbline.errors import StudyError
from plumbline.records import SUGGESTED, Pair
from plumbline.study import Study

_NO_AGENT = re.compile(r"[^a-zA-Z0-9-_:./ ]")  # what Argilla does not take in an agent's name
_LONGEST = 200  # characters of it


Suggested = Mapping[str, "Sequence[Suggestion]"]  # by pair


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


def question_ids(argilla: Argilla, dataset_id: str) -> dict[str, str]:
    """The ids of a dataset's questions, by name, as suggestions need them. Raises ServiceError."""
    return {one["name"]: one["id"] for one in argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]}


def suggestions_for(study: Study, pairs: Sequence[Pair], found: Suggested) -> Suggested:
    """What each pair of a campaign shows: suggestions on the experiment's half and on repeats of it, nowhere else.

    Raises StudyError where there is such a half and nobody says what it shows.
    """
    half = {pair.pair_id for pair in pairs if pair.control == SUGGESTED}
    if half and not found:
        raise StudyError(
            f"{study.file}: raters.suggestions: half shows judges' scores, and there are none; run"
            f" `{study.command('annotation judge run')}`, then `{study.command('annotation publish')}`"
        )
    sources = {pair.pair_id: pair.repeats or pair.pair_id for pair in pairs}
    return {pair_id: found[of] for pair_id, of in sources.items() if of in half and of in found}
