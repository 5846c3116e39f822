"""Raters' work: queues of pairs, and the blocks in which these are offered.

A queue has the pairs of one pool in one pair of languages, and is a dataset of Argilla's.

Groups of texts share a queue (`Pair.queue`): raters must not know to which group a text belongs.

Argilla lets people into workspaces, not into datasets, so those whose texts the same people can read share a workspace.
Language codes are in capitals there: a study's name has none, so no two studies' names can run into each other.

The order in which verdicts take their pairs is random and fixed by the sample's seed, so that each block is a random
sample over all strata of a verdict. Systems that share a queue take the same originals in each block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from annotation.questions.entries import ENGLISH
from plumbline.identity import identity, identity_from, prefix
from plumbline.records import Pair
from plumbline.study import Study


@dataclass(frozen=True, order=True)
class Queue:
    """A pool of transformations with the languages of its originals and of its transformed texts (codes)."""

    pool: str
    language: str
    output_language: str

    @classmethod
    def of(cls, pair: Pair) -> Queue:
        """Return a pair's queue."""
        return cls(pair.queue or pair.pool, pair.language, pair.output_language)

    @property
    def languages(self) -> frozenset[str]:
        """The languages that its raters must read."""
        return frozenset({self.language, self.output_language})

    @property
    def rarer(self) -> str:
        """The language that fewer people read.

        That is the output language, since texts are translated from English more than into it; where it is English,
        it is the original's.
        """
        return self.language if self.output_language == ENGLISH else self.output_language

    def dataset(self, study_name: str) -> str:
        """Return its dataset's name in Argilla: `demo-paraphrasing-EN`, `demo-translation-EN-DE`."""
        codes = dict.fromkeys((self.language.upper(), self.output_language.upper()))
        return "-".join([study_name, self.pool, *codes])

    def workspace(self, study_name: str) -> str:
        """The workspace of its raters: `demo-EN`, `demo-DE-EN`."""
        return workspace_name(study_name, self.languages)


def workspace_name(study_name: str, languages: Iterable[str]) -> str:
    """Return the name of the workspace for raters of these languages."""
    return "-".join([study_name, *(code.upper() for code in sorted(languages))])


def frames_by_queue(pairs: pd.DataFrame) -> Iterator[tuple[Queue, pd.DataFrame]]:
    """Rows of `Pair` by queue."""
    queue, pool = pairs["queue"].astype(str), pairs["pool"].astype(str)
    names = queue.where(queue != "", pool)
    for key, rows in pairs.groupby([names, "language", "output_language"], observed=True, sort=False):
        yield Queue(*map(str, key)), rows


def queues_of(pairs: Iterable[Pair]) -> dict[Queue, list[Pair]]:
    """Pairs by queue, in their order."""
    queues = dict[tuple[str, ...], list[Pair]]()
    for pair in pairs:
        queues.setdefault((pair.queue or pair.pool, pair.language, pair.output_language), []).append(pair)
    return {Queue.of(of_queue[0]): of_queue for of_queue in queues.values()}


def most_repeats(once: int) -> int:
    """Return how many of so many pairs can be shown twice with at least a third of all that is shown in between.

    Where the pairs that come twice are shown first and their repeats last, `once - 1` lie in between.
    """
    return max(min(once, 2 * once - 3), 0)


# What is judged apart, by the rule's scope; each has the key of the one before it.
SCOPES = {"transformation": ["pool"], "language": ["pool", "language"], "task": ["pool", "language", "task_type"]}


def in_order(
    pair_ids: Iterable[str],
    seed: int,
    waves: Mapping[str, int] | None = None,
    originals: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The pairs in the sample's own random order: by a hash of its seed and the pair; answers play no part.

    A later wave (`waves`, by pair; all are of the first without) comes after the earlier ones: pairs that were looked
    at stay at the beginning of the sequence. Outputs of one original by systems that share a queue (`originals`, by
    pair) have the same place, so that after each block all of these systems have the same originals.
    """
    start, wave_of = prefix("sequence-v1", seed), waves or {}
    turns = {pair_id: identity_from(start, originals.get(pair_id, pair_id)) for pair_id in pair_ids}
    return sorted(turns, key=lambda pair_id: (wave_of.get(pair_id, 1), turns[pair_id], pair_id))


def original_shared(pair: Pair) -> str:
    """Return what a pair has in common with those of other systems in its queue; its own id if it is in no such queue.

    The sample has each original of such a queue with the outputs of all its systems, for each seed.
    """
    is_of_system = pair.queue and not pair.fields
    return f"{pair.language} {pair.seed}: {pair.original}" if is_of_system else pair.pair_id


def ends_of(blocks: Sequence[int], pairs: int) -> tuple[int, ...]:
    """Return the pairs after each block of a verdict with so many pairs; the last block ends with them.

    >>> ends_of((20, 40, 60), 50), ends_of((20, 40, 60), 200)
    ((20, 40, 50), (20, 40, 60))
    """
    return (*(end for end in blocks[:-1] if end < pairs), min(pairs, blocks[-1])) if pairs else ()


def block_numbers(study: Study, pairs: Sequence[Pair], controls: Sequence[Pair] = ()) -> dict[str, int]:
    """Return the block, from 0, of each pair, control and repeat that has one.

    Args:
        study: has `raters.blocks`, the scope of verdicts, and the seed.
        pairs: the whole sample; those of a verdict beyond its last block are in none.
        controls: its controls and repeats. A repeat is offered with its pair; of each kind and queue controls are dealt
            out over the queue's blocks by the pairs that these have, from the first block on: it may be the last.
    """
    names, groups = SCOPES[study.acceptance.scope], dict[tuple[str, ...], list[str]]()
    originals = {pair.pair_id: original_shared(pair) for pair in pairs}
    for pair in pairs:
        groups.setdefault(tuple(getattr(pair, name) for name in names), []).append(pair.pair_id)
    numbers = dict[str, int]()
    for pair_ids in groups.values():
        start, order = 0, in_order(pair_ids, study.sample.seed, None, originals)
        for number, end in enumerate(ends_of(study.raters.blocks, len(order))):
            numbers |= dict.fromkeys(order[start:end], number)
            start = end
    of_queue = {
        queue: sorted(numbers[pair.pair_id] for pair in queue_pairs if pair.pair_id in numbers)
        for queue, queue_pairs in queues_of(pairs).items()
    }
    kinds = dict[tuple[Queue, str], list[str]]()
    for control in controls:
        if control.control != "repeat":
            kinds.setdefault((Queue.of(control), control.control), []).append(control.pair_id)
    for (queue, _), control_ids in kinds.items():
        shuffled = sorted(control_ids, key=lambda pair_id: identity("block-v1", study.sample.seed, pair_id))
        if blocks := of_queue.get(queue):  # spread evenly over those of the queue's pairs in their order
            numbers |= {i: blocks[n * len(blocks) // len(shuffled)] for n, i in enumerate(shuffled)}
    repeats = {control.pair_id: control.repeats for control in controls if control.control == "repeat"}
    return numbers | {again: numbers[pair_id] for again, pair_id in repeats.items() if pair_id in numbers}
