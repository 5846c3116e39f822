"""Open a crowd campaign as a command line names it: platform and mode, its ledger, and what may be spent."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

from annotation.argilla.client import connect
from annotation.crowd import platform as pay
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.ledger import Ledger, refuse_lost_campaign
from annotation.crowd.platform import Platform
from annotation.crowd.steps import crowd_of
from annotation.offering import LEDGER, Mode, alone, ledgers
from annotation.pseudonyms import pseudonym_key
from annotation.ratings.exclusions import withdrawn_pairs
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import read_pairs
from annotation.server_commands import home_of
from plumbline.errors import PlumblineError, StudyError
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PlatformName


def lacking(study: Study, platform: PlatformName, mode: Mode, *, launching: bool = True) -> list[str]:
    """A line for each thing that is missing, in the order of docs/howto; what only `launch` needs where `launching`.

    Countries are asked for the languages of the sample, as soon as there is one.
    """
    spec = study.crowd or CrowdSpec()
    checks: list[Callable[[], object]] = [partial(crowd_of, study)]
    checks += [partial(spec.countries_of, language) for language in _languages(study, platform)]
    if platform == "prolific":
        checks.append(partial(pay.fee, platform, 100, 1, spec))
        if launching:
            from annotation.crowd.prolific.api import token_of  # noqa: PLC0415 (takes a while)
            from annotation.crowd.prolific.workspaces import crowd_with_address  # noqa: PLC0415

            checks += [partial(crowd_with_address, study, mode), token_of]
    return list(_complaints(checks))


def refuse_incomplete(study: Study, platform: PlatformName, mode: Mode, *, launching: bool = True) -> None:
    """Raise StudyError where something is missing; of several things each is printed first, as a line of its own.

    A plan that is refused names also what only `launch` needs.
    """
    if not (complaints := lacking(study, platform, mode, launching=launching)):
        return
    complaints = complaints if launching else lacking(study, platform, mode)
    if not complaints[1:]:
        raise StudyError(complaints[0])
    print("\n".join(f"  missing: {line}" for line in complaints), file=sys.stderr)
    raise StudyError(
        f"{study.file}: {len(complaints)} things are missing before crowd workers can be asked (they stand above);"
        f" docs/howto/{platform}.md shows where each belongs"
    )


def _languages(study: Study, platform: PlatformName) -> list[str]:
    """The languages whose readers are looked for by country."""
    if not (study.folder / "pairs.parquet").exists():
        return []
    withdrawn = withdrawn_pairs(study)
    queues = queues_of([pair for pair in read_pairs(study) if pair.pair_id not in withdrawn])
    languages = (
        {queue.rarer for queue in queues} if platform == "mturk" else {n for queue in queues for n in queue.languages}
    )
    return sorted(languages)


def _complaints(checks: list[Callable[[], object]]) -> Iterator[str]:
    for check in checks:
        try:
            check()
        except PlumblineError as error:
            yield str(error)


CONFIRM = "pay"  # what a person types before money moves


@contextlib.contextmanager
def campaign_of(
    study: Study, options: argparse.Namespace, *, spends: bool = False, begins: bool = False
) -> Iterator[CrowdCampaign]:
    """The study's campaign as the options name it, nobody else working on it; errors say which it was.

    Raises StudyError where it has no batches yet, unless this command `begins` it.
    """
    name, mode = platform_name(study, options), mode_of(options)
    where = f"[{mode} {name}]"
    try:
        if begins:
            refuse_incomplete(study, name, mode)
        crowd_of(study)
        refuse_lost_campaign(study, mode)
        limit = _limit(options, mode, where) if spends else None
        with (
            alone(study),
            Ledger(study.scratch / LEDGER, study.name, name, mode) as ledger,
            _platform(study, name, options) as platform,
        ):
            if not (begins or ledger.offered()):
                raise StudyError(f"{study.name} has offered nothing here yet; begin with `crowd launch`")
            yield CrowdCampaign(study, platform, ledger, pseudonym_key(home_of(options)), limit)
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


def platform_name(study: Study, options: argparse.Namespace) -> PlatformName:
    """The platform that is named, or that of the study's only campaign in this mode."""
    if options.platform:
        named: PlatformName = options.platform
        return named
    platforms = [name for name, mode in ledgers(study.scratch / LEDGER) if mode == mode_of(options)]
    if len(platforms) != 1:
        refuse_lost_campaign(study, mode_of(options))
        has = f"has campaigns on {' and '.join(platforms)}" if platforms else f"has no {mode_of(options)} campaign yet"
        if not platforms and not options.live and ledgers(study.scratch / LEDGER):
            raise StudyError(f"{study.name} {has}, but a live one; add --live for that, or --platform to rehearse")
        raise StudyError(f"{study.name} {has}; say which platform: --platform mturk or --platform prolific")
    return platforms[0]


def mode_of(options: argparse.Namespace) -> Mode:
    """With people and money, or a rehearsal."""
    return "live" if options.live else "sandbox"


@contextlib.contextmanager
def _platform(study: Study, name: PlatformName, options: argparse.Namespace) -> Iterator[Platform]:
    """The platform, with what it needs."""
    mode = mode_of(options)
    if name == "mturk":
        from annotation.crowd.mturk.adapter import MTurk  # noqa: PLC0415 (extra `crowd`)

        yield MTurk(study, mode, endpoint=os.environ.get("MTURK_ENDPOINT", ""))
        return
    from annotation.crowd.prolific.adapter import Prolific  # noqa: PLC0415
    from annotation.crowd.prolific.workspaces import ArgillaRooms  # noqa: PLC0415

    home = home_of(options)
    key = pseudonym_key(home)
    with connect(home) as argilla:
        platform = Prolific(study, mode, key, ArgillaRooms(study, mode, key, argilla))
        try:
            yield platform
        finally:
            platform.close_connections()


def where_of(campaign: CrowdCampaign) -> str:
    """What begins each line: `[live mturk]`."""
    return f"[{campaign.platform.mode} {campaign.platform.name}]"
