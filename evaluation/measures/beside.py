"""All that is measured beside the scores, in the form that a run takes it: what is left, how it is done, where it goes.

Both tables rest on embeddings that scoring has put on disk, so they cost little after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.measures.accepted_pairs import AcceptedPairs
from evaluation.measures.rows import Measure, Measured, MeasureTable
from evaluation.measures.text_drift import AllTexts
from evaluation.models.encoder import Encoder
from evaluation.units import Model, Unit
from plumbline.study import Study

_MEASURES: Mapping[str, Callable[[Study], Measure[Any]]] = {
    AcceptedPairs.file: AcceptedPairs,
    AllTexts.file: lambda _: AllTexts(),
}


@dataclass(frozen=True)
class Job:
    """What a model has left to do for one table (its file)."""

    file: str
    units: Sequence[Unit]


class Tables:
    """The tables of a study: what of them holds, and what is still to be made for the `chosen` of its `models`."""

    def __init__(self, study: Study, units: Sequence[Unit], models: Sequence[Model], chosen: Sequence[Model]) -> None:
        """Read what there is. Raises DataError for files that cannot be read."""
        self._tables = {
            file: MeasureTable(study, units, models, chosen, measure(study)) for file, measure in _MEASURES.items()
        }

    def todo(self, model: Model) -> tuple[Job, ...]:
        """What needs the model to be loaded."""
        jobs = (Job(file, table.todo(model)) for file, table in self._tables.items())
        return tuple(job for job in jobs if job.units)

    def save(self, model: Model, made: Measured) -> None:
        """Note what was measured; `write` puts it on disk."""
        self._tables[made.file].save(model, made.place, made.fields)

    def write(self) -> None:
        """Write everything noted."""
        for table in self._tables.values():
            table.write()


def measure(study: Study, jobs: Sequence[Job], encoder: Encoder) -> Iterator[Measured]:
    """Do what is left for a model; raises what the encoder raises."""
    for job in jobs:
        one = _MEASURES[job.file](study)
        for unit in job.units:
            yield Measured(job.file, unit.place, one.measured(unit, encoder))
