"""What all chat models share: the calls of a transformation, one after the other, through one `ask`."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from generation.cleaning import clean
from generation.generators import Attempt, Completion, GenerationOutcome
from generation.jobs import Job
from plumbline.languages import language_name
from plumbline.prompts import Prompt


class Chat(abc.ABC):
    """A chat model; `prompts` are those of each transformation, in the order of its calls (`Plan.prompts`)."""

    prompts: Mapping[str, tuple[Prompt, ...]]
    schema: Mapping[str, Any] | None = None  #: of the JSON that answers are held to; without one they are free

    @property
    @abc.abstractmethod
    def concurrency(self) -> int:
        """How many jobs it wants in flight at once."""

    @abc.abstractmethod
    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """The model's answer to one message of a user; raises like `Generator.transform`.

        With `labels` the answer is its first token, with the probabilities of these labels to be it.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go of connections and memory."""

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """Run the calls of a transformation, each on the cleaned answer to the one before."""
        text, raw = job.text, ""
        outputs: list[str] = []
        for prompt, language in zip(self.prompts[job.transformation], job.languages, strict=True):
            values = {"target_language": language_name(language), "text": text}
            message = prompt.render({name: value for name, value in values.items() if name in prompt.variables})
            answer = await self.ask(message, attempt)
            text, raw = clean(answer.text), answer.text
            if answer.cut_off or not text:
                return GenerationOutcome("", outputs[0] if outputs else None, raw, cut_off=answer.cut_off)
            outputs.append(text)
        return GenerationOutcome(text, outputs[0] if len(outputs) > 1 else None, raw)
