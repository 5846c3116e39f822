"""What each command of `python -m annotation crowd` is asked; what one does is imported when it is run."""

from __future__ import annotations

import argparse

from annotation.options import add_data_option
from plumbline import cli
from plumbline.commands import as_called

PLATFORMS = ("mturk", "prolific")  # those of `plumbline.study.crowd`, which takes long to import; a test holds them


def add_crowd_actions(crowd: argparse.ArgumentParser) -> None:
    """The commands of `crowd`."""
    crowd.description, crowd.epilog = f"{crowd.description}. Nothing is spent without --live.", _example("plan")
    subcommands = crowd.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(name: str, run: str, text: str, *, spends: bool = False) -> argparse.ArgumentParser:
        added = subcommands.add_parser(name, help=text, description=text, epilog=_example(name))
        added.set_defaults(run=cli.handler(f"annotation.crowd.commands:{run}"))
        _add_shared_options(added, spends=spends)
        return added

    pilot = "a trial with N pairs per group of languages (PTEB: 20)"
    add("plan", "show_plan", "show what would be offered and what it costs; nothing is created").add_argument(
        "--pilot", type=_count, default=0, metavar="N", help=pilot
    )
    add(
        "launch", "launch_batches", "offer batches to workers, as far as money and shares allow", spends=True
    ).add_argument("--pilot", type=_count, default=0, metavar="N", help=pilot)
    add("status", "show_campaign", "show where the campaign stands, from the ledger alone")
    collect = add("collect", "collect_work", "fetch submissions and answers")
    collect.add_argument("--replace", action="store_true", help="also drop ratings that the campaign no longer has")
    collect.add_argument(
        "--archive",
        type=cli.local,
        metavar="CSV",
        help="read a result file from the MTurk site instead of asking the platform",
    )
    review = add("review", "review_work", "list the submissions that wait for a decision, with signs, times and pay")
    review.add_argument("--answers", metavar="SUBMISSION", help="show a submission's answers, pair by pair")
    review.add_argument(
        "--ask", metavar="SUBMISSION", help="note that you asked its worker (write to them on the platform)"
    )
    review.add_argument("--reason", default="", metavar="TEXT", help="what the worker was asked")
    approve = add("approve", "approve_work", "approve submissions, which pays them")
    which = approve.add_mutually_exclusive_group(required=True)
    which.add_argument("submissions", nargs="*", default=[], metavar="SUBMISSION", help="ids, as `review` lists them")
    which.add_argument("--all", action="store_true", help="all submissions without signs")
    approve.add_argument("--reason", default="", metavar="TEXT", help="why, if there were signs")
    reject = add(
        "reject", "reject_work", "reject submissions, with a reason: they are not paid, their ratings excluded"
    )
    reject.add_argument("submissions", nargs="+", metavar="SUBMISSION", help="ids, as `review` lists them")
    reject.add_argument("--reason", default="", metavar="TEXT", help="why; the worker reads it")
    add("bonus", "pay_bonuses", "pay bonuses where the work took longer than the reward pays for", spends=True)
    add("close", "close_campaign", "let nobody begin any more, for good; those at work may finish")


def _add_shared_options(parser: argparse.ArgumentParser, *, spends: bool) -> None:
    cli.add_study_options(parser)
    add_data_option(parser)
    platform = "required for the first launch; later the campaign's own (MTurk closed on 30 September 2026)"
    parser.add_argument("--platform", choices=PLATFORMS, help=platform)
    live = "use the real platform; without it, the sandbox (MTurk) or drafts (Prolific)"
    parser.add_argument("--live", action="store_true", help=live)
    if spends:
        parser.add_argument(
            "--max-cost", type=cli.positive, metavar="DOLLARS", help="limit for the cost of the whole campaign"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation before money is spent")


def _example(name: str) -> str:
    more = {
        "plan": " --platform prolific",
        "launch": " --platform prolific --pilot 20",
        "approve": " --all",
        "reject": ' SUBMISSION --reason "both controls the wrong way round"',
        "bonus": " --live --max-cost 500",
    }
    return as_called(f"example: python -m annotation crowd {name} --study studies/mine.yaml{more.get(name, '')}")


def _count(value: str) -> int:
    if value.isdecimal() and 1 <= int(value) <= 10_000:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to 10000")
