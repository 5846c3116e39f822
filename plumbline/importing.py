"""Load names on demand, and explain in one line why a command cannot start if another package has one of our names.

`generation`, `annotation` and `evaluation` are common words. Which of two packages Python takes depends on the current
folder and on what else is installed; some import then fails, and its traceback does not show the cause.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from plumbline.interrupt import PACKAGES, SCRIPTS, started_module

__all__ = [
    "HERE",
    "aiohttp",
    "altair",
    "argilla",
    "charset_normalizer",
    "datasets",
    "evalica",
    "httpx",
    "jinja2",
    "langcodes",
    "lazily",
    "markupsafe",
    "openpyxl",
    "py3langid",
    "refuse_strangers",
    "scipy",
    "upath",
    "uvloop",
    "vl_convert",
]

HERE = Path(__file__).resolve().parents[1]


class _OnDemand:
    """A package that is imported when something of it is first used: some take seconds, or are of optional extras."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # which tools ask of any object
            raise AttributeError(name)
        return getattr(importlib.import_module(self._package), name)


TYPE_CHECKING = False  # true for type checkers, as in `plumbline`
if TYPE_CHECKING:
    import aiohttp
    import altair
    import argilla
    import charset_normalizer
    import datasets
    import evalica
    import httpx
    import jinja2
    import langcodes
    import markupsafe
    import openpyxl  # type: ignore[import-untyped, unused-ignore]
    import py3langid
    import scipy
    import upath
    import uvloop
    import vl_convert
else:

    def __getattr__(name: str) -> _OnDemand:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _OnDemand(name)


def refuse_strangers() -> None:
    """End a command with status 2 if one of the names is another project's package.

    Other programs than our commands may import our packages as they like.
    """
    script = "".join(sys.argv[:1]).rpartition(os.sep)[2]
    if script in SCRIPTS or started_module(sys.orig_argv).partition(".")[0] in PACKAGES:
        for name in PACKAGES[1:]:
            if stranger := _stranger(name):
                print(f"error: {stranger}", file=sys.stderr)
                sys.exit(2)


def _stranger(name: str) -> str:
    """Say what is wrong with a name and what to do; empty if the package is ours."""
    spec = find_spec(name)
    if spec is None:  # only part of the platform is installed
        return ""
    ours = HERE / name
    folder = Path(spec.origin).resolve().parent if spec.origin else None
    if folder == ours and "plumbline" in (ours / "__init__.py").read_text(encoding="utf-8"):
        return ""
    if folder == ours:
        return f"another package {name!r} overwrote {ours}; install Plumbline in an environment of its own"
    source = folder or Path(next(iter(spec.submodule_search_locations or [name])))
    if spec.origin and spec.submodule_search_locations is None:  # a module, not a package
        source = Path(spec.origin).resolve()
    shadow = f"{source} hides Plumbline's own package {name!r} ({ours})"
    if source.parent == Path.cwd():
        return f"{shadow}; run from another folder, or start the command as `plumbline`"
    if "site-packages" in source.parts or "dist-packages" in source.parts:
        return f"{shadow}; uninstall the package that owns it, or install Plumbline in an environment of its own"
    return f"{shadow}; take {source.parent} out of PYTHONPATH, or rename it"


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return (`__getattr__`, `__dir__`) for a package (PEP 562); `names` maps modules to the names in them."""
    home = {name: module for module, public in names.items() for name in public}

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value: object = getattr(importlib.import_module(home[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("", *PACKAGES):
                raise
            from plumbline.resources import missing_package  # noqa: PLC0415 (only where something fails)

            extra = home[name].partition(".")[0]
            raise missing_package(f"{package}.{name}", error, extra if extra != "plumbline" else "") from None
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *home})
