"""The outputs that a sample is drawn from, in strata: read in pieces, keeping only those that may be drawn.

A hash of seed and identity orders the candidates, so that the sample depends on nothing else. The strata are, one
within another: language, task type, data set, language of the output, and a third of the originals by length; those of
a kind give one candidate each in turn for as long as they reach (`Turns`).

Near-duplicates are texts whose sets of words have a Jaccard index of at least 0.8: equal but for capitals, punctuation
and order, or for one word in about ten. Finding them is exact and needs no pairwise comparison: two such texts must
share one of their rarest words (prefix filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007).
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import math
import re
import unicodedata
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from annotation.campaign.rubric import Rubric
from annotation.campaign.subjects import SubjectItem, read_items
from annotation.records import Supply
from generation.jobs import COMMAND, Plan, refuse_other_outputs
from generation.output_statistics import FlagCount
from plumbline.errors import DataError, StudyError
from plumbline.fields import plain
from plumbline.hashes import Hashes, Packed, packed, set_hash
from plumbline.records import Pair, Text, TransformedText, pair_id
from plumbline.store import as_record, read_batches
from plumbline.study import Study
from plumbline.study.transformations import Transformation
from plumbline.words import count, count_words, unspaced

NEAR = 0.8  # the least Jaccard index of near-duplicates
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


def words_of(text: str) -> frozenset[str]:
    """A text's words without capitals and the punctuation around them.

    What is written without spaces gives all of its pairs of neighbouring characters. A text without any word is one
    word itself.
    """
    words: set[str] = set()
    for piece in unicodedata.normalize("NFKC", text).casefold().split():
        word = _EDGES.sub("", piece)
        if len(word) > 1 and unspaced().search(word):
            words.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word:
            words.add(word)
    return frozenset(words or {text.strip()})


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard index of two sets of words, from 0 to 1."""
    return len(first & second) / len(first | second)


class DuplicateIndex:
    """Texts by group, asked whether a near-duplicate of a text is among a group's."""

    def __init__(self) -> None:
        self._texts: dict[tuple[Hashable, str], dict[frozenset[str], int]] = defaultdict(dict)  # by group, rare word
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._number)

    def near(self, groups: Iterable[Hashable], words: frozenset[str]) -> bool:
        """Return whether one of these groups holds a near-duplicate."""
        return self.first(groups, words) is not None

    def first(self, groups: Iterable[Hashable], words: frozenset[str]) -> int | None:
        """Return the first near-duplicate among the texts of these groups, by its place from 0, or None."""
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
    """Return enough of a text's rarest words that every near-duplicate has one of them; long words are rare."""
    number = len(words) - math.ceil(NEAR * len(words) - 1e-9) + 1
    return sorted(words, key=lambda word: (-len(word), word))[:number]


Stratum = tuple[str, ...]  # language, task type, data set, output language, third by length


class Lengths:
    """Thirds by length, in words, of each data set's texts in each language.

    They are the texts' and not the outputs', so that no output that comes later moves a text to another third.
    """

    def __init__(self, texts: Iterable[Text]) -> None:
        counts: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for text in texts:
            counts[text.dataset, text.language][count_words(text.text)] += 1
        self._bounds = {key: (share_of(count, 1), share_of(count, 2)) for key, count in counts.items()}

    def third(self, text: Text) -> int:
        """0 for the shortest texts, 2 for the longest."""
        words = count_words(text.text)
        return sum(words > bound for bound in self._bounds[text.dataset, text.language])


def share_of(counts: Counter[int], thirds: int) -> int:
    """The length that at least so many thirds of the texts do not exceed."""
    reached = 0
    for words in sorted(counts):
        reached += counts[words]
        if 3 * reached >= thirds * counts.total():
            break
    return words


@dataclass(frozen=True)
class Strata:
    """The stratum of each output that a study wants: that of the first text that it serves.

    `keys` are the outputs', sorted; `numbers` say which of the `strata` each has. `served` has the places of the
    outputs of each language's texts in each data set.
    """

    keys: Packed
    numbers: NDArray[np.int32]
    strata: list[Stratum]
    served: Mapping[tuple[str, str], NDArray[np.int64]]

    @classmethod
    def of(cls, plan: Plan, texts: Iterable[Text], lengths: Lengths, transformation: str, seed: int) -> Strata:
        """Return the strata of a unit."""
        index_of: dict[Stratum, int] = {}
        numbers, groups = array("i"), defaultdict[tuple[str, str], "array[int]"](lambda: array("q"))

        def keys() -> Iterator[str]:
            for text in texts:
                job = plan.job(text, transformation, seed)
                stratum_start = text.language, text.task_type, text.dataset
                stratum = *stratum_start, job.languages[-1], str(lengths.third(text))
                groups[text.language, text.dataset].append(len(numbers))
                numbers.append(index_of.setdefault(stratum, len(index_of)))
                yield job.key

        wanted, firsts, places = np.unique(
            Hashes.of(keys(), "texts.parquet").packed, return_index=True, return_inverse=True
        )
        served = {group: np.unique(places[np.asarray(texts)]) for group, texts in groups.items()}
        return cls(wanted, np.asarray(numbers, np.int32)[firsts], list(index_of), served)

    def find(self, keys: Packed) -> Iterator[int]:
        """Yield the place of each output among `keys`; -1 for one that is not wanted."""
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = -1
        yield from np.where(self.keys[at] == keys, at, -1).tolist() if len(self.keys) else at.tolist()


_ROW = tuple(name for name in TransformedText.model_fields if name not in ("intermediate", "raw", "first_flags"))


def flagged_supply(supplies: Iterable[Supply]) -> list[FlagCount]:
    """The shares of usable outputs with each error type, by transformation and language, as the sample was drawn."""
    return [
        FlagCount(supply.transformation, supply.language, flag, n, supply.ok + supply.kept_out, flag in supply.without)
        for supply in supplies
        for flag, n in supply.flagged.items()
    ]


@dataclass(frozen=True)
class Candidate:
    """A candidate for the sample.

    Within a stratum later candidates compare as less, so that a heap has the last one first.
    """

    rank: int
    stratum: Stratum
    key: str
    make: Callable[[], Pair]

    def __lt__(self, candidate: Candidate) -> bool:
        return self.rank > candidate.rank

    @functools.cached_property
    def pair(self) -> Pair:
        """The pair that it would be."""
        return self.make()


class SampleSource(Protocol):
    """The outputs from which a sample is drawn; `supply` grows with each that was read."""

    @property
    def study(self) -> Study:
        """The study that the sample is for."""
        ...

    @property
    def supply(self) -> list[Supply]:
        """The numbers of outputs read and failed."""
        ...

    def of(self, name: str) -> list[Candidate]:
        """The candidates of a transformation, or of a group. Raises DataError where there is none."""
        ...


class WholeSource(SampleSource, Protocol):
    """A source that has the items with known answers, too."""

    def known(self, had: Sequence[Pair]) -> list[Pair]:
        """Return the items with known answers that raters have not had, in an order drawn by the seed."""
        ...


@dataclass(frozen=True)
class _OutputsRead:
    """A transformation's outputs as they are read: candidates by stratum, and what a supply says by language."""

    most: int  #: candidates of a stratum, by rank
    heaps: dict[Stratum, list[Candidate]] = field(default_factory=lambda: defaultdict(list))
    states: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    flags: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  #: of usable outputs
    hashes: dict[str, dict[str, dict[int, str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))

    def count(self, language: str, state: str, row: Mapping[str, Any]) -> None:
        """Count an output."""
        self.states[language][state] += 1
        if row["status"] == "ok":
            self.flags[language].update(row["flags"])

    def keep(self, candidate: Candidate) -> None:
        """Keep a candidate if its rank is among the first of its stratum."""
        heap = self.heaps[candidate.stratum]
        if len(heap) < self.most:
            heapq.heappush(heap, candidate)
        else:
            heapq.heappushpop(heap, candidate)

    def supplies(self, transformation: str, without: Sequence[str]) -> list[Supply]:
        """Return the supply in each language; `without` are the error types of outputs that cannot be drawn."""
        return [
            Supply(
                transformation=transformation,
                language=language,
                **{state: states[state] for state in ("ok", "failed", "unanswered", "kept_out")},
                flagged=dict(sorted(self.flags[language].items())),
                without=tuple(without),
                outputs=dict(self.hashes[language]),
            )
            for language, states in sorted(self.states.items())
        ]


class Candidates:
    """Reads a study's outputs; `supply` grows with each transformation that was read."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.study, self.supply = plan, plan.study, list[Supply]()
        self._lengths, self._to_come = Lengths(self._texts()), Counter[str]()
        # At most this many of a stratum are kept, by rank: a sample takes no more, unless most are near-duplicates.
        self._most = max(1000, 4 * plan.study.sample.pairs)

    def of(self, transformation: str) -> list[Candidate]:
        """A transformation's candidates: usable outputs of this study's generator and prompts, over all seeds.

        Raises DataError where there is none.
        """
        made_by, generator = self.plan.makers[transformation].kind, self.plan.study.generator
        kind, drawn_by, read = self.plan.kinds[transformation], self.plan.study.sample.seed, _OutputsRead(self._most)
        ranked_by = "text" if kind.queue else "key"  # systems give the same originals
        recorded = made_by == generator.kind and bool(generator.recordings)  # such outputs have no more answers
        for seed in self.plan.study.seeds:
            strata = Strata.of(self.plan, self._texts(), self._lengths, transformation, seed)
            usable, to_come = np.zeros(len(strata.keys), "S16"), np.ones(len(strata.keys), np.bool_)
            for row, index in self._rows(strata, transformation, seed):
                if index < 0:
                    continue  # of other prompts, another generator, or a data set that was taken out
                stratum, state = strata.strata[strata.numbers[index]], self._state(row)
                to_come[index] = state == "unanswered" and not recorded
                read.count(stratum[0], state, row)
                if state == "ok":
                    usable[index] = bytes.fromhex(pair_id(row["key"], row["output"]))
                    make = functools.partial(_pair, row, stratum, kind, made_by)
                    read.keep(Candidate(rank_of(drawn_by, row[ranked_by]), stratum, row["key"], make))
            for (language, dataset), places in strata.served.items():
                read.hashes[language][dataset][seed] = set_hash(usable[places][usable[places] != b""])
            self._to_come[transformation] += int(to_come.sum())
        if not read.heaps:
            self._refuse(transformation, any(states["kept_out"] for states in read.states.values()))
        self.supply += read.supplies(transformation, self.plan.study.sample.without)
        return [candidate for heap in read.heaps.values() for candidate in heap]

    def known(self, had: Sequence[Pair]) -> list[Pair]:
        """Return none: controls are made of outputs."""
        return []

    def refuse_incomplete(self) -> None:
        """Raise StudyError if a transformation that was read has outputs still to come."""
        for transformation, number in self._to_come.items():
            if number:
                raise StudyError(
                    f"{self.study.file}: {count(number, 'output')} of {transformation} without an answer: run"
                    f" `{self.study.command(COMMAND)}` first: what comes after a sample is not scored"
                )

    def _refuse(self, transformation: str, kept_out: bool) -> NoReturn:
        study = self.plan.study
        if not kept_out:
            how = study.command(COMMAND)
            raise DataError(f"no usable outputs of {transformation} in {study.folder}; run `{how}` first")
        raise StudyError(
            f"{study.file}: every usable output of {transformation} has an error type of sample.without"
            f" ({', '.join(study.sample.without)}); remove the transformation or the error type"
        )

    def _state(self, row: dict[str, Any]) -> str:
        """The output's status, or `kept_out` for a usable one with an error type that the sample is drawn without."""
        kept_out = row["status"] == "ok" and not set(self.plan.study.sample.without).isdisjoint(row["flags"])
        return "kept_out" if kept_out else str(row["status"])

    def _texts(self) -> Iterator[Text]:
        for table in read_batches(self.plan.study.folder / "texts.parquet", Text, self.plan.study.command(COMMAND)):
            yield from (as_record(row, Text) for row in table.to_pylist())

    def _rows(self, strata: Strata, transformation: str, seed: int) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield a unit's outputs with their places among the strata's keys."""
        path = self.plan.study.transformation_file(transformation, seed)
        refuse_other_outputs(self.plan.study, transformation, seed)
        for table in read_batches(path, TransformedText, self.plan.study.command(COMMAND), _ROW):
            rows = table.to_pylist()
            yield from zip(rows, strata.find(packed([row["key"] for row in rows], str(path))), strict=True)


class Turns:
    """Candidates in nested strata, which take turns until they are used up.

    Those whose keys are in `had` were given before: a stratum that has given more waits until the others have, too.
    Those in `late` come after all others that differ from them in length alone.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        seed: int,
        had: Collection[str] = frozenset(),
        level: int = 0,
        late: Collection[str] = frozenset(),
    ) -> None:
        self._given = sum(candidate.key in had for candidate in candidates)
        self._rest: deque[Candidate] = deque()
        self._turns: list[Turns] = []
        self._late: Turns | None = None
        if candidates and level < len(candidates[0].stratum):
            if level == len(candidates[0].stratum) - 1 and late:
                self._late = Turns([candidate for candidate in candidates if candidate.key in late], seed, had, level)
                candidates = [candidate for candidate in candidates if candidate.key not in late]
            groups: dict[Stratum, list[Candidate]] = defaultdict(list)
            for candidate in candidates:
                groups[candidate.stratum[: level + 1]].append(candidate)
            # Whose turn is first is drawn too: where there are fewer pairs than strata, names must not decide.
            order = sorted(groups, key=lambda stratum: rank_of(seed, *stratum))
            self._turns = [Turns(groups[stratum], seed, had, level + 1, late) for stratum in order]
        else:
            rest = (candidate for candidate in candidates if candidate.key not in had)
            self._rest.extend(sorted(rest, key=lambda candidate: candidate.rank))

    def take(self, wanted: Callable[[Candidate], bool]) -> Candidate | None:
        """Return the next wanted candidate, skipping others for good; None when none is left."""
        candidate = self._next(wanted)
        self._given += candidate is not None
        return candidate

    def _next(self, wanted: Callable[[Candidate], bool]) -> Candidate | None:
        while self._rest:
            candidate = self._rest.popleft()
            if wanted(candidate):
                return candidate
        while self._turns:
            turn = min(self._turns, key=lambda turns: turns._given)  # the first of those that gave least
            chosen = turn.take(wanted)
            if chosen is not None:
                return chosen
            self._turns.remove(turn)
        return self._late.take(wanted) if self._late else None


def rank_of(seed: int, *what: str) -> int:
    """Return a place in an order that depends on the seed and the names alone."""
    digest = hashlib.sha256(" ".join(["sample-v2", str(seed), *what]).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _pair(row: dict[str, Any], stratum: Stratum, kind: Transformation, made_by: str) -> Pair:
    language, task_type, dataset, output_language, _ = stratum
    return Pair(
        pair_id=pair_id(row["key"], row["output"]),
        key=row["key"],
        transformation=row["transformation"],
        axis=kind.axis,
        pool=kind.pool,
        dataset=dataset,
        task_type=task_type,
        language=language,
        output_language=output_language,
        seed=row["seed"],
        original=row["text"],
        transformed=row["output"],
        model=row["model"],
        generator_hash=row["generator_hash"],
        prompt_hash=row["prompt_hash"],
        generator_kind=made_by,
        queue=kind.queue,
    )


class Groups:
    """Reads a study's items; `supply` grows with each group that was read."""

    def __init__(self, study: Study, rubric: Rubric) -> None:
        self.study, self.supply = study, list[Supply]()
        items, self._lacking = read_items(study, rubric)
        self._known = [item for item in items if item.expected]
        self._open = [item for item in items if not item.expected]
        known_texts, self._twice = set(map(_seen, self._known)), Counter[tuple[str, str]]()
        self._items = defaultdict[str, list[SubjectItem]](list)
        lengths = defaultdict[tuple[str, str], Counter[int]](Counter)
        for item in self._open:
            if _seen(item) in known_texts:
                self._twice[item.group, item.language] += 1
            else:
                self._items[item.group].append(item)
                lengths[item.dataset, item.language][count_words(item.text)] += 1
        self._bounds = {key: (share_of(counts, 1), share_of(counts, 2)) for key, counts in lengths.items()}

    def of(self, name: str) -> list[Candidate]:
        """Return a group's items, without those whose right answers are known."""
        items, kind = self._items[name], self.study.kinds[name]
        if self.study.judging.takes_all and len(items) > self.study.sample.pairs:
            raise StudyError(
                f"{self.study.file}: sample.pairs is {self.study.sample.pairs}, but people label every wording,"
                f" and {name} has {len(items)}; set it to {len(items)} or more"
            )
        twice = {language: number for (group, language), number in self._twice.items() if group == name}
        if twice and not items:
            raise DataError(
                f"{self.study.file}: every text of {name} is also a known item; add others, or remove {name}"
            )
        if not items:
            raise DataError(
                f"{self.study.file}: {name} has no item with all fields that raters must see; remove {name}"
            )
        n_incomplete = self._lacking[name]  # their language is unknown, so they are counted with the first
        numbers = Counter(item.language for item in items)
        for language in sorted({*numbers, *twice}):
            self.supply.append(
                Supply(
                    transformation=name, language=language, ok=numbers[language], failed=n_incomplete, unanswered=0,
                    known=twice.get(language, 0),
                )
            )  # fmt: skip
            n_incomplete = 0
        return [
            Candidate(
                rank_of(self.study.sample.seed, item.key),
                self._stratum(item),
                item.key,
                functools.partial(item.pair, kind),
            )
            for item in items
        ]

    def known(self, had: Sequence[Pair]) -> list[Pair]:
        """Return the items with known answers that raters have not had, in an order drawn by the seed."""
        had_ids, seed = {pair.pair_id for pair in had}, self.study.sample.seed
        drawn = {pair.key for pair in had if pair.drawn}
        drawn_items = {_seen(item) for item in self._open if item.key in drawn}  # a file may name its answers later
        pairs = [item.pair(self.study.kinds[item.group]) for item in self._known if _seen(item) not in drawn_items]
        fresh = [pair for pair in pairs if pair.pair_id not in had_ids]
        return sorted(fresh, key=lambda pair: rank_of(seed, pair.pair_id))

    def _stratum(self, item: SubjectItem) -> tuple[str, ...]:
        words = count_words(item.text)
        third = sum(words > bound for bound in self._bounds[item.dataset, item.language])
        context = "\n".join(plain(item.fields[name]) for name in item.distinct_by)
        return item.language, item.task_type, item.dataset, context, item.output_language, str(third)


def _seen(item: SubjectItem) -> Hashable:
    """Return an item as raters see it, without case and widths of blanks, to recognise equal items."""
    texts = (unicodedata.normalize("NFKC", plain(value)).casefold().split() for value in item.fields.values())
    return item.language, item.output_language, tuple(" ".join(words) for words in texts)
