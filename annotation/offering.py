"""What raters may have seen: from before the first request on the sample is theirs, and nothing replaces it any more.

`offered.json` notes each beginning: the pairs, the controls and the words that went out. Rehearsals in a crowd's
sandbox are noted too and bind nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from annotation.records import Offering, Review, Wave
from annotation.rubric import Rubric
from plumbline.errors import DataError, StudyError
from plumbline.manifest import read_kept, read_manifest, write_kept
from plumbline.store import only_one
from plumbline.study import Study, file_hash
from plumbline.study.crowd import PlatformName

FILE = "offered.json"
WAVES = "waves.json"
REVIEWS = "reviews.json"
LEDGER = "crowd.sqlite"  # what a crowd campaign did (`annotation.crowd.ledger`)
Mode = Literal["sandbox", "live"]  # of a crowd campaign: a rehearsal, or with people and money
ARGILLA = "argilla"
_SANDBOX = "sandbox "  # how a rehearsal on a crowd platform begins
COMMAND = "annotation publish"


def alone(study: Study) -> contextlib.AbstractContextManager[None]:
    """Refuse a second command on the same campaign while one works on it."""
    return only_one(study.scratch / ".campaign.lock", f"another command works on the campaign of {study.name!r}")


def read_offered(study: Study) -> list[Offering]:
    """When the sample began to be offered, the first time first. Raises DataError for a damaged or replaced file."""
    return read_kept(study, FILE, Offering, study.command(COMMAND))


def read_waves(study: Study) -> list[Wave]:
    """The extensions of the sample, the first one first; none where it is as it was drawn."""
    return read_kept(study, WAVES, Wave, f"{study.command('annotation sample')} --extend REASON")


def read_reviews(study: Study) -> list[Review]:
    """When pairs were given to adjudicators, who see judges' scores; none before the first time."""
    return read_kept(study, REVIEWS, Review, f"{study.command('annotation review')} --adjudicate N --by NAMES")


def offered(study: Study) -> str:
    """How people may have come to see the sample, in words; empty where they cannot have.

    Studies of earlier versions have no `offered.json`: there the manifest, the ledger and ratings tell.
    """
    for offering in read_offered(study):
        if not offering.to.startswith(_SANDBOX):
            return f"offered to raters ({offering.to}, {offering.at:%Y-%m-%d})"
    if "publish" in read_manifest(study).get("stages", {}):
        return "published"
    live = [name for name, mode in ledgers(study.scratch / LEDGER) if mode == "live"]
    if live:
        return f"offered to raters (live {live[0]})"
    return "rated" if (study.folder / "ratings.parquet").exists() else ""


def offered_to_raters(study: Study) -> bool:
    """Whether raters were offered the sample by this campaign; ratings alone (`rated`) may be another's."""
    return offered(study) not in ("", "rated")


def refuse_other_offering(study: Study, to: str, rubric: Rubric) -> None:
    """Raise StudyError for another sample than was offered before, and for other words than people are being asked.

    `to` is `argilla`, or mode and platform of a crowd.
    """
    refuse_other_sample(study)
    for offering in {offering.to: offering for offering in read_offered(study)}.values():
        if offering.rubric_hash != rubric.identity() and not offering.to.startswith(_SANDBOX):
            _refuse_other_words(study, offering, to, rubric)


def begin_offering(study: Study, to: str, rubric: Rubric) -> None:
    """Note that the sample is about to be offered; to be called before it is, with the study held.

    Raises as `refuse_other_offering`.
    """
    refuse_other_offering(study, to, rubric)
    offerings, now = read_offered(study), _offering(study, to, rubric)
    latest = {offering.to: offering for offering in offerings}
    if to not in latest or latest[to].model_copy(update={"at": now.at}) != now:
        write_kept(study, FILE, [*offerings, now])


def words_changed(study: Study, to: str, rubric: Rubric) -> bool:
    """Whether what was offered there last shows other words than the rubric has."""
    return any(offering.rubric_hash != rubric.identity() for offering in read_offered(study) if offering.to == to)


def _refuse_other_words(study: Study, offering: Offering, to: str, rubric: Rubric) -> None:
    line = f"{study.file}: the rubric {rubric.name!r} has changed, and"
    if offering.to != ARGILLA:
        raise StudyError(
            f"{line} the batches on {offering.to} show the words of their launch ({offering.at:%Y-%m-%d}); undo the"
            " change, or give the new study another name"
        )
    if to != ARGILLA and not to.startswith(_SANDBOX):
        raise StudyError(
            f"{line} the datasets in Argilla show its old words; run `{study.command(COMMAND)}` first, or undo the"
            " change"
        )


def refuse_other_sample(study: Study, *, cut_off: bool = False) -> None:
    """Raise StudyError where `pairs.parquet` or `controls.parquet` is not the one that was offered to people.

    What extensions have made of that one since is the sample. One that was cut off must be finished before anything
    else, so it is refused, unless `cut_off` says that this is about to be done.
    """
    real, waves = (
        [offering for offering in read_offered(study) if not offering.to.startswith(_SANDBOX)],
        read_waves(study),
    )
    for name in ("pairs", "controls") if real else ():
        was, now = getattr(real[-1], f"{name}_sha256"), _hash(study.folder / f"{name}.parquet")
        if was != now and now not in _grown(was, waves, name):
            raise StudyError(
                f"{study.folder / name}.parquet is not the one that was offered to raters on {real[-1].at:%Y-%m-%d};"
                " bring that one back, or give the new study another name"
            )
    if waves and not cut_off and not is_complete(study, waves[-1]):
        raise StudyError(
            f"{study.folder / 'pairs.parquet'}: its extension to wave {waves[-1].number} was cut off; run"
            f" `{study.command('annotation sample')} --extend REASON` again"
        )


def _grown(was: str, waves: Sequence[Wave], name: str) -> set[str]:
    """The hashes that a file has had since it was offered, by the notes of its extensions."""
    hashes = {was}
    for wave in waves:
        if getattr(wave, f"{name}_before") in hashes:
            hashes.add(getattr(wave, f"{name}_sha256"))
    return hashes


def is_complete(study: Study, wave: Wave) -> bool:
    """Whether an extension was written to its end."""
    files = {name: _hash(study.folder / f"{name}.parquet") for name in ("pairs", "controls")}
    return all(getattr(wave, f"{name}_sha256") == now for name, now in files.items())


def _offering(study: Study, to: str, rubric: Rubric) -> Offering:
    return Offering(
        at=datetime.now(UTC),
        to=to,
        pairs_sha256=_hash(study.folder / "pairs.parquet"),
        controls_sha256=_hash(study.folder / "controls.parquet"),
        rubric_hash=rubric.identity(),
    )


def _hash(path: Path) -> str:
    return file_hash(path) if path.exists() else ""


def ledgers(path: Path) -> list[tuple[PlatformName, Mode]]:
    """Which platforms and modes a ledger holds campaigns of; none where there is no ledger."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            if database.execute("PRAGMA user_version").fetchone() == (0,):
                return []  # a crash came between making the file and filling it
            return list(database.execute("SELECT DISTINCT platform, mode FROM batches ORDER BY mode, platform"))
        except sqlite3.DatabaseError as error:
            raise DataError(f"{path}: cannot be read as a ledger ({error}); bring it back from a backup") from None
