"""An answer as a score, or why it is none. What cannot be read is no score: never one in the middle of the scale."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from annotation.judges.prompts import JudgeMessage, Scale
from plumbline.errors import DataError, TextUnansweredError
from plumbline.fields import kept
from plumbline.journal import record_lines
from plumbline.models.chat import Attempt, Completion
from plumbline.records import Record, nfc
from plumbline.study.engines import Order

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>")
_NUMBER = re.compile(r"\**(-?\d+(?:\.\d+)?)\**\.?")
_SHOWN = 60  # characters of an answer in a reason


@dataclass(frozen=True)
class Read:
    """A score, or the reason why there is none; of `expected` with label mass and entropy."""

    score: float = math.nan
    reason: str = ""
    label_mass: float = math.nan
    entropy: float = math.nan


def read_expected(answer: Completion, scale: Scale, least_mass: float) -> Read:
    """The mean of the scale's points by their probabilities to be the answer's first token.

    With p_s the probability of point s: label mass m = sum p_s, score = sum s p_s / m, and entropy
    = -sum (p_s / m) ln(p_s / m), in nats. Under `least_mass` there is no score.

    Source: G-Eval (Liu et al., EMNLP 2023), section 2, with the probabilities themselves instead of samples.

    >>> read = read_expected(Completion("4", labels={"3": 0.2, "4": 0.6}), Scale(1, 5, points=(1, 2, 3, 4, 5)), 0.5)
    >>> round(read.score, 2), round(read.label_mass, 2), round(read.entropy, 3)  # (3 * 0.2 + 4 * 0.6) / 0.8
    (3.75, 0.8, 0.562)
    """
    if answer.labels is None:
        return Read(reason="no probabilities of the points came with the answer")
    return _expected(answer.labels, answer.text, scale, least_mass)


def _expected(labels: Mapping[str, float], text: str, scale: Scale, least_mass: float) -> Read:
    shares = {point: labels.get(str(point), 0.0) for point in scale.points}
    mass = math.fsum(shares.values())
    if not (math.isfinite(mass) and mass < 1.001 and min(shares.values(), default=0.0) >= 0):
        return Read(
            reason=f"what came with the answer are no probabilities of the points; it begins with {shown(text)}"
        )
    if mass == 0:
        return Read(reason=f"no probability on the points; it begins with {shown(text)}", label_mass=mass)
    of_points = [share / mass for share in shares.values() if share > 0]
    entropy = abs(math.fsum(share * math.log(share) for share in of_points))
    if mass < least_mass:
        line = f"only {mass:.3f} of the probability is on the points (least_mass {least_mass:g}); it begins with"
        return Read(reason=f"{line} {shown(text)}", label_mass=mass, entropy=entropy)
    score = math.fsum(point * share for point, share in shares.items()) / mass
    return Read(score, "", min(mass, 1.0), entropy)


def read_text(answer: Completion, scale: Scale) -> Read:
    """The number that an answer is, with nothing beside it; what was thought aloud before it is cut off.

    >>> scale = Scale(1, 5, points=(1, 2, 3, 4, 5))
    >>> read_text(Completion("4"), scale).score
    4.0
    >>> [read_text(Completion(text), scale).reason for text in ("4/5", "7", "four", "4.5")]
    ["no number alone: '4/5'", 'off the scale 1 to 5: 7', "no number alone: 'four'", 'between two points: 4.5']
    """
    text, reason = spoken(answer)
    if reason:
        return Read(reason=reason)
    match = _NUMBER.fullmatch(text)
    if not match:
        return Read(reason=f"no number alone: {shown(text)}")
    number = float(match[1])
    if not scale.lowest <= number <= scale.highest:
        return Read(reason=f"off the scale {scale.lowest:g} to {scale.highest:g}: {match[1]}")
    between = scale.points and number not in scale.points
    return Read(reason=f"between two points: {match[1]}") if between else Read(number)


def spoken(answer: Completion) -> tuple[str, str]:
    """(what was answered, without what was thought aloud before it; why that is no answer, empty where it is one)."""
    text = _THOUGHT.sub("", answer.text).strip()
    if _THINKING.search(text):
        return text, "it thinks aloud and came to no answer; raise sampling.max_tokens, or turn its thinking off"
    if not text or answer.cut_off:
        return text, f"cut off by max_tokens: {shown(text)}" if answer.cut_off else "an empty answer"
    return text, ""


def shown(text: str) -> str:
    """The beginning of an answer, in a line."""
    text = " ".join(text.split())
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...")


Place = tuple[str, str, str]  # what is judged, question, order
Answer = str | dict[str, float]
_Share = Annotated[float, Field(ge=0, le=1, strict=True)]
#: told apart by what they are, so that a share that is none is not called a bad text
_Answer = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, _Share], Tag("points")],
    Discriminator(lambda answer: "points" if isinstance(answer, dict) else "text"),
]


class RecordedJudgement(Record):
    """One line of the file."""

    original: str = ""
    transformed: str = ""
    fields: str = Field(default="", description="what `pairs.parquet` has in its column of this name")
    order: Order = "up"
    answers: dict[str, _Answer] = Field(
        min_length=1, description="by question: the answer as it came, or the points' probabilities to be its first one"
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
    recorded: dict[Place, Answer] = {}
    for number, line in record_lines(path, RecordedJudgement):
        for question, answer in line.answers.items():
            key = line.fields or _pair(line.original, line.transformed), question, line.order
            if key in recorded:
                raise DataError(f"{path}: line {number}: a second answer on the same {question}; keep one")
            recorded[key] = answer
    return recorded


@dataclass(frozen=True)
class RecordedJudgements:
    """Gives what was recorded, at once."""

    recorded: Mapping[Place, Answer]
    concurrency: int = 1
    tells_labels: bool = True

    @classmethod
    def read(cls, path: Path) -> RecordedJudgements:
        """Those of a file. Raises as `load_recorded`."""
        return cls(load_recorded(path))

    async def answer(self, asking: JudgeMessage, attempt: Attempt, *, labels: bool) -> Completion:
        """What was recorded. Raises TextUnansweredError where nothing was."""
        pair = asking.pair
        key = pair.fields or _pair(pair.original, pair.transformed), asking.question, asking.order
        answer = self.recorded.get(key)
        if answer is None:
            raise TextUnansweredError(f"nothing recorded on {asking.question}, scale {asking.order}")
        text, shares = (answer, None) if isinstance(answer, str) else ("", answer)
        return Completion(text, labels=shares, repeatable=False)

    async def close(self) -> None:
        """Nothing to let go of."""
