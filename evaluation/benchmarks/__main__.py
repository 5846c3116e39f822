"""`python -m evaluation.benchmarks COMMAND`: smaller benchmarks, whether tasks are worth having, how models rank.

Options alone: what a command does is imported when it is called.
"""

from __future__ import annotations

import argparse
from typing import TypeAlias

from plumbline import cli

Commands: TypeAlias = "argparse._SubParsersAction[cli.Parser]"

_SELECT = """example: plumbline select --from "MTEB(eng, v2)" --languages eng --budget 10

From a table of scores (a model a row, a task a column; or model, task, score), and with seconds that were measured:

  plumbline select --from scores.csv --gaps fewest --budget 30 minutes --tasks seconds.csv
"""
_CHECK = """example: plumbline check --study studies/demo.yaml --task sample_sts

Tasks of mteb by name, without a study:

  plumbline check --task STSBenchmark Banking77Classification
"""
_SHRINK = """example: plumbline shrink --study studies/demo.yaml --task sample_retrieval
"""
_BOARD = """example: plumbline board --from "MTEB(eng, v2)"

From a folder of mteb's result files, from a table of scores, or from the original scores of a study:

  plumbline board --from results --benchmark "MTEB(eng, v2)"
  plumbline board --from scores.csv --out exports/mine/board
  plumbline board --from studies/mine.yaml
"""


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog="python -m evaluation.benchmarks",
        description="Build benchmarks: choose tasks, check one, make one smaller, rank models.",
        epilog=_SELECT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_select(commands)
    _add_check(commands)
    _add_shrink(commands)
    _add_board(commands)
    options = parser.parse_args()
    return cli.handler(options.run)(options)


def _add_select(commands: Commands) -> None:
    parser = _command(
        commands, "select", "selection_files:select_tasks",
        "tasks that keep a benchmark's ranking of models within a budget",
        "Choose tasks that keep a benchmark's ranking within a budget, judge them on models that had no\n"
        "part in it, and hold them against random selections.",
        _SELECT,
    )  # fmt: skip
    add = parser.add_argument
    add_source_options(parser)
    add("--budget", nargs="+", default=(), metavar=("N", "UNIT"),
        help="so many tasks, texts, characters or minutes (default: as many tasks as MMTEB leaves)")  # fmt: skip
    add("--cover", choices=("language", "type", "none"), default="language",
        help="what must stay: each language within its type (default), each type, or nothing")  # fmt: skip
    add("--keep", nargs="+", default=(), metavar="TASK", help="tasks that stay whatever comes")
    add("--method", choices=("agreement", "backward", "mmteb"), default="agreement",
        help="what is written: for agreement (default), backward to the budget, or where MMTEB stops")  # fmt: skip
    add("--rho", type=float, default=0.8, help="MMTEB's least rank correlation of a task that goes (default: 0.8)")
    add("--mse", type=float, default=0.5, help="its largest error, in variances (default: 0.5)")
    add("--gaps", choices=("refuse", "models", "tasks", "fewest"), default="refuse",
        help="with missing scores: leave out models, tasks, or whichever lacks most (default: refuse)")  # fmt: skip
    add("--held-out", type=_share, default=0.33, metavar="SHARE", help="of models that judge (default: 0.33)")
    _add_run_options(parser, "split, starts and random selections", "selection")
    add("--dry-run", action="store_true", help="say what there is to choose from; choose and write nothing")


def _add_check(commands: Commands) -> None:
    parser = _command(
        commands, "check", "checks:check_tasks",
        "whether tasks are worth having: a table of checks with pass, look or fail",
        "Check a study's tasks (its data sets, and what accepted transformations made of them) or mteb's.\n"
        "A check that does not pass is a question to a person, not a verdict on the task.",
        _CHECK,
    )  # fmt: skip
    add = parser.add_argument
    add("--study", metavar="FILE", help="the study whose tasks are checked, for example studies/demo.yaml")
    add("--exports", metavar="DIR", help="where its records are: a folder or an address (default: exports/)")
    add("--task", nargs="+", default=[], metavar="NAME", help="these data sets alone; without --study tasks of mteb")
    add("--models", nargs=2, default=[], metavar="NAME",
        help="two models, whose difference is looked at (default: the study's first two with scores)")  # fmt: skip
    add("--question", default="", metavar="NAME",
        help="of a study that had the items judged: the question that asked people for the gold")  # fmt: skip
    _add_run_options(parser, "resampling", "the study's records, quality/; or ./quality")


def _add_shrink(commands: Commands) -> None:
    parser = _command(
        commands, "shrink", "smaller_files:shrink",
        "a smaller data set that ranks models as before: clustering and retrieval",
        "Make a data set smaller, as MMTEB does: documents of clustering are drawn; of retrieval\n"
        "queries are drawn, and passages are kept that models rank high or people judged.",
        _SHRINK,
    )  # fmt: skip
    cli.add_study_options(parser)
    add = parser.add_argument
    add("--task", required=True, metavar="NAME", help="the study's data set that is made smaller")
    add("--documents", type=cli.count, metavar="N", help="clustering: so many documents (default: 4%% of them)")
    add("--draw", choices=("stratified", "uniform"),
        help="clustering: documents by label (default), or whatever their label")  # fmt: skip
    add("--replacement", action="store_true",
        help="clustering: documents may be drawn more than once (default: without replacement)")  # fmt: skip
    add("--queries", type=cli.count, default=None, metavar="N", help="retrieval: at most so many (default: 1000)")
    add("--depth", type=cli.count, metavar="N",
        help="retrieval: passages that each model gives for each query (default: 250)")  # fmt: skip
    add("--pool", nargs="+", default=[], metavar="MODEL",
        help="retrieval: models that give them: bm25, and the study's (default: all of the study's)")  # fmt: skip
    _add_run_options(parser, "what is drawn, and of resampling", "NAME-small")


def _add_board(commands: Commands) -> None:
    parser = _command(
        commands, "board", "board:rank_models",
        "models ranked on a benchmark: Borda counts, means by type, and how sure each rank is",
        "Rank models by Borda count over a benchmark's tasks, with means over tasks and over types, and\n"
        "95% intervals: which models can be told apart.",
        _BOARD,
    )  # fmt: skip
    add_source_options(parser, "; or a study's file")
    add = parser.add_argument
    add("--gaps", choices=("models", "tasks", "fewest", "keep"), default="models",
        help="with missing scores: leave out models (default), tasks, or whichever lacks most; or keep them and give"
        " no points for what is missing, as mteb does")  # fmt: skip
    add("--exports", metavar="DIR", help="with a study: where its records are (default: exports/)")
    _add_run_options(parser, "the tasks that are drawn anew", "board")


def _command(
    commands: Commands, name: str, run: str, words: str, description: str, example: str
) -> argparse.ArgumentParser:
    """A command that the function `run` of this package carries out; `words` stand in the list of all commands."""
    parser = commands.add_parser(
        name,
        help=words,
        description=description,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=f"evaluation.benchmarks.{run}")
    return parser


def add_source_options(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Where scores come from, and which of them are taken; `more` is what else may be named."""
    add = parser.add_argument
    what = "scores: a benchmark (from mteb's result cache), a folder of mteb's result files, or a table"
    add("--from", dest="source", type=cli.no_address, required=True, metavar="WHAT", help=what + more)
    add("--benchmark", default="", metavar="NAME", help="with a folder or a table: take the tasks of this benchmark")
    add("--languages", type=_list, default=(), metavar="CODES",
        help="tasks and subsets in these alone, such as dan,swe")  # fmt: skip
    add("--tasks", type=cli.no_address, metavar="FILE",
        help="a table: task, and type, languages, texts, characters or seconds")  # fmt: skip


def _add_run_options(parser: argparse.ArgumentParser, drawn: str, out: str) -> None:
    """The seed of what is `drawn`, and the folder for the files (`out`: what it is without the option)."""
    parser.add_argument("--seed", type=cli.seed, default=1337, metavar="N", help=f"of {drawn} (default: 1337)")
    parser.add_argument("--out", metavar="FOLDER", help=f"where the files go (default: {out})")


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _share(value: str) -> float:
    number = cli.positive(value)
    if number >= 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a share between 0 and 1")
    return number


if __name__ == "__main__":
    cli.run(main)
