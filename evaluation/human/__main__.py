"""`plumbline human-report`: the options of the report on people and models on the same items."""

from __future__ import annotations

import argparse

from plumbline import cli

PROGRAM = "plumbline human-report"
_EXAMPLE = f"""example: {PROGRAM} --study studies/human.yaml

HUME's tables from published scores (model, revision, task, language, metric, value), without running anything:

  {PROGRAM} --scores scores.parquet --agreement agreement.json --out report
"""


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog=PROGRAM,
        description="Write the report on people and models on the same items: tables (CSV, Markdown, LaTeX), figures"
        " (SVG, PNG) and one HTML page.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", metavar="FILE", help="an evaluated human study")
    source.add_argument("--scores", type=cli.local, metavar="FILE", help="published scores of people and models")
    add = parser.add_argument
    add("--exports", metavar="DIR", help="with --study: the folder of its records (default: exports/)")
    add("--agreement", type=cli.local, metavar="FILE", help="with --scores: items and raters' agreement by task (JSON)")
    add("--models", type=cli.names("model"), default=(), metavar="NAMES",
        help="with --scores: only these models, separated by commas")  # fmt: skip
    add("--out", metavar="FOLDER", help="with --scores: the folder for the report (default: report_human)")
    options = parser.parse_args()
    run = "published:report_scores" if options.scores else "report:report_study"
    return cli.handler(f"evaluation.human.{run}")(options)


if __name__ == "__main__":
    cli.run(main)
