"""Models on the items that people saw: mteb's score of the sampled task, taken apart into its items.

Clustering is of all items at once, whatever the study's protocol: mteb's own settings would draw 4% of them. Bitext is
matched among the candidates that people chose from, and scored by the share of right matches.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotation.human.tasks import METRICS
from evaluation.human.sampled import Sampled
from evaluation.statistics.counted import mean
from evaluation.tasks.item_scores import Items, Part, measured
from evaluation.tasks.protocols import Protocol
from evaluation.tasks.scoring import main_score, unusable
from plumbline.study.datasets import SEARCHES

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from evaluation.models.encoder import Encoder

ACCURACY = "accuracy"


@dataclass(frozen=True)
class Scored:
    """What a model scored on a sampled task: all that mteb measured of it, its score, and its items by `Sampled.units`.

    `items` has a reason where they do not give the score when put together.
    """

    measures: dict[str, Any]
    score: float
    items: Items


def protocol_of(one: Sampled, protocol: Protocol) -> Protocol:
    """The protocol by which a sampled task is scored."""
    return "paper" if one.dataset.task == "clustering" else protocol


def why_unusable(one: Sampled, protocol: Protocol) -> str:
    """Why the items give no score, in one line; empty if they do."""
    return unusable(one.dataset, protocol_of(one, protocol))


def score(one: Sampled, encoder: Encoder | EncoderProtocol, protocol: Protocol, batch_size: int) -> Scored:
    """A model's score on a sampled task. Raises what the encoder raises."""
    asked = encoder if one.among is None else _Among(encoder, one.among)
    result, items = measured(one.dataset, asked, protocol_of(one, protocol), batch_size)
    ((measures,),) = result.scores.values()
    if one.among is None:
        return Scored(dict(measures), main_score(one.dataset, result), _in_order(one, items))
    if not items.parts:
        return Scored(dict(measures), math.nan, items)
    (part,) = items.parts
    n = len(one.items)  # the rows behind them are there to be chosen
    right = (part.gold[:n] == part.made[:n]).astype(np.float64)
    own = {ACCURACY: float(right.mean()), "main_score": float(right.mean())}
    named = {name: measures[name] for name in ("hf_subset", "languages")}
    return Scored({**own, **named}, own[ACCURACY], Items((Part(np.zeros(n), right),), mean))


def metric_of(one: Sampled) -> str:
    """The metric of a sampled task, as mteb calls it."""
    return METRICS[one.dataset.task]


def _in_order(one: Sampled, items: Items) -> Items:
    """Items of searches in the order of the queries, not of their ids."""
    if one.dataset.task not in SEARCHES or not items.parts:
        return items
    names = query_names(one)
    order = {name: place for place, name in enumerate(sorted(names))}
    (part,) = items.parts
    places = [order[name] for name in names]
    beside = {name: values[places] for name, values in part.beside.items()}
    return dataclasses.replace(items, parts=(Part(part.gold, part.made[places], beside),))


def query_names(one: Sampled) -> list[str]:
    """What mteb calls the queries of a sampled search, in the order of its units."""
    if one.subset:
        return [name.removeprefix(f"{one.subset}/") for name in one.units]
    local = one.dataset.task == "reranking" and hasattr(one.dataset, "splits")
    return [f"q{place}" for place in range(len(one.units))] if local else list(one.units)


class _Among:
    """An encoder whose rows of similarities, asked for one after the other, have those of candidates alone."""

    def __init__(self, encoder: Encoder | EncoderProtocol, among: NDArray[np.bool_]) -> None:
        self._encoder, self._among, self._next = encoder, among, 0
        self.encode, self.similarity_pairwise = encoder.encode, encoder.similarity_pairwise
        self.mteb_model_meta = encoder.mteb_model_meta

    def similarity(self, first: Any, second: Any) -> Any:
        """The next rows of `first` with all of `second`; minus infinity for what is no candidate of theirs."""
        import torch  # noqa: PLC0415 (seconds, and only who evaluates needs it)

        made = torch.as_tensor(self._encoder.similarity(first, second)).cpu().numpy().astype(np.float64)
        rows = self._among[self._next : self._next + len(made)]
        self._next += len(made)
        return np.where(rows, made, -np.inf)
