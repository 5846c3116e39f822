"""Read a study's records for the pages: a class for each family of pages, a method for each table or figure.

Nothing is computed here: records are filtered by the page's choices and passed to functions of `annotation` and
`evaluation`. Their results are cached until one of the files that they depend on has another time, size or inode. The
first page needs only `StudyReader`, which imports nothing slow.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import pandas as pd

from annotation.campaign.names import UNNAMED
from annotation.campaign.records import CampaignData, CampaignRecords
from annotation.crowd.pay import dollars
from annotation.crowd.summary import read_summaries
from annotation.records import Look, RuleSet, Sign, Verdict
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.statistics.systems import SideBySide
from annotation.status.status import Status, reached_now, read_status
from annotation.verdicts import preregistration
from annotation.verdicts.conclusion import COMMAND as ACCEPT
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preferences import NO_CHOICES
from annotation.verdicts.rules import late_lines
from annotation.verdicts.systems import NONE
from plumbline.errors import DataError
from plumbline.exhibits.table import UNDEFINED
from plumbline.manifest import Manifest
from plumbline.prompts import prompt_folders
from plumbline.records import Pair
from plumbline.store import is_remote, read_frame
from plumbline.study import Study

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="PageReader")
Stamp = tuple[str, int, int, int, int]
#: Files of a study's folder on which several methods depend.
CONTROLS = ("controls.parquet", "control_ratings.parquet")
RATED = ("pairs.parquet", "ratings.parquet")
COLLECTED = (*RATED, *CONTROLS, "decisions.json")
LOOKED = "looks.json"
JUDGED = (*RATED, "control_ratings.parquet", LOOKED)
SCORED = ("scores.parquet", LOOKED)
# While a ledger is being written, its last entries are in a file beside it.
RULES = ("rules.json", "decisions.json", LOOKED, *CONTROLS, "crowd.sqlite", "crowd.sqlite-wal")
#: What verdicts follow from.
FACTS = (*COLLECTED, *map("{}.json".format, ("rules", "sample", "offered", "offered_again", "block_looks", "manifest")))
PROMPTED = ("instructions/scores.parquet",)
OF_PEOPLE = (*map("human/{}.parquet".format, ("scores", "agreement", "differences", "item_scores", "difficulty")),)
_MOST_RESULTS = 64
_LISTED = 2.0  # seconds until a remote folder is listed again


class NotYetError(DataError):
    """A record that no stage has written yet; the message names the command that does."""


class NewestResults:
    """What methods returned, by method, study and options: the newest of each, for a running campaign changes often."""

    def __init__(self) -> None:
        self._newest = dict[Hashable, tuple[object, Any]]()
        self._turns = defaultdict[Hashable, RLock](RLock)  # two pages that need one result compute it once

    def newest(self, key: Hashable, stamps: object, make: Callable[[], R]) -> R:
        """Return the result for the files' states `stamps`, which is made if the last was for others."""
        with self._turns[key]:
            before, last = self._newest.pop(key, (None, None))
            result: R = last if before == stamps else make()
            self._newest[key] = stamps, result
            for oldest in list(self._newest)[:-_MOST_RESULTS]:
                self._newest.pop(oldest, None)
                self._turns.pop(oldest, None)
            return result


_RESULTS = NewestResults()


class PageReader:
    """Reads the records of a study for pages."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    def name(self) -> str:
        """The study's name; the names of downloaded files begin with it."""
        return self.study.name

    def __contains__(self, name: str) -> bool:
        """Return whether the study's folder has this file."""
        return (self.study.folder / name).exists()


class _Decorator(Protocol):
    """Makes a method of a reader that caches its results."""

    def __call__(self, make: Callable[Concatenate[T, P], R], /) -> Callable[Concatenate[T, P], R]: ...


def cached(*needs: str, watches: Sequence[str] = ()) -> _Decorator:
    """Decorate a method so that its result is cached; all callers get one object, which nobody may change.

    The result depends on these files of the study's folder: without those that it `needs` the method raises
    NotYetError; those that it `watches` may be missing. `*` stands for all files on which a study's status depends, a
    name that ends in / for all files below that folder. It raises DataError for damaged files, and StudyError if the
    study cannot be read.
    """

    def decorate(make: Callable[Concatenate[T, P], R], /) -> Callable[Concatenate[T, P], R]:
        name, signature = f"{make.__module__}.{make.__qualname__}", inspect.signature(make)

        @functools.wraps(make)
        def read(reader: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(reader, *args, **kwargs)
            bound.apply_defaults()
            options = {
                option: f"{value.__module__}.{value.__qualname__}" if callable(value) else value
                for option, value in list(bound.arguments.items())[1:]
            }
            stamps = _stamps(reader.study, (*needs, *watches))
            try:
                key = (name, str(reader.study.file), str(reader.study.folder), repr(options))
                result: R = _RESULTS.newest(key, stamps, lambda: make(reader, *args, **kwargs))
            except NotYetError:
                raise
            except DataError as error:
                if all(name in reader for name in needs) or "; run `" not in str(error):  # such as what is gone
                    raise
                raise NotYetError(str(error)) from None
            return result

        return read

    return decorate


def _stamps(study: Study, names: Sequence[str]) -> tuple[Stamp, ...]:
    """The states of the study's file and of files of its folder, as `cached` names them."""
    if is_remote(study.folder):
        _list_again(study.folder, int(time.monotonic() / _LISTED))
    paths = [study.file]
    for name in names:
        if name == "*":
            files = (path for path in study.folder.glob("*") if path.is_file())
            paths += sorted(path for path in files if not path.name.endswith("-shm"))  # a database's index
            paths += [*_below(study.outputs), *(path for data in study.data_files() for path in [data, *_below(data)])]
            paths += [path for folder in prompt_folders() for path in _below(folder)]
        elif name.endswith("/"):
            paths += _below(study.folder / name)
        else:
            paths.append(study.folder / name)
    return tuple(map(_stamp, paths))


@functools.lru_cache(maxsize=1)
def _list_again(folder: Path, _: int) -> None:
    """List a remote folder anew: its package caches listings, although other processes may write meanwhile."""
    files: Any = folder.fs  # type: ignore[attr-defined]  # UPath's
    files.invalidate_cache()
    with contextlib.suppress(FileNotFoundError):
        files.ls(folder.path, detail=True)  # type: ignore[attr-defined]  # one request instead of one for each file


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _stamp(path: Path) -> Stamp:
    """Return the state of a file: path, size (-1 if missing), inode, times of writing and of any change in nanoseconds.

    A program can set the time of writing back, but not the time of the last change.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return str(path), -1, 0, 0, 0
    if is_remote(path):
        return str(path), status.st_size, 0, int(1e9 * status.st_mtime), 0
    if path.name.endswith("-wal"):  # whoever reads a ledger while it is open sets this file's times
        return str(path), status.st_size, zlib.crc32(path.read_bytes()), 0, 0
    return str(path), status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


class StudyReader(PageReader):
    """Reads a study's status and the records that most pages need; imports nothing slow."""

    @cached(watches=("*",))
    def status(self) -> Status:
        """The study's status, as `plumbline status` prints it."""
        noted = Manifest.of(self.study).read().get("stages", {})
        if not isinstance(noted, dict) or not all(isinstance(entry, dict) for entry in noted.values()):
            path = self.study.folder / "manifest.json"
            raise DataError(f"{path} is damaged (`stages` has an unexpected form); delete it and run again")
        verdicts, outdated = self.concluded() if LOOKED in self and self.looks() else ((), "")
        return read_status(self._evidence(), datetime.now(UTC), verdicts, outdated=outdated)

    @cached(watches=("*",))
    def so_far(self) -> dict[str, str]:
        """What raters did of what is wanted, their pace with its expected end, and money, in words by name."""
        status = self.status()
        facts, pace, crowd = dict[str, str](), status.going.pace, read_summaries(self._evidence())
        if len(progress := status.progress):
            # Not all that count are wanted.
            waiting, wanted = (int(progress[name].sum()) for name in ("open", "wanted"))
            facts["Answers that count"] = f"{wanted - waiting:,} of {wanted:,}"
        if len(status.raters):
            staying = int((~status.raters["excluded"].astype(bool)).sum())
            facts["Raters"] = UNNAMED if status.raters["rater_id"].eq(UNNAMED).all() else f"{staying:,}"
        if pace and pace.open:
            facts["Answers an hour"] = f"{pace.an_hour:.1f}"
            ahead = pace.ends is not None and pace.ends > status.read_at  # else the last collection is too old
            facts["Expected end"] = f"{pace.ends:%Y-%m-%d %H:%M} UTC" if ahead else UNDEFINED
        for campaign in crowd:
            name = f"Spent or reserved of planned ({campaign.platform}, {campaign.mode})"
            facts[name] = f"{dollars(campaign.spent)} of {dollars(campaign.in_all)}"
        if status.asked_for is not None and not crowd:
            facts["Planned pay, without bonuses"] = dollars(status.asked_for.cost)
        return facts

    def read_ahead(self) -> None:
        """Read what the page shows before the page is opened."""
        self.simulated()
        self.so_far()
        self.amendments()
        self.looks()

    @cached(LOOKED, watches=FACTS)
    def concluded(self) -> tuple[Sequence[Verdict], str]:
        """The verdicts; none if anything changed since the last look at them, and then what, and what to do."""
        evidence = self._evidence()
        if not evidence.looks:  # also where a rehearsal was removed, whose looks went too
            raise NotYetError(f"there are no verdicts yet; run `{self.study.command(ACCEPT)}` first")
        return reached_now(evidence)

    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts that hold."""
        return self.concluded()[0]

    @cached(LOOKED, watches=FACTS)
    def side_by_side(self) -> tuple[SideBySide, SideBySide]:
        """The study's systems on the same originals and by preference; no rows without verdicts that hold."""
        if not self.verdicts():
            return NONE, NO_CHOICES
        return self._evidence().side_by_side, self._evidence().preferred

    @cached("ratings.parquet")
    def answers(self) -> pd.DataFrame:
        """Every answer (`plumbline.records.Rating`)."""
        return CampaignRecords(self.study).ratings

    @cached(watches=COLLECTED)
    def collected(self) -> CampaignData:
        """Pairs and answers, with controls and repeats."""
        return CampaignData.read(self.study)

    @cached(*RATED, watches=RULES)
    def signs(self) -> Sequence[Sign]:
        """Signs of careless answers."""
        return Evidence(self.study).changed(collected=self.collected()).signs

    @cached(watches=("*",))
    def _evidence(self) -> Evidence:
        return Evidence(self.study).changed(collected=self.collected(), signs=self.signs())

    @cached(watches=(LOOKED, *FACTS))
    def simulated(self) -> bool:
        """Return whether any rating or verdict is simulated; unreadable records count as not simulated."""
        any_simulated = False
        with contextlib.suppress(DataError, OSError):
            any_simulated = bool(self.collected().ratings["simulated"].any())
        with contextlib.suppress(DataError, OSError):
            any_simulated = any_simulated or self.simulates()
        return any_simulated

    def simulates(self) -> bool:
        """Return whether any verdict rests on simulated ratings."""
        return any(verdict.simulated for verdict in self.verdicts())

    @cached(watches=(LOOKED, *FACTS))
    def late(self) -> Sequence[str]:
        """A line if the verdicts' rules were fixed after the first rating; none without verdicts."""
        with contextlib.suppress(DataError, OSError):
            return late_lines(self.verdicts())
        return ()

    @cached(watches=RULES)
    def looks(self) -> list[Look]:
        """The looks at results, oldest first."""
        return CampaignRecords(self.study).looks

    @cached(watches=(*RULES, *COLLECTED))
    def amendments(self) -> list[tuple[RuleSet, list[str]]]:
        """The rules that replaced others after the first rating, each with what it changed."""
        first = preregistration.first_rating(self.collected().ratings)
        return preregistration.amendments(CampaignRecords(self.study).rules, first)

    @cached("pairs.parquet")
    def pairs(self) -> pd.DataFrame:
        """The sample's pairs."""
        return words_as_objects(read_frame(self.study.folder / "pairs.parquet", Pair, self.study.command(SAMPLE)))


def words_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with Python's strings, which tables read often; Arrow's are slower."""
    words = {name: object for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return frame.astype(words)
