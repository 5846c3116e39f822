"""`plumbline errors`: the options of the command that shows error rates (`generation.output_tables`)."""

from __future__ import annotations

import argparse

from plumbline import cli

BY = ("transformation", "dataset", "language")


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--study` (several are allowed), `--exports` and `--csv`."""
    parser.add_argument(
        "--study", required=True, action="append", metavar="FILE", help="a study; repeat to report on several"
    )
    parser.add_argument("--exports", metavar="DIR", help="where records are written (default: exports/)")
    parser.add_argument("--csv", metavar="FILE", type=cli.local, help="also write the table to this file, unrounded")


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog="plumbline errors",
        description="How often the generator of a study, and each candidate, makes which error (HTEB, Table 5).",
        epilog="example: plumbline errors --study studies/demo.yaml",
    )
    add_options(parser)
    parser.add_argument("--by", choices=BY, default="", help="add a row for each of these")
    parser.add_argument(
        "--after-retries", action="store_true", help="count errors of the last attempts, not of the first"
    )
    return cli.handler("generation.output_tables:show_error_rates")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
