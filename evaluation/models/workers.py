"""Ray's actors of an evaluation: run models and compute scores in separate processes."""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder, ModelHost, PromptingModel
from evaluation.models.in_process import IN_TORCH, gpu_of
from plumbline.errors import StudyError
from plumbline.study.evaluation import ModelSpec
from plumbline.versions import installed_versions


@dataclass(frozen=True)
class Facts:
    """Facts about a model that are known without it. `picks` says that it chooses its prompts (`PromptingModel`).

    `similarities` compare all with all and row by row; None if the model computes its own. `gpu` is the kind of GPU;
    empty for none.
    """

    prompts: dict[str, str]
    default_prompt: str
    routed: bool
    picks: bool
    revision: str
    similarities: tuple[Any, Any] | None
    gpu: str = ""


@dataclass(frozen=True)
class Rows:
    """A request for embeddings of distinct texts."""

    texts: list[str]
    prompt: str
    role: str


@dataclass(frozen=True)
class MethodCall:
    """A method of the model to call where the model is."""

    method: str
    values: tuple[Any, ...]

    @property
    def key(self) -> bytes:
        """An equal key for equal calls."""
        return pickle.dumps(self)

    @property
    def repeats(self) -> bool:
        """True if the answer may be cached: not for similarities of embeddings, which are many."""
        return not self.method.startswith("similarity")

    @property
    def of_way(self) -> bool:
        """True if the answer is a name of a `Way`, which every process with the model must know."""
        return self.method in ("way", "way_under")


Ask = Callable[[Rows | MethodCall], Any]


class DistantModel:
    """A model with known facts, which requests everything else from its process."""

    def __init__(self, facts: Facts, ask: Ask) -> None:
        self.prompts, self.default_prompt = facts.prompts, facts.default_prompt
        self._facts, self._ask = facts, ask

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return one row for each text."""
        rows: Embeddings = self._ask(Rows(list(texts), prompt, role))
        return rows

    def routed(self) -> bool:
        """Return whether roles count."""
        return self._facts.routed

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the model's own similarity, all with all."""
        similarities = self._facts.similarities
        return similarities[0](first, second) if similarities else self._ask(MethodCall("similarity", (first, second)))

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Return the model's own similarity, row by row."""
        similarities = self._facts.similarities
        return (
            similarities[1](first, second)
            if similarities
            else self._ask(MethodCall("similarity_pairwise", (first, second)))
        )


class DistantPromptingModel(DistantModel):
    """A distant model that chooses its prompts itself."""

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """Return the answer of `PromptingModel.way`."""
        return str(self._ask(MethodCall("way", (task_metadata, hf_split, hf_subset, prompt_type))))

    def way_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """Return the answer of `PromptingModel.way_under`."""
        return str(self._ask(MethodCall("way_under", (text, template, dict(call)))))

    def before(self, way: str) -> str:
        """Return the answer of `PromptingModel.before`."""
        return str(self._ask(MethodCall("before", (way,))))

    def refuses(self) -> str:
        """Return the answer of `PromptingModel.refuses`."""
        return str(self._ask(MethodCall("refuses", ())))


class DistantEncoder(Encoder):
    """An encoder without a store: rows come from the command."""

    def __init__(self, facts: Facts, name: str, batch_size: int, ask: Ask) -> None:
        self._distant = (DistantPromptingModel if facts.picks else DistantModel)(facts, ask)
        super().__init__(self._distant, name, facts.revision, batch_size)

    def embed(self, texts: Sequence[str], *, prompt: str | None = None, role: str = "") -> Embeddings:
        """Return embeddings as `Encoder.embed` does."""
        prompt = self._fallback("") if prompt is None else prompt
        self.asked += len(texts)
        places = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        role = role if self._distant.routed() else ""
        vectors = self._distant.embed(list(places), prompt=prompt, role=role, batch_size=self._batch_size)
        return np.asarray(vectors[[places[text] for text in texts]])

    def close(self) -> None:
        """Close the encoder's files on disk; there is no model here."""
        self._store.close()


_RUN = ("sentence-transformers", "transformers", "torch")  # packages that run models of the kinds `IN_TORCH`


@dataclass(frozen=True)
class Due:
    """Facts that must be equal wherever a model runs: its id, and the versions of its packages."""

    model_id: str
    versions: Mapping[str, str]


def due_of(host: ModelHost, spec: ModelSpec) -> Due:
    """Return these facts for this machine. Builds (`+cpu`, `+cu128`) are not compared, as machines differ in them."""
    return Due(host.model_id(spec), installed_versions(_RUN if spec.kind in IN_TORCH else (), builds=False))


class EncodingWorker:
    """Runs a model on a node, in a process of its own: loads it once, and stores nothing."""

    def __init__(self, host: ModelHost, spec: ModelSpec, due: Due, quiet: Callable[..., Any]) -> None:
        """Prepare the worker without loading. `due` has the facts of the machine that runs the command (`due_of`).

        `quiet` has the settings that libraries read when they are imported.
        """
        self._host, self._spec, self._due = host, spec, due
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(host.datasets, [spec]))
        self._lock = threading.Lock()  # calls may come while texts are encoded, which may change the model

    def facts(self) -> Facts:
        """Load the model and return its facts.

        Raises StudyError for other files or versions than on the machine that runs the command, and as
        `ModelHost.load_model`.
        """
        here = due_of(self._host, self._spec)
        if here.model_id != self._due.model_id:
            self._spec.location(self._host.file.parent)
            raise StudyError(
                f"the files of model {self._spec.name!r}, or mteb's version, differ from those on the machine that runs"
                " the command; install the same everywhere"
            )
        for package, version in self._due.versions.items():
            if here.versions.get(package) != version:
                raise StudyError(
                    f"{package} {here.versions.get(package, 'none')} runs model {self._spec.name!r} there, but"
                    f" {version} on the machine that runs the command; install the same everywhere"
                )
        self._model, revision = self._host.load_model(self._spec)
        model = self._model
        self._encoder = Encoder(model, self._spec.name, revision, self._host.evaluation.batch_size)
        similarities = getattr(model, "similarities", lambda: None)()
        gpu = gpu_of(self._spec, self._host.evaluation.device)
        picks = isinstance(model, PromptingModel)
        return Facts(model.prompts, model.default_prompt, model.routed(), picks, revision, similarities, gpu)

    def encode(self, texts: list[str], prompt: str, role: str, how: Any = None) -> tuple[Embeddings, float]:
        """Return rows of texts and the seconds they took; `how` is the `Way` of the prompt's name, if any.

        Raises as `Encoder.embed`.
        """
        with self._lock:
            if how is not None:
                self._model.learn(prompt, how)  # type: ignore[attr-defined]  # such models have it
            begun = time.monotonic()
            rows = self._encoder.encode_new(texts, prompt, role)
            return rows, time.monotonic() - begun

    def answer(self, question: MethodCall) -> tuple[Any, Any]:
        """Return the model's answer, and the `Way` of a name if it is one."""
        with self._lock:
            answer = getattr(self._model, question.method)(*question.values)
            return answer, self._model.how(answer) if question.of_way else None  # type: ignore[attr-defined]

    def close(self) -> None:
        """Restore the environment."""
        self._open.close()


@dataclass(frozen=True)
class ModelResult:
    """A result made with an encoder, and the number of texts it requested."""

    result: Any
    texts: int


Step = Rows | MethodCall | ModelResult


class GivenUp(Exception):  # noqa: N818 (an answer, not an error)
    """The answer to a request that is no longer wanted."""


class ScoringWorker:
    """Computes scores in a process of its own, one piece at a time; its requests are answered from outside.

    `begin` and `go_on` return the next request, or the result; they raise its errors.
    """

    def __init__(self, host: ModelHost, specs: Sequence[ModelSpec], quiet: Callable[..., Any]) -> None:
        """Prepare the worker; `quiet` has the settings that libraries read at import."""
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(host.datasets, specs))
        self._steps: queue.SimpleQueue[Step | BaseException] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._batch_size = host.evaluation.batch_size

    def begin(self, make: Callable[[Encoder], Any], facts: Facts, name: str) -> Step:
        """Begin a piece of work with a model of these facts and this name."""
        self._made = make  # kept, as the next piece may share its data
        encoder = DistantEncoder(facts, name, self._batch_size, self._ask)
        threading.Thread(target=self._make, args=(make, encoder), daemon=True).start()
        return self._step()

    def go_on(self, answer: Any) -> Step:
        """Pass on the answer to the last request."""
        self._answers.put(answer)
        return self._step()

    def close(self) -> None:
        """Restore the environment."""
        self._open.close()

    def _step(self) -> Step:
        step = self._steps.get()
        if isinstance(step, BaseException):
            raise step
        return step

    def _ask(self, what: Rows | MethodCall) -> Any:
        self._steps.put(what)
        answer = self._answers.get()
        if isinstance(answer, GivenUp):
            raise answer
        return answer

    def _make(self, make: Callable[[Encoder], Any], encoder: Encoder) -> None:
        try:
            step: Step | BaseException = ModelResult(make(encoder), encoder.asked)
        except BaseException as error:  # raised in `_step`
            step = error
        encoder.close()
        self._steps.put(step)
