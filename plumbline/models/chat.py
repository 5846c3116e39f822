"""Ask a chat model: one message and one answer per attempt, until an answer is good."""

from __future__ import annotations

import abc
import hashlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Protocol, Self, TypeVar

from plumbline.errors import StudyError, TextFailedError, TextUnansweredError
from plumbline.study import Study
from plumbline.study.engines import EngineSpec, Sampling

QUIET = {"enable_thinking": False}  # of chat templates: reasoning models answer judges without thinking
AS_TEXT = "scores are the numbers in its answers (mode text)"

_RETRY_TEMPERATURE = 0.7  # from the second attempt on: at 0 a new seed changes nothing
ATTEMPTS = 3  # most attempts at an answer, including the first
_MORE_TOKENS = 2  # factor by which max_tokens grows after an answer that was cut off


@dataclass(frozen=True)
class Attempt:
    """One attempt at a question: its number (from 1), the seed, and the sampling."""

    number: int
    seed: int
    sampling: Sampling

    def next(self, first_seed: int, *, cut_off: bool) -> Attempt:
        """Return the next attempt: a new seed, another temperature, and more tokens if the answer was cut off."""
        number = self.number + 1
        digest = hashlib.sha256(f"attempt-v1 {first_seed} {number}".encode()).digest()
        room = self.sampling.max_tokens * _MORE_TOKENS if cut_off else self.sampling.max_tokens
        sampling = Sampling(temperature=_RETRY_TEMPERATURE, top_p=self.sampling.top_p, max_tokens=room)
        return Attempt(number, int.from_bytes(digest[:4], "big") >> 1, sampling)


@dataclass(frozen=True)
class Completion:
    """A model's answer to one prompt; `cut_off` if it reached `max_tokens`.

    `labels` holds the probability of each label as first token, if labels were asked for and the engine reports
    probabilities; a server leaves out the least likely ones. Of the prompt's tokens (`sent`), `cached` were computed
    for an earlier prompt, if the engine reports it. `repeatable` tells whether another attempt may give another answer;
    a recording cannot.
    """

    text: str
    cut_off: bool = False
    labels: Mapping[str, float] | None = None
    sent: int = 0
    cached: int | None = None
    repeatable: bool = True


class Client:
    """What answers for a model: the model itself, or recorded answers, one at a time."""

    concurrency: int = 1  #: the number of questions that it wants in flight at once

    async def close(self) -> None:
        """Release connections and memory."""


class Chat(abc.ABC):
    """A chat model."""

    concurrency: int  #: the number of questions that it wants in flight at once
    schema: Mapping[str, Any] | None = None  #: schema of the JSON that answers must follow; without one they are free

    @classmethod
    def open(cls, spec: Any, study: Study, setting: str, template: Mapping[str, Any]) -> Self:
        """Return the model of an engine that a study names in `setting`, ready to be asked in the running event loop.

        `template` has variables for the chat template of a model that runs in this process. A class that an engine's
        `CHAT` names has it.
        """
        raise NotImplementedError

    async def prepare_to_judge(self, name: str, labels: Sequence[str], first: Attempt) -> bool:
        """Prepare for short answers without thoughts; return whether they come with probabilities of `labels`.

        Args:
            name: the judge's name, for what is printed: what the model cannot do.
            labels: the points whose probabilities will be asked for; empty for answers in text.
            first: the first attempt at each question.

        Raises:
            StudyError: a label that the model cannot answer by one token.
            ServiceError: the model does not answer.
        """
        if labels:
            print(f"{name}: the model returns no probabilities, so {AS_TEXT}")
        return False

    @abc.abstractmethod
    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the model's answer to one user message.

        With `labels` the answer is one token, with the probabilities of these labels. Raises TextFailedError if this
        message can never succeed, TextUnansweredError if it got no answer this time, ServiceError if no message can
        succeed.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Release connections and memory."""


def open_chat(
    spec: EngineSpec, study: Study, setting: str = "generator", template: Mapping[str, Any] = MappingProxyType({})
) -> Chat:
    """Return the chat model that a study names in `setting`; call it in the event loop that will ask the model.

    Raises StudyError for a kind that is not a chat model, and as `Chat.open` of its class.
    """
    if not spec.CHAT:
        raise StudyError(
            f"{study.file}: {setting}.kind is {spec.kind!r}, which is not a chat model; name one of another kind"
        )
    chat: Chat = pkgutil.resolve_name(spec.CHAT).open(spec, study, setting, template)
    return chat


class _Answer(Protocol):
    """The result of one attempt."""

    @property
    def cut_off(self) -> bool: ...

    @property
    def repeatable(self) -> bool: ...


A = TypeVar("A", bound=_Answer)


@dataclass(frozen=True)
class Outcome(Generic[A]):
    """The result of all attempts: the last answer, or why there is none (`status` failed or unanswered)."""

    answer: A | None
    attempts: int  #: answers received
    last: Attempt
    status: str = ""
    reason: str = ""


async def ask_until(ask: Callable[[Attempt], Awaitable[A]], is_bad: Callable[[A], bool], first: Attempt) -> Outcome[A]:
    """Ask until an answer is good, a new attempt would give the same, or the `ATTEMPTS` are used up."""
    attempt, answer = first, None
    while True:
        try:
            answer = await ask(attempt)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            return Outcome(answer, attempt.number - 1, attempt, status, str(error))
        if not is_bad(answer) or attempt.number >= ATTEMPTS or not answer.repeatable:
            return Outcome(answer, attempt.number, attempt)
        attempt = attempt.next(first.seed, cut_off=answer.cut_off)
