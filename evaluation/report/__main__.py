"""`plumbline scores-report`: the options of the command that writes a study's report (`evaluation.report.page`)."""

from __future__ import annotations

from plumbline import cli


def main() -> int:
    """Parse the command line and write the report."""
    parser = cli.Parser(
        prog="plumbline scores-report",
        description="Write an evaluated study's tables (CSV, Markdown, LaTeX), figures (SVG, PNG) and one HTML page.",
        epilog="example: plumbline scores-report --study studies/demo.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument(
        "--baseline", metavar="MODEL", default="", help="the model that others are compared with (default: the first)"
    )
    parser.add_argument(
        "--compare",
        metavar="FILE",
        help="an evaluated study with another generator, to compare with (HTEB, Tables 22 and 23)",
    )
    parser.add_argument(
        "--prompts",
        nargs="+",
        metavar="FILE",
        default=[],
        help="evaluated studies with the same generator and other `prompts` (PTEB, Table 12)",
    )
    parser.add_argument(
        "--translation", nargs=2, metavar="NAME", help="a data set and its translation (HTEB, Table 16)"
    )
    parser.add_argument(
        "--multilingual",
        nargs="+",
        metavar="MODEL",
        default=[],
        help="models in the second group of the --translation table",
    )
    return cli.handler("evaluation.report.page:report_study")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
