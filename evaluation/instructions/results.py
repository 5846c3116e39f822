"""What models scored under prompts: earlier runs' rows that still hold, those that are being made, and the tables.

A unit's rows are in a journal as soon as they exist, all or none, and become part of the table every few seconds. What
stands there under an identity that still holds is kept, with what the gate says now.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from evaluation.instructions.scores import ITEMS, SCORES, PromptItemScore, PromptScore
from evaluation.instructions.units import PromptUnit, run_id
from evaluation.measures.rows import stored
from evaluation.tasks.item_scores import Items
from evaluation.tasks.protocols import METRICS
from evaluation.units import UNKNOWN, Model
from plumbline.journal import Journal
from plumbline.manifest import write_kept_table
from plumbline.records import Record
from plumbline.statistics.resampled_measures import mean
from plumbline.store import joined, read_table, write_table
from plumbline.study import Study

COMMAND = "evaluation.instructions"
WRITE_SECONDS = 10.0


class InstructionScore(PromptScore):
    """A row of the table, with what tells whether it still holds."""

    unit_id: str = Field(default="", description="identity of all that makes the score: equal ones are reused")
    versions: str = Field(default="", description="packages that made the score, and their versions")


class UnitRows(Record):
    """All rows of a unit, as the journal has them."""

    unit_id: str = Field(description="the unit's identity")
    rows: tuple[InstructionScore, ...] = Field(description="one for each subset")


class PromptResults:
    """The rows of a run: what holds from earlier ones, and what is still to be made (`todo`)."""

    def __init__(self, study: Study, units: Sequence[PromptUnit], models: Sequence[Model]) -> None:
        self.study, self.units, self.models = study, units, models
        self._journal = Journal((study.scratch / SCORES).with_suffix(".journal"))
        self._written = -math.inf
        self._rows = self._kept()
        self._failed: dict[str, str] = {}
        self.kept = len(self._rows)

    def todo(self, model: Model) -> list[PromptUnit]:
        """The units that a model has left; those with a reason are none."""
        return [unit for unit in self.units if not unit.reason and unit.unit_id(self.study, model) not in self._rows]

    def save(self, model: Model, unit: PromptUnit, rows: Sequence[InstructionScore], items: Items) -> None:
        """Note what was made of a unit; it is on the disk when this returns."""
        unit_id = unit.unit_id(self.study, model)
        if items.measure is mean:
            write_table(self._items(unit_id, unit), list(_item_rows(model, unit, items)), PromptItemScore)
        self._rows[unit_id] = list(rows)
        self._journal.append(UnitRows(unit_id=unit_id, rows=tuple(rows)))
        self._journal.sync()
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def fail(self, model: Model, reason: str) -> None:
        """Note why a model could not be evaluated; what it had made before stays."""
        self._failed[model.name] = reason

    def write(self) -> None:
        """Write the table of all rows, in the study's order."""
        begun = [model for model in self.models if self._begun(model)]  # one that never ran has no rows
        rows = [row for model in begun for unit in self.units for row in self._of(model, unit)]
        write_kept_table(self.study, SCORES, rows, InstructionScore)
        self._journal.remove()
        self._written = time.monotonic()

    def close(self) -> None:
        """Close the journal; what it holds stays."""
        self._journal.close()

    def write_items(self) -> None:
        """Write the table of all items of the units that are scored, once all are there."""
        parts = [
            self._items(unit_id, unit)
            for model in self.models
            for unit in self.units
            if not unit.reason and (unit_id := unit.unit_id(self.study, model)) in self._rows
        ]
        command = self.study.command(COMMAND)
        tables = [read_table(file, PromptItemScore, command) for file in parts if file.exists()]
        write_kept_table(self.study, ITEMS, joined(tables, PromptItemScore), PromptItemScore)

    def row(self, model: Model, unit: PromptUnit, **fields: Any) -> InstructionScore:
        """A row of a unit."""
        wanted = unit.wanted
        return InstructionScore.model_validate(
            {
                "model": model.name, "revision": model.revision or UNKNOWN, "task": unit.dataset.name,
                "task_type": unit.dataset.task, "metric": METRICS[unit.dataset.task], "prompt_id": wanted.prompt_id,
                "text": wanted.text or "", "source": wanted.source, "generator": wanted.generator,
                "context": wanted.context, "label": wanted.label, "simulated": wanted.simulated,
                "dataset_revision": unit.dataset.revision, "run": run_id(self.study), **fields,
            }
        )  # fmt: skip

    def unscored(self, model: Model, unit: PromptUnit, reason: str, **fields: Any) -> list[InstructionScore]:
        """The rows of a unit without a score, and why."""
        return [
            self.row(model, unit, split=split, subset=subset, score=math.nan, reason=reason, **fields)
            for split, subset in unit.parts
        ]

    def _of(self, model: Model, unit: PromptUnit) -> Iterator[InstructionScore]:
        """What the table says of a unit: its scores with what the gate says now, or why there is none."""
        rows = [] if unit.reason else self._rows.get(unit.unit_id(self.study, model), [])
        says = self.row(model, unit, score=math.nan)
        now = {name: getattr(says, name) for name in ("model", "source", "generator", "context", "label", "simulated")}
        for row in rows:
            yield row.model_copy(update={**now, "prompt_id": says.prompt_id})
        reason = unit.reason or self._failed.get(model.name, "")
        if not rows and reason:
            yield from self.unscored(model, unit, reason)

    def _begun(self, model: Model) -> bool:
        return model.name in self._failed or any(unit.unit_id(self.study, model) in self._rows for unit in self.units)

    def _kept(self) -> dict[str, list[InstructionScore]]:
        rows_by_unit: dict[str, list[InstructionScore]] = {}
        old = (row for row in stored(self.study, SCORES, InstructionScore, COMMAND) if row.unit_id)
        for unit_id, rows in itertools.groupby(old, key=lambda row: row.unit_id):
            rows_by_unit[unit_id] = list(rows)
        for _, line in self._journal.lines(UnitRows):
            unit_rows = UnitRows.model_validate(line)
            rows_by_unit[unit_rows.unit_id] = list(unit_rows.rows)
        return rows_by_unit

    def _items(self, unit_id: str, unit: PromptUnit) -> Path:
        return self.study.folder / "instructions" / "items" / f"{unit_id}-{unit.wanted.prompt_id}.parquet"


def _item_rows(model: Model, unit: PromptUnit, items: Items) -> Iterable[PromptItemScore]:
    for number, part in enumerate(items.parts):
        for k, score in enumerate(np.asarray(part.made, dtype=np.float64).tolist()):
            item = f"{number}/{k}" if len(items.parts) > 1 else str(k)
            yield PromptItemScore(
                model=model.name, task=unit.dataset.name, prompt_id=unit.wanted.prompt_id, item=item, score=score
            )
