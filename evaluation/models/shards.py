"""Which texts of a model others are still to encode: cut into shards, each text once, whoever asks for it.

Several ask at the same time, and what one of them waits for may be in another's shard. Rows are kept as soon as a shard
comes back, so that what stops a run, or what ends who encodes, costs the shards that were in work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluation.models.embeddings import Embeddings, EmbeddingStore, RowsLost, keys_of
from evaluation.models.encoder import longest_first

LARGEST = 2048  # texts of a shard: what has to be encoded again after a death
READS = 3  # of rows that do not match their checksums and were encoded again
PARTS = 2  # of what is left, for each who encodes: shards become smaller, so that all end at about the same time


@dataclass(eq=False)
class TextQueue:
    """Texts, each once, that somebody waits for, in the order in which the rows are wanted."""

    texts: Sequence[str]
    prompt: str
    role: str
    keys: list[bytes] = field(init=False)
    missing: set[bytes] = field(init=False, default_factory=set)
    reads: int = 0  # that found rows not as they were written

    def __post_init__(self) -> None:
        self.keys = keys_of(self.texts, self.prompt, self.role)


@dataclass(eq=False)
class TextShard:
    """Texts that are encoded in one go. `tries` counts who died or failed over them, `reason` is of who failed last."""

    texts: list[str]
    keys: list[bytes]
    prompt: str
    role: str
    tries: int = 0
    reason: str = ""


class Shards:
    """A model's texts between those who ask and those who encode, with the store of what came back.

    `batch` is how many texts are given to the model at a time: shards hold whole batches, which are then those of an
    encoder that has all texts. What is asked waits while the store's limit leaves no room beside what was asked before.
    """

    def __init__(self, store: EmbeddingStore, batch: int) -> None:
        self._store, self._batch = store, batch
        self._waiting: deque[TextQueue] = deque()
        self._open: list[TextQueue] = []
        self._texts: deque[tuple[TextQueue, list[tuple[str, bytes]]]] = deque()  # to be cut
        self._again: deque[TextShard] = deque()
        self._pending: set[bytes] = set()  # keys in `_texts`, in `_again` and with those who encode
        self.encoded = 0
        """Texts that came back."""

    @property
    def fresh(self) -> bool:
        """Whether nothing was ever encoded."""
        return self._store.width is None

    @property
    def unassigned(self) -> int:
        """How many shards could be made of the texts that no worker has."""
        return len(self._again) + -(-self._left // self._batch)

    def ask(self, texts: TextQueue) -> None:
        """Have texts encoded. Raises StudyError for more than the store's limit lets stand."""
        self._waiting.append(texts)
        self._admit()

    def next(self, workers: int) -> TextShard | None:
        """What to encode next, where so many workers encode; None where there is nothing."""
        if self._again:
            return self._again.popleft()
        if not self._texts:
            return None
        batches = -(-self._left // (PARTS * max(1, workers) * self._batch))
        size = max(1, min(batches, LARGEST // self._batch)) * self._batch
        queue, pairs = self._texts[0]
        some, pairs[:] = pairs[:size], pairs[size:]
        if not pairs:
            self._texts.popleft()
        return TextShard([text for text, _ in some], [key for _, key in some], queue.prompt, queue.role)

    def add(self, shard: TextShard, rows: Embeddings) -> None:
        """Keep what came back. Raises DataError for rows of another length, StudyError as `ask`."""
        if self.fresh:
            self._room(rows.shape[1])
        self._store.add(shard.keys, rows)
        self.encoded += len(rows)
        self._pending.difference_update(shard.keys)
        for queue in self._open:
            queue.missing.difference_update(shard.keys)
        self._admit()

    def put_back(self, shard: TextShard) -> None:
        """Have a shard encoded by another."""
        self._again.append(shard)

    def done(self) -> Iterator[tuple[TextQueue, Embeddings]]:
        """What is answered now, with its rows; what is not as it was written is encoded again.

        Raises RowsLost for rows that never are.
        """
        while ready := [queue for queue in self._open if not queue.missing]:
            for queue in ready:
                rows = self._verified(queue)
                if rows is not None:
                    self._open.remove(queue)
                    yield queue, rows
            self._admit()

    def _verified(self, texts: TextQueue) -> Embeddings | None:
        """The rows; None where some have to be encoded again."""
        if texts.missing:  # what was read before it has had the store begin anew
            return None
        try:
            return self._store.rows(texts.keys)
        except RowsLost:
            texts.reads += 1
            if texts.reads >= READS:
                raise
        self._count(texts)
        if self._store.width is not None:
            self._room(self._store.width)
        return None

    def drop(self) -> None:
        """Forget what is asked: the model has failed."""
        self._waiting.clear()
        self._open.clear()
        self._texts.clear()
        self._again.clear()
        self._pending.clear()

    def close(self) -> None:
        """Let go of the store; what it holds stays."""
        self._store.close()

    @property
    def _left(self) -> int:
        """Texts that are to be cut."""
        return sum(len(pairs) for _, pairs in self._texts)

    def _admit(self) -> None:
        """Take in what fits beside what is open; the first alone, as long as the rows' length is not known."""
        while self._waiting:
            width = self._store.width
            if self._open:
                rows = sum(len(queue.keys) for queue in (*self._open, self._waiting[0]))
                if width is None or not self._store.fits(rows, width):
                    return
            self._open.append(self._waiting.popleft())
            self._count(self._open[-1])
            if width is not None:
                self._room(width)

    def _count(self, texts: TextQueue) -> None:
        """See what of it is missing, and have encoded what nobody encodes yet."""
        texts.missing = self._store.missing(texts.keys)
        new = texts.missing - self._pending
        wanted = {text: key for text, key in zip(texts.texts, texts.keys, strict=True) if key in new}
        self._pending.update(wanted.values())
        if wanted:
            self._texts.append((texts, [(text, wanted[text]) for text in longest_first(wanted)]))

    def _room(self, width: int) -> None:
        """Make room for all that is missing; where the store begins anew for it, what was there is missing too."""
        if self._missing() and self._store.make_room(self._missing(), width):
            for queue in self._open:
                self._count(queue)
            self._store.make_room(self._missing(), width)

    def _missing(self) -> int:
        return len(set[bytes]().union(*(queue.missing for queue in self._open)))
