"""Do the work left for a model: the same code on this machine and on a node of a cluster."""

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
from typing import Annotated, Any

from cyclopts import Parameter
from tqdm import tqdm

from evaluation.measures import MeasureTodo, UnitMeasures
from evaluation.measures import pieces as measure_pieces
from evaluation.models import encoder
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.in_process import first_line
from evaluation.records import Numbers
from evaluation.tasks import scoring
from evaluation.units import Model, Place, ScoreUnit
from plumbline.cli import Named, Several, StudyOptions
from plumbline.errors import DataError, PlumblineError, ServiceError
from plumbline.records import Pair
from plumbline.resources import installed_versions
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.words import count

Loader = Callable[[ModelHost, ModelSpec], Encoder]

# Packages that compute a score: the manifest has the others (numpy, scikit-learn).
_PACKAGES = ("plumbline", "mteb", "sentence-transformers", "torch")


@Parameter(name="*")
@dataclass(frozen=True)
class ScoringOptions(StudyOptions):
    """A study whose models are scored.

    Args:
        models: Only these models of the study.
        ray: Run on a Ray cluster: `auto` or its address.
        dry_run: Show how much is left to score and encode; score nothing.
    """

    models: Annotated[tuple[str, ...], Several, Parameter(metavar="NAME...")] = ()
    ray: Annotated[Named, Parameter(metavar="ADDRESS")] = ""
    dry_run: bool = False


@dataclass(frozen=True)
class Todo:
    """A model's work left: units to score, pairs without a drift, and further measures."""

    model: Model
    units: Sequence[ScoreUnit]
    pairs: Sequence[Pair]
    measures: Sequence[MeasureTodo] = ()


@dataclass(frozen=True)
class PairDrift:
    """The drift of all pairs that were left, in their order."""

    values: list[float]


@dataclass(frozen=True)
class UnitScore:
    """A unit's score, with mteb's whole result (`mteb.results.TaskResult`).

    The original score in `numbers` is NaN if no item was dropped: then the original data set's score applies.
    """

    place: Place
    numbers: Numbers
    result: Any


@dataclass(frozen=True)
class ModelEnd:
    """A model's end: the numbers of texts requested and encoded, and the reason if it failed."""

    asked: int = 0
    encoded: int = 0
    failure: str = ""


@dataclass
class JobOutcome:
    """The outcome of jobs: scores computed and kept, texts requested and encoded, and why models failed."""

    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def end(self, model: Model, result: ModelEnd) -> None:
        """Add a model's end, and print a failure on standard error."""
        self.asked += result.asked
        self.encoded += result.encoded
        if result.failure:
            self.failures[model.name] = result.failure
            tqdm.write(f"{model.name} failed: {result.failure}", file=sys.stderr)

    def line(self, path: Path) -> str:
        """Return a line with the counts, and the file of the scores."""
        return (
            f"{count(self.made, 'score')} computed, {self.kept:,} already stored; {count(self.encoded, 'text')}"
            f" encoded, {self.asked:,} requested -> {path}"
        )

    def refuse_failures(self, n_models: int) -> None:
        """Raise ServiceError if one of the models failed."""
        if self.failures:
            raise ServiceError(
                f"{len(self.failures)} of {count(n_models, 'model')} failed: {', '.join(self.failures)} (the reasons"
                " are above); run the same command again to continue"
            )


Made = PairDrift | UnitScore | UnitMeasures


Piece = Callable[[Encoder], Any]  # work done in one go; on a cluster, in any process


@dataclass(frozen=True, eq=False)
class ModelJob:
    """A model, and the pieces of work to do with it."""

    model: Model
    pieces: Sequence[Piece]


def work(host: ModelHost, job: ModelJob, load: Loader) -> Iterator[Any]:
    """Load one model and yield the results of its job in order; the last is its `ModelEnd`."""
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
    yield ModelEnd(model.asked, model.encoded, failure) if model is not None else ModelEnd(failure=failure)


def explained(error: BaseException) -> str:
    """Return why a model cannot be evaluated, in one line; raise a bug as it is."""
    if isinstance(error, PlumblineError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and encoder.lacks_memory(str(error))):
        return f"out of memory ({first_line(error)}); free some memory, or evaluate on a larger machine"
    raise error


@contextlib.contextmanager
def naming(action: str) -> Iterator[None]:
    """Turn an error of mteb about a task's data into one line that names the task."""
    try:
        yield
    except ValueError as error:
        raise DataError(
            f"{action} cannot be scored ({type(error).__name__}: {first_line(error)}); correct its data, or remove it"
        ) from error


def pieces(evaluation: EvaluationSpec, todo: Todo) -> list[Piece]:
    """Return a model's work left, in order: drift, scores, and further measures."""
    originals: dict[tuple[str, frozenset[str]], float] = {}
    drift: list[Piece] = [partial(_moved, todo.pairs)] if todo.pairs else []
    scores = (partial(_scored, evaluation, unit, originals) for unit in todo.units)
    return [*drift, *scores, *measure_pieces(todo.measures)]


def _moved(pairs: Sequence[Pair], model: Encoder) -> PairDrift:
    texts = [(pair.original, pair.transformed) for pair in pairs]
    return PairDrift(encoder.drift_of_texts(model, *zip(*texts, strict=True)).tolist())


def _scored(
    evaluation: EvaluationSpec, unit: ScoreUnit, originals: dict[tuple[str, frozenset[str]], float], model: Encoder
) -> UnitScore:
    model.prompts.clear()
    with naming(unit.name):
        result = scoring.evaluate_task(unit.data(), model, evaluation.protocol, evaluation.batch_size)
    original = math.nan  # if nothing was dropped
    if unit.failed_texts:
        key = unit.name, unit.failed_texts  # each selection of items is scored once in a process
        if key not in originals:
            originals[key] = scoring.evaluate(unit.original(), model, evaluation.protocol, evaluation.batch_size)
        original = originals[key]
    score = scoring.main_score(unit.dataset, result)
    prompts = ", ".join(f"{role} {prompt}" for role, prompt in sorted(model.prompts.items()))
    made_by = {"versions": versions(model.engines), "revision": model.revision, "prompts": prompts}
    return UnitScore(unit.place, Numbers(score=score, original=original, **made_by), result)


@functools.cache
def versions(engines: str = "") -> str:
    """Return the packages that make scores, with their versions: `plumbline 0.1.0, mteb 2.26.24` and so on.

    `engines` are those that ran a model instead of torch's own operators (`Encoder.engines`); they come last.

    Cached, as each score needs it and reading the versions takes 2 ms.
    """
    package_versions = [f"{package} {version}" for package, version in installed_versions(_PACKAGES).items()]
    return ", ".join([*package_versions, *([engines] if engines else [])])


@contextlib.contextmanager
def quiet(datasets: Iterable[DatasetSpec], specs: Iterable[ModelSpec]) -> Iterator[None]:
    """Set what libraries read once, at import: no messages, no telemetry, and no hub if all is local.

    mteb makes a cache folder at import, unused here, which would otherwise be in the user's home. Variables that the
    user has set stay.
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
        finally:  # the folder no longer exists for what this process does next
            for name in added:
                os.environ.pop(name, None)
