"""The scores of a study's models: those made so far, those left to make, and the tables and mteb's files of both.

A score is on disk as soon as it exists (`evaluation.stored`). Rows follow from it, the study and the gate's present
decisions; a model that could not be evaluated has rows that say why. Nothing reads the tables or mteb's files back.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.measures import MeasureTable, RowMeasure, UnitMeasures
from evaluation.models.encoder import ModelHost
from evaluation.records import DRIFT, MADE, SCORES, EvaluationRecords, MadeScore, ModelFailure, Numbers
from evaluation.stored import StoredResults
from evaluation.units import Model, ScoreUnit
from evaluation.work import PairDrift, Todo, UnitScore
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.records import DriftRecord, Pair, Score
from plumbline.store import atomic
from plumbline.study.evaluation import ModelSpec
from plumbline.study.subject import ORIGINAL

_META = "model_meta.json"  # mteb's file about a model
WRITE_SECONDS = 10.0


def path_of(folder: Path, row: Score) -> Path:
    """Return the path of mteb's result of a score in a study's folder."""
    copy = ORIGINAL if row.transformation == ORIGINAL else f"{row.transformation}-{row.seed}"
    # As mteb turns names into folders, except that it keeps a slash in a revision (refs/pr/1) and then finds no file.
    model = row.model.replace("/", "__").replace(" ", "_")
    revision = row.model_revision.replace("/", "__")
    return folder / "mteb" / copy / "results" / model / revision / f"{row.dataset}.json"


class Results:
    """The results of a run: those made so far, and those left to make (`todo`).

    `measures` are the measures beside the scores. Raises DataError for files that cannot be read.
    """

    def __init__(
        self,
        records: EvaluationRecords,
        units: Sequence[ScoreUnit],
        pairs: Sequence[Pair],
        chosen: Sequence[ModelSpec],
        measures: Sequence[RowMeasure[Any]],
    ) -> None:
        study = records.study
        self.units, self.pairs = units, pairs
        self.host = ModelHost.of(study)
        self.models = Model.all_of(self.host)
        self._records, self._evaluation, self._folder = records, study.evaluation, study.folder
        self._chosen = [model for model in self.models if model.spec in chosen]
        self._stored = StoredResults(study.folder / MADE / "scores", MadeScore)
        self._failures = StoredResults(study.folder / MADE / "failures", ModelFailure)
        self._written = -math.inf
        self._refuse_lost()
        self._failed = {model.name: row.reason for model in self.models if (row := self._failures.get(model.model_id))}
        self._ids = {
            (model.name, unit.place): unit.unit_id(self._evaluation.protocol, model)
            for model in self.models
            for unit in units
        }
        self._made: dict[str, MadeScore] = {}  # by identity, without mteb's results
        self._begun = [model for model in self.models if self._has_run(model)]
        self.kept = sum(map(self._read, self._begun))
        self._drift: dict[tuple[str, str], DriftRecord] = {}
        self._keep_drift()
        self._tables = {m.file.name: MeasureTable(records, units, self._begun, m) for m in measures}
        for texts in {unit.texts for unit in units}:
            texts.remembered.keep()
        self.write()

    def todo(self) -> Iterator[Todo]:
        """Yield the work left for each chosen model that has some; units with one identity are scored once."""
        for model in self._chosen:
            units: dict[str, ScoreUnit] = {}
            for unit in self.units:
                unit_id = self._ids[model.name, unit.place]
                if unit.decision.status != "left_out" and unit_id not in self._made:
                    units.setdefault(unit_id, unit)
            pairs = [pair for pair in self.pairs if (model.name, pair.pair_id) not in self._drift]
            unmeasured = [todo for table in self._tables.values() if (todo := table.todo(model)).units]
            if units or pairs or unmeasured:
                yield Todo(model, list(units.values()), pairs, unmeasured)

    def save(self, todo: Todo, result: PairDrift | UnitScore | UnitMeasures) -> None:
        """Write a result to disk; the tables of a large study are written every `WRITE_SECONDS`."""
        if self._failed.pop(todo.model.name, None) is not None:
            self._failures.remove(todo.model.model_id)
        if isinstance(result, PairDrift):
            self._add_drift(todo.model, todo.pairs, result.values)
            self.write()
        elif isinstance(result, UnitMeasures):
            self._tables[result.file].save(todo.model, result.key, result.rows)
        else:
            unit_id = self._ids[todo.model.name, result.place]
            score = MadeScore(**result.numbers.model_dump(), model=todo.model.name, result=_text(result.result))
            self._stored.add(unit_id, score)
            self._made[unit_id] = score.model_copy(update={"result": ""})
            if time.monotonic() - self._written > WRITE_SECONDS:
                self.write()

    def fail(self, model: Model, reason: str) -> None:
        """Record why a model could not be evaluated; its earlier scores stay."""
        self._failed[model.name] = reason
        self._failures.add(model.model_id, ModelFailure(reason=reason))

    def write(self) -> None:
        """Write all rows to the tables, in the study's order."""
        self._records.noted.write_table(SCORES.name, list(self._rows()), SCORES.record)
        models = {model.name: number for number, model in enumerate(self.models)}
        order = {pair.pair_id: number for number, pair in enumerate(self.pairs)}
        moved = sorted(self._drift.values(), key=lambda row: (models[row.model], order[row.pair_id]))
        self._records.noted.write_table(DRIFT.name, moved, DRIFT.record)
        for table in self._tables.values():
            table.write()
        self._written = time.monotonic()

    def finish(self) -> None:
        """Write the tables, and mteb's files of the scores in them; delete those of other scores."""
        self.write()
        unfinished = {todo.model.name for todo in self.todo()}
        for model in self._chosen:
            if model.name in self._failed and model.name not in unfinished:  # what it failed at is no longer wanted
                del self._failed[model.name]
                self._failures.remove(model.model_id)
        wanted = set[Path]()
        for row in self._rows():
            if row.unit_id and (score := self._stored.get(row.unit_id)):
                path = path_of(self._folder, row)
                meta = path.with_name(_META)
                wanted |= {path, meta}
                if not meta.exists():
                    _put(meta, model_meta(row.model, row.model_revision))
                numbers = {"score": row.score, "original_score": row.original_score}
                nulls = {name: None for name, value in numbers.items() if math.isnan(value)}
                _put(path, {**json.loads(score.result), "plumbline": row.model_dump() | nulls})
        for path in (self._folder / "mteb").glob("*/results/*/*/*.json"):
            if path not in wanted:
                path.unlink()

    def _rows(self) -> Iterator[Score]:
        for model in self._begun:  # one that never ran has no rows
            for unit in self.units:
                score = self._made.get(self._ids[model.name, unit.place])
                reason = self._failed.get(model.name, "")
                if unit.decision.status == "left_out":
                    yield unit.row(self._evaluation, model, Numbers())
                elif score is not None:
                    yield unit.row(self._evaluation, model, self._compared(model, unit, score))
                elif reason:
                    failure = {"status": "failed", "reason": reason, "unit_id": "", "versions": ""}
                    yield unit.row(self._evaluation, model, Numbers()).model_copy(update=failure)

    def _compared(self, model: Model, unit: ScoreUnit, numbers: Numbers) -> Numbers:
        """Return a unit's numbers with the original's score, which is the whole data set's if no item was dropped."""
        if unit.drops or math.isnan(numbers.score):
            return numbers
        original = self._made.get(self._ids[model.name, (unit.name, ORIGINAL, 0)])
        return numbers.model_copy(update={"original": original.score if original else math.nan})

    def _has_run(self, model: Model) -> bool:
        ids = (self._ids[model.name, unit.place] for unit in self.units)
        return model in self._chosen or model.name in self._failed or any(unit_id in self._stored for unit_id in ids)

    def _read(self, model: Model) -> int:
        """Read a model's scores of the units to score; return for how many units there is one."""
        n = 0
        for unit in self.units:
            unit_id = self._ids[model.name, unit.place]
            wanted = unit.decision.status != "left_out"
            if wanted and unit_id not in self._made and (score := self._stored.get(unit_id)):
                self._made[unit_id] = score.model_copy(update={"result": ""})
            n += wanted and unit_id in self._made
        return n

    def _refuse_lost(self) -> None:
        """Raise StudyError for a scored model that is not in its folder: its scores cannot be checked."""
        for model in self.models:
            try:
                model.spec.location(self._records.study.file.parent)
            except StudyError as error:
                if any(score.model == model.name for score in self._stored.every()):
                    raise StudyError(f"{error}; its scores are kept until then") from None

    def _keep_drift(self) -> None:
        """Take over the drift of earlier runs, whose one place is its table; it is cheap to compute again."""
        try:
            rows = self._records.table(DRIFT).to_pylist() if self._records.has(DRIFT) else []
        except DataError as error:
            raise DataError(f"{error} (you may delete {DRIFT.name}: the next run computes it again)") from None
        recorded = {row["unit_id"]: row["drift"] for row in rows}
        for model in self.models:
            pairs = [(pair, recorded[key]) for pair in self.pairs if (key := _drift_id(model, pair)) in recorded]
            self._add_drift(model, [pair for pair, _ in pairs], [value for _, value in pairs])

    def _add_drift(self, model: Model, pairs: Sequence[Pair], values: Sequence[float]) -> None:
        for pair, value in zip(pairs, values, strict=True):
            self._drift[model.name, pair.pair_id] = DriftRecord(
                pair_id=pair.pair_id, model=model.name, drift=value, unit_id=_drift_id(model, pair)
            )


def _drift_id(model: Model, pair: Pair) -> str:
    return identity("drift-v1", model.model_id, pair.original, pair.transformed)


def _text(result: Any) -> str:
    """Return mteb's result (`mteb.results.TaskResult`) as mteb writes it to a file."""
    with tempfile.TemporaryDirectory(prefix="plumbline-") as temporary:
        file = Path(temporary) / "result.json"
        result.to_disk(file)
        return file.read_text(encoding="utf-8")


def model_meta(name: str, revision: str) -> dict[str, Any]:
    """Return mteb's file about a model (`model_meta.json`)."""
    from mteb.models.model_meta import ModelMeta  # noqa: PLC0415 (takes seconds)

    meta: dict[str, Any] = ModelMeta.create_empty({"name": name, "revision": revision}).to_dict()
    return meta


def _put(path: Path, data: dict[str, Any]) -> None:
    """Write JSON as mteb does, including NaN, unless the file has it already."""
    content = json.dumps(data, indent=2, default=str).encode()
    if not path.exists() or path.read_bytes() != content:
        with atomic(path) as file:
            file.write(content)
