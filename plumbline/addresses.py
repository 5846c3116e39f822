"""Check addresses and keys before they are sent or shown: no error, log or record holds a secret."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

_HIDDEN = "key|token|secret|password|passwd|pwd|signature|sig|credential|auth|sas"
# The second form matches a password that contains a slash: what follows the colon is not a port.
_USER = re.compile(r"://(?:[^\s/?#]*@|[^\s/@:]+:(?!\d{1,5}(?:[/?#]|$))[^\s@]*@)")
_QUERY = re.compile(rf"([?&;][\w.-]*(?:{_HIDDEN})[\w.-]*=)[^\s&;#'\"]+", re.IGNORECASE)


def shown(text: str) -> str:
    """Return a text whose addresses are safe to show: without user, password, and keys in queries.

    >>> shown("http://ada:secret@host/v1?api_key=1 does not answer")
    'http://host/v1?api_key=... does not answer'
    """
    return _QUERY.sub(r"\1...", _USER.sub("://", text))


def refuse_no_address(address: str, example: str) -> None:
    """Raise ValueError if this is not an http address, or holds a user or a key; the message repeats no secret."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good, parts = False, urlsplit("")
    if "@" in address.partition("://")[2].partition("?")[0] or parts.query or parts.fragment:
        raise ValueError(f"the address contains a user, a password, a key or options; leave these out, as in {example}")
    if not good or not address.isprintable() or " " in address:
        raise ValueError(f"{address[:100]!r} is not an address; write it like {example}")


def entrance(address: str) -> str:
    """Return the server's address as people open it, with its path if a proxy has it under one, without a last slash.

    Raises ValueError as `refuse_no_address`, and for a path that pages and cookies cannot hold as it is.
    """
    refuse_no_address(address, "https://argilla.example.org")
    if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?", urlsplit(address).path):
        raise ValueError(
            f"{address[:100]!r}: its path may have letters, digits and . _ ~ - alone, as in https://example.org/rate"
        )
    return address.rstrip("/")


def key_in(variable: str) -> str:
    """Return the key from an environment variable, without white space around it; empty where it is not set.

    Raises ValueError if an HTTP header cannot hold it: libraries would quote the key in their error messages.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise ValueError(f"the key in {variable} contains a line break or a character outside ASCII; set it again")
    return key


def proxy_for(scheme: str, host: str) -> str:
    """Return the environment's proxy for a host as http://HOST:PORT; empty where none is set.

    Raises ValueError if it is not an HTTP proxy; the message does not repeat the address.
    """
    import urllib.request  # noqa: PLC0415 (every command imports this module, and this takes a fifth of `--help`)

    proxies = urllib.request.getproxies()
    named = proxies.get(scheme) or proxies.get("all", "")
    if not named or urllib.request.proxy_bypass(host):
        return ""
    named = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(named)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not named.isprintable():
        raise ValueError(f"the environment's {scheme}_proxy is not http://HOST:PORT; correct it, or set no_proxy")
    return named
