"""`python -m evaluation.benchmarks COMMAND`: smaller benchmarks, whether tasks are worth having, how models rank."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from evaluation.benchmarks.board_command import add_board_command
from evaluation.benchmarks.quality.command import add_check_command
from evaluation.benchmarks.select_command import EXAMPLE, add_select_command
from evaluation.benchmarks.smaller.command import add_shrink_command
from plumbline import cli
from plumbline.commands import as_called


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog=as_called("python -m evaluation.benchmarks"),
        description="Build benchmarks: choose tasks, check one, make one smaller, rank models.",
        epilog=as_called(EXAMPLE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_select_command(commands)
    add_check_command(commands)
    add_shrink_command(commands)
    add_board_command(commands)
    options = parser.parse_args()
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


if __name__ == "__main__":
    cli.run(main)
