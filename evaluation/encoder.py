"""An embedding model that encodes every distinct (prompt, text) once, whatever asks for it.

mteb asks for the same texts again for each copy of a data set (the corpus, the untouched candidates, equal
texts), and drift asks for pairs that tasks hold too; all of them, of all runs, share the embeddings on disk.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, EmbeddingStore
from generation.exceptions import DataError, ServiceError, StudyError
from generation.identity import identity
from generation.study import ModelSpec, Study

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

_CHUNK = 2048  # texts that are encoded and kept at a time: what a killed run has to encode again
_WHOLE = 1_000_000  # bytes; of larger files the two ends are read


def fingerprint(spec: ModelSpec, base: Path) -> str:
    """Identity of a local model's files; empty for a hub model, whose revision says it.

    Names and sizes of all files, the whole of small ones and both ends of large ones: a retrained model under an
    old name and revision is another model, and gigabytes need not be read to see it. A missing folder is
    `missing`, for loading to complain about.
    """
    if not (spec.path or spec.package):
        return ""
    try:
        folder = Path(spec.location(base))
    except StudyError:
        return "missing"
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.relative_to(folder)}\0{size}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(_WHOLE))
            if size > _WHOLE:
                stream.seek(max(_WHOLE, size - _WHOLE))
                digest.update(stream.read())
    return digest.hexdigest()


def model_id(study: Study, spec: ModelSpec) -> str:
    """Identity of a model: name, revision and precision, and of a local one its files, which are read for it."""
    parts = ["model-v1", spec.name, spec.revision, fingerprint(spec, study.file.parent)]
    precision = study.evaluation.precision
    return identity(*parts, *([] if precision == "float32" else [precision]))


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


class SentenceTransformerModel:
    """A model of sentence-transformers, loaded without running any code that it brings along."""

    def __init__(self, spec: ModelSpec, base: Path, device: str = "", precision: str = "float32") -> None:
        """Load it. `base` is the study file's folder. StudyError for a missing folder, ServiceError otherwise."""
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (takes seconds)

        location = spec.location(base)
        local = bool(spec.path or spec.package)
        try:
            self._model = SentenceTransformer(
                location,
                revision=None if local else spec.revision or None,
                device=device or None,
                trust_remote_code=False,
                model_kwargs={"dtype": precision},
            )
        except Exception as error:
            # Whatever a broken or unreachable model raises (OSError, ValueError, hub and safetensors errors) is one
            # thing to the user: this model cannot be loaded.
            what = str(error).strip().splitlines()
            hint = "correct its `path`" if local else "check name and revision, connect to the hub, or give it a `path`"
            line = what[0] if what else type(error).__name__
            raise ServiceError(f"model {spec.name!r} cannot be loaded from {location}: {line}; {hint}") from error
        self.prompts = {name: text for name, text in (self._model.prompts or {}).items() if text is not None}
        default = self._model.default_prompt_name
        self.default_prompt = self.prompts.get(default, "") if default else ""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Rows in the texts' order; the prompt is put before each text."""
        made = self._model.encode(
            list(texts),
            prompt=prompt,  # also when empty: nothing else would keep the model's default prompt away
            task=role or None,
            batch_size=batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(made, dtype=np.float32)

    def routed(self) -> bool:
        """Models with a Router send queries and documents through different modules."""
        return any(type(module).__name__ == "Router" for module in self._model)

    def similarity(self, first: Any, second: Any) -> Any:
        """As the model's card says, cosine by default."""
        return self._model.similarity(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """As `similarity`, row by row."""
        return self._model.similarity_pairwise(first, second)


class Encoder:
    """A model as mteb's EncoderProtocol wants it, with its store in front. `name` and `revision` name it."""

    def __init__(
        self, model: TextModel, name: str, revision: str, batch_size: int = 32, store: EmbeddingStore | None = None
    ) -> None:
        self._model = model
        self._name, self._revision = name, revision
        self._batch_size = batch_size
        self._store = store or EmbeddingStore()
        self.asked = 0
        """Texts that were asked for."""
        self.encoded = 0
        """Texts that the model was given."""

    @functools.cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """Name and revision for mteb, which calls every model without them the same."""
        from mteb.models.model_meta import ModelMeta  # noqa: PLC0415

        return ModelMeta.create_empty({"name": self._name, "revision": self._revision or "unknown"})

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
        from mteb.models.abs_encoder import get_prompt_name  # noqa: PLC0415

        texts = [text for batch in inputs for text in batch["text"]]
        role = str(prompt_type.value) if prompt_type is not None else ""
        name = get_prompt_name(self._model.prompts, task_metadata, prompt_type)
        prompt = self._model.prompts[name] if name else self._fallback(role)
        return self.embed(texts, prompt=prompt, role=role)

    def embed(self, texts: Sequence[str], *, prompt: str | None = None, role: str = "") -> Embeddings:
        """Embeddings (texts by dimensions), each distinct text encoded once; `prompt` None is the model's default.

        Raises DataError for an embedding that is not finite, ServiceError for a model that fails.
        """
        prompt = self._fallback("") if prompt is None else prompt
        self.asked += len(texts)
        start = hashlib.sha256(f"{prompt}\0{role if self._model.routed() else ''}\0".encode())
        keys = {text: _key(start, text) for text in texts}
        if not self._complete(keys, prompt, role):
            self._complete(keys, prompt, role)  # the store had to begin anew to make room
        return self._store.rows([keys[text] for text in texts])

    def close(self) -> None:
        """Let go of the store; what it holds stays."""
        self._store.close()

    def _complete(self, keys: Mapping[str, bytes], prompt: str, role: str) -> bool:
        """Encode what the store lacks; False where it lost what it had, to make room."""
        missing = self._store.missing(list(keys.values()))
        # Longest first, so that batches hold texts of like length and a lack of memory shows at once.
        wanted = sorted((text for text, key in keys.items() if key in missing), key=lambda text: (-len(text), text))
        for first in range(0, len(wanted), _CHUNK):
            some = wanted[first : first + _CHUNK]
            made = self._encode(some, prompt, role if self._model.routed() else "")
            if not first and self._store.make_room(len(wanted), made.shape[1]) and len(missing) < len(keys):
                return False
            self._store.add([keys[text] for text in some], made)
        return True

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's own similarity, for rankings."""
        return self._model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's own similarity, row by row."""
        return self._model.similarity_pairwise(embeddings1, embeddings2)

    def _encode(self, texts: list[str], prompt: str, role: str) -> Embeddings:
        while True:
            try:
                made = self._model.embed(texts, prompt=prompt, role=role, batch_size=self._batch_size)
                break
            except (RuntimeError, ValueError, IndexError) as error:  # torch's errors
                what = str(error).strip().splitlines() or [type(error).__name__]
                if "memory" in what[0] and self._batch_size > 1:
                    self._batch_size //= 2  # and it stays so: later texts would not fit either
                    continue
                raise ServiceError(
                    f"model {self._name!r} cannot encode: {what[0]}"
                    + (
                        "; try evaluation.precision float16, or another evaluation.device"
                        if "memory" in what[0]
                        else ""
                    )
                ) from error
        self.encoded += len(texts)
        finite = np.isfinite(made).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise DataError(
                f"model {self._name!r} gives an embedding that is not finite for {text[:60]!r}"
                f" ({int((~finite).sum())} of {len(texts)} texts); check the model's files and precision"
            )
        return made

    def _fallback(self, role: str) -> str:
        """The prompt where mteb names none: the role's under the names that models use, or the model's default."""
        if role == "document":
            for name in ("document", "passage", "corpus"):
                if name in self._model.prompts:
                    return self._model.prompts[name]
        return self._model.default_prompt


def load(study: Study, spec: ModelSpec) -> Encoder:
    """The encoder of a study's model, with what the study's earlier runs encoded."""
    evaluation = study.evaluation
    model = SentenceTransformerModel(spec, study.file.parent, evaluation.device, evaluation.precision)
    store = EmbeddingStore(study.scratch / "embeddings" / model_id(study, spec), evaluation.embeddings_gb * 1e9)
    return Encoder(model, spec.name, spec.revision, evaluation.batch_size, store)


def _key(start: Any, text: str) -> bytes:
    """The key of a text in the store: 16 bytes of a hash; `start` has what its prompt adds."""
    whole = start.copy()
    whole.update(text.encode())
    return bytes(whole.digest()[:16])


def drift(encoder: Encoder, originals: Sequence[str], transformed: Sequence[str]) -> NDArray[np.float64]:
    """1 - cos of each original and its transformation, from 0 to 2. Raises DataError for an embedding of length 0."""
    first = encoder.embed(originals).astype(np.float64)
    second = encoder.embed(transformed).astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    if (lengths == 0).any():
        text = originals[int(np.argmin(lengths))]
        raise DataError(f"an embedding has length 0, so its cosine is undefined: {text[:60]!r} or its transformation")
    # Rounding can leave the cosine of equal texts a hair above 1.
    cosines = np.clip((first * second).sum(axis=1) / lengths, -1.0, 1.0)
    distances: NDArray[np.float64] = 1.0 - cosines
    return distances
