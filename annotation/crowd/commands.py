"""`python -m annotation crowd COMMAND`: a campaign with crowd workers, each command repeatable and interruptible.

Without `--live` everything happens in MTurk's sandbox, or as drafts on Prolific: no money moves, and ratings are
marked as a rehearsal's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from annotation.argilla.client import connect
from annotation.crowd import collecting, judging, pay, sheet, summary
from annotation.crowd.campaign import Campaign
from annotation.crowd.ledger import Ledger
from annotation.crowd.platform import Platform
from annotation.crowd.steps import crowd_of
from annotation.offering import LEDGER, Mode, alone, begin_offering, ledgers, words_changed
from annotation.pseudonyms import pseudonym_key
from annotation.sampling.origin import refuse_other_prompts
from annotation.server_commands import add_data_option, home_of
from annotation.verdicts.preregistration import asked_rubric, fix_rules
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import PlumblineError, StudyError
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.crowd import PLATFORMS, PlatformName

CONFIRM = "pay"  # what a person types before money moves


def add_crowd_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `crowd` and its sub-commands."""
    text = "ask crowd workers on MTurk or Prolific: offers, answers, review, pay"
    crowd = commands.add_parser(
        "crowd", help=text, description=f"{text}. Nothing is spent without --live.", epilog=_example("plan")
    )
    own = crowd.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, spends: bool = False
    ) -> argparse.ArgumentParser:
        added = own.add_parser(name, help=text, description=text, epilog=_example(name))
        added.set_defaults(run=run)
        cli.add_study_options(added)
        add_data_option(added)
        added.add_argument(
            "--platform", choices=PLATFORMS, help="required for the first launch; later the campaign's own"
        )
        added.add_argument(
            "--live",
            action="store_true",
            help="use the real platform; without it, the sandbox (MTurk) or drafts (Prolific)",
        )
        if spends:
            added.add_argument(
                "--max-cost", type=cli.positive, metavar="DOLLARS", help="limit for the cost of the whole campaign"
            )
            added.add_argument("--yes", action="store_true", help="do not ask for confirmation before money is spent")
        return added

    pilot = "a trial with N pairs per group of languages (PTEB: 20)"
    add("plan", _plan, "show what would be offered and what it costs; nothing is created").add_argument(
        "--pilot", type=_count, default=0, metavar="N", help=pilot
    )
    add("launch", _launch, "offer batches to workers, as far as money and shares allow", spends=True).add_argument(
        "--pilot", type=_count, default=0, metavar="N", help=pilot
    )
    add("status", _status, "show where the campaign stands, from the ledger alone")
    collect = add("collect", _collect, "fetch submissions and answers")
    collect.add_argument("--replace", action="store_true", help="also drop ratings that the campaign no longer has")
    collect.add_argument(
        "--archive", metavar="CSV", help="read a result file from the MTurk site instead of asking the platform"
    )
    review = add("review", _review, "list the submissions that wait for a decision, with signs, times and pay")
    review.add_argument("--answers", metavar="SUBMISSION", help="show a submission's answers, pair by pair")
    review.add_argument(
        "--ask", metavar="SUBMISSION", help="note that you asked its worker (write to them on the platform)"
    )
    review.add_argument("--reason", default="", metavar="TEXT", help="what the worker was asked")
    approve = add("approve", _approve, "approve submissions, which pays them")
    which = approve.add_mutually_exclusive_group(required=True)
    which.add_argument("submissions", nargs="*", default=[], metavar="SUBMISSION", help="ids, as `review` lists them")
    which.add_argument("--all", action="store_true", help="all submissions without signs")
    approve.add_argument("--reason", default="", metavar="TEXT", help="why, if there were signs")
    reject = add("reject", _reject, "reject submissions, with a reason: they are not paid, their ratings excluded")
    reject.add_argument("submissions", nargs="+", metavar="SUBMISSION", help="ids, as `review` lists them")
    reject.add_argument("--reason", default="", metavar="TEXT", help="why; the worker reads it")
    add("bonus", _bonus, "pay bonuses where the work took longer than the reward pays for", spends=True)
    add("close", _close, "let nobody begin any more, for good; those at work may finish")


def _example(name: str) -> str:
    more = {
        "plan": " --platform prolific",
        "launch": " --platform prolific --pilot 20",
        "approve": " --all",
        "reject": ' SUBMISSION --reason "both controls the wrong way round"',
        "bonus": " --live --max-cost 500",
    }
    return as_called(f"example: python -m annotation crowd {name} --study studies/mine.yaml{more.get(name, '')}")


def _plan(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    print(summary.plan_text(study, _platform_name(study, options), _mode(options), options.pilot))
    return 0


def _launch(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options, spends=True, begins=True) as campaign:
        refuse_other_prompts(study, list(campaign.pairs.values()))
        fix_rules(study)
        rubric, where = asked_rubric(study), _where(campaign)
        if words_changed(study, where[1:-1], rubric):
            print(f"{where} batches that were offered before show the words of their launch, not the rubric's of now")
        begin_offering(study, where[1:-1], rubric)
        done = campaign.launch(options.pilot)
        print(f"{where} {done.posted} batches offered now, {done.extended} opened again; {done.open} are open,"
              f" {done.waiting} wait until others are done")  # fmt: skip
        if campaign.platform.mode == "sandbox":
            for batch_id, posted_id in campaign.posted_ids().items():
                print(f"{where} try batch {batch_id}: {campaign.platform.preview(posted_id)}")
        for line in done.troubles:
            print(f"{where} refused: {line}")
        if done.stopped:
            raise StudyError(done.stopped)
    return 0


def _status(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    found = summary.read_summaries(study)
    if not found:
        print(f"{study.name}: no crowd campaign yet; see `{study.command('annotation crowd plan')}`")
    print("\n\n".join(summary.summary_text(one) for one in found))
    return 0


def _collect(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    outputs = [study.folder / name for name in ("ratings.parquet", "control_ratings.parquet")]
    inputs = [study.folder / name for name in ("pairs.parquet", "controls.parquet")]
    if options.archive:
        with stage(study, "collect", inputs, outputs), alone(study):
            key = pseudonym_key(home_of(options))
            done = collecting.collect_archive(study, key, Path(options.archive), replace=options.replace)
        print(f"{study.name}: {done.new} submissions read from {options.archive}, {len(done.ratings)} ratings in all")
        print("\n".join(f"  left out: {line}" for line in done.troubles.values()), end="\n" if done.troubles else "")
        return 0
    with stage(study, "collect", inputs, outputs), _campaign(study, options) as campaign:
        done = collecting.collect(campaign, replace=options.replace)
        where = _where(campaign)
        rehearsal = " (a rehearsal: they count as simulated)" if campaign.platform.mode == "sandbox" else ""
        print(f"{where} {done.new} submissions read, {len(done.ratings)} ratings in all{rehearsal}")
        for line in done.troubles.values():
            print(f"{where} cannot be read: {line}")
    return 0


def _review(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options) as campaign:
        where = _where(campaign)
        if options.ask:
            judging.ask(campaign, options.ask, options.reason)
            print(f"{where} noted; write to the worker on the platform's own page")
            return 0
        if options.answers:
            print(summary.marked(where, sheet.sheet_text(campaign, options.answers)))
            return 0
        judging.finish(campaign)
        campaign.refresh()
        title = "Submissions that wait for a decision; signs decide nothing"
        print(summary.marked(where, f"{title}\n{summary.cases_text(campaign)}"))
    return 0


def _approve(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options) as campaign:
        campaign.refresh()
        if options.all:
            number, left = judging.approve_all(campaign)
        else:
            number, left = judging.approve(campaign, options.submissions, options.reason), []
        more = f"; {len(left)} wait for a person (crowd review)" if left else ""
        print(f"{_where(campaign)} {number} submissions approved{more}")
    return 0


def _reject(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options) as campaign:
        campaign.refresh()
        number = judging.reject(campaign, options.submissions, options.reason)
        print(f"{_where(campaign)} {number} submissions rejected, their workers' ratings excluded;"
              " `crowd launch` finds others for their places")  # fmt: skip
    return 0


def _bonus(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options, spends=True) as campaign:
        print(f"{_where(campaign)} {judging.pay_bonuses(campaign)} bonuses paid for observed times")
    return 0


def _close(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with _campaign(study, options) as campaign:
        closed, released = campaign.close()
        left = len(campaign.ledger.offered()) - closed
        more = f"; {left} were never offered, and `crowd launch` would still offer them" if left else ""
        print(f"{_where(campaign)} {closed} batches closed, {pay.dollars(released)} released{more}")
    return 0


@contextlib.contextmanager
def _campaign(
    study: Study, options: argparse.Namespace, *, spends: bool = False, begins: bool = False
) -> Iterator[Campaign]:
    """The study's campaign as the options name it, nobody else working on it; errors say which it was.

    Raises StudyError where it has no batches yet, unless this command `begins` it.
    """
    name, mode = _platform_name(study, options), _mode(options)
    crowd_of(study)
    where = f"[{mode} {name}]"
    try:
        limit = _limit(options, mode, where) if spends else None
        with (
            alone(study),
            Ledger(study.scratch / LEDGER, study.name, name, mode) as ledger,
            _platform(study, name, options) as platform,
        ):
            if not (begins or ledger.offered()):
                raise StudyError(f"{study.name} has offered nothing here yet; begin with `crowd launch`")
            yield Campaign(study, platform, ledger, pseudonym_key(home_of(options)), limit)
    except PlumblineError as error:
        raise type(error)(f"{where} {error}") from None


def _limit(options: argparse.Namespace, mode: Mode, where: str) -> int | None:
    """What may be spent, in cents, after a person said yes to it."""
    if mode == "sandbox":
        return None
    if options.max_cost is None:
        raise StudyError("--live spends money and needs a limit; add --max-cost DOLLARS, for the whole campaign")
    limit = int(options.max_cost * 100 + 1e-6)
    if options.yes:
        return limit
    if not sys.stdin.isatty():
        raise StudyError("--live asks before it spends, and nobody is there to answer; add --yes")
    print(f"{where} This may spend up to {pay.dollars(limit)} in all. Type `{CONFIRM}` to go on: ", end="", flush=True)
    if sys.stdin.readline().strip() != CONFIRM:
        raise StudyError("not confirmed; nothing was spent")
    return limit


def _platform_name(study: Study, options: argparse.Namespace) -> PlatformName:
    """The platform that is named, or that of the study's only campaign in this mode."""
    if options.platform:
        named: PlatformName = options.platform
        return named
    there = [name for name, mode in ledgers(study.scratch / LEDGER) if mode == _mode(options)]
    if len(there) != 1:
        has = f"has campaigns on {' and '.join(there)}" if there else f"has no {_mode(options)} campaign yet"
        if not there and not options.live and ledgers(study.scratch / LEDGER):
            raise StudyError(f"{study.name} {has}, but a live one; add --live for that, or --platform to rehearse")
        raise StudyError(f"{study.name} {has}; say which platform: --platform mturk or --platform prolific")
    return there[0]


def _mode(options: argparse.Namespace) -> Mode:
    return "live" if options.live else "sandbox"


@contextlib.contextmanager
def _platform(study: Study, name: PlatformName, options: argparse.Namespace) -> Iterator[Platform]:
    """The platform, with what it needs."""
    mode = _mode(options)
    if name == "mturk":
        from annotation.crowd.mturk.adapter import MTurk  # noqa: PLC0415 (extra `crowd`)

        yield MTurk(study, mode, endpoint=os.environ.get("MTURK_ENDPOINT", ""))
        return
    from annotation.crowd.prolific.adapter import Prolific  # noqa: PLC0415
    from annotation.crowd.prolific.rooms import ArgillaRooms  # noqa: PLC0415

    home = home_of(options)
    key = pseudonym_key(home)
    with connect(home) as argilla:
        platform = Prolific(study, mode, key, ArgillaRooms(study, mode, key, argilla))
        try:
            yield platform
        finally:
            platform.close_connections()


def _where(campaign: Campaign) -> str:
    return f"[{campaign.platform.mode} {campaign.platform.name}]"


def _count(value: str) -> int:
    if value.isdecimal() and 1 <= int(value) <= 10_000:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to 10000")
