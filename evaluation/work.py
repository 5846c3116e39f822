"""What is left to do for a model, done: the same code on this machine and on a node of a cluster."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation import beside, tasks
from evaluation.measures import Measured
from evaluation.models import encoder
from evaluation.models.encoder import Encoder
from evaluation.units import Model, Place, Unit
from generation.datasets.specs import LocalDataset
from generation.evaluation_specs import ModelSpec
from generation.exceptions import PlumblineError
from generation.records import Pair
from generation.study import Study

Loader = Callable[[Study, ModelSpec], Encoder]

# What makes a score: the rest (numpy, scikit-learn) is in the study's manifest.
_PACKAGES = ("plumbline", "mteb", "sentence-transformers", "torch")


@dataclass(frozen=True)
class Todo:
    """What a model has left to do: units to score, pairs whose drift is not known, and what is measured beside."""

    model: Model
    units: Sequence[Unit]
    pairs: Sequence[Pair]
    beside: Sequence[beside.Job] = ()


@dataclass(frozen=True)
class Moved:
    """The drift of all pairs that were left, in their order."""

    values: list[float]


@dataclass(frozen=True)
class Scored:
    """A unit's score, with all that mteb measured (`mteb.results.TaskResult`), and the packages that made it.

    `revision` is the loaded model's own, if it has one.
    """

    place: Place
    score: float
    result: Any
    versions: str
    revision: str


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
            yield Moved(encoder.drift(model, *zip(*texts, strict=True)).tolist())
        made_by = versions()
        for unit in todo.units:
            result = tasks.evaluate_task(unit.data(), model, study.evaluation.protocol, study.evaluation.batch_size)
            yield Scored(unit.place, tasks.main_score(unit.dataset, result), result, made_by, model.revision)
        yield from beside.measure(study, todo.beside, model)
    except PlumblineError as error:
        failure = str(error)
    finally:
        if model is not None:
            model.close()
    yield Ended(model.asked, model.encoded, failure) if model is not None else Ended(failure=failure)


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
    local = all(isinstance(dataset, LocalDataset) for dataset in study.datasets)
    if local and all(spec.path or spec.package or spec.kind == "openai" for spec in specs):
        settings["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory(prefix="plumbline-mteb-") as unused:
        for name, value in {**settings, "MTEB_CACHE": unused}.items():
            os.environ.setdefault(name, value)
        yield
