"""A model's result on each item of a data set.

Most of mteb's metrics are means over items (accuracy, nDCG of queries) or measures of all items at once (Spearman's rho
of pairs, the V-measure). Both are split here into items and a measure of them, from mteb's own predictions and measures
in one run, and combined again: if that does not give mteb's own score, items are not reported.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.tasks.kinds import KINDS, SubsetScores
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.tasks.scoring import evaluate_task, main_score
from generation.datasets.dataset import Dataset
from plumbline.statistics.resampled_measures import Measure

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from evaluation.models.encoder import Encoder

_SAME = 1e-4  # mteb rounds its measures of searches to five digits


@dataclass(frozen=True)
class Items:
    """A model's items by subset, and the measure whose mean over subsets is the score; or the reason for none."""

    parts: tuple[SubsetScores, ...] = ()
    measure: Measure | None = None
    reason: str = ""


def measured(
    dataset: Dataset, encoder: Encoder | EncoderProtocol, protocol: Protocol, batch_size: int
) -> tuple[Any, Items]:
    """Return mteb's result of a model on a data set (`scoring.evaluate_task`), and its items.

    Raises the encoder's errors.
    """
    kind = KINDS[dataset.task]
    if reason := kind.not_of_items(protocol):
        return evaluate_task(dataset, encoder, protocol, batch_size), Items(reason=reason)
    tasks, seen = list[Any](), dict[str, Any]()

    def watch(task: Any) -> None:
        tasks.append(task)
        kind.watch(task, seen)

    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        result = evaluate_task(dataset, encoder, protocol, batch_size, prepare=watch, predictions=Path(folder))
        (split,) = result.scores
        outputs = kind.predictions(Path(folder), split, seen)
    parts = []
    for subset in tasks[0].hf_subsets:
        part = kind.items(tasks[0], tasks[0].dataset[subset][split], outputs.get(subset, {}))
        if part is None or part.gold.shape[:1] != part.predictions.shape[:1]:
            return result, Items(reason="mteb does not report the model's result on each item")
        parts.append(part)
    whole = float(np.mean([part.score(kind.measure) for part in parts]))
    score = main_score(dataset, result)
    if math.isnan(score) or abs(whole - score) > _SAME:
        why = f"{METRICS[dataset.task]} combined from items is {whole:.4f}, but mteb's is {score:.4f}"
        return result, Items(reason=why)
    return result, Items(tuple(parts), kind.measure)
