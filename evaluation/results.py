"""The scores of a study's models: records of earlier runs, new scores, and the tables of both.

A score is written as soon as it exists: mteb's file first, then a line in a journal, which is merged into the table
every few seconds. Rows whose identity is still valid are kept, with the gate's present decision; rows that the study no
longer wants are set aside until it wants them again. A model that could not be evaluated has rows that say why.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaluation import measures as beside
from evaluation.measures import RowMeasure, UnitMeasures
from evaluation.models.encoder import ModelHost
from evaluation.records import DRIFT, SCORES, EvaluationRecords, earlier, write_rows
from evaluation.units import Model, Numbers, Place, ScoreUnit
from evaluation.work import PairDrift, Todo, UnitScore
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.records import DriftRecord, Pair, Score
from plumbline.store import atomic
from plumbline.study.base import first_complaint
from plumbline.study.evaluation import ModelSpec
from plumbline.transformations import ORIGINAL

ASIDE = "scores_aside"
_OURS = "plumbline"
_SEAL = "plumbline_identity"  # of a row set aside, as the manifest covers only tables
_META = "model_meta.json"  # mteb's file about a model


def path_of(folder: Path, row: Score) -> Path:
    """Return the path of mteb's result of a score in a study's folder."""
    copy = ORIGINAL if row.transformation == ORIGINAL else f"{row.transformation}-{row.seed}"
    # As mteb turns names into folders, except that it keeps a slash in a revision (refs/pr/1) and then finds no file.
    model = row.model.replace("/", "__").replace(" ", "_")
    revision = row.model_revision.replace("/", "__")
    return folder / "mteb" / copy / "results" / model / revision / f"{row.dataset}.json"


def write(folder: Path, row: Score, result: Any) -> None:
    """Write mteb's result of a score (`mteb.results.TaskResult`), and mteb's file about the model beside it."""
    with tempfile.TemporaryDirectory(prefix="plumbline-") as temporary:
        result_file = Path(temporary) / "result.json"
        result.to_disk(result_file)
        _write(folder, row, json.loads(result_file.read_text(encoding="utf-8")))


def _write(folder: Path, row: Score, data: dict[str, Any]) -> None:
    path = path_of(folder, row)
    meta = path.with_name(_META)
    if not meta.exists():
        _put(meta, _model_meta(row))
    _put(path, {**data, _OURS: _plain(row)})


def note(folder: Path, old: Score, row: Score) -> None:
    """Update the file of a score to its row, and move it if the model's name changed.

    A score whose file was deleted gets none. Raises DataError for a damaged file.
    """
    path = path_of(folder, old)
    if not path.exists():
        return
    data = _read(path)
    record = data.get(_OURS)
    if path != path_of(folder, row):
        remove(folder, old)
        _write(folder, row, data)
    elif record != _plain(row):
        _put(path, {**data, _OURS: _plain(row)})


def remove(folder: Path, row: Score) -> None:
    """Delete the file of an invalid score, and the model's file with the last one of its folder."""
    path = path_of(folder, row)
    path.unlink(missing_ok=True)
    if [file.name for file in path.parent.glob("*.json")] == [_META]:
        (path.parent / _META).unlink()


def set_aside(folder: Path, row: Score) -> None:
    """Move a score that the study does not want now, and mteb's result of it, to where `SetAsideScores` finds them."""
    path, target = path_of(folder, row), _place_aside(folder, row.unit_id, row.transformation, row.seed)
    result = _read(path) if path.exists() else {}
    if result or not target.exists():
        _put(target, {**result, _OURS: _plain(row), _SEAL: _seal(_plain(row))})
    remove(folder, row)


class SetAsideScores:
    """Scores that the study did not want (another model, data set, output or verdict), by their identities.

    An identity always means the same, so they are valid when it is wanted again.
    """

    def __init__(self, folder: Path) -> None:
        aside = folder / ASIDE
        self._folder = folder
        self._names = {path.name for path in aside.iterdir()} if aside.is_dir() else set()

    def take(self, unit_id: str, transformation: str, seed: int) -> Score | None:
        """Return a score set aside, or None, and restore mteb's result. Raises DataError for a damaged file."""
        path = _place_aside(self._folder, unit_id, transformation, seed)
        if path.name not in self._names:
            return None
        data = _read(path)
        if data.pop(_SEAL, None) != _seal(data.get(_OURS)):
            raise DataError(
                f"{path} differs from what was written (edited by hand); delete it to compute the score again"
            )
        try:
            row = Score.model_validate(data.pop(_OURS))
        except (KeyError, ValidationError) as error:
            what = first_complaint(error) if isinstance(error, ValidationError) else "it has no score"
            raise DataError(f"{path} is damaged ({what}); delete it (the score is computed again)") from None
        if data:
            _write(self._folder, row, data)
        return row


def _place_aside(folder: Path, unit_id: str, transformation: str, seed: int) -> Path:
    return folder / ASIDE / f"{unit_id}-{transformation}-{seed}.json"


def _read(path: Path) -> dict[str, Any]:
    """Return the content of an mteb file. Raises DataError for a damaged one."""
    try:
        data = read_json(path)
    except DataError as error:
        raise DataError(f"{path} is damaged ({error}); delete it (the score stays in scores.parquet)") from None
    if not isinstance(data, dict):
        raise DataError(f"{path} is damaged (not an mteb result); delete it (the score stays in scores.parquet)")
    return data


def _seal(row: object) -> str:
    return identity("aside-v1", row)


def _model_meta(row: Score) -> dict[str, Any]:
    from mteb.models.model_meta import ModelMeta  # noqa: PLC0415 (takes seconds)

    meta: dict[str, Any] = ModelMeta.create_empty({"name": row.model, "revision": row.model_revision}).to_dict()
    return meta


def _plain(row: Score) -> dict[str, Any]:
    numbers = {"score": row.score, "original_score": row.original_score}
    return row.model_dump() | {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _put(path: Path, data: dict[str, Any]) -> None:
    """Write JSON as mteb does, including NaN."""
    with atomic(path) as file:
        file.write(json.dumps(data, indent=2, default=str).encode())


WRITE_SECONDS = 10.0

_Known = tuple[str, str, int]  # a score's identity, transformation and seed


class Results:
    """The records of a run: the valid rows of earlier runs, and those left to make (`todo`).

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
        self._units = {unit.place: unit for unit in units}
        self._journal = records.new_scores
        self._written = -math.inf
        self._scores: dict[tuple[str, Place], Score] = {}
        self._failed: dict[str, str] = {}  # models: why
        self._drift: dict[tuple[str, str], DriftRecord] = {}
        self.kept = self._keep_scores()
        self._keep_drift()
        self._beside = beside.Tables(records, units, measures, self.models, self._chosen)
        self.write()

    def todo(self) -> Iterator[Todo]:
        """Yield the work left for each chosen model that has some."""
        for model in self._chosen:
            units = [unit for unit in self.units if (model.name, unit.place) not in self._scores]
            pairs = [pair for pair in self.pairs if (model.name, pair.pair_id) not in self._drift]
            unmeasured = self._beside.todo(model)
            if units or pairs or unmeasured:
                yield Todo(model, units, pairs, unmeasured)

    def save(self, todo: Todo, result: PairDrift | UnitScore | UnitMeasures) -> None:
        """Write a result to disk; the table of a large study is written every `WRITE_SECONDS`."""
        self._failed.pop(todo.model.name, None)
        if isinstance(result, PairDrift):
            self._add_drift(todo.model, todo.pairs, result.values)
            self.write()
            return
        if isinstance(result, UnitMeasures):
            self._beside.save(todo.model, result)
            return
        unit = self._units[result.place]
        row = self._row(todo.model, unit, result.numbers)
        write(self._folder, row, result.result)
        self._scores[todo.model.name, unit.place] = row  # after its file is written: an interrupt ends with `write`
        self._journal.append(row)
        if unit.transformation == ORIGINAL:
            self._compare_with(todo.model, unit)
        self._journal.sync()
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def _compare_with(self, model: Model, original: ScoreUnit) -> None:
        """Add an original's score to earlier rows of its data set: on a cluster they may come first."""
        for unit in self.units:
            old = self._scores.get((model.name, unit.place))
            same = unit.dataset.name == original.dataset.name and unit is not original and not unit.lost
            if same and old is not None and old.status != "left_out":
                row = self._row(model, unit, Numbers.of(old, math.nan))
                if row.original_score != old.original_score:
                    note(self._folder, old, row)
                    self._scores[model.name, unit.place] = row
                    self._journal.append(row)

    def fail(self, model: Model, reason: str) -> None:
        """Record why a model could not be evaluated; its earlier scores stay."""
        self._failed[model.name] = reason

    def write(self) -> None:
        """Write all rows to the tables, in the study's order."""
        models = {model.name: number for number, model in enumerate(self.models)}
        places = {unit.place: number for number, unit in enumerate(self.units)}
        rows = {**self._scores, **self._failures()}
        scores = sorted(rows.items(), key=lambda item: (models[item[0][0]], places[item[0][1]]))
        write_rows(self._records, SCORES, [row for _, row in scores])
        order = {pair.pair_id: number for number, pair in enumerate(self.pairs)}
        moved = sorted(self._drift.values(), key=lambda row: (models[row.model], order[row.pair_id]))
        write_rows(self._records, DRIFT, moved)
        self._beside.write()
        self._journal.remove()
        self._written = time.monotonic()

    def _failures(self) -> dict[tuple[str, Place], Score]:
        """Return rows for the missing scores of models that could not be evaluated."""
        rows = {}
        for model in self.models:
            for unit in self.units if model.name in self._failed else ():
                if (model.name, unit.place) not in self._scores:
                    row = unit.row(self._evaluation, model, Numbers())
                    says = {"status": "failed", "reason": self._failed[model.name], "unit_id": "", "versions": ""}
                    rows[model.name, unit.place] = row if row.status == "left_out" else row.model_copy(update=says)
        return rows

    def _keep_scores(self) -> int:
        """Take over the scores that are still valid; return their number."""
        noted = [Score.model_validate(row) for _, row in self._journal.lines(Score)]
        rows = [*earlier(self._records, SCORES), *noted]
        # Seeds with equal outputs share an identity, but each has its own mteb file.
        before = {(row.unit_id, row.transformation, row.seed): row for row in rows if row.unit_id}
        self._refuse_lost({row.model for row in before.values()})
        self._failed = {row.model: row.reason for row in rows if row.status == "failed"}
        aside = SetAsideScores(self._folder)
        scores: dict[_Known, Score] = {}
        for model in self.models:
            keys = {unit.place: _known(unit, unit.unit_id(self._evaluation.protocol, model)) for unit in self.units}
            wanted = [keys[unit.place] for unit in self.units if unit.decision.status != "left_out"]
            before |= {key: row for key in wanted if key not in before and (row := aside.take(*key)) is not None}
            if model not in self._chosen and not before.keys() & set(keys.values()):
                continue  # a model that never ran has no rows, not even for units left out
            for unit in self.units:
                old = before.get(keys[unit.place])
                if unit.decision.status == "left_out":
                    self._add(model, unit, Numbers())
                elif old is not None:
                    scores[keys[unit.place]] = self._add(model, unit, Numbers.of(old, old.original_score))
        for key in before.keys() - scores.keys():
            set_aside(self._folder, before[key])
        for key, row in scores.items():
            if row != before[key]:
                note(self._folder, before[key], row)
        return len(scores)

    def _refuse_lost(self, scored: Collection[str]) -> None:
        """Raise StudyError for a scored model that is not in its folder: its scores cannot be checked."""
        for model in self.models:
            if model.name in scored:
                try:
                    model.spec.location(self._records.study.file.parent)
                except StudyError as error:
                    raise StudyError(f"{error}; its scores are kept until then") from None

    def _keep_drift(self) -> None:
        before = {row.unit_id: row.drift for row in earlier(self._records, DRIFT)}
        for model in self.models:
            pairs = [(pair, before[key]) for pair in self.pairs if (key := _drift_id(model, pair)) in before]
            self._add_drift(model, [pair for pair, _ in pairs], [value for _, value in pairs])

    def _add(self, model: Model, unit: ScoreUnit, numbers: Numbers) -> Score:
        """Add a score and return its row."""
        row = self._scores[model.name, unit.place] = self._row(model, unit, numbers)
        return row

    def _row(self, model: Model, unit: ScoreUnit, numbers: Numbers) -> Score:
        """Return a score's row. A data set's original comes before its transformations."""
        if not unit.drops and not math.isnan(numbers.score):
            whole = self._scores.get((model.name, (unit.name, ORIGINAL, 0)))
            original = numbers.score if unit.transformation == ORIGINAL else whole.score if whole else math.nan
            numbers = replace(numbers, original=original)
        return unit.row(self._evaluation, model, numbers)

    def _add_drift(self, model: Model, pairs: Sequence[Pair], values: Sequence[float]) -> None:
        for pair, value in zip(pairs, values, strict=True):
            self._drift[model.name, pair.pair_id] = DriftRecord(
                pair_id=pair.pair_id,
                transformation=pair.transformation,
                model=model.name,
                drift=value,
                unit_id=_drift_id(model, pair),
            )


def _known(unit: ScoreUnit, unit_id: str) -> _Known:
    return unit_id, unit.transformation, unit.seed


def _drift_id(model: Model, pair: Pair) -> str:
    return identity("drift-v1", model.model_id, pair.original, pair.transformed)
