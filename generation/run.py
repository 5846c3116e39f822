"""`plumbline generate`: the options of the command that makes a study's outputs (`generation.production`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from plumbline import cli

if TYPE_CHECKING:
    from generation.unit import Shard


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline generate",
        description="Transform every text of a study. You can stop it at any time; run it again to continue.",
        epilog="example: plumbline generate --study studies/demo.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument(
        "--generator", metavar="MODEL", help="use one of the study's `candidates` instead of its generator"
    )
    parser.add_argument(
        "--again", action="store_true", help="ask again for failed outputs too, not only for unanswered ones"
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="allow transformations that are functions, which run code"
    )
    parser.add_argument("--dry-run", action="store_true", help="show how much work is left, and generate nothing")
    parser.add_argument(
        "--rate", type=cli.positive, metavar="N", help="with --dry-run: requests per second, to estimate the hours"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    how.add_argument(
        "--shard",
        metavar="K/N",
        type=as_shard,
        help="transform only the K-th of N parts of the texts, as in an array job of Slurm (docs/howto/slurm.md)",
    )
    return cli.handler("generation.production:run")(parser.parse_args())


def as_shard(value: str) -> Shard:
    """Return the shard of an option such as `3/16`."""
    from generation.unit import MOST, Shard  # noqa: PLC0415 (`--help` does not need it)

    number, _, of = value.partition("/")
    if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST:
        return Shard(int(number), int(of))
    raise argparse.ArgumentTypeError(f"{value!r} is not a shard K/N, such as 3/16, with N up to {MOST}")


if __name__ == "__main__":
    cli.run(main)
