"""Words and text queries.

A query is a list of words, "phrases" and prefix* that must all occur, in whichever fields; words are whole and
compared in lower case, without stemming, stop words or folding of accents. Words are cut as Unicode's word
boundaries (UAX 29) cut them, in the approximation that Elasticsearch's standard analyser makes visible: Han and
Hiragana character by character, Katakana and other scripts by runs, 3.14 and don't whole, pay-off in two.

The other operators of Elasticsearch's simple query string (| - ( ) ~) are refused with a line that says so.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Words = Sequence[str]

#: Character ranges: Han and Hiragana, each character a word; Katakana, words by runs.
SINGLE = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u309f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
KATAKANA = "\u30a0-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u32d0-\u32fe\uff66-\uff9f"
OPERATOR = re.compile(r"[|()]|(?:^|(?<=\s))-(?=\S)|~\d*(?=\s|$)")
PART = re.compile(r'"([^"]*)"?|(\S+)')
MOST_PHRASES = 1024  #: as many as Elasticsearch takes
SATURATION = 1.2  #: BM25's usual k1: how fast further occurrences of a word stop mattering


class UnsupportedQueryError(Exception):
    """A query asks for what this search does not do; one line that names it."""


@functools.cache
def word_pattern() -> re.Pattern[str]:
    """The pattern of one word; made on first use, for it needs every combining mark of Unicode."""
    marks: list[str] = []
    start = None
    # No mark lies between U+1F000 and the variation selectors of plane 14.
    for code in [*range(0x1F000), *range(0xE0100, 0xE01F1)]:
        is_mark = code in (0x200C, 0x200D) or unicodedata.category(chr(code)).startswith("M")
        if is_mark and start is None:
            start = code
        elif not is_mark and start is not None:
            marks.append(f"{chr(start)}-{chr(code - 1)}")
            start = None
    letter = rf"[^\W{SINGLE}{KATAKANA}]"
    mark = f"[{''.join(marks)}]"
    unit = f"{letter}{mark}*"
    plain = f"(?:{unit})+"
    inner = rf"(?:(?<=[^\W\d])(?:{mark})*['\u2019.:\u00b7](?=[^\W\d])|(?<=\d)['\u2019.,;](?=\d))"
    return re.compile(f"[{SINGLE}]{mark}*|[{KATAKANA}](?:[{KATAKANA}]|{mark})*|{plain}(?:{inner}{plain})*")


def words(text: str) -> list[str]:
    """The words of `text`, in order, in lower case."""
    return [word.lower() for word in word_pattern().findall(text)]


@dataclass(frozen=True)
class Phrase:
    """Words that stand one after another; the last may be the beginning of a word. One word is the usual case."""

    words: tuple[str, ...]
    open_end: bool = False  #: prefix*: the last word matches every word that begins with it

    def count(self, text: Words) -> int:
        """How often the phrase occurs in the words of one field."""
        size = len(self.words)
        if size == 1:
            return sum(map(self.ends, text)) if self.open_end else text.count(self.words[0])
        head, starts = self.words[:-1], range(len(text) - size + 1)
        return sum(tuple(text[i : i + size - 1]) == head and self.ends(text[i + size - 1]) for i in starts)

    def ends(self, word: str) -> bool:
        """Whether `word` can be the phrase's last."""
        return word.startswith(self.words[-1]) if self.open_end else word == self.words[-1]


@dataclass(frozen=True)
class Query:
    """A text query, parsed."""

    phrases: tuple[Phrase, ...]  #: all must occur; none at all matches nothing
    everything: bool = False  #: the query `*`

    def score(self, fields: Iterable[Words]) -> float:
        """0.0 when a record's fields do not match; else higher the more often, and in the shorter fields, it does."""
        if self.everything:
            return 1.0
        texts = [text for text in fields if text]
        total = 0.0
        for phrase in self.phrases:
            best = max((weight(phrase.count(text), len(text)) for text in texts), default=0.0)
            if best == 0.0:
                return 0.0
            total += best
        return total


def weight(count: int, length: int) -> float:
    """What `count` occurrences among `length` words are worth: 0 for none, growing and saturating below 2.2."""
    return count * (SATURATION + 1) / (count + SATURATION * (0.25 + 0.75 * length / 50))


def parse(query: str) -> Query:
    """Read a query. Raises UnsupportedQueryError for the operators that this search does not have."""
    if query.strip() == "*":
        return Query((), everything=True)
    bare = re.sub(r'"[^"]*"?', lambda found: " " * (len(found[0]) - 1) + '"', query)
    if found := OPERATOR.search(bare):
        raise UnsupportedQueryError(
            f'the text query uses {found[0]!r}; this search takes words that must all occur, "phrases" and prefix*'
        )
    phrases = []
    for quoted, word in PART.findall(query):
        open_end = not quoted and word.endswith("*") and word[-2:-1] != "\\"
        found_words = tuple(words(quoted or word))
        # pay-off is two words that must both occur, and only the last of them can be a prefix.
        groups = [found_words] if quoted else [(one,) for one in found_words]
        phrases += [Phrase(group) for group in groups[:-1]]
        phrases += [Phrase(group, open_end) for group in groups[-1:] if group]
    if len(phrases) > MOST_PHRASES:
        raise UnsupportedQueryError(f"the text query has {len(phrases)} words; {MOST_PHRASES} is the most")
    return Query(tuple(phrases))
