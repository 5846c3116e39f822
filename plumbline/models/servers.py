"""What clients of model servers share: attempts, waits, connections, and a server's error as one line."""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

TIMEOUT = 600.0  # seconds that one request may take: a long answer of a busy model needs minutes
RETRIES = 6  # further attempts after a passing fault
PASSING = frozenset({408, 409, 425, 429, *range(500, 600)})  # statuses that a retry may mend
FIRST_DELAY, LAST_DELAY = 0.5, 30.0  # most seconds before a retry; the delay doubles each time
LONGEST_WAIT = 120  # most seconds to wait, whatever the server's Retry-After says
OTHER_FILES = 512  # that a command may have open beside its connections


def error_status(part: Any) -> int:
    """Return the status of the error in a reply with status 200: so gateways pass on another server's; 0 without one.

    >>> error_status({"error": {"code": 503, "message": "overloaded"}}), error_status({"data": []})
    (503, 0)
    """
    error = part.get("error") if isinstance(part, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int and 400 <= code < 600 else 0


def complaint(content: bytes, key: str) -> str:
    """Return a server's error message from its JSON, in any of the usual forms, or else the whole text."""
    try:
        page: Any = json.loads(content)
    except (ValueError, RecursionError):
        page = content.decode(errors="replace")
    for name in ("error", "message", "detail"):
        if isinstance(page, dict) and name in page:
            page = page[name]
    return hidden(page if isinstance(page, str) else json.dumps(page, ensure_ascii=False), key)


def hidden(text: str, key: str) -> str:
    """Return one line without the key; it is removed before shortening, which could leave part of it."""
    return one_line(text.replace(key, "(the key)"))


def one_line(text: str) -> str:
    """Return a text as one line of limited length."""
    return " ".join(text.split())[:300]


def pause(number: int, headers: Mapping[str, str]) -> float:
    """Return the seconds to wait after try `number`, with jitter so that waiting requests do not coincide.

    A server may state them: `retry-after-ms`, or Retry-After (RFC 9110, 10.2.3).
    """
    for name, second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        stated = headers.get(name, "")
        try:
            seconds = float(stated) / second
        except ValueError:
            try:
                seconds = parsedate_to_datetime(stated).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if seconds > 0:
            return min(seconds, LONGEST_WAIT) * random.uniform(1, 1.25)  # noqa: S311 (jitter, not a secret)
    return random.uniform(0, min(LAST_DELAY, FIRST_DELAY * 2 ** (number - 1)))  # noqa: S311


def allow_connections(number: int) -> None:
    """Raise this process's limit of open files, often 1,024 or 256, if the system allows: a connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
