"""Every public function of `plumbline.statistics` says what it takes, gives and shows, and its example holds."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

from plumbline import statistics

MODULES = [
    importlib.import_module(f"{statistics.__name__}.{found.name}")
    for found in pkgutil.iter_modules(statistics.__path__)
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_hold_and_every_public_function_has_one(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried and not failed
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("_") or function.__module__ != module.__name__:
            continue
        told = inspect.getdoc(function) or ""
        parameters = [each for each in inspect.signature(function).parameters if each != "_"]
        assert ">>> " in told and ("Returns:" in told or "Yields:" in told), name
        missing = [each for each in parameters if f"    {each}: " not in told]
        assert not missing, f"{name} says nothing of {', '.join(missing)}"
