"""What is measured beside the scores: a row for each model and transformed data set, kept while its identity holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from evaluation.models.encoder import Encoder
from evaluation.records import MeasureRow, earlier, write_rows
from evaluation.units import Model, Place, ScoreUnit
from plumbline.manifest import RecordFile, StudyRecords
from plumbline.transformations import ORIGINAL

Fields = Mapping[str, object]  # a row's own fields

R = TypeVar("R", bound=MeasureRow)


class RowMeasure(Protocol[R]):
    """How the rows of one table are made."""

    originals: bool
    """Whether originals have rows, too."""

    @property
    def file(self) -> RecordFile[R]:
        """Where the rows are."""
        ...

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """Identity of a unit's row for a model."""
        ...

    def blank(self, unit: ScoreUnit) -> Fields | None:
        """The row's own fields where no model is needed to know them; None where one is."""
        ...

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Fields:
        """The row's own fields."""
        ...


@dataclass(frozen=True)
class UnitMeasures:
    """What was measured of a unit, for the table of a file."""

    file: str
    key: Place
    fields: Fields


class MeasureTable(Generic[R]):
    """One table: what of it holds from earlier runs, and what is still to be made (`todo`).

    `models` are all of the study's; for the `chosen` ones rows that need no model are made at once. What the gate left
    out is not measured. Raises DataError for a table that cannot be read.
    """

    def __init__(
        self,
        records: StudyRecords,
        units: Sequence[ScoreUnit],
        models: Sequence[Model],
        chosen: Sequence[Model],
        measure: RowMeasure[R],
    ) -> None:
        self._records, self._measure, self._models = records, measure, models
        of = [unit for unit in units if measure.originals or unit.transformation != ORIGINAL]
        wanted = [unit for unit in of if unit.decision.status != "left_out"]
        self._units = {unit.place: unit for unit in wanted}
        self._rows: dict[tuple[str, Place], R] = {}
        stored = {(row.unit_id, row.transformation, row.seed): row for row in earlier(records, measure.file)}
        for model, unit in self._wanted():
            old = stored.get((measure.identity(unit, model), unit.transformation, unit.seed))
            blank = measure.blank(unit)
            if blank is not None and (old or model in chosen):
                self.save(model, unit.place, blank)
            elif old:
                self._rows[model.name, unit.place] = old.model_copy(
                    update={"model": model.name, "status": unit.decision.status}
                )

    def todo(self, model: Model) -> list[ScoreUnit]:
        """The units that a model is needed for."""
        return [unit for unit in self._units.values() if (model.name, unit.place) not in self._rows]

    def save(self, model: Model, key: Place, fields: Fields) -> None:
        """Note a row; `write` puts it on disk."""
        unit = self._units[key]
        self._rows[model.name, key] = self._measure.file.record.model_validate(
            {
                "model": model.name,
                "dataset": unit.name,
                "task_type": unit.task,
                "transformation": unit.transformation,
                "axis": unit.axis,
                "seed": unit.seed,
                "status": unit.decision.status,
                "unit_id": self._measure.identity(unit, model),
                **fields,
            }
        )

    def write(self) -> None:
        """Write everything noted, in the study's order whatever order it was made in."""
        places = [(model.name, unit.place) for model, unit in self._wanted()]
        rows = [self._rows[key] for key in places if key in self._rows]
        write_rows(self._records, self._measure.file, rows)

    def _wanted(self) -> Iterator[tuple[Model, ScoreUnit]]:
        """Each row that the table is to have."""
        return ((model, unit) for model in self._models for unit in self._units.values())
