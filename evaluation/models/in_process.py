"""Models that sentence-transformers loads, from the hub or from a folder, and how fast they encode.

On a CPU their linear layers may run by oneDNN, which torch carries, with weights that are packed once, and in smaller
batches. Torch's own way for 32-bit floats packs a layer's weights again at each call. oneDNN adds in another order, so
that embeddings differ in their last bits: `agreement` says by how much. Batches of few tokens stay in a core's cache,
and texts in them are of like lengths (`runs`).

Only torch's private operators take packed weights (its compiler uses them). Where a version of torch lacks them, or has
them for another processor, the layers stay as they are.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.models.embeddings import Embeddings
from plumbline.errors import ServiceError, StudyError
from plumbline.file_hashes import LARGE, sha256_of
from plumbline.identity import identity
from plumbline.rates import Stopwatch, keep_rates
from plumbline.study.evaluation import INSTRUCTION, ModelSpec
from plumbline.study.places import files_in

if TYPE_CHECKING:
    import torch


_PROBE = 32  # texts on which engines are compared
_PATIENCE = 5.0  # seconds for the hub to answer at all


def fingerprint(spec: ModelSpec, base: Path) -> str:
    """Identity of a local model's files, or of a lexical one's parameters; empty for others, whose revision says it.

    Names, sizes and bytes of all files: a retrained model under an old name and revision is another model, wherever its
    weights differ. Large files are read again only where they have changed (`file_hashes`). A missing folder is
    `missing`, for loading to complain about.
    """
    if spec.kind == "lexical":
        return identity("lexical-v1", list(spec.lexical.ngrams), spec.lexical.dimensions)
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
    """A model of sentence-transformers; code that it brings along runs only where the study allows it."""

    def __init__(self, spec: ModelSpec, base: Path, device: str = "", precision: str = "float32") -> None:
        """Load it; `base` is the study file's folder.

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
            # Whatever a broken or unreachable model raises (OSError, ValueError, hub and safetensors errors) is one
            # thing to the user: this model cannot be loaded.
            hint = "correct its `path`" if local else "check name and revision, connect to the hub, or give it a `path`"
            line = f"model {spec.name!r} cannot be loaded from {location}: {first_line(error)}; {hint}"
            raise ServiceError(line) from error
        prompts = {name: text for name, text in (self._model.prompts or {}).items() if text is not None}
        self.prompts = prompts | spec.prompts
        self._precision, self.engine = precision, ""
        """What runs its linear layers (`packed.ENGINE`); empty for torch's own operators."""
        default = self._model.default_prompt_name
        self.default_prompt = self.prompts.get(default, "") if default else ""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Rows in the texts' order; the prompt is put before each text."""
        if not self.engine or self._precision != "float32":  # with fewer bits a batch changes its rows
            return self._encoded(texts, prompt, role, batch_size)
        import torch  # noqa: PLC0415 (there already)

        sizes = [len(text.encode()) + len(prompt.encode()) for text in texts]
        parts = runs(sizes, torch.get_num_threads(), batch_size)
        rows = np.concatenate(
            [self._encoded([texts[i] for i in indices], prompt, role, most) for indices, most in parts]
        )
        vectors = np.empty_like(rows)
        vectors[[index for indices, _ in parts for index in indices]] = rows
        return vectors

    def _encoded(self, texts: Sequence[str], prompt: str, role: str, batch_size: int) -> Embeddings:
        vectors = self._model.encode(
            list(texts),
            prompt=prompt,  # also when empty: nothing else would keep the model's default prompt away
            task=role or None,
            batch_size=batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def choose_engine(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> str:
        """Have linear layers run by oneDNN if, on some of the texts, it agrees with torch's own way and is faster.

        Returns what was chosen and why, in a line; empty where there was no choice, or the probe failed.
        """
        if not packable(self._model):
            return ""
        some = texts[:: max(1, len(texts) // _PROBE)][:_PROBE]

        def timed() -> tuple[Embeddings, float]:
            begun = time.process_time()  # of this process: what else the machine does counts for neither
            rows = self.embed(some, prompt=prompt, role=role, batch_size=batch_size)
            return rows, time.process_time() - begun

        try:
            plain, *seconds = timed()
            seconds.append(timed()[1])
            if not pack(self._model):
                return ""
            self.engine = ENGINE
            rows, *packed_seconds = timed()
            packed_seconds.append(timed()[1])
        except (
            RuntimeError,
            ValueError,
            IndexError,
        ):  # torch's errors: encoding without the engine tells what is wrong
            self._unpacked()
            return ""
        apart, faster = agreement(plain, rows), min(packed_seconds) < min(seconds)
        if not (apart.holds and faster):
            self._unpacked()
        return (
            f"linear layers are {'' if self.engine else 'not '}run by {ENGINE}: on {len(some)} texts it is"
            f" {'' if faster else 'not '}faster than torch alone, cosines of embeddings are 1 - {apart.cosine:.0e} or"
            f" more, similarities differ by {apart.similarity:.0e} at most"
        )

    def _unpacked(self) -> None:
        unpack(self._model)
        self.engine = ""

    def routed(self) -> bool:
        """Models with a Router send queries and documents through different modules."""
        return routed(self._model)

    def similarities(self) -> tuple[Any, Any] | None:
        """Both as functions that need no model."""
        return similarities(self._model)

    def similarity(self, first: Any, second: Any) -> Any:
        """As the model's card says, cosine by default."""
        return self._model.similarity(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """As `similarity`, row by row."""
        return self._model.similarity_pairwise(first, second)


def refuse_no_hub(name: str) -> None:
    """Raise ServiceError where a model is not on this machine and the hub does not answer.

    The libraries would try for more than a minute. Whatever the hub answers, they are left to make sense of.
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
            f" answer ({first_line(error)}); connect to it, or give the model a `path`"
        ) from None


def in_template(text: str, template: str = "") -> str:
    """What stands before a text under an instruction: nothing for an empty one, without a template it and a blank.

    Whatever an instruction holds stands there as it is, braces too.
    """
    return (template or f"{INSTRUCTION} ").replace(INSTRUCTION, text) if text else ""


def routed(model: Any) -> bool:
    """Whether a SentenceTransformer has a Router, which sends queries and documents through different modules."""
    return any(type(module).__name__ == "Router" for module in model)


def similarities(model: Any) -> tuple[Any, Any]:
    """What a SentenceTransformer compares embeddings with, all with all and row by row, as functions without it."""
    from sentence_transformers import SimilarityFunction  # noqa: PLC0415 (takes seconds)

    name = model.similarity_fn_name
    return SimilarityFunction.to_similarity_fn(name), SimilarityFunction.to_similarity_pairwise_fn(name)


def code_not_allowed(spec: ModelSpec) -> StudyError:
    """The error for a model that brings along code which the study does not allow."""
    return StudyError(
        f"model {spec.name!r} brings Python code of its own, which would run on this machine with your rights;"
        " read it, then write `settings: {remote_code: true}` beside its name, or leave the model out"
    )


def first_line(error: Exception) -> str:
    """What an error says, as far as its first line goes."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


ENGINE = "oneDNN"
_LARGEST = 4 << 30  # bytes of weights: the packed ones are a second copy
_BYTES = 2048  # of texts in a batch, for each thread
_COSINE, _SIMILARITY = 1e-6, 1e-4  # how far embeddings, and what is computed from them, may be from torch's own


class Agreement(NamedTuple):
    """How far embeddings of the same texts by two ways are from each other, at most."""

    cosine: float
    """1 - cosine of a text's two embeddings."""
    similarity: float
    """Difference between two texts' cosines by both ways, and between a text's two lengths, as a share of one."""

    @property
    def holds(self) -> bool:
        """Whether one way may stand for the other."""
        return self.cosine <= _COSINE and self.similarity <= _SIMILARITY


def agreement(plain: Embeddings, others: Embeddings) -> Agreement:
    """How far two tables of embeddings (the same texts by dimensions) are from each other.

    Infinitely far where an embedding is not finite, or has no length.

    >>> import numpy as np
    >>> agreement(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).holds
    True
    """
    first, second = np.asarray(plain, np.float64), np.asarray(others, np.float64)
    lengths = [np.linalg.norm(rows, axis=1) for rows in (first, second)]
    if not all(np.isfinite(length).all() and length.all() for length in lengths):
        return Agreement(np.inf, np.inf)
    first, second = first / lengths[0][:, None], second / lengths[1][:, None]
    cosines = (first * second).sum(axis=1)
    apart = np.abs(first @ first.T - second @ second.T).max(), np.abs(lengths[1] / lengths[0] - 1).max()
    return Agreement(max(0.0, 1 - float(cosines.min())), float(max(apart)))


def runs(sizes: Sequence[int], threads: int, most: int) -> list[tuple[list[int], int]]:
    """Texts in runs, the longest first: (their indices, how many of them to put in a batch), `most` at most.

    `sizes` are bytes in UTF-8, of which a token has about four in any script. A batch has some 512 tokens for each
    thread; how many texts these are is rounded down to a power of two, so that there are few runs.

    >>> runs([10, 2000, 600, 500], threads=1, most=32)
    [([1], 1), ([2], 2), ([3], 4), ([0], 32)]
    """
    by_rows: dict[int, list[int]] = {}
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        rows = min(most, max(1, threads * _BYTES // max(1, sizes[index])))
        by_rows.setdefault(1 << (rows.bit_length() - 1), []).append(index)
    return [(indices, rows) for rows, indices in by_rows.items()]


def packable(model: torch.nn.Module) -> bool:
    """Whether a model has linear layers that oneDNN can run here: on an x86 CPU, and small enough for a second copy."""
    import torch  # noqa: PLC0415 (takes seconds)

    layers = _linear_layers(model)
    weights = [] if any("forward" in vars(layer) for layer in layers) else [layer.weight for layer in layers]
    types = (torch.float32, torch.bfloat16)
    on_cpu = all(weight.device.type == "cpu" and weight.dtype in types for weight in weights)
    has_engine = platform.machine() in ("x86_64", "AMD64") and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return bool(weights) and on_cpu and has_engine and sum(weight.nbytes for weight in weights) <= _LARGEST


def pack(model: torch.nn.Module) -> bool:
    """Have a model's linear layers run by oneDNN; False, and nothing is changed, where they cannot."""
    if not packable(model):
        return False
    import torch  # noqa: PLC0415 (there already)

    try:
        run = torch.ops.mkldnn._linear_pointwise
        for layer in _linear_layers(model):
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)
            bias = None if layer.bias is None else layer.bias.detach()
            layer.forward = functools.partial(_forward, run, weight, bias)  # type: ignore[method-assign]
    except (AttributeError, RuntimeError):
        unpack(model)
        return False
    return True


def unpack(model: torch.nn.Module) -> None:
    """Have the layers run as torch does."""
    for layer in _linear_layers(model):
        vars(layer).pop("forward", None)


def _linear_layers(model: torch.nn.Module) -> list[torch.nn.Linear]:
    import torch  # noqa: PLC0415 (takes seconds)

    return [module for module in model.modules() if type(module) is torch.nn.Linear]


def _forward(run: object, weight: torch.Tensor, bias: torch.Tensor | None, rows: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = run(rows, weight, bias, "none", [], "")  # type: ignore[operator]
    return result


IN_TORCH = ("sentence_transformers", "mteb")  # kinds that torch runs in this process, where it has one on a GPU


def keep_speed(folder: Path, spec: ModelSpec, model_id: str, watch: Stopwatch, gpu: str) -> None:
    """Note in a study's folder what a model took for the texts that it was given; nothing where it was given none.

    `gpu` is what kind of GPU it was on, empty for none.
    """
    rate = watch.rate("encoding", spec.name, spec.name, model_id)
    if rate and gpu:
        rate = rate.model_copy(update={"gpu": gpu, "gpu_seconds": rate.seconds})
    keep_rates(folder, [rate])


def gpu_of(spec: ModelSpec, device: str) -> str:
    """What kind of GPU a model that was loaded here is on; empty where it is on none."""
    if spec.kind not in IN_TORCH or device.startswith("cpu"):
        return ""
    import torch  # noqa: PLC0415 (takes seconds)

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""
