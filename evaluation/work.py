"""What is left to do for a model, done: the same code on this machine and on a node of a cluster."""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.measures import beside
from evaluation.measures.rows import Measured
from evaluation.models import encoder
from evaluation.models.encoder import Encoder
from evaluation.models.in_process import first_line
from evaluation.tasks import scoring
from evaluation.units import Model, Numbers, Place, Unit
from plumbline.errors import PlumblineError
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.datasets import LocalDataset
from plumbline.study.evaluation import ModelSpec

Loader = Callable[[Study, ModelSpec], Encoder]

# What makes a score: the rest (numpy, scikit-learn) is in the study's manifest.
_PACKAGES = ("plumbline", "mteb", "sentence-transformers", "torch")


@dataclass(frozen=True)
class Todo:
    """What a model has left to do: units to score, pairs whose drift is not known, and what is measured beside."""

    model: Model
    units: Sequence[Unit]
    pairs: Sequence[Pair]
    beside: Sequence[beside.Unmeasured] = ()


@dataclass(frozen=True)
class Moved:
    """The drift of all pairs that were left, in their order."""

    values: list[float]


@dataclass(frozen=True)
class Scored:
    """A unit's score, with all that mteb measured (`mteb.results.TaskResult`).

    The original's in `numbers` is NaN where no item was dropped: it is the original data set's own score then.
    """

    place: Place
    numbers: Numbers
    result: Any


@dataclass(frozen=True)
class Ended:
    """A model's end: how many texts it was asked for and encoded, and why it failed if it did."""

    asked: int = 0
    encoded: int = 0
    failure: str = ""


Made = Moved | Scored | Measured | Ended


def work(study: Study, todo: Todo, load: Loader) -> Iterator[Made]:
    """Load one model and do everything that is left for it, one thing after the other; the last is its end."""
    model: Encoder | None = None
    failure = ""
    try:
        model = load(study, todo.model.spec)
        if todo.pairs:
            texts = [(pair.original, pair.transformed) for pair in todo.pairs]
            yield Moved(encoder.drift_of_texts(model, *zip(*texts, strict=True)).tolist())
        made_by = versions()
        originals = _Originals(study, model)
        for unit in todo.units:
            result = scoring.evaluate_task(unit.data(), model, study.evaluation.protocol, study.evaluation.batch_size)
            score = scoring.main_score(unit.dataset, result)
            yield Scored(unit.place, Numbers(score, originals.of(unit), made_by, model.revision), result)
        yield from beside.measure(todo.beside, model)
    except PlumblineError as error:
        failure = str(error)
    except (MemoryError, RuntimeError) as error:  # torch's is a RuntimeError
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        failure = f"memory does not suffice ({first_line(error)}); free some, or evaluate on a larger machine"
    finally:
        if model is not None:
            model.close()
    yield Ended(model.asked, model.encoded, failure) if model is not None else Ended(failure=failure)


class _Originals:
    """Scores of original texts on the items that dropping leaves, each selection of items scored once."""

    def __init__(self, study: Study, model: Encoder) -> None:
        self._evaluation, self._model = study.evaluation, model
        self._known: dict[tuple[str, frozenset[str]], float] = {}

    def of(self, unit: Unit) -> float:
        """The score; NaN where nothing was dropped. Raises what the encoder raises."""
        if not unit.lost:
            return math.nan
        key = unit.name, unit.lost
        if key not in self._known:
            evaluation = self._evaluation
            self._known[key] = scoring.evaluate(
                unit.original(), self._model, evaluation.protocol, evaluation.batch_size
            )
        return self._known[key]


def versions() -> str:
    """The packages that make scores, and their versions here: `plumbline 0.1.0, mteb 2.26.24` and so on."""
    found = []
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{package} {importlib.metadata.version(package)}")
    return ", ".join(found)


@contextlib.contextmanager
def quiet(study: Study, specs: Sequence[ModelSpec]) -> Iterator[None]:
    """Settings that the libraries read once, at import: no talk, no telemetry, and no hub where all is local.

    mteb makes its cache folder at import, unused here; without this it would do so in the user's home. What
    the user has set stays.
    """
    settings = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    settings["DISABLE_TQDM"] = "1"  # bm25s
    local = all(isinstance(dataset, LocalDataset) for dataset in study.datasets)
    if local and not any(spec.from_hub for spec in specs):
        settings["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory(prefix="plumbline-mteb-") as unused:
        added = {name: value for name, value in {**settings, "MTEB_CACHE": unused}.items() if name not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:  # for what this process does next: the folder is gone then
            for name in added:
                os.environ.pop(name, None)
