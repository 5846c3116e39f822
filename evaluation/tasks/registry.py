"""Tasks of ours among mteb's."""

from __future__ import annotations

import importlib
from typing import TypeVar

from mteb.abstasks.abstask import AbsTask

T = TypeVar("T", bound=AbsTask)


def registered(kind: type[T]) -> T:
    """A task of a class of ours, which mteb knows by its name from now on in this process.

    Its cache and tables ask a registry for tasks' classes, and there is no public way into it.
    """
    importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY[kind.metadata.name] = kind
    return kind()
