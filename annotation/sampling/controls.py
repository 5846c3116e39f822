"""Pairs that check their raters: controls, whose answers are known beforehand (PTEB, appendix B), and repeats.

All are made without a model. An easy positive is an original with the same text all but unchanged; an easy negative is
an original with the output of another text that shares few words with it, or none. The rubric gives the right answers
(`expected`); a control without one is not made: a translation has no positive. For other subjects than pairs nothing is
made: an item whose file names its right answers is a control (`known`). A repeat is a pair of the sample once more, for
the same rater.

They are in `controls.parquet` and not in `pairs.parquet`, so that no verdict can count them. Raters see them in the
same datasets, with ids and metadata like all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from annotation.campaign.rubric import Rubric
from annotation.sampling.candidates import overlap, words_of
from annotation.sampling.queues import SCOPES, Queue, most_repeats, queues_of
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import SampleSpec
from plumbline.study.subject import Subject

UNRELATED = 0.1  # the most that an original may overlap with a negative's other text (Jaccard index of their words)
DONORS = 500  # texts of a queue that are searched for an unrelated one
_STOPS = {".", "。", "।", "۔"}
_NO_SPACES = ("zh", "ja")


@dataclass(frozen=True)
class Donor:
    """A pair that may give the other text of a negative, with the words of both of its texts."""

    pair: Pair
    words: tuple[frozenset[str], frozenset[str]]

    @classmethod
    def of(cls, pair: Pair) -> Donor:
        """Return a pair as a donor."""
        return cls(pair, (words_of(pair.original), words_of(pair.transformed)))


@dataclass(frozen=True)
class ControlDesign:
    """The number of controls and repeats, by kind."""

    sample: SampleSpec
    scope: str  #: of verdicts, whose blocks raters are offered
    rubric: Rubric
    judging: Subject
    crowd: bool  #: whether a crowd rates, which does a batch more, before the others

    @classmethod
    def of(cls, study: Study, rubric: Rubric) -> ControlDesign:
        """Return a study's design."""
        return cls(study.sample, study.acceptance.scope, rubric, study.judging, study.crowd is not None)

    def batches(self, pairs: int, before: int = 0) -> int:
        """Return the number of batches for so many pairs of a queue; a partial batch counts as one.

        Pairs that come to those `before` fill up the last batch, but a crowd's are batches of their own.
        """
        whole = -(-(before + pairs) // self.sample.batch) - -(-before // self.sample.batch)
        if self.crowd:
            return max(whole, -(-pairs // self.sample.batch)) if before else whole + 1  # the pilot
        return whole

    def spares(self, queue: Queue, pairs: int, before: int = 0) -> int:
        """Return how many originals that are not in the sample the controls of a queue with so many pairs take."""
        return self._of_rubric(queue.pool) * self.batches(pairs, before)

    def beside(self, pool: str) -> int:
        """Return the number of controls and repeats in a batch of a pool, if texts suffice."""
        n_known = self.sample.controls if self.judging.known_questions else 0
        n_made = self._of_rubric(pool) if self.judging.transforms else 0
        return n_known + n_made + self.sample.repeats

    def unchecked(self, pools: Iterable[str]) -> list[str]:
        """Return the pools without right answers, if the study wants controls."""
        wanted = self.judging.transforms and any(number for _, number in self._kinds())
        return [pool for pool in dict.fromkeys(pools) if wanted and not self._of_rubric(pool)]

    def _of_rubric(self, pool: str) -> int:
        """Return the number of a batch's controls with answers in the rubric."""
        return sum(number for kind, number in self._kinds() if self.rubric.expected(pool, kind))

    def _kinds(self) -> list[tuple[Literal["positive", "negative"], int]]:
        return [("positive", self.sample.controls), ("negative", self.sample.controls)]

    def make(
        self,
        sample: Sequence[Pair],
        spares: Sequence[Pair],
        known_items: Sequence[Pair] = (),
        blocks: Mapping[str, int] | None = None,
        before: Mapping[Queue, int] | None = None,
    ) -> list[Pair]:
        """Return controls and repeats for every batch of every queue; fewer if texts do not suffice.

        A queue that has pairs `before` these gets what these add.

        Controls are made of `spares`, pairs that were not drawn, and where these do not reach of the sample's own.
        Items of a subject whose right answers are known (`known_items`) are controls as they are. No more pairs are
        repeated than can lie a third of the queue from their repeats. With `blocks`, the block of each pair that may be
        offered, these alone count, repeats are spread evenly over their blocks, and the third is one of the block.
        """
        controls: list[Pair] = []
        unused, right = queues_of(spares), queues_of(known_items)
        offered = sample if blocks is None else [pair for pair in sample if pair.pair_id in blocks]
        for queue, pairs in queues_of(offered).items():
            batches = self.batches(len(pairs), (before or {}).get(queue, 0))
            shuffled = sorted(pairs, key=lambda pair: identity("control-v1", self.sample.seed, pair.pair_id))
            sources = iter([*unused.get(queue, []), *shuffled])
            donors = [Donor.of(pair) for pair in [*unused.get(queue, []), *shuffled][:DONORS]]
            of_queue: list[Pair] = []
            for kind, number in self._kinds():
                if self.rubric.expected(queue.pool, kind):
                    of_queue += _take(number * batches, kind, sources, donors)
            of_queue += right.get(queue, [])[: self.sample.controls * batches]
            repeated = self.sample.repeats * batches
            if blocks is None:
                repeated = min(repeated, most_repeats(len(pairs) + len(of_queue)))
                again = shuffled[-repeated:] if repeated else []
            else:
                again = self._of_blocks(repeated, shuffled, blocks)
            controls += of_queue
            for pair in again:
                identified = {"pair_id": identity("repeat-v2", pair.key), "control": "repeat", "repeats": pair.pair_id}
                controls.append(pair.model_copy(update=identified))
        return controls

    def _of_blocks(self, number: int, pairs: Sequence[Pair], blocks: Mapping[str, int]) -> list[Pair]:
        """Return so many pairs, spread over the blocks, without those too many for their verdict's block."""
        ordered, number = sorted(pairs, key=lambda pair: blocks[pair.pair_id]), min(number, len(pairs))
        again = [ordered[int((index + 0.5) * len(ordered) / number)] for index in range(number)]
        part = {
            pair.pair_id: (blocks[pair.pair_id], *(getattr(pair, name) for name in SCOPES[self.scope]))
            for pair in pairs
        }
        sizes, repeated = Counter(part.values()), defaultdict[tuple[object, ...], list[Pair]](list)
        for pair in again:
            repeated[part[pair.pair_id]].append(pair)
        return [pair for key, of_part in repeated.items() for pair in of_part[: most_repeats(sizes[key])]]


def _take(
    number: int, kind: Literal["positive", "negative"], sources: Iterator[Pair], donors: Sequence[Donor]
) -> Iterator[Pair]:
    """Yield `number` controls of a kind, each from a different source."""
    while number:
        source = next(sources, None)
        if source is None:
            return
        if kind == "positive":
            changed = all_but_unchanged(source.original, source.language)
            control: Pair | None = _control(source, kind, source.key, changed)
        else:
            control = _negative(source, donors)
        if control is not None:
            number -= 1
            yield control


def _negative(source: Pair, donors: Sequence[Donor]) -> Pair | None:
    """Pair the original with the output of the donor that shares least with it; None if all share too much."""
    words = words_of(source.original)
    shared = [max(overlap(words, donor_words) for donor_words in donor.words) for donor in donors]
    if not shared or min(shared) > UNRELATED:
        return None
    donor = donors[shared.index(min(shared))].pair
    return _control(source, "negative", donor.key, donor.transformed)


def _control(source: Pair, kind: str, key: str, transformed: str) -> Pair:
    fields = {"pair_id": identity("control-v2", kind, source.key, transformed), "key": key}
    return source.model_copy(update={**fields, "control": kind, "transformed": transformed})


def all_but_unchanged(text: str, language: str) -> str:
    """The text with its full stop taken away, or with one where no mark ends it.

    With any other mark at its end its first letter is in the other case; where letters have no case, the mark stands
    twice.
    """
    first, last = text[0], text[-1]
    if last in _STOPS:
        return text[:-1]
    if last.isalnum():
        return text + ("。" if language in _NO_SPACES else ".")
    return first.swapcase() + text[1:] if first.swapcase() != first else text + last
