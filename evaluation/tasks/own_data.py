"""A local data set as mteb's own task object: mteb's classes hold the protocol and the arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evaluation.tasks.protocols import METRICS, RANKED, Protocol, changed_ranks, classifier, multilabel_classifier
from generation.datasets.local import TableDataset
from generation.datasets.rows import in_memory
from generation.datasets.search_data import instruction_data, search_data
from plumbline.languages import with_script
from plumbline.study.datasets import TaskType

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
    """A fresh mteb task (`mteb.abstasks.AbsTask`) that holds the data set and is loaded."""
    base, attributes, data = _BUILDERS[dataset.task](dataset, protocol)
    own = {"metadata": _metadata(dataset), **attributes}
    task = type(f"Local{base.__name__}", (base,), own)()
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

    # mteb rescales the gold scores before it ranks them, which changes no rank: the bounds play no part.
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
    # Here a row is a whole set of texts to be clustered, and there is one.
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
    return AbsTaskRetrieval, {"k_values": RANKED} if protocol == "paper" else {}, {"test": data}


def _summarisation(dataset: TableDataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.text.summarization import AbsTaskSummarization  # noqa: PLC0415

    # mteb rescales the relevances, which changes no rank, and never embeds the source.
    frame = dataset.splits["test"].assign(text="")
    return AbsTaskSummarization, {"min_score": 0, "max_score": 1}, _split({"test": frame})


def _split(frames: Mapping[str, pd.DataFrame]) -> Any:
    from datasets import DatasetDict  # noqa: PLC0415

    return DatasetDict({name: in_memory(frame.to_dict(orient="list")) for name, frame in frames.items()})


def label_names(dataset: TableDataset) -> list[str]:
    """The labels whose numbers its task has (`local_task`); none where labels are not numbered."""
    return _names(dataset.splits) if dataset.task in ("classification", "clustering") else []


def _names(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    return sorted({str(label) for frame in frames.values() for label in frame["label"]})


def _numbered(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Frames whose labels are numbers, the same in all splits: scikit-learn's binary metrics want them so."""
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
