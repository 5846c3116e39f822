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

from annotation.judges.askers import Asker, ChatAsker, start
from annotation.judges.kept import A, Kept, R, Resumed, judgement
from annotation.judges.pool import draw_judged, read_judged
from annotation.judges.prompts import Asking, Questionnaire
from annotation.judges.reading import Read, read_expected, read_text
from annotation.judges.records import JudgedPair, Judgement
from annotation.rubric import load_rubric
from generation.generators import Attempt
from generation.work import all_through, show
from plumbline.errors import StudyError, TextFailedError, TextUnansweredError, nearest
from plumbline.store import joined, only_one
from plumbline.study import Study
from plumbline.study.annotators import AnnotatorSpec
from plumbline.study.generator import RetrySpec
from plumbline.study.judges import JudgeSpec


class _Source(Protocol):
    """Who answers."""

    @property
    def concurrency(self) -> int: ...

    async def close(self) -> None: ...


Source = TypeVar("Source", bound=_Source)


@dataclass(frozen=True)
class Judged:
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
    known = [spec.name for spec in study.judges]
    if unknown := [name for name in names if name not in known]:
        raise StudyError(f"{study.file}: no judge {unknown[0]!r}; {nearest(unknown[0], known)}")
    return [spec for spec in study.judges if not names or spec.name in names]


def questionnaires(study: Study, names: Sequence[str] = ()) -> list[Questionnaire]:
    """What each judge of a study (or each of these) is asked. Raises StudyError where it cannot be asked that."""
    chosen, rubric = named(study, names), load_rubric(study)
    return [Questionnaire(study, spec, rubric) for spec in chosen]


def judge(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[Judged]:
    """Have judges rate the pairs that they are to rate, as far as they have not; all judges, or those of some names.

    Writes `judgements/judged.parquet` and `judgements/<judge>.parquet`. Raises StudyError for judges that cannot be
    asked what the study wants, ServiceError where one cannot work; what was received before stays.
    """
    asked = questionnaires(study, names)
    with only_one(study.scratch / ".judging.lock", f"judges are at work for {study.name!r}"):
        return judge_pairs(study, asked, draw_judged(study), study.judgements, again=again)


def judge_pairs(
    study: Study, asked: Sequence[Questionnaire], pairs: Sequence[JudgedPair], folder: Path, *, again: bool
) -> list[Judged]:
    """Have judges rate these pairs; their tables stand in a folder of the study's records."""
    import uvloop  # noqa: PLC0415 (extra `generation`; who only reads judgements does without)

    done = []
    for one in asked:  # each model has the machine for itself
        kept = Kept(study, one, pairs, folder, again=again)
        try:
            done.append(uvloop.run(_ask_all(study, kept)))
        finally:
            kept.journal.close()
    return done


def read_judgements(study: Study, names: Sequence[str] = ()) -> pd.DataFrame:
    """The judgements that a study wants, of all judges or of some: columns as `Judgement` has them.

    What was said to other prompts, by other settings, or about pairs that are judged no more is not among them. Raises
    DataError where a judge's table is not there, damaged, or another than was written.
    """
    pairs = read_judged(study)
    frames = [Kept(study, one, pairs, study.judgements).frame() for one in questionnaires(study, names)]
    empty = joined([], Judgement)
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True) if any(map(len, frames)) else empty


async def _ask_all(study: Study, kept: Kept) -> Judged:
    async def begin() -> Asker:
        labels = dict.fromkeys(label for _, asking in kept.todo() for label in asking.scale.labels)
        return await start(study, kept.asked, list(labels) if kept.asked.reading == "expected" else [])

    return await all_asked(kept, kept.asked.spec, begin, functools.partial(ask_one, kept), "judgement")


async def all_asked(
    kept: Resumed[A, R],
    spec: JudgeSpec | AnnotatorSpec,
    begin: Callable[[], Awaitable[Source]],
    ask: Callable[[Source, str, A], Awaitable[R]],
    unit: str,
) -> Judged:
    """Ask for all that is left of one model, whom `begin` brings; what comes is in its journal at once."""
    todo = kept.todo()
    counts: Counter[str] = Counter(reused=kept.wanted - len(todo))
    if not todo:
        kept.settle()
        return Judged(spec.name, spec.model, spec.kind, counts, math.nan)
    asker = await begin()
    try:
        with tqdm(total=len(todo), unit=unit, desc=f"asking ({spec.name})") as bar:

            async def one(left: tuple[str, A]) -> None:
                made = await ask(asker, *left)
                kept.journal.append(made)
                show(bar, counts, made.status)

            await all_through(iter(todo), one, min(asker.concurrency, len(todo)), [kept.journal])
    finally:
        await asker.close()
    kept.settle()
    sent, cached = (asker.sent, asker.cached) if isinstance(asker, ChatAsker) else (0, 0)
    return Judged(spec.name, spec.model, spec.kind, counts, cached / sent if sent else math.nan)


async def ask_one(kept: Kept, asker: Asker, key: str, asking: Asking) -> Judgement:
    """Ask until an answer can be read or the attempts are used up; the record says which, and why."""
    spec = kept.asked.spec
    retry = RetrySpec(attempts=spec.attempts, temperature=spec.temperature)
    expected = kept.asked.reading == "expected" and asker.tells_labels
    attempt = Attempt(1, spec.seed, spec.sampling)
    while True:
        try:
            answer = await asker.answer(asking, attempt, labels=expected)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            mode = "expected" if expected else "text"
            said = {"mode": mode, "text": "", "status": status, "attempts": attempt.number - 1}
            return judgement(kept, key, asking, Read(reason=str(error)), **said)
        by_shares = expected and (answer.labels is not None or asker.repeatable)
        read = read_expected(answer, asking.scale, spec.least_mass) if by_shares else read_text(answer, asking.scale)
        # Probabilities are the same at every attempt.
        if not read.reason or by_shares or attempt.number >= spec.attempts or not asker.repeatable:
            break
        attempt = attempt.next(spec.seed, retry, cut_off=answer.cut_off)
    said = {"mode": "expected" if by_shares else "text", "text": answer.text, "attempts": attempt.number}
    return judgement(kept, key, asking, read, **said, status="failed" if read.reason else "ok")
