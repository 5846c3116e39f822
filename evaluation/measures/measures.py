"""All that is measured beside the scores, in the form that a run takes it: what is left, how it is done, where it goes.

All tables rest on embeddings that scoring has put on disk, so they cost little after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.measures.abstention import Abstaining
from evaluation.measures.accepted_pairs import AcceptedPairs, AllTexts
from evaluation.measures.rows import MeasureTable, RowMeasure, UnitMeasures
from evaluation.models.encoder import Encoder
from evaluation.units import Model, ScoreUnit
from plumbline.records import Pair
from plumbline.study import Study


@dataclass(frozen=True)
class MeasureTodo:
    """The units that a model has left to measure for one table, and how that is done."""

    measure: RowMeasure[Any]
    units: Sequence[ScoreUnit]


class Tables:
    """The tables of a study: what of them holds, and what is still to be made for the `chosen` of its `models`."""

    def __init__(
        self,
        study: Study,
        units: Sequence[ScoreUnit],
        made: Sequence[RowMeasure[Any]],
        models: Sequence[Model],
        chosen: Sequence[Model],
    ) -> None:
        """Read what there is; `made` are the tables' `measures`. Raises DataError for files that cannot be read."""
        self._measures = made
        self._tables = {one.file: MeasureTable(study, units, models, chosen, one) for one in self._measures}
        for texts in {unit.texts for unit in units}:
            texts.remembered.keep()

    def todo(self, model: Model) -> tuple[MeasureTodo, ...]:
        """What needs the model to be loaded."""
        left = (MeasureTodo(one, self._tables[one.file].todo(model)) for one in self._measures)
        return tuple(one for one in left if one.units)

    def save(self, model: Model, made: UnitMeasures) -> None:
        """Note what was measured; `write` puts it on disk."""
        self._tables[made.file].save(model, made.place, made.fields)

    def write(self) -> None:
        """Write everything noted."""
        for table in self._tables.values():
            table.write()


def measures(study: Study, pairs: Sequence[Pair]) -> tuple[RowMeasure[Any], ...]:
    """How each table is made; `pairs` are the sample's. Raises DataError for files that cannot be read."""
    asked = (Abstaining(study),) if study.evaluation.abstention else ()
    return AcceptedPairs(study, pairs), AllTexts(), *asked


def pieces(left: Sequence[MeasureTodo]) -> list[Callable[[Encoder], UnitMeasures]]:
    """What is left for a model, one by one; each raises what the encoder raises."""
    return [partial(_measured, one.measure, unit) for one in left for unit in one.units]


def _measured(measure: RowMeasure[Any], unit: ScoreUnit, encoder: Encoder) -> UnitMeasures:
    return UnitMeasures(measure.file, unit.place, measure.measured(unit, encoder))
