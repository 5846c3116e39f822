"""An embedding model that encodes every distinct (prompt, text) once, whatever asks for it.

mteb asks for the same texts again for each copy of a data set (the corpus, the untouched candidates, equal
texts), and drift asks for pairs that tasks hold too; all of them, of all runs, share the embeddings on disk.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from evaluation.models.embeddings import Embeddings, EmbeddingStore, RowsLost, drift, keys_of
from evaluation.models.in_process import SentenceTransformerModel, fingerprint, in_template
from evaluation.models.registered import MtebModel
from evaluation.models.server import CharacterNgrams, ServerModel, WordVectors
from plumbline.errors import DataError, ServiceError, StudyError, nearest
from plumbline.identity import identity
from plumbline.rates import Stopwatch
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import EvaluationSpec, ModelSpec, refuse_no_repository

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta


# As torch says it on processors and GPUs, cuBLAS among them; "an illegal memory access" is another thing.
_LACKS_MEMORY = re.compile("out of memory|t allocate memory|not enough memory|ALLOC_FAILED", re.IGNORECASE)
_PIECE = 1 << 16  # texts that are looked up at a time
_TRIES = 3  # to read rows that do not match their checksums and were encoded again
_MANY = 1000  # texts for which it pays to look for the fastest engine
_CHUNK = 2048  # texts that are encoded and kept at a time: what a killed run has to encode again


class Encoder:
    """A model as mteb's EncoderProtocol wants it, with its store in front. `name` and `revision` name it."""

    def __init__(
        self, model: TextModel, name: str, revision: str, batch_size: int = 32, store: EmbeddingStore | None = None
    ) -> None:
        self._model = model
        self._name, self.revision = name, revision
        self._batch_size = batch_size
        self._store = store or EmbeddingStore()
        self.asked = 0
        """Texts that were asked for."""
        self.encoded = 0
        """Texts that the model was given."""
        self._engine_chosen = False
        self.watch = Stopwatch()
        """Time that the model spent on texts."""
        self.only_stored = False
        """Whether texts that are not in the store are refused (DataError) rather than encoded."""

    @functools.cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """Name and revision for mteb, which calls every model without them the same."""
        from mteb.models.model_meta import ModelMeta  # noqa: PLC0415

        return ModelMeta.create_empty({"name": self._name, "revision": self.revision or "unknown"})

    def encode(
        self,
        inputs: Iterable[dict[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> Embeddings:
        """Embeddings of mteb's batches, in their order, with the prompt that the model has for the task."""
        texts = [text for batch in inputs for text in batch["text"]]
        role = str(prompt_type.value) if prompt_type is not None else ""
        return self.embed(texts, prompt=self.prompt_for(task_metadata, hf_split, hf_subset, prompt_type), role=role)

    def prompt_for(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """The prompt that the model has for a call of mteb's, as `embed` takes it."""
        from mteb.models.abs_encoder import get_prompt_name  # noqa: PLC0415

        if isinstance(self._model, PromptingModel):
            return self._model.way(task_metadata, hf_split, hf_subset, prompt_type)
        name = get_prompt_name(self._model.prompts, task_metadata, prompt_type)
        role = str(prompt_type.value) if prompt_type is not None else ""
        return self._model.prompts[name] if name else self._fallback(role)

    def prompt_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """The same under an instruction, in the study's `template` if any; an empty `text` is no prompt at all."""
        if isinstance(self._model, PromptingModel):
            return self._model.way_under(text, template, call)
        return in_template(text, template)

    def before(self, prompt: str) -> str:
        """What stands before a text under a prompt of `prompt_for` or `prompt_under`."""
        return self._model.before(prompt) if isinstance(self._model, PromptingModel) else prompt

    def refuses(self) -> str:
        """Why the model can be given no instruction; empty where it can."""
        return self._model.refuses() if isinstance(self._model, PromptingModel) else ""

    def embed(self, texts: Sequence[str], *, prompt: str | None = None, role: str = "") -> Embeddings:
        """Embeddings (texts by dimensions), each distinct text encoded once; `prompt` None is the model's default.

        Raises DataError for an embedding that is not finite, ServiceError for a model that fails.
        """
        prompt = self._fallback("") if prompt is None else prompt
        self.asked += len(texts)
        role = role if self._model.routed() else ""
        if not self._complete(texts, prompt, role):
            self._complete(texts, prompt, role)  # the store had to begin anew to make room
        vectors = np.empty((len(texts), self._store.width or 0), np.float32)
        for first in range(0, len(texts), _PIECE):
            vectors[first : first + _PIECE] = self._stored(texts[first : first + _PIECE], prompt, role)
        return vectors

    def _stored(self, texts: Sequence[str], prompt: str, role: str) -> Embeddings:
        """The store's rows; what it has lost, or what is not as it was written, is encoded again."""
        keys = keys_of(texts, prompt, role)
        for _ in range(_TRIES - 1):
            with contextlib.suppress(RowsLost):
                return self._store.rows(keys)
            self._complete(texts, prompt, role)
        return self._store.rows(keys)

    def close(self) -> None:
        """Let go of the model, and of the memory that torch keeps for it on a GPU; and of the store, which stays."""
        self._store.close()
        torch_has_it = isinstance(vars(self).pop("_model", None), (SentenceTransformerModel, MtebModel))
        if torch_has_it:
            gc.collect()  # modules refer to each other
            import torch  # noqa: PLC0415 (there already)

            if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                torch.cuda.empty_cache()

    def _complete(self, texts: Sequence[str], prompt: str, role: str) -> bool:
        """Encode what the store lacks; False where it lost what it had, to make room."""
        lacking, had = dict[str, None](), False
        for first in range(0, len(texts), _PIECE):
            some = texts[first : first + _PIECE]
            keys = keys_of(some, prompt, role)
            missing = self._store.missing(keys)
            had = had or not missing.issuperset(keys)
            lacking |= dict.fromkeys(text for text, key in zip(some, keys, strict=True) if key in missing)
        wanted = longest_first(lacking)
        self._choose_engine(wanted, prompt, role)
        for first in range(0, len(wanted), _CHUNK):
            some = wanted[first : first + _CHUNK]
            vectors = self.encode_new(some, prompt, role)
            if not first and self._store.make_room(len(wanted), vectors.shape[1]) and had:
                return False
            self._store.add(keys_of(some, prompt, role), vectors, self._engine)
        return True

    def _choose_engine(self, texts: Sequence[str], prompt: str, role: str) -> None:
        """Have the model run by the fastest engine that agrees with torch, and say so; once, where texts are many."""
        if self._engine_chosen or len(texts) < _MANY or not isinstance(self._model, SentenceTransformerModel):
            return
        self._engine_chosen = True  # of two encoders with one model the first chooses
        if self._engine:
            return
        choice = self._model.choose_engine(texts, prompt=prompt, role=role, batch_size=self._batch_size)
        if choice:
            tqdm.write(f"{self._name}: {choice}", file=sys.stderr)

    @property
    def _engine(self) -> str:
        """What runs the model, if not torch's own operators."""
        return self._model.engine if isinstance(self._model, SentenceTransformerModel) else ""

    @property
    def engines(self) -> str:
        """Engines other than torch's own that made embeddings which were asked for, for `versions`."""
        return ", ".join(sorted(self._store.engines))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's own similarity, for rankings."""
        return self._model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's own similarity, row by row."""
        return self._model.similarity_pairwise(embeddings1, embeddings2)

    def encode_new(self, texts: list[str], prompt: str, role: str) -> Embeddings:
        """Embeddings of texts, whatever the store holds, and none of them kept; raises as `embed`."""
        if self.only_stored:
            raise DataError(f"model {self._name!r} has no stored embeddings of {len(texts)} texts; evaluate the study")
        self.watch.start()
        while True:
            try:
                vectors = self._model.embed(texts, prompt=prompt, role=role, batch_size=self._batch_size)
                break
            except (RuntimeError, ValueError, IndexError) as error:  # torch's errors
                what = str(error).strip().splitlines() or [type(error).__name__]
                lacks = lacks_memory(what[0])
                if lacks and self._batch_size > 1:
                    self._batch_size //= 2  # and it stays so: later texts would not fit either
                    continue
                raise ServiceError(
                    f"model {self._name!r} cannot encode: {what[0]}"
                    + ("; try evaluation.precision float16, or another evaluation.device" if lacks else "")
                ) from error
        self.encoded += len(texts)
        self.watch.note(self._name, len(texts), sum(map(len, texts)))
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise DataError(
                f"model {self._name!r} gives an embedding that is not finite for {text[:60]!r}"
                f" ({int((~finite).sum())} of {len(texts)} texts); check the model's files and precision"
            )
        return vectors

    def _fallback(self, role: str) -> str:
        """The prompt where mteb names none: the role's under the names that models use, or the model's default."""
        if role == "document":
            for name in ("document", "passage", "corpus"):
                if name in self._model.prompts:
                    return self._model.prompts[name]
        return self._model.default_prompt


@dataclass(frozen=True)
class ModelHost:
    """What a study's models are loaded with: its settings of them, its data sets, and folders.

    `file` is the study's, beside which local models are; `folder` has its records, `scratch` what its models encoded.
    """

    file: Path
    folder: Path
    scratch: Path
    evaluation: EvaluationSpec
    datasets: tuple[DatasetSpec, ...]

    @classmethod
    def of(cls, study: Study) -> ModelHost:
        """A study's; nothing is read."""
        return cls(study.file, study.folder, study.scratch, study.evaluation, tuple(study.datasets))

    def label(self, spec: ModelSpec) -> str:
        """The model's name in records and tables; with its revision where the study has two of one name."""
        same = [model for model in self.evaluation.models if model.name == spec.name]
        return spec.name if len(same) == 1 else f"{spec.name}@{spec.revision}"

    @property
    def labels(self) -> list[str]:
        """What the study's models are called in records, in its order."""
        return [self.label(spec) for spec in self.evaluation.models]

    def chosen(self, names: Sequence[str] = ()) -> list[ModelSpec]:
        """The study's models, or those that are named (by name or label). StudyError for one that cannot be."""
        specs = {self.label(spec): spec for spec in self.evaluation.models}
        chosen = []
        for name in [names] if isinstance(names, str) else names:
            specs_of_name = [spec for key, spec in specs.items() if name in (key, spec.name)]
            if not specs_of_name:
                raise StudyError(f"{self.file}: no model {name!r} in `evaluation.models`; {nearest(name, list(specs))}")
            chosen += [spec for spec in specs_of_name if spec not in chosen]
        chosen = chosen or list(specs.values())
        for spec in chosen:
            if spec.from_hub and spec.kind == "sentence_transformers":
                refuse_no_repository(spec.name)
        return chosen

    def model_id(self, spec: ModelSpec) -> str:
        """Identity of a model: kind, name, revision, precision, prompts, parameters, a local one's files, read for it.

        How mteb's models are loaded and prompted is mteb's, so its version is part of them.
        """
        parts = ["model-v1", spec.name, spec.revision, fingerprint(spec, self.file.parent)]
        precision = self.evaluation.precision
        parts += [precision] if precision != "float32" and spec.kind == "sentence_transformers" else []
        settings: dict[str, Any] = {"prompts": spec.prompts} if spec.prompts else {}
        if spec.kind != "sentence_transformers":
            settings["kind"] = spec.kind
        if spec.kind == "word_vectors":
            settings["files"] = [spec.word_vectors.vectors, spec.word_vectors.words]
        if spec.kind == "mteb":
            settings["mteb"] = importlib.metadata.version("mteb")
        return identity(*parts, *([settings] if settings else []))

    def load(self, spec: ModelSpec) -> Encoder:
        """The encoder of a model, with what the study's earlier runs encoded; raises as `load_model`."""
        model, revision = self.load_model(spec)
        return Encoder(model, spec.name, revision, self.evaluation.batch_size, self.store(self.model_id(spec)))

    def store(self, model: str) -> EmbeddingStore:
        """What the study's runs encoded with a model (its id). Raises DataError for a folder that is damaged."""
        return EmbeddingStore(self.scratch / "embeddings" / model, self.evaluation.embeddings_gb * 1e9)

    def load_model(self, spec: ModelSpec) -> tuple[TextModel, str]:
        """A model, and what it calls its revision.

        Raises StudyError for what the study says wrongly of it, ServiceError for a model that cannot be had.
        """
        if spec.prompts:
            self._refuse_unknown_prompts(spec)
        if spec.kind == "mteb":
            registered = MtebModel(spec, self.evaluation.device)
            return registered, registered.revision
        if spec.kind == "openai":
            return ServerModel(spec), spec.revision
        base = self.file.parent
        if spec.kind == "word_vectors":
            return WordVectors(spec, base), spec.revision
        if spec.kind == "lexical":
            return CharacterNgrams(spec), spec.revision
        return SentenceTransformerModel(spec, base, self.evaluation.device, self.evaluation.precision), spec.revision

    def _refuse_unknown_prompts(self, spec: ModelSpec) -> None:
        """Raise StudyError for a prompt that no task would ever look up: the model would be scored without it."""
        from mteb.abstasks.task_metadata import TaskType  # noqa: PLC0415

        roles = ("query", "document")
        names = [*get_args(TaskType), *(part.mteb or part.name for part in self.datasets)]
        names_allowed = [*roles, *names, *(f"{name}-{role}" for name in names for role in roles)]
        for name in spec.prompts:
            if name not in names_allowed:
                hint = nearest(name, names_allowed)
                hint = hint if len(hint) < 200 else "names are query, document, mteb's types of tasks, and data sets"
                raise StudyError(
                    f"{self.file}: model {spec.name!r} has a prompt for {name!r}, which is not a task; {hint}"
                )


def lacks_memory(complaint: str) -> bool:
    """Whether torch, or what it computes with, says that memory does not suffice."""
    return _LACKS_MEMORY.search(complaint) is not None


def longest_first(texts: Iterable[str]) -> list[str]:
    """Texts in the order in which they are encoded: batches hold like lengths, and a lack of memory shows at once."""
    return sorted(texts, key=lambda text: (-len(text), text))


def drift_of_texts(encoder: Encoder, originals: Sequence[str], transformed: Sequence[str]) -> NDArray[np.float64]:
    """The `drift` of each original and its transformation. Raises DataError for an embedding of length 0."""
    first, second = encoder.embed(originals), encoder.embed(transformed)
    nothing = ~(first.any(axis=1) & second.any(axis=1))
    if nothing.any():
        text = originals[int(nothing.argmax())]
        raise DataError(f"an embedding has length 0, so its cosine is undefined: {text[:60]!r} or its transformation")
    return drift(first, second)


class TextModel(Protocol):
    """What `Encoder` needs of a model."""

    prompts: dict[str, str]
    """Prompts by the names that mteb looks them up by."""
    default_prompt: str
    """The prompt where no name fits; empty for none."""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """One row for each text. `role` is `query`, `document` or empty, for models with a way for each."""
        ...

    def routed(self) -> bool:
        """Whether `role` changes the embedding."""
        ...

    def similarity(self, first: Any, second: Any) -> Any:
        """The model's own similarity of all of `first` with all of `second`."""
        ...

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The model's own similarity row by row."""
        ...


@runtime_checkable
class PromptingModel(Protocol):
    """A model that picks its prompts itself."""

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """What to give `TextModel.embed` for a prompt; calls that get the same name get the same embeddings."""
        ...

    def way_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """The same under an instruction, put into `template` or into the model's own; `call` is what `way` is given."""
        ...

    def before(self, way: str) -> str:
        """What stands before a text, that way."""
        ...

    def refuses(self) -> str:
        """Why it can be given no instruction; empty where it can."""
        ...
