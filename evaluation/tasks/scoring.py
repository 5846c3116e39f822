"""From a data set to its score, by mteb.

Every evaluation gets a task object of its own, because mteb's random state lives on the object: a second evaluation of
one object scores differently. The copy of a data set keeps its name, by which mteb looks up prompts.
`evaluation.tasks.protocols` says what is measured and how.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.tasks.own_data import local_task, mteb_task
from evaluation.tasks.protocols import METRICS, Protocol
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError
from plumbline.study.datasets import SIMILARITIES

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol
    from mteb.models.models_protocols import SearchProtocol

    from evaluation.models.encoder import Encoder

# The part of the rows that mteb's default clusters.
_MTEB_CLUSTERED = 0.04
# mteb's evaluators whose progress bars nothing turns off, and warnings that are expected.
_BARS = ("summarization_evaluator", "bitext_mining_evaluator")
_EXPECTED = r".* superseded by |The used Evaluator is deprecated|unknown class\(es\)|To copy construct from a tensor"


def size(dataset: Dataset) -> int:
    """Items of the test split that are scored: rows, queries, or texts where a row holds a list of them."""
    return sum(dataset.sizes().values())


def unusable(dataset: Dataset, protocol: Protocol) -> str:
    """Why a data set cannot give a score under a protocol, in one line; empty if it can."""
    for subset, items in dataset.sizes().items():
        if not items:
            return f"there is nothing to score{_in(subset)}"
        if items < 2 and dataset.task in SIMILARITIES:
            return f"there is one pair alone{_in(subset)}: Spearman's rho needs two"
    if dataset.task == "multilabel_classification" and not _labelled(make_task(dataset, protocol)):
        return "no text that is scored has a label"
    return _without_choice(dataset, protocol)


def _without_choice(dataset: Dataset, protocol: Protocol) -> str:
    """Why its labels give no score; empty if they can."""
    for where, labels in dataset.labels():
        distinct = set(labels)
        if not distinct:
            return f"there is nothing in {where}"
        if len(distinct) < 2:
            return f"all rows of {where} have the label {labels[0]!r}: {dataset.task} needs two labels"
        if dataset.task == "clustering" and protocol == "mteb" and isinstance(dataset, TableDataset):
            sampled = int(_MTEB_CLUSTERED * len(labels))
            if sampled < len(distinct):
                return (
                    f"mteb's default clusters 4% of the rows, here {sampled} of {len(labels)}, fewer than the"
                    f" {len(distinct)} labels: take `protocol: paper`"
                )
    return ""


def _in(subset: str) -> str:
    return f" in subset {subset!r}" if subset not in ("", "default") else ""


def _labelled(task: Any) -> bool:
    """Whether any item of the scored split has a label, in each subset."""
    (scored,) = task.eval_splits
    return all(any(map(len, parts[scored][task.label_column_name])) for parts in task.dataset.values())


def make_task(dataset: Dataset, protocol: Protocol) -> Any:
    """A fresh mteb task (`mteb.abstasks.AbsTask`) that holds the data set and is loaded."""
    if isinstance(dataset, MtebTask):
        return mteb_task(dataset, protocol)
    if isinstance(dataset, TableDataset):
        return local_task(dataset, protocol)
    raise TypeError(f"no task for {type(dataset).__name__}")


def evaluate(dataset: Dataset, encoder: Encoder, protocol: Protocol, batch_size: int) -> float:
    """The main metric (`METRICS`) of a model on a data set; see `evaluate_task` and `main_score`."""
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
    """All that mteb measures of a model on a data set (`mteb.results.TaskResult`).

    `prepare` is given the task object before it runs; `predictions` is a folder for what mteb writes of each item.

    mteb rounds the metrics of searches to five decimals, no others. It ranks 50,000 passages at a time and keeps the
    best 1,000 of each query, so that 4 bytes x queries x 50,000 of similarities stand in memory at once. Similarities
    that differ by rounding alone are ties (`tasks.ties`). Raises what the encoder raises (DataError for embeddings
    with NaN, ServiceError for a model that fails), and DataError where mteb's result lacks the main metric.
    """
    import mteb  # noqa: PLC0415 (takes seconds: only who evaluates waits for it)

    from evaluation.tasks.mteb_classes import searcher, settle  # noqa: PLC0415 (it imports mteb)

    task = make_task(dataset, protocol)
    settle(task, dataset.task)
    prepare(task)
    with _silent_mteb():
        # No cache: mteb's would lie in the home folder and give all copies of a task the first one's result.
        (result,) = mteb.evaluate(
            searcher(encoder, dataset.task),
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
    """The main metric in mteb's result for a data set: of subsets their mean, as mteb gives it; NaN where undefined."""
    (scores,) = result.scores.values()
    values = [subset[METRICS[dataset.task]] for subset in scores]
    return float(np.mean([math.nan if value is None else value for value in values]))


@contextlib.contextmanager
def _silent_mteb() -> Iterator[None]:
    """Keep mteb's talk off the screen: its log, progress bars, and warnings that are expected here.

    Those are that logistic regression stopped after the protocol's 100 steps, that precision (which mteb computes
    beside accuracy) is undefined for a label never predicted, that a correlation of constant values is undefined (its
    NaN is reported), that a label of the train split stands in no scored row, and that mteb has a newer version of a
    task than the study names.
    """
    import datasets  # noqa: PLC0415
    from scipy.stats import ConstantInputWarning  # noqa: PLC0415
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
            for expected in (ConstantInputWarning, ConvergenceWarning, UndefinedMetricWarning):
                warnings.simplefilter("ignore", expected)
            warnings.filterwarnings("ignore", message=_EXPECTED)
            # Of texts without a label, for which none was predicted; mteb puts the right number there afterwards.
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
