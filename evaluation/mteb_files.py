"""mteb's own result files beside the study's frame, for whoever works with mteb.

`mteb/<original, or transformation-seed>/results/<model>/<revision>/<data set>.json`: the original and each transformed
copy of a data set have a results folder each, because mteb knows them by one name. mteb reads one of them with
`mteb.ResultCache("exports/<study>/mteb/original").load_results()`. A file is mteb's, with one key more: `plumbline`
holds the row of `scores.parquet` that it belongs to.
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.records import Score
from plumbline.store import atomic
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.transformations import ORIGINAL

ASIDE = "scores_aside"
_OURS = "plumbline"
_SEAL = "plumbline_identity"  # of a row that was set aside: tables alone are noted in the manifest
_META = "model_meta.json"  # mteb's file about a model


def path_of(study: Study, row: Score) -> Path:
    """Where mteb's result of a score stands."""
    copy = ORIGINAL if row.transformation == ORIGINAL else f"{row.transformation}-{row.seed}"
    # As mteb makes folders of names; it leaves a slash in a revision (refs/pr/1), and then does not find the file.
    model = row.model.replace("/", "__").replace(" ", "_")
    revision = row.model_revision.replace("/", "__")
    return study.folder / "mteb" / copy / "results" / model / revision / f"{row.dataset}.json"


def write(study: Study, row: Score, result: Any) -> None:
    """Write mteb's result of a score (`mteb.results.TaskResult`), and mteb's file about the model beside it."""
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        made = Path(folder) / "result.json"
        result.to_disk(made)
        _write(study, row, json.loads(made.read_text(encoding="utf-8")))


def _write(study: Study, row: Score, data: dict[str, Any]) -> None:
    path = path_of(study, row)
    meta = path.with_name(_META)
    if not meta.exists():
        _put(meta, _model_meta(row))
    _put(path, {**data, _OURS: _plain(row)})


def note(study: Study, old: Score, row: Score) -> None:
    """Bring the file of a score up to what its row says now, and to where it then stands: a model's name may change.

    Scores of earlier versions have none, and get none. Raises DataError for a file that is damaged.
    """
    path = path_of(study, old)
    if not path.exists():
        return
    data = _read(path)
    known = data.get(_OURS)
    if path != path_of(study, row):
        remove(study, old)
        _write(study, row, data)
    elif known != _plain(row):
        _put(path, {**data, _OURS: _plain(row)})


def remove(study: Study, row: Score) -> None:
    """Remove the file of a score that holds no more, and the model's file with the last one of its folder."""
    path = path_of(study, row)
    path.unlink(missing_ok=True)
    if [other.name for other in path.parent.glob("*.json")] == [_META]:
        (path.parent / _META).unlink()


def set_aside(study: Study, row: Score) -> None:
    """Put a score that the study has no place for now, and mteb's result of it, where `Aside` finds them again."""
    path, place = path_of(study, row), _place_aside(study, row.unit_id, row.transformation, row.seed)
    result = _read(path) if path.exists() else {}
    if result or not place.exists():
        _put(place, {**result, _OURS: _plain(row), _SEAL: _seal(_plain(row))})
    remove(study, row)


class Aside:
    """Scores that the study had no place for (another model, data set, output or verdict), by their identities.

    What an identity stands for never changes, so they hold as soon as it is asked for again.
    """

    def __init__(self, study: Study) -> None:
        folder = study.folder / ASIDE
        self._study = study
        self._there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def take(self, unit_id: str, transformation: str, seed: int) -> Score | None:
        """The score, if it was set aside; mteb's result of it is put back. Raises DataError for a damaged file."""
        place = _place_aside(self._study, unit_id, transformation, seed)
        if place.name not in self._there:
            return None
        data = _read(place)
        if data.pop(_SEAL, None) not in (None, _seal(data.get(_OURS))):  # earlier versions left none
            raise DataError(f"{place} is not what was written (edited by hand); delete it (its score is made again)")
        try:
            row = Score.model_validate(data.pop(_OURS))
        except (KeyError, ValidationError) as error:
            what = first_complaint(error) if isinstance(error, ValidationError) else "it holds no score"
            raise DataError(f"{place} is damaged ({what}); delete it (its score is made again)") from None
        if data:
            _write(self._study, row, data)
        return row


def _place_aside(study: Study, unit_id: str, transformation: str, seed: int) -> Path:
    return study.folder / ASIDE / f"{unit_id}-{transformation}-{seed}.json"


def _read(path: Path) -> dict[str, Any]:
    """A file of mteb's. Raises DataError for one that is damaged."""
    try:
        data = read_json(path)
    except DataError as error:
        raise DataError(f"{path} is damaged ({error}); delete it (its score stays in scores.parquet)") from None
    if not isinstance(data, dict):
        raise DataError(f"{path} is damaged (no result of mteb's); delete it (its score stays in scores.parquet)")
    return data


def _seal(row: object) -> str:
    return identity("aside-v1", row)


def _model_meta(row: Score) -> dict[str, Any]:
    from mteb.models.model_meta import ModelMeta  # noqa: PLC0415 (takes seconds)

    made: dict[str, Any] = ModelMeta.create_empty({"name": row.model, "revision": row.model_revision}).to_dict()
    return made


def _plain(row: Score) -> dict[str, Any]:
    numbers = {"score": row.score, "original_score": row.original_score}
    return row.model_dump() | {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _put(path: Path, data: dict[str, Any]) -> None:
    """Write JSON as mteb does, NaN and all."""
    with atomic(path) as file:
        file.write(json.dumps(data, indent=2, default=str).encode())
