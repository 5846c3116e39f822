"""`plumbline COMMAND`: send pairs to people, collect ratings, reach verdicts.

A table of commands; a command's module is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from annotation import options
from plumbline import cli
from plumbline.commands import as_named


def _judge(parser: argparse.ArgumentParser) -> None:
    from annotation.judges.commands import add_judge_actions  # noqa: PLC0415 (its options take long to import)

    add_judge_actions(parser)


def _crowd(parser: argparse.ArgumentParser) -> None:
    from annotation.options import add_crowd_actions  # noqa: PLC0415 (likewise)

    add_crowd_actions(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    from annotation.imports.options import add_import_options  # noqa: PLC0415 (likewise)

    add_import_options(parser)


@dataclass(frozen=True)
class _Command:
    """A command: its name, the function that runs it, and its options."""

    name: str
    text: str
    run: str = ""  #: `module:function` of this package; empty if its actions name the functions
    declare: Callable[[argparse.ArgumentParser], None] | None = None  #: adds its options, on first use
    study: bool = True  #: whether it takes a study
    data: bool = True  #: whether it takes the local server's folder
    example: str = "--study studies/demo.yaml"


_COMMANDS = (
    _Command(
        "plan", "compute how many pairs and raters are needed, and their cost", "planning_command:plan_study",
        options.plan,
    ),
    _Command("sample", "draw the pairs or items that people rate", "campaign_commands:sample", options.sample),
    _Command(
        "serve", "start Argilla on this machine and keep it running until Ctrl-C", "server_commands:serve",
        options.serve, study=False,
    ),
    _Command(
        "preview", "write a page that shows what raters will see of each queue", "campaign_commands:preview",
        options.preview, data=False,
    ),
    _Command("publish", "publish the pairs to the annotators in Argilla", "campaign_commands:publish_pairs"),
    _Command("simulate", "rehearse: let the study's simulated raters answer", "campaign_commands:simulate_raters"),
    _Command(
        "import", "make a study from ratings that were collected elsewhere", "imports.command:import_files",
        _import, study=False, example="ratings.csv --out studies/mine.yaml",
    ),
    _Command("collect", "fetch the answers given so far", "campaign_commands:collect_answers", options.collect),
    _Command(
        "status", "show progress, raters who are behind, decisions, and what to do next",
        "status.text:show_status",
    ),
    _Command(
        "review", "show signs of careless answers; decide which raters count", "campaign_commands:review",
        options.review,
    ),
    _Command(
        "accept", "compute agreement and verdicts from the collected answers", "campaign_commands:reach_verdicts",
        options.accept, data=False,
    ),
    _Command(
        "withdraw", "withdraw pairs from the sample, or let them count again", "campaign_commands:withdraw_pairs",
        options.withdraw, data=False,
    ),
    _Command(
        "compare", "compare the waves of a sample, or two campaigns on the same pairs", "campaign_commands:compare",
        options.compare, data=False,
    ),
    _Command(
        "export", "write the ratings as CSV with a codebook, to export/",
        "campaign_commands:export_ratings", options.export, data=False,
    ),
    _Command(
        "report", "write the report: one HTML page, and its tables as CSV", "campaign_commands:report", data=False
    ),
    _Command(
        "sheet", "write documents for a paper: HEDS 3.0, ARR's checklist D, a datasheet, Methods in LaTeX",
        "campaign_commands:sheet", data=False,
    ),
    _Command(
        "judge", "have language models rate outputs, and check them against people's ratings", "", _judge,
        study=False, data=False,
    ),
    _Command(
        "crowd", "run a crowd campaign (Prolific, links, MTurk, a rehearsal): offers, answers, review, pay", "", _crowd,
        study=False, data=False,
    ),
    _Command(
        "users", "add, invite, remind, list, reset, remove annotators, here or at ARGILLA_API_URL", "",
        options.users, study=False, data=False,
    ),
    _Command(
        "backup", "write and check a backup of the local server, running or not", "server_commands:backup",
        options.backup, study=False, example="--to /mnt/elsewhere",
    ),
    _Command(
        "restore", "restore a backup on the stopped local server; the replaced data is kept beside it",
        "server_commands:restore", options.restore, study=False, example="argilla-....tar.gz",
    ),
)  # fmt: skip


class _CommandParser(cli.Parser):
    """A command's parser, which declares its options on first use."""

    def __init__(self, *args: Any, command: _Command | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Declare the options, then read them."""
        command, self._command = self._command, None
        if command is not None:
            if command.run:
                self.set_defaults(run=cli.handler(f"annotation.{command.run}"))
            if command.study:
                cli.add_study_options(self)
            if command.data:
                options.add_data_option(self)
            if command.declare:
                command.declare(self)
        return super().parse_known_args(args, namespace)


def main() -> int:
    """The command line."""
    parsed = _parser().parse_args()
    run: Callable[[argparse.Namespace], int] = parsed.run
    return run(parsed)


def _parser() -> argparse.ArgumentParser:
    parser = cli.Parser(
        prog="plumbline",
        description="Send pairs to people, collect their ratings, reach verdicts. Every command may be run again.",
        epilog="example: plumbline sample --study studies/demo.yaml",
    )
    commands = parser.add_subparsers(
        title="commands, in the order of a campaign", metavar="COMMAND", required=True, parser_class=_CommandParser
    )
    for command in _COMMANDS:
        called = as_named(f"python -m annotation {command.name}")
        commands.add_parser(
            command.name, command=command, prog=called, help=command.text, description=command.text,
            epilog=f"example: {called} {command.example}",
        )  # fmt: skip
    return parser


if __name__ == "__main__":
    cli.run(main)
