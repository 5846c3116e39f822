"""`plumbline crowd COMMAND`: a campaign with crowd workers, each command repeatable and interruptible.

Without `--live` everything happens in MTurk's sandbox, or as drafts on Prolific: no money moves, and ratings are
marked as a rehearsal's.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import Group, Parameter
from cyclopts.validators import LimitedChoice

from annotation.campaign.counting import excluded_raters
from annotation.campaign.names import is_pseudonym, pseudonym_key, worker_pseudonym
from annotation.campaign.offering import (
    LEDGER,
    REHEARSED,
    CampaignName,
    Mode,
    alone,
    begin_offering,
    ledgers,
    present_campaigns,
    refuse_other_offering,
    words_changed,
)
from annotation.campaign.records import CampaignRecords, collected_files, shown_files
from annotation.campaign.rubric import placeholder_lines
from annotation.crowd import collecting, judging, pay, summary
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.ledger import Ledger, refuse_lost_campaign
from annotation.crowd.platform import Opening, RefusedError, crowd_of, platform_class, platforms_with
from annotation.crowd.prolific.workspaces import read_refused, release
from annotation.crowd.rehearsal import REHEARSAL_FILE
from annotation.options import CampaignOptions
from annotation.ratings.answers import answers_line
from annotation.records import NO_REASON
from annotation.sampling.sample import mismatch
from annotation.server.home import Home
from annotation.verdicts.counted import ahead_of_sample, never_lines, size_line
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline.cli import Choice, Positive, StudyOptions, reads, whole
from plumbline.errors import PlumblineError, StudyError
from plumbline.exhibits.table import remove_files
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.crowd import PlatformName
from plumbline.words import count

CONFIRM = "pay"  # what a person types before money moves
_MODE = Group("At most one of these", validator=LimitedChoice(0, 1))


@Parameter(name="*")
@dataclass(frozen=True)
class CrowdOptions(CampaignOptions):
    """The study, and which of its crowd campaigns a command works on.

    Args:
        platform: The platform (default: a rehearsal in progress, else the study's, else that of its only campaign);
            `rehearsal` simulates a crowd; `mturk` has closed.
        live: Use the real platform; without it, the sandbox (MTurk) or drafts (Prolific), and nothing is spent.
        test: Use Prolific's own test mode: test participants go through a published batch, and nothing of it counts or
            costs.
    """

    platform: Annotated[PlatformName | None, Choice] = None
    live: Annotated[bool, Parameter(group=_MODE)] = False
    test: Annotated[bool, Parameter(group=_MODE)] = False

    @property
    def mode(self) -> Mode:
        """The campaign's mode: with people and money, the platform's test, or a rehearsal."""
        return "live" if self.live else "test" if self.test else "sandbox"

    def limit(self, campaign: CampaignName) -> int | None:
        """Return the money that the campaign may have spent after the command, in cents; None: not a cent more."""
        return None


@Parameter(name="*")
@dataclass(frozen=True)
class SpendingOptions(CrowdOptions):
    """A campaign, and the money that a command may spend.

    Args:
        max_cost: The limit for the cost of the whole campaign.
        yes: Spend money without asking for confirmation.
    """

    max_cost: Annotated[Positive | None, Parameter(metavar="DOLLARS")] = None
    yes: bool = False

    def limit(self, campaign: CampaignName) -> int | None:
        """Return the limit where money moves, after a person confirmed it; the rehearsal asks too, of play money."""
        if not campaign.spends:
            return None
        what = "a rehearsal" if campaign.made_up else "--live"
        if self.max_cost is None:
            raise StudyError(f"{what} spends money and needs a limit; add --max-cost DOLLARS, for the whole campaign")
        limit = int(self.max_cost * 100 + 1e-6)
        _confirm(campaign, f"This may spend up to {pay.dollars(limit)} in all.", yes=self.yes)
        return limit


def _confirm(campaign: CampaignName, cost: str, *, yes: bool) -> None:
    """Go on once a person has confirmed what something costs. Raises StudyError if nobody does."""
    if yes:
        return
    what = "a rehearsal" if campaign.made_up else "--live"
    if not sys.stdin.isatty():
        raise StudyError(f"{what} asks for confirmation before it spends, but there is no terminal here; add --yes")
    print(campaign.marked(f"{cost} Type `{CONFIRM}` to go on:"), end=" ", flush=True)
    if sys.stdin.readline().strip() != CONFIRM:
        raise StudyError("not confirmed; nothing was spent")


_Number = Annotated[int, reads(whole(1, 10_000)), Parameter(metavar="N")]
_APPROVED = Group("One of these", validator=LimitedChoice(1))


def lacking(records: CampaignRecords, campaign: CampaignName, *, launching: bool = True) -> list[str]:
    """Return a line for each missing setting, in the order of docs/howto; `launching` adds those of `launch`."""
    platform, lines = platform_class(campaign.platform), list[str]()
    to_launch = platform.settings_to_launch(records, campaign.mode) if launching else ()
    for check in [*platform.settings(records), *to_launch]:
        try:
            check()
        except PlumblineError as error:
            lines.append(str(error))
    return [*lines, *(placeholder_lines(records.study, records.rubric) if launching and not campaign.made_up else ())]


def refuse_incomplete(records: CampaignRecords, campaign: CampaignName, *, launching: bool = True) -> None:
    """Raise StudyError if a setting is missing; if several are, first print a line for each.

    A refused plan also names the settings that only `launch` needs.
    """
    if not (complaints := lacking(records, campaign, launching=launching)):
        return
    complaints = complaints if launching else lacking(records, campaign)
    if not complaints[1:]:
        raise StudyError(complaints[0])
    print("\n".join(f"  missing: {line}" for line in complaints), file=sys.stderr)
    raise StudyError(
        f"{records.study.file}: crowd workers cannot be asked yet: {len(complaints)} settings are missing (listed"
        f" above); {platform_class(campaign.platform).guide} shows where each belongs"
    )


@contextlib.contextmanager
def campaign_of(
    study: Study, options: CrowdOptions, *, begins: bool = False, invite: int = 0
) -> Iterator[CrowdCampaign]:
    """Open the campaign that the options name, and lock it; errors name the campaign.

    Raises StudyError if it has no batches yet, unless this command `begins` it; `invite` is for a mailing list.
    """
    records = CampaignRecords(study)
    name = campaign_name(records, options)
    platform = platform_class(name.platform)
    try:
        if name.platform not in platforms_with(name.mode):
            raise StudyError(f"{name.platform} has no test mode, only prolific has; leave out --test")
        platform.refuse(records)
        if begins:
            refuse_incomplete(records, name)
        refuse_lost_campaign(records, name.mode)
        limit = options.limit(name)
        with contextlib.ExitStack() as stack:
            stack.enter_context(alone(study))
            ledger = stack.enter_context(Ledger(study.scratch / LEDGER, study.name, *name))
            key = pseudonym_key(options.home)
            opened = platform.open(Opening(study, name.mode, options.home, key, invite, stack))
            if not (begins or ledger.offered()):
                raise StudyError(f"{study.name} has no batches here yet; begin with `{name.command(study, 'launch')}`")
            yield CrowdCampaign(study, opened, ledger, key, limit)
    except PlumblineError as error:
        raise type(error)(*(f"[{name.label}] {fault}" for fault in error.args)) from None


def campaign_name(records: CampaignRecords, options: CrowdOptions) -> CampaignName:
    """Return the campaign that the options name.

    Its platform is the named one, else `rehearsal` while one runs, the study's, or that of its only campaign.
    """
    study, mode = records.study, options.mode
    begun = ledgers(study.scratch / LEDGER)
    here = [campaign for campaign in begun if campaign.mode == mode]
    if not options.platform and (rehearsal := next((campaign for campaign in here if campaign.made_up), None)):
        return rehearsal  # until it is forgotten, nobody else is asked
    if platform := options.platform or (study.crowd.platform if study.crowd else None):
        named = CampaignName(platform, mode)
        if named.made_up and mode != "sandbox":
            raise StudyError(f"a rehearsal is never live; leave out --{mode}")
        return named
    if len(here) != 1:
        refuse_lost_campaign(records, mode)
        _refuse_unnamed(study, mode, [campaign.platform for campaign in here], begun)
    return here[0]


def _refuse_unnamed(study: Study, mode: Mode, platforms: Sequence[str], begun: Sequence[CampaignName]) -> NoReturn:
    """Raise StudyError: the options name no platform, and none or several have a campaign in this mode."""
    has = f"has campaigns on {' and '.join(platforms)}" if platforms else f"has no {mode} campaign yet"
    if begun and mode == "sandbox" and not platforms:
        begun_mode = begun[0].mode
        raise StudyError(
            f"{study.name} {has}, but a {begun_mode} one; add --{begun_mode} to use it, or --platform to rehearse"
        )
    begin = "" if begun else f"; `{REHEARSED.command(study, 'plan')}` begins a rehearsal, without people or money"
    open_now = [platform for platform in platforms_with(mode) if platform != "mturk"]  # which has closed
    choice = " or --platform ".join(platforms or open_now)
    raise StudyError(f"{study.name} {has}; name the platform: --platform {choice}{begin}")


def show_plan(*, options: CrowdOptions, pilot: _Number = 0) -> StudyOptions:
    """Show what would be offered and what it costs; nothing is created.

    Example: plumbline crowd plan --study studies/mine.yaml --platform prolific

    Args:
        options: The study and its campaign.
        pilot: A trial with N pairs per group of languages (PTEB: 20).
    """
    study = options.load()
    records = Evidence(study)
    campaign = campaign_name(records, options)
    platform_class(campaign.platform).refuse(records)
    refuse_incomplete(records, campaign, launching=False)
    with stage(study, "crowd plan", settings={"campaign": str(campaign)}):
        print(summary.plan_text(records, campaign, pilot))
    groups = ahead_of_sample(records.pairs, study.acceptance, study.raters_of)
    print(campaign.marked(size_line(groups, study.called.item, study.acceptance)))
    for line in [*never_lines(study, groups, offered=False), *lacking(records, campaign)]:
        print(campaign.marked(f"before launching: {line}"))
    return options


def launch_batches(
    *,
    options: SpendingOptions,
    pilot: _Number = 0,
    invite: _Number = 20,
    tester: Annotated[str, Parameter(metavar="EMAIL")] = "",
) -> StudyOptions:
    """Offer batches to workers, within the limits on cost and on batches per worker.

    Example: plumbline crowd launch --study studies/mine.yaml --platform prolific --pilot 20

    Args:
        options: The study, its campaign and the money to spend.
        pilot: A trial with N pairs per group of languages (PTEB: 20).
        invite: With a mailing list: the number of people, each with their own link to each batch (default: 20).
        tester: With --test, once for a workspace: make a test participant with this address, which must be new to
            Prolific.
    """
    study = options.load()
    with campaign_of(study, options, begins=True, invite=invite) as campaign:
        if changed := mismatch(campaign.records, campaign.records.shown):
            raise StudyError(*changed)
        groups = ahead_of_sample(campaign.records.pairs, study.acceptance, study.raters_of)
        if groups and all(group.lacks(study) for group in groups):
            raise StudyError(never_lines(study, groups, offered=False)[0])
        campaign.platform.balance()  # keys that cannot be used are refused before rules are fixed
        if campaign.name.counts:
            fix_rules(campaign.records)
            campaign.reopen()
        rubric, name = campaign.rubric, str(campaign.name)
        if words_changed(campaign.records, name, rubric):
            campaign.say("batches offered earlier keep the wording of their launch, not the rubric's present wording")
        refuse_other_offering(campaign.records, name, rubric)
        if tester:
            try:
                campaign.do("tester", tester)
            except RefusedError as error:  # it may be there already; without one, Prolific refuses the test itself
                campaign.say(f"refused: {error}")
        done = campaign.launch(pilot, lambda: begin_offering(campaign.records, name, rubric))
        campaign.say(
            f"{count(done.posted, 'batch', 'batches')} offered now, {done.extended} opened again;"
            f" {len(done.open)} {'is' if len(done.open) == 1 else 'are'} open,"
            f" {done.waiting} {'waits' if done.waiting == 1 else 'wait'} until earlier batches are done"
        )
        for line in campaign.platform.launch_lines(done.open):
            campaign.say(line)
        for line in done.troubles:
            campaign.say(f"refused: {line}")
        if done.stopped:
            raise StudyError(done.stopped)
    return options


def show_campaign(*, options: CrowdOptions) -> StudyOptions | None:
    """Show the state of the campaign, and who was refused in another browser.

    Example: plumbline crowd status --study studies/mine.yaml
    """
    study = options.load()
    summaries = summary.read_summaries(Evidence(study))
    if not summaries:
        refuse_lost_campaign(CampaignRecords(study), "live")
        crowd_of(study)
        print(f"{study.name}: no crowd campaign yet")
        return options
    print(*map(summary.summary_text, summaries), sep="\n\n")
    for (refusing, worker), at in read_refused(options.home, study.name).items():
        data = f" --data {shlex.quote(str(options.home.path))}" if options.home != Home() else ""
        line = (
            f"{worker} was refused in another browser than the one that began ({at:%Y-%m-%d %H:%M} UTC); if the person"
            f" asks to go on in another one: {refusing.command(study, f'release {worker}')}{data}"
        )
        print(refusing.marked(line))
    return None


def release_worker(participant: str, /, *, options: CrowdOptions) -> None:
    """Let a participant go on in another browser than the one that began: the next one that comes is theirs.

    Example: plumbline crowd release --study studies/mine.yaml worker-1a2b3c4d5e6f --live

    Args:
        participant: The participant's id on the platform, or the pseudonym that `status` shows.
        options: The study and its campaign.
    """
    study, home = options.load(), options.home
    campaign, worker = campaign_name(CampaignRecords(study), options), participant
    if not is_pseudonym(worker):
        worker = worker_pseudonym(pseudonym_key(home), study.name, campaign.platform, worker)
    if not release(home, study.name, campaign, worker):
        raise StudyError(
            f"[{campaign.label}] {worker} was refused in no browser; `{study.command('crowd status')}` lists who was"
        )
    line = f"{worker} may go on: the next browser that opens the link and begins is theirs; ask them to open it now"
    print(campaign.marked(line))


def collect_campaigns(
    study: Study, options: CampaignOptions, *, replace: bool = False, participants: Path | None = None
) -> None:
    """Fetch submissions and answers of the study's campaigns (`plumbline collect`).

    `participants` is the platform's CSV of participants, for a campaign by links.
    """
    records, campaigns = CampaignRecords(study), present_campaigns(study.scratch / LEDGER)
    refuse_lost_campaign(records, "live")
    if participants:
        campaigns = [name for name in campaigns if name.platform == "link"] or campaigns
        if not campaigns:
            raise StudyError(f"--participants is for people who came by links, but {study.name} has no campaign yet")
    for name in campaigns:
        live, test = name.mode == "live", name.mode == "test"
        chosen = CrowdOptions(**vars(options), platform=name.platform, live=live, test=test)
        files = shown_files(study.folder), collected_files(study.folder)
        noted = stage(study, "collect", *files) if name.counts else contextlib.nullcontext()
        with noted, campaign_of(study, chosen) as campaign:
            if participants:
                campaign.platform.confirm(participants)
            done = collecting.collect(campaign, replace=replace)
            in_all = f"in all {answers_line(campaign.records)}" if name.counts else "of a test: no answer counts"
            campaign.say(f"{count(done.new, 'submission')} read, {in_all}")
            for line in done.troubles.values():
                campaign.say(f"cannot be read: {line}")
            if campaign.platform.after_collecting:
                campaign.say(campaign.platform.after_collecting)


def collect_archive(study: Study, home: Home, archive: Path, *, replace: bool = False) -> None:
    """Read a result file of the MTurk site (`plumbline collect --archive`)."""
    with stage(study, "collect", shown_files(study.folder), collected_files(study.folder)), alone(study):
        done = collecting.collect_archive(study, pseudonym_key(home), archive, replace=replace)
    print(
        f"{study.name}: {count(done.new, 'submission')} read from {archive},"
        f" in all {answers_line(CampaignRecords(study))}"
    )
    print("\n".join(f"  left out: {line}" for line in done.troubles.values()), end="\n" if done.troubles else "")


def show_waiting(records: Evidence) -> tuple[str, str] | None:
    """Print the submissions that wait for a decision, with signs, times and pay (`plumbline review`).

    Returns the command and words of a person who decides about one; None where nobody has to.
    """
    path, commands, doubtful = records.study.scratch / LEDGER, list[str](), list[str]()
    for name in present_campaigns(path):
        with Ledger(path, records.study.name, *name) as ledger:
            title = "Submissions that wait for a decision, as of the last collection; signs are advice only"
            print(name.marked(f"{title}\n{summary.cases_text(records, ledger)}"))
            keys = _doubtful(records, ledger)
            commands += [_deciding(name, records, f"{way} {key}") for key in keys for way in ("approve", "reject")]
            doubtful += keys
    if not doubtful:
        return None
    print("\nTo decide, one of these for each submission, with your reason in the quotes:", *commands, sep="\n  ")
    look = records.study.command(f"review --answers {doubtful[0]}")
    return look, "shows its answers, pair by pair, to the person who decides"


def _doubtful(records: Evidence, ledger: Ledger) -> list[str]:
    """Return the submissions that wait for a decision, and that something speaks against."""
    return [case.work.submission.submission_id for case in judging.cases(records, ledger) if case.against]


def _deciding(name: CampaignName, records: Evidence, decision: str) -> str:
    return f"{name.command(records.study, decision)} --reason {NO_REASON}"


def show_submission(records: Evidence, submission: str) -> tuple[str, str] | None:
    """Print a submission's answers, pair by pair (`plumbline review --answers`).

    Returns the command and words of a person who decides about it; None where nobody has to.
    """
    path = records.study.scratch / LEDGER
    campaigns = present_campaigns(path)
    if not campaigns:
        raise StudyError(f"--answers shows a crowd's submission, but {records.study.name} has no crowd campaign yet")
    for name in campaigns:
        with Ledger(path, records.study.name, *name) as ledger:
            here = submission in {work.submission.submission_id for work in ledger.work()}
            if here or name == campaigns[-1]:  # the last one refuses what none has
                print(name.marked(judging.sheet_text(records, ledger, submission)))
                if submission not in _doubtful(records, ledger):
                    break
                words = "pays it if you trust it, for your reason in the quotes; if not, take `crowd reject`"
                return _deciding(name, records, f"approve {submission}"), words
    return None


def approve_work(
    submissions: Annotated[tuple[str, ...], Parameter(group=_APPROVED)] = (),
    /,
    *,
    options: CrowdOptions,
    every: Annotated[bool, Parameter(name="--all", group=_APPROVED)] = False,
    reason: Annotated[str, Parameter(metavar="TEXT")] = "",
    yes: bool = False,
) -> StudyOptions:
    """Approve submissions, which pays them.

    Example: plumbline crowd approve --study studies/mine.yaml --all

    Args:
        submissions: Their ids, as `review` lists them.
        options: The study and its campaign.
        every: All submissions that nothing speaks against.
        reason: Your reason for paying submissions that `review` advises to ask about.
        yes: Pay excluded workers, whose batches others do again, without asking for confirmation.
    """
    if every and reason:
        raise StudyError("--reason is for submissions that you name; leave out --all, or the reason")
    with campaign_of(options.load(), options) as campaign:
        campaign.refresh()
        if every:
            number, waiting = judging.approve_all(campaign)
        else:
            if reason.strip():
                _warn_of_excluded(campaign, submissions, yes=yes)
            number, waiting = judging.approve(campaign, submissions, reason), []
        more = f"; {count(len(waiting), 'waits', 'wait')} for a person's decision (plumbline review)" if waiting else ""
        if not (number or waiting):
            more = f"; none waits: {judging.states_text(campaign, submissions)}"
        campaign.say(f"{count(number, 'submission')} approved{more}")
        for case in waiting:
            campaign.say(f"  {case.work.submission.submission_id}: {'; '.join(case.against)}")
        _write_lists(campaign)
    return options


def _warn_of_excluded(campaign: CrowdCampaign, submissions: Sequence[str], *, yes: bool) -> None:
    """Say what paying excluded workers costs, and ask where money moves. Raises StudyError if nobody confirms it."""
    excluded, cents = excluded_raters(campaign.records.decided), 0
    for work in judging.works_of(campaign.ledger, submissions):
        if work.submission.state == "submitted" and work.pseudonym in excluded:
            cents += (unit := campaign.unit_cost(work.batch_id))
            campaign.say(
                f"{work.submission.submission_id} costs {pay.dollars(unit)}, but {work.pseudonym} is excluded: these"
                " ratings do not count, and another worker does the batch again for as much"
            )
    if cents and campaign.name.spends:
        _confirm(campaign.name, f"This pays {pay.dollars(cents)} for ratings that do not count.", yes=yes)


def reject_work(
    submissions: tuple[str, ...], /, *, options: CrowdOptions, reason: Annotated[str, Parameter(metavar="TEXT")] = ""
) -> StudyOptions:
    """Reject submissions, with a reason: they are not paid, and their ratings are excluded.

    Example: plumbline crowd reject --study studies/mine.yaml SUBMISSION --reason "both controls the wrong way round"

    Args:
        submissions: Their ids, as `review` lists them.
        options: The study and its campaign.
        reason: Your reason; the worker reads it.
    """
    with campaign_of(options.load(), options) as campaign:
        campaign.refresh()
        number = judging.reject(campaign, submissions, reason)
        cents = sum(batch.cost_to_come for batch in campaign.places().values())
        campaign.say(
            f"{count(number, 'submission')} rejected and all ratings of their workers excluded;"
            f" `{campaign.name.command(campaign.study, 'launch')}` offers their places to other workers"
            + (f", for {pay.dollars(cents)}" if cents else "")
        )
    return options


def pay_bonuses(*, options: SpendingOptions) -> StudyOptions:
    """Pay bonuses where the work took longer than the reward pays for.

    Example: plumbline crowd bonus --study studies/mine.yaml --live --max-cost 500
    """
    with campaign_of(options.load(), options) as campaign:
        number, cents = judging.pay_bonuses(campaign)
        in_all = f", {pay.dollars(cents)} in all" if number else ""
        campaign.say(f"{count(number, 'bonus', 'bonuses')} paid for work that took longer than assumed{in_all}")
        _write_lists(campaign)
    return options


def _write_lists(campaign: CrowdCampaign) -> None:
    for path in campaign.platform.write_lists():
        campaign.say(f"payments to make: {path}")


def close_campaign(*, options: CrowdOptions, forget: bool = False) -> StudyOptions:
    """Stop for good: nobody new can begin, and workers who have begun may finish.

    Example: plumbline crowd close --study studies/mine.yaml

    Args:
        options: The study and its campaign.
        forget: Remove a rehearsal's ratings and records from the study, or a test's.
    """
    study = options.load()
    if forget:
        name = campaign_name(CampaignRecords(study), options)
        if name.counts and not name.made_up:
            raise StudyError(
                "--forget removes only a rehearsal's or a test's records; leave it out, or add --platform rehearsal"
            )
        with alone(study), Ledger(study.scratch / LEDGER, study.name, *name) as ledger:
            number = collecting.forget_rehearsal(study, ledger) if name.made_up else 0
            if name.made_up:
                for folder in ("export", "export/xlsx", "export/datasets"):
                    remove_files(study.folder / folder)
                (study.scratch / REHEARSAL_FILE).unlink(missing_ok=True)
            ledger.forget()  # last: after a crash, the next run removes the rest
        what = "rehearsal" if name.made_up else "test"
        staying = [f"{folder}/" for folder in ("report", "sheet", "snapshots") if (study.folder / folder).exists()]
        but = f", except in {study.folder}: {', '.join(staying)}" if name.made_up and staying else ""
        print(name.marked(f"{count(number, 'rating')} and everything else of the {what} removed{but}"))
        return options
    with campaign_of(study, options) as campaign:
        name, (closed, released) = campaign.name, campaign.close()
        unoffered = len(campaign.ledger.offered()) - closed
        never = f"{count(unoffered, 'batch was', 'batches were')} never offered"
        launch, rest = name.command(study, "launch"), "it" if unoffered == 1 else "them"
        more = f"; {never}; `{launch}` can still offer {rest}" if unoffered else ""
        campaign.say(f"{count(closed, 'batch', 'batches')} closed, {pay.dollars(released)} released{more}")
        if waiting := len(judging.cases(campaign.records, campaign.ledger)):
            waits = count(waiting, "submission still waits", "submissions still wait")
            collect, review = study.command("collect"), study.command("review")
            campaign.say(f"{waits} for your decision: `{collect}`, then `{review}`")
        if due := judging.owed(
            campaign.ledger, excluded_raters(campaign.records.decided), campaign.spec
        ):  # closing ends the wait for batches that lack workers
            owed = count(len(due), "bonus is", "bonuses are")
            campaign.say(f"{owed} owed; pay with `{name.command(study, 'bonus')}`")
    return options
