"""`plumbline sensitivity`: the options to score models under wordings, and of `report`, what came out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from plumbline import cli

PROGRAM = "plumbline sensitivity"
_REPORT = """example: plumbline sensitivity report --study studies/instructions.yaml

Of scores that somebody published (a long table: model, task, prompt_id, score, ...; or a folder of mteb's results with
experiments/), without running anything:

  plumbline sensitivity report --scores scores.parquet --out report
  plumbline sensitivity report --scores ~/.cache/mteb --part STS22.v2=test/en
"""


def main() -> int:
    """The command line: `report`, or the evaluation."""
    return report(sys.argv[2:]) if sys.argv[1:2] == ["report"] else _evaluate()


def _evaluate() -> int:
    parser = cli.Parser(
        prog=PROGRAM,
        description="Score a study's models under the wordings that people accepted, under the model's own prompt and"
        " under none. Can be stopped and run again at any time: it goes on.",
        epilog=(
            f"example: {PROGRAM} --study studies/instructions.yaml --dry-run\n{PROGRAM} report --help: what came out"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--models", nargs="+", metavar="NAME", default=[], help="only these of the study's models")
    add("--include-unaccepted", action="store_true", help="score what people did not accept, too; rows carry the label")
    add("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    add("--dry-run", action="store_true", help="show what is left to score, and what it takes")
    return cli.handler("evaluation.instructions.run:score_wordings")(parser.parse_args())


def report(arguments: Sequence[str]) -> int:
    """The command line after the word `report`."""
    parser = cli.Parser(
        prog=f"{PROGRAM} report",
        description="Write what prompts do to scores: distributions, inflation, boards, the recommended score.",
        epilog=_REPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    add("--tasks", type=cli.names("task, such as STS14,STS15"), default=(), metavar="NAMES",
        help="these tasks alone, such as STS14,STS15")  # fmt: skip
    add("--part", action="append", type=_part, default=[], metavar="TASK=SPLIT/SUBSET",
        help="of a task with several parts this one (default: the one with most scores); may be repeated")  # fmt: skip
    add("--source", choices=("machine", "human", "all"), default="",
        help="whose wordings are analysed (default: machines', where there are any)")  # fmt: skip
    add("--defaults", choices=("matched", "published"), default="matched",
        help="the model's own prompt as it was scored in the same run, or as somebody published it")  # fmt: skip
    add("--holes", choices=("mteb", "present", "complete"), default="mteb",
        help="boards where a default is missing: no points (mteb), mean over present tasks, or complete tasks"
        )  # fmt: skip
    add("--seed", type=cli.seed, metavar="N", help="of resamples and draws (default: the study's, or 1337)")
    return cli.handler("evaluation.instructions.page:report_wordings")(parser.parse_args(arguments))


def _part(value: str) -> tuple[str, tuple[str, str]]:
    task, _, part = value.partition("=")
    split, _, subset = part.partition("/")
    if not (task and split and subset):
        raise argparse.ArgumentTypeError(f"{value!r} is no TASK=SPLIT/SUBSET, such as STS22.v2=test/en")
    return task, (split, subset)


if __name__ == "__main__":
    cli.run(main)
