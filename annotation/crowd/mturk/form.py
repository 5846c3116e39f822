"""The fields that a form of the crowd sends back, and reading them: nothing that comes from a worker is trusted.

`study` and `batch` say what was rated, `<pair>.<question>` holds a point of the scale, labels,
an order of labels or a text, `<pair>.comment` a free text,
`<pair>.seconds` the time on the pair, and `<pair>.discarded` is `yes` for one that the worker could not judge.
`<pair>.order` and `<pair>.turn` say in which order the page showed an item's candidates, and the items.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from xml.parsers import expat

from annotation.crowd.platform import State, Submission
from annotation.human.records import UNKNOWN
from annotation.questions import QuestionScale, Value, labels_of
from annotation.ratings.answers import Answer
from annotation.rubric import Rubric
from plumbline.errors import DataError

COMMENT, SECONDS, DISCARDED, ORDER, TURN = "comment", "seconds", "discarded", "order", "turn"
COMMENT_LENGTH = 2000  # characters of a comment that are kept
SIZE = 1_000_000  # bytes of one worker's answers that are read
_NUMBER = re.compile("[1-9][0-9]{0,3}")
DAY = 86_400.0  # seconds; nobody may work longer on a batch


@dataclass(frozen=True)
class Sheet:
    """What a form's answers must belong to; `where` begins the line of every complaint."""

    study: str
    rubric: Rubric
    pools: Mapping[str, str]  #: of each pair that may be answered
    where: str

    def answers(self, fields: Mapping[str, str], pair_ids: Sequence[str], submitted_at: str) -> list[Answer]:
        """The answers to these pairs, in their order.

        Raises DataError for pairs that are others, for answers that are missing, and for values off the scale. Comments
        lose control characters and what goes beyond `COMMENT_LENGTH`; a time that cannot be is NaN.
        """
        parts = {*self.rubric.question_names(), COMMENT, SECONDS, DISCARDED, ORDER, TURN}
        for name in fields:
            pair_id, dot, part = name.rpartition(".")
            if dot and (pair_id not in pair_ids or part not in parts):
                raise DataError(f"{self.where}: answers {_short(name)}, which was not asked")
        return [self._answer(fields, pair_id, submitted_at) for pair_id in pair_ids]

    def refuse_others(self, fields: Mapping[str, str], batch_id: str) -> None:
        """Raise DataError for the answers of another study or batch."""
        for name, wanted in (("study", self.study), ("batch", batch_id)):
            if fields.get(name) != wanted:
                raise DataError(f"{self.where}: answers of {name} {_short(fields.get(name, ''))}, not of {wanted!r};"
                                " they are left out")  # fmt: skip

    def _answer(self, fields: Mapping[str, str], pair_id: str, submitted_at: str) -> Answer:
        discarded = fields.get(f"{pair_id}.{DISCARDED}") == "yes"
        questions = self.rubric.asked(self.pools[pair_id])
        values = {question.name: self._value(fields, pair_id, question) for question in questions}
        missing = [question.name for question in questions if question.required and values[question.name] is None]
        if missing and not discarded:
            raise DataError(f"{self.where}: pair {pair_id} has no answer to {missing[0]!r}")
        return Answer(
            pair_id=pair_id,
            values=values,
            submitted_at=submitted_at,
            status="discarded" if discarded else "submitted",
            comment=clean_comment(fields.get(f"{pair_id}.{COMMENT}", "")),
            seconds=_seconds(fields.get(f"{pair_id}.{SECONDS}", "")),
            order=""
            if ORDER in values
            else _order(fields.get(f"{pair_id}.{ORDER}", "")),  # a question may be called so
            turn=0 if TURN in values else _turn(fields.get(f"{pair_id}.{TURN}", "")),
        )

    def _value(self, fields: Mapping[str, str], pair_id: str, question: QuestionScale) -> Value:
        text = fields.get(f"{pair_id}.{question.name}", "")
        if question.kind == "text":
            return clean_comment(text) or None
        points = {str(point): point for point in question.scale}
        if question.kind == "rating" and text and text not in points:
            scale = f"{question.scale[0]} to {question.scale[-1]}"
            raise DataError(
                f"{self.where}: pair {pair_id}, {question.name}: {_short(text)} is not on the scale {scale}"
            )
        if question.kind == "rating" or not text:
            return points.get(text)
        value = question.kept(labels_of(text) if question.kind == "multi_label" else text)
        if wrong := question.wrong(value):
            raise DataError(f"{self.where}: pair {pair_id}, {question.name}: {ascii(wrong)[1:-1]}")
        return value


def clean_comment(text: str) -> str:
    """A comment without control characters and lone surrogates, cut at `COMMENT_LENGTH` characters."""
    letters = (letter for letter in text if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs"))
    return "".join(letters).strip()[:COMMENT_LENGTH].rstrip()


def fields_of_xml(xml: str, where: str) -> dict[str, str]:
    """The fields in a `QuestionFormAnswers` document, as MTurk hands out answers.

    Raises DataError for documents beyond `SIZE` bytes, malformed ones, those with a document type (whose entities could
    grow without bound), and those that give a field twice.
    """
    size = len(xml.encode("utf-8", "surrogatepass"))
    if size > SIZE:
        raise DataError(f"{where}: the answers are {size:,} bytes, more than the {SIZE:,} that are read")
    reader = _Reader()
    try:
        return _once(reader.read(xml), where)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise DataError(f"{where}: the answers are no well-formed XML ({error})") from None


class _Reader:
    """Collects identifiers and free texts while expat reads."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._pieces: list[str] = []
        self._name = ""
        self._fields: list[tuple[str, str]] = []

    def read(self, xml: str) -> list[tuple[str, str]]:
        """All fields in order."""
        self._parser.Parse(xml.encode(), True)
        return self._fields

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._pieces = []

    def _text(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self, tag: str) -> None:
        if tag == "QuestionIdentifier":
            self._name = "".join(self._pieces).strip()
        elif tag == "FreeText":
            self._fields.append((self._name, "".join(self._pieces)))
        self._pieces = []

    def _refuse(self, *_: object) -> None:
        raise expat.ExpatError("a document type is not expected")


def _once(fields: Iterable[tuple[str, str]], where: str) -> dict[str, str]:
    unique: dict[str, str] = {}
    for name, text in fields:
        if name in unique:
            raise DataError(f"{where}: answers {_short(name)} twice")
        unique[name] = text
    return unique


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return math.nan
    return seconds if 0 <= seconds <= DAY else math.nan


def _order(text: str) -> str:
    """The order that the page says it showed: numbers from 1, each once, or one place alone; unknown for anything else.

    Whoever sends another order changes where a candidate is said to have stood, and no answer.
    """
    numbers = text.split(" ") if text else []
    right = all(_NUMBER.fullmatch(number) for number in numbers)
    if right and (len(numbers) < 2 or sorted(map(int, numbers)) == [*range(1, len(numbers) + 1)]):
        return text
    return UNKNOWN


def _turn(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0


def _short(text: str) -> str:
    """What a worker sent, fit for one line of a message."""
    return ascii(text[:40]) + ("..." if len(text) > 40 else "")


STATES: dict[str, State] = {"Submitted": "submitted", "Approved": "approved", "Rejected": "rejected"}


def submission_of(assignment: dict[str, Any], bonuses: Sequence[int]) -> Submission:
    """An assignment as the API gives it, with the cents of bonuses that were paid for it."""
    at = assignment.get("SubmitTime")
    seconds = (at - assignment["AcceptTime"]).total_seconds() if at and assignment.get("AcceptTime") else float("nan")
    return Submission(
        assignment["AssignmentId"],
        assignment["HITId"],
        assignment["WorkerId"],
        STATES[assignment["AssignmentStatus"]],
        seconds,
        at.astimezone(UTC) if at else None,
        tuple(bonuses),
    )
