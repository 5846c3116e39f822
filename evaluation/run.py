"""`plumbline evaluate`: the options of the command that scores a study (`evaluation.scoring`)."""

from __future__ import annotations

from plumbline import cli


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline evaluate",
        description="Score a study's models on the original and on the accepted transformations of its data sets."
        " You can stop it at any time; run it again to continue.",
        epilog="example: plumbline evaluate --study studies/demo.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument(
        "--models", nargs="+", metavar="NAME", default=[], help="evaluate only these models of the study"
    )
    parser.add_argument(
        "--include-rejected", action="store_true", help="also score rejected transformations, marked as such everywhere"
    )
    parser.add_argument("--ray", metavar="ADDRESS", default="", help="run on a Ray cluster: `auto` or its address")
    parser.add_argument(
        "--dry-run", action="store_true", help="show how much is left to encode and how long it takes; score nothing"
    )
    options = parser.parse_args()
    return cli.handler("evaluation.scoring:score_study")(options)


if __name__ == "__main__":
    cli.run(main)
