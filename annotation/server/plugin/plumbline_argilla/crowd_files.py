"""The platform's JSON files for the crowd's pages, read again after changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from argilla_embedded.hosts import named
from argilla_embedded.recent import Recent

VERSION = 1


class Rooms:
    """The `rooms` of a file: each room's settings, or the participants whom the platform knows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rooms: dict[str, dict[str, Any]] = {}
        self._read: tuple[int, int] | None = None  # time and size of the file as it was read

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the rooms by id; {} without a file. Raises OSError, ValueError, KeyError or TypeError."""
        try:
            now = self._file.stat()
        except FileNotFoundError:
            return {}
        if (now.st_mtime_ns, now.st_size) != self._read:
            content = json.loads(self._file.read_text(encoding="utf-8"))
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']}")
            self._rooms, self._read = dict(content["rooms"]), (now.st_mtime_ns, now.st_size)
        return self._rooms


def addresses(rooms: Rooms) -> frozenset[str]:
    """Return the host names in the rooms' addresses; none if the file cannot be read."""
    try:
        return frozenset(named(room.get("address", "")) for room in rooms.all().values()) - {""}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()


class Newcomers:
    """Counts of the recent newcomers from each address, over all processes; this machine's own is not counted."""

    SECONDS, MOST = 3600.0, 10
    HERE = frozenset({"", "127.0.0.1", "::1"})

    def __init__(self, recent: Recent) -> None:
        self._recent = recent

    def take(self, address: str) -> bool:
        """Return whether one more may come from an address, and count them if so."""
        if address in self.HERE:
            return True  # behind a proxy that does not forward addresses, everybody has this one
        places = [("newcomer", address, str(place)) for place in range(self.MOST)]
        with self._recent.changing():
            free = next((place for place in places if not self._recent.number(place, self.SECONDS)), None)
            if free is not None:
                self._recent.put(free, 1)
        return free is not None
