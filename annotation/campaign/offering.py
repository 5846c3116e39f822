"""Records of what raters may have seen: once a sample is offered, no other sample may replace it.

`offered.json` notes each offer before its first request: the pairs, the controls and the rubric. Rehearsals in a
crowd's sandbox are noted too, but do not fix the sample.
"""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from annotation.campaign.records import CONTROLS, PAIRS, RATINGS, WAVES, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.records import Offering, Wave
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest
from plumbline.records import REHEARSAL, SANDBOX
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.crowd import PlatformName

FILE = "offered.json"
LEDGER = "crowd.sqlite"  # what a crowd campaign did (`annotation.crowd.ledger`)
Mode = Literal["sandbox", "test", "live"]  # a rehearsal; the platform's own test, which never counts; real work
ARGILLA = "argilla"
_TRIED = ("sandbox ", "test ")  # how rehearsals and tests on a crowd platform begin
COMMAND = "publish"


class CampaignName(NamedTuple):
    """The name of a crowd campaign: its platform and mode."""

    platform: PlatformName
    mode: Mode

    def __str__(self) -> str:
        return f"{self.mode} {self.platform}"  # as records have it (`Offering.to`)

    @property
    def made_up(self) -> bool:
        """Whether the crowd is the rehearsal's, which is nobody."""
        return self.platform == "rehearsal"

    @property
    def label(self) -> str:
        """The label at the start of each line of its output."""
        return REHEARSAL if self.made_up else str(self)

    def marked(self, text: str) -> str:
        """Put the label before each line, so that copied lines name their origin."""
        return "\n".join(f"{self.mark}{line}".rstrip() for line in text.split("\n"))

    @property
    def mark(self) -> str:
        """What `marked` puts before a line."""
        return f"[{self.label}] "

    def words(self, action: str) -> str:
        """Return a `crowd` command on this campaign without the program and the study."""
        return f"crowd {action} --platform {self.platform}{'' if self.mode == 'sandbox' else f' --{self.mode}'}"

    def command(self, study: Study, action: str) -> str:
        """Return a `crowd` command on this campaign, to paste (`collect` and `review` know their campaigns)."""
        limit = " --max-cost DOLLARS" if self.spends and action in ("launch", "bonus") else ""
        return study.command(f"{self.words(action)}{limit}")

    @property
    def source(self) -> str:
        """The value of its ratings' column `source`."""
        if self.made_up:
            return REHEARSAL
        return self.platform if self.mode == "live" else f"{self.platform}{SANDBOX}"

    @property
    def counts(self) -> bool:
        """Whether its answers and its money are the study's: those of a test are not."""
        return self.mode != "test"

    @property
    def spends(self) -> bool:
        """Whether a limit on spending applies: where money moves, and in the rehearsal."""
        return self.mode == "live" or self.made_up


REHEARSED = CampaignName("rehearsal", "sandbox")  # the rehearsal's


def alone(study: Study) -> contextlib.AbstractContextManager[None]:
    """Lock the campaign; a second command on it is refused meanwhile."""
    return only_one(study.scratch / ".campaign.lock", f"another command is working on the campaign of {study.name!r}")


def offered(records: CampaignRecords) -> str:
    """Return how people may have come to see the sample, in words; empty where they cannot have."""
    if real := _real(records):
        return f"offered to raters ({real[0].to}, {real[0].at:%Y-%m-%d})"
    return "rated" if records.has(RATINGS) and len(records.collected.ratings) else ""


def _real(records: CampaignRecords) -> list[Offering]:
    return [offering for offering in records.offerings if not offering.to.startswith(_TRIED)]


def places_asked(records: CampaignRecords) -> set[str]:
    """Return where raters were asked: rehearsals and tests only while nobody is asked in earnest."""
    return {offering.to for offering in _real(records) or records.offerings}


def offered_to_raters(records: CampaignRecords) -> bool:
    """Return whether raters were offered the sample by this campaign; ratings alone (`rated`) may be another's."""
    return offered(records) not in ("", "rated")


def refuse_other_offering(records: CampaignRecords, to: str, rubric: Rubric) -> None:
    """Raise StudyError for another sample than was offered before, and for other words than people are being asked.

    `to` is `argilla`, or mode and platform of a crowd.
    """
    if to != str(REHEARSED) and (records.all_ratings["source"] == REHEARSAL).any():
        raise StudyError(
            f"{records.study.name} has a rehearsal's ratings, which cannot be mixed with others; first remove them:"
            f" `{REHEARSED.command(records.study, 'close --forget')}`"
        )
    refuse_other_sample(records)
    for offering in {offering.to: offering for offering in records.offerings}.values():
        if offering.rubric_hash == rubric.identity() or offering.to.startswith(_TRIED):
            continue
        line = f"{records.study.file}: the rubric {rubric.name!r} has changed, and"
        if offering.to != ARGILLA:
            raise StudyError(
                f"{line} the batches on {offering.to} show the words of their launch ({offering.at:%Y-%m-%d}); undo the"
                " change, or give the new study another name"
            )
        if to != ARGILLA and not to.startswith(_TRIED):
            raise StudyError(
                f"{line} the datasets in Argilla show its old words; run `{records.study.command(COMMAND)}` first, or"
                " undo the change"
            )


def begin_offering(records: CampaignRecords, to: str, rubric: Rubric) -> None:
    """Record that the sample is about to be offered; call it before, with the study locked.

    Raises as `refuse_other_offering`.
    """
    refuse_other_offering(records, to, rubric)
    offerings = records.offerings
    new = Offering(
        at=datetime.now(UTC),
        to=to,
        pairs_sha256=records.sha256(PAIRS),
        controls_sha256=records.sha256(CONTROLS),
        rubric_hash=rubric.identity(),
    )
    latest = {offering.to: offering for offering in offerings}
    if to not in latest or latest[to].model_copy(update={"at": new.at}) != new:
        Manifest.of(records.study).write_models(FILE, [*offerings, new])


def words_changed(records: CampaignRecords, to: str, rubric: Rubric) -> bool:
    """Return whether the last offer at a place shows other words than the rubric's."""
    return any(offering.rubric_hash != rubric.identity() for offering in records.offerings if offering.to == to)


def refuse_other_sample(records: CampaignRecords, *, cut_off: bool = False) -> None:
    """Raise StudyError if `pairs.parquet` or `controls.parquet` differs from the one offered to raters.

    The offered sample with its later extensions is accepted. An extension that was cut off must be finished first, so
    it is refused, unless `cut_off` says that the caller finishes it.
    """
    real, waves = _real(records), records.waves
    for name, file in (("pairs", PAIRS), ("controls", CONTROLS)) if real else ():
        hashes = {getattr(real[-1], f"{name}_sha256")}
        for wave in waves:
            if getattr(wave, f"{name}_before") in hashes:
                hashes.add(getattr(wave, f"{name}_sha256"))
        if records.sha256(file) not in hashes:
            raise StudyError(
                f"{records.path(file)} is not the one that was offered to raters on {real[-1].at:%Y-%m-%d};"
                " restore that one, or give the new study another name"
            )
    if waves and not cut_off and not is_complete(records, waves[-1]):
        raise StudyError(
            f"{records.path(PAIRS)}: its extension to wave {waves[-1].number} was cut off; run"
            f" `{WAVES.command(records.study)}` again"
        )


def is_complete(records: CampaignRecords, wave: Wave) -> bool:
    """Return whether an extension was written to its end."""
    return (wave.pairs_sha256, wave.controls_sha256) == (records.sha256(PAIRS), records.sha256(CONTROLS))


def present_campaigns(path: Path) -> list[CampaignName]:
    """Return the campaigns of a ledger whose work is collected and reviewed: live ones end rehearsals, not tests."""
    begun = ledgers(path)
    ended = "sandbox" if any(campaign.mode == "live" for campaign in begun) else None
    return [campaign for campaign in begun if campaign.mode != ended]


def ledgers(path: Path) -> list[CampaignName]:
    """Return a ledger's campaigns; none without a ledger."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            if database.execute("PRAGMA user_version").fetchone() == (0,):
                return []  # a crash came between making the file and filling it
            rows = database.execute("SELECT DISTINCT platform, mode FROM batches ORDER BY mode, platform")
            return [CampaignName(platform, mode) for platform, mode in rows]
        except sqlite3.DatabaseError as error:
            raise DataError(f"{path}: cannot be read as a ledger ({error}); restore it from a backup") from None
