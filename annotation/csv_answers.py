"""Answers as CSV files (`collect --csv`).

A row of a file, such as an export of Google Forms, is one rater's answer to one pair. A mapping names the columns:
`pair=...,rater=...,quality=...,fluency=...`; `time` and `comment` may be left out, and `original=...,output=...` may
replace `pair`. The file is read as `plumbline import` reads it.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pandas as pd

from annotation import server
from annotation.campaign.names import is_pseudonym, named_pseudonym, pseudonym_key, remember_names
from annotation.campaign.offering import alone, refuse_other_sample
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.imports.tables import CellTable, read_cells
from annotation.imports.times import as_iso
from annotation.questions.question import Question
from annotation.ratings.answers import Answer, SourcePart, check, keep, of_file, source_of_file
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError, nearest, read_each
from plumbline.records import Pair, nfc
from plumbline.study import Study
from plumbline.words import count, trim

KINDS = {"": "pair", "repeat": "repeat"}  # the column `item_kind` of exported answers, by `control`; others: control


def collect_csv(  # noqa: PLR0913  # what a user may say of the file
    study: Study,
    home: server.Home,
    path: Path,
    columns: Mapping[str, str],
    *,
    sheet: str = "",
    replace: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Add a file's answers to the ratings of other sources; return the sample's ratings.

    The file's name (and that of a `sheet` of Excel) is their source: the same file again replaces what it gave before.
    Raters' names stay out of the records: pseudonyms are made with a key that only `home` has, which remembers the
    names (`annotation.campaign.names`). Without a column for it the time is the file's, and how long answers took is
    unknown. `say` takes remarks on how the file was read. Raises DataError with file and line for what is no rating of
    this study.
    """
    source = source_of_file(path, sheet)
    with alone(study):
        records = CampaignRecords(study)
        rubric = asked_rubric(records)
        refuse_other_sample(records)
        form = _Form(study, rubric, records.shown_by_id, path, sheet, columns, pseudonym_key(home))
        advice, lines = of_file(study.command), dict[tuple[str, str], int]()

        def read(row: tuple[int, dict[str, str]]) -> Answer:
            line, cells = row
            location = f"{path}, line {line}"
            answer = form.answer(cells, location)
            check(answer, location, rubric, records.shown_by_id, advice)
            if (first := lines.setdefault((answer.pair_id, answer.rater_id), line)) != line:
                raise DataError(f"{location}: the same rater and pair as in line {first}; keep one of the answers")
            return answer

        answers = read_each(form.rows(), read)
        if not answers:
            raise DataError(f"{path}: has a header but no answers; correct --csv")
        for note in form.table.notes:
            say(f"{path}: {note}")
        if left_out := sum(form.checks_elsewhere):
            say(f"{path}: {count(left_out, 'answer')} to controls and repeats that {study.name} lacks left out")
        remember_names(home, study.name, form.names)
        answers.sort(key=lambda answer: (answer.pair_id, answer.rater_id))
        part = SourcePart(sha256(path.read_bytes()).hexdigest(), tuple(answers))
        return keep(records, source, {source: part}, replace=replace)


def columns_of(questions: Sequence[Question], text: str) -> dict[str, str]:
    """`--columns` for the questions that raters are asked. Raises StudyError as `column_mapping`."""
    optional = [question.name for question in questions if not question.required]
    return column_mapping(text, [question.name for question in questions], optional)


def column_mapping(text: str, questions: Sequence[str], optional: Sequence[str] = ()) -> dict[str, str]:
    """`pair=Pair,rater=E-mail,...` as a mapping; the columns' own names may hold commas. Raises StudyError.

    In place of `pair` there may be `original` and `output`, or `output` alone: the texts. Questions that are `optional`
    may be left out.
    """
    texts = [name for name in ("original", "output") if name not in questions]
    names = ["pair", *texts, "rater", *questions, "time", "comment"]
    mapping: dict[str, str] = {}
    for part in re.split(rf",(?=\s*(?:{'|'.join(names)})=)", text):
        name, _, column = (word.strip() for word in part.partition("="))
        if name not in names or not column:
            raise StudyError(f"--columns: {part.strip()!r} is not like pair=NAME; {nearest(name, names)}")
        if name in mapping:
            raise StudyError(f"--columns: {name!r} is given twice; give it one column")
        if column in mapping.values():
            raise StudyError(f"--columns: the column {column!r} is given twice; each name needs its own column")
        mapping[name] = column
    needed = [] if "output" in texts and "output" in mapping else ["pair"]
    needed += ["rater", *(name for name in questions if name not in optional)]
    missing = [name for name in needed if name not in mapping]
    if missing:
        raise StudyError(f"--columns: no column is given for {missing[0]!r}; add {missing[0]}=NAME")
    return mapping


@dataclass(frozen=True)
class _Form:
    """A file, and the settings to read it with."""

    study: Study
    rubric: Rubric
    pairs: Mapping[str, Pair]
    path: Path
    sheet: str
    columns: Mapping[str, str]
    key: bytes
    names: dict[str, str] = field(default_factory=dict)  #: of those who answered, by pseudonym
    turns: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)  #: rows so far, by rater and texts

    @functools.cached_property
    def table(self) -> CellTable:
        """The file's cells, as they were written."""
        return read_cells(self.path, self.sheet)

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the line number and the wanted cells of each row that is not blank."""
        table = self.table
        if table.listed:
            hint = 'quote cells that hold a comma ("3,5")'
            raise DataError(*(f"{self.path}, line {row.line}: {row.reason}; {hint}" for row in table.listed))
        names = [str(name) for name in table.cells.columns]
        if missing := next((column for column in self.columns.values() if column not in names), ""):
            raise DataError(f"{self.path}: has no column {missing!r}; its columns are: {', '.join(names)}")
        cells = [table.cells[column].astype(object).fillna("") for column in self.columns.values()]
        for line, row, elsewhere in zip(table.lines, zip(*cells, strict=True), self.checks_elsewhere, strict=True):
            if any(row) and not elsewhere:
                yield int(line), dict(zip(self.columns, row, strict=True))

    @functools.cached_property
    def checks_elsewhere(self) -> list[bool]:
        """For each row, whether an export says that it answers a control or repeat, which this study does not have."""
        cells = self.table.cells
        if "item_kind" not in cells or "pair" not in self.columns:
            return [False] * len(cells)
        in_study = cells[self.columns["pair"]].isin(list(self.pairs))
        return list(cells["item_kind"].isin(["control", "repeat"]) & ~in_study)

    @functools.cached_property
    def _by_texts(self) -> Mapping[tuple[str, ...], list[Pair]]:
        """The pairs by the texts that the file names them by; for another subject the first of its fields."""
        pairs = defaultdict[tuple[str, ...], list[Pair]](list)
        for pair in self.pairs.values():
            fields = json.loads(pair.fields) if pair.fields else {}
            texts = {"original": pair.original, "output": pair.transformed or str(next(iter(fields.values()), ""))}
            pairs[tuple(_plain(text) for name, text in texts.items() if name in self.columns)].append(pair)
        return pairs

    def _pair_id(self, row: Mapping[str, str], location: str) -> str:
        """Return the id of the pair that a row answers: by its id, else by its texts."""
        if "pair" in self.columns:
            return row["pair"]
        texts = tuple(_plain(row[name]) for name in ("original", "output") if name in self.columns)
        pairs = self._by_texts.get(texts, [])
        if not pairs:
            raise DataError(
                f"{location}: no pair has the text {texts[-1][:60]!r}; correct it, or name a column of ids: pair=NAME"
            )
        sampled = [pair for pair in pairs if pair.control != "repeat"]
        if len(sampled) > 1 or (len(pairs) > 1 and not sampled):
            both = " and ".join(f"{pair.pair_id} ({pair.transformation})" for pair in (sampled or pairs)[:2])
            raise DataError(f"{location}: its texts match {both}; name a column of ids: pair=NAME")
        turn = self.turns[row["rater"], texts]  # a rater's second row with these texts answers the repeat
        self.turns[row["rater"], texts] += 1
        return sorted(pairs, key=lambda pair: pair.control == "repeat")[min(turn, len(pairs) - 1)].pair_id

    def answer(self, row: Mapping[str, str], location: str) -> Answer:
        """A row as an answer. Raises DataError for cells that cannot be one."""
        if not row["rater"]:
            raise DataError(f"{location}: the column for `rater` is empty; name the rater")
        if "time" in self.columns:
            at = _time(row["time"], location)
        else:
            at = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        pair_id = self._pair_id(row, location)
        pair = self.pairs.get(pair_id)
        needed = [question.name for question in self.rubric.asked(pair.pool if pair else None)]
        rater = named_pseudonym(self.key, self.study.name, row["rater"])
        if not is_pseudonym(row["rater"]):
            self.names.setdefault(rater, row["rater"])
        return Answer(
            pair_id=pair_id,
            rater_id=rater,
            status="submitted",
            values={
                question.name: question.read_words(text, entry.label_names()) if text else None
                for entry, question in zip(self.rubric.questions, self.rubric.asked(), strict=True)
                if (text := row.get(question.name, "")) or question.name in needed
            },
            comment=row.get("comment", ""),
            submitted_at=at.isoformat(),
        )


def _plain(text: str) -> str:
    return trim(nfc(text))


def _time(text: str, location: str) -> datetime:
    """Return a time in UTC from ISO 8601 (UTC without a zone) or Google Forms' form."""
    try:
        year_first = text[4:5] in ("-", "/")  # else days and months are unclear
        at = datetime.fromisoformat((as_iso(text, day_first=False) if year_first else "") or text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: at the ends of the calendar, in UTC
        raise DataError(
            f"{location}: the time {text[:40]!r} is not ISO 8601 (2026-03-01T14:15:37+01:00) or Google Forms'"
            " (2026/03/01 2:15:37 PM GMT+1)"
        ) from None
