"""The command `board`: models ranked on any benchmark, in the form of MMTEB's Tables 2 and 18."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evaluation.benchmarks.options import Commands, add_command, add_run_options, add_source_options, out_of
from plumbline import cli
from plumbline.errors import DataError, StudyError

if TYPE_CHECKING:
    from evaluation.benchmarks.board import RankedModels

_EXAMPLE = """example: python -m evaluation.benchmarks board --from "MTEB(eng, v2)" --gaps models

From a table of scores, or from the original scores of a study:

  python -m evaluation.benchmarks board --from scores.csv --out exports/mine/board
  python -m evaluation.benchmarks board --from studies/mine.yaml
"""


def add_board_command(commands: Commands) -> None:
    """`board`, with its options."""
    parser = add_command(
        commands,
        "board",
        _board,
        "models ranked on a benchmark: Borda counts, means by type, and how sure each rank is",
        "Rank models by Borda count over a benchmark's tasks, with means over tasks and over types, and\n"
        "95% intervals: which models can be told apart.",
        _EXAMPLE,
    )
    add_source_options(parser, "; or a study's file")
    add = parser.add_argument
    add("--gaps", choices=("keep", "models", "tasks", "fewest"), default="keep",
        help="with missing scores: rank as mteb does, no points for them (default: keep); or leave out models, tasks,"
        " or whichever lacks most")  # fmt: skip
    add("--exports", metavar="DIR", help="with a study: where its records are (default: exports/)")
    add_run_options(parser, "the tasks that are drawn anew", "board")


def _board(options: argparse.Namespace) -> int:
    out = out_of(options, "board")
    from evaluation.benchmarks import board  # noqa: PLC0415 (what takes long to import comes after --help)

    ranked = _of_study(options) if options.source.endswith((".yaml", ".yml")) else _of_scores(options)
    if not len(ranked.table):
        raise DataError(f"--from {options.source}: no model has a score; nothing can be ranked")
    shown = ranked.exhibit()
    board.write(out, ranked, options.source)
    print(shown.caption)
    cells = [list(map(str, row)) for row in shown.printed.itertuples(index=False)]
    print(cli.columns(list(map(str, shown.printed.columns)), cells))
    print("\n".join(["", *(f"- {note}" for note in shown.notes)]))
    print(f"-> {out}: {board.NAME}.csv, .md, .tex, {board.SUMMARY}")
    return 0


def _of_scores(options: argparse.Namespace) -> RankedModels:
    from evaluation.benchmarks import board  # noqa: PLC0415
    from evaluation.benchmarks.matrix import closed  # noqa: PLC0415
    from evaluation.benchmarks.options import read  # noqa: PLC0415

    scores, facts, _ = read(options)
    return board.of_scores(closed(scores, options.gaps), facts, options.seed)


def _of_study(options: argparse.Namespace) -> RankedModels:
    from evaluation.benchmarks import board  # noqa: PLC0415
    from plumbline.study import load_study  # noqa: PLC0415

    unfit = {"--benchmark": options.benchmark, "--languages": options.languages, "--tasks": options.tasks}
    if named := [name for name, values in unfit.items() if values]:
        raise StudyError(f"{named[0]} is not for a study, whose data sets are the tasks; leave it out")
    return board.of_study(load_study(options.source, options.exports), options.gaps, options.seed)
