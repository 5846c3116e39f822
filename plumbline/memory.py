"""Memory that was let go of goes back to the system, so that a long run does not keep what its beginning took."""

from __future__ import annotations

import ctypes

import pyarrow as pa

_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 17  # glibc's mallopt, and its own default in bytes


def return_large_blocks() -> None:
    """Keep glibc from raising the size from which a freed block goes back to the system at once.

    It raises it when large ones are freed, as when data sets are read; a run would then keep what they took for hours.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none, and need none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def return_unused() -> None:
    """Give back what Arrow keeps of tables that are gone."""
    pa.default_memory_pool().release_unused()
