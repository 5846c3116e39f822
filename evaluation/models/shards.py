"""A model's texts left to encode, cut into shards, each text once for all requests.

Several scoring workers request texts at the same time, and one may wait for texts in another's shard. Rows are stored
as soon as a shard is encoded, so that a stopped run or a dead worker costs only the shards in work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluation.models.embeddings import Embeddings, EmbeddingStore, RowsLost, keys_of
from evaluation.models.encoder import longest_first

LARGEST = 2048  # most texts of a shard, which are encoded again after a death
READS = 3  # reads of rows whose checksums do not match and that were encoded again
PARTS = 2  # shards of the rest for each worker: shards shrink, so that all workers end at about the same time


@dataclass(eq=False)
class TextQueue:
    """Requested texts, each once, in the order of the wanted rows."""

    texts: Sequence[str]
    prompt: str
    role: str
    keys: list[bytes] = field(init=False)
    missing: set[bytes] = field(init=False, default_factory=set)
    reads: int = 0  # reads that found damaged rows

    def __post_init__(self) -> None:
        self.keys = keys_of(self.texts, self.prompt, self.role)


@dataclass(eq=False)
class TextShard:
    """Texts to encode in one go. `tries` counts workers that died or failed on them, `reason` is the last failure's."""

    texts: list[str]
    keys: list[bytes]
    prompt: str
    role: str
    tries: int = 0
    reason: str = ""


class Shards:
    """A model's texts between those who request and those who encode, with the store of embeddings.

    `batch` is the model's number of texts at a time: shards have whole batches, equal to those of one encoder with all
    texts. A request waits while the store's limit leaves no room beside earlier ones.
    """

    def __init__(self, store: EmbeddingStore, batch: int) -> None:
        self._store, self._batch = store, batch
        self._waiting: deque[TextQueue] = deque()
        self._open: list[TextQueue] = []
        self._texts: deque[tuple[TextQueue, list[tuple[str, bytes]]]] = deque()  # not cut into shards yet
        self._again: deque[TextShard] = deque()
        self._pending: set[bytes] = set()  # keys in `_texts`, in `_again` and with workers
        self.encoded = 0
        """Texts encoded."""

    @property
    def fresh(self) -> bool:
        """True if nothing was ever encoded."""
        return self._store.width is None

    @property
    def unassigned(self) -> int:
        """The number of shards in the texts that no worker has."""
        return len(self._again) + -(-self._left // self._batch)

    def ask(self, texts: TextQueue) -> None:
        """Request texts. Raises StudyError for more than the store's limit allows."""
        self._waiting.append(texts)
        self._admit()

    def next(self, workers: int) -> TextShard | None:
        """Return the next shard for one of this many workers; None if there is none."""
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
        """Store an encoded shard. Raises DataError for rows of another length, StudyError as `ask`."""
        if self.fresh:
            self._room(rows.shape[1])
        self._store.add(shard.keys, rows)
        self.encoded += len(rows)
        self._pending.difference_update(shard.keys)
        for queue in self._open:
            queue.missing.difference_update(shard.keys)
        self._admit()

    def put_back(self, shard: TextShard) -> None:
        """Give a shard to another worker."""
        self._again.append(shard)

    def done(self) -> Iterator[tuple[TextQueue, Embeddings]]:
        """Yield the requests that are complete, with their rows; damaged rows are encoded again.

        Raises RowsLost for rows that stay damaged.
        """
        while ready := [queue for queue in self._open if not queue.missing]:
            for queue in ready:
                rows = self._verified(queue)
                if rows is not None:
                    self._open.remove(queue)
                    yield queue, rows
            self._admit()

    def _verified(self, texts: TextQueue) -> Embeddings | None:
        """Return the rows; None if some must be encoded again."""
        if texts.missing:  # an earlier read emptied the store
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
        """Drop all requests: the model has failed."""
        self._waiting.clear()
        self._open.clear()
        self._texts.clear()
        self._again.clear()
        self._pending.clear()

    def close(self) -> None:
        """Close the store, which stays on disk."""
        self._store.close()

    @property
    def _left(self) -> int:
        """The number of texts not cut into shards yet."""
        return sum(len(pairs) for _, pairs in self._texts)

    def _admit(self) -> None:
        """Admit requests that fit beside the open ones; only the first while the rows' length is unknown."""
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
        """Find the missing texts of a request, and queue those that nobody encodes yet."""
        texts.missing = self._store.missing(texts.keys)
        new = texts.missing - self._pending
        wanted = {text: key for text, key in zip(texts.texts, texts.keys, strict=True) if key in new}
        self._pending.update(wanted.values())
        if wanted:
            self._texts.append((texts, [(text, wanted[text]) for text in longest_first(wanted)]))

    def _room(self, width: int) -> None:
        """Make room for all missing rows; if that empties the store, its rows are missing too."""
        if self._missing() and self._store.make_room(self._missing(), width):
            for queue in self._open:
                self._count(queue)
            self._store.make_room(self._missing(), width)

    def _missing(self) -> int:
        return len(set[bytes]().union(*(queue.missing for queue in self._open)))
