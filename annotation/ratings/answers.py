"""Raters' answers from any source, turned into ratings: checked, kept unchanged in snapshots, and written.

Each collection replaces what its source gave before and leaves other sources alone. Where
anything changed, a snapshot of the source's answers is added to `snapshots/`; none is ever overwritten.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.campaign.counting import marked, withdrawals
from annotation.campaign.offering import REHEARSED
from annotation.campaign.records import CONTROL_RATINGS, RATINGS, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.human.order import pages_shown
from annotation.questions.question import Question, Value
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.reading import parse_json
from plumbline.records import ARGILLA, REHEARSAL, SANDBOX, SOURCES, Pair, Rating, is_whole
from plumbline.store import atomic
from plumbline.study import Study
from plumbline.words import count, readable

CLOCKS = timedelta(minutes=5)  # by which servers' clocks may differ; anything later is in the future
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
PAUSE = timedelta(minutes=10)  # between two answers; after a longer one the rater was away, and the time is unknown
KEY = list(Rating.KEY)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One rater's answer to one pair, from wherever it comes; the time in UTC (ISO 8601)."""

    pair_id: str
    values: Mapping[str, Value]  #: by question that the pair is asked, in the form in which it is kept
    submitted_at: str
    status: str = "submitted"
    comment: str = ""
    seconds: float | None = None  #: on the pair; NaN if a crowd platform does not know it, None if nothing measures it
    rater_id: str = ""  #: a pseudonym; empty until a crowd worker has theirs
    batch: str = ""  #: of a crowd campaign
    order: str = ""  #: of candidates, as this rater saw them (`Rating.order`)
    turn: int = 0  #: of the item in the order that was drawn for this rater, from 1; 0 where that is unknown

    @property
    def simulated(self) -> bool:
        """Whether a simulated rater gave it."""
        return self.rater_id.startswith("simulated-")

    def readable(self) -> Answer:
        """Return it with characters that every file can hold, since raters paste anything."""
        values = {name: readable(value) if isinstance(value, str) else value for name, value in self.values.items()}
        return replace(self, values=values, comment=readable(self.comment))


@dataclass(frozen=True)
class SourcePart:
    """A dataset or file of answers, and its state when they were read."""

    state: str
    answers: tuple[Answer, ...]


def check(answer: Answer, location: str, rubric: Rubric, pairs: Mapping[str, Pair], advice: str = "") -> None:
    """Raise DataError for an answer that cannot be a rating of this study; `location` begins the line.

    `advice` ends it where the pair is not the study's.
    """
    if answer.pair_id not in pairs:
        raise DataError(f"{location}: pair {answer.pair_id!r} is not in pairs.parquet or controls.parquet{advice}")
    questions = rubric.asked(pairs[answer.pair_id].pool)
    if fault := fault_of(answer, questions):
        raise DataError(f"{location}{fault}")
    names = {question.name for question in questions}
    if unasked := next((name for name, value in answer.values.items() if name not in names and value is not None), ""):
        raise DataError(
            f"{location}: the answer names the question {unasked[:60]!r}, which is not asked about this pair"
        )
    if not is_time(answer.submitted_at):
        raise DataError(f"{location}: the time {answer.submitted_at[:60]!r} of the answer cannot be read")
    at = datetime.fromisoformat(answer.submitted_at)
    if at < EARLIEST:
        raise DataError(
            f"{location}: the answer dates from {answer.submitted_at}, before the year 2000; correct the time"
        )
    if at > datetime.now(UTC) + CLOCKS:
        raise DataError(
            f"{location}: the answer dates from {answer.submitted_at}, which is in the future; correct the clocks"
        )


def is_time(text: str) -> bool:
    """Return whether a text is a time, as answers have it."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def fault_of(answer: Answer, questions: Sequence[Question]) -> str:
    """Return which value is no answer to its question, and why, as the end of a line; empty if all are."""
    for question in questions:
        name, value, submitted = question.name, answer.values.get(question.name), answer.status == "submitted"
        if value is None and question.required and submitted:
            return f": the submitted answer lacks {name!r}"
        if value is not None and (fault := question.wrong(value, complete=submitted)):
            return f", {name}: {fault}"
    return ""


def of_file(command: Callable[[str], str]) -> str:
    """Return advice for a file with answers to another study's pair, as `check` takes it.

    `command` is `Study.command`.
    """
    return (
        "; correct the id, or extend this study's sample if the file's is larger (raise sample.pairs and run"
        f" `{command('sample')} --extend REASON`), or export from a study with the same sample"
    )


def source_of_file(path: Path, sheet: str = "") -> str:
    """The source of a file's ratings: its name, and that of a sheet of it which was asked for.

    Raises DataError for a name that a study's own campaign has.
    """
    if path.name.removesuffix(SANDBOX) in SOURCES:
        raise DataError(f"{path}: the name {path.name!r} is reserved for a campaign's own ratings; rename the file")
    return f"{path.name}, {sheet}" if sheet else path.name


def keep(
    records: CampaignRecords,
    source: str,
    parts: Mapping[str, SourcePart],
    *,
    replace: bool,
    instead_of: Collection[str] = (),
) -> pd.DataFrame:
    """Make checked answers the ratings of their source; returns the sample's ratings, of all sources.

    Raters whom people excluded stay so, with their new answers, and withdrawn pairs stay withdrawn. Refuses to drop
    ratings that the source gave before, unless `replace` says so, and two answers of a rater to a pair. The ratings of
    the sources `instead_of` go. Raises DataError.
    """
    pairs, folder = records.shown_by_id, records.study.folder
    parts = {name: SourcePart(part.state, tuple(map(Answer.readable, part.answers))) for name, part in parts.items()}
    earlier = records.all_ratings
    earlier = earlier[~earlier["source"].isin(list(instead_of))]
    answers = [answer for part in parts.values() for answer in part.answers]
    collected = _frame(source, answers, pairs, pages_shown(records.study, pairs.values()))
    _refuse_twice(collected, source)
    of_source = earlier["source"] == source
    if not replace:
        _refuse_loss(earlier[of_source], collected, source)
    ratings = pd.concat([earlier[~of_source], collected], ignore_index=True)
    refuse_mixing(records.study, ratings)
    ratings = ratings.astype({"value": "Int64" if is_whole(ratings["value"]) else "Float64"})
    ratings = ratings.sort_values(KEY, ignore_index=True)
    _refuse_twice(ratings, source)
    _add_snapshot(folder, source, parts)
    write_ratings(records, ratings)
    return CampaignRecords(records.study).ratings


def answers_line(records: CampaignRecords) -> str:
    """Return how many ratings and answers a study has: `404 ratings in 192 answers, 180 of them to pairs (...)`."""
    ratings, item = records.all_ratings, records.study.called.item
    answers = ratings.drop_duplicates(["pair_id", "rater_id"])  # a rating for each question or candidate
    to_pairs = len(records.ratings.drop_duplicates(["pair_id", "rater_id"]))
    states = answers["status"].value_counts()
    parts = [f"{states.get(status, 0):,} {status}" for status in ("submitted", "draft", "discarded")]
    if answers["simulated"].any():
        parts.append(f"{int(answers['simulated'].sum()):,} of them simulated")
    if surplus := int(answers["surplus"].sum()):
        parts.append(f"{surplus:,} do not count: a pair's first {records.study.raters.per_pair} do (raters.per_pair)")
    number = f"{count(len(ratings), 'rating')} in {count(len(answers), 'answer')}"
    return f"{number}, {to_pairs:,} of them to {item}s ({', '.join(parts)})"


def write_ratings(records: CampaignRecords, answers: pd.DataFrame) -> None:
    """Write all answers: those of the sample, and those of controls and repeats in a file of their own.

    The marks beside them (`annotation.campaign.counting.MARKS`) are for readers of the files; no command reads them.
    """
    withdrawn, per_pair = withdrawals(records.decided, records.controls), records.study.raters.per_pair
    ratings = marked(answers, records.decided, per_pair, withdrawn, records.answers_again)
    of_controls = ratings["pair_id"].isin([pair.pair_id for pair in records.controls])
    Manifest.of(records.study).write_table(CONTROL_RATINGS.name, ratings[of_controls], Rating)
    of_sample = ratings[~of_controls] if of_controls.any() else ratings  # a million rows are not copied
    Manifest.of(records.study).write_table(RATINGS.name, of_sample, Rating)


def last_snapshot(folder: Path, source: str) -> dict[str, SourcePart]:
    """The parts of a source as they were when they last changed; {} if they never did. `folder` is the study's."""
    files = _snapshots(folder, source)
    if not files:
        return {}
    try:
        with files[-1].open("rb") as file:
            content = parse_json(gzip.decompress(file.read()))
        return {
            name: SourcePart(part["state"], tuple(Answer(**answer) for answer in part["answers"]))
            for name, part in content["parts"].items()
        }
    except (DataError, OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise DataError(f"{files[-1]} is damaged ({error}); move it away and collect again") from None


def _frame(source: str, answers: Sequence[Answer], pairs: Mapping[str, Pair], pages: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each answer and question; an optional question without an answer has no row once submitted."""
    seconds = seconds_of(answers, pages)
    rows = [
        {
            "pair_id": answer.pair_id,
            "transformation": pairs[answer.pair_id].transformation,
            "language": pairs[answer.pair_id].language,
            "rater_id": answer.rater_id,
            "question": question,
            "value": None if isinstance(value, str) else value,
            "answer": value if isinstance(value, str) else "",
            "status": answer.status,
            "submitted_at": answer.submitted_at,
            "source": source,
            "batch": answer.batch,
            "seconds": measured if answer.seconds is None else answer.seconds,
            "comment": answer.comment,
            "order": answer.order,
            "turn": answer.turn,
            "simulated": answer.simulated,
        }
        for answer, measured in zip(answers, seconds, strict=True)
        for question, value in answer.values.items()
        if value is not None or answer.status != "submitted"
    ]
    frame = pd.DataFrame(rows, columns=list(Rating.model_fields))
    times = pd.to_datetime(frame["submitted_at"], utc=True, format="ISO8601").astype("datetime64[us, UTC]")
    return frame.assign(submitted_at=times, seconds=frame["seconds"].astype(float))


def seconds_of(answers: Sequence[Answer], pages: Mapping[str, str]) -> list[float]:
    """Return how long each answer took: from the rater's answer before, of any status, to this one.

    Answers to the outputs of one page (`pages`, by pair; otherwise each has its own), given one after another, share
    their time equally. NaN for a rater's first answer, after more than PAUSE, for other answers with the same time (of
    a file without times or a form with many pairs), and for simulated raters, who need no time.
    """
    seconds = [float("nan")] * len(answers)
    turns: dict[str, dict[datetime, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, answer in enumerate(answers):
        if not answer.simulated:
            turns[answer.rater_id][datetime.fromisoformat(answer.submitted_at)].append(index)
    for by_time in turns.values():
        runs = list[tuple[datetime, set[str], list[int]]]()
        for at, indices in sorted(by_time.items()):
            shown = {pages.get(answers[index].pair_id, answers[index].pair_id) for index in indices}
            same = runs.pop()[2] if runs and runs[-1][1] == shown else []
            runs.append((at, shown, [*same, *indices]))
        for (previous, *_), (at, shown, indices) in pairwise(runs):
            if at - previous <= PAUSE and len(shown) == 1:
                for index in indices:
                    seconds[index] = (at - previous).total_seconds() / len(indices)
    return seconds


def refuse_mixing(study: Study, ratings: pd.DataFrame) -> None:
    """Raise DataError if simulated ratings would stand beside those of people, or a rehearsal's beside any.

    Those of the study's own server may: whoever tries its pages answers beside its simulated raters, and what people
    were paid for is always collected.
    """
    sources = ratings[["source", "simulated"]].drop_duplicates().sort_values(["source", "simulated"])
    names = set(sources["source"])
    made_up = set(sources.loc[sources["simulated"].astype(bool), "source"])
    may_mix = made_up <= {ARGILLA} or sources["simulated"].nunique() < 2
    if may_mix and (REHEARSAL not in names or len(names) < 2):
        return
    listed = ", ".join(f"{name} ({'simulated' if simulated else 'people'})" for name, simulated in sources.to_numpy())
    first = "collect the simulated ones under another study name"
    if REHEARSAL in names:
        forget = REHEARSED.command(study, "close --forget")
        first = f"rehearse under another study name, or remove the rehearsal: `{forget}`"
    raise DataError(f"{study.name}: simulated ratings cannot be mixed with others: {listed}; {first}")


def _refuse_twice(frame: pd.DataFrame, source: str) -> None:
    twice = frame[frame.duplicated(KEY)]
    if len(twice):
        first = twice.iloc[0]
        raise DataError(
            f"{source}: rater {first['rater_id']} answered {first['question']!r} of pair {first['pair_id']} twice;"
            " keep one of the answers"
        )


def _refuse_loss(earlier: pd.DataFrame, collected: pd.DataFrame, source: str) -> None:
    """Raise DataError if pairs that a rater had answered are missing; taking back an optional answer is no loss."""
    key = KEY[:2]
    had = pd.MultiIndex.from_frame(earlier.loc[earlier["status"] == "submitted", key])
    n_missing = int((~had.isin(pd.MultiIndex.from_frame(collected[key]))).sum())
    if n_missing:
        missing = count(n_missing, "rating that was collected before is", "ratings that were collected before are")
        raise DataError(
            f"{missing} missing on the server or in the file ({source});"
            " check that it is the right one, or add --replace to drop them"
        )


def _snapshots(folder: Path, source: str) -> list[Path]:
    """The snapshots of a source, the oldest first."""
    return sorted((folder / "snapshots").glob(f"*Z-{_plain(source)}-{'[0-9a-f]' * 12}.json.gz"))


def _plain(source: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:180]  # a file's name has at most 255 bytes


def _add_snapshot(folder: Path, source: str, parts: Mapping[str, SourcePart]) -> None:
    """Write a snapshot of the answers if they differ from the source's last one."""
    answers = {name: [vars(answer) for answer in parts[name].answers] for name in sorted(parts)}
    digest = sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:12]
    files = _snapshots(folder, source)
    if (files and files[-1].name.endswith(f"-{digest}.json.gz")) or not (files or any(answers.values())):
        return
    written_at = datetime.now(UTC)
    path = folder / "snapshots" / f"{written_at:%Y%m%dT%H%M%S%f}Z-{_plain(source)}-{digest}.json.gz"
    listed: dict[str, Any] = {
        name: {"state": parts[name].state, "answers": of_part} for name, of_part in answers.items()
    }
    content = {"source": source, "collected_at": written_at.isoformat(), "parts": listed}
    with atomic(path) as file:
        file.write(gzip.compress(json.dumps(content, ensure_ascii=False).encode()))
