"""Models loaded by sentence-transformers, from the hub or a folder, and their speed.

On a CPU oneDNN, which torch includes, can run linear layers with weights packed once, in smaller batches; torch's own
operators for 32-bit floats pack a layer's weights at each call. oneDNN adds in another order, so embeddings differ in
their last bits: `agreement` measures by how much. Batches of few tokens stay in a core's cache, and their texts have
similar lengths (`runs`).

Only private operators of torch accept packed weights (its compiler uses them). If a version of torch lacks them for
this processor, the layers stay as they are.
"""

from __future__ import annotations

import functools
import gc
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.text_models import TextModel
from plumbline.errors import ServiceError, StudyError
from plumbline.file_hashes import read_sealed, write_sealed
from plumbline.resources import user_cache
from plumbline.study.evaluation import ModelSpec, SentenceTransformersSpec

if TYPE_CHECKING:
    import torch


_MANY = 1000  # texts from which comparing engines pays
_PROBE = 32  # texts to compare engines on
_MOST = 1000  # choices of engines kept on a machine
_PATIENCE = 5.0  # seconds to wait for the hub
# Beside other programs threads wait for each other. If a run of over `_NOTICED` seconds got less than this share of its
# threads' time, there are only as many threads as cores were free, for `_BUSY` seconds.
_SHARE, _NOTICED, _BUSY = 0.75, 0.5, 30.0


class SentenceTransformerModel(TextModel):
    """A model of sentence-transformers; its own code runs only if the study allows it."""

    @staticmethod
    def release() -> None:
        """Release torch's memory for models that are gone, on a GPU too."""
        gc.collect()  # modules refer to each other
        import torch  # noqa: PLC0415 (there already)

        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()

    def __init__(
        self, spec: SentenceTransformersSpec, base: Path, precision: str = "float32", device: str = ""
    ) -> None:
        """Load the model; `base` is the study file's folder.

        Raises StudyError for a missing folder, for code that is not allowed and for more dimensions than it has,
        ServiceError otherwise.
        """
        location = spec.location(base)
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (takes seconds)

        local = spec.local
        if not local:
            refuse_no_hub(spec.name)
        try:
            self._model = SentenceTransformer(
                location,
                revision=None if local else spec.revision or None,
                device=device or None,
                trust_remote_code=spec.remote_code,
                model_kwargs={"dtype": precision},
                truncate_dim=spec.truncate_dim,
            )
        except Exception as error:
            if "trust_remote_code" in str(error) and not spec.remote_code:
                raise code_not_allowed(spec) from None
            # Whatever a broken or unreachable model raises (OSError, ValueError, hub and safetensors errors) means
            # one thing: this model cannot be loaded.
            hint = "correct its `path`" if local else "check name and revision, connect to the hub, or give it a `path`"
            line = f"model {spec.name!r} cannot be loaded from {location}: {first_line(error)}; {hint}"
            raise ServiceError(line) from error
        width = self._model.get_embedding_dimension()
        if spec.truncate_dim and width and width < spec.truncate_dim:
            raise StudyError(
                f"model {spec.name!r}: truncate_dim is {spec.truncate_dim}, but its embeddings have {width} dimensions;"
                " give it a smaller one, or remove it"
            )
        prompts = {name: text for name, text in (self._model.prompts or {}).items() if text is not None}
        self.prompts = prompts | spec.prompts
        self._precision, self._engine_chosen = precision, False
        self._free, self._busy_until = 1, 0.0
        default = self._model.default_prompt_name
        self.default_prompt = self.prompts.get(default, "") if default else ""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return rows in the texts' order; the prompt is put before each text."""
        if not self.engine or self._precision != "float32":  # with lower precision the batch changes its rows
            return self._encoded(texts, prompt, role, batch_size)
        import torch  # noqa: PLC0415 (there already)

        sizes, cores = [len(text.encode()) + len(prompt.encode()) for text in texts], torch.get_num_threads()
        parts, tables = runs(sizes, cores, batch_size), []
        try:
            for indices, most in parts:
                begun, spent = time.monotonic(), time.process_time()
                threads = self._free if begun < self._busy_until else cores
                torch.set_num_threads(threads)  # changes no bit of the rows
                tables.append(self._encoded([texts[i] for i in indices], prompt, role, most))
                seconds = time.monotonic() - begun
                used = (time.process_time() - spent) / max(seconds, 1e-9)
                if threads == cores and seconds > _NOTICED and used < _SHARE * cores:
                    self._free, self._busy_until = max(1, int(used)), time.monotonic() + _BUSY
        finally:
            torch.set_num_threads(cores)
        rows = np.concatenate(tables)
        vectors = np.empty_like(rows)
        vectors[[index for indices, _ in parts for index in indices]] = rows
        return vectors

    def _encoded(self, texts: Sequence[str], prompt: str, role: str, batch_size: int) -> Embeddings:
        vectors = self._model.encode(
            list(texts),
            prompt=prompt,  # also if empty, to override the model's default prompt
            task=role or None,
            batch_size=batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def choose_engine(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int, model_id: str) -> str:
        """Use oneDNN for linear layers if on some texts it agrees with torch and is faster.

        The choice is kept for this machine: later runs of the model begin with it. Returns a line with the choice and
        the reason; empty if there was no choice, or the comparison failed.
        """
        if self._engine_chosen or not packable(self._model):
            return ""
        import torch  # noqa: PLC0415 (there already)

        file = user_cache() / "engines.json"
        key = f"{model_id} {torch.__version__} {torch.backends.cpu.get_cpu_capability()} {platform.node()}"
        choices = read_sealed(file) if model_id else {}
        if choices.get(key) == ENGINE and pack(self._model):
            self.engine = ENGINE
        self._engine_chosen = key in choices or len(texts) >= _MANY
        if key in choices or not self._engine_chosen:
            return ""
        some = texts[:: max(1, len(texts) // _PROBE)][:_PROBE]
        tried = self._tried(functools.partial(self.embed, some, prompt=prompt, role=role, batch_size=batch_size))
        if tried is None:
            return ""
        gap, faster = tried
        if model_id:
            write_sealed(file, dict([*choices.items(), (key, self.engine)][-_MOST:]))
        return (
            f"linear layers {'' if self.engine else 'do not '}run on {ENGINE}: on {len(some)} texts it is"
            f" {'' if faster else 'not '}faster than torch, cosines of embeddings are at least 1 - {gap.cosine:.0e},"
            f" similarities differ by at most {gap.similarity:.0e}"
        )

    def _tried(self, embed: Callable[[], Embeddings]) -> tuple[Agreement, bool] | None:
        """Return how oneDNN agrees with torch and if it is faster, and keep it if both hold; None if torch fails."""

        def timed() -> tuple[Embeddings, float]:
            times = [time.process_time()]  # of this process only, whatever else the machine does
            for _ in range(2):
                rows = embed()
                times.append(time.process_time())
            return rows, float(np.diff(times).min())

        import torch  # noqa: PLC0415 (there already)

        gap, faster, threads = Agreement(np.inf, np.inf), False, torch.get_num_threads()
        torch.set_num_threads(1)  # waiting for each other takes threads CPU time too
        try:
            plain, seconds = timed()
            if not pack(self._model):
                return None
            self.engine = ENGINE
            rows, packed_seconds = timed()
            gap, faster = agreement(plain, rows), packed_seconds < seconds
        except (RuntimeError, ValueError, IndexError):  # torch's errors: encoding without the engine reports them
            return None
        finally:
            torch.set_num_threads(threads)
            if not (gap.holds and faster):
                unpack(self._model)
                self.engine = ""
        return gap, faster

    def routed(self) -> bool:
        return routed(self._model)

    def similarities(self) -> tuple[Any, Any] | None:
        """Return both similarities that the model's card names (cosines by default) as functions without it."""
        return similarities(self._model)


def refuse_no_hub(name: str) -> None:
    """Raise ServiceError for a model that is not here if the hub gives no answer: libraries would try for a minute."""
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


ENGINE = "oneDNN"
_LARGEST = 4 << 30  # bytes of weights: the packed ones are a second copy
_BYTES = 2048  # bytes of texts in a batch, for each thread
_COSINE, _SIMILARITY = 1e-6, 1e-4  # largest differences of embeddings and similarities from torch's own


class Agreement(NamedTuple):
    """The largest differences between embeddings of the same texts by two engines."""

    cosine: float
    """1 - cosine of a text's two embeddings."""
    similarity: float
    """Difference between two texts' cosines by both ways, and between a text's two lengths, as a share of one."""

    @property
    def holds(self) -> bool:
        """True if one engine may replace the other."""
        return self.cosine <= _COSINE and self.similarity <= _SIMILARITY


def agreement(plain: Embeddings, packed: Embeddings) -> Agreement:
    """Return how far two tables of embeddings (the same texts by dimensions) are from each other.

    The distance is infinite if an embedding is not finite, or has length 0.

    >>> import numpy as np
    >>> agreement(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).holds
    True
    """
    first, second = np.asarray(plain, np.float64), np.asarray(packed, np.float64)
    lengths = [np.linalg.norm(rows, axis=1) for rows in (first, second)]
    if not all(np.isfinite(length).all() and length.all() for length in lengths):
        return Agreement(np.inf, np.inf)
    first, second = first / lengths[0][:, None], second / lengths[1][:, None]
    cosines = (first * second).sum(axis=1)
    differences = np.abs(first @ first.T - second @ second.T).max(), np.abs(lengths[1] / lengths[0] - 1).max()
    return Agreement(max(0.0, 1 - float(cosines.min())), float(max(differences)))


def runs(sizes: Sequence[int], threads: int, most: int) -> list[tuple[list[int], int]]:
    """Group texts by batch size, the longest first: (their indices, texts in a batch, `most` at most).

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
    """Return whether oneDNN can run a model's linear layers here: on an x86 CPU, with room for a second copy."""
    import torch  # noqa: PLC0415 (takes seconds)

    layers = _linear_layers(model)
    weights = [] if any("forward" in vars(layer) for layer in layers) else [layer.weight for layer in layers]
    types = (torch.float32, torch.bfloat16)
    on_cpu = all(weight.device.type == "cpu" and weight.dtype in types for weight in weights)
    has_engine = platform.machine() in ("x86_64", "AMD64") and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return bool(weights) and on_cpu and has_engine and sum(weight.nbytes for weight in weights) <= _LARGEST


def pack(model: torch.nn.Module) -> bool:
    """Make oneDNN run a model's linear layers; return False, without a change, if it cannot."""
    if not packable(model):
        return False
    import torch  # noqa: PLC0415 (there already)

    try:
        for layer in _linear_layers(model):
            options: dict[str, Any] = {"attr": "none", "scalars": [], "algorithm": ""}
            options["W"] = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)
            options["B"] = None if layer.bias is None else layer.bias.detach()
            layer.forward = functools.partial(torch.ops.mkldnn._linear_pointwise, **options)  # type: ignore[method-assign]
    except (AttributeError, RuntimeError):
        unpack(model)
        return False
    return True


def unpack(model: torch.nn.Module) -> None:
    """Make torch run the layers again."""
    for layer in _linear_layers(model):
        vars(layer).pop("forward", None)


def _linear_layers(model: torch.nn.Module) -> list[torch.nn.Linear]:
    import torch  # noqa: PLC0415 (takes seconds)

    return [module for module in model.modules() if type(module) is torch.nn.Linear]
