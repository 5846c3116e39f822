"""Result CSVs of the MTurk site: one row an assignment, with what went in (`Input.*`) and what came out (`Answer.*`).

Two kinds are read. Those of our own form have its fields: `Answer.<pair>.<question>`. Those of a template of the site
name a HIT's pairs as `Input.pair_id` or `Input.pair_id_1`, `Input.pair_id_2` and so on, and their answers
`Answer.quality` or `Answer.quality_1`; as the site's radio buttons write them, `Answer.quality_1.4` is true. Besides
`comment`, `seconds` and `discarded` are read in the same way.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from annotation.crowd.mturk.form import COMMENT, DISCARDED, SECONDS, STATES, Sheet
from annotation.crowd.platform import Submission
from annotation.questions import AND
from annotation.ratings.answers import Answer
from annotation.rubric import Rubric
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError
from plumbline.reading import read_text
from plumbline.study import Study
from plumbline.study.base import refuse_duplicates

COLUMNS = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime", "WorkTimeInSeconds")
_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}  # hours; the site writes its own time, which is Seattle's
_PAIR = re.compile(r"Input\.pair_id(?:_(\d+))?")

Archived = tuple[Submission, list[Answer]]


def read_archive(path: Path, study: Study, pools: Mapping[str, str]) -> list[Archived]:
    """The submissions of a result file, with their answers, in its order.

    `pools` has the pool of each pair of the study's sample and controls. Raises DataError with file and line for a file
    that is none of the site's, for another study's answers, and for answers that are missing or off the scale.
    """
    submissions: list[Archived] = []
    seen: set[str] = set()
    rubric = asked_rubric(study)
    for number, row in _rows(path):
        where = f"{path}, line {number}"
        at = _time(row["SubmitTime"], where)
        submission = _submission(row, at, where)
        if submission.submission_id in seen:
            raise DataError(f"{where}: assignment {submission.submission_id} appears twice")
        seen.add(submission.submission_id)
        submissions.append((submission, _answers(row, at, Sheet(study.name, rubric, pools, where))))
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
                raise DataError(f"{path}, line {reader.line_num}: other columns than the header; was it cut off?")
            yield reader.line_num, row
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as a CSV of the MTurk site ({error})") from None


def _submission(row: Mapping[str, str], at: datetime, where: str) -> Submission:
    state = STATES.get(row["AssignmentStatus"])
    if state is None:
        raise DataError(f"{where}: AssignmentStatus {row['AssignmentStatus'][:40]!r}; known are {', '.join(STATES)}")
    for name in ("HITId", "AssignmentId", "WorkerId"):
        if not re.fullmatch("[A-Z0-9]{1,64}", row[name]):
            raise DataError(f"{where}: {name} is not an id of MTurk's")
    try:
        seconds = float(row["WorkTimeInSeconds"] or "nan")
        if seconds < 0 or math.isinf(seconds):
            raise ValueError
    except ValueError:
        raise DataError(f"{where}: WorkTimeInSeconds {row['WorkTimeInSeconds'][:40]!r} is not a number") from None
    return Submission(row["AssignmentId"], row["HITId"], row["WorkerId"], state, seconds, at, ())


def _time(text: str, where: str) -> datetime:
    """A time as the site writes it (`Mon Jan 12 14:21:29 PST 2015`), or in ISO 8601; in UTC."""
    parts = text.split()
    try:
        if len(parts) == 6:
            zone = timezone(timedelta(hours=_ZONES[parts.pop(4)]))
            return datetime.strptime(" ".join(parts), "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone).astimezone(UTC)
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, KeyError, OverflowError):
        raise DataError(f"{where}: SubmitTime {text[:40]!r} is not a time as the MTurk site writes it") from None


def _answers(row: Mapping[str, str], at: datetime, sheet: Sheet) -> list[Answer]:
    answers = {name.removeprefix("Answer."): text for name, text in row.items() if name.startswith("Answer.") and text}
    if "batch" in answers:
        sheet.refuse_others(answers, answers["batch"])
        # A file has the columns of all its HITs; those of other batches are empty in this row.
        fields = answers
        pair_ids = dict.fromkeys(name.rpartition(".")[0] for name in answers if "." in name)
    else:
        places = {match[1] or "": row[name] for name in row if (match := _PAIR.fullmatch(name)) and row[name]}
        fields = _site_fields(answers, places, sheet.rubric)
        pair_ids = dict.fromkeys(places.values())
    if not pair_ids:
        raise DataError(f"{sheet.where}: says of no pair; expected are Input.pair_id, or the answers of our own form")
    strange = [pair_id for pair_id in pair_ids if pair_id not in sheet.pools]
    if strange:
        raise DataError(f"{sheet.where}: pair {strange[0][:40]!r} is not one of this study's sample")
    return sheet.answers(fields, list(pair_ids), at.isoformat())


def _site_fields(answers: Mapping[str, str], places: Mapping[str, str], rubric: Rubric) -> dict[str, str]:
    """The answers of a template of the site, named as our own form names them."""
    fields = {}
    for number, pair_id in places.items():
        end = f"_{number}" if number else ""
        for name in (COMMENT, SECONDS):
            fields[f"{pair_id}.{name}"] = answers.get(f"{name}{end}", "")
        ticked = answers.get(f"{DISCARDED}{end}", "").lower() in ("yes", "true", "on", "1")
        fields[f"{pair_id}.{DISCARDED}"] = "yes" if ticked else ""
        for question in rubric.asked():
            options = map(str, question.scale or question.labels)
            ticked_ones = [
                name for name in options if answers.get(f"{question.name}{end}.{name}", "").lower() == "true"
            ]
            several = question.kind == "multi_label" or len(ticked_ones) == 1
            answer = answers.get(f"{question.name}{end}", AND.join(ticked_ones) if several else "")
            if answer or question.required:
                fields[f"{pair_id}.{question.name}"] = answer
    return fields
