"""`plumbline judge`: language models rate outputs, and are compared with gold scores and people."""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from plumbline import cli

if TYPE_CHECKING:
    import pandas as pd


_EXAMPLES = """examples:
  plumbline judge run --study studies/demo.yaml
  plumbline judge gold --study studies/pteb_judges.yaml
  plumbline judge check --study studies/demo.yaml
  plumbline judge select --study studies/hteb_generators.yaml"""


def add_judge_actions(judging: argparse.ArgumentParser) -> None:
    """Add the actions of `judge`, with examples."""
    judging.epilog, judging.formatter_class = _EXAMPLES, argparse.RawDescriptionHelpFormatter
    actions = judging.add_subparsers(metavar="ACTION", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        example = next(line.strip() for line in _EXAMPLES.splitlines() if f"judge {name}" in line)
        added = actions.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        added.set_defaults(run=run)
        cli.add_study_options(added)
        return added

    running = action(
        "run",
        _run,
        "have the study's judges rate outputs, or its models do people's tasks; resumes where it stopped",
    )
    running.add_argument(
        "--generator",
        metavar="MODEL",
        help="judge the outputs of one of the study's `candidates`, not those of the study's generator",
    )
    running.add_argument(
        "--outputs",
        type=cli.count,
        default=0,
        metavar="N",
        help="how many outputs of each transformation to rate, the sample's included (default: as many as before, and"
        " at least twice sample.pairs)",
    )
    _add_asking(running)
    _add_asking(action("gold", _gold, "have judges score pairs that have gold scores, and compare the scores (PTEB)"))
    selecting = action("select", _select, "choose the generator among the study's candidates (HTEB, PTEB)")
    selecting.add_argument(
        "--best",
        type=cli.count,
        default=5,
        metavar="K",
        help="compare the K candidates with the lowest error rates (default: 5, as in HTEB)",
    )
    selecting.add_argument(
        "--question", default="", help="the question whose scores decide (default: the judges' first question)"
    )
    checking = action("check", _check, "compare judges with people's ratings")
    checking.add_argument(
        "--epsilon",
        type=_share,
        default=0.1,
        metavar="SHARE",
        help="margin of the alternative annotator test, from 0 to 1: how far a judge's success rate may be below a"
        " rater's (default: 0.1, for crowd workers)",
    )


def _share(value: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (number := float(value)) <= 1:
            return number
    raise argparse.ArgumentTypeError(f"{value!r} is not a share from 0 to 1")


def _add_asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--judge",
        metavar="NAME",
        action="append",
        default=[],
        help="ask only this judge or model of the study (may be repeated; default: all)",
    )
    parser.add_argument(
        "--again", action="store_true", help="repeat questions with unreadable answers too, not only unanswered ones"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show how many questions are left to ask, without asking any model"
    )
    parser.add_argument(
        "--rate", type=cli.positive, metavar="N", help="with --dry-run: judgements per second, to estimate the hours"
    )


# Imported when a command runs: asking models needs packages of the extra `generation`, other commands do not.
def _run(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    if study.judging.does_tasks:
        from annotation.judges.annotators import annotate_command  # noqa: PLC0415

        return annotate_command(study, options)
    from annotation.judges.pool import FILE, draw_judged  # noqa: PLC0415
    from annotation.judges.run import forecast, judge, progress_of, questionnaires, read_judgements  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415

    if options.generator:
        study = study.by(study.generator_called(options.generator))
    if options.dry_run:
        of_judges, pairs = questionnaires(study, options.judge), draw_judged(study, options.outputs, keep=False)
        print(forecast(progress_of(study, of_judges, pairs, study.judgements, again=options.again), options.rate))
        return 0
    inputs = study.data_files() if not study.judging.transforms else [study.folder / "texts.parquet", study.outputs]
    recorded = [study.resolve(path) for spec in study.judges for path in spec.engine.recordings]
    with stage(study, "judge", [*inputs, *recorded], [study.judgements]):
        done = judge(study, options.judge, options.outputs, again=options.again)
    print(f"{study.name}: judged pairs -> {study.judgements / FILE}")
    for run in done:
        print(f"  {run.line('judgements')}")
    _say_failures(read_judgements(study, [run.judge for run in done]))
    return 0


def _gold(options: argparse.Namespace) -> int:
    from annotation.judges.gold import FILE, FOLDER, PAIRS, gold_questions, gold_text, judge_gold  # noqa: PLC0415
    from annotation.judges.gold import agreement_with_gold as agreement  # noqa: PLC0415
    from annotation.judges.run import forecast, progress_of  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415

    study = cli.study_of(options)
    if options.dry_run:
        questions = gold_questions(study, options.judge)
        print(forecast(progress_of(study, *questions, study.folder / FOLDER, again=options.again), options.rate))
        return 0
    outputs = [study.folder / name for name in (PAIRS, FOLDER, FILE)]
    with stage(study, "judge gold", study.data_files(), outputs):
        done = judge_gold(study, options.judge, again=options.again)
        rows, judgements = agreement(study, options.judge)
    print(f"{study.name}: pairs with gold scores -> {study.folder / PAIRS}")
    for run in done:
        print(f"  {run.line('judgements')}")
    _say_failures(judgements)
    print(f"\n{gold_text(rows, recorded=any(run.recorded for run in done))}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from annotation.judges.check import FOLDER, check, check_text  # noqa: PLC0415
    from annotation.verdicts.evidence import Evidence  # noqa: PLC0415
    from plumbline.exhibits.table import csv_bytes, write_files  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415

    study = cli.study_of(options)
    files = [study.folder / name for name in ("pairs.parquet", "ratings.parquet", "looks.json")]
    with stage(study, "judge check", [*files, study.judgements], [study.folder / FOLDER]):
        checked = check(Evidence.whole(study), options.epsilon)
        write_files(study.folder / FOLDER, {f"{name}.csv": csv_bytes(table) for name, table in checked.tables.items()})
    print(f"{check_text(study.name, checked)}\nall tables -> {study.folder / FOLDER}")
    return 0


def _select(options: argparse.Namespace) -> int:
    from annotation.judges.select_generator import FOLDER, choose, read_material  # noqa: PLC0415
    from annotation.judges.select_report import select_files, select_text, selection_record  # noqa: PLC0415
    from plumbline.exhibits.table import write_files  # noqa: PLC0415
    from plumbline.manifest import stage  # noqa: PLC0415

    study = cli.study_of(options)
    inputs = [study.folder / name for name in ("texts.parquet", "transformations", "candidates", "judgements")]
    with stage(study, "judge select", inputs, [study.folder / FOLDER]):
        material = read_material(study, options.best)
        selected = choose(material, options.question)
        write_files(study.folder / FOLDER, select_files(study.name, selected, selection_record(material, selected)))
    print(f"{select_text(study.name, selected)}\n\nall tables -> {study.folder / FOLDER}")
    return 0


def _say_failures(frame: pd.DataFrame) -> None:
    reasons = Counter(frame.loc[frame["status"] != "ok", "reason"])
    for reason, number in reasons.most_common(3):
        print(f"  {number}: {reason}")
    if reasons:
        print("  (these have no score; the next run repeats unanswered questions, and with --again failed ones too)")
