"""`plumbline bundle`: the options of the commands on bundles."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from plumbline import cli

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EXAMPLE = """example: plumbline bundle inspect hteb-english-v1.plumb

  plumbline bundle export --study studies/hteb_english.yaml --out hteb-english-v1.plumb
  plumbline bundle evaluate hteb-english-v1.plumb --model intfloat/multilingual-e5-small
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
        commands, "export", "export_study", "write a study's bundle", "--study studies/demo.yaml --out demo.plumb"
    )
    cli.add_study_options(export)
    export.add_argument(
        "--out", required=True, metavar="FILE", help="the file to write, such as demo.plumb, or a folder"
    )
    formats = (
        "bundle: one file; parquet: a folder of Parquet files with a data card, for the `datasets` library; mteb:"
        " a folder of data sets and tasks for mteb (default: bundle)"
    )
    export.add_argument("--format", choices=("bundle", "parquet", "mteb"), default="bundle", help=formats)
    export.add_argument("--comments", action="store_true", help="include raters' comments and free answers")
    inspect = _command(commands, "inspect", "inspect", "check a bundle and show its contents", "demo.plumb")
    _add_bundle(inspect)
    _add_evaluate(commands)
    text = "write a study with a bundle's pairs, for other people to rate again"
    study = _command(commands, "study", "write_study", text, "demo.plumb --out studies/again.yaml")
    _add_bundle(study)
    out = "the study file to write; the study gets the file's name"
    study.add_argument("--out", required=True, type=cli.local, metavar="FILE", help=out)
    study.add_argument("--exports", metavar="DIR", help="the folder for records (default: exports/)")
    _add_copies(study)
    diff = _command(commands, "diff", "compare", "show how two bundles differ", "first.plumb second.plumb")
    diff.add_argument("bundle", type=cli.local, metavar="FILE", help="the first bundle")
    second = "the second bundle, or a study (.yaml) whose raters rated the pairs again"
    diff.add_argument("other", type=cli.local, metavar="OTHER", help=second)
    diff.add_argument("--exports", metavar="DIR", help="the folder of that study's records (default: exports/)")


def _add_evaluate(commands: Commands) -> None:
    example = "demo.plumb --model intfloat/multilingual-e5-small"
    evaluate = _command(commands, "evaluate", "evaluate", "score models on the accepted transformations", example)
    _add_bundle(evaluate)
    add = evaluate.add_argument
    add(
        "--model",
        nargs="+",
        default=[],
        metavar="NAME",
        help="models to score: names on the hub, names of the maker's models, or folders",
    )
    add("--study", type=cli.local, metavar="FILE", help="your study, whose `evaluation.models` are scored")
    add("--exports", metavar="DIR", help="the folder for records (default: exports/)")
    _add_copies(evaluate)
    add(
        "--beside",
        nargs="+",
        default=[],
        type=cli.local,
        metavar="FOLDER",
        help="folders of other evaluations, whose scores are shown beside these",
    )
    add("--include-rejected", action="store_true", help="also score rejected transformations, marked as such")
    add("--simulated", action="store_true", help="as a rehearsal, accept simulated ratings")


def _add_copies(parser: argparse.ArgumentParser) -> None:
    copies = "your copies of data sets whose texts may not be shared"
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME=FILE", help=copies)


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
    key = "check the signature with this minisign public key (the key, or a file with it)"
    parser.add_argument("bundle", type=cli.local, metavar="FILE", help="the bundle")
    parser.add_argument("--key", metavar="KEY", default="", help=key)
