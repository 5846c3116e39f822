"""Matches and scores of a text query: the query's tree applied to a dataset's words.

Scores are BM25's as Lucene computes them, from all records of the dataset, so that no filter changes them: per field
and summed over the fields. A phrase scores by the closeness of its words, a fuzzy word by the number of its edits; a
prefix and "not" score 1 each. Everything is array arithmetic; its time is proportional to the words of the dataset for
the query as a whole, and to the places found for each of its terms.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .index import Integers, Words
from .query import Both, Either, Everything, Fuzzy, Leaf, Node, Not, Phrase, Prefix, Terms, fold

Floats = NDArray[np.float64]

SATURATION, LENGTH_SHARE = 1.2, 0.75  #: BM25's k1 and b


@dataclass(frozen=True)
class Match:
    """By row: whether it matches, and its score, which is 0 where it does not."""

    holds: NDArray[np.bool_]
    score: Floats


def matches(words: Words, tree: Node | None, fields: Collection[int] | None = None) -> dict[str, float]:
    """The score, above 0, of each record that matches; `fields` restricts the search to some fields by number."""
    if tree is None:
        return {}
    result = Evaluation(words, tree, fields).result
    rows = np.flatnonzero(result.holds & words.live)
    return {words.ids[row]: score for row, score in zip(rows.tolist(), result.score[rows].tolist(), strict=True)}


class Evaluation:
    """One query on one state of the words."""

    def __init__(self, words: Words, tree: Node, fields: Collection[int] | None) -> None:
        self.words = words
        searched = words.live[words.slot_row]
        if fields is not None:
            searched &= np.isin(words.slot_field, list(fields))
        self.searched = searched
        self.weigh_lengths()
        leaves: dict[Leaf, dict[int, float]] = {}
        fold(tree, lambda leaf: leaves.setdefault(leaf, self.expanded(leaf)) and None, lambda node, below: None)
        self.weights = leaves
        self.places = places(words, {number for weights in leaves.values() for number in weights})
        found = {leaf: self.leaf(leaf) for leaf in leaves}
        self.result = fold(tree, found.__getitem__, joined)

    def weigh_lengths(self) -> None:
        """BM25's part that depends on a field's length alone, and the number of records that have each field."""
        words = self.words
        kinds = int(words.slot_field.max(initial=0)) + 1
        filled = self.searched & (words.slot_length > 0)
        self.records = np.bincount(words.slot_field[filled], minlength=kinds)
        total = np.bincount(words.slot_field[filled], weights=words.slot_length[filled], minlength=kinds)
        mean = np.divide(total, self.records, out=np.ones(kinds), where=self.records > 0)
        relative = words.slot_length / mean[words.slot_field]
        self.damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative)

    def expanded(self, leaf: Leaf) -> dict[int, float]:
        """The words of the dataset that a leaf means, by number, each with its weight."""
        vocabulary = self.words.vocabulary
        if isinstance(leaf, Prefix):
            return dict.fromkeys(vocabulary.starting(leaf.start), 1.0)
        if isinstance(leaf, Fuzzy):
            near = vocabulary.near(leaf.word, leaf.edits)
            return {number: 1.0 / (1 + edits) for number, edits in near.items()}
        if isinstance(leaf, Terms | Phrase):
            return {vocabulary.numbers[word]: 1.0 for word in leaf.words if word in vocabulary.numbers}
        return {}

    def leaf(self, leaf: Leaf) -> Match:
        """Return the match of a leaf."""
        rows = len(self.words.ids)
        if isinstance(leaf, Everything):
            return Match(np.ones(rows, bool), np.ones(rows))
        if isinstance(leaf, Prefix):
            slots = np.flatnonzero(np.bincount(self.united(leaf), minlength=len(self.words.slot_row)))
            return self.by_row(slots, np.ones(len(slots)))
        if isinstance(leaf, Fuzzy):
            # As one word that is as rare as all together: else the rarest misspelling would count most.
            groups = [(self.united(leaf, weight), weight) for weight in set(self.weights[leaf].values())]
            slots = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in groups)])
            each = np.repeat([weight for _, weight in groups], [len(one) for one, _ in groups])
            return self.by_row(*self.weighted(slots, each=each))
        numbers = [self.words.vocabulary.numbers.get(word, -1) for word in leaf.words]
        if -1 in numbers:
            return self.together([])
        if isinstance(leaf, Phrase):
            return self.phrase(numbers, leaf.slop)
        different = list(dict.fromkeys(numbers))
        return self.together([self.weighted(self.slots(self.places[n])) for n in different], len(different))

    def together(self, parts: Sequence[tuple[Integers, Floats]], least: int = 1) -> Match:
        """The sums of scores by slot, for slots that at least `least` parts have."""
        size = len(self.words.slot_row)
        slots = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in parts)])
        scores = np.concatenate([np.zeros(0), *(one for _, one in parts)])
        found = np.flatnonzero(np.bincount(slots, minlength=size) >= least)
        return self.by_row(found, np.bincount(slots, scores, size).astype(float)[found])

    def united(self, leaf: Leaf, weight: float = 1.0) -> Integers:
        """The searched slots of all words that a leaf means with this weight, as often as they have one of them."""
        found = [self.slots(self.places[number]) for number, one in self.weights[leaf].items() if one == weight]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def texts(self, found: Integers) -> Integers:
        """The texts in which some places are."""
        if len(found) * 20 < len(self.words.tokens):
            return np.searchsorted(self.words.text_start, found, "right") - 1
        return self.text_of_each[found]

    @functools.cached_property
    def text_of_each(self) -> Integers:
        """The text of each place."""
        lengths = np.diff(self.words.text_start)
        return np.repeat(np.arange(len(lengths)), lengths)

    def slots(self, found: Integers) -> Integers:
        """The searched slots of some places, as often as they have one."""
        slots = self.words.text_slot[self.texts(found)]
        return slots[self.searched[slots]]

    def weighted(self, slots: Integers, weight: float = 1.0, each: Floats | None = None) -> tuple[Integers, Floats]:
        """Each slot once, with its score; `each` says what its places are worth, 1 as a rule."""
        often = np.bincount(slots, weights=each, minlength=len(self.words.slot_row))
        unique = np.flatnonzero(often)
        often = often[unique]
        kinds = self.words.slot_field[unique]
        known = np.bincount(kinds, minlength=len(self.records))
        rarity = np.log1p((self.records - known + 0.5) / (known + 0.5))
        return unique, weight * rarity[kinds] * often / (often + self.damping[unique])

    def by_row(self, slots: Integers, scores: Floats) -> Match:
        """Slots and their scores by row."""
        score = np.bincount(self.words.slot_row[slots], scores, len(self.words.ids)).astype(float)
        return Match(score > 0, score)

    def phrase(self, numbers: Sequence[int], slop: int) -> Match:
        """Return the places of a phrase: its words in succession, or out of place by `slop` in all.

        A word's shift is its place less its place in the phrase. A phrase stands where each word can be given a place
        of its own so that the shifts differ by `slop` at most; for each shift the places are taken from the left.
        """
        words = self.words
        often = Counter(numbers)
        texts = self.searched[words.text_slot]
        for number, least in often.items():
            texts &= np.bincount(self.texts(self.places[number]), minlength=len(texts)) >= least
        lengths = np.diff(words.text_start)
        width = min(slop, int(lengths[texts].max(initial=0)) + len(numbers))
        # Texts are moved apart, so that no phrase can reach from one into the next.
        gap = width + 2 * len(numbers) + 1
        inside = {}
        for number in often:
            text = self.texts(self.places[number])
            chosen = texts[text]
            inside[number] = self.places[number][chosen] + text[chosen] * gap
        shifts = [inside[numbers[0]]] if width == 0 else [inside[number] - i for i, number in enumerate(numbers)]
        start = shifts[0] if len(shifts) == 1 else np.unique(np.concatenate(shifts))
        needed = np.zeros(len(start), np.int64)
        last: dict[int, Integers] = {}
        for offset, number in enumerate(numbers):
            place = np.searchsorted(inside[number], start + offset)
            if number in last:
                place = np.maximum(place, last[number] + 1)
            reached = np.append(inside[number], np.iinfo(np.int64).max // 2)[np.minimum(place, len(inside[number]))]
            shift = reached - offset - start
            good = shift <= width
            start, needed = start[good], np.maximum(needed, shift)[good]
            last = {key: value[good] for key, value in {**last, number: place}.items()}
        # The beginning of the first word given back its own place: texts are found through it.
        anchor = inside[numbers[0]][last[numbers[0]]] if len(start) else start
        return self.by_places(numbers, anchor, gap, needed)

    def by_places(self, numbers: Sequence[int], anchor: Integers, gap: int, needed: Integers) -> Match:
        """The match of a phrase that was found at some places, each out of order by so much."""
        text = (
            np.searchsorted(self.words.text_start[:-1] + np.arange(len(self.words.text_slot)) * gap, anchor, "right")
            - 1
        )
        slots, scores = self.weighted(self.words.text_slot[text], float(len(numbers)), 1.0 / (1 + needed))
        return self.by_row(slots, scores)


def places(words: Words, numbers: Collection[int]) -> Mapping[int, Integers]:
    """Return the places of these words among all words, ascending, in one pass."""
    wanted = np.zeros(len(words.vocabulary.words), bool)
    wanted[list(numbers)] = True
    found = np.flatnonzero(wanted[words.tokens])
    values = words.tokens[found]
    found = found[np.argsort(values, kind="stable")]
    known = np.sort(np.asarray(list(numbers), np.int64))
    ends = np.cumsum(np.bincount(np.searchsorted(known, values), minlength=len(known)))
    return {int(n): found[end - size : end] for n, end, size in zip(known, ends, np.diff(ends, prepend=0), strict=True)}


def joined(node: Not | Both | Either, parts: Sequence[Match]) -> Match:
    """Return the match of a node, from those of its parts."""
    if isinstance(node, Not):
        holds = ~parts[0].holds
        return Match(holds, holds.astype(float))
    reduce: Any = np.logical_and.reduce if isinstance(node, Both) else np.logical_or.reduce
    holds = reduce([part.holds for part in parts])
    total = parts[0].score.copy()
    for part in parts[1:]:
        total += part.score
    return Match(holds, np.where(holds, total, 0.0))
