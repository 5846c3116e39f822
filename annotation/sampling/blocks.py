"""In which order verdicts take their pairs, and which block each pair, control and repeat is offered in.

The order is random and fixed by the sample's seed, so that each block is a random sample over all strata of a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from annotation.sampling.queues import Queue, queues_of
from plumbline.identity import identity, identity_from, prefix
from plumbline.records import Pair
from plumbline.study import Study

# What is judged apart, by the rule's scope; each has the key of the one before it.
SCOPES = {"transformation": ["pool"], "language": ["pool", "language"], "task": ["pool", "language", "task_type"]}


def in_order(pair_ids: Iterable[str], seed: int, waves: Mapping[str, int] | None = None) -> list[str]:
    """The pairs in the sample's own random order: by a hash of its seed and of the pair, in which no answer is.

    A later wave (`waves`, by pair; all are of the first without) stands behind the earlier ones: what has been looked
    at stays the beginning of the sequence.
    """
    start, wave_of = prefix("sequence-v1", seed), waves or {}
    return sorted(pair_ids, key=lambda pair_id: (wave_of.get(pair_id, 1), identity_from(start, pair_id)))


def ends_of(blocks: Sequence[int], pairs: int) -> tuple[int, ...]:
    """The pairs after each block of a verdict that has so many: the last block ends where its pairs do.

    >>> ends_of((20, 40, 60), 50), ends_of((20, 40, 60), 200)
    ((20, 40, 50), (20, 40, 60))
    """
    return (*(end for end in blocks if end < pairs), min(pairs, blocks[-1])) if pairs else ()


def block_numbers(study: Study, pairs: Sequence[Pair], controls: Sequence[Pair] = ()) -> dict[str, int]:
    """The block, from 0, of each pair, control and repeat; no entry where it is in none.

    Args:
        study: has `raters.blocks`, the scope of verdicts, and the seed.
        pairs: the whole sample; those of a verdict beyond its last block are in none.
        controls: its controls and repeats. A repeat is offered with its pair; of each kind and queue controls are dealt
            out over the queue's blocks by the pairs that these have.
    """
    names, groups = SCOPES[study.acceptance.scope], dict[tuple[str, ...], list[str]]()
    for pair in pairs:
        groups.setdefault(tuple(getattr(pair, name) for name in names), []).append(pair.pair_id)
    numbers = dict[str, int]()
    for pair_ids in groups.values():
        start, order = 0, in_order(pair_ids, study.sample.seed)
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
    for (queue, kind), control_ids in kinds.items():
        shuffled = sorted(control_ids, key=lambda pair_id: identity("block-v1", study.sample.seed, pair_id))
        numbers |= _dealt(shuffled, of_queue.get(queue, []), 0.75 if kind == "negative" else 0.25)
    repeats = {control.pair_id: control.repeats for control in controls if control.control == "repeat"}
    return numbers | {again: numbers[pair_id] for again, pair_id in repeats.items() if pair_id in numbers}


def _dealt(pair_ids: Sequence[str], blocks: Sequence[int], offset: float) -> dict[str, int]:
    """The block of each of these, evenly spread over the blocks of a queue's pairs in their order.

    `offset` is where in its share each stands, from 0 to 1: kinds with different ones do not fall together.
    """
    if not blocks:
        return {}
    places = [int((index + offset) * len(blocks) / len(pair_ids)) for index in range(len(pair_ids))]
    return {pair_id: blocks[position] for pair_id, position in zip(pair_ids, places, strict=True)}
