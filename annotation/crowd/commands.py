"""`plumbline crowd COMMAND`: a campaign with crowd workers, each command repeatable and interruptible.

Without `--live` everything happens in MTurk's sandbox, or as drafts on Prolific: no money moves, and ratings are
marked as a rehearsal's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial

from annotation.argilla.client import connect
from annotation.campaign_records import PAIRS, CampaignRecords
from annotation.crowd import collecting, judging, summary
from annotation.crowd import platform as pay
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.ledger import (
    REHEARSAL_FILE,
    Ledger,
    label_of,
    refuse_lost_campaign,
    refuse_rehearsal_beside_people,
)
from annotation.crowd.platform import Platform, crowd_of
from annotation.crowd.prolific.workspaces import ArgillaRooms, crowd_with_address, read_refused, release
from annotation.names import is_pseudonym, pseudonym_key, worker_pseudonym
from annotation.offering import (
    LEDGER,
    Mode,
    alone,
    begin_offering,
    ledgers,
    refuse_other_offering,
    refuse_other_prompts,
    words_changed,
)
from annotation.options import home_of
from annotation.sampling.queues import Queue, queues_of
from annotation.verdicts.counted import ahead_of_sample, never_lines, size_line
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline import cli
from plumbline.errors import PlumblineError, StudyError
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.crowd import PLATFORMS, CrowdSpec, PlatformName
from plumbline.words import count


def lacking(records: CampaignRecords, platform: PlatformName, mode: Mode, *, launching: bool = True) -> list[str]:
    """Return a line for each missing setting, in the order of docs/howto; `launching` adds settings for `launch` alone.

    Countries are checked for the languages of the sample, once the study has one.
    """
    study, queues = records.study, list[Queue]()
    spec = study.crowd or CrowdSpec()
    if records.has(PAIRS):
        queues = list(queues_of([pair for pair in records.pairs if pair.pair_id not in records.withdrawn]))
    languages = {code for queue in queues for code in ([queue.rarer] if platform == "mturk" else queue.languages)}
    checks: list[Callable[[], object]] = [partial(crowd_of, study)]
    if platform in ("rehearsal", "link"):
        languages = set()  # these platforms do not filter by country
    checks += [partial(spec.countries_of, language) for language in sorted(languages)]
    if platform == "prolific":
        checks.append(partial(pay.fee, platform, 100, 1, spec))
        if launching:
            from annotation.crowd.prolific.api import token_of  # noqa: PLC0415 (takes a while)

            checks += [partial(crowd_with_address, study, mode), token_of]
    if platform == "link":
        from annotation.crowd.link import link_of  # noqa: PLC0415 (likewise)

        checks += [partial(link_of, spec), *([partial(crowd_with_address, study, mode)] if launching else [])]
    lines = []
    for check in checks:
        try:
            check()
        except PlumblineError as error:
            lines.append(str(error))
    return lines


def refuse_incomplete(records: CampaignRecords, platform: PlatformName, mode: Mode, *, launching: bool = True) -> None:
    """Raise StudyError if a setting is missing; if several are, first print a line for each.

    A refused plan also names the settings that only `launch` needs.
    """
    if not (complaints := lacking(records, platform, mode, launching=launching)):
        return
    complaints = complaints if launching else lacking(records, platform, mode)
    if not complaints[1:]:
        raise StudyError(complaints[0])
    print("\n".join(f"  missing: {line}" for line in complaints), file=sys.stderr)
    raise StudyError(
        f"{records.study.file}: crowd workers cannot be asked yet: {len(complaints)} settings are missing (listed"
        f" above); docs/howto/{'links' if platform == 'link' else platform}.md shows where each belongs"
    )


CONFIRM = "pay"  # what a person types before money moves


@contextlib.contextmanager
def campaign_of(
    study: Study, options: argparse.Namespace, *, spends: bool = False, begins: bool = False
) -> Iterator[CrowdCampaign]:
    """Open the campaign that the options name, and lock it; errors name the campaign.

    Raises StudyError if it has no batches yet, unless this command `begins` it.
    """
    records = CampaignRecords.open(study)
    name, mode = platform_name(records, options), mode_of(options)
    where = f"[{label_of(name, mode)}]"
    try:
        if begins:
            refuse_incomplete(records, name, mode)
        if name == "rehearsal":
            refuse_rehearsal_beside_people(records)
        crowd_of(study)
        refuse_lost_campaign(records, mode)
        limit = _limit(options, name, mode) if spends else None
        with contextlib.ExitStack() as stack:
            stack.enter_context(alone(study))
            ledger = stack.enter_context(Ledger(study.scratch / LEDGER, study.name, name, mode))
            home = home_of(options)
            key = pseudonym_key(home)
            platform: Platform
            if name == "rehearsal":
                from annotation.crowd.rehearsal import MadeUpCrowd  # noqa: PLC0415 (as below)

                platform = MadeUpCrowd(study)
            elif name == "mturk":
                from annotation.crowd.mturk.adapter import MTurk  # noqa: PLC0415 (extra `crowd`)

                platform = MTurk(study, mode, endpoint=os.environ.get("MTURK_ENDPOINT", ""))
            else:
                from annotation.crowd.link import LinkPlatform  # noqa: PLC0415
                from annotation.crowd.prolific.adapter import Prolific  # noqa: PLC0415

                rooms = ArgillaRooms(study, mode, key, stack.enter_context(connect(home)), name)
                if name == "link":
                    platform = LinkPlatform(study, mode, key, rooms, options.invite if begins else 0)
                else:
                    platform = Prolific(study, mode, key, rooms)
                    stack.callback(platform.close_connections)
            if not (begins or ledger.offered()):
                raise StudyError(f"{study.name} has no batches here yet; begin with `crowd launch`")
            yield CrowdCampaign(study, platform, ledger, key, limit)
    except PlumblineError as error:
        raise type(error)(f"{where} {error}") from None


def _limit(options: argparse.Namespace, platform: PlatformName, mode: Mode) -> int | None:
    """Return the money that may be spent, in cents, after a person confirmed it; play money in the rehearsal."""
    if mode == "sandbox" and platform != "rehearsal":
        return None
    where, what = f"[{label_of(platform, mode)}]", "--live" if mode == "live" else "a rehearsal"
    if options.max_cost is None:
        raise StudyError(f"{what} spends money and needs a limit; add --max-cost DOLLARS, for the whole campaign")
    limit = int(options.max_cost * 100 + 1e-6)
    if options.yes:
        return limit
    if not sys.stdin.isatty():
        raise StudyError(f"{what} asks for confirmation before it spends, but there is no terminal here; add --yes")
    print(f"{where} This may spend up to {pay.dollars(limit)} in all. Type `{CONFIRM}` to go on: ", end="", flush=True)
    if sys.stdin.readline().strip() != CONFIRM:
        raise StudyError("not confirmed; nothing was spent")
    return limit


def platform_name(records: CampaignRecords, options: argparse.Namespace) -> PlatformName:
    """Return the named platform, else `rehearsal` while one runs, the study's, or that of its only campaign."""
    study = records.study
    named: PlatformName | None = options.platform
    platforms = [name for name, mode in ledgers(study.scratch / LEDGER) if mode == mode_of(options)]
    if not named and "rehearsal" in platforms:  # until it is forgotten, nobody else is asked
        return "rehearsal"
    named = named or (study.crowd.platform if study.crowd else None)
    if named:
        if named == "rehearsal" and options.live:
            raise StudyError("a rehearsal is never live; leave out --live")
        return named
    if len(platforms) != 1:
        refuse_lost_campaign(records, mode_of(options))
        has = f"has campaigns on {' and '.join(platforms)}" if platforms else f"has no {mode_of(options)} campaign yet"
        if not platforms and not options.live and ledgers(study.scratch / LEDGER):
            raise StudyError(f"{study.name} {has}, but a live one; add --live to use it, or --platform to rehearse")
        raise StudyError(f"{study.name} {has}; name the platform: --platform {' or --platform '.join(PLATFORMS)}")
    return platforms[0]


def mode_of(options: argparse.Namespace) -> Mode:
    """Return the mode: with people and money, or a rehearsal."""
    return "live" if options.live else "sandbox"


def show_plan(options: argparse.Namespace) -> int:
    """Print the next offers and their cost."""
    study = cli.study_of(options)
    records = Evidence.open(study)
    platform, mode = platform_name(records, options), mode_of(options)
    refuse_incomplete(records, platform, mode, launching=False)
    print(summary.plan_text(records, platform, mode, options.pilot))
    groups, where = ahead_of_sample(records.pairs, study.acceptance, study.raters_of), f"[{label_of(platform, mode)}]"
    print(summary.marked(where, size_line(groups, study.called.item, study.acceptance)))
    for line in [*never_lines(study, groups, offered=False), *lacking(records, platform, mode)]:
        print(summary.marked(where, f"before launching: {line}"))
    return 0


def launch_batches(options: argparse.Namespace) -> int:
    """Offer batches to workers."""
    study = cli.study_of(options)
    with campaign_of(study, options, spends=True, begins=True) as campaign:
        refuse_other_prompts(campaign.records, list(campaign.pairs.values()))
        groups = ahead_of_sample(campaign.records.pairs, study.acceptance, study.raters_of)
        if groups and all(group.lacks(study) for group in groups):
            raise StudyError(never_lines(study, groups, offered=False)[0])
        campaign.platform.balance()  # keys that cannot be used are refused before rules are fixed
        fix_rules(campaign.records)
        campaign.reopen()
        rubric, where = campaign.rubric, f"[{campaign.label}]"
        if words_changed(campaign.records, campaign.where, rubric):
            print(f"{where} batches offered earlier keep the wording of their launch, not the rubric's present wording")
        refuse_other_offering(campaign.records, campaign.where, rubric)
        done = campaign.launch(options.pilot, lambda: begin_offering(campaign.records, campaign.where, rubric))
        print(f"{where} {count(done.posted, 'batch', 'batches')} offered now, {done.extended} opened again;"
              f" {done.open} {'is' if done.open == 1 else 'are'} open,"
              f" {done.waiting} {'waits' if done.waiting == 1 else 'wait'} until earlier batches are done")  # fmt: skip
        if campaign.platform.name == "link" and campaign.platform.mode == "live":
            for batch_id, posted_id in campaign.posted_ids().items():
                print(f"{where} batch {batch_id}: {campaign.platform.preview(posted_id)}")
        if campaign.platform.mode == "sandbox":
            for batch_id, posted_id in campaign.posted_ids().items():
                print(f"{where} try batch {batch_id}: {campaign.platform.preview(posted_id)}")
        for line in done.troubles:
            print(f"{where} refused: {line}")
        if done.stopped:
            raise StudyError(done.stopped)
    return 0


def show_campaign(options: argparse.Namespace) -> int:
    """Print the campaign's progress."""
    study = cli.study_of(options)
    summaries = summary.read_summaries(study)
    if not summaries:
        refuse_lost_campaign(CampaignRecords.open(study), "live")
        print(f"{study.name}: no crowd campaign yet; see `{study.command('crowd plan')}`")
    print("\n\n".join(summary.summary_text(campaign_summary) for campaign_summary in summaries))
    for (platform, mode, worker), at in read_refused(home_of(options), study.name).items():
        release_it = [worker, "--platform", platform, *(["--live"] if mode == "live" else [])]
        release_it += ["--data", options.data] if options.data else []
        print(
            f"[{label_of(platform, mode)}] {worker} was refused in another browser than the one that began"
            f" ({at:%Y-%m-%d %H:%M} UTC); if the person asks to go on in another one:"
            f" {study.command('crowd release')} {shlex.join(release_it)}"
        )
    return 0


def release_worker(options: argparse.Namespace) -> int:
    """Let a participant go on in another browser."""
    study, home = cli.study_of(options), home_of(options)
    platform, mode = platform_name(CampaignRecords.open(study), options), mode_of(options)
    worker = options.participant
    if not is_pseudonym(worker):
        worker = worker_pseudonym(pseudonym_key(home), study.name, platform, worker)
    if not release(home, study.name, platform, mode, worker):
        raise StudyError(
            f"[{label_of(platform, mode)}] {worker} was refused in no browser; `{study.command('crowd status')}` lists"
            " who was"
        )
    print(
        f"[{label_of(platform, mode)}] {worker} may go on: the next browser that opens the link and begins is theirs;"
        " ask them to open it now"
    )
    return 0


def collect_work(options: argparse.Namespace) -> int:
    """Fetch submissions and answers."""
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
        if options.participants:
            campaign.platform.confirm(options.participants)
        done = collecting.collect(campaign, replace=options.replace)
        where = f"[{campaign.label}]"
        rehearsal = " (a rehearsal: they count as simulated)" if campaign.platform.mode == "sandbox" else ""
        print(f"{where} {count(done.new, 'submission')} read, {count(len(done.ratings), 'rating')} in all{rehearsal}")
        for line in done.troubles.values():
            print(f"{where} cannot be read: {line}")
        if campaign.platform.name == "rehearsal":
            print(f"{where} the made-up crowd has worked for half an hour; run this again for the next half hour")
    return 0


def review_work(options: argparse.Namespace) -> int:
    """List the submissions that wait for a decision."""
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        where = f"[{campaign.label}]"
        if options.answers:
            print(summary.marked(where, judging.sheet_text(campaign, options.answers)))
            return 0
        judging.finish(campaign)
        campaign.refresh()
        title = "Submissions that wait for a decision; signs are advice only"
        print(summary.marked(where, f"{title}\n{summary.cases_text(campaign)}"))
    return 0


def approve_work(options: argparse.Namespace) -> int:
    """Approve submissions, which pays them."""
    if options.all and options.reason:
        raise StudyError("--reason is for submissions that you name; leave out --all, or the reason")
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        campaign.refresh()
        if options.all:
            number, waiting = judging.approve_all(campaign)
        else:
            number, waiting = judging.approve(campaign, options.submissions, options.reason), []
        more = f"; {count(len(waiting), 'waits', 'wait')} for a person's decision (crowd review)" if waiting else ""
        if not (number or waiting):
            more = f"; none waits: {judging.states_text(campaign, options.submissions)}"
        print(f"[{campaign.label}] {count(number, 'submission')} approved{more}")
        for case in waiting:
            print(f"[{campaign.label}]   {case.work.submission.submission_id}: {'; '.join(case.against)}")
        _write_lists(campaign)
    return 0


def reject_work(options: argparse.Namespace) -> int:
    """Reject submissions, with a reason."""
    study = cli.study_of(options)
    with campaign_of(study, options) as campaign:
        campaign.refresh()
        number = judging.reject(campaign, options.submissions, options.reason)
        print(f"[{campaign.label}] {count(number, 'submission')} rejected and their ratings excluded;"
              " `crowd launch` offers their places to other workers")  # fmt: skip
    return 0


def pay_bonuses(options: argparse.Namespace) -> int:
    """Pay bonuses where the work took longer than the reward pays for."""
    study = cli.study_of(options)
    with campaign_of(study, options, spends=True) as campaign:
        number, cents = judging.pay_bonuses(campaign)
        in_all = f", {pay.dollars(cents)} in all" if number else ""
        paid = f"{count(number, 'bonus', 'bonuses')} paid for work that took longer than assumed{in_all}"
        print(f"[{campaign.label}] {paid}")
        _write_lists(campaign)
    return 0


def _write_lists(campaign: CrowdCampaign) -> None:
    for path in campaign.platform.write_lists():
        print(f"[{campaign.label}] payments to make: {path}")


def close_campaign(options: argparse.Namespace) -> int:
    """Let no further worker begin."""
    study = cli.study_of(options)
    if options.forget:
        return _forget(study, options)
    with campaign_of(study, options) as campaign:
        closed, released = campaign.close()
        unoffered = len(campaign.ledger.offered()) - closed
        never = f"{count(unoffered, 'batch was', 'batches were')} never offered"
        more = f"; {never}; `crowd launch` can still offer {'it' if unoffered == 1 else 'them'}" if unoffered else ""
        print(f"[{campaign.label}] {count(closed, 'batch', 'batches')} closed, {pay.dollars(released)} released{more}")
        if waiting := len(judging.cases(campaign)):
            waits = count(waiting, "submission still waits", "submissions still wait")
            print(f"[{campaign.label}] {waits} for your decision: `crowd collect`, then `crowd review`")
        if due := judging.owed(campaign):  # closing ends the wait for batches that lack workers
            print(f"[{campaign.label}] {count(len(due), 'bonus is', 'bonuses are')} owed; pay with `crowd bonus`")
    return 0


def _forget(study: Study, options: argparse.Namespace) -> int:
    """Remove a rehearsal's ratings, batches and decisions from the study's records."""
    if platform_name(CampaignRecords.open(study), options) != "rehearsal":
        raise StudyError("--forget removes only a rehearsal's records; leave it out, or add --platform rehearsal")
    with alone(study), Ledger(study.scratch / LEDGER, study.name, "rehearsal", "sandbox") as ledger:
        number = collecting.forget_rehearsal(study, ledger)
        (study.scratch / REHEARSAL_FILE).unlink(missing_ok=True)
        ledger.forget()  # last: after a crash, the next run removes the rest
    label = label_of("rehearsal", "sandbox")
    print(f"[{label}] {count(number, 'rating')} and everything else of the rehearsal removed")
    return 0
