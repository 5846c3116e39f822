"""Words, as Elasticsearch's standard analyser cuts them.

Unicode's word boundaries (UAX 29), in lower case, without stemming, stop words or folding of accents: Han and Hiragana
character by character; Katakana by runs; scripts without spaces (Thai, Lao, Khmer, Burmese) by runs; Hangul and all
other letters whole; `3.14`, `don't`, `a_b` and `example.com` one word, `pay-off` two; an emoji with all its modifiers
one. Punctuation vanishes. The classes are written as ranges, for Python's library does not carry Unicode's own.
"""

from __future__ import annotations

import functools
import re
import unicodedata

#: Character ranges: Han and Hiragana, each character a word; Katakana, words by runs.
SINGLE = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u309f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001f200\U00020000-\U0003ffff"
)
KATAKANA = "\u3031-\u3035\u309b\u309c\u30a0-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u32d0-\u32fe\u3300-\u3357\uff66-\uff9d"
#: Scripts that Unicode leaves to a dictionary; their digits are digits like all others.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u1950-\u197f\u1980-\u19cf\u19de\u19df\u1a20-\u1a7f\u1aa0-\u1aad\ua9e0-\ua9ef"
    "\uaa60-\uaadf"
)
JOINING = "_\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f"  #: joins letters and digits, and is no word by itself
PICTURES = (
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e"
    "\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653"
    "\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26aa\u26ab"
    "\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa"
    "\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e"
    "\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f004\U0001f0cf\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7eb\U0001f90c-\U0001faff"
)
LONGEST = 255  #: characters; a longer word is cut, as Elasticsearch does
#: Characters whose lower case depends on their neighbours, or is two characters, in Python and not in Elasticsearch.
ODD_CASE = re.compile("[\u03a3\u0130]")
ODD_LOWER = {0x3A3: "\u03c3", 0x130: "i"}


def ranges(chosen: list[int]) -> str:
    """Ascending code points as the inside of a character class."""
    parts: list[str] = []
    start = previous = -2
    for code in [*chosen, -1]:
        if code != previous + 1:
            if start >= 0:
                parts.append(re.escape(chr(start)) + "-" + re.escape(chr(previous)))
            start = code
        previous = code
    return "".join(parts)


@functools.cache
def word_pattern() -> re.Pattern[str]:
    """The pattern of one word; made on first use (50 ms), for it needs some of Unicode's categories."""
    # Nothing of these categories that counts here lies between U+1F200 and the variation selectors of plane 14.
    codes = [*range(0x1F200), *range(0x1F3FB, 0x1F400), *range(0xE0001, 0xE01F1)]
    kinds = [(code, unicodedata.category(chr(code))) for code in codes]
    extends = {*range(0x1F3FB, 0x1F400), 0xFF9E, 0xFF9F}  # tones of skin, and Katakana's half-width voice marks
    marks = ranges([c for c, kind in kinds if (kind in ("Mn", "Mc", "Me", "Cf") and c != 0x200B) or c in extends])
    no_digits = ranges([c for c, kind in kinds if kind == "No"])  # superscripts, fractions, numbers in circles
    mark = f"[{marks}]*"
    letter = rf"[^\W\d{JOINING}{SINGLE}{KATAKANA}{UNSPACED}{no_digits}]{mark}"
    digit = rf"\d{mark}"
    between_letters = (
        rf"['\u2019\u2018\u2024.\ufe52\uff07\uff0e:\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a]{mark}"
    )
    between_digits = (
        rf"['\u2019\u2018\u2024.\ufe52\uff07\uff0e,;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14"
        rf"\ufe50\ufe54\uff0c\uff1b]{mark}"
    )
    joining = rf"(?:[{JOINING}]{mark})"
    letters = f"{letter}(?:(?:{between_letters})?{letter})*"
    digits = f"{digit}(?:(?:{between_digits})?{digit})*"
    plain = f"(?:{letters}|{digits})+"
    katakana = f"(?:[{KATAKANA}]{mark})+"
    picture = rf"[{PICTURES}]{mark}(?:(?<=\u200d)[{PICTURES}]{mark})*"
    return re.compile(
        rf"{joining}*(?:{plain}|{katakana})(?:{joining}+(?:{plain}|{katakana}))*{joining}*"
        rf"|[{SINGLE}]{mark}|[{UNSPACED}](?:[{UNSPACED}]{mark})*"
        rf"|[\U0001f1e6-\U0001f1ff]{mark}[\U0001f1e6-\U0001f1ff]{mark}|{picture}|[#*]\ufe0f?\u20e3"
    )


#: The same for a text of ASCII alone, five times as fast.
ASCII_WORD = re.compile(
    r"_*[a-z0-9][a-z0-9_]*(?:(?:(?<=[a-z])['.:](?=[a-z])|(?<=[0-9])['.,;](?=[0-9]))[a-z0-9][a-z0-9_]*)*"
)


def words(text: str) -> list[str]:
    """The words of `text`, in order, in lower case."""
    pattern = ASCII_WORD if text.isascii() else word_pattern()
    found: list[str] = pattern.findall(lower(text))
    if len(text) <= LONGEST or all(len(word) <= LONGEST for word in found):
        return found
    return [word[i : i + LONGEST] for word in found for i in range(0, len(word), LONGEST)]


def lower(text: str) -> str:
    """Lower case character by character."""
    return (text.translate(ODD_LOWER) if ODD_CASE.search(text) else text).lower()
