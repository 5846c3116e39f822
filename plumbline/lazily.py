"""Names of a package that are imported when they are asked for: commands start without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """(`__getattr__`, `__dir__`) of a package (PEP 562); `names` are its names by the modules that hold them."""
    home = {name: module for module, own in names.items() for name in own}

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *home})
