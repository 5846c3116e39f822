"""Judgements that stand in a file: of a model that was asked elsewhere, or made by a rule that its owner states.

JSONL, an object a line: original and transformed (or, of another subject, `fields`), order (`up` unless it says
`down`), and `answers` by question: the text that was answered, or the probabilities of the scale's points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from annotation.judges.prompts import Asking
from generation.generators import Attempt, Completion
from plumbline.errors import DataError, TextUnansweredError
from plumbline.fields import kept
from plumbline.json_lines import record_lines
from plumbline.records import Record, nfc
from plumbline.study.judges import Order

Place = tuple[str, str, str]  # what is judged, question, order
Answer = str | dict[str, float]
_Share = Annotated[float, Field(ge=0, le=1, strict=True)]
#: told apart by what they are, so that a share that is none is not called a bad text
_Answer = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, _Share], Tag("points")],
    Discriminator(lambda given: "points" if isinstance(given, dict) else "text"),
]


class RecordedJudgement(Record):
    """One line of the file."""

    original: str = ""
    transformed: str = ""
    fields: str = Field(default="", description="what `pairs.parquet` has in its column of this name")
    order: Order = "up"
    answers: dict[str, _Answer] = Field(
        min_length=1,
        description="by question: the answer as it came, or the points' probabilities to be its first one",
    )

    @model_validator(mode="after")
    def _of_something(self) -> RecordedJudgement:
        if not self.fields and not (self.original and self.transformed):
            raise ValueError("names what was judged by original and transformed, or by fields")
        return self


def _pair(original: str, transformed: str) -> str:
    return kept({"original": nfc(original), "transformed": nfc(transformed)})


def refuse_no_recording(path: Path) -> None:
    """Raise DataError where there is no such file."""
    if not path.is_file():
        raise DataError(f"no recorded judgements at {path}; correct the judge's path in the study")


def load_recorded(path: Path) -> dict[Place, Answer]:
    """All judgements of a file. Raises DataError with file and line."""
    refuse_no_recording(path)
    found: dict[Place, Answer] = {}
    for number, one in record_lines(path, RecordedJudgement):
        for question, answer in one.answers.items():
            place = one.fields or _pair(one.original, one.transformed), question, one.order
            if place in found:
                raise DataError(f"{path}: line {number}: a second answer on the same {question}; keep one")
            found[place] = answer
    return found


@dataclass(frozen=True)
class RecordedJudgements:
    """Gives what was recorded, at once."""

    recorded: Mapping[Place, Answer]
    concurrency: int = 1
    tells_labels: bool = True
    repeatable: bool = False

    async def answer(self, asking: Asking, attempt: Attempt, *, labels: bool) -> Completion:
        """What was recorded. Raises TextUnansweredError where nothing was."""
        pair = asking.pair
        place = pair.fields or _pair(pair.original, pair.transformed), asking.question, asking.order
        one = self.recorded.get(place)
        if one is None:
            raise TextUnansweredError(f"nothing recorded on {asking.question}, scale {asking.order}")
        return Completion(one) if isinstance(one, str) else Completion("", labels=one)

    async def close(self) -> None:
        """Nothing to let go of."""
