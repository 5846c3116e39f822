"""What `python -m evaluation.instructions` does: scores under wordings, and the report on them."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from annotation.verdicts.tables import count
from evaluation.instructions.run import PromptRunOutcome, evaluate_instructions, forecast
from evaluation.instructions.scores import ITEMS, SCORES, checked_items, no_items, read_scores, study_scores
from evaluation.instructions.units import unlabelled
from evaluation.units import chosen_models
from evaluation.work import quiet
from plumbline import cli
from plumbline.errors import ServiceError, StudyError
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.places import place
from plumbline.study.subject import INSTRUCTIONS

if TYPE_CHECKING:
    from evaluation.instructions.analysis import Analysis, Settings


def run(options: argparse.Namespace) -> int:
    """Write the report, and say the answer."""
    if options.seed is not None and options.seed < 0:
        raise StudyError(f"--seed {options.seed}: give a whole number from 0 on")
    if options.items and options.study:
        raise StudyError("--items goes with --scores; a study has its own, leave it out")
    if twice := [task for task, number in Counter(task for task, _ in options.part).items() if number > 1]:
        raise StudyError(f"--part names two parts of {twice[0]}; of a task one is analysed, leave the other out")
    return _of_study(options) if options.study else _of_scores(options)


def _settings(options: argparse.Namespace, seed: int) -> Settings:
    from evaluation.instructions.analysis import Settings  # noqa: PLC0415 (what takes long to import comes after --help)
    from evaluation.instructions.grid import Choice  # noqa: PLC0415

    chosen_seed = options.seed if options.seed is not None else seed
    return Settings(
        Choice(options.tasks, dict(options.part)), options.source, options.defaults, options.holes, chosen_seed
    )


def _of_study(options: argparse.Namespace) -> int:
    from evaluation.instructions.analysis import analyse  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415
    from plumbline.study import load_study  # noqa: PLC0415

    study = load_study(options.study, options.exports)
    scores, items = study_scores(study)
    folder = place(options.out, "--out") if options.out else study.folder / "report_instructions"
    inputs = [study.folder / name for name in (SCORES, ITEMS) if (study.folder / name).exists()]
    with stage(study, "evaluation instructions report", inputs, [folder]):
        analysis = analyse(scores, items, _settings(options, study.sample.seed), where=study.folder / SCORES)
        return _write(analysis, folder, f"Prompt sensitivity: study {study.name}")


def _of_scores(options: argparse.Namespace) -> int:
    from evaluation.benchmarks.task_facts import read_table  # noqa: PLC0415
    from evaluation.instructions.analysis import analyse  # noqa: PLC0415

    path, notes = Path(options.scores), tuple[str, ...]()
    if path.is_dir():
        from tqdm import tqdm  # noqa: PLC0415

        from evaluation.instructions.scores import of_folder  # noqa: PLC0415

        with tqdm(desc="reading results", unit="file", delay=1, leave=False) as bar:
            scores, notes = of_folder(path, bar.update)
    else:
        scores = read_scores(path)
    items = checked_items(read_table(Path(options.items)), Path(options.items)) if options.items else no_items()
    folder = place(options.out or "report_instructions", "--out")
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"--out {folder}: a file is there; name a folder")
    analysis = analyse(scores, items, _settings(options, 1337), notes, path)
    return _write(analysis, folder, f"Prompt sensitivity: {path.name}")


def _write(analysis: Analysis, folder: Path, title: str) -> int:
    from evaluation.instructions.analysis import SIMULATED  # noqa: PLC0415
    from evaluation.instructions.page import (  # noqa: PLC0415
        headline,
        write_report,
    )

    try:
        page = write_report(folder, analysis, title)
    except FileNotFoundError as error:
        raise StudyError(f"{folder}: no file can be written there ({error.filename}); name another folder") from None
    print("\n".join([*([SIMULATED] if analysis.simulated else []), *headline(analysis)]))
    print(f"-> {page}")
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Score what the options name, and print what came of it."""
    study = cli.study_of(options)
    chosen = {"models": options.models, "include_unaccepted": options.include_unaccepted}
    names = ("verdicts.json", "pairs.parquet", "ratings.parquet", INSTRUCTIONS)
    outputs = [study.folder / SCORES, study.folder / ITEMS]
    with quiet(study, chosen_models(study, options.models)):
        if options.dry_run:
            print(forecast(study, **chosen))
            return 0
        with stage(study, "instruction_scores", [study.folder / name for name in names], outputs):
            outcome = evaluate_instructions(study, **chosen, cluster=options.ray)
    for line in _said(study, outcome, include_unaccepted=options.include_unaccepted):
        print(line)
    if outcome.failures:
        raise ServiceError(
            f"{len(outcome.failures)} of {len(chosen_models(study, options.models))} models failed:"
            f" {', '.join(outcome.failures)} (the reason stands above); run the same command again to go on"
        )
    return 0


def _said(study: Study, outcome: PromptRunOutcome, *, include_unaccepted: bool) -> list[str]:
    lines = [
        f"{study.name}: {count(outcome.n_scored, 'score')} made, {outcome.n_stored} were there;"
        f" {count(outcome.encoded, 'text')} encoded for"
        f" {outcome.n_prompted} asked -> {study.folder / SCORES}"
    ]
    wordings = {unit.wanted.prompt_id: unit for unit in outcome.units if unit.wanted.text}
    reasons = Counter(unit.reason for unit in wordings.values() if unit.reason)
    lines.append(f"  wordings: {len(wordings) - reasons.total()} scored, {reasons.total()} not")
    lines += [f"    {number} {reason}" for reason, number in reasons.most_common()]
    if include_unaccepted:
        unaccepted = sum(unit.wanted.label != "acceptable" for unit in wordings.values())
        lines.append(f"  {unaccepted} that people did not accept are among them, with their labels")
    if any(unit.wanted.simulated for unit in wordings.values()):
        lines.append("  labels are simulated: they say nothing of the wordings")
    if study.acceptance.min_raters < 2 and not unlabelled(study):
        lines.append("  a single pass: one rater's label decides, and there is no agreement to be told")
    return lines
