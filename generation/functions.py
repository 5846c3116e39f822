"""Functions that transform texts: `module:function` of an installed package, found without running anything of it.

A function is called as `function(text, language=..., seed=...)` and returns the transformed text: `text` is in NFC,
`language` the code of the language that the output is to be in, `seed` the transformation seed. Equal arguments must
give equal texts, whatever was asked before. The source of its module is a part of every output's identity.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

from plumbline.errors import StudyError

Function = Callable[..., object]


def source_hash(function: str) -> str:
    """SHA-256 of the source of a function's module. Raises StudyError where the module, or its source, is not there."""
    return hashlib.sha256(_source(function).read_bytes()).hexdigest()


def load_function(function: str) -> Function:
    """The function itself: its module is imported, which runs code. Raises StudyError where there is none."""
    module, name = function.split(":")
    _source(function)
    try:
        attribute = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise StudyError(f"function {function!r}: its module cannot be imported ({_said(error)})") from None
    if not callable(attribute):
        raise StudyError(f"function {function!r}: {module} has no function {name!r}; correct it in the study")
    loaded: Function = attribute
    return loaded


def _source(function: str) -> Path:
    """The file that a function's module stands in, found as Python finds it, but for running the packages above it."""
    module = function.split(":", maxsplit=1)[0]
    spec: ModuleSpec | None = None
    places: list[str] | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:number]), places)
        if spec is None:
            what = ".".join(parts[:number])
            raise StudyError(
                f"function {function!r}: there is no module {what!r} here; install its package, or correct it"
            )
        places = list(spec.submodule_search_locations or [])
    path = Path(spec.origin or "") if spec else Path()
    if path.suffix != ".py" or not path.is_file():
        raise StudyError(f"function {function!r}: {module} has no Python source, which tells its outputs from others'")
    return path


def _spec(name: str, places: list[str] | None) -> ModuleSpec | None:
    """Where a module is, below `places`."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, places, None)
        except (AttributeError, ImportError, ValueError):
            continue
        if spec is not None:
            return spec
    return None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")
