"""The options of `plumbline`'s commands; nothing that the commands do is imported for them.

Annotations are evaluated, as in `plumbline.cli`, for classes elsewhere that inherit them.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from annotation.server.home import Home
from plumbline import cli
from plumbline.addresses import refuse_no_address
from plumbline.cli import Named, StudyOptions, reads

HOME_VARIABLE = "PLUMBLINE_ARGILLA_HOME"


def _address(text: str) -> str:
    """Return an address such as https://argilla.example.org. Raises ValueError."""
    example = "https://argilla.example.org"
    refuse_no_address(text, example)
    if urlsplit(text).path.strip("/"):
        raise ValueError(f"{text[:100]!r} contains a path; give only the server's address, such as {example}")
    return text


Address = Annotated[str, reads(_address), Parameter(metavar="URL")]
Unseen = Annotated[Named | None, Parameter(show=False)]  # an option that commands print, and nobody needs to know


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
