"""Run a model in process with vLLM's engine, started once and kept busy.

Each request joins the running batch as soon as there is room (continuous batching), so a call never waits for others to
end, and the second call of a transformation starts when its first is done. Prompts share a beginning, which is computed
once (prefix caching). The output of vLLM and its processes goes to `vllm.log` in the study's folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import itertools
import logging
import math
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from plumbline.errors import ServiceError, StudyError, TextFailedError, TextRefusedError, TextUnansweredError, nearest
from plumbline.models.chat import Attempt, Chat, Completion
from plumbline.resources import installing, private
from plumbline.store import make_folder
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.engines import VllmSpec
from plumbline.study.evaluation import refuse_no_model, refuse_no_repository

# The last line of a traceback, with or without vLLM's prefix.
_ERROR = re.compile(r"^(?:\(.*?\) ERROR .*?\] )?((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_WAITING = 8  # a judge's batches in flight: one-token answers end all at once, and the next batch must be ready
_PASSED_ON = "root cause"  # errors that only report a failure in another process


@dataclass(frozen=True)
class _Log:
    """The log file of vLLM, and the position where this run begins."""

    path: Path
    start: int

    @classmethod
    def of(cls, study: Study) -> _Log:
        path = study.scratch / "vllm.log"
        make_folder(path.parent)
        return cls(path, path.stat().st_size if path.exists() else 0)

    def cause(self) -> str:
        """Return the last error in the log that is a cause; empty if there is none."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            errors = _ERROR.findall(file.read().decode(errors="replace"))
        causes = [line for line in errors if _PASSED_ON not in line]
        return _short(causes[-1]) if causes else ""


class VllmEngine(Chat):
    """A running engine. It cannot be pickled, and belongs to the event loop that made it."""

    def __init__(self, spec: VllmSpec, model: str, log: _Log, template: Mapping[str, Any]) -> None:
        self.spec = spec
        self.concurrency = spec.in_flight
        self._log = log
        self._watchdog = _watch()
        try:
            self._engine = _start(spec, model, log)
        except BaseException:
            self._end_watchdog()
            raise
        self._engine.output_handler.add_done_callback(self._fail_calls)
        from vllm.renderers import ChatParams, TokenizeParams  # noqa: PLC0415 (lives on the GPU host)

        self._template = {"add_generation_prompt": True, **template}
        self._chat = ChatParams(chat_template_kwargs={**self._template, "continue_final_message": False})
        # vLLM neither cuts nor refuses by length: our own refusal names the text's true length.
        self._tokens = TokenizeParams(max_total_tokens=None, add_special_tokens=False)
        self._numbers = itertools.count()
        self._label_tokens: dict[str, int] = {}

    @classmethod
    def open(cls, spec: VllmSpec, study: Study, setting: str, template: Mapping[str, Any]) -> Self:
        """Load a model that a study names; call this in the event loop that will ask it.

        `template` holds further variables for its chat template. Raises StudyError if vLLM is not installed or refuses
        the model, ServiceError if the engine cannot start; both errors are one line with the cause.
        """
        if importlib.util.find_spec("vllm") is None:
            raise StudyError(
                f"the kind 'vllm' needs vLLM, which is not installed; install it with {installing('vllm')} on "
                "the GPU host"
            )
        folder = study.resolve(spec.model)
        if folder.is_dir():
            refuse_no_model(folder, spec.model, ["config.json"])
        else:
            refuse_no_repository(spec.model)
        log = _Log.of(study)
        print(f"loading {spec.model} into vLLM, log: {log.path}", flush=True)
        engine = cls(spec, str(folder) if folder.is_dir() else spec.model, log, template)
        try:
            engine._render("a message")
        except Exception as error:  # a template is a program by the model's authors and may raise anything
            engine._shut_down()
            raise StudyError(f"{spec.model}: its chat template fails: {_line(error)}") from None
        return engine

    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the model's answer to one message under its chat template; each of `labels` must be a token.

        An answer that fills the rest of the context is `cut_off` too. Raises TextFailedError if a message leaves no
        room for an answer, TextUnansweredError if the engine dropped this request, ServiceError if it has died.
        """
        from vllm import SamplingParams  # noqa: PLC0415
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams  # noqa: PLC0415

        tokens = {self.label_token(label): label for label in labels}
        request: dict[str, Any] = {"logprob_token_ids": list(tokens), "max_tokens": 1} if labels else {}
        if self.schema:
            request["structured_outputs"] = StructuredOutputsParams(json=dict(self.schema))
        sampling = SamplingParams(
            **{**attempt.sampling.model_dump(), **request}, seed=attempt.seed, output_kind=RequestOutputKind.FINAL_ONLY
        )
        with self._in_our_words():
            prompt = self._render(message)
            room, length = self._engine.model_config.max_model_len, len(prompt["prompt_token_ids"])
            if length >= room:
                raise TextFailedError(f"too long for the context: {length} tokens with its prompt, at most {room}")
            final, cached = None, None
            async for output in self._engine.generate(prompt, sampling, str(next(self._numbers))):
                final, cached = output.outputs[0], output.num_cached_tokens
        if final is None or final.finish_reason not in {"stop", "length"}:
            raise TextUnansweredError(f"vLLM dropped the request: {final.finish_reason if final else 'no answer'}")
        first = final.logprobs[0] if labels and final.logprobs else {}
        shares = {label: math.exp(first[token].logprob) for token, label in tokens.items() if token in first}
        return Completion(final.text, final.finish_reason == "length", shares if labels else None, length, cached)

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Raise vLLM's errors as ours: of one text, of this request, or of the engine."""
        from vllm.exceptions import VLLMClientError  # noqa: PLC0415
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError  # noqa: PLC0415

        try:
            yield
        except EngineDeadError:
            cause = self._log.cause() or "no cause given (perhaps out of memory)"
            raise ServiceError(f"vLLM's engine died: {cause}; see {self._log.path}") from None
        except EngineGenerateError as error:
            raise TextUnansweredError(f"vLLM dropped the request: {_line(error.__cause__ or error)}") from None
        except VLLMClientError as error:
            raise TextRefusedError(f"vLLM refused the text: {_line(error)}") from None

    async def prepare_to_judge(self, name: str, labels: Sequence[str], first: Attempt) -> bool:
        """Find the token of each label. Raises StudyError for a label of several tokens."""
        if labels:
            self.concurrency = _WAITING * self.spec.settings.batch
        for label in labels:
            self.label_token(label)
        return bool(labels)

    def label_token(self, label: str) -> int:
        """Return the token of a label at the start of an answer. Raises StudyError if it takes several."""
        if label not in self._label_tokens:
            tokenizer = self._engine.get_tokenizer()
            prefix = tokenizer.apply_chat_template([{"role": "user", "content": "."}], tokenize=False, **self._template)
            plain = tokenizer.encode(prefix, add_special_tokens=False)
            tokens = tokenizer.encode(prefix + label, add_special_tokens=False)
            if tokens[:-1] != plain:
                number = (
                    f"{len(tokens) - len(plain)} tokens" if len(tokens) > len(plain) + 1 else "not a token by itself"
                )
                raise StudyError(
                    f"{self.spec.model}: the label {label!r} is {number} for this model; set `score: text` for the "
                    "judge"
                )
            self._label_tokens[label] = tokens[-1]
        return self._label_tokens[label]

    async def close(self) -> None:
        """End the engine's processes, which takes some seconds."""
        self._shut_down()

    def _render(self, message: str) -> Any:
        """Return the message's tokens under the chat template, the same as with `vllm serve`."""
        _, prompts = self._engine.renderer.render_chat(
            [[{"role": "user", "content": message}]], self._chat, self._tokens
        )
        return prompts[0]

    def _fail_calls(self, _: asyncio.Task[None]) -> None:
        """Raise EngineDeadError in calls that wait for a dead engine's reply: vLLM (0.32) ends requests only.

        The first requests make such a call before they are sent: they ask for the tasks that the model supports.
        """
        from vllm.v1.engine.exceptions import EngineDeadError  # noqa: PLC0415

        for reply in self._engine.engine_core.utility_results.values():
            if not reply.done():  # those of cancelled calls stay among them
                reply.set_exception(EngineDeadError())

    def _shut_down(self) -> None:
        self._engine.shutdown()
        # The destructor would shut down again at exit, when half of vLLM is gone, and print an error.
        self._engine.shutdown = lambda: None
        self._end_watchdog()

    def _end_watchdog(self) -> None:
        self._watchdog.kill()
        self._watchdog.wait()


def _watch() -> subprocess.Popen[bytes]:
    """Start the program that ends the engine's processes if this one is killed, in a session that survives Ctrl-C."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("watchdog.py")), str(os.getpid())]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def _start(spec: VllmSpec, model: str, log: _Log) -> Any:
    """Start the engine's processes and wait until the model is loaded."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")  # sends no usage statistics
    with open(log.path, "a", encoding="utf-8", opener=private) as file, _printing_to(file.fileno()):
        try:
            from vllm import AsyncEngineArgs  # noqa: PLC0415
            from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

            engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**_arguments(spec, model)))
        except StudyError:
            raise
        except ValidationError as error:  # raised for engine arguments and for the model's configuration
            raise StudyError(f"vLLM refuses the model {spec.model}: {_short(first_complaint(error))}") from None
        except Exception as error:  # vLLM, torch, CUDA and the model's own code have no common base
            if (task := asyncio.current_task()) and task.cancelling():  # Ctrl-C also ended the engine's processes
                raise asyncio.CancelledError from None
            line = _line(error) if _PASSED_ON not in str(error) else log.cause() or _line(error)
            raise ServiceError(f"vLLM cannot load {spec.model}: {line}; see {log.path}") from None
    for handler in logging.getLogger("vllm").handlers:  # later output of this process
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(open(log.path, "a", encoding="utf-8", opener=private))  # noqa: SIM115 (it stays open)
    return engine


def _arguments(spec: VllmSpec, model: str) -> dict[str, Any]:
    """Return the study's settings under vLLM's names. Raises StudyError for an unknown setting."""
    from vllm import AsyncEngineArgs  # noqa: PLC0415
    from vllm.platforms import current_platform  # noqa: PLC0415

    names = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
    for name in spec.settings.arguments():
        if name not in names:
            raise StudyError(f"engine {spec.model!r}: settings: vLLM has no {name!r}; {nearest(name, names)}")
    return {
        "model": model,
        "revision": spec.revision or None,
        "tokenizer_revision": spec.revision or None,
        "enable_prefix_caching": True,
        "language_model_only": True,  # Gemma-3 also takes images, which costs memory
        "disable_log_stats": True,
        "gpu_memory_utilization": 0.9,
        # On a CPU the engine dies if a seeded request's prompt is computed in pieces (vLLM 0.32).
        "enable_chunked_prefill": False if current_platform.is_cpu() else None,
        **spec.settings.arguments(),
    }


@contextlib.contextmanager
def _printing_to(file: int) -> Iterator[None]:
    """Redirect output to a file: Python's, C++'s, and permanently that of child processes."""
    screen = (sys.stdout, sys.stderr)
    for stream in screen:
        stream.flush()
    copies = [os.dup(stream_number) for stream_number in (1, 2)]
    try:
        for stream_number in (1, 2):
            os.dup2(file, stream_number)
        yield
    finally:
        for stream in screen:
            stream.flush()
        for stream_number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, stream_number)
            os.close(copy)


def _line(error: BaseException) -> str:
    return _short(f"{type(error).__name__}: {error}")


def _short(words: str) -> str:
    """Shorten an error to one line: vLLM may list all of its 300 architectures."""
    return textwrap.shorten(words, 300, placeholder=" ...")
