"""Make the wordings that a study wants: ask its generator for missing ones, and read people's file.

Each reply is written to a journal when it is received, so `kill -9` loses only calls in flight.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from generation.instructions.wordings import (
    COMMAND,
    KEY,
    REMOVED,
    REPLIES,
    Call,
    Instruction,
    InvalidReplyError,
    RemovedWording,
    Reply,
    asked_of,
    by_people,
    calls_of,
    maker_hash,
    one_of_each,
    read_reply,
    schema,
    tasks_of,
    worded,
)
from plumbline.cli import StudyOptions
from plumbline.errors import DataError, StudyError, TextRefusedError, TextUnansweredError, read_each
from plumbline.journal import record_lines
from plumbline.manifest import Manifest, stage
from plumbline.models.asking import AnswerTable
from plumbline.models.chat import Attempt, Chat, Client, Completion, ask_until, open_chat
from plumbline.records import Record
from plumbline.store import only_one, read_records, write_json
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS
from plumbline.study.subjects import InstructionsSubject
from plumbline.study_files import checked


class Replies(AnswerTable[Call, Reply]):
    """A study's replies to its calls."""

    def __init__(self, study: Study, calls: Sequence[Call], *, again: bool = False) -> None:
        self.calls = calls
        super().__init__(study, REPLIES, Reply, lambda: ((call.key, call) for call in calls), COMMAND, again=again)

    async def ask(self) -> Counter[str]:
        """Ask the study's generator everything left."""
        return await self.ask_left(start(self._study, self.calls[0].number), "call", "wording instructions")

    async def answer(self, client: WordingClient, job: Call) -> Reply:
        """Ask until a reply is valid or the attempts are used up; return the record, with the reason."""
        spec = self._study.generator

        def fault(answer: Completion) -> str:
            try:
                read_reply(answer.text, job.number)
            except InvalidReplyError as error:
                return f"{error}{' (the answer was cut off)' if answer.cut_off else ''}"
            return ""

        first = Attempt(1, InstructionsSubject.seed, spec.sampling)
        ask = functools.partial(client.answer, job)
        outcome = await ask_until(ask, lambda answer: bool(fault(answer)), first)
        reason, status, answer = outcome.reason, outcome.status, outcome.answer
        if answer is not None and not status:
            reason = fault(answer)
            status = "failed" if reason else "ok"
        return Reply.model_validate(
            {
                "key": job.key, "context": job.context, "task": job.task, "task_type": job.task_type,
                "raw": answer.text if answer else "", "status": status, "reason": reason,
                "attempts": outcome.attempts, "model": spec.model, "finished_at": datetime.now(UTC),
            }
        )  # fmt: skip


class WordingChatClient(Client):
    """A chat model whose answers must follow a schema, if it accepts one."""

    def __init__(self, chat: Chat, name: str) -> None:
        self.chat, self.name, self.concurrency = chat, name, chat.concurrency
        self.warned = False  #: whether the user was told that it accepts no schema

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """Return the model's answer; a model that refuses the schema is asked without it."""
        wanted_schema = self.chat.schema
        try:
            return await self.chat.ask(call.message, attempt)
        except TextRefusedError as error:
            if wanted_schema is None:
                raise
            refused = error
        self.chat.schema = None
        try:
            answer = await self.chat.ask(call.message, attempt)
        except BaseException:
            self.chat.schema = wanted_schema  # the schema was not the reason
            raise
        if not self.warned:
            print(f"{self.name} accepts no JSON schema ({refused}); its answers are checked after they arrive")
        self.warned = True
        return answer

    async def close(self) -> None:
        """Close the chat model's connections."""
        await self.chat.close()


class RecordedReply(Record):
    """A line of a file of replies."""

    context: str = Field(description="task_type, description or language")
    task: str = Field(min_length=1, description="the data set's name; for task_type, the type's name")
    prompts: tuple[str, ...] = Field(description="the wordings")


@dataclass
class RecordedReplies(Client):
    """Replies of a file, by context and task; a call without a reply stays unanswered."""

    replies: Mapping[tuple[str, str], RecordedReply]

    @classmethod
    def read(cls, path: Path) -> RecordedReplies:
        """Read a JSONL file of replies. Raises DataError with file and line."""
        recorded: dict[tuple[str, str], RecordedReply] = {}

        def read(line: tuple[int, RecordedReply]) -> None:
            number, reply = line
            if recorded.setdefault((reply.context, reply.task), reply) is not reply:
                raise DataError(
                    f"{path}: line {number}: a second reply for {reply.context}, {reply.task}; keep only one"
                )

        read_each(record_lines(path, RecordedReply), read)
        return cls(recorded)

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """Return the recorded reply as a model would give it. Raises TextUnansweredError without one."""
        reply = self.replies.get((call.context, call.task or call.task_type))
        if reply is None:
            raise TextUnansweredError(f"no recording for {call.context} of {call.task or call.task_type}")
        return Completion(json.dumps({KEY: list(reply.prompts)}, ensure_ascii=False), repeatable=False)


WordingClient = WordingChatClient | RecordedReplies


def start(study: Study, number: int) -> WordingClient:
    """Return the study's generator, ready to answer; call it in the event loop that will ask."""
    spec = study.generator
    try:
        spec.refuse_absence("a model proposes wordings, unless you write `contexts: []`")
    except StudyError as error:
        raise StudyError(f"{study.file}: {error}") from None

    def asked() -> WordingClient:
        chat = open_chat(spec, study)
        chat.schema = schema(number)
        return WordingChatClient(chat, spec.model)

    return spec.source(asked, lambda path: RecordedReplies.read(study.resolve(path)))


@dataclass(frozen=True)
class WordingRun:
    """The result of a run: the wordings, those removed in their favour, and the calls' counts."""

    wordings: Sequence[Instruction]
    removed: Sequence[RemovedWording]
    counts: Counter[str]  #: calls: ok, failed, unanswered, and reused
    trouble: Sequence[Reply]  #: the replies without wordings


def word_instructions(study: Study, *, again: bool = False) -> WordingRun:
    """Ask for the missing wordings; write `instructions/prompts.parquet`, `removed.json`, `replies.parquet`.

    `again` asks for failed calls too. Raises StudyError for a study of another subject, DataError for people's file,
    ServiceError for a generator that cannot work; replies received before stay.

    Source: arXiv 2605.22544, section 2 (three contexts, five wordings a call, structured output).
    """
    subject = asked_of(study)
    with only_one(study.scratch / ".generation.lock", f"another run is generating for {study.name!r}"):
        maker, tasks = maker_hash(study.generator, study.resolve), tasks_of(subject, study.datasets, study.file)
        calls = calls_of(subject, tasks, maker)
        files = {  # a wrong row is reported before any call; raters see no group, so a known item's plays no part
            key: list(by_people(study.resolve(path), key, group, tasks)) if path else []
            for key, path, group in (
                ("prompts", subject.prompts, "from_people"), ("known", subject.known, subject.groups[0]),
            )
        }  # fmt: skip
        table = Replies(study, calls, again=again)
        counts: Counter[str] = Counter(reused=table.wanted - table.todo)
        try:
            if table.todo:
                counts.update(asyncio.run(table.ask()))
            else:
                table.settle()
            replies = {reply.key: reply for reply in read_records(table.path, Reply, study.command(COMMAND))}
        finally:
            table.close()
        machines = [
            worded(text, f"from_{call.context}", task=call.task, task_type=call.task_type, task_words=call.task_words,
                   generator=study.generator.model)
            for call in calls
            if (reply := replies.get(call.key)) is not None and reply.status == "ok"
            for text in read_reply(reply.raw, call.number)
        ]  # fmt: skip
        wordings, removed = one_of_each([*machines, *files["prompts"]], subject.near)
        read = {(wording.text.casefold(), wording.task_words) for wording in wordings}
        for item in files["known"]:  # nobody would label a wording that is known too
            if (item.text.casefold(), item.task_words) in read:
                fault = f"{item.text[:60]!r} is also a wording of its task; remove it from the file"
                raise DataError(f"{study.resolve(subject.known)}: {fault}")
        write_json(study.folder / REMOVED, removed)
        Manifest.of(study).write_table(INSTRUCTIONS, [*wordings, *files["known"]], Instruction)
    trouble = [reply for call in calls if (reply := replies.get(call.key)) is not None and reply.status != "ok"]
    return WordingRun(wordings, removed, counts, trouble)


def make_wordings(*, options: StudyOptions, again: bool = False, dry_run: bool = False) -> None:
    """Make wordings of instructions for people to label.

    Embedding models read instructions before a text. A language model proposes wordings of them, or people list them in
    a file. You can stop the command at any time; run it again to continue.

    Example: plumbline instructions --study studies/instructions.yaml

    Args:
        options: The study.
        again: Also repeat calls that got no valid reply.
        dry_run: Show how many calls are left, and make no call.
    """
    study = checked(options)
    subject = asked_of(study)
    if dry_run:
        tasks = tasks_of(subject, study.datasets, study.file)
        calls = calls_of(subject, tasks, maker_hash(study.generator, study.resolve))
        todo = list(Replies(study, calls, again=again).jobs())
        wanted, characters = sum(call.number for call in todo), sum(len(call.message) for call in todo)
        print(f"{study.name}: {len(calls)} calls, {len(todo)} left, for {wanted} wordings; {characters:,} characters"
              f" are sent to {study.generator.model}")  # fmt: skip
        return
    outputs = [study.folder / name for name in (INSTRUCTIONS, REMOVED, REPLIES)]
    inputs = [study.resolve(path) for path in (subject.prompts, subject.known) if path]
    with stage(study, "instructions", inputs, outputs):
        run = word_instructions(study, again=again)
    counts = run.counts
    calls_made = f"{counts['ok']} calls answered, {counts['failed']} failed, {counts['unanswered']} unanswered"
    print(f"{study.name}: {calls_made}, {counts['reused']} already stored; {len(run.wordings)} wordings"
          f" -> {study.folder / INSTRUCTIONS}")  # fmt: skip
    for group, number in Counter(wording.group for wording in run.wordings).items():
        print(f"  {group}: {number}")
    if run.removed:
        print(f"  {len(run.removed)} removed, equal or nearly equal to others ({REMOVED}):")
    texts = {wording.prompt_id: wording.text for wording in run.wordings}
    for wording in run.removed[:5]:
        print(f"    {wording.text[:60]!r} is like {texts[wording.kept][:60]!r}")
    for reply in run.trouble:
        print(f"  no wordings from {reply.context} of {reply.task or reply.task_type}: {reply.reason}")
    if run.trouble:
        print("  (the next run repeats unanswered calls, with --again also failed calls)")
