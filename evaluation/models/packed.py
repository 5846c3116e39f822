"""Linear layers on a CPU by oneDNN, which torch carries, with weights that are packed once, and smaller batches.

Torch's own way for 32-bit floats packs a layer's weights again at each call. oneDNN adds in another order, so that
embeddings differ in their last bits: `agreement` says by how much. Batches of few tokens stay in a core's cache, and
texts in them are of like lengths (`runs`).

Only torch's private operators take packed weights (its compiler uses them). Where a version of torch lacks them, or has
them for another processor, the layers stay as they are.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.models.embeddings import Embeddings

if TYPE_CHECKING:
    import torch

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
