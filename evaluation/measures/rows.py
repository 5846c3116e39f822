"""What is measured beside the scores: a row for each model and transformed data set, kept while its identity holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pandas as pd
from pydantic import Field

from evaluation.gate import Status
from evaluation.models.encoder import Encoder
from evaluation.units import Model, Place, ScoreUnit
from plumbline.errors import DataError
from plumbline.manifest import read_kept_frame, refuse_replaced_table, write_kept_table
from plumbline.records import Record
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.transformations import ORIGINAL

COMMAND = "evaluation.run"

Fields = Mapping[str, object]  # a row's own fields


class MeasureRow(Record):
    """What such rows have in common."""

    KEY = ("model", "dataset", "transformation", "seed")
    model: str = Field(description="the embedding model")
    dataset: str = Field(description="the data set")
    task_type: str = Field(description="its task")
    transformation: str = Field(description="its name")
    axis: str = Field(description="its axis")
    seed: int = Field(description="transformation seed")
    status: Status = Field(description="whether the gate let it through")
    unit_id: str = Field(description="identity of all that makes the numbers: equal ones are reused")


R = TypeVar("R", bound=MeasureRow)
R_co = TypeVar("R_co", bound=MeasureRow, covariant=True)
R_any = TypeVar("R_any", bound=Record)


class RowMeasure(Protocol[R_co]):
    """How the rows of one table are made."""

    file: str
    """The table's name in the study's folder."""
    originals: bool
    """Whether originals have rows, too."""

    @property
    def record(self) -> type[R_co]:
        """What a row is."""
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
        study: Study,
        units: Sequence[ScoreUnit],
        models: Sequence[Model],
        chosen: Sequence[Model],
        measure: RowMeasure[R],
    ) -> None:
        self._study, self._measure, self._models = study, measure, models
        of = [unit for unit in units if measure.originals or unit.transformation != ORIGINAL]
        wanted = [unit for unit in of if unit.decision.status != "left_out"]
        self._units = {unit.place: unit for unit in wanted}
        self._rows: dict[tuple[str, Place], R] = {}
        stored_rows = {
            (row.unit_id, row.transformation, row.seed): row for row in stored(study, measure.file, measure.record)
        }
        for model, unit in self._wanted():
            old = stored_rows.get((measure.identity(unit, model), unit.transformation, unit.seed))
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
        self._rows[model.name, key] = self._measure.record.model_validate(
            {
                "model": model.name,
                "dataset": unit.name,
                "task_type": unit.task,
                "transformation": unit.transformation,
                "axis": ORIGINAL if unit.transformation == ORIGINAL else self._study.kinds[unit.transformation].axis,
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
        write_kept_table(self._study, self._measure.file, rows, self._measure.record)

    def _wanted(self) -> Iterator[tuple[Model, ScoreUnit]]:
        """Each row that the table is to have."""
        return ((model, unit) for model in self._models for unit in self._units.values())


def stored(study: Study, file: str, record: type[R_any], command: str = COMMAND) -> list[R_any]:
    """Records of earlier runs; none before the first. They can be made again (`command`), so a damaged file may go."""
    path = study.folder / file
    if not path.exists():
        return []
    try:
        rows = read_records(path, record, study.command(command))
        refuse_replaced_table(study, file, study.command(command))
    except DataError as error:
        raise DataError(f"{error} (nothing else is lost when {file} is deleted: it is made again)") from None
    return rows


def read_rows(study: Study, file: str, record: type[MeasureRow]) -> pd.DataFrame:
    """The rows of a table; none where it is not there yet."""
    written = (study.folder / file).exists()
    empty = pd.DataFrame(columns=list(record.model_fields))
    return read_kept_frame(study, file, record, study.command(COMMAND)) if written else empty
