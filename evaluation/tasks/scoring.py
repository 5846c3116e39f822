"""Score data sets with mteb.

Every evaluation gets a task object of its own, because the object has mteb's random state: a second evaluation of one
object scores differently. The copy of a data set keeps its name, by which mteb looks up prompts.
`evaluation.tasks.protocols` defines metrics and settings.

Most of mteb's metrics are means over items (accuracy, nDCG of queries) or measures of all items at once (Spearman's rho
of pairs, the V-measure). Both are split here into items and a measure of them, from mteb's own predictions and measures
in one run, and combined again: if that does not give mteb's own score, items are not reported.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.tasks.kinds import KINDS, SubsetScores
from evaluation.tasks.protocols import METRICS, Protocol
from generation.datasets.dataset import Dataset
from plumbline.errors import DataError
from plumbline.importing import datasets, scipy
from plumbline.statistics.resampled_measures import Measure

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol
    from mteb.models.models_protocols import SearchProtocol

    from evaluation.models.encoder import Encoder


# mteb's evaluators without an option to hide progress bars, and expected warnings.
_BARS = ("summarization_evaluator", "bitext_mining_evaluator")
_EXPECTED = r".* superseded by |The used Evaluator is deprecated|unknown class\(es\)|To copy construct from a tensor"


def size(dataset: Dataset) -> int:
    """Return the number of scored items of the test split: rows, queries, or texts if a row has a list of them."""
    return sum(dataset.sizes().values())


def unusable(dataset: Dataset, protocol: Protocol) -> str:
    """Return why a data set cannot have a score under a protocol, in one line; empty if it can."""
    kind = KINDS[dataset.task]
    for subset, items in dataset.sizes().items():
        subset_name = f" in subset {subset!r}" if subset not in ("", "default") else ""
        if not items:
            return f"there is nothing to score{subset_name}"
        if items < kind.least:
            return f"there is only one pair{subset_name}: Spearman's rho needs two"
    return kind.unusable(dataset, protocol)


def make_task(dataset: Dataset, protocol: Protocol) -> Any:
    """Return a new mteb task (`mteb.abstasks.AbsTask`) with the data set loaded."""
    return KINDS[dataset.task].task(dataset, protocol)


def evaluate(dataset: Dataset, encoder: Encoder, protocol: Protocol, batch_size: int) -> float:
    """Return the main metric (`METRICS`) of a model on a data set; see `evaluate_task` and `main_score`."""
    return main_score(dataset, evaluate_task(dataset, encoder, protocol, batch_size))


def evaluate_task(
    dataset: Dataset,
    encoder: Encoder | EncoderProtocol | SearchProtocol,
    protocol: Protocol,
    batch_size: int,
    *,
    prepare: Callable[[Any], object] = lambda _: None,
    predictions: Path | None = None,
) -> Any:
    """Return mteb's result of a model on a data set (`mteb.results.TaskResult`).

    `prepare` is given the task object before it runs; `predictions` is a folder for what mteb writes of each item.

    mteb rounds only the metrics of searches, to five decimals. It ranks 50,000 passages at a time and keeps the best
    1,000 of each query, so similarities take 4 bytes x queries x 50,000 of memory. Similarities that differ only by
    rounding are ties (`tasks.mteb_classes`). Raises the encoder's errors (DataError for embeddings with NaN,
    ServiceError for a model that fails), and DataError if mteb's result lacks the main metric.
    """
    import mteb  # noqa: PLC0415 (takes seconds)
    from mteb.models.models_protocols import SearchProtocol  # noqa: PLC0415

    kind, task = KINDS[dataset.task], make_task(dataset, protocol)
    kind.settle(task)
    prepare(task)
    with silent_mteb():
        # No cache: mteb's is in the home folder and would return the first copy's result for all copies of a task.
        (result,) = mteb.evaluate(
            encoder if isinstance(encoder, SearchProtocol) else kind.model(encoder),  # BM25 ranks by itself
            task,
            cache=None,
            prediction_folder=predictions,
            co2_tracker=False,
            show_progress_bar=False,
            encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        ).task_results
    metric = METRICS[dataset.task]
    (scores,) = result.scores.values()
    if len(scores) != len(task.hf_subsets) or any(metric not in subset for subset in scores):
        raise DataError(f"mteb's result for {dataset.name!r} lacks {metric!r}; install the pinned version of mteb")
    return result


def main_score(dataset: Dataset, result: Any) -> float:
    """Return the main metric in mteb's result for a data set, the mean of its subsets; NaN if undefined."""
    (scores,) = result.scores.values()
    values = [subset[METRICS[dataset.task]] for subset in scores]
    return float(np.mean([math.nan if value is None else value for value in values]))


@contextlib.contextmanager
def silent_mteb() -> Iterator[None]:
    """Hide mteb's log, progress bars, and expected warnings.

    These say that logistic regression stopped after the protocol's 100 steps, that precision (which mteb computes
    besides accuracy) is undefined for a label never predicted, that a correlation of constant values is undefined (its
    NaN is reported), that no scored row has a label of the train split, and that mteb has a newer version of a task
    than the study names.
    """
    from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning  # noqa: PLC0415

    evaluators: list[Any] = [importlib.import_module(f"mteb._evaluators.text.{name}") for name in _BARS]
    log = logging.getLogger("mteb")
    level, bars, bar = log.level, datasets.is_progress_bar_enabled(), evaluators[0].tqdm
    log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    for evaluator in evaluators:
        evaluator.tqdm = functools.partial(bar, disable=True)
    try:
        with warnings.catch_warnings():
            for expected in (scipy.stats.ConstantInputWarning, ConvergenceWarning, UndefinedMetricWarning):
                warnings.simplefilter("ignore", expected)
            warnings.filterwarnings("ignore", message=_EXPECTED)
            # For texts without a label and without a prediction; mteb corrects the number afterwards.
            warnings.filterwarnings(
                "ignore", "invalid value", RuntimeWarning, "mteb._evaluators.classification_metrics"
            )
            yield
    finally:
        log.setLevel(level)
        for evaluator in evaluators:
            evaluator.tqdm = bar
        if bars:
            datasets.enable_progress_bars()


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
    """Return mteb's result of a model on a data set (`evaluate_task`), and its items.

    Raises the encoder's errors.
    """
    kind = KINDS[dataset.task]
    if reason := kind.not_of_items(protocol):
        return evaluate_task(dataset, encoder, protocol, batch_size), Items(reason=reason)
    tasks, noted = list[Any](), dict[str, Any]()

    def watch(task: Any) -> None:
        tasks.append(task)
        kind.watch(task, noted)

    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        result = evaluate_task(dataset, encoder, protocol, batch_size, prepare=watch, predictions=Path(folder))
        (split,) = result.scores
        outputs = kind.predictions(Path(folder), split, noted)
    parts = []
    for subset in tasks[0].hf_subsets:
        part = kind.items(tasks[0], tasks[0].dataset[subset][split], outputs.get(subset, {}))
        if part is None or part.gold.shape[:1] != part.predictions.shape[:1]:
            return result, Items(reason="mteb does not report the model's result on each item")
        parts.append(part)
    combined = float(np.mean([part.score(kind.measure) for part in parts]))
    score = main_score(dataset, result)
    if math.isnan(score) or abs(combined - score) > _SAME:
        fault = f"{METRICS[dataset.task]} combined from items is {combined:.4f}, but mteb's is {score:.4f}"
        return result, Items(reason=fault)
    return result, Items(tuple(parts), kind.measure)
