"""Count the words of a text in any script, find its visible characters, and write numbers with their nouns.

HTEB's error types limit numbers of words. White space separates words, as in the papers. In scripts that are written
without spaces a whole sentence would be one word, and every translation from them a runaway; so their characters count
in groups. The sizes of the groups are ours: about the length of a word, which is precise enough for limits such as five
times or a fifth.
"""

from __future__ import annotations

import functools
import re

HAN_AND_KANA = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
THAI_LAO_KHMER_MYANMAR = (
    "\u0e01-\u0e3e\u0e40-\u0e5b\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
)

_PART = f"[{HAN_AND_KANA}]{{1,2}}|[{THAI_LAO_KHMER_MYANMAR}]{{1,4}}|[^{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]+"

_BLANK = (
    "\u200b\u2060\ufeff"  # invisible, and no white space for Python: zero width space, word joiner, byte order mark
)
# Invisible too, but part of a text: soft hyphen, joiners, marks of direction, the blanks of Hangul and Braille.
_UNSEEN = (
    f"{_BLANK}\xad\u034f\u061c\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2061\u2062\u2063\u2064"
    "\u2066\u2067\u2068\u2069\u115f\u1160\u2800\u3164\uffa0"
)
# Characters that control a terminal or change the direction of the letters that follow: C0, DEL and C1, separators of
# lines and paragraphs, bidi embeddings, overrides and isolates, halves of a character. Joiners and single marks of
# direction stay: scripts that are written from right to left need them.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]")
_IN_NO_FILE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")  # nulls end texts, others belong to terminals


@functools.cache
def unspaced() -> re.Pattern[str]:
    """Return a pattern for characters of scripts that are written without spaces, compiled on first use."""
    return re.compile(f"[{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]")


def count_words(text: str) -> int:
    """Return the number of words of a text: 0 for a blank one, otherwise at least 1.

    Each piece between white space is a word, also punctuation by itself (as in HTEB). In a piece with characters of
    scripts that are written without spaces, two characters of Han or kana are a word, and four of Thai, Lao, Khmer or
    Myanmar; each stretch between them is one more, if it has a letter or a digit.
    """
    pieces = text.split()
    if text.isascii() or not unspaced().search(text):
        return len(pieces)
    words = 0
    for piece in pieces:
        groups = re.findall(_PART, piece) if unspaced().search(piece) else ()
        counted = [any(character.isalnum() or unspaced().match(character) for character in group) for group in groups]
        words += sum(counted) if groups else 1
    return words


def trim(text: str) -> str:
    """Return the text without white space and invisible characters at both ends."""
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or text[start] in _BLANK):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in _BLANK):
        end -= 1
    return text[start:end]


def shows(text: str) -> bool:
    """Return whether any of a text is visible: more than white space and characters without width."""
    return any(not character.isspace() and character not in _UNSEEN for character in text)


def readable(text: str) -> str:
    """Return a text that every file can hold, with U+FFFD for most control characters and for lone surrogates."""
    return _IN_NO_FILE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return the text with characters that control a terminal written as codes; line breaks and tabs stay."""
    return _STEERING.sub(lambda match: ascii(match[0])[1:-1], text)


def printable_line(text: str) -> str:
    """Return the same as one line: white space of any kind and length becomes one space."""
    return printable(" ".join(text.split()))


def sentence(text: str) -> str:
    """Return a text without its capital and full stop as a sentence.

    >>> sentence("raters agree")
    'Raters agree.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def count(number: float, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, which is in the plural unless the number is 1.

    Args:
        number: any number; a whole one is written without decimals.
        noun: the noun in the singular; other words may follow it, such as its verb.
        plural: the same in the plural; without it, the noun takes an "s".

    Returns:
        The number, with commas between thousands, a space and the noun.

    >>> count(1, "pair"), count(1200, "pair"), count(2, "batch is", "batches are")
    ('1 pair', '1,200 pairs', '2 batches are')
    """
    written = int(number) if number % 1 == 0 else number
    return f"{written:,} {noun if number == 1 else plural or f'{noun}s'}"
