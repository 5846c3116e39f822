"""All that is measured beside the scores, in the form that a run takes it: what is left, how it is done, where it goes.

All tables rest on embeddings that scoring has put on disk, so they cost little after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from annotation.campaign_records import PAIR_MEANS
from annotation.verdicts.verdicts import COMMAND as ACCEPT
from annotation.verdicts.verdicts import accepted_pairs
from evaluation.measures.abstention import Abstaining
from evaluation.measures.accepted_pairs import AcceptedPairs, AllTexts
from evaluation.measures.rows import MeasureTable, RowMeasure, UnitMeasures
from evaluation.models.encoder import Encoder
from evaluation.records import EvaluationRecords
from evaluation.units import Model, ScoreUnit
from plumbline.record_files import StudyRecords


@dataclass(frozen=True)
class MeasureTodo:
    """The units that a model has left to measure for one table, and how that is done."""

    measure: RowMeasure[Any]
    units: Sequence[ScoreUnit]


class Tables:
    """The tables of a study: what of them holds, and what is still to be made for the `chosen` of its `models`."""

    def __init__(
        self,
        records: StudyRecords,
        units: Sequence[ScoreUnit],
        measures: Sequence[RowMeasure[Any]],
        models: Sequence[Model],
        chosen: Sequence[Model],
    ) -> None:
        """Read what there is; `measures` say how each table is made. Raises DataError for files that cannot be read."""
        self._measures = measures
        self._tables = {m.file.name: MeasureTable(records, units, models, chosen, m) for m in self._measures}
        for texts in {unit.texts for unit in units}:
            texts.remembered.keep()

    def todo(self, model: Model) -> tuple[MeasureTodo, ...]:
        """What needs the model to be loaded."""
        todos = (MeasureTodo(measure, self._tables[measure.file.name].todo(model)) for measure in self._measures)
        return tuple(todo for todo in todos if todo.units)

    def save(self, model: Model, measures: UnitMeasures) -> None:
        """Note what was measured; `write` puts it on disk."""
        self._tables[measures.file].save(model, measures.key, measures.fields)

    def write(self) -> None:
        """Write everything noted."""
        for table in self._tables.values():
            table.write()


def measures(records: EvaluationRecords) -> tuple[RowMeasure[Any], ...]:
    """How each table of a study is made. Raises DataError for files that cannot be read."""
    study = records.study
    good = accepted_pairs(records.pair_means, records.rubric.question_names()) if records.has(PAIR_MEANS) else None
    wanted = (Abstaining(study.evaluation, study.sample.seed),) if study.evaluation.abstention else ()
    return (
        AcceptedPairs(study.evaluation, records.known_pairs, good, study.acceptance.min_pairs, study.command(ACCEPT)),
        AllTexts(),
        *wanted,
    )


def pieces(todos: Sequence[MeasureTodo]) -> list[Callable[[Encoder], UnitMeasures]]:
    """What is left for a model, one by one; each raises what the encoder raises."""
    return [partial(_measured, todo.measure, unit) for todo in todos for unit in todo.units]


def _measured(measure: RowMeasure[Any], unit: ScoreUnit, encoder: Encoder) -> UnitMeasures:
    return UnitMeasures(measure.file.name, unit.place, measure.measured(unit, encoder))
