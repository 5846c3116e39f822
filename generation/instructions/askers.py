"""Who words instructions: vLLM in this process, a chat server, or a file of replies that were recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import Field

from generation.generators import Attempt, Completion
from generation.generators.chat import Chat
from generation.instructions.calls import Call
from generation.instructions.replies import KEY, schema
from plumbline.errors import DataError, StudyError, TextRefusedError, TextUnansweredError
from plumbline.json_lines import record_lines
from plumbline.records import Record
from plumbline.study import Study
from plumbline.study.generator import OpenAIGenerator, RecordedGenerator, VllmGenerator


class Asker(Protocol):
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
class ChatAsker:
    """A chat model whose answers are held to a schema, where it takes one."""

    chat: Chat
    name: str
    repeatable: bool = True
    told: bool = False  #: whether it was said that it takes no schema

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
        if not self.told:
            print(f"{self.name} takes no JSON schema ({refused}): its answers are only checked when they are here")
        self.told = True
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
        found: dict[tuple[str, str], RecordedReply] = {}
        for number, one in record_lines(path, RecordedReply):
            if (one.context, one.task) in found:
                raise DataError(f"{path}: line {number}: a second one for {one.context}, {one.task}; keep one")
            found[one.context, one.task] = one
        return cls(found)

    async def answer(self, call: Call, attempt: Attempt) -> Completion:
        """The recorded reply, as a model would give it. Raises TextUnansweredError where there is none."""
        found = self.replies.get((call.context, call.task or call.task_type))
        if found is None:
            raise TextUnansweredError(f"nothing recorded for {call.context} of {call.task or call.task_type}")
        return Completion(json.dumps({KEY: list(found.prompts)}, ensure_ascii=False))

    async def close(self) -> None:
        """Nothing to let go of."""


def start(study: Study, number: int) -> Asker:
    """Who answers for the study's generator, ready; must be called in the event loop that will ask."""
    spec = study.generator
    chat: Chat
    if isinstance(spec, RecordedGenerator):
        return RecordedReplies.read(study.resolve(spec.path))
    if isinstance(spec, VllmGenerator):
        from generation.generators.vllm import VllmEngine  # noqa: PLC0415 (lives on the GPU host)

        chat = VllmEngine.load(spec, study, {})
    elif isinstance(spec, OpenAIGenerator):
        from generation.generators.openai import ChatServer  # noqa: PLC0415 (extra `generation`)

        chat = ChatServer.at(spec, study, {})
    else:
        raise StudyError(f"{study.file}: no generator words instructions; add `generator`, or write `contexts: []`")
    chat.schema = schema(number)
    return ChatAsker(chat, spec.model)
