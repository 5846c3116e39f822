"""Models loaded by sentence-transformers, from the hub or a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from plumbline.errors import ServiceError, StudyError
from plumbline.file_hashes import LARGE, sha256_of
from plumbline.identity import identity
from plumbline.study.evaluation import INSTRUCTION, ModelSpec
from plumbline.study.places import files_in

_PATIENCE = 5.0  # seconds to wait for the hub


def fingerprint(spec: ModelSpec, base: Path) -> str:
    """Return the identity of a local model's files, or of a lexical one's parameters; empty for others.

    It covers names, sizes and bytes of all files: a retrained model with an old name and revision is another model.
    Large files are read again only if they changed (`file_hashes`). A missing folder gives `missing`; loading reports
    it.
    """
    if spec.kind == "lexical":
        return identity("lexical-v1", list(spec.ngrams), DIMENSIONS)
    if not (spec.path or spec.package):
        return ""
    try:
        folder = Path(spec.location(base))
    except StudyError:
        return "missing"
    digest = hashlib.sha256()
    for file in sorted(files_in(folder)):
        size = file.stat().st_size
        digest.update(f"{file.relative_to(folder)}\0{size}\0".encode())
        digest.update(sha256_of(file).encode() if size > LARGE else file.read_bytes())
    return digest.hexdigest()


class SentenceTransformerModel:
    """A model of sentence-transformers; its own code runs only if the study allows it."""

    def __init__(self, spec: ModelSpec, base: Path, device: str = "", precision: str = "float32") -> None:
        """Load the model; `base` is the study file's folder.

        Raises StudyError for a missing folder and for code that is not allowed, ServiceError otherwise.
        """
        location = spec.location(base)
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (takes seconds)

        local = bool(spec.path or spec.package)
        if not local:
            refuse_no_hub(spec.name)
        try:
            self._model = SentenceTransformer(
                location,
                revision=None if local else spec.revision or None,
                device=device or None,
                trust_remote_code=spec.remote_code,
                model_kwargs={"dtype": precision},
            )
        except Exception as error:
            if "trust_remote_code" in str(error) and not spec.remote_code:
                raise code_not_allowed(spec) from None
            # Whatever a broken or unreachable model raises (OSError, ValueError, hub and safetensors errors) means
            # one thing: this model cannot be loaded.
            hint = "correct its `path`" if local else "check name and revision, connect to the hub, or give it a `path`"
            line = f"model {spec.name!r} cannot be loaded from {location}: {first_line(error)}; {hint}"
            raise ServiceError(line) from error
        prompts = {name: text for name, text in (self._model.prompts or {}).items() if text is not None}
        self.prompts = prompts | spec.prompts
        default = self._model.default_prompt_name
        self.default_prompt = self.prompts.get(default, "") if default else ""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return rows in the texts' order; the prompt is put before each text."""
        vectors = self._model.encode(
            list(texts),
            prompt=prompt,  # also if empty, to override the model's default prompt
            task=role or None,
            batch_size=batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def routed(self) -> bool:
        """Return whether the model has a Router, which treats queries and documents differently."""
        return routed(self._model)

    def similarities(self) -> tuple[Any, Any] | None:
        """Return both similarities as functions that need no model."""
        return similarities(self._model)

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the similarity that the model's card names, cosine by default."""
        return self._model.similarity(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Return the same as `similarity`, row by row."""
        return self._model.similarity_pairwise(first, second)


def refuse_no_hub(name: str) -> None:
    """Raise ServiceError if a model is not on this machine and the hub does not answer.

    The libraries would try for more than a minute. Any answer of the hub is left to them.
    """
    from huggingface_hub import constants, get_session, try_to_load_from_cache  # noqa: PLC0415 (takes a while)

    repository = name if "/" in name else f"sentence-transformers/{name}"
    cached_files = (try_to_load_from_cache(repository, file) for file in ("modules.json", "config.json"))
    if constants.HF_HUB_OFFLINE or any(isinstance(file, str) for file in cached_files):
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except Exception as error:  # of requests or httpx, as its version has it
        raise ServiceError(
            f"model {name!r} cannot be loaded: it is not on this machine, and the hub {constants.ENDPOINT} does not"
            f" answer ({first_line(error)}); connect to the hub, or give the model a `path`"
        ) from None


def in_template(text: str, template: str = "") -> str:
    """Return the text before each text for an instruction: nothing for an empty one, by default it and a space.

    The instruction is inserted unchanged, including braces.
    """
    return (template or f"{INSTRUCTION} ").replace(INSTRUCTION, text) if text else ""


def routed(model: Any) -> bool:
    """Return whether a SentenceTransformer has a Router, which sends queries and documents to different modules."""
    return any(type(module).__name__ == "Router" for module in model)


def similarities(model: Any) -> tuple[Any, Any]:
    """Return a SentenceTransformer's similarities, all with all and row by row, as functions without it."""
    from sentence_transformers import SimilarityFunction  # noqa: PLC0415 (takes seconds)

    name = model.similarity_fn_name
    return SimilarityFunction.to_similarity_fn(name), SimilarityFunction.to_similarity_pairwise_fn(name)


def code_not_allowed(spec: ModelSpec) -> StudyError:
    """Return the error for a model with code of its own that the study does not allow."""
    return StudyError(
        f"model {spec.name!r} contains Python code, which would run on this machine with your rights;"
        " read it, then write `remote_code: true` beside its name, or leave the model out"
    )


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


DIMENSIONS = 2048  # buckets that character n-grams are hashed into
IN_TORCH = ("sentence_transformers", "mteb")  # kinds that torch runs in this process
