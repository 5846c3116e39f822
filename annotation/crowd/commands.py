"""`python -m annotation crowd COMMAND`: a campaign with crowd workers, each command repeatable and interruptible.

Without `--live` everything happens in MTurk's sandbox, or as drafts on Prolific: no money moves, and ratings are
marked as a rehearsal's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from annotation.crowd import collecting, judging, summary
from annotation.crowd import platform as pay
from annotation.crowd.ledger import refuse_lost_campaign
from annotation.crowd.opening import campaign_of, lacking, mode_of, platform_name, refuse_incomplete, where_of
from annotation.offering import alone, begin_offering, refuse_other_offering, words_changed
from annotation.pseudonyms import pseudonym_key
from annotation.sampling.origin import refuse_other_prompts
from annotation.sampling.sample import read_pairs
from annotation.server_commands import add_data_option, home_of
from annotation.verdicts.preregistration import asked_rubric, fix_rules
from annotation.verdicts.reachable import ahead_of_sample, never_lines, size_line
from annotation.verdicts.tables import count
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.study.crowd import PLATFORMS


def add_crowd_commands(commands: argparse._SubParsersAction[cli.Parser]) -> None:
    """Add `crowd` and its sub-commands."""
    text = "ask crowd workers on MTurk or Prolific: offers, answers, review, pay"
    crowd = commands.add_parser(
        "crowd", help=text, description=f"{text}. Nothing is spent without --live.", epilog=_example("plan")
    )
    subcommands = crowd.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, spends: bool = False
    ) -> argparse.ArgumentParser:
        added = subcommands.add_parser(name, help=text, description=text, epilog=_example(name))
        added.set_defaults(run=run)
        _add_shared_options(added, spends=spends)
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
        "--archive",
        type=cli.local,
        metavar="CSV",
        help="read a result file from the MTurk site instead of asking the platform",
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


def _add_shared_options(parser: argparse.ArgumentParser, *, spends: bool) -> None:
    cli.add_study_options(parser)
    add_data_option(parser)
    parser.add_argument("--platform", choices=PLATFORMS, help="required for the first launch; later the campaign's own")
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


def _plan(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    platform, mode = platform_name(study, options), mode_of(options)
    refuse_incomplete(study, platform, mode, launching=False)
    print(summary.plan_text(study, platform, mode, options.pilot))
    groups = ahead_of_sample(study, read_pairs(study))
    print(summary.marked(f"[{mode} {platform}]", size_line(study, groups)))
    for line in [*never_lines(study, groups, offered=False), *lacking(study, platform, mode)]:
        print(f"{summary.marked(f'[{mode} {platform}]', f'before launching: {line}')}")
    return 0


def _launch(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options, spends=True, begins=True) as campaign:
        refuse_other_prompts(study, list(campaign.pairs.values()))
        groups = ahead_of_sample(study, read_pairs(study))
        if groups and all(group.lacks(study.acceptance) for group in groups):
            raise StudyError(never_lines(study, groups, offered=False)[0])
        campaign.platform.balance()  # keys that cannot be used are refused before rules are fixed
        fix_rules(study)
        rubric, where = asked_rubric(study), where_of(campaign)
        if words_changed(study, where[1:-1], rubric):
            print(f"{where} batches that were offered before show the words of their launch, not the rubric's of now")
        refuse_other_offering(study, where[1:-1], rubric)
        done = campaign.launch(options.pilot, lambda: begin_offering(study, where[1:-1], rubric))
        print(f"{where} {count(done.posted, 'batch', 'batches')} offered now, {done.extended} opened again;"
              f" {done.open} {'is' if done.open == 1 else 'are'} open,"
              f" {done.waiting} {'waits' if done.waiting == 1 else 'wait'} until others are done")  # fmt: skip
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
    summaries = summary.read_summaries(study)
    if not summaries:
        refuse_lost_campaign(study, "live")
        print(f"{study.name}: no crowd campaign yet; see `{study.command('annotation crowd plan')}`")
    print("\n\n".join(summary.summary_text(campaign_summary) for campaign_summary in summaries))
    return 0


def _collect(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    outputs = [study.folder / name for name in ("ratings.parquet", "control_ratings.parquet")]
    inputs = [study.folder / name for name in ("pairs.parquet", "controls.parquet")]
    if options.archive:
        with stage(study, "collect", inputs, outputs), alone(study):
            key = pseudonym_key(home_of(options))
            done = collecting.collect_archive(study, key, options.archive, replace=options.replace)
        print(
            f"{study.name}: {count(done.new, 'submission')} read from {options.archive},"
            f" {count(len(done.ratings), 'rating')} in all"
        )
        print("\n".join(f"  left out: {line}" for line in done.troubles.values()), end="\n" if done.troubles else "")
        return 0
    with stage(study, "collect", inputs, outputs), campaign_of(study, options) as campaign:
        done = collecting.collect(campaign, replace=options.replace)
        where = where_of(campaign)
        rehearsal = " (a rehearsal: they count as simulated)" if campaign.platform.mode == "sandbox" else ""
        print(f"{where} {count(done.new, 'submission')} read, {count(len(done.ratings), 'rating')} in all{rehearsal}")
        for line in done.troubles.values():
            print(f"{where} cannot be read: {line}")
    return 0


def _review(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        where = where_of(campaign)
        if options.ask:
            judging.ask(campaign, options.ask, options.reason)
            print(f"{where} noted; write to the worker on the platform's own page")
            return 0
        if options.answers:
            print(summary.marked(where, judging.sheet_text(campaign, options.answers)))
            return 0
        judging.finish(campaign)
        campaign.refresh()
        title = "Submissions that wait for a decision; signs decide nothing"
        print(summary.marked(where, f"{title}\n{summary.cases_text(campaign)}"))
    return 0


def _approve(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        campaign.refresh()
        if options.all:
            number, waiting = judging.approve_all(campaign)
        else:
            number, waiting = judging.approve(campaign, options.submissions, options.reason), []
        more = f"; {len(waiting)} wait for a person (crowd review)" if waiting else ""
        print(f"{where_of(campaign)} {count(number, 'submission')} approved{more}")
    return 0


def _reject(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        campaign.refresh()
        number = judging.reject(campaign, options.submissions, options.reason)
        print(f"{where_of(campaign)} {count(number, 'submission')} rejected, with the ratings excluded;"
              " `crowd launch` finds others for their places")  # fmt: skip
    return 0


def _bonus(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options, spends=True) as campaign:
        print(
            f"{where_of(campaign)} {count(judging.pay_bonuses(campaign), 'bonus', 'bonuses')} paid for observed times"
        )
    return 0


def _close(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        closed, released = campaign.close()
        unoffered = len(campaign.ledger.offered()) - closed
        more = f"; {unoffered} were never offered, and `crowd launch` would still offer them" if unoffered else ""
        print(
            f"{where_of(campaign)} {count(closed, 'batch', 'batches')} closed, {pay.dollars(released)} released{more}"
        )
    return 0


def _count(value: str) -> int:
    if value.isdecimal() and 1 <= int(value) <= 10_000:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to 10000")
