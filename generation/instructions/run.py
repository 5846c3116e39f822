"""Every wording that a study wants: asked of its generator where it is not there yet, and read from people's file.

Each reply is in a journal when it was received, so `kill -9` loses only what was in flight.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tqdm import tqdm

from generation.generators import Attempt
from generation.instructions.askers import Asker, start
from generation.instructions.calls import Call, calls_of, maker_hash
from generation.instructions.kept import Replies
from generation.instructions.people import by_people
from generation.instructions.records import REMOVED, Instruction, Removed, Reply
from generation.instructions.replies import InvalidReplyError, read_reply
from generation.instructions.tasks import TaskWords, asked_of, tasks_of
from generation.instructions.wordings import human_wording, machine_wording, one_of_each
from generation.work import all_through, show
from plumbline.errors import DataError, TextFailedError, TextUnansweredError
from plumbline.file_hashes import cached_file_hash
from plumbline.manifest import write_kept_table
from plumbline.store import only_one, write_json
from plumbline.study import Study
from plumbline.study.generator import Sampling
from plumbline.study.subject import INSTRUCTIONS


@dataclass(frozen=True)
class Worded:
    """What a run has: the wordings, those that others stand for, and what became of the calls."""

    kept: Sequence[Instruction]
    removed: Sequence[Removed]
    counts: Counter[str]  #: calls: ok, failed, unanswered, and reused
    trouble: Sequence[Reply]  #: the replies without wordings


def word_instructions(study: Study, *, again: bool = False) -> Worded:
    """Ask for the wordings that are missing; writes `instructions/prompts.parquet`, `removed.json`, `replies.parquet`.

    `again` asks for failed calls too. Raises StudyError for a study of another subject, DataError for people's file,
    ServiceError for a generator that cannot work; what was received before stays.

    Source: arXiv 2605.22544, section 2 (three contexts, five wordings a call, structured output).
    """
    subject = asked_of(study)
    with only_one(study.scratch / ".generation.lock", f"another run is generating for {study.name!r}"):
        tasks, calls = tasks_of(study), calls_of(study)
        people = list(_by_people(study, "prompts", tasks))  # a wrong row is told before anything is asked
        known = list(_by_people(study, "known", tasks))
        replies = Replies(study, calls, again=again)
        todo = replies.todo()
        counts: Counter[str] = Counter(reused=len(calls) - len(todo))
        try:
            if todo:
                asyncio.run(_ask_all(study, replies, todo, counts))
        finally:
            replies.journal.close()
        replies.settle()
        found = one_of_each([*_by_machine(study, replies, tasks), *people], subject.near)
        _refuse_known(study, known, found.kept)
        write_json(study.folder / REMOVED, found.removed)
        write_kept_table(study, INSTRUCTIONS, [*found.kept, *known], Instruction)
    trouble = [reply for call in calls if (reply := replies.of(call)) is not None and reply.status != "ok"]
    return Worded(found.kept, found.removed, counts, trouble)


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


async def ask_one(study: Study, asker: Asker, call: Call) -> Reply:
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


def _by_machine(study: Study, replies: Replies, tasks: Sequence[TaskWords]) -> Iterator[Instruction]:
    words = {one.name: one.type_words for one in tasks} | {one.task_type: one.type_words for one in tasks}
    described = {one.name: _said_of(one) for one in tasks}
    for call in replies.calls:
        reply = replies.of(call)
        for text in reply.prompts if reply else ():
            yield machine_wording(
                text, f"from_{call.context}", context=call.context, task=call.task, task_type=call.task_type,
                task_words=described.get(call.task, words[call.task_type]), language=asked_of(study).language,
                generator=study.generator.model, generator_kind=study.generator.kind,
                generator_hash=maker_hash(study), prompt_hash=call.prompt_hash, seed=asked_of(study).seed,
            )  # fmt: skip


def _by_people(study: Study, key: str, tasks: Sequence[TaskWords]) -> Iterator[Instruction]:
    subject = asked_of(study)
    path = getattr(subject, key)
    if not path:
        return
    described = {one.name: _said_of(one) for one in tasks}
    types: dict[str, str] = {one.task_type: one.type_words for one in tasks}
    group = subject.groups[0] if key == "known" else "from_people"  # raters are told no group, and this one has no part
    for one in by_people(study, key, tasks):
        yield human_wording(
            one.text, group, task=one.task, task_type=one.task_type, language=subject.language, right=one.right,
            task_words=described[one.task] if one.task else types[one.task_type],
            generator_hash=cached_file_hash(study.resolve(path)),
        )  # fmt: skip


def _refuse_known(study: Study, known: Sequence[Instruction], kept: Sequence[Instruction]) -> None:
    """Raise DataError for a known item that raters would read as a wording, too: nobody would label that then."""
    wordings = {(one.text.casefold(), one.task_words) for one in kept}
    for one in known:
        if (one.text.casefold(), one.task_words) in wordings:
            raise DataError(
                f"{study.resolve(asked_of(study).known)}: {one.text[:60]!r} is a wording of that task, too; take it out"
            )


def _said_of(task: TaskWords) -> str:
    """What raters read of a data set."""
    return f"{task.type_words} {task.description}".strip()
