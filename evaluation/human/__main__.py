"""`plumbline human-report`: the options of the report on people and models on the same items."""

from __future__ import annotations

import argparse

from plumbline import cli

PROGRAM = "plumbline human-report"


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog=PROGRAM,
        description="Write the report on people and models on the same items: tables (CSV, Markdown, LaTeX), figures"
        " (SVG, PNG) and one HTML page.",
        epilog=f"example: {PROGRAM} --study studies/human.yaml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cli.add_study_options(parser)
    return cli.handler("evaluation.human.report:report_study")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
