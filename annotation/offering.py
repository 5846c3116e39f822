"""Records of what raters may have seen: once a sample is offered, no other sample may replace it.

`offered.json` notes each offer before its first request: the pairs, the controls and the rubric. Rehearsals in a
crowd's sandbox are noted too, but do not fix the sample.

A sample is refused if it no longer comes from the study's generator and prompts, and from the outputs on disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from annotation.campaign_records import CONTROLS, PAIRS, RATINGS, WAVES, CampaignRecords
from annotation.records import Offering, Wave
from annotation.rubric import Rubric
from annotation.subjects import read_items
from generation.jobs import COMMAND as GENERATE
from generation.jobs import Plan
from plumbline.errors import DataError, StudyError
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from plumbline.records import REHEARSAL, SANDBOX, Pair, TransformedText
from plumbline.store import only_one, read_batches
from plumbline.study import Study
from plumbline.study.crowd import PlatformName
from plumbline.words import count

FILE = "offered.json"
LEDGER = "crowd.sqlite"  # what a crowd campaign did (`annotation.crowd.ledger`)
Mode = Literal["sandbox", "live"]  # of a crowd campaign: a rehearsal, or with people and money
ARGILLA = "argilla"
_SANDBOX = "sandbox "  # how a rehearsal on a crowd platform begins
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

    @property
    def source(self) -> str:
        """The value of its ratings' column `source`."""
        if self.made_up:
            return REHEARSAL
        return self.platform if self.mode == "live" else f"{self.platform}{SANDBOX}"

    @property
    def spends(self) -> bool:
        """Whether a limit on spending applies: where money moves, and in the rehearsal."""
        return self.mode == "live" or self.made_up


def alone(study: Study) -> contextlib.AbstractContextManager[None]:
    """Lock the campaign; a second command on it is refused meanwhile."""
    return only_one(study.scratch / ".campaign.lock", f"another command is working on the campaign of {study.name!r}")


def offered(records: CampaignRecords) -> str:
    """Return how people may have come to see the sample, in words; empty where they cannot have."""
    for offering in records.offerings:
        if not offering.to.startswith(_SANDBOX):
            return f"offered to raters ({offering.to}, {offering.at:%Y-%m-%d})"
    return "rated" if records.has(RATINGS) and len(records.all_ratings) else ""


def offered_to_raters(records: CampaignRecords) -> bool:
    """Return whether raters were offered the sample by this campaign; ratings alone (`rated`) may be another's."""
    return offered(records) not in ("", "rated")


def refuse_other_offering(records: CampaignRecords, to: str, rubric: Rubric) -> None:
    """Raise StudyError for another sample than was offered before, and for other words than people are being asked.

    `to` is `argilla`, or mode and platform of a crowd.
    """
    if to != str(CampaignName("rehearsal", "sandbox")) and (records.all_ratings["source"] == REHEARSAL).any():
        close = records.study.command("crowd close")
        raise StudyError(
            f"{records.study.name} has a rehearsal's ratings, which cannot be mixed with others; first remove them:"
            f" `{close} --platform rehearsal --forget`"
        )
    refuse_other_sample(records)
    for offering in {offering.to: offering for offering in records.offerings}.values():
        if offering.rubric_hash != rubric.identity() and not offering.to.startswith(_SANDBOX):
            line = f"{records.study.file}: the rubric {rubric.name!r} has changed, and"
            _refuse_other_words(offering, to, line, records.study.command(COMMAND))


def begin_offering(records: CampaignRecords, to: str, rubric: Rubric) -> None:
    """Record that the sample is about to be offered; call it before, with the study locked.

    Raises as `refuse_other_offering`.
    """
    refuse_other_offering(records, to, rubric)
    offerings, now = records.offerings, _offering(records, to, rubric)
    latest = {offering.to: offering for offering in offerings}
    if to not in latest or latest[to].model_copy(update={"at": now.at}) != now:
        Manifest.of(records.study).write_models(FILE, [*offerings, now])


def words_changed(records: CampaignRecords, to: str, rubric: Rubric) -> bool:
    """Return whether the last offer at a place shows other words than the rubric's."""
    return any(offering.rubric_hash != rubric.identity() for offering in records.offerings if offering.to == to)


def _refuse_other_words(offering: Offering, to: str, line: str, command: str) -> None:
    if offering.to != ARGILLA:
        raise StudyError(
            f"{line} the batches on {offering.to} show the words of their launch ({offering.at:%Y-%m-%d}); undo the"
            " change, or give the new study another name"
        )
    if to != ARGILLA and not to.startswith(_SANDBOX):
        raise StudyError(
            f"{line} the datasets in Argilla show its old words; run `{command}` first, or undo the change"
        )


def refuse_other_sample(records: CampaignRecords, *, cut_off: bool = False) -> None:
    """Raise StudyError if `pairs.parquet` or `controls.parquet` differs from the one offered to raters.

    The offered sample with its later extensions is accepted. An extension that was cut off must be finished first, so
    it is refused, unless `cut_off` says that the caller finishes it.
    """
    real, waves = [offering for offering in records.offerings if not offering.to.startswith(_SANDBOX)], records.waves
    for name, file in (("pairs", PAIRS), ("controls", CONTROLS)) if real else ():
        was, now = getattr(real[-1], f"{name}_sha256"), records.sha256(file)
        if was != now and now not in _grown(was, waves, name):
            raise StudyError(
                f"{records.path(file)} is not the one that was offered to raters on {real[-1].at:%Y-%m-%d};"
                " restore that one, or give the new study another name"
            )
    if waves and not cut_off and not is_complete(records, waves[-1]):
        raise StudyError(
            f"{records.path(PAIRS)}: its extension to wave {waves[-1].number} was cut off; run"
            f" `{WAVES.command(records.study)}` again"
        )


def _grown(was: str, waves: Sequence[Wave], name: str) -> set[str]:
    """Return the hashes that a file has had since it was offered, from the notes on extensions."""
    hashes = {was}
    for wave in waves:
        if getattr(wave, f"{name}_before") in hashes:
            hashes.add(getattr(wave, f"{name}_sha256"))
    return hashes


def is_complete(records: CampaignRecords, wave: Wave) -> bool:
    """Return whether an extension was written to its end."""
    return (wave.pairs_sha256, wave.controls_sha256) == (records.sha256(PAIRS), records.sha256(CONTROLS))


def _offering(records: CampaignRecords, to: str, rubric: Rubric) -> Offering:
    return Offering(
        at=datetime.now(UTC),
        to=to,
        pairs_sha256=records.sha256(PAIRS),
        controls_sha256=records.sha256(CONTROLS),
        rubric_hash=rubric.identity(),
    )


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


def refuse_other_prompts(records: CampaignRecords, pairs: Collection[Pair]) -> None:
    """Refuse a campaign whose pairs are not of the study's generator and prompts, or whose outputs have been replaced.

    Raises StudyError or DataError. If the outputs are not on this machine, only the study is checked.
    """
    study = records.study
    if not study.judging.transforms:
        _refuse_other_groups({pair.transformation for pair in pairs}, study.kinds, study.file)
        if (file := study.judging.file_of(study)) is not None and file.is_file():
            _refuse_other_items(pairs, {item.key for item in read_items(study, records.rubric)[0]}, file)
        return
    refuse_other_makers(study, ((pair.transformation, pair.generator_hash, pair.prompt_hash) for pair in pairs))
    makers = Plan(study).makers
    for name, was in sorted({(pair.transformation, pair.generator_kind) for pair in pairs}):
        if was != makers[name].kind:
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} come from a generator of kind {was}, but the study's is"
                f" now of kind {makers[name].kind}; undo the change, or give the new study another name"
            )


def refuse_other_makers(study: Study, makers: Iterable[tuple[str, str, str]]) -> None:
    """Refuse other makers of the pairs: transformations, and hashes of generator and prompts."""
    by_name = dict[str, set[tuple[str, str]]]()
    if not study.judging.transforms:
        _refuse_other_groups({name for name, *_ in makers}, study.kinds, study.file)
        return
    plan = Plan(study)
    for name, *hashes in makers:
        by_name.setdefault(name, set()).add((hashes[0], hashes[1]))
    for name, maker_hashes in by_name.items():
        if name not in plan.makers or maker_hashes != {(plan.makers[name].hash, plan.prompt_hashes[name])}:
            what = _other(next(iter(maker_hashes))[1])
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} were made by {what} than the"
                " study has now; undo the change, or give the new study another name"
            )
        files = (study.transformation_file(name, seed) for seed in study.seeds)
        on_disk = _makers_in((file for file in files if file.exists()), study.command(GENERATE))
        if on_disk and not maker_hashes <= on_disk:
            raise DataError(
                f"{study.outputs / name}: these outputs come from {_other(next(iter(maker_hashes))[1])} than the"
                " sample's pairs; restore the outputs, or give the new study another name"
            )


def _refuse_other_groups(sampled: Collection[str], groups: Collection[str], study_file: Path) -> None:
    if lost := sorted(set(sampled) - set(groups)):
        raise StudyError(
            f"{study_file}: the sample has items of {lost[0]!r}, which the study's subject does not have now; undo the"
            " change, or give the new study another name"
        )


def _refuse_other_items(pairs: Collection[Pair], keys: Collection[str], file: Path) -> None:
    """Refuse a sample of texts that are no longer in the file, whose items have these keys."""
    if lost := [pair for pair in pairs if pair.key not in keys]:
        raise DataError(
            f"{file}: no longer has {count(len(lost), 'text')} of the sample, such as"
            f" {fields_of(lost[0])[0].text[:60]!r} ({lost[0].transformation}); restore the file, or give the new study"
            " another name"
        )


def _other(prompt_hash: str) -> str:
    """Return how a transformation's texts were made before the change; without prompts no generator made them."""
    return "another generator or other prompts" if prompt_hash else "another function or file of outputs"


def _makers_in(files: Iterable[Path], command: str) -> set[tuple[Any, Any]]:
    """Return which generators and prompts made the outputs in files of `command`: pairs of their hashes."""
    makers = set()
    for file in files:
        for table in read_batches(file, TransformedText, command, ["generator_hash", "prompt_hash"]):
            keys = table.group_by(table.schema.names).aggregate([])
            makers |= set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return makers
