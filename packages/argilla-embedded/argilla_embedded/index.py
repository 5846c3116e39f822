"""The words of a dataset's records as numbers, kept between searches and updated at each search.

What is kept: for each record its words as numbers (4 bytes a word), and about 400 bytes for itself and its fields; for
each different word about 150 bytes. 50,000 records of 40 words are about 35 MB. The datasets searched last are kept, up
to MOST_BYTES; a dataset that is larger by itself is read anew at each search.

Why it is never out of date: everything kept is compared before it is used. Each search reads the id and the time of
change of every record of the dataset, in one statement; a record without exactly this time of change in memory is read
again, and deleted records are left out. Text and time of change come from the same row of the same statement. Argilla
sets the time, to the microsecond, at every change of a record, including its import and the counting of its answers.
Only a program that changes texts directly in the database must set `updated_at` too.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .text import words

Integers = NDArray[np.int64]
#: One record's searched text: for each field (its number, the parts; a chat has a part for each message).
Parts = Sequence[tuple[int, Sequence[str]]]
Stamps = Mapping[str, Any]  #: record id to time of change

MOST_BYTES = 512 * 2**20
BYTES_A_RECORD, BYTES_A_WORD = 400, 150
WASTE = 0.2  #: the share of words of changed and deleted records from which on the arrays are made anew


class Numbers(dict[str, int]):
    """Words and their numbers; a word that is asked for with [] gets the next one."""

    def __init__(self) -> None:
        self.words: list[str] = []  #: by number

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self.words)
        self.words.append(word)  # last, for a reader looks up what it finds here
        return number


@dataclass
class Vocabulary:
    """Every different word of one dataset and its number. It only grows, so its readers need no lock."""

    numbers: Numbers = field(default_factory=Numbers)
    ordered: tuple[int, list[str]] = (0, [])  #: how many words were there when they were last put in order, and those
    shapes: tuple[int, Integers, Integers] = (0, np.zeros(0, np.int64), np.zeros(0, np.int64))

    @property
    def words(self) -> list[str]:
        """The words by number."""
        return self.numbers.words

    def number(self, text: str) -> list[int]:
        """The numbers of a text's words; new ones for new words."""
        return list(map(self.numbers.__getitem__, words(text)))

    def starting(self, start: str) -> list[int]:
        """The numbers of the words that begin so."""
        size = len(self.words)
        known, ordered = self.ordered
        if known != size:
            ordered = sorted(self.words[:size])
            self.ordered = size, ordered
        first = bisect.bisect_left(ordered, start)
        last = bisect.bisect_left(ordered, start + "\U0010ffff")
        return [self.numbers[word] for word in ordered[first:last]]

    def near(self, word: str, edits: int) -> dict[int, int]:
        """The numbers of the words within `edits` insertions, deletions and substitutions, each with its edits."""
        lengths, letters = self.measured()
        # Every edit changes the length by one at most, and the set of characters by one in each direction.
        length, mine = len(word), signature(word)
        close = np.abs(lengths - length) <= edits
        close &= np.bitwise_count(letters & ~mine) <= edits
        close &= np.bitwise_count(~letters & mine) <= edits
        numbers = np.flatnonzero(close)
        distances = distance([self.words[i] for i in numbers], word, edits)
        return {int(number): int(d) for number, d in zip(numbers, distances, strict=True) if d <= edits}

    def measured(self) -> tuple[Integers, Integers]:
        """The length and the signature of each word."""
        size = len(self.words)
        known, lengths, letters = self.shapes
        if known != size:
            fresh = self.words[known:size]
            lengths = np.concatenate([lengths, np.fromiter(map(len, fresh), np.int64, len(fresh))])
            letters = np.concatenate([letters, np.fromiter(map(signature, fresh), np.int64, len(fresh))])
            self.shapes = size, lengths, letters
        return lengths, letters


def signature(word: str) -> int:
    """The set of a word's characters as bits; two characters may share one."""
    bits = 0
    for character in word:
        bits |= 1 << (ord(character) % 61)
    return bits


def distance(candidates: Sequence[str], word: str, most: int) -> Integers:
    """Levenshtein's distance of each candidate from `word`, exact up to `most`; beyond it anything greater.

    All candidates at once, and only that diagonal band of the table from which `most` edits can come back.
    """
    length = max(map(len, candidates), default=0)
    codes = np.full((len(candidates), length + 2 * most + 1), -1, np.int64)
    for row, candidate in enumerate(candidates):
        codes[row, most : most + len(candidate)] = np.frombuffer(candidate.encode("utf-32-le"), "<u4")
    far = most + 1
    band = np.full((2 * most + 3, len(candidates)), far, np.int64)  # one column more on either side
    for j in range(most + 1):
        band[most + 1 + j] = j  # the empty beginning of `word`: j insertions
    for i, character in enumerate(map(ord, word), start=1):
        fresh = np.full_like(band, far)
        for k in range(1, 2 * most + 2):
            j = i + k - most - 1  # characters of the candidate
            if j < 0 or j > length:
                continue
            if j == 0:
                fresh[k] = i
                continue
            step = band[k] + (codes[:, most + j - 1] != character)
            fresh[k] = np.minimum(np.minimum(step, band[k + 1] + 1), fresh[k - 1] + 1)
        band = np.minimum(fresh, far)
    ends = np.fromiter(map(len, candidates), np.int64, len(candidates)) - len(word) + most + 1
    inside = (ends >= 1) & (ends <= 2 * most + 1)
    return np.where(inside, band[np.clip(ends, 0, 2 * most + 2), np.arange(len(candidates))], far)


@dataclass(frozen=True)
class Words:
    """The words of all records at one moment. Never changed: what follows is another one.

    A *text* is a part of a field, a *slot* a field of a record: a chat's field has a text for each message.
    """

    vocabulary: Vocabulary
    ids: list[str]  #: by row
    live: NDArray[np.bool_]  #: by row: whether the record is still this one
    tokens: NDArray[np.int32]  #: the words, text after text
    text_start: Integers  #: by text, and the end of the last
    text_slot: Integers
    slot_row: Integers
    slot_field: Integers
    slot_length: Integers  #: words

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.tokens.nbytes + len(self.ids) * BYTES_A_RECORD + len(self.vocabulary.words) * BYTES_A_WORD

    def without(self, rows: Iterable[int]) -> Words:
        """Return a copy without some rows' records."""
        live = self.live.copy()
        live[list(rows)] = False
        return replace(self, live=live)

    def joined(self, ids: Sequence[str], records: Sequence[Parts]) -> Words:
        """Return a copy with more records."""
        tokens: list[int] = []
        starts: list[int] = []
        text_slot: list[int] = []
        slot_row: list[int] = []
        slot_field: list[int] = []
        slot_length: list[int] = []
        for row, parts in enumerate(records, start=len(self.ids)):
            for number, texts in parts:
                before = len(tokens)
                for text in texts:
                    tokens += self.vocabulary.number(text)
                    starts.append(len(self.tokens) + len(tokens))
                    text_slot.append(len(self.slot_row) + len(slot_row))
                slot_row.append(row)
                slot_field.append(number)
                slot_length.append(len(tokens) - before)
        return Words(
            self.vocabulary, self.ids + list(ids), grown(self.live, [True] * len(ids)), grown(self.tokens, tokens),
            grown(self.text_start, starts), grown(self.text_slot, text_slot), grown(self.slot_row, slot_row),
            grown(self.slot_field, slot_field), grown(self.slot_length, slot_length),
        )  # fmt: skip


def grown(array: NDArray[Any], more: Sequence[Any]) -> NDArray[Any]:
    """The array with more at its end."""
    return np.concatenate([array, np.asarray(more, dtype=array.dtype)]) if more else array


def nothing() -> Words:
    """No records."""
    none = np.zeros(0, np.int64)
    return Words(
        Vocabulary(), [], np.zeros(0, bool), np.zeros(0, np.int32), np.zeros(1, np.int64), none, none, none, none
    )


class Kept:
    """One dataset's words, with the times of change for which they hold."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        self.lock = threading.Lock()
        self.words = nothing()
        self.stamps: dict[str, Any] = {}
        self.rows: dict[str, int] = {}

    def current(self, stamps: Stamps, read: Callable[[Sequence[str]], dict[str, tuple[Any, Parts]]]) -> Words:
        """The words of exactly the records of `stamps`; `read` gives the time of change and the parts of some.

        A record that is deleted while it is read is left out; one that changes has the newer text.
        """
        with self.lock:
            if self.stamps != stamps:
                self.update(stamps, read)
            return self.words

    def update(self, stamps: Stamps, read: Callable[[Sequence[str]], dict[str, tuple[Any, Parts]]]) -> None:
        """Read what is new or changed, and forget what is gone."""
        stale = [id_ for id_, stamp in stamps.items() if self.stamps.get(id_) != stamp]
        fresh = read(stale)
        kept = {id_: stamp for id_, stamp in self.stamps.items() if stamps.get(id_) == stamp}
        found = self.words.without(self.rows[id_] for id_ in self.stamps if id_ not in kept)
        rows = {id_: self.rows[id_] for id_ in kept}
        if not found.live.all() and int(found.live.sum()) < (1 - WASTE) * len(found.ids):
            fresh = read(list(stamps))
            found, kept, rows = nothing(), {}, {}
        rows.update({id_: row for row, id_ in enumerate(fresh, start=len(found.ids))})
        words = found.joined(list(fresh), [parts for _, parts in fresh.values()])
        # All at once, and last: whatever fails before leaves what was known as it was.
        self.words, self.rows = words, rows
        self.stamps = {**kept, **{id_: stamp for id_, (stamp, _) in fresh.items()}}


class Cache:
    """The words of the datasets that were searched last."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.Lock()
        self.kept: OrderedDict[str, Kept] = OrderedDict()

    def of(self, dataset: str, fields: Mapping[str, str]) -> Kept:
        """A dataset's words; without any when it was not searched lately, or its fields are others now."""
        with self.lock:
            kept = self.kept.get(dataset)
            if kept is None or kept.fields != dict(fields):
                kept = self.kept[dataset] = Kept(fields)
            self.kept.move_to_end(dataset)
            return kept

    def shrink(self) -> None:
        """Forget the datasets searched longest ago until the rest is small enough."""
        with self.lock:
            while self.kept and sum(kept.words.size for kept in self.kept.values()) > self.most_bytes:
                self.kept.popitem(last=False)
