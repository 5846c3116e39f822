"""What runs models and makes scores with them in processes of their own: Ray's actors of an evaluation."""

from __future__ import annotations

import contextlib
import importlib.metadata
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.models import encoder
from evaluation.models.distant import DistantEncoder, Facts, Question, Rows
from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder
from evaluation.models.protocols import PromptingModel
from evaluation.models.speed import IN_TORCH, gpu_of
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

_RUN = ("sentence-transformers", "transformers", "torch")  # packages that run models of the kinds `IN_TORCH`


@dataclass(frozen=True)
class Due:
    """What must be the same wherever a model runs: its id, and the versions of the packages that run it."""

    model_id: str
    versions: Mapping[str, str]


def due_of(study: Study, spec: ModelSpec) -> Due:
    """What this machine has. What is built for (`+cpu`, `+cu128`) is none of a version: machines differ in that."""
    found = {}
    for package in _RUN if spec.kind in IN_TORCH else ():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package).partition("+")[0]
    return Due(encoder.model_id(study, spec), found)


class EncodingWorker:
    """Runs a model on a node, in a process of its own: loads it once, and keeps nothing."""

    def __init__(self, study: Study, spec: ModelSpec, due: Due, quiet: Callable[..., Any]) -> None:
        """Nothing is loaded yet. `due` is what the command's machine has (`due_of`).

        `quiet` has the settings that libraries read when they are imported.
        """
        self._study, self._spec, self._due = study, spec, due
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(study, [spec]))
        self._lock = threading.Lock()  # questions are asked while texts are encoded, which may change the model

    def facts(self) -> Facts:
        """Load the model.

        Raises StudyError for other files or versions than the command's machine has, and as `encoder.load`.
        """
        here = due_of(self._study, self._spec)
        if here.model_id != self._due.model_id:
            self._spec.location(self._study.file.parent)
            raise StudyError(
                f"the files of model {self._spec.name!r}, or mteb, are not those of the command's machine;"
                " have the same everywhere"
            )
        for package, version in self._due.versions.items():
            if here.versions.get(package) != version:
                raise StudyError(
                    f"{package} {here.versions.get(package, 'none')} runs model {self._spec.name!r} there, and"
                    f" {version} on the command's machine; install the same everywhere"
                )
        self._model, revision = encoder.load_model(self._study, self._spec)
        model = self._model
        self._encoder = Encoder(model, self._spec.name, revision, self._study.evaluation.batch_size)
        own = getattr(model, "similarities", lambda: None)()
        gpu = gpu_of(self._spec, self._study.evaluation.device)
        picks = isinstance(model, PromptingModel)
        return Facts(model.prompts, model.default_prompt, model.routed(), picks, revision, own, gpu)

    def encode(self, texts: list[str], prompt: str, role: str, how: Any = None) -> tuple[Embeddings, float]:
        """Rows of texts, and the seconds that they took; `how` stands behind the prompt of a model that picks it.

        Raises as `Encoder.embed`.
        """
        with self._lock:
            if how is not None:
                self._model.learn(prompt, how)  # type: ignore[attr-defined]  # such models have it
            begun = time.monotonic()
            rows = self._encoder.encode_new(texts, prompt, role)
            return rows, time.monotonic() - begun

    def answer(self, question: Question) -> tuple[Any, Any]:
        """What the model says, and what stands behind the name of a way of encoding."""
        with self._lock:
            said = getattr(self._model, question.method)(*question.values)
            return said, self._model.how(said) if question.of_way else None  # type: ignore[attr-defined]

    def close(self) -> None:
        """Leave nothing behind."""
        self._open.close()


@dataclass(frozen=True)
class Finished:
    """What was made with an encoder, and how many texts it asked for."""

    made: Any
    asked: int


Step = Rows | Question | Finished


class GivenUp(Exception):  # noqa: N818 (an answer, and no error of anybody's)
    """The answer to what is not wanted any more."""


class ScoringWorker:
    """Makes scores, in a process of its own: one thing at a time, and all that this asks goes out and comes back.

    `begin` and `go_on` return with the next that is asked, or with what was made; what it raises, they raise.
    """

    def __init__(self, study: Study, specs: Sequence[ModelSpec], quiet: Callable[..., Any]) -> None:
        """`quiet` has the settings that libraries read when they are imported."""
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(study, specs))
        self._steps: queue.SimpleQueue[Step | BaseException] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._batch_size = study.evaluation.batch_size

    def begin(self, make: Callable[[Encoder], Any], facts: Facts, name: str) -> Step:
        """Begin to make something with a model, of which these are the facts and the name."""
        self._made = make  # kept for the next one: it may share what was read for this
        encoder = DistantEncoder(facts, name, self._batch_size, self._ask)
        threading.Thread(target=self._make, args=(make, encoder), daemon=True).start()
        return self._step()

    def go_on(self, answer: Any) -> Step:
        """Give the answer to what was asked last."""
        self._answers.put(answer)
        return self._step()

    def close(self) -> None:
        """Leave nothing behind."""
        self._open.close()

    def _step(self) -> Step:
        step = self._steps.get()
        if isinstance(step, BaseException):
            raise step
        return step

    def _ask(self, what: Rows | Question) -> Any:
        self._steps.put(what)
        answer = self._answers.get()
        if isinstance(answer, GivenUp):
            raise answer
        return answer

    def _make(self, make: Callable[[Encoder], Any], encoder: Encoder) -> None:
        try:
            step: Step | BaseException = Finished(make(encoder), encoder.asked)
        except BaseException as error:  # raised where somebody waits for it
            step = error
        encoder.close()
        self._steps.put(step)
