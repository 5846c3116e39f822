"""What the generator is to answer: JSON with exactly so many different lines, and nothing else."""

from __future__ import annotations

import unicodedata
from typing import Any

from plumbline.reading import MalformedError, parse_json
from plumbline.records import nfc
from plumbline.study.base import LONGEST
from plumbline.words import shows

KEY = "prompts"
_JOINERS = "\u200c\u200d"  # words of Persian, conjuncts of Indic scripts and joined emoji need them


class InvalidReplyError(ValueError):
    """An answer that is not what was asked for; says why."""


def schema(number: int) -> dict[str, Any]:
    """The JSON schema of an answer with so many wordings."""
    wordings = {"type": "array", "items": {"type": "string"}, "minItems": number, "maxItems": number}
    return {"type": "object", "properties": {KEY: wordings}, "required": [KEY], "additionalProperties": False}


def read_reply(answer: str, number: int) -> tuple[str, ...]:
    """The wordings of an answer, in NFC, without blanks around them.

    Raises InvalidReplyError for what is no such JSON, another number of wordings, and one that is empty, of several
    lines, too long, or there twice.

    >>> read_reply('{"prompts": ["Find it", "What is sought?"]}', 2)
    ('Find it', 'What is sought?')
    """
    try:
        found = parse_json(_json_of(answer))
    except MalformedError as error:
        raise InvalidReplyError(f"no JSON: {error}") from None
    wordings = found.get(KEY) if isinstance(found, dict) else None
    if not isinstance(wordings, list) or not all(isinstance(one, str) for one in wordings):
        raise InvalidReplyError(f"no list of texts under {KEY!r}")
    lines = tuple(wording(one) for one in wordings)
    if len(lines) != number:
        raise InvalidReplyError(f"{len(lines)} wordings instead of {number}")
    if twice := [one for one in lines if lines.count(one) > 1]:
        raise InvalidReplyError(f"the wording {twice[0][:60]!r} twice")
    return lines


def wording(text: str) -> str:
    """A wording in the form in which it is kept. Raises InvalidReplyError for one that models cannot be given."""
    line = nfc(text).strip()
    if not shows(line):
        raise InvalidReplyError("an empty wording, which is no instruction: `none` is evaluated in any case")
    if not all(map(_stays, " " + line, line)):
        raise InvalidReplyError(f"the wording {line[:60]!a} holds a line break, or a character that shows as nothing")
    if len(line) > LONGEST:
        raise InvalidReplyError(f"a wording of {len(line)} characters; {LONGEST} are enough")
    return line


def _stays(before: str, sign: str) -> bool:
    """Whether a sign may stand in a wording: blanks of any kind, and joiners in scripts that are written with them."""
    return sign.isprintable() or unicodedata.category(sign) == "Zs" or (sign in _JOINERS and not before.isascii())


def _json_of(answer: str) -> str:
    """The answer without the fence that models put around JSON."""
    text = answer.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].strip().removeprefix("json")
    return text
