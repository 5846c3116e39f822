"""`plumbline bundle`: the options of the commands on bundles."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from plumbline import cli

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EXAMPLE = """example: plumbline bundle inspect hteb-english-v1.zip

  plumbline bundle export --study studies/hteb_english.yaml --out hteb-english-v1.zip
  plumbline bundle evaluate hteb-english-v1.zip --model intfloat/multilingual-e5-small
"""


def add_bundle_actions(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `bundle`."""
    parser.description = (
        "Export the accepted transformations of a study, with the ratings behind them, as one file (a\n"
        "bundle) that others can check and evaluate on."
    )
    parser.epilog, parser.formatter_class = _EXAMPLE, argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = _command(
        commands, "export", "export_study", "write a study's bundle", "--study studies/demo.yaml --out demo.zip"
    )
    cli.add_study_options(export)
    export.add_argument("--out", required=True, metavar="FILE", help="the file to write, such as demo.zip")
    export.add_argument("--comments", action="store_true", help="include raters' comments and free answers")
    _add_bundle(_command(commands, "inspect", "inspect", "check a bundle and show its contents", "demo.zip"))
    example = "demo.zip --model intfloat/multilingual-e5-small"
    evaluate = _command(commands, "evaluate", "evaluate", "score models on the accepted transformations", example)
    _add_bundle(evaluate)
    add = evaluate.add_argument
    models = "models to score: names on the hub, names of the maker's models, or folders"
    add("--model", nargs="+", default=[], metavar="NAME", help=models)
    add("--study", type=cli.local, metavar="FILE", help="your study, whose `evaluation.models` are scored")
    add("--exports", metavar="DIR", help="the folder for records (default: exports/)")
    copies = "your copies of data sets whose texts may not be shared"
    add("--data", nargs="+", default=[], metavar="NAME=FILE", help=copies)
    add("--include-rejected", action="store_true", help="also score rejected transformations, marked as such")
    add("--simulated", action="store_true", help="as a rehearsal, accept simulated ratings")


def _command(commands: Commands, name: str, run: str, text: str, example: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"example: plumbline bundle {name} {example}",
    )
    parser.set_defaults(run=cli.handler(f"evaluation.bundle.commands:{run}"))
    return parser


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=cli.local, metavar="FILE", help="the bundle")
