"""Ratings from a CSV file, such as Google Forms exports: one row is one rater's answer to one pair.

Which column holds what says a mapping, `pair=...,rater=...,quality=...,fluency=...`, where `time` and `comment` may be
left out. The columns of Google Forms' own layout with a question a column (many pairs a row) are not read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pandas as pd

from annotation import server
from annotation.campaign_records import CampaignRecords
from annotation.names import is_pseudonym, named_pseudonym, pseudonym_key, remember_names
from annotation.offering import alone, refuse_other_sample
from annotation.questions import Question, QuestionScale, Value
from annotation.ratings.answers import Answer, SourcePart, check, keep, of_file, source_of_file
from annotation.rubric import Rubric
from annotation.sampling.origin import refuse_other_prompts
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError, nearest
from plumbline.reading import read_text
from plumbline.records import Pair
from plumbline.scales import as_number
from plumbline.study import Study
from plumbline.words import trim

_GOOGLE = re.compile(r"(\d{4}/\d{1,2}/\d{1,2} \d{1,2}:\d{2}:\d{2} [AP]M) GMT(?:([+-])(\d{1,2})(?::?(\d{2}))?)?")


def collect_csv(
    study: Study, home: server.Home, path: Path, columns: Mapping[str, str], *, replace: bool = False
) -> pd.DataFrame:
    """Take a file's answers into the ratings, beside those of other sources; returns the sample's ratings.

    The file's name is their source: the same file again replaces what it gave before. Raters' names stay out of the
    records: pseudonyms are made with a key that only `home` has, which remembers the names (`annotation.names`).
    Without a column for it the time is the file's, and how long answers took is unknown. Raises DataError with file
    and line for what is no rating of this study.
    """
    source = source_of_file(path)
    with alone(study):
        records = CampaignRecords.open(study)
        rubric = rubric_to_rate(records)
        form = _Form(study, rubric, records.shown_by_id, path, columns, pseudonym_key(home))
        rows = ((path, f"line {line}", form.answer(row, f"{path}, line {line}")) for line, row in form.rows())
        answers = answers_in(rows, records, rubric)
        if not answers:
            raise DataError(f"{path}: no answers in it, only a header; correct --csv")
        remember_names(home, study.name, form.names)
        part = SourcePart(sha256(path.read_bytes()).hexdigest(), answers)
        return keep(records, source, {source: part}, replace=replace)


def rubric_to_rate(records: CampaignRecords) -> Rubric:
    """A campaign into which a file's answers are taken, and what its raters are asked.

    Raises StudyError or DataError for a sample that is no longer the study's, or the one that was offered.
    """
    rubric = asked_rubric(records)
    refuse_other_sample(records)
    refuse_other_prompts(records, records.shown)
    return rubric


def answers_in(
    rows: Iterable[tuple[Path, str, Answer]], records: CampaignRecords, rubric: Rubric
) -> tuple[Answer, ...]:
    """The answers of files (file, row in it, answer), in order. Raises DataError for what is no rating."""
    answers, rows_before = dict[tuple[str, str], Answer](), dict[tuple[str, str], str]()
    advice = of_file(records.study.command)
    for file, number, answer in rows:
        check(answer, f"{file}, {number}", rubric, records.shown_by_id, advice)
        key = answer.pair_id, answer.rater_id
        if key in answers:
            raise DataError(
                f"{file}, {number}: the same rater and pair as in {rows_before[key]}; keep one of the answers"
            )
        answers[key], rows_before[key] = answer, number
    return tuple(answers[key] for key in sorted(answers))


def columns_of(questions: Sequence[QuestionScale], text: str) -> dict[str, str]:
    """`--columns` for the questions that raters are asked. Raises StudyError as `column_mapping`."""
    optional = [question.name for question in questions if not question.required]
    return column_mapping(text, [question.name for question in questions], optional)


def column_mapping(text: str, questions: Sequence[str], optional: Sequence[str] = ()) -> dict[str, str]:
    """`pair=Pair,rater=E-mail,...` as a mapping; the columns' own names may hold commas. Raises StudyError.

    Questions that are `optional` may be left out.
    """
    names = ["pair", "rater", *questions, "time", "comment"]
    needed = [name for name in names[:-2] if name not in optional]
    mapping: dict[str, str] = {}
    for part in re.split(rf",(?=\s*(?:{'|'.join(names)})=)", text):
        name, _, column = (word.strip() for word in part.partition("="))
        if name not in names or not column:
            raise StudyError(f"--columns: {part.strip()!r} is not like pair=NAME; {nearest(name, names)}")
        if name in mapping:
            raise StudyError(f"--columns: {name!r} is given twice; name one column")
        if column in mapping.values():
            raise StudyError(f"--columns: {column!r} is given for two things; each needs its own column")
        mapping[name] = column
    missing = [name for name in needed if name not in mapping]
    if missing:
        raise StudyError(f"--columns: no column is given for {missing[0]!r}; add {missing[0]}=NAME")
    return mapping


@dataclass(frozen=True)
class _Form:
    """A file and how it is read."""

    study: Study
    rubric: Rubric
    pairs: Mapping[str, Pair]
    path: Path
    columns: Mapping[str, str]
    key: bytes
    names: dict[str, str] = field(default_factory=dict)  #: of those who answered, by pseudonym

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """The line and the wanted cells of each row that is not blank."""
        try:
            reader = csv.reader(io.StringIO(read_text(self.path), newline=""), strict=True)
            header = [name.strip() for name in next(reader, [])]
            places = {name: self._place(header, column) for name, column in self.columns.items()}
            for row in reader:
                if not any(map(str.strip, row)):
                    continue
                if len(row) > len(header):
                    where = f"{self.path}, line {reader.line_num}: {len(row)} cells, the header has {len(header)}"
                    raise DataError(f'{where}; put cells that hold a comma into quotes ("3,5")')
                cells = row + [""] * (len(header) - len(row))
                yield reader.line_num, {name: trim(cells[index]) for name, index in places.items()}
        except FileNotFoundError:
            raise DataError(f"{self.path}: cannot be read as CSV (it is not there); correct --csv") from None
        except csv.Error as error:
            raise DataError(f"{self.path}: cannot be read as CSV ({error}); correct --csv") from None

    def _place(self, header: list[str], column: str) -> int:
        if header.count(column) != 1:
            has = "more than one" if column in header else "no"
            raise DataError(f"{self.path}: has {has} column {column!r}; its columns are: {', '.join(header)}")
        return header.index(column)

    def answer(self, row: Mapping[str, str], where: str) -> Answer:
        """A row as an answer. Raises DataError for cells that cannot be one."""
        if not row["rater"]:
            raise DataError(f"{where}: the column for `rater` is empty; say who rated")
        if "time" in self.columns:
            at = _time(row["time"], where)
        else:
            at = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        pair = self.pairs.get(row["pair"])
        needed = [question.name for question in self.rubric.asked(pair.pool if pair else None)]
        rater = named_pseudonym(self.key, self.study.name, row["rater"])
        if not is_pseudonym(row["rater"]):
            self.names.setdefault(rater, row["rater"])
        return Answer(
            pair_id=row["pair"],
            rater_id=rater,
            status="submitted",
            values={
                question.name: _value(question, row.get(question.name, ""), f"{where}, {question.name}")
                for question in self.rubric.questions
                if row.get(question.name, "") or question.name in needed
            },
            comment=row.get("comment", ""),
            submitted_at=at.isoformat(),
        )


def _value(question: Question, text: str, where: str) -> Value:
    """A cell in the form in which answers are kept; labels by their names or by their words in any language."""
    if not text:
        return None
    if question.kind == "text":
        return text
    if question.labels:
        return _labels(question, text)
    try:
        return as_number(text)
    except ValueError:
        raise DataError(f"{where}: the answer {text[:40]!r} is not a number of the scale") from None


def _labels(question: Question, text: str) -> str:
    """The labels that a cell names, in the form in which they are kept; what is none stays, and is refused."""
    labels = {name: name for name in question.labels}
    for name, words in question.labels.items():
        labels |= {trim(wording).casefold(): name for wording in words.values()}
    if question.kind == "ranking":  # `b > a = c`, of names or of words
        parts = (labels.get(trim(part).casefold(), trim(part)) for part in re.split("([>=])", text))
        return str(question.asked(()).kept(" ".join(parts)))
    whole = [text] if question.kind == "label" or text.casefold() in labels else re.split("[,;]", text)
    named = [labels.get(trim(part).casefold(), trim(part).replace(" ", "-")) for part in whole]
    return str(question.asked(()).kept(named))


def _time(text: str, where: str) -> datetime:
    """A time in UTC: ISO 8601 (without a zone it is UTC), or as Google Forms writes it."""
    google = _GOOGLE.fullmatch(text.replace("\u202f", " "))
    try:
        if google:
            zone = f"{google[2] or '+'}{google[3] or '0':0>2}{google[4] or '00'}"
            at = datetime.strptime(f"{google[1]} {zone}", "%Y/%m/%d %I:%M:%S %p %z")
        else:
            at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: at the ends of the calendar, in UTC
        raise DataError(
            f"{where}: the time {text[:40]!r} is not ISO 8601 (2026-03-01T14:15:37+01:00) or Google Forms'"
            " (2026/03/01 2:15:37 PM GMT+1)"
        ) from None
