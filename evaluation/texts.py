"""The scored texts of a study, and their outputs, as far as they are in memory.

A study may have millions of texts; only one data set and the outputs of one transformation and seed are in memory.

Comparisons drop items from the original too (`same_items`): items whose outputs fail are not a random selection, so
comparing all items with the remaining ones would include that difference.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.sources import OutputSource
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.file_hashes import FactCache
from plumbline.hashes import Hashes, TextsByHash, numbered
from plumbline.identity import canonical, identity_from, prefix
from plumbline.records import Text
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.subject import ORIGINAL

PLANNED = "planned.json"
T = TypeVar("T")
MOST = 200_000  # texts kept in memory beside the current data set and outputs
Without = Mapping[str, Collection[str]]  # error types that no verdict covers, by language of the originals


@dataclass(frozen=True)
class Originals:
    """The distinct texts of a data set, column by column, and their occurrences.

    `places` has the index of each occurrence's text, `items` the number of its item.
    """

    name: str
    task: TaskType
    ids: Hashes
    texts: list[str]
    languages: list[str]
    places: NDArray[np.int64]
    items: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset) -> Originals:
        """Return the distinct texts of a data set."""
        texts: list[str] = []
        languages: list[str] = []
        items = bytearray()

        def ids() -> Iterator[str]:
            for text in dataset.texts():
                texts.append(text.text)
                languages.append(text.language)
                items.extend(hashlib.sha256(f"{text.split}\0{text.item}".encode()).digest()[:16])
                yield text.text_id

        distinct = Hashes.of(ids(), f"data set {dataset.name!r}")
        firsts, places = numbered(distinct.packed)
        texts, languages = ([column[first] for first in firsts.tolist()] for column in (texts, languages))
        _, numbers = numbered(np.frombuffer(items, "S16"))
        return cls(dataset.name, dataset.task, Hashes(distinct.packed[firsts]), texts, languages, places, numbers)

    def records(self) -> Iterator[Text]:
        """Yield the texts as records of one occurrence each."""
        record: dict[str, Any] = {"dataset": self.name, "task_type": self.task, "split": "", "item": "", "field": ""}
        for text_id, text, language in zip(self.ids, self.texts, self.languages, strict=True):
            yield Text.model_construct(**record, text_id=text_id, text=text, language=language)

    def items_of(self, ids: Collection[str]) -> int:
        """Return the number of items that have one of these texts."""
        if not ids:
            return 0
        chosen = np.fromiter((text_id in ids for text_id in self.ids), np.bool_, len(self.ids))
        return len(np.unique(self.items[chosen[self.places]]))


@dataclass(frozen=True)
class OutputRequest:
    """The key of each output of a data set's texts, and its language."""

    keys: Hashes
    languages: list[str]


class _TextCache:
    """A cache of values: the latest that have `MOST` texts in all, and the newest one however large."""

    def __init__(self) -> None:
        self._things: dict[tuple[Any, ...], tuple[int, Any]] = {}

    def get(self, key: tuple[Any, ...], make: Callable[[], T], size: Callable[[T], int], protected: Sequence[Any]) -> T:
        """Return the value of a key; before making it, evict older values, but none of `protected`."""
        entry = self._things.pop(key, None)
        if entry is None:
            for old in [key for key in self._things if key not in protected]:
                if sum(used for used, _ in self._things.values()) <= MOST:
                    break
                del self._things[old]
            value = make()
            entry = size(value), value
        self._things[key] = entry
        thing: T = entry[1]
        return thing


class Texts:
    """Data sets and outputs, read when they are needed, and cached facts about all.

    `without` has the error types that no verdict covers, by transformation.
    """

    def __init__(self, source: OutputSource, without: Mapping[str, Without], name: str = "") -> None:
        """Take a source; `name` identifies an object sent by another process."""
        self.without = without
        self.remembered = FactCache(source.study if source.remembers and not name else None, PLANNED)
        self._source, self._held, self._name = source, _TextCache(), name or uuid.uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what is in memory: another process reads for itself, once for all its units."""
        return _received, (self._source, self.without, self._name)

    def dataset(self, spec: DatasetSpec, revision: str = "") -> Dataset:
        """Return a data set of the study. Raises DataError if it no longer has this revision."""
        dataset = self._held.get((spec.name,), lambda: self._source.dataset(spec), _size, [])
        if revision not in ("", dataset.revision):
            raise DataError(f"data set {spec.name!r} was changed while it was evaluated; run the command again")
        return dataset

    def originals(self, spec: DatasetSpec) -> Originals:
        """Return a data set's distinct texts. Raises DataError as `dataset`."""
        dataset = self.dataset(spec)
        return self._held.get(
            (spec.name, ORIGINAL), lambda: Originals.of(dataset), lambda originals: len(originals.ids), [(spec.name,)]
        )

    def asked(self, spec: DatasetSpec, transformation: str, seed: int) -> OutputRequest:
        """Return the output keys and languages of a data set's distinct texts."""
        originals = self.originals(spec)

        def ask() -> OutputRequest:
            languages: list[str] = []

            def keys() -> Iterator[str]:
                for text in originals.records():
                    job = self._source.plan.job(text, transformation, seed)
                    languages.append(job.languages[-1])
                    yield job.key

            return OutputRequest(Hashes.of(keys(), f"{transformation}, seed {seed}"), languages)

        protected = [(spec.name,), (spec.name, ORIGINAL)]
        return self._held.get((spec.name, transformation, seed, "asked"), ask, lambda table: len(table.keys), protected)

    def outputs(self, spec: DatasetSpec, transformation: str, seed: int) -> Outputs:
        """Return the outputs of a data set's texts."""
        unit = spec.name, transformation, seed
        protected = [(spec.name,), (spec.name, ORIGINAL), (*unit, "asked")]
        return self._held.get(unit, lambda: self._read(spec, *unit[1:]), lambda outputs: len(outputs.texts), protected)

    def _read(self, spec: DatasetSpec, transformation: str, seed: int) -> Outputs:
        originals, without = self.originals(spec), self.without.get(transformation, {})
        request = self.asked(spec, transformation, seed)
        places, texts = list[NDArray[np.int64]](), [TextsByHash.array([])]
        failed, kept_out = set[str](), set[str]()
        for piece in self._source.outputs(transformation, seed).pieces(request.keys):
            ok_outputs: dict[int, str] = {}
            for index, (output, flags) in piece:
                if output is None:
                    failed.add(originals.ids[index])
                elif flags and not flags.isdisjoint(without.get(originals.languages[index], ())):
                    kept_out.add(originals.ids[index])
                else:
                    ok_outputs[index] = output
            places.append(np.fromiter(ok_outputs, np.int64, len(ok_outputs)))
            texts.append(TextsByHash.array(ok_outputs.values()))
        at = np.concatenate([np.empty(0, np.int64), *places])
        outputs = TextsByHash(originals.ids.packed[at], pa.concat_arrays(texts))
        return Outputs(outputs, frozenset(failed | kept_out), frozenset(kept_out))


_RECEIVED: weakref.WeakValueDictionary[str, Texts] = weakref.WeakValueDictionary()


def _received(source: OutputSource, without: Mapping[str, Without], name: str) -> Texts:
    texts = _RECEIVED.get(name)
    if texts is None:
        texts = _RECEIVED[name] = Texts(source, without, name)
    return texts


def _size(dataset: Dataset) -> int:
    """Return the number of a data set's texts in memory: none of mteb's, which stay in their files."""
    if not isinstance(dataset, TableDataset):
        return 0
    return sum(frame.size for frame in dataset.splits.values()) + len(dataset.corpus)


_PIECE = 4096  # outputs that are hashed at a time


@dataclass(frozen=True)
class Outputs:
    """Outputs by `text_id`, and ids of texts whose outputs failed.

    Outputs kept out of the sample count as failed: nobody rated their kind, so no verdict covers them.

    The items of failed outputs are left out (`Dataset.replaced` defines items), in classification's train split too.
    """

    texts: Mapping[str, str]
    failed: frozenset[str] = frozenset()
    kept_out: frozenset[str] = (
        frozenset()
    )  #: those of `failed` that are usable but not covered by a verdict (`sample.without`)

    def missing(self, texts: Collection[str]) -> str:
        """Return the number of texts (ids) with neither an output nor a failure, in one line; empty if none."""
        n_missing = sum(1 for text in texts if self.lacks(text))
        return f"no output for {n_missing} of {len(texts)} texts: run `plumbline generate` again" if n_missing else ""

    def change(self, text: Text, _cell: str) -> str | None:
        """Return the replacement of a text; None drops its item."""
        return None if text.text_id in self.failed else self.texts[text.text_id]

    def lacks(self, text: str) -> bool:
        """Return whether a text (its id) has neither an output nor a failure."""
        return not self.texts.get(text) and text not in self.failed

    def content_id(self, original: str) -> str:
        """Return the identity of the transformed data set, from that of the untouched one."""
        hashed = prefix("transformed-v1", original)
        hashed.update(b"[")
        texts = iter(self.texts if isinstance(self.texts, TextsByHash) else sorted(self.texts))
        separator = ""
        while some := list(itertools.islice(texts, _PIECE)):
            entries = (f"[{canonical(text_id)},{canonical(self.texts[text_id])}]" for text_id in some)
            hashed.update((separator + ",".join(entries)).encode())
            separator = ","
        hashed.update(b"],")
        return identity_from(hashed, [sorted(self.failed)] if self.failed else [])


def same_items(dataset: Dataset, outputs: Outputs) -> Dataset:
    """Return the untouched data set with only the items that `transformed` keeps."""
    return dataset.replaced(lambda text, cell: None if text.text_id in outputs.failed else cell)


def transformed(dataset: Dataset, outputs: Outputs) -> Dataset:
    """Return the data set with each output in its original's place.

    Raises DataError if one is missing: no original stays, because a score that rests half on originals would pass for
    the transformation's.
    """
    if any(outputs.lacks(text.text_id) for text in dataset.texts()):
        fault = outputs.missing({text.text_id for text in dataset.texts()})
        raise DataError(f"data set {dataset.name!r}: {fault}")
    return dataset.replaced(outputs.change)
