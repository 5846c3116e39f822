"""`plumbline errors`: the options of the command that shows error rates (`generation.output_tables`)."""

from __future__ import annotations

import argparse

from plumbline import cli

BY = ("transformation", "dataset", "language")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--study` (several are allowed), `--exports` and `--csv`."""
    parser.add_argument(
        "--study", required=True, action="append", metavar="FILE", help="a study; repeat to report on several"
    )
    parser.add_argument("--exports", metavar="DIR", help="the folder of the records (default: exports/)")
    parser.add_argument("--csv", metavar="FILE", type=cli.local, help="also write the table to this file, unrounded")


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline errors",
        description="Show how often a study's generator, and each candidate, makes each type of error (HTEB, Table 5).",
        epilog="example: plumbline errors --study studies/demo.yaml",
    )
    add_options(parser)
    parser.add_argument("--by", choices=BY, default="", help="split the rates by this, one row for each value")
    parser.add_argument(
        "--after-retries",
        action="store_true",
        help="count the errors of the last attempts instead of the first attempts",
    )
    return cli.handler("generation.output_tables:show_error_rates")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
