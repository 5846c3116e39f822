"""What has to be said before crowd workers can be asked: all that is missing at once, not error by error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

from annotation.crowd import pay
from annotation.crowd.steps import crowd_of
from annotation.offering import Mode
from annotation.ratings.exclusions import withdrawn_pairs
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import read_pairs
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
            from annotation.crowd.prolific.rooms import crowd_with_address  # noqa: PLC0415

            checks += [partial(crowd_with_address, study, mode), token_of]
    return list(_complaints(checks))


def refuse_incomplete(study: Study, platform: PlatformName, mode: Mode, *, launching: bool = True) -> None:
    """Raise StudyError where something is missing; of several things each is printed first, as a line of its own.

    A plan that is refused names also what only `launch` needs.
    """
    if not (found := lacking(study, platform, mode, launching=launching)):
        return
    found = found if launching else lacking(study, platform, mode)
    if not found[1:]:
        raise StudyError(found[0])
    print("\n".join(f"  missing: {line}" for line in found), file=sys.stderr)
    raise StudyError(
        f"{study.file}: {len(found)} things are missing before crowd workers can be asked (they stand above);"
        f" docs/howto/{platform}.md shows where each belongs"
    )


def _languages(study: Study, platform: PlatformName) -> list[str]:
    """The languages whose readers are looked for by country."""
    if not (study.folder / "pairs.parquet").exists():
        return []
    withdrawn = withdrawn_pairs(study)
    queues = queues_of([pair for pair in read_pairs(study) if pair.pair_id not in withdrawn])
    found = (
        {queue.rarer for queue in queues} if platform == "mturk" else {n for queue in queues for n in queue.languages}
    )
    return sorted(found)


def _complaints(checks: list[Callable[[], object]]) -> Iterator[str]:
    for check in checks:
        try:
            check()
        except PlumblineError as error:
            yield str(error)
