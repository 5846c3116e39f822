"""How many words a text has, in any script: what the lengths of HTEB's error types are measured in.

Words are what white space separates, as the papers count. Scripts that are written without spaces would make a whole
sentence one word, and every translation out of them a runaway; so their characters count in groups. The sizes of the
groups are ours: about the length of a word, and no more is needed for limits such as five times or a fifth.
"""

from __future__ import annotations

import re

HAN_AND_KANA = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
THAI_LAO_KHMER_MYANMAR = (
    "\u0e01-\u0e3e\u0e40-\u0e5b\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
)

_UNSPACED = re.compile(f"[{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]")
_PART = re.compile(
    f"[{HAN_AND_KANA}]{{1,2}}|[{THAI_LAO_KHMER_MYANMAR}]{{1,4}}|[^{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]+"
)


def count_words(text: str) -> int:
    """The number of words of a text: 0 for a blank one, otherwise at least 1.

    What white space separates is a word, punctuation that stands alone too (HTEB counts so). In a piece with characters
    of scripts that are written without spaces, two characters of Han or kana are a word, four of Thai, Lao, Khmer
    or Myanmar, and so is what stands between them, if it holds a letter or a digit.
    """
    pieces = text.split()
    if text.isascii() or not _UNSPACED.search(text):
        return len(pieces)
    return sum(_words_of(piece) for piece in pieces)


def _words_of(piece: str) -> int:
    """The words of a piece without white space."""
    if not _UNSPACED.search(piece):
        return 1
    return sum(any(map(_counts, part)) for part in _PART.findall(piece))


def _counts(character: str) -> bool:
    return character.isalnum() or _UNSPACED.match(character) is not None
