"""`plumbline sensitivity`: the options to score models under wordings, and of `report` on the results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from plumbline import cli

PROGRAM = "plumbline sensitivity"
_REPORT = """example: plumbline sensitivity report --study studies/instructions.yaml

On published scores (a long table: model, task, prompt_id, score, ...; or a folder of mteb's results with experiments/),
without running anything:

  plumbline sensitivity report --scores scores.parquet --out report
  plumbline sensitivity report --scores ~/.cache/mteb --part STS22.v2=test/en
"""


def main() -> int:
    """Parse the command line and run `report` or the evaluation."""
    return report(sys.argv[2:]) if sys.argv[1:2] == ["report"] else _evaluate()


def _evaluate() -> int:
    parser = cli.Parser(
        prog=PROGRAM,
        description="Score a study's models under the wordings that people accepted, under the model's own prompt and"
        " under no prompt. You can stop it at any time; run it again to continue.",
        epilog=(
            f"example: {PROGRAM} --study studies/instructions.yaml --dry-run\n{PROGRAM} report --help: report the"
            " results"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--models", nargs="+", metavar="NAME", default=[], help="only these models of the study")
    add(
        "--include-unaccepted",
        action="store_true",
        help="also score wordings that people did not accept; their rows show the label",
    )
    add("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    add("--dry-run", action="store_true", help="show how much is left to score and encode, and score nothing")
    return cli.handler("evaluation.instructions.run:score_wordings")(parser.parse_args())


def report(arguments: Sequence[str]) -> int:
    """Parse the command line after the word `report` and run the command."""
    parser = cli.Parser(
        prog=f"{PROGRAM} report",
        description="Write the report on prompts and scores: distributions, inflation, boards, the recommended score.",
        epilog=_REPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", metavar="FILE", help="an evaluated study")
    source.add_argument(
        "--scores", type=cli.no_address, metavar="WHAT", help="a long table, or a folder of mteb's results"
    )
    add("--exports", metavar="DIR", help="with --study: the folder of its records (default: exports/)")
    what = "with --scores: a long table by item (model, task, prompt_id, item, score)"
    add("--items", type=cli.no_address, metavar="FILE", help=what)
    add("--out", metavar="FOLDER", help="folder for the report (default: the study's folder, or report_instructions)")
    add("--tasks", type=cli.names("task, such as STS14,STS15"), default=(), metavar="NAMES",
        help="only these tasks, such as STS14,STS15")  # fmt: skip
    add("--part", action="append", type=_part, default=[], metavar="TASK=SPLIT/SUBSET",
        help="for a task with several parts: the part to analyse (default: most scores); repeatable")  # fmt: skip
    add("--source", choices=("machine", "human", "all"), default="",
        help="source of the wordings to analyse (default: machine if it wrote any, else all)")  # fmt: skip
    add("--defaults", choices=("matched", "published"), default="matched",
        help="scores of the models' own prompts: from the same run, or as published")  # fmt: skip
    add("--holes", choices=("mteb", "present"), default="mteb",
        help="missing defaults on boards: no points (mteb), or the mean over present tasks"
        )  # fmt: skip
    add(
        "--seed", type=cli.seed, metavar="N", help="random seed for resamples and draws (default: the study's, or 1337)"
    )
    return cli.handler("evaluation.instructions.page:report_wordings")(parser.parse_args(arguments))


def _part(value: str) -> tuple[str, tuple[str, str]]:
    task, _, part = value.partition("=")
    split, _, subset = part.partition("/")
    if not (task and split and subset):
        raise argparse.ArgumentTypeError(f"{value!r} is not TASK=SPLIT/SUBSET, such as STS22.v2=test/en")
    return task, (split, subset)


if __name__ == "__main__":
    cli.run(main)
