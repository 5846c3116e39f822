"""What people and judges say together, as a verdict keeps it."""

from __future__ import annotations

from pydantic import Field

from plumbline.records import Number, Record


class JudgedMean(Record):
    """What people and judges say together of one question of a verdict, where they decide it together."""

    question: str = Field(description="name of the question")
    judges: tuple[str, ...] = Field(description="the judges, whose mean counts")
    recorded: tuple[str, ...] = Field(description="those of them that were not asked: their answers come from a file")
    n_rated: int = Field(description="pairs that people rated and that count")
    n_judged: int = Field(description="outputs beyond these that judges have seen")
    n_failed: int = Field(description="of both: without a score of all judges")
    mean: Number = Field(description="mean of people and judges; NaN where judges are refused")
    low: Number = Field(description="lower end of its 95% interval")
    high: Number = Field(description="upper end")
    lean_low: Number = Field(description="what people's own mean is above with 80% by their ratings alone")
    lean_high: Number = Field(description="what it is below with 80%")
    worth: Number = Field(description="as many rated pairs would be as sure by themselves; NaN where nothing varies")
    reason: str = Field(default="", description="why judges are refused; empty where they are not")
    late: int = Field(default=0, description="judgements of them that were given after the first rating")
    judgements: str = Field(description="hash of what the judges were given and said, as far as it counts")
