"""The names under which the server answers, and the path.

A page elsewhere can point its own name to this machine's address (DNS rebinding). If the server knows its public
address, requests under any other name are refused.

With a path in its address the server shares a host with other programs, behind a proxy. The path is taken off before
anything else sees the request, and `settings` tells Argilla to put it before the addresses in its pages. Proxies that
take it off themselves say so in the header X-Forwarded-Prefix: the rest may begin with the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .errors import StartError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: No page elsewhere has one of these as its own name.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})  # noqa: S104


class Hosts:
    """The allowed names: this machine's own, and those in the configured addresses."""

    def __init__(
        self, listening: str, addresses: Sequence[str], more: Sequence[Callable[[], Collection[str]]] = ()
    ) -> None:
        """`listening` is the socket's address; each function of `more` returns further names when it is called."""
        self._own = LOOPBACK | {listening.lower()}
        self._set = frozenset(map(named, addresses)) - {""}
        self.path = path_in(addresses)
        self._more = more

    def allow(self, hosts: Sequence[str]) -> bool:
        """Return whether to answer a request with these Host headers; without a known address every name is allowed."""
        if len(hosts) > 1:
            return False
        host = named(f"//{hosts[0]}") if hosts else ""
        return host in self._own or host in (known := self._set.union(*(names() for names in self._more))) or not known


def path_in(addresses: Iterable[str]) -> str:
    """Return the path that all addresses have, such as /rate; empty for none.

    Raises StartError for two paths, and for one that pages and cookies cannot hold as it is.
    """
    paths = {urlsplit(address).path.rstrip("/") for address in addresses} or {""}
    if len(paths) > 1:
        raise StartError(f"the server's addresses have different paths ({', '.join(sorted(paths))}); give all the same")
    (path,) = paths
    if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*", path):
        raise StartError(f"--address: the path {path} may have letters, digits and . _ ~ - alone, as /rate")
    return path


def under(path: str, app: ASGIApp) -> ASGIApp:
    """Return `app` as it is reached under a path, and without it too: the proxy may have taken it off."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        taken_off = any(name == b"x-forwarded-prefix" for name, _ in scope.get("headers", ()))
        if scope["type"] == "http" and not taken_off and f"{scope['path']}/".startswith(f"{path}/"):
            scope = {**scope, "path": scope["path"][len(path) :] or "/"}
        await app(scope, receive, send)

    return answering if path else app


def named(address: str) -> str:
    """Return the host in an address, in small letters, without its port; empty if there is none."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""
