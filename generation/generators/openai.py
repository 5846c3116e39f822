"""The generator `openai`: any OpenAI-compatible chat server (vLLM's, Ollama's, llama.cpp's).

Backoff with jitter on 429, 5xx, time-outs and broken connections (honouring Retry-After), and the pool of
connections, are the openai library's own. A text that the server refuses fails alone; a server that
refuses everything (wrong key, unknown model, gone) ends the run with one line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import openai

from generation.exceptions import ServiceError, StudyError, TextFailedError
from generation.generators import Outcome
from generation.jobs import Job, Plan
from generation.languages import language_name
from generation.prompts import Prompt
from generation.study import OpenAIGenerator


@dataclass(frozen=True)
class OpenAIChat:
    """A chat server behind the openai library."""

    spec: OpenAIGenerator
    prompts: Mapping[str, tuple[Prompt, ...]]
    client: openai.AsyncOpenAI

    @classmethod
    def of(cls, plan: Plan) -> OpenAIChat:
        """The server that the study names; its key comes from the environment, `EMPTY` where none is set."""
        spec = plan.study.generator
        if not isinstance(spec, OpenAIGenerator):
            raise StudyError(f"{plan.study.file}: generator.kind is not 'openai'")
        key = os.environ.get(spec.api_key_env, "").strip() or "EMPTY"
        if not key.isascii() or not key.isprintable():  # the HTTP library would quote it in its error
            raise StudyError(f"the key in {spec.api_key_env} holds characters that no key has; set it again")
        try:
            client = openai.AsyncOpenAI(
                base_url=spec.base_url, api_key=key, timeout=spec.timeout_seconds, max_retries=spec.retries
            )
        except Exception as error:  # the library's InvalidURL has no public base
            raise StudyError(f"{plan.study.file}: generator.base_url {spec.base_url!r}: {error}") from None
        return cls(spec, plan.prompts, client)

    @property
    def concurrency(self) -> int:
        """Requests in flight at once."""
        return self.spec.concurrency

    async def transform(self, job: Job) -> Outcome:
        """Run the calls of a transformation, each on the output of the one before."""
        outputs = [job.text]
        for prompt, language in zip(self.prompts[job.transformation], job.languages, strict=True):
            message = prompt.render({"target_language": language_name(language), "text": outputs[-1]})
            output = (await self._ask(message, job.seed)).strip()
            if not output:
                raise TextFailedError(f"call {len(outputs)} of {job.transformation} came back empty")
            outputs.append(output)
        return Outcome(outputs[-1], outputs[1] if len(outputs) > 2 else None)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def _ask(self, message: str, seed: int) -> str:
        sampling = self.spec.sampling
        try:
            # Not `chat.completions.create`: checking and converting what is plain JSON takes it half of all the time.
            answer = await self.client.post(
                "/chat/completions",
                cast_to=str,
                body={
                    "model": self.spec.model,
                    "messages": [{"role": "user", "content": message}],
                    "temperature": sampling.temperature,
                    "top_p": sampling.top_p,
                    "max_tokens": sampling.max_tokens,
                    "seed": seed,
                },
            )
        except openai.BadRequestError as error:
            raise TextFailedError(f"the server refused the text: {_reason(error)}") from None
        except openai.UnprocessableEntityError as error:
            raise TextFailedError(f"the server refused the text: {_reason(error)}") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            env = self.spec.api_key_env
            raise ServiceError(f"{self.spec.base_url}: the key is not accepted; set {env}") from None
        except openai.NotFoundError as error:
            line = f"{self.spec.base_url}: no model {self.spec.model!r} there, or generator.base_url lacks its /v1"
            raise ServiceError(f"{line}: {_reason(error)}") from None
        except openai.APITimeoutError:
            raise TextFailedError(f"no answer within {self.spec.timeout_seconds:g} s, {self._tries()}") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            line = f"{self.spec.base_url} does not answer, {self._tries()} ({cause})"
            raise ServiceError(f"{line}; start the server or correct generator.base_url") from None
        except openai.APIStatusError as error:
            raise TextFailedError(f"status {error.status_code}, {self._tries()}: {_reason(error)}") from None
        except openai.OpenAIError as error:
            raise TextFailedError(f"an answer that is not one of a chat server: {error}") from None
        return _content(answer)

    def _tries(self) -> str:
        return f"asked {self.spec.retries + 1} times"


def _content(answer: str) -> str:
    """The text of an answer; servers that answer HTML or nothing are found here."""
    try:
        found: Any = json.loads(answer)
        choices = found["choices"]
    except (ValueError, TypeError, KeyError):
        raise TextFailedError(
            "an answer that is not one of a chat server; is generator.base_url right (ends in /v1)?"
        ) from None
    if not choices:
        raise TextFailedError("an answer without choices")
    try:
        finish_reason, content = choices[0].get("finish_reason"), choices[0]["message"]["content"]
    except (TypeError, KeyError, AttributeError):
        raise TextFailedError("an answer whose choice has no message") from None
    if finish_reason == "length":
        raise TextFailedError("cut off by max_tokens; raise generator.sampling.max_tokens")
    if not isinstance(content, str | None):
        raise TextFailedError("an answer whose content is not a text")
    return _whole(content or "")


def _whole(text: str) -> str:
    """The text, if it is whole: JSON may carry half a character (a lone surrogate), which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("an answer with half a character in it") from None
    return text


def _reason(error: openai.APIStatusError) -> str:
    return " ".join(str(error.message).split())[:300]
