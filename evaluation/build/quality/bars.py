"""Progress bars of mteb's that nothing turns off."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def hidden_bars(module: str) -> Iterator[None]:
    """Hide the bars that a module of mteb's shows: commands have bars of their own."""
    shown: Any = importlib.import_module(module)
    bar = shown.tqdm
    shown.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        shown.tqdm = bar
