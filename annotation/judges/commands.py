"""`plumbline judge`: language models rate outputs, and are compared with gold scores and people."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from annotation.human.records import ITEMS, MODEL_ANSWERS, TASKS
from annotation.human.simulated import read_items
from annotation.human.tasks import subject_of
from annotation.judges import annotators, check, gold, select_generator
from annotation.judges.pool import FILE, draw_judged
from annotation.judges.run import forecast, judge, progress_of, questionnaires, read_judgements
from annotation.judges.select_generator import select_files, select_text, selection_record
from annotation.verdicts.evidence import Evidence
from plumbline.cli import Count, Positive, StudyOptions, reads
from plumbline.errors import ServiceError, StudyError
from plumbline.exhibits.table import csv_bytes, write_files
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.words import count


@Parameter(name="*")
@dataclass(frozen=True)
class AskingOptions:
    """Which models are asked, and for what.

    Args:
        judge: Ask only this judge or model of the study (may be repeated; default: all).
        again: Repeat questions with unreadable answers too, not only unanswered ones.
        dry_run: Show how many questions are left to ask, without asking any model.
        rate: With --dry-run: judgements per second, to estimate the hours.
    """

    judge: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = ()
    again: bool = False
    dry_run: bool = False
    rate: Positive | None = None


def run_judges(
    *,
    options: StudyOptions,
    asking: AskingOptions = AskingOptions(),
    generator: Annotated[str, Parameter(metavar="MODEL")] = "",
    outputs: Count = 0,
) -> StudyOptions:
    """Have the study's judges rate outputs, or its models do people's tasks; resumes where it stopped.

    Example: plumbline judge run --study studies/demo.yaml

    Args:
        options: The study.
        asking: The models that are asked.
        generator: Judge the outputs of one of the study's `candidates`, not those of the study's generator.
        outputs: How many outputs of each transformation to rate, the sample's included (default: as many as before, and
            at least twice sample.pairs).
    """
    study = options.load()
    if study.judging.does_tasks:
        if generator:
            raise StudyError(
                f"{study.file}: a study with subject human has no generator outputs; leave out --generator"
            )
        _ask_models(study, asking)
        return options
    if generator:
        study = study.by(study.generator_called(generator))
    if asking.dry_run:
        of_judges, pairs = questionnaires(study, asking.judge), draw_judged(study, outputs, keep=False)
        print(forecast(progress_of(study, of_judges, pairs, study.judgements, again=asking.again), asking.rate))
        return options
    inputs = study.data_files() if not study.judging.transforms else [study.folder / "texts.parquet", study.outputs]
    recorded = [study.resolve(path) for spec in study.judges for path in spec.engine.recordings]
    with stage(study, "judge", [*inputs, *recorded], [study.judgements]):
        done = judge(study, asking.judge, outputs, again=asking.again)
    print(f"{study.name}: judged pairs -> {study.judgements / FILE}")
    for run in done:
        print(f"  {run.line('judgements')}")
    judgements = read_judgements(study, [run.judge for run in done])
    _say_failures(judgements)
    _refuse_failures(judgements)
    return options


def _ask_models(study: Study, asking: AskingOptions) -> None:
    """Have models do people's tasks: ask the unanswered ones, and print the outcome."""
    if asking.dry_run:
        models = annotators.annotators(study, asking.judge, again=asking.again)
        print(forecast(models, asking.rate, "model", "answers"))
        return
    recorded = [study.resolve(path) for spec in subject_of(study).models for path in spec.engine.recordings]
    inputs = [study.folder / name for name in (TASKS, ITEMS, "pairs.parquet")]
    with stage(study, "judge", [*inputs, *recorded], [study.folder / annotators.FOLDER, study.folder / MODEL_ANSWERS]):
        done = annotators.annotate(study, asking.judge, again=asking.again)
    print(f"{study.name}: models' answers -> {study.folder / MODEL_ANSWERS}")
    items, models = read_items(study), annotators.annotators(study, asking.judge)
    for model, outcome in zip(models, done, strict=True):
        print(f"  {outcome.line('answers')}")
        for line in annotators.lines_of(model, items):
            print(f"    {line}")
    _refuse_failures(pd.concat([model.frame() for model in models]), "answer")


def judge_gold(*, options: StudyOptions, asking: AskingOptions = AskingOptions()) -> None:
    """Have judges score pairs that have gold scores, and compare the scores (PTEB).

    Example: plumbline judge gold --study studies/pteb_judges.yaml

    Args:
        options: The study.
        asking: The judges that are asked.
    """
    study = options.load()
    if asking.dry_run:
        questions = gold.gold_questions(study, asking.judge)
        progresses = progress_of(study, *questions, study.folder / gold.FOLDER, again=asking.again)
        print(forecast(progresses, asking.rate))
        return
    outputs = [study.folder / name for name in (gold.PAIRS, gold.FOLDER, gold.FILE)]
    with stage(study, "judge gold", study.data_files(), outputs):
        done = gold.judge_gold(study, asking.judge, again=asking.again)
        rows, judgements = gold.agreement_with_gold(study, asking.judge)
    print(f"{study.name}: pairs with gold scores -> {study.folder / gold.PAIRS}")
    for run in done:
        print(f"  {run.line('judgements')}")
    _say_failures(judgements)
    print(f"\n{gold.gold_text(rows, recorded=any(run.recorded for run in done))}")
    _refuse_failures(judgements)


def choose_generator(
    *,
    options: StudyOptions,
    best: Annotated[Count, Parameter(metavar="K")] = 5,
    question: Annotated[str, Parameter(metavar="QUESTION")] = "",
) -> None:
    """Choose the generator among the study's candidates (HTEB, PTEB).

    Example: plumbline judge select --study studies/hteb_generators.yaml

    Args:
        options: The study.
        best: Compare the K candidates with the lowest error rates (default: 5, as in HTEB).
        question: The question whose scores decide (default: the judges' first question).
    """
    study = options.load()
    folder = study.folder / select_generator.FOLDER
    inputs = [study.folder / name for name in ("texts.parquet", "transformations", "candidates", "judgements")]
    with stage(study, "judge select", inputs, [folder]):
        material = select_generator.read_material(study, best)
        selected = select_generator.choose(material, question)
        write_files(folder, select_files(study.name, selected, selection_record(material, selected)))
    print(f"{select_text(study.name, selected)}\n\nall tables -> {folder}")


def _share(value: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (number := float(value)) <= 1:
            return number
    raise ValueError(f"{value!r} is not a share from 0 to 1")


def check_judges(
    *, options: StudyOptions, epsilon: Annotated[float, reads(_share), Parameter(metavar="SHARE")] = 0.1
) -> StudyOptions:
    """Compare judges with people's ratings.

    Example: plumbline judge check --study studies/demo.yaml

    Args:
        options: The study.
        epsilon: Margin of the alternative annotator test, from 0 to 1: how far a judge's success rate may be below a
            rater's (default: 0.1, for crowd workers).
    """
    study = options.load()
    folder = study.folder / check.FOLDER
    files = [study.folder / name for name in ("pairs.parquet", "ratings.parquet", "looks.json")]
    with stage(study, "judge check", [*files, study.judgements], [folder]):
        checked = check.check(Evidence.whole(study), epsilon)
        write_files(folder, {f"{name}.csv": csv_bytes(table) for name, table in checked.tables.items()})
    print(f"{check.check_text(study.name, checked, study.called)}\nall tables -> {folder}")
    return options


def _say_failures(judgements: pd.DataFrame) -> None:
    """Print the most common reasons why there is no score, each with its judge."""
    failed = judgements[judgements["status"] != "ok"]
    for (name, reason), number in Counter(zip(failed["judge"], failed["reason"], strict=True)).most_common(3):
        print(f"  {number} of {name}: {reason}")
    if len(failed):
        print("  (these have no score; the next run repeats unanswered questions, and with --again failed ones too)")


def _refuse_failures(answers: pd.DataFrame, noun: str = "judgement") -> None:
    """Raise ServiceError if no answer is of use."""
    if len(answers) and not (answers["status"] == "ok").any():
        raise ServiceError(f"none of {count(len(answers), noun)} is usable; the reasons are above")
