"""mteb's descriptive statistics of a task as it was loaded, by mteb's own functions."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Iterator
from typing import Any

from evaluation.benchmarks.quality.contents import Contents
from evaluation.benchmarks.quality.findings import Finding, found, undefined
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_tasks import MtebTask


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


Statistics = dict[str, dict[str, Any]]


def statistics_of(contents: Contents) -> Statistics:
    """Subset by subset and split by split (mteb's names); nothing of a part without items, or of one pair with a label.

    mteb's public `calculate_descriptive_statistics` gives what mteb has published where it has, and writes into the
    installed package where it has not; so each split is asked for what stands in it.
    """
    from generation.datasets.mteb_loading import quiet  # noqa: PLC0415

    statistics: Statistics = {}
    least = 2 if contents.kind == "pair_classification" else 1  # mteb takes one pair for a list of them
    with quiet(), hidden_bars("mteb._content_hashes"):
        for subset in contents.task.dataset:
            for ours, name in contents.splits.items():
                parts = [part for part in contents.parts if (part.subset, part.split) == (subset, ours)]
                if all(len(part.items) >= least for part in parts):
                    whole = contents.task._calculate_descriptive_statistics_from_split(name, hf_subset=subset)
                    statistics.setdefault(subset, {})[name] = dict(whole)
    return statistics


def check_statistics(dataset: Dataset, contents: Contents, statistics: Statistics) -> Finding | None:
    """Whether the data are as large as mteb published them; None for tasks that mteb does not have.

    Copies with other texts have other lengths, so numbers of items alone are compared.
    """
    if not isinstance(dataset, MtebTask):
        return None
    published = contents.task.metadata.descriptive_stats or {}
    far, text, known_splits = 0.0, "", 0
    for subset, splits in statistics.items():
        for name, parts in splits.items():
            whole = published.get(name) or {}
            part = (whole.get("hf_subset_descriptive_stats") or {}).get(subset)
            theirs = part or (whole if list(statistics) == ["default"] else {})
            if "num_samples" not in theirs:
                continue
            known_splits += 1
            away = abs(parts["num_samples"] / theirs["num_samples"] - 1) if theirs["num_samples"] else math.inf
            if away > far:
                far, text = away, f"{parts['num_samples']:,} where mteb has {theirs['num_samples']:,} (split {name})"
    if not known_splits:
        return undefined("statistics", "mteb has published none of these splits")
    return found("statistics", far, text or "as many texts as mteb published")
