"""An embedding model that encodes every distinct (prompt, text) once, for all uses.

mteb requests the same texts again for each copy of a data set (the corpus, the untouched candidates, equal texts), and
drift requests texts that tasks have too; all runs share the embeddings on disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pkgutil
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from evaluation.models.embeddings import Embeddings, EmbeddingStore, RowsLost, drift, keys_of
from evaluation.models.text_models import TextModel
from plumbline.errors import DataError, PlumblineError, ServiceError, StudyError, nearest
from plumbline.file_hashes import LARGE, sha256_of
from plumbline.identity import identity
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.study.places import files_in

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta


# Messages of torch on processors and GPUs, including cuBLAS; "an illegal memory access" is a different error.
_LACKS_MEMORY = re.compile("out of memory|t allocate memory|not enough memory|ALLOC_FAILED", re.IGNORECASE)
_OF_DISK = 0.25  # the share of the disk that stored embeddings of all models may take
_PIECE = 1 << 16  # texts looked up at a time
_TRIES = 3  # reads of rows whose checksums do not match and that were encoded again
CHUNK = (
    2048  # texts encoded and stored at a time: at most these are lost by a killed run; of a server's, those in flight
)


class Encoder:
    """A model with mteb's EncoderProtocol and a store. `name` and `revision` identify it."""

    def __init__(  # noqa: PLR0913 (all but three have defaults)
        self,
        model: TextModel,
        name: str,
        revision: str,
        batch_size: int = 32,
        store: EmbeddingStore | None = None,
        *,
        chunk: int = CHUNK,
        of_study: Collection[str] = (),
    ) -> None:
        """Take a model and its store; `of_study` names the prompts that the study gives it."""
        self.model, self._of_study = model, of_study
        self._name, self.revision = name, revision
        self._batch_size, self._chunk = batch_size, chunk
        self._store = store or EmbeddingStore()
        self.prompts = dict[str, str]()
        """The prompts used, by role (`query`, `document`, else `text`), each with who gave it and its name."""
        self.asked = 0
        """Texts requested."""
        self.encoded = 0
        """Texts given to the model."""

    @functools.cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """Name and revision for mteb, which otherwise gives all models one name."""
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
        """Return embeddings of mteb's batches, in order, with the model's prompt for the task."""
        texts = [text for batch in inputs for text in batch["text"]]
        role = str(prompt_type.value) if prompt_type is not None else ""
        return self.embed(texts, prompt=self.prompt_for(task_metadata, hf_split, hf_subset, prompt_type), role=role)

    def prompt_for(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """Return the model's prompt for a call of mteb, as `embed` takes it, and note it in `prompts`."""
        role = str(prompt_type.value) if prompt_type is not None else ""
        prompt, source = self.model.prompt_of(task_metadata, hf_split, hf_subset, prompt_type, self._of_study)
        if prefix := self.model.before(prompt):
            self.prompts[role or "text"] = f"{prefix!r} ({source})"
        return prompt

    def embed(self, texts: Sequence[str], *, prompt: str | None = None, role: str = "") -> Embeddings:
        """Return embeddings (texts by dimensions), encoding each distinct text once; `prompt` None is the default.

        Raises DataError for an embedding that is not finite or has length 0, ServiceError for a model that fails.
        """
        prompt = self.model.default_prompt if prompt is None else prompt
        self.asked += len(texts)
        role = role if self.model.routed() else ""
        if not self._complete(texts, prompt, role):
            self._complete(texts, prompt, role)  # the store was emptied to make room
        vectors = np.empty((len(texts), self._store.width or 0), np.float32)
        for first in range(0, len(texts), _PIECE):
            vectors[first : first + _PIECE] = self._stored(texts[first : first + _PIECE], prompt, role)
        return vectors

    def _stored(self, texts: Sequence[str], prompt: str, role: str) -> Embeddings:
        """Return the store's rows; lost or damaged ones are encoded again."""
        keys = keys_of(texts, prompt, role)
        for _ in range(_TRIES - 1):
            with contextlib.suppress(RowsLost):
                return self._store.rows(keys)
            self._complete(texts, prompt, role)
        return self._store.rows(keys)

    def close(self) -> None:
        """Release the model, torch's memory for it on a GPU, and the store, which stays on disk."""
        self._store.close()
        release = self.model.release
        del self.model
        release()

    def _complete(self, texts: Sequence[str], prompt: str, role: str) -> bool:
        """Encode the texts missing in the store; return False if the store was emptied to make room."""
        new, had = dict[str, None](), False
        for first in range(0, len(texts), _PIECE):
            some = texts[first : first + _PIECE]
            keys = keys_of(some, prompt, role)
            missing = self._store.missing(keys)
            had = had or not missing.issuperset(keys)
            new |= dict.fromkeys(text for text, key in zip(some, keys, strict=True) if key in missing)
        # Batches have similar lengths, and a lack of memory shows at once.
        wanted = sorted(new, key=lambda text: (-len(text), text))
        if wanted and (
            choice := self.model.choose_engine(
                wanted, prompt=prompt, role=role, batch_size=self._batch_size, model_id=self._store.model_id
            )
        ):
            tqdm.write(f"{self._name}: {choice}", file=sys.stderr)
        stored = False
        for first in range(0, len(wanted), self._chunk):
            for some, vectors in self._encoded(wanted[first : first + self._chunk], prompt, role):
                emptied = not stored and self._store.make_room(len(wanted), vectors.shape[1]) and had
                self._store.add(keys_of(some, prompt, role), vectors, self.model.engine)
                stored = True
                if emptied:
                    return False
        return True

    def _encoded(self, texts: list[str], prompt: str, role: str) -> Iterator[tuple[list[str], Embeddings]]:
        """Yield texts with their new embeddings: all at once, or a server's as they arrive. Raises as `embed`."""
        faults: list[PlumblineError] = []
        parts = self.model.arriving(texts, prompt=prompt, role=role, batch_size=self._batch_size, faults=faults)
        if parts is None:
            yield texts, self.encode_new(texts, prompt, role)
            return
        for first, vectors in parts:
            some = texts[first : first + len(vectors)]
            try:
                self._checked(some, vectors)
            except DataError as error:
                faults.append(error)
            usable = np.logical_and(np.isfinite(vectors).all(axis=1), vectors.any(axis=1))
            if usable.any():
                yield list(compress(some, usable)), vectors[usable]

    @property
    def engines(self) -> str:
        """Engines other than torch's own that made requested embeddings, for `versions`."""
        return ", ".join(sorted(self._store.engines))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the model's own similarity, for rankings."""
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the model's own similarity, row by row."""
        return self.model.similarity_pairwise(embeddings1, embeddings2)

    def encode_new(self, texts: list[str], prompt: str, role: str) -> Embeddings:
        """Return newly encoded embeddings of texts, without storing them. Raises as `embed`."""
        while True:
            try:
                vectors = self.model.embed(texts, prompt=prompt, role=role, batch_size=self._batch_size)
                break
            except (RuntimeError, ValueError, IndexError) as error:  # torch's errors
                message = str(error).strip().splitlines() or [type(error).__name__]
                lacks = lacks_memory(message[0])
                if lacks and self._batch_size > 1:
                    self._batch_size //= 2  # for all later texts too, which would not fit either
                    continue
                raise ServiceError(
                    f"model {self._name!r} cannot encode: {message[0]}"
                    + ("; try evaluation.precision float16, or another GPU (CUDA_VISIBLE_DEVICES)" if lacks else "")
                ) from error
        return self._checked(texts, vectors)

    def _checked(self, texts: list[str], vectors: Embeddings) -> Embeddings:
        """Return the embeddings of texts. Raises DataError for one that is not finite, or has length 0."""
        self.encoded += len(texts)
        for usable, fault in (
            (np.isfinite(vectors).all(axis=1), "that is not finite"),
            (vectors.any(axis=1), "of length 0, whose cosine is undefined,"),
        ):
            if not usable.all():
                text = texts[int(np.argmin(usable))]
                raise DataError(
                    f"model {self._name!r} returns an embedding {fault} for {text[:60]!r}"
                    f" ({int((~usable).sum())} of {len(texts)} texts); check the model's files and precision"
                )
        return vectors


@dataclass(frozen=True)
class ModelHost:
    """The settings, data sets and folders that a study's models are loaded with.

    `file` is the study file, which local paths are relative to; `folder` has its records, `scratch` its embeddings.
    """

    file: Path
    folder: Path
    scratch: Path
    evaluation: EvaluationSpec
    datasets: tuple[DatasetSpec, ...]

    @classmethod
    def of(cls, study: Study) -> ModelHost:
        """Return the host of a study, without reading anything."""
        return cls(study.file, study.folder, study.scratch, study.evaluation, tuple(study.datasets))

    def label(self, spec: ModelSpec) -> str:
        """Return the model's name in records and tables, with its variant if the study has two of one name."""
        same = [model for model in self.evaluation.models if model.name == spec.name]
        return spec.name if len(same) == 1 or not spec.variant else f"{spec.name}@{spec.variant}"

    @property
    def labels(self) -> list[str]:
        """The names of the study's models in records, in its order."""
        return [self.label(spec) for spec in self.evaluation.models]

    def chosen(self, names: Sequence[str] = ()) -> list[ModelSpec]:
        """Return the study's models, or those of a label or name. Raises StudyError for an unknown one."""
        specs = {self.label(spec): spec for spec in self.evaluation.models}
        chosen = []
        for name in [names] if isinstance(names, str) else names:
            specs_of_name = [specs[name]] if name in specs else [spec for spec in specs.values() if spec.name == name]
            if not specs_of_name:
                raise StudyError(f"{self.file}: no model {name!r} in `evaluation.models`; {nearest(name, list(specs))}")
            chosen += [spec for spec in specs_of_name if spec not in chosen]
        chosen = chosen or list(specs.values())
        for spec in chosen:
            spec.refuse_unloadable()
        return chosen

    def model_id(self, spec: ModelSpec) -> str:
        """Return the identity of a model: all that decides its embeddings."""
        return identity("model-v1", *spec.identity(self.fingerprint(spec), self.evaluation.precision))

    def fingerprint(self, spec: ModelSpec) -> str:
        """Return the identity of a local model's files, or of what another one counts; empty for most."""
        return spec.fingerprint(self.file.parent, folder_hash)

    def load(self, spec: ModelSpec) -> Encoder:
        """Return the encoder of a model, with the embeddings of earlier runs. Raises as `load_model`."""
        model, revision = self.load_model(spec)
        store, size = self.store(self.model_id(spec)), self.evaluation.batch_size
        return Encoder(model, spec.name, revision, size, store, of_study=spec.prefixes)

    def store(self, model: str) -> EmbeddingStore:
        """Return the stored embeddings of a model (its id). Raises DataError for a damaged folder."""
        nearest_folder = next(folder for folder in (self.scratch, *self.scratch.parents) if folder.exists())
        return EmbeddingStore(self.scratch / "embeddings" / model, _OF_DISK * shutil.disk_usage(nearest_folder).total)

    def load_model(self, spec: ModelSpec) -> tuple[TextModel, str]:
        """Return a model, and its revision by its own account.

        Raises StudyError for wrong settings in the study, ServiceError for a model that cannot be loaded.
        """
        if spec.prefixes:
            self._refuse_unknown_prompts(spec)
        model: TextModel = pkgutil.resolve_name(spec.RUNS)(spec, self.file.parent, self.evaluation.precision)
        return model, model.revision or spec.revision

    def _refuse_unknown_prompts(self, spec: ModelSpec) -> None:
        """Raise StudyError for a prompt that no task looks up: the model would be scored without it."""
        from mteb.abstasks.task_metadata import TaskType  # noqa: PLC0415

        roles = ("query", "document")
        names = [*get_args(TaskType), *(part.mteb or part.name for part in self.datasets)]
        names_allowed = [*roles, *names, *(f"{name}-{role}" for name in names for role in roles)]
        for name in spec.prefixes:
            if name not in names_allowed:
                hint = nearest(name, names_allowed)
                hint = hint if len(hint) < 200 else "valid names: query, document, mteb's types of tasks, data sets"
                raise StudyError(f"{self.file}: model {spec.name!r} has a prompt for the unknown name {name!r}; {hint}")


def folder_hash(folder: Path) -> str:
    """Return a hash of names, sizes and bytes of all files: a retrained model of an old name is another model.

    Large files are read again only if they changed (`file_hashes`).
    """
    digest = hashlib.sha256()
    for file in sorted(files_in(folder)):
        size = file.stat().st_size
        digest.update(f"{file.relative_to(folder)}\0{size}\0".encode())
        digest.update(sha256_of(file).encode() if size > LARGE else file.read_bytes())
    return digest.hexdigest()


def lacks_memory(complaint: str) -> bool:
    """Return whether a message of torch, or of its libraries, means a lack of memory."""
    return _LACKS_MEMORY.search(complaint) is not None


def drift_of_texts(encoder: Encoder, originals: Sequence[str], transformed: Sequence[str]) -> NDArray[np.float64]:
    """Return the `drift` of each original and its transformation."""
    return drift(encoder.embed(originals), encoder.embed(transformed))
