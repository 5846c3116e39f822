"""Scores on accepted pairs alone: the items whose transformed texts people rated and accepted, one by one.

A verdict accepts a transformation by the mean over its pairs; some of these are bad all the same. Here an item counts
only if each of its texts is one of a rated pair whose own mean reaches the threshold on every question
(`verdicts.verdicts.accepted_pairs`), and its output is still the one that was rated; original and transformed texts
are scored on the same items. Few items have that where a pair is one sentence of many: what has fewer than
`acceptance.min_pairs` items is NaN, with the reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.measures.rows import Fields
from evaluation.models.encoder import Encoder, drift_of_texts
from evaluation.records import ACCEPTED_SCORES, TEXT_DRIFT
from evaluation.tables.datasets import QUANTILES
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from evaluation.texts import Outputs
from evaluation.units import UNDEFINED, Model, Place, ScoreUnit
from generation.datasets.dataset import Dataset
from plumbline.identity import identity
from plumbline.records import Pair, Text
from plumbline.study.evaluation import EvaluationSpec

_PASSAGE = "passage"  # the field of retrieval's passages, which are searched and not scored


class AcceptedPairs:
    """How they are scored (an `evaluation.measures.rows.Measure`)."""

    file = ACCEPTED_SCORES
    originals = False

    def __init__(
        self,
        evaluation: EvaluationSpec,
        pairs: Sequence[Pair],
        good: Collection[str] | None,
        min_pairs: int,
        accept: str = "",
    ) -> None:
        """`good` are the accepted ones of the sample's `pairs` (ids); None where the command `accept` has yet to tell.

        Fewer than `min_pairs` items of a data set are not scored.
        """
        self._evaluation, self._min_pairs = evaluation, min_pairs
        self._unknown = f"it is not known which pairs are accepted: run `{accept}`" if good is None else ""
        self._good = frozenset(good or ())
        self._seeds = {(pair.transformation, pair.seed) for pair in pairs if pair.pair_id in self._good}
        self._known: dict[Place, _Selection] = {}

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """That of the score, of which texts are accepted, and of how many items it takes."""
        chosen = sorted(self._selection(unit).texts)
        return identity("accepted-v1", unit.unit_id(self._evaluation.protocol, model), chosen, self._min_pairs)

    def blank(self, unit: ScoreUnit) -> Fields | None:
        """NaN with the reason, where the items are too few."""
        selection = self._selection(unit)
        return self._fields(unit, math.nan, math.nan, selection.reason) if selection.reason else None

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Fields:
        """Both scores, on the same items."""
        evaluation, texts = self._evaluation, self._selection(unit).texts
        both = accepted_alone(unit.dataset, outputs_of(unit), texts)
        before, after = (
            scoring.evaluate(dataset, encoder, evaluation.protocol, evaluation.batch_size) for dataset in both
        )
        return self._fields(unit, before, after, UNDEFINED if math.isnan(before) or math.isnan(after) else "")

    def _fields(self, unit: ScoreUnit, before: float, after: float, reason: str) -> Fields:
        selection, metric = self._selection(unit), METRICS[unit.task]
        numbers = {"original": before, "score": after, "n": selection.n, "n_pairs": len(selection.texts)}
        return {"metric": metric, "reason": reason, **numbers}

    def _selection(self, unit: ScoreUnit) -> _Selection:
        if unit.place not in self._known:
            self._known[unit.place] = self._select(unit)
        return self._known[unit.place]

    def _select(self, unit: ScoreUnit) -> _Selection:
        if self._unknown:
            return _Selection(frozenset(), 0, self._unknown)
        if (unit.transformation, unit.seed) not in self._seeds:
            return _Selection(frozenset(), 0, "no pair of this transformation and seed was rated and accepted")
        good = {text: pair for text, pair in unit.sampled.items() if pair.pair_id in self._good}
        rated = [[text, pair.pair_id, pair.transformed] for text, pair in sorted(good.items())]
        least, protocol = self._min_pairs, self._evaluation.protocol

        def find() -> dict[str, Any]:
            outputs = outputs_of(unit).texts
            texts = sorted(text for text, pair in good.items() if outputs.get(text) == pair.transformed)
            accepted, _ = accepted_alone(unit.dataset, outputs_of(unit), frozenset(texts))
            n = scoring.size(accepted)
            few = f"{n} items consist of accepted pairs alone, of at least {least} that are needed"
            return {"texts": texts, "n": n, "reason": few if n < least else scoring.unusable(accepted, protocol)}

        remembered = unit.texts.remembered
        selection = remembered.found(remembered.key("accepted", unit.state, rated, least, protocol), find)
        return _Selection(frozenset(selection["texts"]), selection["n"], selection["reason"])


@dataclass(frozen=True)
class _Selection:
    """The accepted texts of a unit (ids), how many items consist of them, and why these give no score."""

    texts: frozenset[str]
    n: int
    reason: str


def accepted_alone(dataset: Dataset, outputs: Outputs, accepted: Collection[str]) -> tuple[Dataset, Dataset]:
    """(original, transformed) data set of the items whose scored texts are all in `accepted` (ids).

    Texts that are not scored (classification's train split, the passages that queries are searched in) stay whole, so
    that nothing but the items differs from the whole data set's scores.
    """

    def left(text: Text, cell: str) -> str | None:
        scored = text.split == "test" and text.field != _PASSAGE
        return None if scored and text.text_id not in accepted else outputs.change(text, cell)

    return dataset.replaced(lambda text, cell: None if left(text, cell) is None else cell), dataset.replaced(left)


def outputs_of(unit: ScoreUnit) -> Outputs:
    """The outputs of a transformed unit. Raises ValueError for an original."""
    if unit.outputs is None:
        raise ValueError(f"{unit.name}: the original has no outputs")
    return unit.outputs


_AT_ONCE = 8192  # texts whose embeddings are in memory at a time


class AllTexts:
    """How it is measured (an `evaluation.measures.rows.Measure`): by the default prompt, as for rated pairs."""

    file = TEXT_DRIFT
    originals = False

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """That of the model and of all texts, before and after."""
        return identity("text-drift-v1", unit.content_id, model.model_id)

    def blank(self, unit: ScoreUnit) -> Fields | None:
        """A model is always needed."""
        return None

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Fields:
        """Mean and quantiles. Raises DataError for embeddings that have no direction, or hold NaN."""
        outputs, originals = outputs_of(unit).texts, unit.texts.originals(unit.spec, unit.revision)
        both = zip(originals.ids, originals.texts, strict=True)
        pairs = ((text, outputs[text_id]) for text_id, text in both if text_id in outputs)
        moved = []
        while part := list(itertools.islice(pairs, _AT_ONCE)):
            moved.append(drift_of_texts(encoder, *zip(*part, strict=True)))
        drift = np.concatenate(moved)
        quantiles = np.quantile(drift, list(QUANTILES.values())).tolist()
        return {"n": len(drift), "mean": float(drift.mean()), **dict(zip(QUANTILES, quantiles, strict=True))}
