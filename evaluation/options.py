"""The options of the commands that score and report; nothing that the commands do is imported for them."""

from __future__ import annotations

import argparse

from plumbline import cli

_SENSITIVITY = """example: plumbline sensitivity-report --study studies/instructions.yaml

On published scores (a long table: model, task, prompt_id, score, ...; or a folder of mteb's results with experiments/),
without running anything:

  plumbline sensitivity-report --scores scores.parquet --out report
  plumbline sensitivity-report --scores ~/.cache/mteb --part STS22.v2=test/en
"""


def sensitivity(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sensitivity`."""
    parser.description = (
        "Score a study's models under the wordings that people accepted, under the model's own prompt and"
        " under no prompt. You can stop it at any time; run it again to continue."
    )
    parser.epilog = "example: plumbline sensitivity --study studies/instructions.yaml --dry-run"
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--models", nargs="+", metavar="NAME", default=[], help="only these models of the study")
    add("--include-unaccepted", action="store_true",
        help="also score wordings that people did not accept; their rows show the label")  # fmt: skip
    add("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    add("--dry-run", action="store_true", help="show how much is left to score and encode, and score nothing")


def sensitivity_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sensitivity-report`."""
    parser.description = (
        "Write the report on prompts and scores: distributions, inflation, boards, the recommended score."
    )
    parser.epilog, parser.formatter_class = _SENSITIVITY, argparse.RawDescriptionHelpFormatter
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", metavar="FILE", help="an evaluated study")
    source.add_argument(
        "--scores", type=cli.no_address, metavar="WHAT", help="a long table, or a folder of mteb's results"
    )
    add = parser.add_argument
    add("--exports", metavar="DIR", help="with --study: the folder of its records (default: exports/)")
    add("--out", metavar="FOLDER", help="folder for the report (default: the study's folder, or report_instructions)")
    add("--tasks", type=cli.names, default=(), metavar="NAMES",
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


def _part(value: str) -> tuple[str, tuple[str, str]]:
    task, _, part = value.partition("=")
    split, _, subset = part.partition("/")
    if not (task and split and subset):
        raise argparse.ArgumentTypeError(f"{value!r} is not TASK=SPLIT/SUBSET, such as STS22.v2=test/en")
    return task, (split, subset)
