"""The options of `plumbline`'s commands; nothing that the commands do is imported for them."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from annotation.server.home import Home
from plumbline import cli
from plumbline.addresses import refuse_no_address
from plumbline.cli import Named, StudyOptions

HOME_VARIABLE = "PLUMBLINE_ARGILLA_HOME"
PORT = 6900
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,4})([mhd])")


@Parameter(name="*")
@dataclass(frozen=True)
class HomeOptions:
    """The local server, as a command's options name it.

    Args:
        data: The local server's folder (default: .argilla/).
    """

    data: Annotated[Named | None, Parameter(metavar="DIR")] = None

    @property
    def home(self) -> Home:
        """The server's home: the option's, or else the environment's."""
        folder = self.data or os.environ.get(HOME_VARIABLE)
        return Home(Path(folder)) if folder else Home()


USUAL_HOME = HomeOptions()  #: where no option names another


@Parameter(name="*")
@dataclass(frozen=True)
class CampaignOptions(HomeOptions, StudyOptions):
    """The study and the local server that a command works on, as its options name them."""


def home_of(options: argparse.Namespace) -> Home:
    """The home that the options name."""
    return Home(Path(options.data)) if options.data else Home()


def add_campaign_options(parser: argparse.ArgumentParser) -> None:
    """Add `--study`, `--exports` and `--data`."""
    cli.add_study_options(parser)
    add_data_option(parser)


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add `--data`, the local server's folder."""
    default = os.environ.get(HOME_VARIABLE, "")
    parser.add_argument("--data", metavar="DIR", default=default, help="the local server's folder (default: .argilla/)")


def duration(text: str) -> timedelta | None:
    """Parse `6h`, `30m`, `1d`; `off` is None. Raises ArgumentTypeError."""
    if text == "off":
        return None
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write for example 6h, 30m, 1d, or off")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _address(text: str) -> str:
    """An address such as https://argilla.example.org. Raises ArgumentTypeError."""
    example = "https://argilla.example.org"
    try:
        refuse_no_address(text, example)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if urlsplit(text).path.strip("/"):
        raise argparse.ArgumentTypeError(
            f"{text[:100]!r} contains a path; give only the server's address, such as {example}"
        )
    return text


def _mean(value: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(value)):
            return number
    raise argparse.ArgumentTypeError(f"{value!r} is not a number")


def correlation(value: str) -> float:
    """A number from -1 to 1. Raises ArgumentTypeError."""
    number = _mean(value)
    if -1 <= number <= 1:
        return number
    raise argparse.ArgumentTypeError(f"{value!r} is not a correlation (-1 to 1)")


def _deviation(value: str) -> float:
    return 0.0 if value in ("0", "0.0") else cli.positive(value)


def plan(parser: argparse.ArgumentParser) -> None:
    """Add sizes, true means and assumptions; the deviations are those of `annotation.planning.RatingVariation`."""
    add_campaign_options(parser)
    add = parser.add_argument
    add("--pairs", type=cli.count, nargs="+", metavar="N", help="pairs of each transformation (default: 30,"
        " 50, 100 and 200; without --raters also the study's number)")  # fmt: skip
    add(
        "--raters",
        type=cli.count,
        nargs="+",
        metavar="N",
        help="raters per pair (default: 2, 3 and 5; without --pairs also the study's number)",
    )
    add("--means", type=_mean, nargs="+", metavar="M", help="true means or shares of labels to try (default: around"
        " the threshold or the rules' limits)")  # fmt: skip
    for name, subject, usual in (
        ("spread", "the pairs' quality", 0.8),
        ("bias", "the raters' habits", 0.25),
        ("noise", "single ratings", 1.1),
    ):
        add(f"--{name}", type=_deviation, default=usual, metavar="SD",
            help=f"standard deviation of {subject} in points (default: {usual:g})")  # fmt: skip
    add(
        "--campaigns",
        type=cli.count,
        default=1000,
        metavar="N",
        help="campaigns to simulate for each number (default: 1000)",
    )
    add("--seed", type=cli.seed, metavar="N", help="seed of the simulation (default: the sample's)")


def serve(parser: argparse.ArgumentParser) -> None:
    """Add the options of `serve`.

    Times and numbers are those of `annotation.server.backup`.
    """
    add_data_option(parser)
    add = parser.add_argument
    add("--study", metavar="FILE", help="create missing accounts for this study's raters")
    add("--prepare", action="store_true", help="only make the server's Python environment, if it is missing")
    add("--exports", help=argparse.SUPPRESS)
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    add("--port", type=cli.port, metavar="N", help=f"port to listen on (default: {PORT}; with --during, any free port)")
    add("--during", metavar="COMMAND", help="run a command while the server runs, then stop it")
    add("--address", metavar="URL", type=_address, action="append", default=[], help="the address at which others"
        " reach the server, through a TLS proxy; other host names are refused")  # fmt: skip
    add("--database-url", metavar="URL", help="use PostgreSQL instead of SQLite, also on later starts; `sqlite` goes"
        " back. Give a URL with a password in PLUMBLINE_ARGILLA_DATABASE_URL: all users of this machine can see"
        " arguments")  # fmt: skip
    add("--workers", metavar="N", type=_positive, default=1,
        help="server processes; more than one needs PostgreSQL (default: 1)")  # fmt: skip
    add("--backup-every", metavar="TIME", type=duration, default="6h",
        help="interval of backups, for example 6h, 30m, 1d, or off (default: 6h)")  # fmt: skip
    add("--keep", metavar="N", type=_positive, default=28,
        help="scheduled backups to keep; of older ones, one a week is kept (default: 28)")  # fmt: skip


def backup(parser: argparse.ArgumentParser) -> None:
    """Add the options of `backup`."""
    parser.epilog = "example: plumbline backup --to /mnt/elsewhere"
    add_data_option(parser)
    parser.add_argument(
        "--to", metavar="DIR", type=cli.local, help="folder for the backup (default: backups/ beside the database)"
    )


def restore(parser: argparse.ArgumentParser) -> None:
    """Add the options of `restore`."""
    parser.epilog = "example: plumbline restore argilla-....tar.gz"
    add_data_option(parser)
    parser.add_argument("file", metavar="FILE", type=cli.local, help="a file that `backup` wrote")


def users(parser: argparse.ArgumentParser) -> None:
    """The actions on annotators' accounts."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = examples = (
        "examples:\n  plumbline users add ada grace --languages en,de\n"
        "  plumbline users invite --study studies/mine.yaml --to invitations\n"
        "  plumbline users list\n  plumbline users reset ada\n"
        "  plumbline users remove ada\n"
        "  plumbline users remove ada --force    (with the answers that ada has given)"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def action(name: str, text: str, study_help: str = "", *, required: bool = False) -> argparse.ArgumentParser:
        example = next(line.strip() for line in examples.splitlines() if f"users {name}" in line)
        added = actions.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        added.set_defaults(run=cli.handler(f"annotation.commands.annotators:{name}_users"))
        add_data_option(added)
        if study_help:
            added.add_argument("--study", metavar="FILE", required=required, help=study_help)
            added.add_argument("--exports", help=argparse.SUPPRESS)
        return added

    the_study = "the study, for example studies/demo.yaml"
    adding = action("add", "create annotators' accounts; their passwords are shown once",
                    "give them access to this study now (otherwise `publish` does)")  # fmt: skip
    adding.add_argument("names", metavar="NAME", nargs="+")
    adding.add_argument("--languages", metavar="CODES", default="", help="languages that they read, for example en,de")
    text = "create accounts for a study's people, and write an invitation for each"
    inviting = action("invite", text, the_study, required=True)
    inviting.add_argument(
        "names", metavar="NAME", nargs="*", help="people to invite (default: the study's raters.people)"
    )
    inviting.add_argument(
        "--to", metavar="DIR", type=cli.local, help="write a file for each person instead of printing"
    )
    inviting.add_argument(
        "--address", metavar="URL", type=_address, help="the address that people open (default: the server's own)"
    )
    action("list", "show all accounts with languages and number of answers",
           "also show each account's pseudonym in this study's records, and who is in the study")  # fmt: skip
    action("reset", "set a new random password for an account").add_argument("name", metavar="NAME")
    removing = action("remove", "delete an annotator's account")
    removing.add_argument("name", metavar="NAME")
    removing.add_argument(
        "--force", action="store_true", help="remove the account even if it has answers, which are deleted too"
    )


PLATFORMS = (
    "prolific",
    "link",
    "rehearsal",
    "mturk",
)  # those of `plumbline.study.crowd`, which takes long to import; a test compares them


def crowd(parser: argparse.ArgumentParser) -> None:
    """The commands of `crowd`."""
    parser.description = f"{parser.description} Nothing is spent without --live."
    parser.epilog = _example("plan")
    subcommands = parser.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(name: str, run: str, text: str, *, spends: bool = False) -> argparse.ArgumentParser:
        added = subcommands.add_parser(name, help=text, description=text, epilog=_example(name))
        added.set_defaults(run=cli.handler(f"annotation.crowd.commands:{run}"))
        _add_shared_options(added, spends=spends)
        return added

    pilot = "a trial with N pairs per group of languages (PTEB: 20)"
    add("plan", "show_plan", "show what would be offered and what it costs; nothing is created").add_argument(
        "--pilot", type=_count, default=0, metavar="N", help=pilot
    )
    launch = "offer batches to workers, within the limits on cost and on batches per worker"
    offering = add("launch", "launch_batches", launch, spends=True)
    offering.add_argument("--pilot", type=_count, default=0, metavar="N", help=pilot)
    invite = "with a mailing list: the number of people, each with their own link to each batch (default: 20)"
    offering.add_argument("--invite", type=_count, default=20, metavar="N", help=invite)
    add("status", "show_campaign", "show the state of the campaign, and who was refused in another browser")
    collect = add("collect", "collect_work", "fetch submissions and answers")
    collect.add_argument("--replace", action="store_true", help="also drop ratings that the campaign no longer has")
    people = "with `link`: the platform's CSV of participants; only theirs are collected, and later files add more"
    collect.add_argument("--participants", type=cli.local, metavar="CSV", help=people)
    archive = "read a result file from the MTurk site instead of asking the platform"
    collect.add_argument("--archive", type=cli.local, metavar="CSV", help=archive)
    review = add("review", "review_work", "list the submissions that wait for a decision, with signs, times and pay")
    review.add_argument("--answers", metavar="SUBMISSION", help="show a submission's answers, pair by pair")
    approve = add("approve", "approve_work", "approve submissions, which pays them")
    which = approve.add_mutually_exclusive_group(required=True)
    which.add_argument("submissions", nargs="*", default=[], metavar="SUBMISSION", help="ids, as `review` lists them")
    which.add_argument("--all", action="store_true", help="all submissions that nothing speaks against")
    approve.add_argument(
        "--reason",
        default="",
        metavar="TEXT",
        help="your reason for paying submissions that `review` advises to ask about",
    )
    text = "reject submissions, with a reason: they are not paid, and their ratings are excluded"
    reject = add("reject", "reject_work", text)
    reject.add_argument("submissions", nargs="+", metavar="SUBMISSION", help="ids, as `review` lists them")
    reject.add_argument("--reason", default="", metavar="TEXT", help="your reason; the worker reads it")
    add("bonus", "pay_bonuses", "pay bonuses where the work took longer than the reward pays for", spends=True)
    freed = "let a participant go on in another browser than the one that began: the next one that comes is theirs"
    who = "the participant's id on the platform, or the pseudonym that `status` shows"
    add("release", "release_worker", freed).add_argument("participant", metavar="ID", help=who)
    close = add("close", "close_campaign", "stop for good: nobody new can begin, and workers who have begun may finish")
    close.add_argument("--forget", action="store_true", help="remove a rehearsal's ratings and records from the study")


def _add_shared_options(parser: argparse.ArgumentParser, *, spends: bool) -> None:
    add_campaign_options(parser)
    platform = (
        "the platform (default: a rehearsal in progress, else the study's, else that of its only campaign);"
        " `rehearsal` simulates a crowd; `mturk` has closed"
    )
    parser.add_argument("--platform", choices=PLATFORMS, help=platform)
    live = "use the real platform; without it, the sandbox (MTurk) or drafts (Prolific)"
    parser.add_argument("--live", action="store_true", help=live)
    if spends:
        parser.add_argument(
            "--max-cost", type=cli.positive, metavar="DOLLARS", help="limit for the cost of the whole campaign"
        )
        parser.add_argument("--yes", action="store_true", help="spend money without asking for confirmation")


def _example(name: str) -> str:
    more = {
        "plan": " --platform prolific",
        "launch": " --platform prolific --pilot 20",
        "approve": " --all",
        "reject": ' SUBMISSION --reason "both controls the wrong way round"',
        "release": " worker-1a2b3c4d5e6f --live",
        "bonus": " --live --max-cost 500",
    }
    return f"example: plumbline crowd {name} --study studies/mine.yaml{more.get(name, '')}"


def _count(value: str) -> int:
    if value.isdecimal() and 1 <= int(value) <= 10_000:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to 10000")
