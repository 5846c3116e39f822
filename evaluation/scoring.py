"""Score the original and the accepted transformations of every data set.

A score is written as soon as it exists (`evaluation.stored`). Valid scores of earlier runs are kept; only models with
work left are loaded. A model that fails is reported, and the others go on. With `--ray` the nodes of a running cluster
do the work (`evaluation.cluster`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # noqa: F401 (its parts are imported where used; here so that a missing extra is named before any work)

from annotation.records import Verdict
from evaluation.cluster import run_jobs, save_results
from evaluation.measures import RowMeasure, measures
from evaluation.models.encoder import ModelHost
from evaluation.records import MADE, EvaluationRecords, MadeScore
from evaluation.report.paper_tables import report
from evaluation.results import Results
from evaluation.sources import Folder
from evaluation.stored import StoredResults
from evaluation.units import Model, ScoreUnit, plan_units
from evaluation.work import JobOutcome, Loader, Made, ModelJob, ScoringOptions, UnitScore, pieces, quiet
from plumbline.cli import StudyOptions, columns
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.records import Pair
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec


@dataclass
class RunOutcome(JobOutcome):
    """The outcome of a run, with its verdicts and pairs."""

    verdicts: Sequence[Verdict] = ()
    pairs: Sequence[Pair] = ()


def evaluate(
    study: Study,
    *,
    models: Sequence[str] = (),
    include_rejected: bool = False,
    cluster: str = "",
    load: Loader = ModelHost.load,
) -> RunOutcome:
    """Write `scores.parquet`, `drift.parquet` and mteb's files of a study; `models` names some of its models.

    `cluster` is the address of a Ray cluster; empty for this machine. Raises DataError without verdicts or a sample,
    for verdicts older than the ratings and for files that cannot be read, StudyError for a model that the study lacks,
    and ServiceError if there is no cluster. Errors of models are in the outcome's `failures`. Existing scores are kept,
    and each text is encoded once.

    Source: HTEB, 2.3 (which scores); mteb (how each is measured); docs/evaluation.md.

    >>> from evaluation import evaluate
    >>> from plumbline import load_study
    >>> outcome = evaluate(load_study("studies/mine.yaml", exports="exports"))
    >>> outcome.made, outcome.kept, outcome.failures
    (0, 6, {})
    """
    if not study.judging.does_tasks:
        chosen = ModelHost.of(study).chosen(models)
        return _evaluated(EvaluationRecords(study), chosen, load, cluster, include_rejected=include_rejected)
    from evaluation.human.run import evaluate_human  # noqa: PLC0415 (no other study needs it)

    return RunOutcome(**vars(evaluate_human(study, models=models, cluster=cluster, load=load).outcome))


def _evaluated(
    records: EvaluationRecords, chosen: Sequence[ModelSpec], load: Loader, cluster: str, *, include_rejected: bool
) -> RunOutcome:
    study = records.study
    study.refuse_unfit("evaluate")
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: no models to score; add `evaluation` with `models`")
    verdicts, pairs = judged(records, include_rejected=include_rejected)
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        units = plan_units(Folder(study), verdicts, pairs, include_rejected=include_rejected)
        results = Results(records, units, pairs, chosen, measures(records))
        return _score(results, RunOutcome(verdicts=verdicts, pairs=pairs), load, cluster)


def evaluate_units(
    records: EvaluationRecords,
    units: Sequence[ScoreUnit],
    verdicts: Sequence[Verdict],
    pairs: Sequence[Pair],
    measured: Sequence[RowMeasure[Any]],
    load: Loader = ModelHost.load,
) -> RunOutcome:
    """Evaluate units that are already planned, by all of the study's models, here.

    `measured` are the measures beside the scores.
    """
    study = records.study
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        results = Results(records, units, pairs, study.evaluation.models, measured)
        return _score(results, RunOutcome(verdicts=verdicts, pairs=pairs), load)


def _score(results: Results, outcome: RunOutcome, load: Loader, cluster: str = "") -> RunOutcome:
    """Make the missing results, here or on a cluster, and record them."""
    outcome.kept = results.kept
    jobs = {ModelJob(todo.model, pieces(results.host.evaluation, todo)): todo for todo in results.todo()}

    def save(job: ModelJob, result: Made) -> bool:
        results.save(jobs[job], result)
        return isinstance(result, UnitScore)

    try:
        if jobs:
            n_scores = sum(len(todo.units) for todo in jobs.values())
            save_results(run_jobs(results.host, list(jobs), load, cluster), save, outcome, n_scores, results.fail)
    finally:
        results.finish()
    return outcome


def judged(records: EvaluationRecords, *, include_rejected: bool) -> tuple[list[Verdict], list[Pair]]:
    """Return the verdicts, checked against the files on disk, and the sample.

    Both may be empty with `include_rejected`, if nothing was rated yet.
    """
    verdicts = [] if include_rejected and not records.looks else records.conclusion.verdicts
    return verdicts, records.known_pairs if include_rejected and not verdicts else records.pairs


def score_study(*, options: ScoringOptions, include_rejected: bool = False) -> StudyOptions:
    """Score models and measure drift on accepted texts.

    The study's models are scored on the original and on the accepted transformations of its data sets. You can stop it
    at any time; run it again to continue.

    Example: plumbline evaluate --study studies/demo.yaml

    Args:
        options: The study, and its models to score.
        include_rejected: Also score rejected transformations, marked as such everywhere.
    """
    study = options.load()
    records, host = EvaluationRecords(study), ModelHost.of(study)
    if options.dry_run:
        if not study.judging.transforms:
            raise StudyError("--dry-run works only for studies of transformations; leave it out")
        verdicts, pairs = judged(records, include_rejected=include_rejected)
        units = plan_units(Folder(study), verdicts, pairs, include_rejected=include_rejected)
        print(forecast(records, units, [Model.of(host, spec) for spec in host.chosen(options.models)]))
        return options
    if study.judging.does_tasks:
        from evaluation.human.run import command  # noqa: PLC0415 (no other study needs it)

        if include_rejected:
            raise StudyError("--include-rejected does not apply to studies in which people do tasks; leave it out")
        command(study, options.models, options.ray)
        return options
    chosen = host.chosen(options.models)
    names = ("looks.json", "pairs.parquet", "ratings.parquet", "transformations")
    inputs = [study.folder / name for name in names]
    tables = ("scores.parquet", "drift.parquet", "accepted_scores.parquet", "abstention.parquet")
    outputs = [study.folder / name for name in tables]
    with quiet(study.datasets, chosen), stage(study, "evaluation", inputs, outputs):
        outcome = _evaluated(records, chosen, ModelHost.load, options.ray, include_rejected=include_rejected)
        print(report(records, outcome.verdicts))
        print(f"\n{study.name}: {outcome.line(outputs[0])}")
        outcome.refuse_failures(len(chosen))
    return options


def forecast(records: EvaluationRecords, units: Sequence[ScoreUnit], chosen: Iterable[Model]) -> str:
    """Return a table of the work left, a row for each model: scores, distinct texts, and their characters.

    The counts are approximate: texts that a model has encoded already are not encoded again, and a text is encoded once
    for each of its prompts.
    """
    study = records.study
    scored = StoredResults(study.folder / MADE / "scores", MadeScore)
    sizes: dict[tuple[int, ...], tuple[int, int]] = {}  # cached, as most models lack the same units
    rows = []
    for model in chosen:
        first_of: dict[str, int] = {}  # units with one identity are scored once
        for index, unit in enumerate(units):
            if unit.decision.status != "left_out":
                first_of.setdefault(unit.unit_id(study.evaluation.protocol, model), index)
        unscored = [index for unit_id, index in first_of.items() if unit_id not in scored]
        if tuple(unscored) not in sizes:
            sizes[tuple(unscored)] = _sizes([units[index] for index in unscored])
        texts, characters = sizes[tuple(unscored)]
        rows.append([model.name, *(f"{number:,}" for number in (len(unscored), texts, characters))])
    return columns(["model", "scores left", "texts, about", "characters"], rows)


def _sizes(units: Sequence[ScoreUnit]) -> tuple[int, int]:
    """Return the number of distinct texts of units, including searched passages, and of their characters."""
    hashes = np.empty((0, 2), np.int64)
    for unit in units:
        data = unit.data()
        texts = [text.text for text in data.texts()]
        texts += [text for search in data.searches() for text in search.passages.values()]
        added = np.array([(hash(text), len(text)) for text in set(texts)], np.int64).reshape(-1, 2)
        hashes = np.concatenate([hashes, added])
        hashes = hashes[np.unique(hashes[:, 0], return_index=True)[1]]
    return len(hashes), int(hashes[:, 1].sum())
