"""A bundle as tasks and a benchmark of mteb, for any mteb script, cache and leaderboard.

There is one task for each data set and transformation, and one for each untransformed data set. Seeds are subsets, so
that mteb's mean over these is the study's score, to its last digit. A task's name ends in the bundle's identity, as
mteb keeps results by name.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mteb.abstasks.task_metadata import TaskDomain, TaskMetadata
from mteb.benchmarks.benchmark import Benchmark, BenchmarkAggregation, CustomGroup, CustomGrouping
from mteb.models import EncoderProtocol
from mteb.types import Licenses

from annotation.verdicts.rules import late_lines
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import open_checked
from evaluation.bundle.records import DatasetSource
from evaluation.bundle.report import warnings
from evaluation.bundle.source import BundleSource
from evaluation.tasks.mteb_classes import OwnTask, registered, searcher, settle
from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.tasks.scoring import make_task
from evaluation.units import ScoreUnit, plan_units
from plumbline.errors import DataError, StudyError
from plumbline.languages import with_script
from plumbline.study.datasets import SEARCHES
from plumbline.transformations import ORIGINAL, total_axes

AXIS, TOTAL = "Axis", "Total"


class BundleTask(OwnTask):
    """A data set of a bundle in one transformation, each seed a subset; `units` are by subset."""

    units: Mapping[str, ScoreUnit]
    protocol: Protocol
    axis: str

    @property
    def transformation(self) -> str:
        """The name of the transformation, or original."""
        return next(iter(self.units.values())).transformation

    def evaluate(
        self,
        model: Any,
        split: str = "test",
        subsets_to_run: list[str] | None = None,
        *,
        encode_kwargs: Any,
        **options: Any,
    ) -> dict[str, Any]:
        """Return scores by subset, by the study's task, protocol, prompts and ties, for any model of mteb.

        The transformed data set is made anew each time, as mteb changes it during an evaluation.
        """
        del split
        scores = {}
        for name, unit in self.units.items():
            if subsets_to_run is not None and name not in subsets_to_run:
                continue
            task, kind = make_task(unit.data(), self.protocol), unit.task
            settle(task, kind)
            searched_by = searcher(model, kind) if isinstance(model, EncoderProtocol) else model
            (part,) = task.eval_splits[:1]
            by_subset = task.evaluate(searched_by, part, encode_kwargs=encode_kwargs, **options)
            main = [subset[METRICS[kind]] for subset in by_subset.values()]
            first = dict(next(iter(by_subset.values()))) if len(by_subset) == 1 else {}
            mean = float(np.mean([math.nan if value is None else value for value in main]))
            scores[name] = {**first, METRICS[kind]: mean, "main_score": mean}
        return scores


@dataclass
class BundleBenchmark(Benchmark):
    """A bundle's tasks with a mean for each axis, and the mean of these as the total."""

    of_total: tuple[str, ...] = ()  #: the axes behind the total

    def _get_model_score(self, model_result: Any) -> dict[str, float | None]:
        """Return mteb's scores and the total."""
        scores: dict[str, float | None] = super()._get_model_score(model_result)
        axis_scores = [scores.get(f"{AXIS}::{axis}") for axis in self.of_total]
        defined = [value for value in axis_scores if value is not None]
        return {**scores, TOTAL: float(np.mean(defined)) if defined and len(defined) == len(axis_scores) else None}


def plumbline_tasks(
    path: str | Path,
    *,
    files: Mapping[str, str | Path] | None = None,
    include_rejected: bool = False,
    simulated: bool = False,
) -> list[BundleTask]:
    """Return the tasks of a bundle, after checking it; `mteb.evaluate` accepts them.

    `files` are your copies of texts that may not be shared, by data set. Raises DataError for a bundle with faults,
    StudyError for simulated ratings without `simulated`, and the errors of loading data sets.

    >>> from evaluation import plumbline_tasks
    >>> tasks = plumbline_tasks("sample.plumb", simulated=True)
    >>> len(tasks), tasks[1].metadata.type, tasks[1].transformation
    (6, 'STS', 'paraphrasing')
    """
    return _tasks(_opened(path, simulated=simulated), files or {}, include_rejected=include_rejected)


def plumbline_benchmark(
    path: str | Path,
    *,
    files: Mapping[str, str | Path] | None = None,
    include_rejected: bool = False,
    simulated: bool = False,
) -> BundleBenchmark:
    """Return the tasks as a benchmark, with a mean for each axis and a total. Raises as `plumbline_tasks`.

    >>> from evaluation import plumbline_benchmark
    >>> benchmark = plumbline_benchmark("sample.plumb", simulated=True)
    >>> len(benchmark), benchmark.of_total
    (6, ('lexical_stylistic', 'length', 'language'))
    """
    bundle = _opened(path, simulated=simulated)
    tasks, manifest = _tasks(bundle, files or {}, include_rejected=include_rejected), bundle.manifest
    axes = list(dict.fromkeys(task.axis for task in tasks))
    groups = [CustomGroup(axis, [task for task in tasks if task.axis == axis]) for axis in axes]
    return BundleBenchmark(
        name=f"{manifest.study} {manifest.edition} ({bundle.short})",
        tasks=tasks,
        description=_described(bundle),
        citation=manifest.citation or None,
        contacts=[manifest.contact] if manifest.contact else None,
        aggregations=(BenchmarkAggregation.MEAN_TASK, CustomGrouping(AXIS, groups)),
        of_total=total_axes([task.transformation for task in tasks], [axis for axis in axes if axis != ORIGINAL]),
    )


def _opened(path: str | Path, *, simulated: bool) -> Bundle:
    bundle = open_checked(Path(path))
    if bundle.manifest.simulated and not simulated:
        raise StudyError(
            f"{path}: its ratings are SIMULATED: nobody accepted these texts; pass simulated=True to rehearse"
        )
    return bundle


def task_of(metadata: TaskMetadata, units: Mapping[str, ScoreUnit], protocol: Protocol, axis: str) -> BundleTask:
    """Return a task, registered in mteb by its name in this process."""
    attributes = {"metadata": metadata, "units": dict(units), "protocol": protocol, "axis": axis}
    kind: type[BundleTask] = type("BundleTask", (BundleTask,), attributes)
    return registered(kind)


def _tasks(bundle: Bundle, files: Mapping[str, str | Path], *, include_rejected: bool) -> list[BundleTask]:
    study = bundle.study([{"name": "whatever mteb brings"}])  # for the evaluation's protocol
    source = BundleSource(bundle, study, {name: Path(file) for name, file in files.items()})
    units = plan_units(source, bundle.verdicts, source.pairs(), include_rejected=include_rejected)
    sources, tasks = {dataset.name: dataset for dataset in bundle.manifest.datasets}, []
    for dataset, transformation, of_place in grouped(units):
        if any(unit.decision.status == "left_out" for unit in of_place):
            continue
        kind = study.transforming.get(transformation)
        subsets = {"default" if len(of_place) == 1 else str(unit.seed): unit for unit in of_place}
        metadata = metadata_of(bundle, source, sources[dataset], of_place, list(subsets))
        tasks.append(task_of(metadata, subsets, study.evaluation.protocol, kind.axis if kind else ORIGINAL))
    if not tasks:
        raise DataError(
            f"{bundle.path}: none of its verdicts accepts a transformation, so there is nothing to evaluate"
        )
    return tasks


def grouped(units: Sequence[ScoreUnit]) -> Iterator[tuple[str, str, list[ScoreUnit]]]:
    """Yield the units of each data set and transformation, one for each seed."""
    by_place: dict[tuple[str, str], list[ScoreUnit]] = {}
    for unit in units:
        by_place.setdefault((unit.name, unit.transformation), []).append(unit)
    yield from ((*key, of_place) for key, of_place in by_place.items())


def metadata_of(
    bundle: Bundle,
    source: BundleSource,
    dataset_source: DatasetSource,
    units: Sequence[ScoreUnit],
    subsets: Sequence[str],
) -> TaskMetadata:
    """Return all metadata that mteb requires of a task."""
    unit, manifest = units[0], bundle.manifest
    base = make_task(unit.dataset, source.study.evaluation.protocol).metadata
    by_seed = [[f"{code}" for code in _languages(source, unit_of_seed)] for unit_of_seed in units]
    citations = [text for text in (dataset_source.citation, manifest.citation) if text]
    verified = unit.transformation != ORIGINAL and not warnings(bundle)
    return TaskMetadata(
        name=f"{dataset_source.name}.{unit.transformation}.{bundle.short}",
        description=f"{dataset_source.name}, {unit.transformation.replace('_', ' ')}. {_described(bundle)}",
        dataset={"path": f"plumbline/{manifest.study}", "revision": bundle.identity},
        type=base.type,
        category=base.category,
        modalities=base.modalities,
        prompt=base.prompt,
        reference=dataset_source.reference or None,
        eval_splits=["test"],
        eval_langs=by_seed[0] if len(units) == 1 else dict(zip(subsets, by_seed, strict=True)),
        main_score=METRICS[unit.task],
        date=manifest.rated,
        domains=[domain for domain in dataset_source.domains if domain in typing.get_args(TaskDomain)],
        task_subtypes=[],
        license=_licence(dataset_source.licence),
        annotations_creators=base.annotations_creators or "derived",
        dialect=[],
        sample_creation="LM-generated and verified" if verified else base.sample_creation or "created",
        bibtex_citation="\n".join(citations) or None,
    )


def _described(bundle: Bundle) -> str:
    manifest = bundle.manifest
    simulated = " Its ratings are SIMULATED: scores on it measure nothing." if manifest.simulated else ""
    simulated += "".join(f" {line}" for line in late_lines(bundle.verdicts))
    return (
        f"From {manifest.study}, edition {manifest.edition}; generator: {manifest.generator_words}; rated from"
        f" {manifest.rated[0]} to {manifest.rated[1]}.{simulated}"
    )


def _languages(source: BundleSource, unit: ScoreUnit) -> list[str]:
    """Return the languages of the outputs, for searches also those of the searched texts."""
    if unit.transformation == ORIGINAL:
        return [with_script(code) for code in unit.languages]
    jobs = (source.plan.job(text, unit.transformation, unit.seed) for text in unit.dataset.texts())
    codes = {job.languages[-1] for job in jobs}
    codes |= set(unit.languages) if unit.task in (*SEARCHES, "bitext_mining") else set()
    return [with_script(code) for code in sorted(codes)]


def _licence(name: str) -> Any:
    """Return the licence in mteb's words, or its address."""
    licences = typing.get_args(Licenses)
    if name.lower() in licences or name.startswith(("http://", "https://")):
        return name.lower() if name.lower() in licences else name
    return "not specified"
