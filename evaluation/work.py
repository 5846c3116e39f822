"""What is left to do for a model, done: the same code on this machine and on a node of a cluster."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from annotation.verdicts.tables import count
from evaluation import measures as beside
from evaluation.measures import UnitMeasures
from evaluation.models import encoder
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.in_process import first_line, gpu_of, keep_speed
from evaluation.tasks import scoring
from evaluation.units import Model, Numbers, Place, ScoreUnit
from plumbline.errors import DataError, PlumblineError, ServiceError
from plumbline.records import Pair
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.versions import installed_versions

Loader = Callable[[ModelHost, ModelSpec], Encoder]

# What makes a score: the rest (numpy, scikit-learn) is in the study's manifest.
_PACKAGES = ("plumbline", "mteb", "sentence-transformers", "torch")


@dataclass(frozen=True)
class Todo:
    """What a model has left to do: units to score, pairs whose drift is not known, and what is measured beside."""

    model: Model
    units: Sequence[ScoreUnit]
    pairs: Sequence[Pair]
    beside: Sequence[beside.MeasureTodo] = ()


@dataclass(frozen=True)
class PairDrift:
    """The drift of all pairs that were left, in their order."""

    values: list[float]


@dataclass(frozen=True)
class UnitScore:
    """A unit's score, with all that mteb measured (`mteb.results.TaskResult`).

    The original's in `numbers` is NaN where no item was dropped: it is the original data set's own score then.
    """

    place: Place
    numbers: Numbers
    result: Any


@dataclass(frozen=True)
class ModelEnd:
    """A model's end: how many texts it was asked for and encoded, and why it failed if it did."""

    asked: int = 0
    encoded: int = 0
    failure: str = ""


@dataclass
class JobOutcome:
    """What a run of jobs did: scores made and kept, texts asked of models and encoded, and why models failed."""

    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def end(self, model: Model, result: ModelEnd) -> None:
        """Add a model's end, and say on standard error why it failed if it did."""
        self.asked += result.asked
        self.encoded += result.encoded
        if result.failure:
            self.failures[model.name] = result.failure
            tqdm.write(f"{model.name} failed: {result.failure}", file=sys.stderr)

    def line(self, path: Path) -> str:
        """What was done, and the file where it is, in a line."""
        return (
            f"{count(self.made, 'score')} made, {self.kept} were there; {count(self.encoded, 'text')} encoded"
            f" for {self.asked} asked -> {path}"
        )

    def refuse_failures(self, n_models: int) -> None:
        """Raise ServiceError where one of so many models failed."""
        if self.failures:
            raise ServiceError(
                f"{len(self.failures)} of {n_models} models failed: {', '.join(self.failures)} (the reason stands"
                " above); run the same command again to go on"
            )


Made = PairDrift | UnitScore | UnitMeasures | ModelEnd


Piece = Callable[[Encoder], Any]  # what is made in one go: of a cluster, in whatever process


@dataclass(frozen=True, eq=False)
class ModelJob:
    """A model, and what is to be made with it."""

    model: Model
    pieces: Sequence[Piece]


def work(host: ModelHost, job: ModelJob, load: Loader) -> Iterator[Any]:
    """Load one model and make everything that its job asks for, in order; the last is its `ModelEnd`."""
    model: Encoder | None = None
    failure = ""
    try:
        model = load(host, job.model.spec)
        for piece in job.pieces:
            yield piece(model)
    except (PlumblineError, MemoryError, RuntimeError) as error:
        failure = explained(error)
    finally:
        if model is not None:
            model.close()
            gpu = gpu_of(job.model.spec, host.evaluation.device)
            keep_speed(host.folder, job.model.spec, job.model.model_id, model.watch, gpu)
    yield ModelEnd(model.asked, model.encoded, failure) if model is not None else ModelEnd(failure=failure)


def explained(error: BaseException) -> str:
    """Why a model cannot be evaluated, in one line; raises what is none of the model's, but a bug."""
    if isinstance(error, PlumblineError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and encoder.lacks_memory(str(error))):
        return f"memory does not suffice ({first_line(error)}); free some, or evaluate on a larger machine"
    raise error


@contextlib.contextmanager
def naming(what: str) -> Iterator[None]:
    """What mteb, or a library below it, refuses of a task's data is one line that names the task."""
    try:
        yield
    except ValueError as error:
        raise DataError(
            f"{what} cannot be scored with it ({type(error).__name__}: {first_line(error)}); correct its data, or take"
            " it out"
        ) from error


def pieces(evaluation: EvaluationSpec, todo: Todo) -> list[Piece]:
    """What is left for a model, in the order in which it is made: drift, scores, and what is measured beside."""
    originals: dict[tuple[str, frozenset[str]], float] = {}
    drift: list[Piece] = [partial(_moved, todo.pairs)] if todo.pairs else []
    scores = (partial(_scored, evaluation, unit, originals) for unit in todo.units)
    return [*drift, *scores, *beside.pieces(todo.beside)]


def _moved(pairs: Sequence[Pair], model: Encoder) -> PairDrift:
    texts = [(pair.original, pair.transformed) for pair in pairs]
    return PairDrift(encoder.drift_of_texts(model, *zip(*texts, strict=True)).tolist())


def _scored(
    evaluation: EvaluationSpec,
    unit: ScoreUnit,
    originals: dict[tuple[str, frozenset[str]], float],
    model: Encoder,
) -> UnitScore:
    with naming(unit.name):
        result = scoring.evaluate_task(unit.data(), model, evaluation.protocol, evaluation.batch_size)
    original = math.nan  # where nothing was dropped
    if unit.lost:
        key = unit.name, unit.lost  # each selection of items is scored once in a process
        if key not in originals:
            originals[key] = scoring.evaluate(unit.original(), model, evaluation.protocol, evaluation.batch_size)
        original = originals[key]
    score = scoring.main_score(unit.dataset, result)
    return UnitScore(unit.place, Numbers(score, original, versions(model.engines), model.revision), result)


@functools.cache
def versions(engines: str = "") -> str:
    """The packages that make scores, and their versions here: `plumbline 0.1.0, mteb 2.26.24` and so on.

    `engines` are those that ran a model in place of torch's own operators (`Encoder.engines`), which stand last.

    Asked for with each score: reading what is installed takes 2 ms.
    """
    package_versions = [f"{package} {version}" for package, version in installed_versions(_PACKAGES).items()]
    return ", ".join([*package_versions, *([engines] if engines else [])])


@contextlib.contextmanager
def quiet(datasets: Iterable[DatasetSpec], specs: Iterable[ModelSpec]) -> Iterator[None]:
    """Settings that the libraries read once, at import: no talk, no telemetry, and no hub where all is local.

    mteb makes its cache folder at import, unused here; without this it would do so in the user's home. What
    the user has set stays.
    """
    settings = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    settings["DISABLE_TQDM"] = "1"  # bm25s
    local = not any(dataset.mteb for dataset in datasets)
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
