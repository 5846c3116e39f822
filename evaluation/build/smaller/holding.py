"""Whether a smaller data set ranks models as the whole one does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.statistics.paired import Estimate, spearman_interval
from evaluation.models import encoder
from evaluation.statistics.rankings import kendall_interval
from evaluation.tasks.scoring import evaluate_task, main_score
from evaluation.units import Model
from generation.datasets.dataset import Dataset
from plumbline.streams import stream
from plumbline.study import Study


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
            made = evaluate_task(small, loaded, evaluation.protocol, evaluation.batch_size, prepare=_all_documents)
        finally:
            loaded.close()
        rows.append((model.name, whole[model.name], main_score(small, made), model.name in pooled))
        progress()
    scores = pd.DataFrame(rows, columns=["model", "whole", "smaller", "in_pool"])
    both = scores["whole"].to_numpy(float), scores["smaller"].to_numpy(float)
    rngs = [stream(seed, "holding", small.name, name) for name in ("rho", "tau")]
    return Holding(scores, spearman_interval(*both, rng=rngs[0]), kendall_interval(*both, rng=rngs[1]))


def _all_documents(task: Any) -> None:
    """Of clustering by mteb's protocol: embed all that is left, and not 4% of it again."""
    if hasattr(task, "max_fraction_of_documents_to_embed"):
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None
