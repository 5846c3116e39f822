"""How many words two texts share, and finding near-duplicates among many by it.

Near-duplicates are texts whose sets of words have a Jaccard index of at least 0.8: equal but for capitals, punctuation
and order, or for one word in about ten. It is exact and needs no pairwise comparison: two such texts must share one of
their rarest words (prefix filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable

from plumbline.words import HAN_AND_KANA, THAI_LAO_KHMER_MYANMAR

NEAR = 0.8  # the least Jaccard index of near-duplicates
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_UNSPACED = re.compile(f"[{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]")


def words_of(text: str) -> frozenset[str]:
    """A text's words without capitals and the punctuation around them.

    What is written without spaces gives all of its pairs of neighbouring characters. A text without any word is one
    word itself.
    """
    words: set[str] = set()
    for piece in unicodedata.normalize("NFKC", text).casefold().split():
        word = _EDGES.sub("", piece)
        if len(word) > 1 and _UNSPACED.search(word):
            words.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word:
            words.add(word)
    return frozenset(words or {text.strip()})


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """The Jaccard index of two sets of words: shared ones over all, from 0 to 1."""
    return len(first & second) / len(first | second)


class DuplicateIndex:
    """Texts by group, asked whether a near-duplicate of a text is among a group's."""

    def __init__(self) -> None:
        self._texts: dict[tuple[Hashable, str], dict[frozenset[str], int]] = defaultdict(dict)  # by group, rare word
        self._number = 0

    def near(self, groups: Iterable[Hashable], words: frozenset[str]) -> bool:
        """Whether one of these groups holds a near-duplicate."""
        return self.first(groups, words) is not None

    def first(self, groups: Iterable[Hashable], words: frozenset[str]) -> int | None:
        """Which text of one of these groups, counted from 0 as they were put in, is a near-duplicate; None: none is."""
        places = [(group, word) for group in groups for word in _rarest(words)]
        texts = (entry for key in places for entry in self._texts.get(key, {}).items())
        return next((number for text, number in texts if overlap(words, text) >= NEAR), None)

    def add(self, groups: Iterable[Hashable], words: frozenset[str]) -> None:
        """Put a text into groups."""
        for group in groups:
            for word in _rarest(words):
                self._texts[group, word].setdefault(words, self._number)
        self._number += 1


def _rarest(words: frozenset[str]) -> list[str]:
    """So many of a text's rarest words that each near-duplicate has one of them among its own; long words are rare."""
    number = len(words) - math.ceil(NEAR * len(words) - 1e-9) + 1
    return sorted(words, key=lambda word: (-len(word), word))[:number]
