"""From a local data set to mteb's own task object, and to a transformed copy of the data.

mteb's task classes hold the protocol and the arithmetic; this module hands them the data without a hub. Every
evaluation gets a task object of its own, because mteb's random state lives on the object: a second evaluation
of one object scores differently. The copy of a data set keeps its name, by which mteb looks up prompts.

| task | mteb's class | main metric | what stands behind it |
|---|---|---|---|
| sts | AbsTaskSTS | cosine_spearman | Spearman's rho of cosine and gold score |
| pair_classification | AbsTaskPairClassification | cosine_ap | average precision of the cosine |
| classification | AbsTaskClassification | accuracy | logistic regression (see `protocol`) |
| clustering | AbsTaskClusteringLegacy or AbsTaskClustering | v_measure | mini-batch k-means (see `protocol`) |
| reranking | AbsTaskRetrieval with candidates | map_at_1000 | MAP over each query's own candidates |
| retrieval | AbsTaskRetrieval | ndcg_at_10 | nDCG@10 over the corpus |

`protocol: paper` trains classification on the full train split (HTEB, 2.3) and clusters all rows once, with
the evaluator of mteb's original clustering tasks: mini-batch k-means (batches of 500, one start, seed 42) on
every row, so the number is the V-measure of the whole set and the same on every run. mteb's newer class would
embed 4% of the rows and draw ten samples of up to 16,384 from them with replacement, which on a small set
measures the draw. `protocol: mteb` takes mteb's own defaults: 8 examples a label ten times, and that class.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from generation.datasets import TRANSFORMED, Dataset
from generation.exceptions import DataError
from generation.languages import iso639_3
from generation.records import nfc
from generation.study import TaskType

if TYPE_CHECKING:
    from evaluation.encoder import Encoder

Protocol = Literal["paper", "mteb"]

METRICS: dict[TaskType, str] = {
    "sts": "cosine_spearman",
    "pair_classification": "cosine_ap",
    "classification": "accuracy",
    "clustering": "v_measure",
    "reranking": "map_at_1000",
    "retrieval": "ndcg_at_10",
}
_TYPES: dict[TaskType, str] = {
    "sts": "STS",
    "pair_classification": "PairClassification",
    "classification": "Classification",
    "clustering": "Clustering",
    "reranking": "Reranking",
    "retrieval": "Retrieval",
}
# The part of the rows that mteb's default clusters.
_MTEB_CLUSTERED = 0.04


def size(dataset: Dataset) -> int:
    """Items of the test split that are scored: rows or queries."""
    return len(dataset.splits["test"])


def unusable(dataset: Dataset, protocol: Protocol) -> str:
    """Why a data set cannot give a score under a protocol, in one line; empty if it can."""
    frames = dataset.splits
    if dataset.task in ("classification", "clustering", "pair_classification"):
        split = "train" if dataset.task == "classification" else "test"
        labels = frames[split]["label"]
        if labels.nunique() < 2:
            return f"all rows of its {split} split have the label {labels.iloc[0]!r}: {dataset.task} needs two labels"
        if dataset.task == "clustering" and protocol == "mteb":
            sampled = int(_MTEB_CLUSTERED * len(labels))
            if sampled < labels.nunique():
                return (
                    f"mteb's default clusters 4% of the rows, here {sampled} of {len(labels)}, fewer than the"
                    f" {labels.nunique()} labels: take `protocol: paper`"
                )
    return ""


def missing(dataset: Dataset, outputs: Mapping[str, str]) -> str:
    """How many texts of a data set have no usable output, in one line; empty if all have one."""
    wanted = {text.text for text in dataset.texts()}
    lacking = sum(1 for text in wanted if not outputs.get(text))
    return f"{lacking} of {len(wanted)} texts have no output: run generation again" if lacking else ""


def transformed(dataset: Dataset, outputs: Mapping[str, str]) -> Dataset:
    """The data set with each transformed text in its original's place.

    `outputs` maps a text in NFC to its output. Raises DataError if one is missing: a text is never left as it
    is, because a score that rests half on originals would pass for the transformation's.
    """
    lacking = missing(dataset, outputs)
    if lacking:
        raise DataError(f"data set {dataset.name!r}: {lacking}")
    splits = {}
    for split, frame in dataset.splits.items():
        columns = {column: [outputs[nfc(text)] for text in frame[column]] for column in TRANSFORMED[dataset.task]}
        splits[split] = frame.assign(**columns)
    return dataclasses.replace(dataset, splits=splits)


def make_task(dataset: Dataset, protocol: Protocol) -> Any:
    """A fresh mteb task (`mteb.abstasks.AbsTask`) that holds the data set and is loaded."""
    build = {
        "sts": _sts,
        "pair_classification": _pair_classification,
        "classification": _classification,
        "clustering": _clustering,
        "reranking": _reranking,
        "retrieval": _retrieval,
    }[dataset.task]
    base, attributes, data = build(dataset, protocol)
    own = {"metadata": _metadata(dataset), **attributes}
    task = type(f"Local{base.__name__}", (base,), own)()
    task.hf_subsets = ["default"]
    task.dataset = {"default": data}
    task.data_loaded = True
    return task


def evaluate(dataset: Dataset, encoder: Encoder, protocol: Protocol, batch_size: int) -> float:
    """The main metric (`METRICS`) of a model on a data set, by mteb; NaN where it is undefined.

    mteb rounds the metrics of reranking and retrieval to five decimals, no others.
    Raises what the encoder raises (DataError for embeddings with NaN, ServiceError for a model that fails).
    """
    import mteb  # noqa: PLC0415 (takes seconds: only who evaluates waits for it)

    task = make_task(dataset, protocol)
    with _silent_mteb():
        # No cache: mteb's would lie in the home folder and give all copies of a task the first one's result.
        result = mteb.evaluate(
            encoder,
            task,
            cache=None,
            co2_tracker=False,
            show_progress_bar=False,
            encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        )
    scores = result.task_results[0].scores["test"][0]
    metric = METRICS[dataset.task]
    if metric not in scores:
        raise DataError(f"mteb's result for {dataset.name!r} lacks {metric!r}; install the pinned version of mteb")
    value = scores[metric]
    return math.nan if value is None else float(value)


def _metadata(dataset: Dataset) -> Any:
    from mteb.abstasks.task_metadata import TaskMetadata  # noqa: PLC0415

    return TaskMetadata(
        name=dataset.name,
        description=f"local data set {dataset.name}",
        dataset={"path": f"local/{dataset.name}", "revision": dataset.revision},
        type=_TYPES[dataset.task],
        category="t2c" if dataset.task in ("classification", "clustering") else "t2t",
        eval_splits=["test"],
        eval_langs=[iso639_3(dataset.language)],
        main_score=METRICS[dataset.task],
    )


def _sts(dataset: Dataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.sts import AbsTaskSTS  # noqa: PLC0415

    # mteb rescales the gold scores before it ranks them, which changes no rank: the bounds play no part.
    return AbsTaskSTS, {}, _split({"test": dataset.splits["test"]})


def _pair_classification(dataset: Dataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.pair_classification import AbsTaskPairClassification  # noqa: PLC0415

    return AbsTaskPairClassification, {"label_column_name": "label"}, _split({"test": dataset.splits["test"]})


def _classification(dataset: Dataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.classification import AbsTaskClassification  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    # An evaluator of its own: the class's default is one object for all tasks, and mteb changes its settings.
    attributes: dict[str, Any] = {"evaluator_model": LogisticRegression(max_iter=100)}
    if protocol == "paper":
        attributes |= {"samples_per_label": 10**9, "n_experiments": 1}
    return AbsTaskClassification, attributes, _split(_numbered(dataset.splits))


def _clustering(dataset: Dataset, protocol: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.clustering import AbsTaskClustering  # noqa: PLC0415
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

    frames = _numbered({"test": dataset.splits["test"]})
    attributes: dict[str, Any] = {"input_column_name": "text", "label_column_name": "label"}
    if protocol == "mteb":
        return AbsTaskClustering, attributes, _split(frames)
    # Here a row is a whole set of texts to be clustered, and there is one.
    rows = {"text": [list(frames["test"]["text"])], "label": [[int(label) for label in frames["test"]["label"]]]}
    return AbsTaskClusteringLegacy, attributes, _split({"test": pd.DataFrame(rows)})


def _reranking(dataset: Dataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: PLC0415

    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    candidates: dict[str, list[str]] = {}
    for number, row in enumerate(dataset.splits["test"].to_dict(orient="records")):
        query = f"q{number}"
        queries[query], qrels[query], candidates[query] = row["query"], {}, []
        texts = [(text, 1) for text in row["positive"]] + [(text, 0) for text in row["negative"]]
        for place, (text, relevance) in enumerate(texts):
            passage = f"{query}-{place}"
            corpus[passage] = text
            qrels[query][passage] = relevance
            candidates[query].append(passage)
    return AbsTaskRetrieval, {}, {"test": _search(queries, corpus, qrels, candidates)}


def _retrieval(dataset: Dataset, _: Protocol) -> tuple[type, dict[str, Any], Any]:
    from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: PLC0415

    frame = dataset.splits["test"]
    queries = dict(zip(frame["id"], frame["query"], strict=True))
    qrels = {query: dict(dataset.qrels[query]) for query in queries}
    return AbsTaskRetrieval, {}, {"test": _search(queries, dataset.corpus, qrels, None)}


def _search(
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    candidates: Mapping[str, list[str]] | None,
) -> dict[str, Any]:
    """The form that mteb 2 gives retrieval and reranking."""
    from datasets import Dataset as Rows  # noqa: PLC0415

    return {
        "queries": Rows.from_dict({"id": list(queries), "text": list(queries.values())}),
        "corpus": Rows.from_dict({"id": list(corpus), "text": list(corpus.values())}),
        "relevant_docs": qrels,
        "top_ranked": candidates,
    }


def _split(frames: Mapping[str, pd.DataFrame]) -> Any:
    from datasets import Dataset as Rows  # noqa: PLC0415
    from datasets import DatasetDict  # noqa: PLC0415

    return DatasetDict({name: Rows.from_dict(frame.to_dict(orient="list")) for name, frame in frames.items()})


def _numbered(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Frames whose labels are numbers, the same in all splits: scikit-learn's binary metrics want them so."""
    names = sorted({str(label) for frame in frames.values() for label in frame["label"]})
    number = {name: index for index, name in enumerate(names)}
    return {
        split: frame.assign(label=np.array([number[str(label)] for label in frame["label"]], dtype=np.int64))
        for split, frame in frames.items()
    }


@contextlib.contextmanager
def _silent_mteb() -> Iterator[None]:
    """Keep mteb's talk off the screen: its log, progress bars of `datasets`, and warnings that are expected here.

    Those are that logistic regression stopped after the protocol's 100 steps, that precision (which mteb computes
    beside accuracy) is undefined for a label never predicted, and that a correlation of constant values is
    undefined (its NaN is reported).
    """
    import datasets  # noqa: PLC0415
    from scipy.stats import ConstantInputWarning  # noqa: PLC0415
    from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning  # noqa: PLC0415

    log = logging.getLogger("mteb")
    level, bars = log.level, datasets.is_progress_bar_enabled()
    log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            for expected in (ConstantInputWarning, ConvergenceWarning, UndefinedMetricWarning):
                warnings.simplefilter("ignore", expected)
            yield
    finally:
        log.setLevel(level)
        if bars:
            datasets.enable_progress_bars()
