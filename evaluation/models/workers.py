"""A model that workers on a Ray cluster run: each loads it in a process of its own, and stores nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import CHUNK, Encoder, ModelHost
from evaluation.models.text_models import PromptingModel, TextModel
from plumbline.errors import StudyError
from plumbline.models.cluster import Slot, WorkerPool, refuse_other_versions
from plumbline.resources import installed_versions
from plumbline.study.evaluation import ModelSpec

CALLS = 2  # of a worker at a time, so that it never waits
SHARDS = 4  # of a worker in each chunk, so that all end at about the same time


@dataclass(frozen=True)
class Facts:
    """What is known of a model without asking it. `picks` says that it chooses its prompts (`PromptingModel`).

    `similarities` compare all with all and row by row; None if the model computes its own.
    """

    prompts: dict[str, str]
    default_prompt: str
    routed: bool
    picks: bool
    revision: str
    similarities: tuple[Any, Any] | None


@dataclass(frozen=True)
class ModelIdentity:
    """What must be equal wherever a model runs: its id, and the versions of its packages."""

    model_id: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, host: ModelHost, spec: ModelSpec) -> ModelIdentity:
        """Return these facts for this machine. Builds (`+cpu`, `+cu128`) are left out, as machines differ in them."""
        return cls(host.model_id(spec), installed_versions(spec.PACKAGES, builds=False))


class EncodingWorker:
    """A Ray actor that runs a model."""

    def __init__(self, host: ModelHost, spec: ModelSpec, expected: ModelIdentity, quiet: Callable[..., Any]) -> None:
        """Prepare the worker without loading; `quiet` has the settings that libraries read when they are imported."""
        self._host, self._spec, self._expected = host, spec, expected
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(host.datasets, [spec]))

    def prepare(self) -> Facts:
        """Load the model and return its facts.

        Raises StudyError for other files or versions than on the machine that runs the command, and as
        `ModelHost.load_model`.
        """
        here = ModelIdentity.of(self._host, self._spec)
        refuse_other_versions(self._expected.versions, here.versions)
        if here.model_id != self._expected.model_id:
            self._spec.location(self._host.file.parent)
            raise StudyError(
                f"the files of model {self._spec.name!r}, or mteb's version, differ from those on the machine that runs"
                " the command; install the same everywhere"
            )
        self._model, revision = self._host.load_model(self._spec)
        model = self._model
        self._encoder = Encoder(model, self._spec.name, revision, self._host.evaluation.batch_size)
        picks = isinstance(model, PromptingModel)
        return Facts(model.prompts, model.default_prompt, model.routed(), picks, revision, model.similarities())

    def encode(self, texts: list[str], prompt: str, role: str, way: Any = None) -> Embeddings:
        """Return rows of texts; `way` is the `Way` of the prompt's name, if any. Raises as `Encoder.embed`."""
        if way is not None:
            self._model.learn(prompt, way)  # type: ignore[attr-defined]  # such models have it
        return self._encoder.encode_new(texts, prompt, role)

    def answer(self, method: str, values: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the answer of a method of the model, and the `Way` of a name if the answer is one."""
        answer = getattr(self._model, method)(*values)
        way = self._model.how(answer) if method in ("way", "prompt_under") else None  # type: ignore[attr-defined]
        return answer, way


class ClusterModel(TextModel):
    """A model that workers in some slots run. Open it with `ClusterModel.open`."""

    def __init__(self, pool: WorkerPool, runner: asyncio.Runner, batch: int) -> None:
        self._pool, self._runner, self.batch = pool, runner, batch
        self._facts: Facts = pool.facts
        self._ways: dict[str, Any] = {}  # the text behind a prompt, for models that choose their own
        self.prompts, self.default_prompt = self._facts.prompts, self._facts.default_prompt

    @classmethod
    def open(
        cls,
        ray: Any,
        slots: Sequence[Slot],
        host: ModelHost,
        spec: ModelSpec,
        quiet: Callable[..., Any],
        note: Callable[[str], None],
    ) -> Encoder:
        """Start workers, and return the model's encoder with its store once one has loaded it.

        Raises as `EncodingWorker.prepare`, with the node's address.
        """
        spec.location(host.file.parent)
        remote, values = ray.remote(EncodingWorker), (host, spec, ModelIdentity.of(host, spec), quiet)

        def make(slot: Slot) -> Any:
            return remote.options(**slot.options).remote(*values)

        runner = asyncio.Runner()
        pool = runner.run(WorkerPool(ray, slots, make, CALLS, note).open())
        kind = ClusterPromptingModel if pool.facts.picks else cls
        size = host.evaluation.batch_size
        model = kind(pool, runner, size * spec.requests)
        # A fault loses the whole chunk. A server's texts are paid, so its chunk is what is in flight.
        chunk = (model.batch if spec.PAID else CHUNK) * len(slots)
        store = host.store(host.model_id(spec))
        return Encoder(model, spec.name, pool.facts.revision, size, store, chunk=chunk, of_study=spec.prefixes)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return one row for each text, made in shards of whole batches."""
        share = -(-len(texts) // (SHARDS * len(self._pool.slots)))
        size = -(-share // self.batch) * self.batch
        shards = [list(texts[first : first + size]) for first in range(0, len(texts), size)]
        way = self._ways.get(prompt)

        async def encoded() -> Sequence[Embeddings]:
            rows: Sequence[Embeddings] = await asyncio.gather(
                *(self._pool.call("encode", shard, prompt, role, way) for shard in shards)
            )
            return rows

        return np.concatenate(self._runner.run(encoded()))

    def routed(self) -> bool:
        return self._facts.routed

    def similarity(self, first: Any, second: Any) -> Any:
        similarities = self._facts.similarities
        return similarities[0](first, second) if similarities else self._ask("similarity", first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        similarities = self._facts.similarities
        return similarities[1](first, second) if similarities else self._ask("similarity_pairwise", first, second)

    def _ask(self, method: str, *values: Any) -> Any:
        answer, way = self._runner.run(self._pool.call("answer", method, values))
        if way is not None:
            self._ways[answer] = way
        return answer


class ClusterPromptingModel(ClusterModel, PromptingModel):
    """Such a model that chooses its prompts itself."""

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        return str(self._ask("way", task_metadata, hf_split, hf_subset, prompt_type))

    def prompt_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        return str(self._ask("prompt_under", text, template, dict(call)))

    def before(self, prompt: str) -> str:
        return str(self._ask("before", prompt))

    def refuses(self) -> str:
        return str(self._ask("refuses"))
