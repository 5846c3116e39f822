"""Tasks and items of the human ceiling made by hand, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.human.records import HumanItem, HumanTask
from generation.datasets.dataset import Dataset


def task_of(dataset: Dataset, **changes: Any) -> HumanTask:
    """The record of a task on a data set."""
    own: dict[str, Any] = {
        "task": "mine", "task_type": dataset.task, "source": dataset.name, "revision": dataset.revision,
        "languages": ("en",), "content_hash": "1", "words": {"general": {}, "own": {}, "wordings": ()},
        "settings": {"dataset": dataset.name, "relevance": "graded", "raters": 2},
    }  # fmt: skip
    return HumanTask.model_validate(own | changes)


def items_of(
    names: Sequence[str], subset: str = "", candidates: Mapping[str, Sequence[str]] | None = None
) -> list[HumanItem]:
    """Items in one language; `candidates` by the item's name."""
    return [
        HumanItem(
            records=(f"p{name}",),
            task="mine",
            subset=subset,
            item=name,
            language="en",
            shown=tuple((candidates or {}).get(name, ())),
        )
        for name in names
    ]
