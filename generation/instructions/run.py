"""Every wording that a study wants: asked of its generator where it is not there yet, and read from people's file.

Each reply is in a journal when it was received, so `kill -9` loses only what was in flight.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pydantic import Field
from tqdm import tqdm

from generation.generators import Attempt, Completion
from generation.generators.chat import Chat
from generation.instructions.calls import KEY, Call, InvalidReplyError, calls_of, maker_hash, read_reply, schema
from generation.instructions.records import REMOVED, REPLIES, Instruction, RemovedWording, Reply
from generation.instructions.tasks import DatasetDescription, asked_of, tasks_of
from generation.instructions.wordings import by_people, human_wording, machine_wording, one_of_each
from generation.work import all_through, show
from plumbline.errors import DataError, StudyError, TextFailedError, TextRefusedError, TextUnansweredError
from plumbline.file_hashes import cached_file_hash
from plumbline.journal import Journal, record_lines
from plumbline.manifest import refuse_replaced_table, write_kept_table
from plumbline.records import Record
from plumbline.store import only_one, read_records, write_json
from plumbline.study import Study
from plumbline.study.engines import Sampling
from plumbline.study.subject import INSTRUCTIONS

COMMAND = "generation.instructions"


class Replies:
    """A study's replies; with `again` failed calls are asked again, unanswered ones always are."""

    def __init__(self, study: Study, calls: Sequence[Call], *, again: bool = False) -> None:
        self.calls, self._study = calls, study
        self.journal = Journal((study.scratch / REPLIES).with_suffix(".journal"))
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        self._rows = {row.key: row for row in self._read()}

    def todo(self) -> list[Call]:
        """The calls that are left."""
        return [call for call in self.calls if call.key not in self._rows or self._rows[call.key].status in self._again]

    def add(self, reply: Reply) -> None:
        """Note a reply; it is in the journal when this returns."""
        self.journal.append(reply)
        self._rows[reply.key] = reply

    def settle(self) -> None:
        """Turn the journal into the table: wanted replies first, in the calls' order."""
        if (self._study.folder / REPLIES).exists() and not self.journal.path.exists():
            return
        wanted = [call.key for call in self.calls if call.key in self._rows]
        order = [*wanted, *(key for key in self._rows if key not in set(wanted))]
        write_kept_table(self._study, REPLIES, [self._rows[key] for key in order], Reply)
        self.journal.remove()

    def of(self, call: Call) -> Reply | None:
        """The reply to a call."""
        return self._rows.get(call.key)

    def _read(self) -> Iterator[Reply]:
        """What is there; later ones go before earlier ones."""
        command = self._study.command(COMMAND)
        if (self._study.folder / REPLIES).exists():
            refuse_replaced_table(self._study, REPLIES, command)
            yield from read_records(self._study.folder / REPLIES, Reply, command)
        yield from (Reply.model_validate(row) for _, row in self.journal.lines(Reply))


class WordingClient(Protocol):
    """Who answers calls."""

    @property
    def concurrency(self) -> int:
        """How many calls it wants in flight at once."""

    @property
    def repeatable(self) -> bool:
        """Whether another attempt can get another answer."""

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """One attempt at an answer; raises as `Generator.transform`."""

    async def close(self) -> None:
        """Let go of connections and memory."""


@dataclass
class WordingChatClient:
    """A chat model whose answers are held to a schema, where it takes one."""

    chat: Chat
    name: str
    repeatable: bool = True
    warned: bool = False  #: whether it was said that it takes no schema

    @property
    def concurrency(self) -> int:
        """The model's."""
        return self.chat.concurrency

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """What the model says; one that refuses the schema is asked without it."""
        held = self.chat.schema
        try:
            return await self.chat.ask(call.message, attempt)
        except TextRefusedError as error:
            if held is None:
                raise
            refused = error
        self.chat.schema = None
        try:
            answer = await self.chat.ask(call.message, attempt)
        except BaseException:
            self.chat.schema = held  # it was not the schema that was refused
            raise
        if not self.warned:
            print(f"{self.name} takes no JSON schema ({refused}): its answers are only checked when they are here")
        self.warned = True
        return answer

    async def close(self) -> None:
        """Close the model's."""
        await self.chat.close()


class RecordedReply(Record):
    """A line of a file of replies."""

    context: str = Field(description="task_type, description or language")
    task: str = Field(min_length=1, description="the data set's name; with task_type the type's")
    prompts: tuple[str, ...] = Field(description="the wordings")


@dataclass(frozen=True)
class RecordedReplies:
    """Replies of a file, by context and task; a call that has none stays without an answer."""

    replies: Mapping[tuple[str, str], RecordedReply]
    repeatable: bool = False
    concurrency: int = 1

    @classmethod
    def read(cls, path: Path) -> RecordedReplies:
        """Those of a JSONL file. Raises DataError with file and line."""
        recorded: dict[tuple[str, str], RecordedReply] = {}
        for number, line in record_lines(path, RecordedReply):
            if (line.context, line.task) in recorded:
                raise DataError(f"{path}: line {number}: a second one for {line.context}, {line.task}; keep one")
            recorded[line.context, line.task] = line
        return cls(recorded)

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """The recorded reply, as a model would give it. Raises TextUnansweredError where there is none."""
        reply = self.replies.get((call.context, call.task or call.task_type))
        if reply is None:
            raise TextUnansweredError(f"nothing recorded for {call.context} of {call.task or call.task_type}")
        return Completion(json.dumps({KEY: list(reply.prompts)}, ensure_ascii=False))

    async def close(self) -> None:
        """Nothing to let go of."""


def start(study: Study, number: int) -> WordingClient:
    """Who answers for the study's generator, ready; must be called in the event loop that will ask."""
    spec = study.generator
    chat: Chat
    if spec.kind == "recorded":
        return RecordedReplies.read(study.resolve(spec.path))
    if spec.kind == "vllm":
        from generation.generators.vllm import VllmEngine  # noqa: PLC0415 (lives on the GPU host)

        chat = VllmEngine.load(spec, study, {})
    elif spec.kind == "openai":
        from generation.generators.openai import ChatServer  # noqa: PLC0415 (extra `generation`)

        chat = ChatServer.at(spec, study, {})
    else:
        raise StudyError(f"{study.file}: no generator words instructions; add `generator`, or write `contexts: []`")
    chat.schema = schema(number)
    return WordingChatClient(chat, spec.model)


@dataclass(frozen=True)
class WordingRun:
    """What a run has: the wordings, those that others stand for, and what became of the calls."""

    wordings: Sequence[Instruction]
    removed: Sequence[RemovedWording]
    counts: Counter[str]  #: calls: ok, failed, unanswered, and reused
    trouble: Sequence[Reply]  #: the replies without wordings


def word_instructions(study: Study, *, again: bool = False) -> WordingRun:
    """Ask for the wordings that are missing; writes `instructions/prompts.parquet`, `removed.json`, `replies.parquet`.

    `again` asks for failed calls too. Raises StudyError for a study of another subject, DataError for people's file,
    ServiceError for a generator that cannot work; what was received before stays.

    Source: arXiv 2605.22544, section 2 (three contexts, five wordings a call, structured output).
    """
    subject = asked_of(study)
    with only_one(study.scratch / ".generation.lock", f"another run is generating for {study.name!r}"):
        tasks, calls = tasks_of(study), calls_of(study)
        people = list(_by_people(study, "prompts", tasks))  # a wrong row is told before anything is asked
        items = list(_by_people(study, "known", tasks))
        replies = Replies(study, calls, again=again)
        todo = replies.todo()
        counts: Counter[str] = Counter(reused=len(calls) - len(todo))
        try:
            if todo:
                asyncio.run(_ask_all(study, replies, todo, counts))
        finally:
            replies.journal.close()
        replies.settle()
        chosen = one_of_each([*_by_machine(study, replies, tasks), *people], subject.near)
        _refuse_known(study, items, chosen.wordings)
        write_json(study.folder / REMOVED, chosen.removed)
        write_kept_table(study, INSTRUCTIONS, [*chosen.wordings, *items], Instruction)
    trouble = [reply for call in calls if (reply := replies.of(call)) is not None and reply.status != "ok"]
    return WordingRun(chosen.wordings, chosen.removed, counts, trouble)


async def _ask_all(study: Study, replies: Replies, todo: Sequence[Call], counts: Counter[str]) -> None:
    asker = start(study, todo[0].number)
    try:
        with tqdm(total=len(todo), unit="call", desc="wording instructions") as bar:

            async def ask(call: Call) -> None:
                reply = await ask_one(study, asker, call)
                replies.add(reply)
                show(bar, counts, reply.status)

            await all_through(iter(todo), ask, min(asker.concurrency, len(todo)), [replies.journal])
    finally:
        await asker.close()


async def ask_one(study: Study, asker: WordingClient, call: Call) -> Reply:
    """Ask until a reply is valid or the attempts of `retry` are used up; the record says which, and why."""
    subject, spec = asked_of(study), study.generator
    sampling = spec.sampling if isinstance(spec.sampling, Sampling) else Sampling()
    attempt, raw, reason, prompts, status = Attempt(1, subject.seed, sampling), "", "", tuple[str, ...](), "failed"
    while True:
        try:
            answer = await asker.answer(call, attempt)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            received, reason = attempt.number - 1, str(error)
            break
        raw, received = answer.text, attempt.number
        try:
            prompts, status, reason = read_reply(raw, call.number), "ok", ""
            break
        except InvalidReplyError as error:
            reason = f"{error}{' (it was cut off)' if answer.cut_off else ''}"
        if attempt.number >= study.retry.attempts or not asker.repeatable:
            break
        attempt = attempt.next(subject.seed, study.retry, cut_off=answer.cut_off)
    return Reply.model_validate(
        {
            "key": call.key, "context": call.context, "task": call.task, "task_type": call.task_type,
            "prompts": prompts, "raw": raw, "status": status, "reason": reason, "attempts": received,
            "model": spec.model, "generator_kind": spec.kind, "generator_hash": maker_hash(study),
            "prompt_hash": call.prompt_hash, "finished_at": datetime.now(UTC),
        }
    )  # fmt: skip


def _by_machine(study: Study, replies: Replies, tasks: Sequence[DatasetDescription]) -> Iterator[Instruction]:
    words = {task.name: task.type_words for task in tasks} | {task.task_type: task.type_words for task in tasks}
    described = {task.name: _said_of(task) for task in tasks}
    for call in replies.calls:
        reply = replies.of(call)
        for text in reply.prompts if reply else ():
            yield machine_wording(
                text, f"from_{call.context}", context=call.context, task=call.task, task_type=call.task_type,
                task_words=described.get(call.task, words[call.task_type]), language=asked_of(study).language,
                generator=study.generator.model, generator_kind=study.generator.kind,
                generator_hash=maker_hash(study), prompt_hash=call.prompt_hash, seed=asked_of(study).seed,
            )  # fmt: skip


def _by_people(study: Study, key: str, tasks: Sequence[DatasetDescription]) -> Iterator[Instruction]:
    subject = asked_of(study)
    path = getattr(subject, key)
    if not path:
        return
    described = {task.name: _said_of(task) for task in tasks}
    types: dict[str, str] = {task.task_type: task.type_words for task in tasks}
    group = subject.groups[0] if key == "known" else "from_people"  # raters are told no group, and this one has no part
    for row in by_people(study, key, tasks):
        yield human_wording(
            row.text, group, task=row.task, task_type=row.task_type, language=subject.language, right=row.right,
            task_words=described[row.task] if row.task else types[row.task_type],
            generator_hash=cached_file_hash(study.resolve(path)),
        )  # fmt: skip


def _refuse_known(study: Study, items: Sequence[Instruction], machine: Sequence[Instruction]) -> None:
    """Raise DataError for a known item that raters would read as a wording, too: nobody would label that then."""
    wordings = {(wording.text.casefold(), wording.task_words) for wording in machine}
    for item in items:
        if (item.text.casefold(), item.task_words) in wordings:
            file = study.resolve(asked_of(study).known)
            raise DataError(f"{file}: {item.text[:60]!r} is a wording of that task, too; take it out")


def _said_of(task: DatasetDescription) -> str:
    """What raters read of a data set."""
    return f"{task.type_words} {task.description}".strip()
