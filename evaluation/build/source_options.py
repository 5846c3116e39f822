"""The options that say which scores are read."""

from __future__ import annotations

import argparse


def add_source_options(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Where scores come from, and which of them are taken; `more` is what else may be named."""
    add = parser.add_argument
    what = "scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table"
    add("--from", dest="source", required=True, metavar="WHAT", help=what + more)
    add("--benchmark", default="", metavar="NAME", help="with a folder or a table: take the tasks of this benchmark")
    add(
        "--languages", type=_list, default=(), metavar="CODES", help="tasks and subsets in these alone, such as dan,swe"
    )
    add("--tasks", metavar="FILE", help="a table: task, and type, languages, texts, characters or seconds")


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
