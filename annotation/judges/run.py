"""Judges at work: every question that is left goes to its judge, and what comes back is in the journal at once."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd
from tqdm import tqdm

from annotation.judges.askers import JudgeChatClient, JudgeClient, start
from annotation.judges.pool import draw_judged, read_judged
from annotation.judges.progress import A, JudgeProgress, R, ResumableAnswers, judgement
from annotation.judges.prompts import JudgeMessage, Questionnaire
from annotation.judges.records import JudgedPair, Judgement
from annotation.judges.replies import Read, read_expected, read_text
from annotation.rubric import load_rubric
from generation.forecast import CHARACTERS_A_TOKEN, duration
from generation.generators import Attempt
from generation.work import all_through, show
from plumbline import cli
from plumbline.errors import StudyError, TextFailedError, TextUnansweredError, nearest
from plumbline.store import joined, only_one
from plumbline.study import Study
from plumbline.study.engines import AnnotatorSpec, JudgeSpec


class _Source(Protocol):
    """Who answers."""

    @property
    def concurrency(self) -> int: ...

    async def close(self) -> None: ...


Source = TypeVar("Source", bound=_Source)


@dataclass(frozen=True)
class JudgeRun:
    """What became of one judge's run."""

    judge: str
    model: str
    kind: str
    counts: Counter[str]  #: ok, failed, unanswered, and those that were there
    cached: float  #: share of the prompts' tokens that were computed before; NaN where it is not told

    def line(self, what: str) -> str:
        """The same in a line; `what` it gave, such as judgements."""
        counts = self.counts
        parts = f"{counts['ok']} {what}, {counts['failed']} failed, {counts['unanswered']} unanswered"
        line = f"{self.judge} ({self.model}): {parts}, {counts['reused']} were there"
        if not math.isnan(self.cached):
            line += f"; {self.cached:.0%} of the prompts' tokens came from the prefix cache"
        return f"{line}; recorded, nobody was asked" if self.kind == "recorded" else line


def named(study: Study, names: Sequence[str] = ()) -> list[JudgeSpec]:
    """A study's judges, or those of these names. Raises StudyError where there is none."""
    if not study.judges:
        raise StudyError(f"{study.file}: names no judges; add them under `judges` (docs/judges.md)")
    judges = [spec.name for spec in study.judges]
    if unknown := [name for name in names if name not in judges]:
        raise StudyError(f"{study.file}: no judge {unknown[0]!r}; {nearest(unknown[0], judges)}")
    return [spec for spec in study.judges if not names or spec.name in names]


def questionnaires(study: Study, names: Sequence[str] = ()) -> list[Questionnaire]:
    """What each judge of a study (or each of these) is asked. Raises StudyError where it cannot be asked that."""
    chosen, rubric = named(study, names), load_rubric(study)
    return [Questionnaire(study, spec, rubric) for spec in chosen]


def judge(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[JudgeRun]:
    """Have judges rate the pairs that they are to rate, as far as they have not; all judges, or those of some names.

    Writes `judgements/judged.parquet` and `judgements/<judge>.parquet`. Raises StudyError for judges that cannot be
    asked what the study wants, ServiceError where one cannot work; what was received before stays.
    """
    of_judges = questionnaires(study, names)
    with only_one(study.scratch / ".judging.lock", f"judges are at work for {study.name!r}"):
        return judge_pairs(study, of_judges, draw_judged(study), study.judgements, again=again)


def judge_pairs(
    study: Study, asked_judges: Sequence[Questionnaire], pairs: Sequence[JudgedPair], folder: Path, *, again: bool
) -> list[JudgeRun]:
    """Have judges rate these pairs; their tables stand in a folder of the study's records."""
    import uvloop  # noqa: PLC0415 (extra `generation`; who only reads judgements does without)

    done = []
    for questionnaire in asked_judges:  # each model has the machine for itself
        progress = JudgeProgress(study, questionnaire, pairs, folder, again=again)
        try:
            done.append(uvloop.run(_ask_all(study, progress)))
        finally:
            progress.journal.close()
    return done


def read_judgements(study: Study, names: Sequence[str] = ()) -> pd.DataFrame:
    """The judgements that a study wants, of all judges or of some: columns as `Judgement` has them.

    What was said to other prompts, by other settings, or about pairs that are judged no more is not among them. Raises
    DataError where a judge's table is not there, damaged, or another than was written.
    """
    pairs = read_judged(study)
    frames = [
        JudgeProgress(study, questionnaire, pairs, study.judgements).frame()
        for questionnaire in questionnaires(study, names)
    ]
    empty = joined([], Judgement)
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True) if any(map(len, frames)) else empty


async def _ask_all(study: Study, progress: JudgeProgress) -> JudgeRun:
    async def begin() -> JudgeClient:
        labels = dict.fromkeys(label for _, asking in progress.todo() for label in asking.scale.labels)
        return await start(study, progress.asked, list(labels) if progress.asked.reading == "expected" else [])

    return await all_asked(progress, progress.asked.spec, begin, functools.partial(ask_one, progress), "judgement")


async def all_asked(
    progress: ResumableAnswers[A, R],
    spec: JudgeSpec | AnnotatorSpec,
    begin: Callable[[], Awaitable[Source]],
    ask: Callable[[Source, str, A], Awaitable[R]],
    unit: str,
) -> JudgeRun:
    """Ask for all that is left of one model, whom `begin` brings; what comes is in its journal at once."""
    todo = progress.todo()
    counts: Counter[str] = Counter(reused=progress.wanted - len(todo))
    if not todo:
        progress.settle()
        return JudgeRun(spec.name, spec.model, spec.kind, counts, math.nan)
    asker = await begin()
    try:
        with tqdm(total=len(todo), unit=unit, desc=f"asking ({spec.name})") as bar:

            async def one(question: tuple[str, A]) -> None:
                record = await ask(asker, *question)
                progress.journal.append(record)
                show(bar, counts, record.status)

            await all_through(iter(todo), one, min(asker.concurrency, len(todo)), [progress.journal])
    finally:
        await asker.close()
    progress.settle()
    sent, cached = (asker.sent, asker.cached) if isinstance(asker, JudgeChatClient) else (0, 0)
    return JudgeRun(spec.name, spec.model, spec.kind, counts, cached / sent if sent else math.nan)


async def ask_one(progress: JudgeProgress, asker: JudgeClient, key: str, asking: JudgeMessage) -> Judgement:
    """Ask until an answer can be read or the attempts are used up; the record says which, and why."""
    spec = progress.asked.spec
    expected = progress.asked.reading == "expected" and asker.tells_labels
    attempt = Attempt(1, spec.seed, spec.sampling)
    while True:
        try:
            answer = await asker.answer(asking, attempt, labels=expected)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            mode = "expected" if expected else "text"
            fields = {"mode": mode, "text": "", "status": status, "attempts": attempt.number - 1}
            return judgement(progress, key, asking, Read(reason=str(error)), **fields)
        by_shares = expected and (answer.labels is not None or asker.repeatable)
        read = read_expected(answer, asking.scale, spec.least_mass) if by_shares else read_text(answer, asking.scale)
        # Probabilities are the same at every attempt.
        if not read.reason or by_shares or attempt.number >= spec.retry.attempts or not asker.repeatable:
            break
        attempt = attempt.next(spec.seed, spec.retry, cut_off=answer.cut_off)
    fields = {"mode": "expected" if by_shares else "text", "text": answer.text, "attempts": attempt.number}
    return judgement(progress, key, asking, read, **fields, status="failed" if read.reason else "ok")


@dataclass(frozen=True)
class JudgeForecast:
    """What one model has answered, and what is left: `out` is about how many tokens its answers have."""

    name: str
    answered: int
    missing: int
    characters: int
    out: int
    recorded: bool


def forecast(progresses: Sequence[JudgeProgress], rate: float | None) -> str:
    """A row for each judge: judgements there and left, tokens in and out; with `rate` (judgements a second) the time.

    A token is taken for 4 characters, of which those that many prompts begin with are computed once. An answer is a
    token where probabilities are read, and three where a number is written.
    """
    rows = []
    for progress in progresses:
        todo, spec = progress.todo(), progress.asked.spec
        out = len(todo) * (1 if progress.asked.reading == "expected" else 3)
        characters = sum(len(asking.message) for _, asking in todo)
        recorded = spec.kind == "recorded"
        rows.append(JudgeForecast(spec.name, progress.wanted - len(todo), len(todo), characters, out, recorded))
    return table_of(rows, rate, "judge", "judgements")


def table_of(rows: Sequence[JudgeForecast], rate: float | None, who: str, what: str) -> str:
    """The rows of a forecast, with the time of those that are asked."""
    shown = []
    for row in rows:
        tokens = (0, 0) if row.recorded else (round(row.characters / CHARACTERS_A_TOKEN), row.out)
        shown.append([row.name, f"{row.answered:,}", f"{row.missing:,}", *(f"{number:,}" for number in tokens)])
    table = cli.columns([who, "there", "left", "tokens in, about", "tokens out, about"], shown)
    return f"{table}\n\n{_time(sum(row.missing for row in rows if not row.recorded), rate, what)}"


def _time(number: int, rate: float | None, what: str) -> str:
    if not number:
        return "no model is left to ask"
    if rate is None:
        return f"--rate N ({what} a second) tells how long it takes"
    return f"about {duration(round(number / rate))} at {rate:g} {what} a second"
