"""The fields that a crowd form sends back, and how they are read: nothing from a worker is trusted.

`study` and `batch` name the work. `<pair>.<question>` holds a point of the scale, labels, an order of labels or a text,
`<pair>.comment` a free text and `<pair>.seconds` the time on the pair; `<pair>.discarded` is `yes` for a pair that the
worker could not judge.

Result CSVs of the MTurk site have a row for each assignment, with its input (`Input.*`) and its answers (`Answer.*`).
Two kinds are read. Results of our own form have its fields: `Answer.<pair>.<question>`. Results of a template of the
site name a HIT's pairs as `Input.pair_id` or `Input.pair_id_1`, `Input.pair_id_2` and so on, and their answers
`Answer.quality` or `Answer.quality_1`; the site's radio buttons write `Answer.quality_1.4` as true. `comment`,
`seconds` and `discarded` are read in the same way.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from annotation.campaign.rubric import Rubric
from annotation.crowd.page import COMMENT, DISCARDED, SECONDS
from annotation.crowd.platform import State, Submission
from annotation.questions.question import Question, Value
from annotation.questions.text import without_controls
from annotation.ratings.answers import Answer
from plumbline.errors import DataError
from plumbline.reading import read_text
from plumbline.study.base import refuse_duplicates

SIZE = 1_000_000  # bytes of one worker's answers that are read
DAY = 86_400.0  # seconds; nobody may work longer on a batch


@dataclass(frozen=True)
class Sheet:
    """The requirements that a form's answers must meet; `location` begins each complaint."""

    study: str
    rubric: Rubric
    pools: Mapping[str, str]  #: the pool of each pair that may be answered
    location: str

    def answers(self, fields: Mapping[str, str], pair_ids: Sequence[str], submitted_at: str) -> list[Answer]:
        """The answers to these pairs, in their order.

        Raises DataError for other pairs, missing answers, and values off the scale. Comments lose control characters
        and the text beyond the longest that is kept; an impossible time becomes NaN.
        """
        parts = {*self.rubric.question_names(), COMMENT, SECONDS, DISCARDED}
        for name in fields:
            pair_id, dot, part = name.rpartition(".")
            if dot and (pair_id not in pair_ids or part not in parts):
                raise DataError(f"{self.location}: answers {_short(name)}, which was not asked")
        return [self._answer(fields, pair_id, submitted_at) for pair_id in pair_ids]

    def refuse_others(self, fields: Mapping[str, str], batch_id: str) -> None:
        """Raise DataError for the answers of another study or batch."""
        for name, wanted in (("study", self.study), ("batch", batch_id)):
            if fields.get(name) != wanted:
                raise DataError(f"{self.location}: the answers are for {name} {_short(fields.get(name, ''))}, not for"
                                f" {wanted!r}; they are left out")  # fmt: skip

    def _answer(self, fields: Mapping[str, str], pair_id: str, submitted_at: str) -> Answer:
        discarded = fields.get(f"{pair_id}.{DISCARDED}") == "yes"
        questions = self.rubric.asked(self.pools[pair_id])
        values = {question.name: self._value(fields, pair_id, question) for question in questions}
        missing = [question.name for question in questions if question.required and values[question.name] is None]
        if missing and not discarded:
            raise DataError(f"{self.location}: pair {pair_id} has no answer to {missing[0]!r}")
        return Answer(
            pair_id=pair_id,
            values=values,
            submitted_at=submitted_at,
            status="discarded" if discarded else "submitted",
            comment=without_controls(fields.get(f"{pair_id}.{COMMENT}", "")),
            seconds=_seconds(fields.get(f"{pair_id}.{SECONDS}", "")),
        )

    def _value(self, fields: Mapping[str, str], pair_id: str, question: Question) -> Value:
        value = question.sent(fields.get(f"{pair_id}.{question.name}", ""))
        if value is not None and (fault := question.wrong(value)):
            raise DataError(f"{self.location}: pair {pair_id}, {question.name}: {ascii(fault)[1:-1]}")
        return value

    def of_row(self, row: Mapping[str, str], at: datetime) -> list[Answer]:
        """The answers in a row of the MTurk site's results. Raises as `answers`."""
        answers = {
            name.removeprefix("Answer."): text for name, text in row.items() if name.startswith("Answer.") and text
        }
        if "batch" in answers:
            self.refuse_others(answers, answers["batch"])
            # A file has the columns of all its HITs; those of other batches are empty in this row.
            fields = answers
            pair_ids = dict.fromkeys(name.rpartition(".")[0] for name in answers if "." in name)
        else:
            places = {match[1] or "": row[name] for name in row if (match := _PAIR.fullmatch(name)) and row[name]}
            fields = self._site_fields(answers, places)
            pair_ids = dict.fromkeys(places.values())
        if not pair_ids:
            raise DataError(
                f"{self.location}: names no pair; expected a column Input.pair_id, or the answers of Plumbline's form"
            )
        foreign = [pair_id for pair_id in pair_ids if pair_id not in self.pools]
        if foreign:
            raise DataError(f"{self.location}: pair {foreign[0][:40]!r} is not in this study's sample")
        return self.answers(fields, list(pair_ids), at.isoformat())

    def _site_fields(self, answers: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
        """The answers of a template of the site, named as our own form names them."""
        fields = {}
        for number, pair_id in places.items():
            end = f"_{number}" if number else ""
            for name in (COMMENT, SECONDS):
                fields[f"{pair_id}.{name}"] = answers.get(f"{name}{end}", "")
            ticked = answers.get(f"{DISCARDED}{end}", "").lower() in ("yes", "true", "on", "1")
            fields[f"{pair_id}.{DISCARDED}"] = "yes" if ticked else ""
            for question in self.rubric.asked():
                options = map(str, question.scale or question.labels)
                ticked_ones = [
                    name for name in options if answers.get(f"{question.name}{end}.{name}", "").lower() == "true"
                ]
                answer = answers.get(f"{question.name}{end}", question.ticked(ticked_ones))
                if answer or question.required:
                    fields[f"{pair_id}.{question.name}"] = answer
        return fields


def fields_of_xml(xml: str, location: str) -> dict[str, str]:
    """The fields in a `QuestionFormAnswers` document, as MTurk hands out answers.

    Raises DataError for documents beyond `SIZE` bytes, malformed ones, those with a document type (whose entities could
    grow without bound), and those that give a field twice.
    """
    size = len(xml.encode("utf-8", "surrogatepass"))
    if size > SIZE:
        raise DataError(f"{location}: the answers have {size:,} bytes; at most {SIZE:,} are read")
    if "<!DOCTYPE" in xml:
        raise DataError(f"{location}: the answers are not well-formed XML (a document type is not allowed)")
    try:
        document = ElementTree.fromstring(xml)  # noqa: S314 (entities need a document type)
    except (ElementTree.ParseError, UnicodeEncodeError, ValueError) as error:
        raise DataError(f"{location}: the answers are not well-formed XML ({error})") from None
    fields, name = dict[str, str](), ""
    for element in document.iter():
        tag, text = element.tag.rpartition("}")[2], element.text or ""
        if tag == "QuestionIdentifier":
            name = text.strip()
        elif tag == "FreeText":
            if name in fields:
                raise DataError(f"{location}: answers {_short(name)} twice")
            fields[name] = text
    return fields


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return math.nan
    return seconds if 0 <= seconds <= DAY else math.nan


def _short(text: str) -> str:
    """Shorten a worker's text to fit one line of a message."""
    return ascii(text[:40]) + ("..." if len(text) > 40 else "")


STATES: dict[str, State] = {"Submitted": "submitted", "Approved": "approved", "Rejected": "rejected"}


def submission_of(assignment: dict[str, Any], bonuses: Sequence[int]) -> Submission:
    """Return the submission of an assignment from the API, with the cents of its paid bonuses."""
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


COLUMNS = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime", "WorkTimeInSeconds")
_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}  # hours; the site writes its own time, which is Seattle's
_PAIR = re.compile(r"Input\.pair_id(?:_(\d+))?")

Archived = tuple[Submission, list[Answer]]


def read_archive(path: Path, study_name: str, rubric: Rubric, pools: Mapping[str, str]) -> list[Archived]:
    """The submissions of a result file, with their answers, in its order.

    `pools` has the pool of each pair of the study's sample and controls. Raises DataError with file and line for a file
    that is not the site's, for another study's answers, and for answers that are missing or off the scale.
    """
    submissions: list[Archived] = []
    ids: set[str] = set()
    for number, row in _rows(path):
        location = f"{path}, line {number}"
        at = _time(row["SubmitTime"], location)
        submission = _submission(row, at, location)
        if submission.submission_id in ids:
            raise DataError(f"{location}: assignment {submission.submission_id} appears twice")
        ids.add(submission.submission_id)
        submissions.append((submission, Sheet(study_name, rubric, pools, location).of_row(row, at)))
    return submissions


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows with the lines that they end on."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
        names = list(reader.fieldnames or ())
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise DataError(f"{path}, line 1: no column {missing[0]!r}; a result file of the MTurk site is expected")
        refuse_duplicates(names, "column")
        for row in reader:
            if None in row or None in row.values():
                raise DataError(
                    f"{path}, line {reader.line_num}: the row has more or fewer cells than the header; download the"
                    " file again"
                )
            yield reader.line_num, row
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as a CSV of the MTurk site ({error})") from None


def _submission(row: Mapping[str, str], at: datetime, location: str) -> Submission:
    state = STATES.get(row["AssignmentStatus"])
    if state is None:
        raise DataError(
            f"{location}: AssignmentStatus {row['AssignmentStatus'][:40]!r} is unknown; known: {', '.join(STATES)}"
        )
    for name in ("HITId", "AssignmentId", "WorkerId"):
        if not re.fullmatch("[A-Z0-9]{1,64}", row[name]):
            raise DataError(f"{location}: {name} is not an MTurk id")
    try:
        seconds = float(row["WorkTimeInSeconds"] or "nan")
        if seconds < 0 or math.isinf(seconds):
            raise ValueError
    except ValueError:
        raise DataError(
            f"{location}: WorkTimeInSeconds {row['WorkTimeInSeconds'][:40]!r} is not a number of seconds, 0 or more"
        ) from None
    return Submission(row["AssignmentId"], row["HITId"], row["WorkerId"], state, seconds, at, ())


def _time(text: str, location: str) -> datetime:
    """A time as the site writes it (`Mon Jan 12 14:21:29 PST 2015`), or in ISO 8601; in UTC."""
    parts = text.split()
    try:
        if len(parts) == 6:
            zone = timezone(timedelta(hours=_ZONES[parts.pop(4)]))
            return datetime.strptime(" ".join(parts), "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone).astimezone(UTC)
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, KeyError, OverflowError):
        raise DataError(f"{location}: SubmitTime {text[:40]!r} is not a time in the MTurk site's format") from None
