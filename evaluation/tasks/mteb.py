"""A task of mteb as a data set holds it, ready for one evaluation by a protocol."""

from __future__ import annotations

from functools import partial
from typing import Any

from evaluation.tasks.protocols import RANKED, Protocol, changed_ranks, classifier, multilabel_classifier
from generation.datasets.mteb_tasks import MtebTask
from generation.datasets.rows import in_memory

_NO_LABEL = -1  # what mteb's clustering takes for a level that a text does not have


def mteb_task(dataset: MtebTask, protocol: Protocol) -> Any:
    """A fresh task object of mteb's with the data set's texts; by `paper` with HTEB's settings, else as mteb has it."""
    task = dataset.fresh()
    if dataset.task == "classification":
        own = classifier(protocol)
        if protocol == "mteb":
            from sklearn.base import clone  # noqa: PLC0415

            own = {"evaluator_model": clone(task.evaluator_model)}
        _set(task, own)
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
    """`changed_ranks` of one subset."""
    return changed_ranks(changed[hf_subset], k_values, *args, **others)


def _whole(task: Any) -> Any:
    """The same data in mteb's original class of clustering: a subset's texts are one set, once a level of labels."""
    from datasets import DatasetDict  # noqa: PLC0415
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

    if isinstance(task, AbsTaskClusteringLegacy):
        return task
    texts, labels = task.input_column_name, task.label_column_name
    own = {"metadata": task.metadata, "input_column_name": texts, "label_column_name": labels}
    made = type(f"Whole{type(task).__name__}", (AbsTaskClusteringLegacy,), own)()
    made.hf_subsets = list(task.hf_subsets)
    made.filter_eval_splits(task.eval_splits)
    made.dataset = {
        subset: DatasetDict({split: in_memory(_sets(part, texts, labels)) for split, part in parts.items()})
        for subset, parts in task.dataset.items()
    }
    made.data_loaded = True
    return made


def _sets(part: Any, texts: str, labels: str) -> dict[str, list[list[Any]]]:
    """One row for each level: its texts and their labels, as numbers."""
    levels = [label if isinstance(label, list) else [label] for label in part[labels]]
    rows: dict[str, list[list[Any]]] = {texts: [], labels: []}
    for level in range(max(map(len, levels), default=0)):
        chosen = [
            (text, str(own[level]))
            for text, own in zip(part[texts], levels, strict=True)
            if len(own) > level and own[level] != _NO_LABEL
        ]
        number = {name: index for index, name in enumerate(sorted({name for _, name in chosen}))}
        rows[texts].append([text for text, _ in chosen])
        rows[labels].append([number[name] for _, name in chosen])
    return rows
