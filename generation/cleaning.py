"""What is taken off a chat model's answer before it counts as the transformed text; the rules are in docs/flags.md.

The rules do not know the original: a text that is quoted as a whole loses its quotes, whoever put them there. They take
off wrappings and nothing else: a prefix such as `Translation:` stays, and is found as an error (`generation.flags`).
"""

from __future__ import annotations

import re

from plumbline.words import trim

# The tags of DeepSeek, Qwen and others, and Mistral's. Apriel's `[BEGIN FINAL RESPONSE]` is none of them: the output
# processing of HTEB leaves it alone (A.2), and Table 5 counts what it lets through.
_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}")
_LANGUAGE_WORD = re.compile(r"[\w+#.-]*[ \t]*\n")

# Marks that open a quotation, each with those that can close it.
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "„": "“”",
    "‚": "‘’",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "〝": "〞〟",
    "＂": "＂",
}
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")


def clean(answer: str) -> str:
    """The answer without white space around it, thinking blocks, an enclosing code fence, an enclosing pair of quotes.

    In this order. What one rule leaves is cleaned again as long as that changes it (a fence in quotes), so
    `clean(clean(x)) == clean(x)`. Never raises, for any text.
    """
    text = _without_thinking(trim(answer))
    while (inner := _without_quotes(_without_fence(text))) != text:
        text = inner
    return text


def _without_thinking(text: str) -> str:
    """The text outside thinking blocks.

    A block runs from its tag to the first closing one, or to the end. A closing tag without an opening one (chat
    templates may open it themselves) ends a block that began with the answer.
    """
    outside: list[str] = []
    position: int | None = 0  # where the text outside begins; None within a block
    for tag in _THINKING.finditer(text):
        closing = bool(tag[1] or tag[2])
        if closing:
            if position is not None:
                outside.clear()
            position = tag.end()
        elif position is not None:
            outside.append(text[position : tag.start()])
            position = None
    if position == 0:
        return text
    if position is not None:
        outside.append(text[position:])
    return trim(" ".join(outside))  # a space, so that what stood around a block does not become a new tag


def _without_fence(text: str) -> str:
    """The text inside a code fence that encloses it, without the fence's language word."""
    opening = _FENCE.match(text)
    if opening is None or len(text) < 2 * opening.end():
        return text
    fence = opening[0]
    inner = text[len(fence) : -len(fence)]
    if not text.endswith(fence) or "```" in inner or inner.endswith("`"):
        return text
    word = _LANGUAGE_WORD.match(inner)
    return trim(inner[word.end() :] if word else inner)


def _without_quotes(text: str) -> str:
    """The text inside a pair of quotes, if one pair encloses it: not `"a" and "b"`, and not two pairs, `"“a”"`."""
    inner = _inside_quotes(text)
    return text if inner is None or _inside_quotes(inner) is not None else inner


def _inside_quotes(text: str) -> str | None:
    """What a pair of quotes encloses, if it opens at the start and closes at the end and nowhere between."""
    if len(text) < 2 or text[-1] not in _QUOTES.get(text[0], ""):
        return None
    first, last, inner = text[0], text[-1], text[1:-1]
    marks = _APOSTROPHE.sub("", inner) if "'" in (first, last) or "’" in (first, last) else inner
    if first == last:
        return None if first in marks else trim(inner)
    depth = 1
    for mark in marks:
        depth += (mark == first) - (mark == last)
        if depth == 0:
            return None
    return trim(inner) if depth == 1 else None
