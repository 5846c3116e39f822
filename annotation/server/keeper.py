"""What keeps a server safe over months: backups on a schedule, old ones thinned, and a word before the disk is full."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plumbline.errors import PlumblineError

from .backup import SUFFIX, backup
from .home import Home, private

EVERY = timedelta(hours=6)
KEEP = 28  #: scheduled backups kept whole: a week at six hours; of older ones one for each week
LOOK_SECONDS = 60.0
WARN_AGAIN = timedelta(hours=1)
LEAST_FREE = 500_000_000  #: bytes
SCHEDULED = re.compile(rf"argilla-(\d{{8}}T\d{{6}}Z)-scheduled{re.escape(SUFFIX)}")


@dataclass
class Keeper:
    """Looks after one home while its server runs; `look` is called often and does what is due."""

    home: Home
    every: timedelta | None = EVERY  #: between scheduled backups; None: none
    keep: int = KEEP
    say: Callable[[str], None] = print
    next_look: float = field(default=0.0, init=False)  # by time.monotonic
    tried: datetime | None = field(default=None, init=False)  # the last attempt at a backup, done or failed
    warned: datetime | None = field(default=None, init=False)

    def look(self) -> None:
        """Once a minute: warn about the disk, and take the backup that is due. Troubles are told, not raised."""
        if time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_SECONDS
        now = datetime.now(UTC)
        trouble = disk_trouble(self.home)
        if trouble and (self.warned is None or not timedelta() <= now - self.warned < WARN_AGAIN):
            self.warned = now
            self.tell(f"Warning: {trouble}")
        if self.every is not None and self.due(now, self.every):
            self.tried = now
            try:
                backup(self.home, reason="scheduled")
                thin(self.home.backups, self.keep, datetime.now(UTC))
            except (PlumblineError, OSError) as error:
                self.tell(f"Warning: the scheduled backup failed: {error}")

    def due(self, now: datetime, every: timedelta) -> bool:
        """Whether the last scheduled backup (of an earlier start, too) is older than the schedule allows.

        Times that are yet to come are those of a clock that was wrong: nobody waits for them.
        """
        times = [made for made, _ in scheduled(self.home.backups)] + ([self.tried] if self.tried else [])
        last = max((made for made in times if made <= now), default=None)
        return last is None or now - last >= every

    def tell(self, line: str) -> None:
        """Say a line on the console and leave it in the log, if there is room for it."""
        self.say(line)
        with contextlib.suppress(OSError), open(self.home.log, "a", encoding="utf-8", opener=private) as log:
            log.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")


def disk_trouble(home: Home) -> str | None:
    """What is wrong with the room on the home's disk, or None; a backup needs a copy and a packed one."""
    size = home.database.stat().st_size if home.database.exists() else 0
    free = shutil.disk_usage(home.path).free
    least = max(LEAST_FREE, 2 * size)
    if free >= least:
        return None
    return (
        f"{home.path}: only {free / 1e6:,.0f} MB are free on this disk and the database has {size / 1e6:,.0f} MB; "
        f"make room for at least {least / 1e6:,.0f} MB, or answers cannot be stored once it is full"
    )


def scheduled(folder: Path) -> list[tuple[datetime, Path]]:
    """The scheduled backups in a folder with their times, newest first."""
    if not folder.is_dir():
        return []
    found = [(match[1], file) for file in folder.iterdir() if (match := SCHEDULED.fullmatch(file.name))]
    return sorted(((datetime.strptime(made, "%Y%m%dT%H%M%S%z"), file) for made, file in found), reverse=True)


def thin(folder: Path, keep: int, now: datetime) -> None:
    """Remove scheduled backups that are not among the `keep` newest nor the newest of a week; others stay.

    Those of a time that is yet to come (the clock was wrong) stay as well, and take no newer one's place.
    """
    newest: dict[tuple[int, int], Path] = {}
    files = [(made, file) for made, file in scheduled(folder) if made <= now]
    for made, file in files:
        newest.setdefault(made.isocalendar()[:2], file)
    for _, file in files[keep:]:
        if file not in newest.values():
            file.unlink()
