"""Runs of judges: each open question goes to its judge, and each answer goes to the journal at once.

A judge is vLLM in this process, a chat server, or a file; a run prints what a server cannot do. Reasoning models are
told not to think (`enable_thinking: false` in their chat templates). If a server refuses that, thoughts are cut off
from the answer. Judgements by other prompts or settings, or of pairs no longer judged, are kept.
"""

from __future__ import annotations

import abc
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pandas as pd

from annotation.campaign.rubric import load_rubric
from annotation.judges.pool import COMMAND, draw_judged, read_judged
from annotation.judges.prompts import (
    JudgeClient,
    JudgeMessage,
    Questionnaire,
    Read,
    RecordedJudgeAnswers,
    RecordedJudgements,
    read_expected,
    read_text,
)
from annotation.judges.records import JudgedPair, Judgement, ModelAnswer
from generation.forecast import CHARACTERS_A_TOKEN, duration
from plumbline import cli
from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.importing import uvloop
from plumbline.models.asking import AnswerTable
from plumbline.models.chat import QUIET, Attempt, Chat, Completion, ask_until, open_chat
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.engines import AnnotatorSpec, JudgeSpec

OF_PAIR = ("pair_id", "transformation", "pool", "dataset", "task_type", "language", "output_language", "seed",
           "stratum")  # fmt: skip


class _PromptHolder(Protocol):
    """A prompt; `prompt_hash` covers everything except the texts."""

    @property
    def prompt_hash(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def labels(self) -> Sequence[str]: ...


Q = TypeVar("Q", bound=_PromptHolder)
R = TypeVar("R", Judgement, ModelAnswer)
S = TypeVar("S", JudgeSpec, AnnotatorSpec)


class PromptedAnswers(AnswerTable[Q, R]):
    """A model's answers, and its open prompts."""

    UNIT: ClassVar[str]  #: one answer
    RECORDED: ClassVar[type[RecordedJudgeAnswers]]  #: the reader of recorded answers

    spec: JudgeSpec | AnnotatorSpec

    @property
    @abc.abstractmethod
    def tokens_out(self) -> int:
        """The approximate number of tokens of the answers left to ask."""

    expected = False  #: whether the probabilities of points are asked for

    def labels(self) -> Sequence[str]:
        """Return the points whose probabilities will be asked for; empty for answers in text."""
        return ()

    @abc.abstractmethod
    def key(self, asking: Q) -> str:
        """Return the identity of an answer: a hash of everything that can change it."""

    @abc.abstractmethod
    def read(self, asking: Q, answer: Completion | None, *, labelled: bool) -> tuple[dict[str, Any], str]:
        """Return the fields of a record that depend on the answer, and why it cannot be read; None is no answer."""

    def is_constant(self, answer: Completion, *, labelled: bool) -> bool:
        """Return whether the model would give the same answer again."""
        return False

    async def answer(self, client: JudgeClient, asking: Q) -> R:
        """Ask until an answer is readable or the attempts are used up; the record says which, and why."""
        spec, labelled = self.spec, self.expected and client.tells_labels
        outcome = await ask_until(
            functools.partial(client.answer, asking, labels=asking.labels if labelled else ()),
            lambda answer: (
                not self.is_constant(answer, labelled=labelled)
                and bool(self.read(asking, answer, labelled=labelled)[1])
            ),
            Attempt(1, spec.seed, spec.sampling),
        )
        answer = None if outcome.status else outcome.answer
        fields, reason = self.read(asking, answer, labelled=labelled)
        return self._record.model_validate(
            {
                **fields, "key": self.key(asking), "text": answer.text if answer else "",
                "status": outcome.status or ("failed" if reason else "ok"), "reason": outcome.reason or reason,
                "attempts": outcome.attempts, "model": spec.model, "kind": spec.engine.kind,
                "prompt_hash": asking.prompt_hash, "finished_at": datetime.now(UTC),
            }
        )  # fmt: skip

    async def ask(self) -> JudgeRun:
        """Ask the model everything unanswered, each answer going to its journal at once. Raises as `start`."""
        counts: Counter[str] = Counter(reused=self.wanted - self.todo)
        share = math.nan
        if self.todo:
            client = await start(self._study, self.spec, self.RECORDED.read, self.labels())
            counts.update(await self.ask_left(client, self.UNIT, f"asking ({self.spec.name})"))
            share = client.cached / client.sent if client.sent else math.nan
        else:
            self.settle()
        return JudgeRun(self.spec.name, self.spec.model, bool(self.spec.engine.recordings), counts, share)

    def jobs(self) -> Iterator[Q]:
        """Return the open prompts.

        Prompts with the same beginning follow each other, so that the beginning is read once.
        """
        return iter(sorted(super().jobs(), key=lambda question: question.prompt_hash))


class JudgeProgress(PromptedAnswers[JudgeMessage, Judgement]):
    """One judge's judgements of pairs, and its open ones, in a table of the study's records."""

    UNIT, RECORDED = "judgement", RecordedJudgements

    spec: JudgeSpec

    def __init__(
        self, study: Study, questionnaire: Questionnaire, pairs: Iterable[JudgedPair], folder: Path, *,
        again: bool = False,
    ) -> None:  # fmt: skip
        self.questionnaire, self.spec = questionnaire, questionnaire.spec
        self.hash, self.expected = questionnaire.hash, questionnaire.reading == "expected"
        name = str((folder / f"{questionnaire.spec.name}.parquet").relative_to(study.folder))
        questions = {self.key(asking): asking for pair in pairs for asking in questionnaire.askings(pair)}
        super().__init__(study, name, Judgement, questions.items, COMMAND, again=again)

    def frame(self) -> pd.DataFrame:
        """Return the wanted judgements that are in the table, with the judge's name and facts of the pairs."""
        pairs = {asking.pair.pair_id: asking.pair for _, asking in self._jobs_by_key()}
        facts = [{name: getattr(pair, name) for name in OF_PAIR} | {"generator": pair.model} for pair in pairs.values()]
        of_pairs = pd.DataFrame(facts, columns=[*OF_PAIR, "generator"])
        return super().frame().assign(judge=self.spec.name).merge(of_pairs, on="pair_id", how="left")

    def key(self, asking: JudgeMessage) -> str:
        """Return the identity of a judgement: a hash of everything that can change it."""
        position = asking.question, asking.pair.pair_id
        return identity("judgement-v1", self.hash, asking.prompt_hash, *position)

    @property
    def tokens_out(self) -> int:
        """One token where probabilities are read, and three where a number is written."""
        return self.todo * (1 if self.expected else 3)

    def labels(self) -> Sequence[str]:
        """Return the points of all questions, if their probabilities are read."""
        if not self.expected:
            return ()
        return list(dict.fromkeys(label for asking in self.jobs() for label in asking.labels))

    def read(self, asking: JudgeMessage, answer: Completion | None, *, labelled: bool) -> tuple[dict[str, Any], str]:
        """Return the score, by the points' probabilities or as text, and why there is none."""
        by_shares = labelled if answer is None else self.is_constant(answer, labelled=labelled)
        score = Read() if answer is None else (read_expected if by_shares else read_text)(answer, asking.scale)
        fields = {
            "pair_id": asking.pair.pair_id, "question": asking.question, "score": score.score,
            "mode": "expected" if by_shares else "text", "label_mass": score.label_mass, "judge_hash": self.hash,
        }  # fmt: skip
        return fields, score.reason

    def is_constant(self, answer: Completion, *, labelled: bool) -> bool:
        """Return whether an answer has probabilities: they are always the same."""
        return labelled and (answer.labels is not None or answer.repeatable)


class JudgeChatClient(JudgeClient):
    """A chat model; `sent` and `cached` count tokens of prompts if it reports them."""

    def __init__(self, chat: Chat, *, tells_labels: bool) -> None:
        self.chat, self.tells_labels, self.concurrency = chat, tells_labels, chat.concurrency

    async def answer(self, asking: Any, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the model's answer to a message."""
        answer = await self.chat.ask(asking.message, attempt, labels)
        if answer.cached is not None:
            self.sent, self.cached = self.sent + answer.sent, self.cached + answer.cached
        return answer

    async def close(self) -> None:
        """Close the model."""
        await self.chat.close()


async def start(
    study: Study, spec: JudgeSpec | AnnotatorSpec, recorded: Callable[[Path], JudgeClient], labels: Sequence[str] = ()
) -> JudgeClient:
    """Start a model and return its client; for a recorded model call `recorded` with its file.

    `labels` are the points whose probabilities will be asked for; empty for text. Prints what the model cannot do.
    Raises as `open_chat` and `Chat.prepare_to_judge`.
    """

    async def ask() -> JudgeClient:
        chat = open_chat(spec.engine, study, f"judges ({spec.name})", QUIET)
        try:
            first = Attempt(1, spec.seed, spec.sampling)
            return JudgeChatClient(chat, tells_labels=await chat.prepare_to_judge(spec.name, labels, first))
        except BaseException:
            await chat.close()
            raise

    async def read(path: str) -> JudgeClient:
        return recorded(study.resolve(path))

    return await spec.engine.source(ask, read)


@dataclass(frozen=True)
class JudgeRun:
    """The result of one judge's run."""

    judge: str
    model: str
    recorded: bool  #: whether its answers come from a file
    counts: Counter[str]  #: ok, failed, unanswered, and reused
    cached: float  #: share of the prompts' tokens from the server's cache; NaN if it does not report that

    def line(self, noun: str) -> str:
        """Return a line on the run; `noun` names the answers, such as judgements."""
        counts = self.counts
        parts = f"{counts['ok']} {noun}, {counts['failed']} failed, {counts['unanswered']} unanswered"
        line = f"{self.judge} ({self.model}): {parts}, {counts['reused']} already stored"
        if not math.isnan(self.cached):
            line += f"; {self.cached:.0%} of the prompts' tokens came from the prefix cache"
        return f"{line}; recorded, no model was asked" if self.recorded else line


def named(specs: Sequence[S], names: Sequence[str], file: Path) -> list[S]:
    """Return the judges in a study's file, or the named ones. Raises StudyError if there are none."""
    if not specs:
        raise StudyError(f"{file}: names no judges; add them under `judges` (docs/judges.md, docs/human.md)")
    judges = [spec.name for spec in specs]
    if unknown := [name for name in names if name not in judges]:
        raise StudyError(f"{file}: no judge {unknown[0]!r}; {nearest(unknown[0], judges)}")
    return [spec for spec in specs if not names or spec.name in names]


def questionnaires(study: Study, names: Sequence[str] = (), **changes: object) -> list[Questionnaire]:
    """Return each of the study's judges, or the named ones, with `changes` of their settings.

    Raises StudyError for questions that a judge cannot be asked.
    """
    rubric = load_rubric(study)
    specs = named(study.judges, names, study.file)
    return [Questionnaire(spec.model_copy(update=changes), rubric, study) for spec in specs]


def judge(study: Study, names: Sequence[str] = (), outputs: int = 0, *, again: bool = False) -> list[JudgeRun]:
    """Have the study's judges, or the named ones, rate the pairs that they have not rated.

    `outputs` are how many of each transformation (`annotation.judges.pool.draw_judged`). Writes
    `judgements/judged.parquet` and `judgements/<judge>.parquet`. Raises StudyError for judges that cannot be asked the
    study's questions, ServiceError if a judge cannot work; answers received before stay.
    """
    of_judges = questionnaires(study, names)
    with only_one(study.scratch / ".judging.lock", f"judges are running for {study.name!r}"):
        return ask_each(progress_of(study, of_judges, draw_judged(study, outputs), study.judgements, again=again))


def ask_each(progresses: Iterable[PromptedAnswers[Any, Any]]) -> list[JudgeRun]:
    """Ask each model its unanswered prompts, one model after another, since each needs the whole machine."""
    done = []
    for progress in progresses:
        try:
            done.append(uvloop.run(progress.ask()))
        finally:
            progress.close()
    return done


def progress_of(
    study: Study, asked_judges: Sequence[Questionnaire], pairs: Sequence[JudgedPair], folder: Path, *,
    again: bool = False,
) -> Iterator[JudgeProgress]:  # fmt: skip
    """Yield each judge's answers to pairs, and its open questions; each is opened in turn, as it may be large."""
    for questionnaire in asked_judges:
        yield JudgeProgress(study, questionnaire, pairs, folder, again=again)


def read_judgements(study: Study, names: Sequence[str] = ()) -> pd.DataFrame:
    """Read the judgements that a study wants, of all judges or of some.

    Columns: those of `Judgement`, judge, and `OF_PAIR` and generator of the pairs.

    Judgements by other prompts or settings, or of pairs no longer judged, are left out. Raises DataError if a judge's
    table is missing, damaged, or not as it was written.
    """
    progresses = progress_of(study, questionnaires(study, names), read_judged(study), study.judgements)
    frames = [progress.frame() for progress in progresses]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def forecast(
    progresses: Iterable[PromptedAnswers[Any, Any]], rate: float | None, who: str = "judge", noun: str = "judgements"
) -> str:
    """Return a row for each model: answers there and left, tokens in and out; with `rate` (a second) the time.

    A token is taken for 4 characters; servers compute a beginning that many prompts share once.
    """
    rows, number = list[list[str]](), 0
    for progress in progresses:
        tokens = 0, 0
        if not progress.spec.engine.recordings:
            characters = sum(len(asking.message) for asking in progress.jobs())
            tokens, number = (round(characters / CHARACTERS_A_TOKEN), progress.tokens_out), number + progress.todo
        counts = (progress.wanted - progress.todo, progress.todo, *tokens)
        rows.append([progress.spec.name, *(f"{count:,}" for count in counts)])
    table = cli.columns([who, "stored", "to ask", "tokens in, about", "tokens out, about"], rows)
    if not number:
        return f"{table}\n\nno question is left to ask a model"
    if rate is None:
        return f"{table}\n\nadd --rate N ({noun} a second) to estimate the time"
    return f"{table}\n\nabout {duration(round(number / rate))} at {rate:g} {noun} a second"
