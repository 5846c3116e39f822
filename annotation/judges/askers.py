"""Who answers for a judge: vLLM in this process, a chat server, or a file; what each cannot do is said aloud.

Reasoning models are told not to think (`enable_thinking: false` in their chat templates). Where a server does not take
that, what is thought aloud is cut off from the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from annotation.judges.prompts import JudgeMessage, Questionnaire
from annotation.judges.replies import RecordedJudgements, load_recorded
from generation.generators import Attempt, Completion
from generation.generators.chat import Chat
from plumbline.errors import ServiceError, TextFailedError, TextRefusedError, TextUnansweredError
from plumbline.study import Study
from plumbline.study.engines import AnnotatorSpec, EngineSpec, JudgeSpec

if TYPE_CHECKING:
    from generation.generators.openai import ChatServer

_QUIET = {"enable_thinking": False}
_WAITING = 8  # batches in flight: one whose answers are a token long ends all at once, and the next must be there


class JudgeClient(Protocol):
    """Who answers for a judge."""

    @property
    def concurrency(self) -> int:
        """How many questions it wants in flight at once."""

    @property
    def tells_labels(self) -> bool:
        """Whether answers come with the probabilities of the points."""

    @property
    def repeatable(self) -> bool:
        """Whether another attempt can get another answer."""

    async def answer(self, asking: JudgeMessage, attempt: Attempt, *, labels: bool) -> Completion:
        """One attempt at an answer, with `labels` its first token alone; raises as `Generator.transform`."""

    async def close(self) -> None:
        """Let go of connections and memory."""


@dataclass
class JudgeChatClient:
    """A chat model; `sent` and `cached` count tokens of prompts, as far as it tells them."""

    chat: Chat
    tells_labels: bool
    repeatable: bool = True
    sent: int = 0
    cached: int = 0

    @property
    def concurrency(self) -> int:
        """The model's."""
        return self.chat.concurrency

    async def answer(self, asking: JudgeMessage, attempt: Attempt, *, labels: bool) -> Completion:
        """What the model says to a question about a pair."""
        return await self.chat_answer(asking.message, attempt, asking.scale.labels if labels else ())

    async def chat_answer(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """What the model says to a message."""
        answer = await self.chat.ask(message, attempt, labels)
        if answer.cached is not None:
            self.sent, self.cached = self.sent + answer.sent, self.cached + answer.cached
        return answer

    async def close(self) -> None:
        """Close the model's."""
        await self.chat.close()


async def start(study: Study, questionnaire: Questionnaire, labels: Sequence[str]) -> JudgeClient:
    """Who answers for a judge, ready. `labels` are the points whose probabilities will be asked for; none are for text.

    Says on the terminal what it cannot do. Raises StudyError for a label that is several tokens, ServiceError where
    there is nobody to ask.
    """
    spec = questionnaire.spec
    if spec.kind == "recorded":
        return RecordedJudgements(load_recorded(study.resolve(spec.recording)))
    return await start_chat(study, spec, labels)


async def start_chat(study: Study, spec: JudgeSpec | AnnotatorSpec, labels: Sequence[str] = ()) -> JudgeChatClient:
    """A model that is asked by messages, ready; says and raises as `start`."""
    if spec.kind == "openai":
        return await _server(study, spec, labels)
    from generation.generators.vllm import VllmEngine  # noqa: PLC0415 (lives on the GPU host)

    model = spec.engine
    if labels and model.vllm.concurrency is None:
        waiting = _WAITING * model.vllm.max_num_seqs * model.vllm.data_parallel_size
        settings = {**model.settings, "concurrency": waiting}
        model = EngineSpec(kind="vllm", model=model.model, revision=model.revision, settings=settings)
    engine = VllmEngine.load(model, study, {}, _QUIET)
    try:
        for label in labels:
            engine.label_token(label)
    except BaseException:
        await engine.close()
        raise
    return JudgeChatClient(engine, bool(labels))


async def _server(study: Study, spec: JudgeSpec | AnnotatorSpec, labels: Sequence[str]) -> JudgeChatClient:
    """A chat server, asked once what it takes: silence about thinking, and probabilities."""
    from generation.generators.openai import ChatServer  # noqa: PLC0415 (extra `generation`)

    where = "subject.models" if isinstance(spec, AnnotatorSpec) else "judges"
    server = ChatServer.at(spec.engine, study, {}, f"{where} ({spec.name})")
    extras: tuple[dict[str, Any], ...] = ({"chat_template_kwargs": _QUIET}, {})
    attempt = Attempt(1, spec.seed, spec.sampling)
    refused = ""
    try:
        for wanted_labels, server.extra in itertools.product((labels, ()) if labels else ((),), extras):
            try:
                answer = await _probe(server, attempt, wanted_labels)
            except TextRefusedError as error:
                refused = str(error)
                continue
            if wanted_labels and answer.labels is None:
                continue
            _say(spec.name, labels and not wanted_labels, not server.extra)
            return JudgeChatClient(server, bool(wanted_labels))
        raise ServiceError(f"{spec.engine.base_url}: {refused}; correct {spec.name!r} in the study")
    except BaseException:
        await server.close()
        raise


async def _probe(server: ChatServer, attempt: Attempt, labels: Sequence[str]) -> Completion:
    """The server's answer to a first question; replies that are no chat answers end nothing, unless they all are.

    Raises TextRefusedError for what the server does not take, ServiceError where it does not answer.
    """
    from generation.generators.openai import STRANGE, StrangeAnswerError  # noqa: PLC0415 (extra `generation`)

    for number in range(1, STRANGE + 1):
        try:
            return await server.ask("Answer with the digit 1 and nothing else.", attempt, labels)
        except TextRefusedError:
            raise
        except TextFailedError as error:
            passing = isinstance(error, TextUnansweredError) and not isinstance(error, StrangeAnswerError)
            if passing or number == STRANGE:
                raise ServiceError(f"{server.spec.base_url}: {error}; run again when it answers") from None
    raise AssertionError("the last try returns or raises")


def _say(name: str, as_text: object, thinking: bool) -> None:
    if as_text:
        print(f"{name}: its server tells no probabilities, so scores are the numbers that it writes (mode text)")
    if thinking:
        print(f"{name}: its server cannot be told not to think; what it thinks aloud is cut off from its answers")
