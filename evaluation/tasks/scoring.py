"""Score data sets with mteb.

Every evaluation gets a task object of its own, because the object has mteb's random state: a second evaluation of one
object scores differently. The copy of a data set keeps its name, by which mteb looks up prompts.
`evaluation.tasks.protocols` defines metrics and settings.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evaluation.tasks.protocols import METRICS, RANKED, Protocol, changed_ranks, classifier, multilabel_classifier
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import in_memory, instruction_data, search_data
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError
from plumbline.languages import with_script
from plumbline.study.datasets import SIMILARITIES, TaskType

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol
    from mteb.models.models_protocols import SearchProtocol

    from evaluation.models.encoder import Encoder


# The share of the rows that mteb's default clusters.
_MTEB_CLUSTERED = 0.04
# mteb's evaluators without an option to hide progress bars, and expected warnings.
_BARS = ("summarization_evaluator", "bitext_mining_evaluator")
_EXPECTED = r".* superseded by |The used Evaluator is deprecated|unknown class\(es\)|To copy construct from a tensor"


def size(dataset: Dataset) -> int:
    """Return the number of scored items of the test split: rows, queries, or texts if a row has a list of them."""
    return sum(dataset.sizes().values())


def unusable(dataset: Dataset, protocol: Protocol) -> str:
    """Return why a data set cannot have a score under a protocol, in one line; empty if it can."""
    for subset, items in dataset.sizes().items():
        if not items:
            return f"there is nothing to score{_in(subset)}"
        if items < 2 and dataset.task in SIMILARITIES:
            return f"there is only one pair{_in(subset)}: Spearman's rho needs two"
    if dataset.task == "multilabel_classification" and not _labelled(make_task(dataset, protocol)):
        return "no scored text has a label"
    return _without_choice(dataset, protocol)


def _without_choice(dataset: Dataset, protocol: Protocol) -> str:
    """Return why its labels give no score; empty if they can."""
    for where, labels in dataset.labels():
        distinct = set(labels)
        if not distinct:
            return f"there are no rows in {where}"
        if len(distinct) < 2:
            return f"all rows of {where} have the label {labels[0]!r}: {dataset.task} needs two labels"
        if dataset.task == "clustering" and protocol == "mteb" and isinstance(dataset, TableDataset):
            sampled = int(_MTEB_CLUSTERED * len(labels))
            if sampled < len(distinct):
                return (
                    f"mteb's default clusters 4% of the rows, here {sampled} of {len(labels)}, fewer than the"
                    f" {len(distinct)} labels: use `protocol: paper`"
                )
    return ""


def _in(subset: str) -> str:
    return f" in subset {subset!r}" if subset not in ("", "default") else ""


def _labelled(task: Any) -> bool:
    """Return whether each subset has an item with a label in the scored split."""
    (scored,) = task.eval_splits
    return all(any(map(len, parts[scored][task.label_column_name])) for parts in task.dataset.values())


def make_task(dataset: Dataset, protocol: Protocol) -> Any:
    """Return a new mteb task (`mteb.abstasks.AbsTask`) with the data set loaded."""
    if isinstance(dataset, MtebTask):
        return mteb_task(dataset, protocol)
    if isinstance(dataset, TableDataset):
        return local_task(dataset, protocol)
    raise TypeError(f"no task for {type(dataset).__name__}")


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

    from evaluation.tasks.mteb_classes import searcher, settle  # noqa: PLC0415 (it imports mteb)

    task = make_task(dataset, protocol)
    settle(task, dataset.task)
    prepare(task)
    with silent_mteb():
        # No cache: mteb's is in the home folder and would return the first copy's result for all copies of a task.
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


_TYPES: dict[TaskType, str] = {
    "sts": "STS",
    "str": "STS",
    "pair_classification": "PairClassification",
    "classification": "Classification",
    "clustering": "Clustering",
    "reranking": "Reranking",
    "retrieval": "Retrieval",
    "summarisation": "Summarization",
    "bitext_mining": "BitextMining",
    "multilabel_classification": "MultilabelClassification",
    "instruction_reranking": "InstructionReranking",
}
_CLASSES = ("classification", "multilabel_classification", "clustering")


def local_task(dataset: TableDataset, protocol: Protocol) -> Any:
    """Return a new mteb task (`mteb.abstasks.AbsTask`) with the data set loaded."""
    base, attributes, data = _BUILDERS[dataset.task](dataset, protocol)
    members = {"metadata": _metadata(dataset), **attributes}
    task = type(f"Local{base.__name__}", (base,), members)()
    task.hf_subsets = ["default"]
    task.dataset = {"default": data}
    task.data_loaded = True
    return task


def _metadata(dataset: TableDataset) -> Any:
    from mteb.abstasks.task_metadata import TaskMetadata  # noqa: PLC0415

    return TaskMetadata(
        name=dataset.name,
        description=f"local data set {dataset.name}",
        dataset={"path": f"local/{dataset.name}", "revision": dataset.revision},
        type=_TYPES[dataset.task],
        category="t2c" if dataset.task in _CLASSES else "t2t",
        eval_splits=["test"],
        eval_langs=[with_script(code) for code in sorted({text.language for text in dataset.texts()})],
        main_score=METRICS[dataset.task],
    )


def _sts(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.sts import AbsTaskSTS  # noqa: PLC0415

    # mteb rescales the gold scores before it ranks them, which changes no rank, so the bounds do not matter.
    return AbsTaskSTS, {}, _split({"test": dataset.splits["test"]})


def _pair_classification(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.pair_classification import AbsTaskPairClassification  # noqa: PLC0415

    return AbsTaskPairClassification, {"label_column_name": "label"}, _split({"test": dataset.splits["test"]})


def _classification(dataset: TableDataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.classification import AbsTaskClassification  # noqa: PLC0415

    return AbsTaskClassification, classifier(protocol), _split(_numbered(dataset.splits))


def _multilabel(dataset: TableDataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.multilabel_classification import AbsTaskMultilabelClassification  # noqa: PLC0415

    return AbsTaskMultilabelClassification, multilabel_classifier(protocol), _split(dataset.splits)


def _bitext_mining(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining  # noqa: PLC0415

    return AbsTaskBitextMining, {}, _split({"test": dataset.splits["test"]})


def _clustering(dataset: TableDataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.clustering import AbsTaskClustering  # noqa: PLC0415
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

    frames = _numbered({"test": dataset.splits["test"]})
    attributes: dict[str, Any] = {"input_column_name": "text", "label_column_name": "label"}
    if protocol == "mteb":
        return AbsTaskClustering, attributes, _split(frames)
    # Here a row is a whole set of texts to cluster, and there is one row.
    rows = {"text": [list(frames["test"]["text"])], "label": [[int(label) for label in frames["test"]["label"]]]}
    return AbsTaskClusteringLegacy, attributes, _split({"test": pd.DataFrame(rows)})


def _reranking(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: PLC0415

    return AbsTaskRetrieval, {}, {"test": search_data(dataset.splits["test"])}


def _instruction_reranking(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: PLC0415

    data = instruction_data(dataset.splits["test"])
    measure = staticmethod(partial(changed_ranks, data["changed"], AbsTaskRetrieval.k_values))
    return AbsTaskRetrieval, {"task_specific_scores": measure}, {"test": data}


def _retrieval(dataset: TableDataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: PLC0415

    frame = dataset.splits["test"]
    data = {
        "queries": in_memory({"id": list(frame["id"]), "text": list(frame["query"])}),
        "corpus": in_memory({"id": list(dataset.corpus), "text": list(dataset.corpus.values())}),
        "relevant_docs": {query: dict(dataset.qrels[query]) for query in frame["id"]},
        "top_ranked": {query: list(dataset.candidates[query]) for query in frame["id"]} if dataset.candidates else None,
    }
    ranked = {"k_values": RANKED} if protocol == "paper" else {}
    return AbsTaskRetrieval, {"ignore_identical_ids": True} | ranked, {"test": data}


def _summarisation(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.text.summarization import AbsTaskSummarization  # noqa: PLC0415

    # mteb rescales the relevances, which changes no rank, and never embeds the source.
    frame = dataset.splits["test"].assign(text="")
    return AbsTaskSummarization, {"min_score": 0, "max_score": 1}, _split({"test": frame})


def _split(frames: Mapping[str, pd.DataFrame]) -> Any:
    from datasets import DatasetDict  # noqa: PLC0415

    return DatasetDict({name: in_memory(frame.to_dict(orient="list")) for name, frame in frames.items()})


def label_names(dataset: TableDataset) -> list[str]:
    """Return the labels behind the numbers in its task (`local_task`); none if labels are not numbered."""
    return _names(dataset.splits) if dataset.task in ("classification", "clustering") else []


def _names(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    return sorted({str(label) for frame in frames.values() for label in frame["label"]})


def _numbered(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return frames with labels as numbers, equal in all splits, as scikit-learn's binary metrics require."""
    number = {name: index for index, name in enumerate(_names(frames))}
    return {
        split: frame.assign(label=np.array([number[str(label)] for label in frame["label"]], dtype=np.int64))
        for split, frame in frames.items()
    }


_BUILDERS: dict[TaskType, Callable[[TableDataset, Protocol], tuple[type, dict[str, Any], Any]]] = {
    "sts": _sts,
    "str": _sts,
    "pair_classification": _pair_classification,
    "classification": _classification,
    "clustering": _clustering,
    "reranking": _reranking,
    "retrieval": _retrieval,
    "summarisation": _summarisation,
    "bitext_mining": _bitext_mining,
    "multilabel_classification": _multilabel,
    "instruction_reranking": _instruction_reranking,
}

_NO_LABEL = -1  # mteb's mark for a level that a text lacks


def mteb_task(dataset: MtebTask, protocol: Protocol) -> Any:
    """Return a new mteb task object with the data set's texts, by `paper` with HTEB's settings, else with mteb's."""
    task = dataset.fresh()
    if dataset.task == "classification":
        settings = classifier(protocol)
        if protocol == "mteb":
            from sklearn.base import clone  # noqa: PLC0415

            settings = {"evaluator_model": clone(task.evaluator_model)}
        _set(task, settings)
    if dataset.task == "multilabel_classification":
        _set(task, multilabel_classifier(protocol))
    if dataset.task == "instruction_reranking":
        parts = {subset: splits[dataset.loaded.split]["changed"] for subset, splits in task.dataset.items()}
        task.task_specific_scores = partial(_changed_ranks, parts, task.k_values)
    if protocol == "paper" and dataset.task == "retrieval":
        _set(task, {"k_values": RANKED, "_top_k": max(RANKED)})
    if protocol == "paper" and dataset.task == "clustering":
        return _whole(task)
    if protocol == "paper" and dataset.task == "summarisation":
        from mteb._evaluators import SummarizationEvaluator  # noqa: PLC0415

        task.evaluator = SummarizationEvaluator
    return task


def _set(task: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(task, name, value)


def _changed_ranks(changed: dict[str, Any], k_values: Any, *args: Any, hf_subset: str, **others: Any) -> Any:
    """Return `changed_ranks` of one subset."""
    return changed_ranks(changed[hf_subset], k_values, *args, **others)


def _whole(task: Any) -> Any:
    """Return the same data in mteb's original clustering class: a subset's texts as one set, once a level of labels."""
    from datasets import DatasetDict  # noqa: PLC0415
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

    if isinstance(task, AbsTaskClusteringLegacy):
        return task
    texts, labels = task.input_column_name, task.label_column_name
    members = {"metadata": task.metadata, "input_column_name": texts, "label_column_name": labels}
    legacy_task = type(f"Whole{type(task).__name__}", (AbsTaskClusteringLegacy,), members)()
    legacy_task.hf_subsets = list(task.hf_subsets)
    legacy_task.filter_eval_splits(task.eval_splits)
    legacy_task.dataset = {
        subset: DatasetDict({split: in_memory(_sets(part, texts, labels)) for split, part in parts.items()})
        for subset, parts in task.dataset.items()
    }
    legacy_task.data_loaded = True
    return legacy_task


def _sets(part: Any, texts: str, labels: str) -> dict[str, list[list[Any]]]:
    """Return one row for each level: its texts and their labels, as numbers."""
    levels = [label if isinstance(label, list) else [label] for label in part[labels]]
    rows: dict[str, list[list[Any]]] = {texts: [], labels: []}
    for level in range(max(map(len, levels), default=0)):
        chosen = [
            (text, str(row_levels[level]))
            for text, row_levels in zip(part[texts], levels, strict=True)
            if len(row_levels) > level and row_levels[level] != _NO_LABEL
        ]
        number = {name: index for index, name in enumerate(sorted({name for _, name in chosen}))}
        rows[texts].append([text for text, _ in chosen])
        rows[labels].append([number[name] for _, name in chosen])
    return rows
