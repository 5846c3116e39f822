"""Pairs that check their raters: controls, whose answers are known beforehand (PTEB, appendix B), and repeats.

All are made without a model. An easy positive is an original with the same text all but unchanged; an easy negative is
an original with the output of another text that shares few words with it, or none. The rubric gives the right answers
(`expected`); a control without one is not made: a translation has no positive. For other subjects than pairs nothing is
made: an item whose file names its right answers is a control (`known`). A repeat is a pair of the sample once more, for
the same rater.

They are in `controls.parquet` and not in `pairs.parquet`, so that no verdict can count them. Raters see them in the
same datasets, with ids and metadata like all others.

Where raters see all outputs of an original on one page (`sample.together`), pages of controls and repeats have as many
outputs as all others, so that no number tells them: the easy positive and easy negatives of one original, or a page of
the sample once more. A control never stands among systems' outputs, whose ratings it would change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from annotation.campaign.rubric import Rubric
from annotation.human.order import page_of
from annotation.sampling.candidates import overlap, words_of
from annotation.sampling.queues import SCOPES, Queue, most_repeats, queues_of
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import SampleSpec
from plumbline.study.subject import Subject
from plumbline.words import count

UNRELATED = 0.1  # the most that an original may overlap with a negative's other text (Jaccard index of their words)
DONORS = 500  # texts of a queue that are searched for an unrelated one
ControlKind = Literal["positive", "negative"]  # of those that are made
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
    together: Callable[[str], int]  #: by pool: how many outputs of an original raters see on a page

    @classmethod
    def of(cls, study: Study, rubric: Rubric) -> ControlDesign:
        """Return a study's design."""
        return cls(
            study.sample, study.acceptance.scope, rubric, study.judging, study.crowd is not None, study.shown_together
        )

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
        return self.sample.controls * len(self._pages(queue.pool)) * self.batches(pairs, before)

    def beside(self, pool: str) -> int:
        """Return the number of controls and repeats in a batch of a pool, if texts suffice."""
        n_known = self.sample.controls if self.judging.known_questions else 0
        n_made = self.sample.controls * sum(map(len, self._pages(pool))) if self.judging.transforms else 0
        return n_known + n_made + self._repeated(pool) * self.together(pool)

    def lacking(self, pairs: Iterable[Pair], controls: Sequence[Pair]) -> str:
        """Say how many controls and repeats a sample has, if these are fewer than the study asks for; else empty."""
        wanted = sum(
            self.beside(queue.pool) * self.batches(len(queue_pairs)) for queue, queue_pairs in queues_of(pairs).items()
        )
        if len(controls) >= wanted:
            return ""
        have = f"{len(controls):,} of the {count(wanted, 'control or repeat', 'controls and repeats')}"
        return f"{have} that the study asks for: the texts do not suffice for more"

    def unchecked(self, pools: Iterable[str]) -> list[str]:
        """Return the pools without right answers, if the study wants controls."""
        wanted = self.judging.transforms and self.sample.controls
        return [pool for pool in dict.fromkeys(pools) if wanted and not self._pages(pool)]

    def _pages(self, pool: str) -> list[list[ControlKind]]:
        """Return the kinds of controls with answers in the rubric, those of one original together."""
        kinds: tuple[ControlKind, ...] = ("positive", "negative")
        usable, together = [kind for kind in kinds if self.rubric.expected(pool, kind)], self.together(pool)
        if together == 1:
            return [[kind] for kind in usable]
        negatives: list[ControlKind] = ["negative"] * together
        return [[*usable[:-1], *negatives][:together]] if "negative" in usable else []

    def _repeated(self, pool: str) -> int:
        """Return how many pages of a batch are shown twice."""
        return -(-self.sample.repeats // self.together(pool))

    def make(
        self,
        sample: Sequence[Pair],
        spares: Sequence[Pair],
        known_items: Sequence[Pair] = (),
        blocks: Mapping[str, int] | None = None,
        existing: Sequence[Pair] = (),
    ) -> list[Pair]:
        """Return controls and repeats for every batch of every queue; fewer if texts do not suffice.

        A queue that has `existing` pairs gets what these add, and no control that is among the existing ones.

        Controls are made of `spares`, pairs that were not drawn, and where these do not reach of the sample's own.
        Items of a subject whose right answers are known (`known_items`) are controls as they are. No more pairs are
        repeated than can lie a third of the queue from their repeats. With `blocks`, the block of each pair that may be
        offered, these alone count, repeats are spread evenly over their blocks, and the third is one of the block.
        """
        controls: list[Pair] = []
        before, ids = Counter(Queue.of(pair) for pair in existing if pair.drawn), {pair.pair_id for pair in existing}
        unused, right = queues_of(spares), queues_of(known_items)
        offered = sample if blocks is None else [pair for pair in sample if pair.pair_id in blocks]
        for queue, pairs in queues_of(offered).items():
            batches = self.batches(len(pairs), before[queue])
            shuffled = sorted(pairs, key=lambda pair: identity("control-v1", self.sample.seed, pair.pair_id))
            repeated, together = self._repeated(queue.pool) * batches, self.together(queue.pool)
            sources = (page[0] for page in pages_of([*unused.get(queue, []), *shuffled], together))
            donors = [Donor.of(pair) for pair in [*unused.get(queue, []), *shuffled][:DONORS]]
            of_queue: list[Pair] = []
            for kinds in self._pages(queue.pool):
                of_queue += _take(self.sample.controls * batches, kinds, sources, donors, ids)
            of_queue += right.get(queue, [])[: self.sample.controls * batches]
            if blocks is None:
                pages = pages_of(shuffled, together)
                repeated = min(repeated, most_repeats(len(pages) + len(of_queue) // together))
                again = [pair for page in pages[-repeated:] for pair in page] if repeated else []
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


def pages_of(pairs: Iterable[Pair], together: int) -> list[list[Pair]]:
    """Return the pairs page by page, in the order of the first of each; `together` is the number of a full page."""
    pages: dict[str, list[Pair]] = {}
    for pair in pairs:
        pages.setdefault(page_of(pair) if together > 1 else pair.pair_id, []).append(pair)
    return list(pages.values())


def _take(
    number: int, kinds: Sequence[ControlKind], sources: Iterator[Pair], donors: Sequence[Donor], ids: Collection[str]
) -> Iterator[Pair]:
    """Yield controls of these kinds, each time of one source, from `number` sources, with none of the `ids`."""
    while number:
        source = next(sources, None)
        if source is None:
            return
        controls = _negatives(source, donors, kinds.count("negative"))
        if "positive" in kinds:
            changed = all_but_unchanged(source.original, source.language)
            controls.insert(0, _control(source, "positive", source.key, changed))
        if len(controls) == len(kinds) and not any(control.pair_id in ids for control in controls):
            number -= 1
            yield from controls


def _negatives(source: Pair, donors: Sequence[Donor], number: int) -> list[Pair]:
    """Pair the original with outputs of different originals that share least with it; fewer if most share more."""
    if not number:
        return []
    words, chosen = words_of(source.original), dict[str, Pair]()
    shared = [max(overlap(words, donor_words) for donor_words in donor.words) for donor in donors]
    for at in sorted((at for at, share in enumerate(shared) if share <= UNRELATED), key=shared.__getitem__):
        chosen.setdefault(donors[at].pair.original, donors[at].pair)
    return [_control(source, "negative", pair.key, pair.transformed) for pair in [*chosen.values()][:number]]


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
