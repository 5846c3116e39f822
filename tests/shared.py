"""What several files of tests need and takes long to make: made once in a run, by the worker that needs it first."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from generation.production import generate
from plumbline.environments import make_venv
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating, TransformedText
from plumbline.study import Study
from plumbline.study.transformations import EIGHT

VARIABLE = "PLUMBLINE_TESTS_FOLDER"

# The process that starts the workers makes the folder, and removes it at its end; they have its environment.
if VARIABLE not in os.environ:
    _FOLDER = tempfile.TemporaryDirectory(prefix="plumbline-tests-")
    os.environ[VARIABLE] = _FOLDER.name


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` has filled; not to be written to."""
    folder = Path(os.environ[VARIABLE]) / name
    complete = folder.with_name(f"{name}.complete")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder


def generate_once(study: Study) -> None:
    """`generate`; for a study of HTEB's transformations without records, once in a run for the same texts."""
    if {*study.transformations} - {*EIGHT} or study.folder.exists():
        generate(study)
        return
    parts = study.model_dump(mode="json", include={"datasets", "transformations", "languages", "prompts", "seeds"})
    paths = [str(study.resolve(getattr(part, "path", ""))) for part in (*study.datasets, study.generator)]

    def make(folder: Path) -> None:
        copy = study.model_copy(update={"name": "outputs"})
        copy._exports = folder
        generate(copy)

    name = identity("outputs", parts, study.generator.model_dump(mode="json"), paths)
    shutil.copytree(made_once(name, make) / "outputs", study.folder)


def environment_with_pip() -> Path:
    """A Python environment that holds pip alone, as a set-up makes it first: to be copied, which takes seconds less."""
    return made_once("pip", make_venv)


def note_outputs(study: Study, transformation: str, seed: int, rows: Sequence[TransformedText] | pd.DataFrame) -> None:
    """Write a unit's outputs as `generate` does."""
    name = str(study.transformation_file(transformation, seed).relative_to(study.folder))
    Manifest.of(study).write_table(name, rows, TransformedText)


def rating_of(pair: Pair, rater: str, question: str, value: float, **changes: Any) -> Rating:
    """A rating of a pair as a person submits it in Argilla, but for the changes."""
    row = {"pair_id": pair.pair_id, "transformation": pair.transformation, "language": pair.language}
    row |= {"rater_id": rater, "question": question, "value": value, "status": "submitted", "source": "argilla"}
    return Rating.model_validate(
        {**row, "submitted_at": datetime(2026, 1, 2, tzinfo=UTC), "simulated": False, **changes}
    )
