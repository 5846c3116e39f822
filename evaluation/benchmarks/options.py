"""The options of the commands on benchmarks: `plumbline select`, `check`, `shrink` and `board`."""

from __future__ import annotations

import argparse

from plumbline import cli

_SELECT = """example: plumbline select --from "MTEB(eng, v2)" --languages eng --budget 10

From a table of scores (a model a row, a task a column; or model, task, score), with measured seconds:

  plumbline select --from scores.csv --gaps fewest --budget 30 minutes --tasks seconds.csv
"""
_CHECK = """example: plumbline check --study studies/demo.yaml --task sample_sts

Tasks of mteb by name, without a study:

  plumbline check --task STSBenchmark Banking77Classification
"""
_SHRINK = """example: plumbline shrink --study studies/demo.yaml --task sample_retrieval
"""
_BOARD = """example: plumbline board --from "MTEB(eng, v2)"

From a folder of mteb's result files, or from a table of scores:

  plumbline board --from results --benchmark "MTEB(eng, v2)"
  plumbline board --from scores.csv --out exports/mine/board
"""


def select(parser: argparse.ArgumentParser) -> None:
    """Add the options of `select`."""
    parser.description = (
        "Choose tasks that keep a benchmark's ranking within a budget, judge the choice on held-out\n"
        "models, and compare it with random selections."
    )
    parser.epilog, parser.formatter_class = _SELECT, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add_source_options(parser)
    add("--budget", nargs="+", default=(), metavar=("N", "UNIT"),
        help="maximum number of tasks, texts, characters or minutes (default: as many tasks as MMTEB's"
        " thresholds leave)")  # fmt: skip
    add("--cover", choices=("language", "type", "none"), default="language",
        help="coverage required: each language within its task type (default), each task type, or none")  # fmt: skip
    add("--keep", nargs="+", default=(), metavar="TASK", help="tasks that the selection must contain")
    add("--method", choices=("agreement", "mmteb"), default="agreement",
        help="selection to write: best agreement (default), or MMTEB's backward selection")  # fmt: skip
    add("--rho", type=float, default=0.8, help="MMTEB's lowest rank correlation for removing a task (default: 0.8)")
    add("--mse", type=float, default=0.5,
        help="MMTEB's limit for removing a task: the mean squared error of its predicted scores, divided by the"
        " scores' variance over models (default: 0.5)")  # fmt: skip
    add("--gaps", choices=("refuse", "models", "tasks", "fewest"), default="refuse",
        help="if scores are missing: leave out models, tasks, or whichever lacks most scores (default:"
        " refuse)")  # fmt: skip
    add(
        "--held-out",
        type=_share,
        default=0.33,
        metavar="SHARE",
        help="share of models held out to judge the selection (default: 0.33)",
    )
    _add_run_options(parser, "the split of models, the starts of the search and random selections", "selection")


def check(parser: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    parser.description = (
        "Check a study's tasks (its data sets and their accepted transformations) or mteb's tasks.\n"
        "A check that does not pass asks a person to review the task; it is not a verdict on the task."
    )
    parser.epilog, parser.formatter_class = _CHECK, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--study", metavar="FILE", help="the study whose tasks are checked, for example studies/demo.yaml")
    add("--exports", metavar="DIR", help="folder or address of its records (default: exports/)")
    add("--task", nargs="+", default=[], metavar="NAME", help="only these data sets; without --study, tasks of mteb")
    add("--out", metavar="FOLDER",
        help="the folder for the files (default: quality/ in the folder of the study's records; without a study,"
        " ./quality)")  # fmt: skip


def shrink(parser: argparse.ArgumentParser) -> None:
    """Add the options of `shrink`."""
    parser.description = (
        "Make a data set smaller, as MMTEB does: for clustering, draw documents; for retrieval, draw\n"
        "queries, and keep the passages that models rank high or people judged."
    )
    parser.epilog, parser.formatter_class = _SHRINK, argparse.RawDescriptionHelpFormatter
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--task", required=True, metavar="NAME", help="the study's data set to make smaller")
    add("--documents", type=cli.count, metavar="N", help="clustering: number of documents (default: 4%% of them)")
    add("--draw", choices=("stratified", "uniform"),
        help="clustering: draw documents by label (default), or regardless of labels")  # fmt: skip
    add(
        "--queries",
        type=cli.count,
        default=None,
        metavar="N",
        help="retrieval: maximum number of queries (default: 1000)",
    )
    add("--depth", type=cli.count, metavar="N",
        help="retrieval: number of passages of each model for each query (default: 250)")  # fmt: skip
    add("--pool", nargs="+", default=[], metavar="MODEL",
        help="retrieval: models that rank passages, by name, or bm25 (default: all models of the study)")  # fmt: skip
    _add_run_options(parser, "drawing and resampling", "NAME-small")


def board(parser: argparse.ArgumentParser) -> None:
    """Add the options of `board`."""
    parser.description = (
        "Rank models by Borda count over a benchmark's tasks, with means over tasks and over types, and\n"
        "95% intervals that show which models differ."
    )
    parser.epilog, parser.formatter_class = _BOARD, argparse.RawDescriptionHelpFormatter
    add_source_options(parser)
    add = parser.add_argument
    add("--gaps", choices=("models", "tasks", "fewest", "keep"), default="models",
        help="if scores are missing: leave out models (default), tasks, or whichever lacks most scores; or keep all and"
        " give no points for missing scores, as mteb does")  # fmt: skip
    _add_run_options(parser, "resampling tasks", "board")


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the source of scores and their selection."""
    add = parser.add_argument
    text = "source of scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table"
    add("--from", dest="source", type=cli.no_address, required=True, metavar="WHAT", help=text)
    add("--benchmark", default="", metavar="NAME", help="for a folder or a table: use only the tasks of this benchmark")
    add("--languages", type=_list, default=(), metavar="CODES",
        help="only tasks and subsets in these languages, such as dan,swe")  # fmt: skip
    add("--comparable", action="store_true",
        help="leave out scores on another revision of a data set, and by versions of mteb with known faults; a note"
        " names them otherwise")  # fmt: skip
    add("--tasks", type=cli.no_address, metavar="FILE",
        help="table of tasks with the column task and any of type, languages, texts, characters, seconds")  # fmt: skip


def _add_run_options(parser: argparse.ArgumentParser, drawn: str, out: str) -> None:
    """Add `--seed` for what is `drawn`, and `--out` for the folder (`out`: its default)."""
    parser.add_argument(
        "--seed", type=cli.seed, default=1337, metavar="N", help=f"random seed for {drawn} (default: 1337)"
    )
    parser.add_argument("--out", metavar="FOLDER", help=f"the folder for the files (default: {out})")


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _share(value: str) -> float:
    number = cli.positive(value)
    if number >= 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a share between 0 and 1")
    return number
