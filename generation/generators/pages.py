"""What a chat server's page says: probabilities of labels, tokens, complaints, and how long it asks to wait."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from plumbline.errors import TextFailedError


def label_shares(choice: Mapping[str, Any], labels: Sequence[str]) -> dict[str, float] | None:
    """The probabilities of labels among an answer's likeliest first tokens; None where a server tells none.

    A token with blanks around a label is that label too: models have both, and both read alike.
    """
    try:
        top = choice["logprobs"]["content"][0]["top_logprobs"]
        told = [(str(one["token"]).strip(), math.exp(min(float(one["logprob"]), 0.0))) for one in top]
    except (TypeError, KeyError, IndexError, ValueError):
        return None
    shares = dict.fromkeys(labels, 0.0)
    for token, share in told:
        if token in shares:
            shares[token] += share
    return shares if told else None


def prompt_tokens(page: Mapping[str, Any]) -> tuple[int, int | None]:
    """Tokens of the prompt, and how many of them stood in the server's cache, where it tells."""
    usage = page.get("usage")
    sent = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return (sent if isinstance(sent, int) else 0), (cached if isinstance(cached, int) else None)


def stated_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or Retry-After (RFC 9110, 10.2.3): seconds or a date."""
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
            return seconds
    return None


def complaint(content: bytes, key: str) -> str:
    """What a server says about an error: the message in its JSON, in the ways in which servers write it, or all."""
    try:
        said: Any = json.loads(content)
    except (ValueError, RecursionError):
        said = content.decode(errors="replace")
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and name in said:
            said = said[name]
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return hidden(text, key)


def hidden(text: str, key: str) -> str:
    """One line without the key, hidden before the line is cut off, which could leave a part of it."""
    return one_line(text.replace(key, "(the key)"))


def one_line(text: str) -> str:
    """As one line, and not too long."""
    return " ".join(text.split())[:300]


def whole(text: str) -> str:
    """The text, if it is whole: JSON may carry half a character (a lone surrogate), which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("an answer with half a character in it") from None
    return text
