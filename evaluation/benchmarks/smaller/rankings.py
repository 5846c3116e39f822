"""How models rank a corpus for queries: the study's embedding models, and BM25 as mteb has it."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.benchmarks.smaller.draw import Ranking
from evaluation.models import encoder
from evaluation.tasks.scoring import evaluate_task, main_score
from evaluation.units import Model, label
from generation.datasets.dataset import Dataset
from plumbline.errors import StudyError
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.paired import spearman_interval
from plumbline.statistics.rankings import kendall_interval
from plumbline.statistics.seeding import stream
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

BM25 = "bm25"
_BM25 = "mteb/baseline-bm25s"
_NEEDS = ("bm25s", "Stemmer")


def refuse_without_bm25() -> None:
    """Raise StudyError where what mteb's BM25 needs is not installed."""
    for module in _NEEDS:
        if importlib.util.find_spec(module) is None:
            raise StudyError(
                "--pool bm25: mteb's BM25 is not installed; pip install 'mteb[bm25s]', or pool by embedding models"
                " alone (--pool MODEL ...)"
            )


def rankings(
    study: Study, dataset: Dataset, specs: Sequence[ModelSpec], depth: int, *, bm25: bool
) -> Iterator[tuple[str, Ranking]]:
    """Each model's name and its first passages for each query, one after the other; embeddings are kept as ever."""
    if bm25:
        import mteb  # noqa: PLC0415 (takes seconds)

        yield BM25, _ranking(study, dataset, mteb.get_model(_BM25), depth)
    for spec in specs:
        model = encoder.load(study, spec)
        try:
            yield label(study, spec), _ranking(study, dataset, model, depth)
        finally:
            model.close()


def _ranking(study: Study, dataset: Dataset, model: Any, depth: int) -> Ranking:
    """By mteb's own search, as deep as is asked for."""

    def deep(task: Any) -> None:
        task._top_k = max(depth, task._top_k)  # mteb has no public way for it

    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        evaluate_task(
            dataset, model, study.evaluation.protocol, study.evaluation.batch_size, prepare=deep,
            predictions=Path(folder),
        )  # fmt: skip
        (file,) = Path(folder).glob("*.json")
        ranked_lists = json.loads(file.read_text(encoding="utf-8"))
    (subset,) = (name for name in ranked_lists if name != "mteb_model_meta")
    (ranked,) = ranked_lists[subset].values()
    return {
        query: sorted(passages, key=lambda passage: (-passages[passage], passage))[:depth]
        for query, passages in ranked.items()
    }


@dataclass(frozen=True)
class Holding:
    """Scores by model (columns model, whole, smaller, in_pool), and rho and tau with intervals over models."""

    scores: pd.DataFrame
    rho: Estimate
    tau: Estimate


def holding(
    study: Study,
    small: Dataset,
    whole: Mapping[str, float],
    pooled: Collection[str],
    seed: int,
    progress: Callable[[], object] = lambda: None,
) -> Holding:
    """Score the models that have a score on the whole data set on the smaller one, by the same protocol.

    `whole` has those scores by the model's name; `pooled` names models whose rankings the pool was made of.
    The intervals are 95% percentile bootstraps over models.
    """
    evaluation, rows = study.evaluation, []
    for model in (Model.of(study, spec) for spec in evaluation.models):
        if model.name not in whole:
            continue
        loaded = encoder.load(study, model.spec)
        try:
            result = evaluate_task(small, loaded, evaluation.protocol, evaluation.batch_size, prepare=_all_documents)
        finally:
            loaded.close()
        rows.append((model.name, whole[model.name], main_score(small, result), model.name in pooled))
        progress()
    scores = pd.DataFrame(rows, columns=["model", "whole", "smaller", "in_pool"])
    both = scores["whole"].to_numpy(float), scores["smaller"].to_numpy(float)
    rngs = [stream(seed, "holding", small.name, name) for name in ("rho", "tau")]
    return Holding(scores, spearman_interval(*both, rng=rngs[0]), kendall_interval(*both, rng=rngs[1]))


def _all_documents(task: Any) -> None:
    """Of clustering by mteb's protocol: embed all that is left, and not 4% of it again."""
    if hasattr(task, "max_fraction_of_documents_to_embed"):
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None
