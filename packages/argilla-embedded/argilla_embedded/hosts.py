"""The names under which the server answers.

A page elsewhere can point its own name to this machine's address (DNS rebinding). If the server knows its public
address, requests under any other name are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from urllib.parse import urlsplit

#: No page elsewhere has one of these as its own name.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})  # noqa: S104


class Hosts:
    """The allowed names: this machine's own, and those in the configured addresses."""

    def __init__(
        self, listening: str, addresses: Iterable[str], more: Sequence[Callable[[], Collection[str]]] = ()
    ) -> None:
        """`listening` is the socket's address; each function of `more` returns further names when it is called."""
        self._own = LOOPBACK | {listening.lower()}
        self._set = frozenset(map(named, addresses)) - {""}
        self._more = more

    def allow(self, hosts: Sequence[str]) -> bool:
        """Return whether to answer a request with these Host headers; without a known address every name is allowed."""
        if len(hosts) > 1:
            return False
        host = named(f"//{hosts[0]}") if hosts else ""
        return host in self._own or host in (known := self._set.union(*(names() for names in self._more))) or not known


def named(address: str) -> str:
    """Return the host in an address, in small letters, without its port; empty if there is none."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""
