"""Asking a chat model: one message, one attempt, one answer; and attempts until an answer is good."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from plumbline.errors import TextFailedError, TextUnansweredError
from plumbline.study.engines import RetrySpec, Sampling


@dataclass(frozen=True)
class Attempt:
    """One try at a question: which it is (from 1), the seed for the model, and how it picks tokens."""

    number: int
    seed: int
    sampling: Sampling

    def next(self, first_seed: int, retry: RetrySpec, *, cut_off: bool) -> Attempt:
        """Another seed (from the first and the number), the retry's temperature, and more room if it was cut off."""
        number = self.number + 1
        digest = hashlib.sha256(f"attempt-v1 {first_seed} {number}".encode()).digest()
        room = int(self.sampling.max_tokens * retry.more_tokens) if cut_off else self.sampling.max_tokens
        sampling = Sampling(temperature=retry.temperature, top_p=self.sampling.top_p, max_tokens=room)
        return Attempt(number, int.from_bytes(digest[:4], "big") >> 1, sampling)


@dataclass(frozen=True)
class Completion:
    """What a model said to one prompt; `cut_off` where it ran into `max_tokens`.

    `labels` has each label's probability to be the answer's first token, where labels were asked for and probabilities
    are told; a server does not name those of the least likely. Of the prompt's tokens (`sent`) so many had been
    computed for an earlier prompt (`cached`), where the engine tells it. `repeatable` says whether another attempt can
    give another answer: of a recording it cannot.
    """

    text: str
    cut_off: bool = False
    labels: Mapping[str, float] | None = None
    sent: int = 0
    cached: int | None = None
    repeatable: bool = True


class Chat(abc.ABC):
    """A chat model."""

    schema: Mapping[str, Any] | None = None  #: of the JSON that answers are held to; without one they are free

    @property
    @abc.abstractmethod
    def concurrency(self) -> int:
        """How many questions it wants in flight at once."""

    @abc.abstractmethod
    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """The model's answer to one message of a user.

        With `labels` the answer is its first token, with the probabilities of these labels to be it. Raises
        TextFailedError where this message can never succeed, TextUnansweredError where it got no answer this time,
        ServiceError where no message can succeed.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go of connections and memory."""


class _Answer(Protocol):
    """What comes back from one attempt."""

    @property
    def cut_off(self) -> bool: ...

    @property
    def repeatable(self) -> bool: ...


A = TypeVar("A", bound=_Answer)


@dataclass(frozen=True)
class Outcome(Generic[A]):
    """What attempts came to: the last answer that came, or why none did (`status` failed or unanswered)."""

    answer: A | None
    attempts: int  #: answers received
    last: Attempt
    status: str = ""
    reason: str = ""


async def ask_until(
    ask: Callable[[Attempt], Awaitable[A]], is_bad: Callable[[A], bool], first: Attempt, retry: RetrySpec
) -> Outcome[A]:
    """Ask until an answer is not bad, another attempt would be the same, or the attempts of `retry` are used up."""
    attempt, answer = first, None
    while True:
        try:
            answer = await ask(attempt)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            return Outcome(answer, attempt.number - 1, attempt, status, str(error))
        if not is_bad(answer) or attempt.number >= retry.attempts or not answer.repeatable:
            return Outcome(answer, attempt.number, attempt)
        attempt = attempt.next(first.seed, retry, cut_off=answer.cut_off)
