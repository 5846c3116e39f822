"""Score the original and the accepted transformations of every data set.

A score is on disk as soon as it exists (`evaluation.results`). What stands there from earlier runs under an identity
that still holds is kept; only models that have something left to do are loaded. A model that fails is reported, and
the others go on. With `--ray` the nodes of a running cluster do the work (`evaluation.cluster`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from tqdm import tqdm

from annotation.campaign_records import CampaignRecords
from annotation.judges.decisions import refuse_other_judgements
from annotation.records import Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import count
from annotation.verdicts.verdicts import refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation import display
from evaluation.forecast import forecast
from evaluation.jobs import done
from evaluation.measures.rows import RowMeasure
from evaluation.models import encoder
from evaluation.planner import plan_units
from evaluation.results import Results, read_drift, read_scores
from evaluation.units import ScoreUnit, chosen_models
from evaluation.work import Loader, Made, ModelEnd, ModelJob, Todo, UnitScore, pieces, quiet
from plumbline import cli
from plumbline.errors import ServiceError, StudyError
from plumbline.manifest import stage
from plumbline.memory import return_large_blocks
from plumbline.records import Pair, Rating
from plumbline.store import only_one, read_frame
from plumbline.study import Study


@dataclass
class RunOutcome:
    """What a run did: scores made and kept, texts asked of models and encoded, and what failed.

    `verdicts` and `pairs` are what it rests on.
    """

    verdicts: Sequence[Verdict] = ()
    pairs: Sequence[Pair] = ()
    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def evaluate(
    study: Study,
    *,
    models: Sequence[str] = (),
    include_rejected: bool = False,
    cluster: str = "",
    load: Loader = encoder.load,
) -> RunOutcome:
    """Write `scores.parquet`, `drift.parquet` and mteb's files of a study; `models` names some of its models.

    `cluster` is the address of a Ray cluster that does the work; without one it is done here. Raises DataError
    without verdicts or a sample, for verdicts that ratings have outrun and for files that cannot be read,
    StudyError for a model that the study does not have, and ServiceError where there is no cluster. What a model does
    wrong is in the outcome's `failures`. Scores that are there already are kept, and texts encoded once.

    Source: HTEB, 2.3 (which scores); mteb (how each is measured); docs/evaluation.md.

    >>> from evaluation import evaluate
    >>> from plumbline import load_study
    >>> outcome = evaluate(load_study("studies/mine.yaml", exports="exports"))
    >>> outcome.made, outcome.kept, outcome.failures
    (0, 6, {})
    """
    if study.judging.scored_by == "evaluation.instructions":
        raise StudyError(
            f"{study.file}: models are scored under instructions; run `{study.command('evaluation.instructions')}`"
        )
    if study.judging.does_tasks:
        from evaluation.human.run import evaluate_human  # noqa: PLC0415 (no other study needs it)

        done = evaluate_human(study, models=models, cluster=cluster, load=load).outcome
        return RunOutcome((), (), done.scored, done.reused, done.requested, done.encoded, done.failures)
    if study.subject:
        raise StudyError(
            f"{study.file}: nothing is scored where the subject is {study.judging.kind}; its results are what"
            f" `{study.command('annotation accept')}` decides"
        )
    if not study.evaluation.models:
        raise StudyError(f"{study.file}: the study has no `evaluation`, so that nothing is scored; add its `models`")
    return_large_blocks()
    chosen = chosen_models(study, models)
    verdicts, pairs = _judged(study, include_rejected=include_rejected)
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        units = plan_units(study, verdicts, pairs, include_rejected=include_rejected)
        return _score(Results(study, units, pairs, chosen), RunOutcome(verdicts, pairs), load, cluster)


def evaluate_units(
    study: Study,
    units: Sequence[ScoreUnit],
    verdicts: Sequence[Verdict],
    pairs: Sequence[Pair],
    measures: Sequence[RowMeasure[Any]],
    load: Loader = encoder.load,
) -> RunOutcome:
    """The same for units that were planned already, by all of the study's models, here.

    `measures` are what is measured beside the scores.
    """
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        results = Results(study, units, pairs, study.evaluation.models, measures)
        return _score(results, RunOutcome(verdicts, pairs), load)


def _score(results: Results, outcome: RunOutcome, load: Loader, cluster: str = "") -> RunOutcome:
    """Make what is left, here or on a cluster, and note it."""
    outcome.kept, study = results.kept, results.study
    jobs = {ModelJob(todo.model, pieces(study, todo)): todo for todo in results.todo()}
    if jobs:
        with contextlib.closing(done(study, list(jobs), load, cluster)) as stream:
            results_of_jobs = ((jobs[job], result) for job, result in stream)
            _take(results, results_of_jobs, outcome, sum(len(todo.units) for todo in jobs.values()))
    return outcome


def _judged(study: Study, *, include_rejected: bool) -> tuple[list[Verdict], list[Pair]]:
    """The verdicts, which must follow from what is on disk, and the sample.

    None of what nobody rated yet, where even that shall be scored.
    """
    if include_rejected and not (study.folder / "verdicts.json").exists():
        return [], CampaignRecords.open(study).known_pairs
    verdicts = CampaignRecords.open(study).verdicts
    if not verdicts:
        return verdicts, CampaignRecords.open(study).known_pairs if include_rejected else CampaignRecords.open(
            study
        ).pairs
    evidence = Evidence.read(study)
    refuse_stale(evidence, verdicts)
    refuse_edited(evidence, verdicts)
    refuse_other_judgements(evidence, verdicts)
    return verdicts, evidence.collected.sample_pairs


def _take(results: Results, stream: Iterator[tuple[Todo, Made]], outcome: RunOutcome, total: int) -> None:
    """Save what is made, in whatever order it comes."""
    try:
        with tqdm(total=total, unit="score", desc="evaluating") as bar:
            for todo, result in stream:
                if isinstance(result, ModelEnd):
                    outcome.asked += result.asked
                    outcome.encoded += result.encoded
                    if result.failure:
                        outcome.failures[todo.model.name] = result.failure
                        results.fail(todo.model, result.failure)
                        tqdm.write(f"{todo.model.name} failed: {result.failure}", file=sys.stderr)
                    continue
                results.save(todo, result)
                if isinstance(result, UnitScore):
                    outcome.made += 1
                    bar.update()
    finally:
        results.write()


def _report(study: Study, outcome: RunOutcome) -> str:
    """The tables that the command prints."""
    ratings = study.folder / "ratings.parquet"
    return display.report(
        study,
        read_scores(study),
        outcome.verdicts,
        pairs=pd.DataFrame([pair.model_dump() for pair in outcome.pairs], columns=list(Pair.model_fields)),
        ratings=read_frame(ratings, Rating, study.command("annotation collect")) if ratings.exists() else None,
        drift=read_drift(study),
    )


def _forecast(study: Study, models: Sequence[str], *, include_rejected: bool) -> str:
    """What `--dry-run` prints."""
    if not study.judging.transforms:
        raise StudyError("--dry-run tells of models on transformations alone; leave it out")
    verdicts, pairs = _judged(study, include_rejected=include_rejected)
    units = plan_units(study, verdicts, pairs, include_rejected=include_rejected)
    return forecast(study, units, chosen_models(study, models))


def score_study(options: argparse.Namespace) -> int:
    """`evaluation.run`, whose options these are."""
    study = cli.study_of(options)
    if options.dry_run:
        print(_forecast(study, options.models, include_rejected=options.include_rejected))
        return 0
    if study.judging.does_tasks:
        from evaluation.human.run import command  # noqa: PLC0415 (no other study needs it)

        if options.include_rejected:
            raise StudyError("--include-rejected has no use where people do tasks; leave it out")
        return command(study, options.models, options.ray)
    names = ("verdicts.json", "pairs.parquet", "ratings.parquet", "pair_means.parquet", "transformations")
    inputs = [study.folder / name for name in names]
    tables = ("scores.parquet", "drift.parquet", "accepted_scores.parquet", "text_drift.parquet", "abstention.parquet")
    outputs = [study.folder / name for name in tables]
    with quiet(study, chosen_models(study, options.models)), stage(study, "evaluation", inputs, outputs):
        outcome = evaluate(study, models=options.models, include_rejected=options.include_rejected, cluster=options.ray)
        print(_report(study, outcome))
        print(
            f"\n{study.name}: {count(outcome.made, 'score')} made, {outcome.kept} were there;"
            f" {count(outcome.encoded, 'text')} encoded"
            f" for {outcome.asked} asked -> {outputs[0]}"
        )
        if outcome.failures:
            raise ServiceError(
                f"{len(outcome.failures)} of {len(chosen_models(study, options.models))} models failed:"
                f" {', '.join(outcome.failures)} (the reason stands above); run the same command again to go on"
            )
    return 0
