"""Batches: the pairs of a queue that one worker rates at a sitting, with their controls and repeats.

A pair is in one batch only, and a platform gives a worker a batch once, so nobody rates a pair twice. A repeat is in
the same batch as the pair that it shows again, after that pair and at least a third of the batch; a batch too short for
that has none. Pure functions: the same sample gives the same batches;
once a campaign has begun, the ledger keeps them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import Field

from annotation.human.order import drawing_of
from annotation.sampling.queues import Queue, most_repeats, queues_of
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.records import Pair, Record
from plumbline.study import Study
from plumbline.study.subject import ItemNames
from plumbline.words import count


class Batch(Record):
    """The pairs that one worker rates at a sitting, in the order of showing."""

    KEY = ("batch_id",)
    batch_id: str = Field(description="hash of its pairs")
    pool: str = Field(description="the pool of its pairs")
    language: str = Field(description="language of the originals")
    output_language: str = Field(description="language of the transformed texts")
    pilot: bool = Field(description="whether the batch is a pilot")
    pair_ids: tuple[str, ...] = Field(description="ids of its pairs, controls and repeats, in the order shown")

    @property
    def queue(self) -> Queue:
        """The queue that its pairs are of."""
        return Queue(self.pool, self.language, self.output_language)


def make_batches(
    study: Study, pairs: Sequence[Pair], controls: Sequence[Pair], existing: Collection[Batch] = (), pilot: int = 0
) -> list[Batch]:
    """The batches that are still to be offered, in order.

    `existing` are the batches so far: their pairs and controls are not used again. With `pilot` there is one batch of
    `pilot` pairs for each group of languages without a pilot (PTEB, appendix B: 20 pairs a language first), from its
    first pool with enough pairs, or else its largest pool; without `pilot`, the batches have all remaining pairs.
    Raises StudyError if no pool has enough pairs left for the pilot.
    """
    wanted, repeats = study.sample.controls, study.sample.repeats
    used = {pair_id for batch in existing for pair_id in batch.pair_ids}
    unused = {queue: _shuffled(study.sample.seed, queue_pairs, used) for queue, queue_pairs in queues_of(pairs).items()}
    spare = defaultdict[Queue, list[Pair]](list)
    for queue, queue_controls in queues_of(controls).items():
        spare[queue] = _shuffled(study.sample.seed, queue_controls, used)
    drawings = {queue: drawing_of(study, [*group, *spare[queue]]) for queue, group in unused.items()}
    # The query of each record that holds one candidate, or the page of each output of several; {} for others.
    groups = {queue: dict(drawing.groups or {}) if drawing else {} for queue, drawing in drawings.items()}
    if pilot:
        tried = {batch.queue.languages for batch in existing if batch.pilot}
        return [
            _batch(
                queue, part, _dealt(spare[queue], part, (wanted, 1, repeats), groups[queue]), groups[queue], pilot=True
            )
            for queue in _pilot_queues(unused, tried, pilot, study.called)
            for part in _split(unused[queue], pilot, groups[queue], spare[queue], repeats)[:1]
        ]
    batches = []
    for queue, queue_pairs in unused.items():
        rest = spare[queue]
        parts = _split(queue_pairs, study.sample.batch, groups[queue], rest)
        for number, part in enumerate(parts):
            part_controls = _dealt(rest, part, (wanted, len(parts) - number, repeats), groups[queue])
            rest = [control for control in rest if control not in part_controls]
            batches.append(_batch(queue, part, part_controls, groups[queue], pilot=False))
    return batches


def _shuffled(seed: int, pairs: Iterable[Pair], used: Collection[str]) -> list[Pair]:
    """Return the unused pairs in an order drawn by the seed."""
    rest = [pair for pair in pairs if pair.pair_id not in used]
    return sorted(rest, key=lambda pair: identity("batch-v1", seed, pair.pair_id))


def _pilot_queues(
    unused: dict[Queue, list[Pair]], tried: Collection[frozenset[str]], pilot: int, called: ItemNames
) -> list[Queue]:
    """Return the queue of each language group's pilot: the first with enough pairs, else the largest."""
    wanted = dict.fromkeys(
        queue.languages for queue, queue_pairs in unused.items() if queue_pairs and queue.languages not in tried
    )
    most = max((len(queue_pairs) for queue_pairs in unused.values()), default=0)
    if wanted and most < pilot:
        raise StudyError(
            f"--pilot {pilot}: no {called.judged} has more than {count(most, called.item)} left in any language; ask"
            " for fewer"
        )
    groups = [[queue for queue in unused if queue.languages == languages] for languages in wanted]
    return [max(queues, key=lambda queue: min(pilot, len(unused[queue]))) for queues in groups]


def _split(
    pairs: Sequence[Pair], size: int, groups: Mapping[str, str], controls: Sequence[Pair], repeats: int | None = None
) -> list[list[Pair]]:
    """Split pairs into as few parts of at most `size` as possible: evenly, also those that `controls` repeat.

    With `repeats`, the first part is filled instead, with that many pairs to be repeated, if there are so many.
    The records of a group in `groups` stay together, because one worker compares their candidates; a group larger than
    `size` is a part by itself.
    """
    together = _together(pairs, groups)
    of_group = max(map(len, together), default=1)  # groups of a queue are of one size
    most, repeated = max(1, size // of_group), {control.repeats for control in controls}
    again, once = ([g for g in together if (g[0].pair_id in repeated) is repeat] for repeat in (True, False))
    if repeats is None:
        number = -(-len(together) // most)
        parts = [[*again, *once][start::number] for start in range(number)]
    else:
        pages = -(-repeats // of_group)
        together = [*again[:pages], *once, *again[pages:]]
        parts = [together[start:][:most] for start in range(0, len(together), most)]
    return [[pair for group in part for pair in group] for part in parts]


def _together(pairs: Iterable[Pair], groups: Mapping[str, str]) -> list[list[Pair]]:
    """Return the pairs by group, in the order of the first of each; those without a group by themselves."""
    by_group: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_group.setdefault(groups.get(pair.pair_id, pair.pair_id), []).append(pair)
    return list(by_group.values())


def _dealt(
    controls: Sequence[Pair], part: Sequence[Pair], wanted: tuple[int, int, int], groups: Mapping[str, str]
) -> list[Pair]:
    """Return the controls of the next batch: as many of each kind as the study wants, while they last.

    `wanted` are that number, the batches still to come, and the pairs that a batch repeats. Repeats are dealt with the
    batch that has their pairs: other batches cannot use them. Those drawn for a pilot that there is not stay unused.
    """
    number, batches, repeats = wanted
    chosen, by_kind = list[Pair](), dict[tuple[str, ...], list[list[Pair]]]()
    for group in _together((control for control in controls if control.control != "repeat"), groups):
        by_kind.setdefault(tuple(sorted(control.control for control in group)), []).append(group)
    for of_kind in by_kind.values():
        chosen += [control for group in of_kind[: min(number, -(-len(of_kind) // batches))] for control in group]
    again, together = {control.repeats: control for control in controls if control.repeats}, _together(part, groups)
    repeated = [group for group in together if all(pair.pair_id in again for pair in group)]
    pages = -(-repeats // max(map(len, together), default=1))
    return chosen + [again[pair.pair_id] for group in repeated[:pages] for pair in group]


def _batch(
    queue: Queue, part: Sequence[Pair], controls: Sequence[Pair], groups: Mapping[str, str], *, pilot: bool
) -> Batch:
    again = {pair.repeats: pair.pair_id for pair in controls if pair.control == "repeat"}
    once = [pair for pair in [*part, *controls] if pair.control != "repeat"]
    ordered = _together(sorted(once, key=lambda pair: identity("order-v1", pair.pair_id)), groups)
    order = [[pair.pair_id for pair in group] for group in ordered]
    # A repeat is informative only if other pairs lie in between: repeated pairs come first, their repeats last.
    first = [group for group in order if again.keys() >= set(group)][: most_repeats(len(order))]
    rest = [group for group in order if group not in first]
    repeats = ([again[pair_id] for pair_id in group] for group in first)
    pair_ids = tuple(pair_id for group in (*first, *rest, *repeats) for pair_id in group)
    return Batch(
        batch_id=identity("crowd-batch-v1", *pair_ids)[:16],
        pool=queue.pool,
        language=queue.language,
        output_language=queue.output_language,
        pilot=pilot,
        pair_ids=pair_ids,
    )
