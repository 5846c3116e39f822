"""Names of a package that are imported when they are asked for: commands start without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """(`__getattr__`, `__dir__`) of a package (PEP 562); `names` are its names by the modules that hold them."""
    home = {name: module for module, public in names.items() for name in public}

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value: object = getattr(importlib.import_module(home[name]), name)
        except ModuleNotFoundError as error:
            raise _of_others(error, f"{package}.{name}", home[name]) from None
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *home})


def _of_others(error: ModuleNotFoundError, name: str, module: str) -> Exception:
    from plumbline.interrupt import PACKAGES  # noqa: PLC0415 (only where something fails)
    from plumbline.resources import missing  # noqa: PLC0415

    of = module.partition(".")[0]
    ours = (error.name or "").partition(".")[0] in ("", *PACKAGES)
    return error if ours else missing(name, error, of if of != "plumbline" else "")
