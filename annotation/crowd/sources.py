"""Which ratings are a crowd campaign's, and whether its ledger knows the batches that they are of."""

from __future__ import annotations

from annotation.crowd.ledger import Ledger
from annotation.offering import LEDGER, Mode, ledgers, read_offered
from annotation.ratings.ratings import read_all_ratings
from plumbline.errors import DataError
from plumbline.study import Study
from plumbline.study.crowd import PLATFORMS, PlatformName


def source_of(platform: PlatformName, mode: Mode) -> str:
    """What the ratings of a campaign say about where they come from."""
    return platform if mode == "live" else f"{platform} {mode}"


def refuse_lost_batches(study: Study, ledger: Ledger) -> None:
    """Raise DataError where there are ratings of a live batch, on any platform, that the ledger never offered.

    It was lost then, or is an older copy, and would have the same work offered and paid once more. Raises as
    `refuse_lost_campaign`.
    """
    refuse_lost_campaign(study, ledger.mode)
    if ledger.mode == "sandbox":
        return  # there it costs nothing
    ratings = read_all_ratings(study)
    for platform in PLATFORMS:
        rated = set(ratings.loc[ratings["source"] == source_of(platform, "live"), "batch"])
        if lost := sorted(rated - ledger.posted(platform)):
            raise DataError(
                f"{ledger.path}: there are ratings of {len(lost)} live {platform} batches that this ledger never"
                f" offered (first {lost[0]}); bring its latest copy back: by this one the same work would be paid"
                " again"
            )


def refuse_lost_campaign(study: Study, mode: Mode) -> None:
    """Raise DataError where a live campaign is noted of which this machine's ledger has no batch.

    With records at an address each machine has a ledger of its own, and that of the launch alone knows what was paid.
    """
    path = study.scratch / LEDGER
    known = {f"{there} {platform}" for platform, there in ledgers(path)} if mode == "live" else set()
    for one in read_offered(study) if mode == "live" else ():
        if one.to.startswith("live ") and one.to not in known:
            raise DataError(
                f"{path}: this ledger knows nothing of the batches that were offered on {one.at:%Y-%m-%d} ({one.to});"
                " go on where they were launched, or bring its ledger here: by this one the same work would be paid"
                " again"
            )
