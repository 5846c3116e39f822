"""The command `report`: what wordings do to scores, from a study's records or from scores that somebody published."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.instructions.scores import ITEMS, SCORES, checked_items, no_items, read_scores, study_scores
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.study.places import place

if TYPE_CHECKING:
    from evaluation.instructions.analysis import Analysis, Settings

_HOLES = ("mteb", "present", "complete")
EXAMPLE = """example: python -m evaluation.instructions report --study studies/instructions.yaml

Of scores that somebody published (a long table: model, task, prompt_id, score, ...; or a folder of mteb's results with
experiments/), without running anything:

  python -m evaluation.instructions report --scores scores.parquet --out report
  python -m evaluation.instructions report --scores ~/.cache/mteb --part STS22.v2=test/en
"""


def report(arguments: Sequence[str]) -> int:
    """The command line after the word `report`."""
    parser = cli.Parser(
        prog=as_called("python -m evaluation.instructions report"),
        description="Write what prompts do to scores: distributions, inflation, boards, the recommended score.",
        epilog=as_called(EXAMPLE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser)
    return run(parser.parse_args(arguments))


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", metavar="FILE", help="an evaluated study")
    source.add_argument(
        "--scores", type=cli.no_address, metavar="WHAT", help="a long table, or a folder of mteb's results"
    )
    add("--exports", metavar="DIR", help="with --study: where its records are (default: exports/)")
    what = "with --scores: a long table by item (model, task, prompt_id, item, score)"
    add("--items", type=cli.no_address, metavar="FILE", help=what)
    add("--out", metavar="FOLDER", help="where the report goes (default: the study's folder, or report_instructions)")
    add("--tasks", type=_names, default=(), metavar="NAMES", help="these tasks alone, such as STS14,STS15")
    add(
        "--part",
        action="append",
        type=_part,
        default=[],
        metavar="TASK=SPLIT/SUBSET",
        help="of a task with several parts this one (default: the one with most scores); may be repeated",
    )
    add(
        "--source",
        choices=("machine", "human", "all"),
        default="",
        help="whose wordings are analysed (default: machines', where there are any)",
    )
    add(
        "--defaults",
        choices=("matched", "published"),
        default="matched",
        help="the model's own prompt as it was scored in the same run, or as somebody published it",
    )
    add(
        "--holes",
        choices=_HOLES,
        default="mteb",
        help="boards where a default is missing: no points (mteb), mean over present tasks, or complete tasks",
    )
    add("--seed", type=int, default=None, metavar="N", help="of resamples and draws (default: the study's, or 1337)")


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
    from evaluation.instructions.comparable import Choice  # noqa: PLC0415

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

        from evaluation.instructions.mteb_folder import of_folder  # noqa: PLC0415

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


def _names(value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(",") if part.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"{value!r} names no task, such as STS14,STS15")
    return names


def _part(value: str) -> tuple[str, tuple[str, str]]:
    task, _, part = value.partition("=")
    split, _, subset = part.partition("/")
    if not (task and split and subset):
        raise argparse.ArgumentTypeError(f"{value!r} is no TASK=SPLIT/SUBSET, such as STS22.v2=test/en")
    return task, (split, subset)
