"""What a study's models scored: the records of earlier runs, those that are being made, and the tables of both.

A score is on disk as soon as it exists: mteb's file first, then a line in a journal, which becomes part of the table
every few seconds. What stands in the tables under an identity that still holds is kept, with what the gate says now;
what the study has no place for any more is set aside, for when it has one again. A model that could not be evaluated
has rows that say why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pandas as pd

from evaluation import mteb_files
from evaluation.measures import beside
from evaluation.measures.rows import COMMAND, Measure, Measured, stored
from evaluation.units import Model, Numbers, Place, Unit
from evaluation.work import Moved, Scored, Todo
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.journal import Journal
from plumbline.manifest import read_kept_frame, write_kept_table
from plumbline.records import Drift, Pair, Record, Score
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec
from plumbline.transformations import ORIGINAL

SCORES, DRIFT = "scores.parquet", "drift.parquet"
WRITE_SECONDS = 10.0

_Known = tuple[str, str, int]  # a score's identity, transformation and seed
R = TypeVar("R", bound=Record)


def read_scores(study: Study) -> pd.DataFrame:
    """The study's scores (`plumbline.records.Score`); what earlier versions did not write is empty."""
    return read_kept_frame(study, SCORES, Score, study.command(COMMAND))


def read_drift(study: Study) -> pd.DataFrame:
    """The study's drift (`plumbline.records.Drift`)."""
    return read_kept_frame(study, DRIFT, Drift, study.command(COMMAND))


class Results:
    """The records of a run: what holds from earlier ones, and what is still to be made (`todo`).

    `measures` are what is measured beside, without them the study's own. Raises DataError for files that cannot be
    read.
    """

    def __init__(
        self,
        study: Study,
        units: Sequence[Unit],
        pairs: Sequence[Pair],
        chosen: Sequence[ModelSpec],
        measures: Sequence[Measure[Any]] | None = None,
    ) -> None:
        self.study, self.units, self.pairs = study, units, pairs
        self.models = [Model.of(study, spec) for spec in study.evaluation.models]
        self._chosen = [model for model in self.models if model.spec in chosen]
        self._units = {unit.place: unit for unit in units}
        self._journal = Journal(study.scratch / "scores.journal")
        self._written = -math.inf
        self._scores: dict[tuple[str, Place], Score] = {}
        self._failed: dict[str, str] = {}  # models: why
        self._drift: dict[tuple[str, str], Drift] = {}
        self.kept = self._keep_scores()
        self._keep_drift()
        measured = beside.measures(study, pairs) if measures is None else measures
        self._beside = beside.Tables(study, units, measured, self.models, self._chosen)
        self.write()

    def todo(self) -> Iterator[Todo]:
        """What the chosen models have left to do; models that have nothing left are not among them."""
        for model in self._chosen:
            units = [unit for unit in self.units if (model.name, unit.place) not in self._scores]
            pairs = [pair for pair in self.pairs if (model.name, pair.pair_id) not in self._drift]
            unmeasured = self._beside.todo(model)
            if units or pairs or unmeasured:
                yield Todo(model, units, pairs, unmeasured)

    def save(self, todo: Todo, made: Moved | Scored | Measured) -> None:
        """Note what was made and put it on disk; the table of a large study is written every `WRITE_SECONDS`."""
        self._failed.pop(todo.model.name, None)
        if isinstance(made, Moved):
            self._add_drift(todo.model, todo.pairs, made.values)
            self.write()
            return
        if isinstance(made, Measured):
            self._beside.save(todo.model, made)
            return
        unit = self._units[made.place]
        row = self._row(todo.model, unit, made.numbers)
        mteb_files.write(self.study, row, made.result)
        self._scores[todo.model.name, unit.place] = row  # not before its file is there: an interrupt ends with `write`
        self._journal.append(row)
        if unit.transformation == ORIGINAL:
            self._compare_with(todo.model, unit)
        self._journal.sync()
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def _compare_with(self, model: Model, original: Unit) -> None:
        """Put an original's score beside those of its data set that came before it, as they may from a cluster."""
        for unit in self.units:
            old = self._scores.get((model.name, unit.place))
            same = unit.dataset.name == original.dataset.name and unit is not original and not unit.lost
            if same and old is not None and old.status != "left_out":
                row = self._row(model, unit, Numbers(old.score, math.nan, old.versions, old.model_revision))
                if row.original_score != old.original_score:
                    mteb_files.note(self.study, old, row)
                    self._scores[model.name, unit.place] = row
                    self._journal.append(row)

    def fail(self, model: Model, reason: str) -> None:
        """Note why a model could not be evaluated; what it had made before stays."""
        self._failed[model.name] = reason

    def write(self) -> None:
        """Write everything noted to the tables, in the study's order whatever order it was made in."""
        models = {model.name: number for number, model in enumerate(self.models)}
        places = {unit.place: number for number, unit in enumerate(self.units)}
        rows = {**self._scores, **self._failures()}
        scores = sorted(rows.items(), key=lambda item: (models[item[0][0]], places[item[0][1]]))
        write_kept_table(self.study, SCORES, [row for _, row in scores], Score)
        order = {pair.pair_id: number for number, pair in enumerate(self.pairs)}
        moved = sorted(self._drift.values(), key=lambda row: (models[row.model], order[row.pair_id]))
        write_kept_table(self.study, DRIFT, moved, Drift)
        self._beside.write()
        self._journal.remove()
        self._written = time.monotonic()

    def _failures(self) -> dict[tuple[str, Place], Score]:
        """Rows for what models lack that could not be evaluated."""
        rows = {}
        for model in self.models:
            for unit in self.units if model.name in self._failed else ():
                if (model.name, unit.place) not in self._scores:
                    row = unit.row(self.study, model, Numbers())
                    says = {"status": "failed", "reason": self._failed[model.name], "unit_id": "", "versions": ""}
                    rows[model.name, unit.place] = row if row.status == "left_out" else row.model_copy(update=says)
        return rows

    def _keep_scores(self) -> int:
        """Take over the scores that still hold; how many they are."""
        noted = [Score.model_validate(row) for _, row in self._journal.lines(Score)]
        rows = [*stored(self.study, SCORES, Score), *noted]
        # Seeds whose outputs are equal have one identity, and a file of mteb's each.
        before = {(row.unit_id, row.transformation, row.seed): row for row in rows if row.unit_id}
        self._refuse_lost({row.model for row in before.values()})
        self._failed = {row.model: row.reason for row in rows if row.status == "failed"}
        aside = mteb_files.Aside(self.study)
        kept: dict[_Known, Score] = {}
        for model in self.models:
            known = {unit.place: _known(unit, unit.unit_id(self.study, model)) for unit in self.units}
            wanted = [known[unit.place] for unit in self.units if unit.decision.status != "left_out"]
            before |= {key: row for key in wanted if key not in before and (row := aside.take(*key)) is not None}
            if model not in self._chosen and not before.keys() & set(known.values()):
                continue  # a model that never ran has no rows, not even of what would be left out
            for unit in self.units:
                old = before.get(known[unit.place])
                if unit.decision.status == "left_out":
                    self._add(model, unit, Numbers())
                elif old is not None:
                    numbers = Numbers(old.score, old.original_score, old.versions, old.model_revision)
                    kept[known[unit.place]] = self._add(model, unit, numbers)
        for key in before.keys() - kept.keys():
            mteb_files.set_aside(self.study, before[key])
        for key, row in kept.items():
            if row != before[key]:
                mteb_files.note(self.study, before[key], row)
        return len(kept)

    def _refuse_lost(self, scored: Collection[str]) -> None:
        """Raise StudyError for a model that has scores and is not in its folder: nobody can tell whether they hold."""
        for model in self.models:
            if model.name in scored:
                try:
                    model.spec.location(self.study.file.parent)
                except StudyError as error:
                    raise StudyError(f"{error}; until then its scores stay as they are") from None

    def _keep_drift(self) -> None:
        before = {row.unit_id: row.drift for row in stored(self.study, DRIFT, Drift)}
        for model in self.models:
            there = [(pair, before[key]) for pair in self.pairs if (key := _drift_id(model, pair)) in before]
            self._add_drift(model, [pair for pair, _ in there], [value for _, value in there])

    def _add(self, model: Model, unit: Unit, numbers: Numbers) -> Score:
        """Note a score; its row."""
        row = self._scores[model.name, unit.place] = self._row(model, unit, numbers)
        return row

    def _row(self, model: Model, unit: Unit, numbers: Numbers) -> Score:
        """A score's row. Units come in the study's order, a data set's original before what it became."""
        if not unit.drops and not math.isnan(numbers.score):
            whole = self._scores.get((model.name, (unit.name, ORIGINAL, 0)))
            original = numbers.score if unit.transformation == ORIGINAL else whole.score if whole else math.nan
            numbers = replace(numbers, original=original)
        return unit.row(self.study, model, numbers)

    def _add_drift(self, model: Model, pairs: Sequence[Pair], values: Sequence[float]) -> None:
        for pair, value in zip(pairs, values, strict=True):
            self._drift[model.name, pair.pair_id] = Drift(
                pair_id=pair.pair_id,
                transformation=pair.transformation,
                model=model.name,
                drift=value,
                unit_id=_drift_id(model, pair),
            )


def _known(unit: Unit, unit_id: str) -> _Known:
    return unit_id, unit.transformation, unit.seed


def _drift_id(model: Model, pair: Pair) -> str:
    return identity("drift-v1", model.model_id, pair.original, pair.transformed)
