"""Tasks of ours among mteb's."""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

from mteb.abstasks.abstask import AbsTask

T = TypeVar("T", bound=AbsTask)


class OwnTask(AbsTask):
    """A task whose data are here before mteb asks for them; a subclass evaluates all its subsets at once."""

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        """Nothing to load."""
        self.data_loaded = True

    def unload_data(self) -> None:
        """Nothing to forget."""
        self.data_loaded = False

    def _evaluate_subset(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("a task of a study is evaluated as a whole")

    def _calculate_descriptive_statistics_from_split(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("the study's records describe its texts")


def registered(kind: type[T]) -> T:
    """A task of a class of ours, which mteb knows by its name from now on in this process.

    Its cache and tables ask a registry for tasks' classes, and there is no public way into it.
    """
    importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY[kind.metadata.name] = kind
    return kind()
