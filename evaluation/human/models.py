"""Score embedding models on a human study's sampled tasks, each result in a file of its own.

A file appears complete or not at all, so that a stopped run continues where it was.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotation.human.types import METRICS
from evaluation.cluster import run_jobs, save_results
from evaluation.human.records import MADE, ModelMade
from evaluation.human.sampled import SampledDataset
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.stored import StoredResults
from evaluation.tasks.kinds import LABELS, SubsetScores, label_names
from evaluation.tasks.protocols import Protocol
from evaluation.tasks.scoring import Items, main_score, measured, unusable
from evaluation.units import UNDEFINED, UNKNOWN, Model
from evaluation.work import JobOutcome, Loader, ModelJob, naming, versions
from generation.datasets.local import TableDataset
from plumbline.identity import identity
from plumbline.resources import version_of
from plumbline.statistics.resampled_measures import mean

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from evaluation.models.encoder import Encoder

ACCURACY = "accuracy"


@dataclass(frozen=True)
class ModelTaskScore:
    """A model's result on a sampled task: mteb's measures, the score, and its items by `SampledDataset.units`.

    `items` has a reason if they do not combine to the score.
    """

    measures: dict[str, Any]
    score: float
    items: Items


def score(
    sample: SampledDataset, encoder: Encoder | EncoderProtocol, protocol: Protocol, batch_size: int
) -> ModelTaskScore:
    """Return a model's score on a sampled task. Raises the encoder's errors."""
    scorer = encoder if sample.among is None else _Among(encoder, sample.among)
    result, items = measured(sample.dataset, scorer, sample.kind.protocol(protocol), batch_size)
    ((measures,),) = result.scores.values()
    if sample.among is None:
        return ModelTaskScore(dict(measures), main_score(sample.dataset, result), _in_order(sample, items))
    if not items.parts:
        return ModelTaskScore(dict(measures), math.nan, items)
    (part,) = items.parts
    n = len(sample.items)  # later rows are only candidates
    right = (part.gold[:n] == part.predictions[:n]).astype(np.float64)
    accuracies = {ACCURACY: float(right.mean()), "main_score": float(right.mean())}
    named = {name: measures[name] for name in ("hf_subset", "languages")}
    return ModelTaskScore(
        {**accuracies, **named}, accuracies[ACCURACY], Items((SubsetScores(np.zeros(n), right),), mean)
    )


def metric_of(sample: SampledDataset) -> str:
    """Return mteb's name of a sampled task's metric."""
    return METRICS[sample.dataset.task]


def _in_order(sample: SampledDataset, items: Items) -> Items:
    """Return the items of searches in the order of the queries, not of their ids."""
    names = sample.kind.query_names(sample)
    if not names or not items.parts:
        return items
    order = {name: position for position, name in enumerate(sorted(names))}
    (part,) = items.parts
    places = [order[name] for name in names]
    extra = {name: values[places] for name, values in part.extra.items()}
    return dataclasses.replace(items, parts=(SubsetScores(part.gold, part.predictions[places], extra),))


class _Among:
    """An encoder whose rows of similarities, requested in order, cover only each row's candidates."""

    def __init__(self, encoder: Encoder | EncoderProtocol, among: NDArray[np.bool_]) -> None:
        self._encoder, self._among, self._next = encoder, among, 0
        self.encode, self.similarity_pairwise = encoder.encode, encoder.similarity_pairwise
        self.mteb_model_meta = encoder.mteb_model_meta

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the next rows of `first` with all of `second`; minus infinity for other rows' candidates."""
        import torch  # noqa: PLC0415 (takes seconds, and only evaluation needs it)

        similarities = torch.as_tensor(self._encoder.similarity(first, second)).cpu().numpy().astype(np.float64)
        rows = self._among[self._next : self._next + len(similarities)]
        self._next += len(similarities)
        return np.where(rows, similarities, -np.inf)


@dataclass(frozen=True)
class ModelScores:
    """Models' results on sampled tasks by a protocol: a file for each in a folder."""

    results: StoredResults[ModelMade]
    protocol: Protocol
    batch_size: int

    @classmethod
    def of(cls, host: ModelHost) -> ModelScores:
        """Return the results of a study."""
        results = StoredResults(host.folder / MADE, ModelMade)
        return cls(results, host.evaluation.protocol, host.evaluation.batch_size)

    def unit_id(self, model: Model, sample: SampledDataset) -> str:
        """Return the identity of a score: its items and data set, the model, the protocol and mteb."""
        dataset, task = sample.dataset, sample.task
        of = [task.content_hash, dataset.name, dataset.revision, sample.subset, sample.language, list(sample.units)]
        how = [sample.kind.protocol(self.protocol), metric_of(sample), version_of("mteb")]
        return identity("human-score-v1", of, model.model_id, how)

    def stored(self, model: Model, sample: SampledDataset) -> ModelMade | None:
        """Return a model's result of an earlier run, or None. Raises DataError for a damaged file."""
        return self.results.get(self.unit_id(model, sample))

    def scored(self, model: Model, sample: SampledDataset, loaded: Encoder) -> tuple[str, ModelMade]:
        """Score a loaded model on a sampled task, and return the result with its identity."""
        with naming(sample.name):
            task_score = score(sample, loaded, self.protocol, self.batch_size)
        items = task_score.items
        part = items.parts[0] if items.parts else SubsetScores(np.empty(0), np.empty(0))
        names = label_names(sample.dataset) if isinstance(sample.dataset, TableDataset) else []
        runs = part.extra.get(LABELS, np.empty((0, 0))).tolist()
        return self.unit_id(model, sample), ModelMade(
            revision=model.revision or loaded.revision or UNKNOWN,
            made=tuple(np.asarray(part.predictions, np.float64).tolist()),
            labels=tuple(tuple(names[label] if names else str(label) for label in run) for run in runs),
            others={name: tuple(values.tolist()) for name, values in part.extra.items() if name != LABELS},
            measures=task_score.measures,
            reason=UNDEFINED if math.isnan(task_score.score) else items.reason,
            versions=versions(loaded.engines),
        )


def score_models(
    host: ModelHost, samples: Sequence[SampledDataset], models: Sequence[Model], load: Loader, cluster: str = ""
) -> JobOutcome:
    """Score models on sampled tasks that have no file yet, on the Ray cluster at an address, if any.

    Raises as `evaluation.cluster.run_jobs`.
    """
    scores, outcome = ModelScores.of(host), JobOutcome()
    scorable = [sample for sample in samples if not unusable(sample.dataset, sample.kind.protocol(scores.protocol))]
    missing = {model.name: [sample for sample in scorable if scores.stored(model, sample) is None] for model in models}
    n_due = sum(map(len, missing.values()))
    outcome.kept = len(scorable) * len(models) - n_due
    jobs = [
        ModelJob(model, [partial(scores.scored, model, sample) for sample in missing[model.name]])
        for model in models
        if missing[model.name]
    ]

    def save(_: ModelJob, result: tuple[str, ModelMade]) -> bool:
        scores.results.add(*result)
        return True

    save_results(run_jobs(host, jobs, load, cluster if jobs else ""), save, outcome, n_due)
    return outcome
