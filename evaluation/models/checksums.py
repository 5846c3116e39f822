"""Hashes of what is stored: keys of texts, and checksums, so that no row is believed that is not the text's own."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def keys_of(texts: Iterable[str], prompt: str, role: str) -> list[bytes]:
    """The key of each text in the store: 16 bytes of a hash, with its prompt, and its role where that counts."""
    start, keys = hashlib.sha256(f"{prompt}\0{role}\0".encode()), []
    for text in texts:
        whole = start.copy()
        whole.update(text.encode())
        keys.append(bytes(whole.digest()[:16]))
    return keys


def fingerprint(model: str, width: int) -> int:
    """What an index says of itself that has checksums of this model's rows, of this length."""
    return int(_coefficients(model, width)[0].view(np.int64))


def digests(model: str, keys: Sequence[bytes], rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """The checksum of each row with its key: the sum of its 32-bit words times fixed random numbers, modulo 2^64.

    Two rows that differ have one checksum with a probability of 2^-32 at most.

    Source: Lemire and Kaser 2014, "Strongly Universal String Hashing is Fast" (Multilinear).
    """
    drawn = _coefficients(model, rows.shape[1])
    heads = np.frombuffer(b"".join(keys), "<u4").reshape(len(rows), 4)
    sums: NDArray[np.uint64] = np.einsum("ij,j->i", heads, drawn[1:5])
    sums = sums + np.einsum("ij,j->i", rows.view(np.uint32), drawn[5:])
    return sums.view(np.int64)


@functools.lru_cache(maxsize=16)
def _coefficients(model: str, width: int) -> NDArray[np.uint64]:
    """Fixed random numbers of a model and a length of rows: of the length itself, of a key (four), of a row."""
    drawn = hashlib.shake_256(f"embeddings-v1\0{model}\0{width}".encode()).digest(8 * (width + 5))
    return np.frombuffer(drawn, "<u8").astype(np.uint64)
