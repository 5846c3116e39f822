"""Under which names the server answers.

A page elsewhere can give its own name this machine's address (DNS rebinding). Where the server knows its public
address, requests under any other name are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

#: No page elsewhere has one of these as its own name.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})  # noqa: S104


class Hosts:
    """The names: this machine's own ones, and those of the addresses that were set."""

    def __init__(self, listening: str, addresses: Iterable[str], rooms: Path) -> None:
        """`listening` is what the socket is bound to; `rooms` is the crowd's file, whose rooms have addresses, too."""
        self._own = LOOPBACK | {listening.lower()}
        self._set = frozenset(map(named, addresses)) - {""}
        self._rooms = rooms
        self._read: tuple[tuple[int, int], frozenset[str]] | None = None

    def allow(self, hosts: Sequence[str]) -> bool:
        """Whether a request with these Host headers is answered; any name is, while no address is known."""
        if len(hosts) > 1:
            return False
        host = named(f"//{hosts[0]}") if hosts else ""
        return host in self._own or host in (known := self._set | self._of_rooms()) or not known

    def _of_rooms(self) -> frozenset[str]:
        """The names of the rooms' addresses, read again where the file has changed; none where it cannot be read."""
        try:
            now = self._rooms.stat()
            version = now.st_mtime_ns, now.st_size
            if self._read is None or self._read[0] != version:
                rooms = json.loads(self._rooms.read_text(encoding="utf-8"))["rooms"].values()
                self._read = version, frozenset(named(room.get("address", "")) for room in rooms) - {""}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return frozenset()
        return self._read[1]


def named(address: str) -> str:
    """The host in an address, in small letters, without its port; nothing where there is none."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""
