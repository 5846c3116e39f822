"""Where a study's data sets and outputs are, read when they are asked for and not before."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evaluation import gate
from generation.datasets.dataset import Dataset
from generation.datasets.loading import load_dataset
from generation.jobs import Job, Plan
from generation.unit import COMMAND as GENERATE
from generation.unit import refuse_other_outputs
from plumbline.errors import DataError
from plumbline.file_hashes import cached_file_hash
from plumbline.hashes import KeyedTable
from plumbline.records import Text, TransformedText
from plumbline.store import is_remote
from plumbline.study import Study, file_hash
from plumbline.study.datasets import DatasetSpec

_NO_FLAGS: frozenset[str] = frozenset()
Found = tuple[str | None, frozenset[str]]  # an output, None where it failed, with its error types


class OutputLookup(Protocol):
    """The outputs of a transformation with a seed, those that failed too; unanswered ones are none."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        """What stands under each key."""
        ...

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
        """The same where something stands, with the key's place, piece by piece in whatever order."""
        ...


class JobTexts(gate.Makers, Protocol):
    """What the gate asks, and the job of each text."""

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """The job whose output stands for this text of this data set."""
        ...


class OutputSource(Protocol):
    """Where a study's data sets and outputs are: its folder, or a bundle of it."""

    @property
    def plan(self) -> JobTexts:
        """What made the outputs, and which text each is of."""
        ...

    @property
    def study(self) -> Study:
        """The study."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether what is found out may be kept in the study's scratch folder."""
        ...

    def dataset(self, spec: DatasetSpec) -> Dataset:
        """A data set of the study."""
        ...

    def revision(self, spec: DatasetSpec) -> str:
        """The revision that it would have, where that is known without reading its texts; empty otherwise."""
        ...

    def outputs(self, transformation: str, seed: int) -> OutputLookup:
        """A unit's outputs."""
        ...

    def state(self, transformation: str, seed: int) -> str:
        """Another one once a unit's outputs are others; empty where what is found in them is not to be remembered."""
        ...


@dataclass(frozen=True)
class Folder:
    """A study's own folder. Raises as `Plan`."""

    study: Study
    remembers: ClassVar[bool] = True
    _tables: dict[tuple[str, int], OutputLookup] = field(default_factory=dict)
    _states: dict[tuple[str, int], str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was read: another process reads for itself, and holds it to what was found here."""
        return Folder, (self.study, {}, self._states)

    @functools.cached_property
    def plan(self) -> Plan:
        """The study's plan."""
        return Plan(self.study)

    def dataset(self, spec: DatasetSpec) -> Dataset:
        """A data set, read from where it is."""
        return load_dataset(spec, self.study.file.parent)

    def revision(self, spec: DatasetSpec) -> str:
        """Of local files their hash."""
        path = None if spec.mteb else self.study.resolve(spec.path)
        try:
            if path is not None and path.is_dir():
                return file_hash(path)
            return cached_file_hash(path) if path is not None and path.is_file() else ""
        except OSError:  # reading them says what is wrong
            return ""

    def outputs(self, transformation: str, seed: int) -> OutputLookup:
        """What the generator left. Raises DataError for a table that is not the one that was written."""
        unit = transformation, seed
        if unit not in self._tables:
            file = self.study.transformation_file(*unit)
            table = OutputTable(file, self.study.command(GENERATE)) if file.exists() else MemoryOutputs({})
            refuse_other_outputs(self.study, *unit)
            if self._states.get(unit) not in (None, "", self._hash(*unit)):
                raise DataError(f"{file} was written while it was read; run again when generation has ended")
            self._tables[unit] = table
        return self._tables[unit]

    def state(self, transformation: str, seed: int) -> str:
        """The table's hash; empty for a far one, and where recordings' languages decide which output is whose.

        Raises DataError for a table that is not the one that was written.
        """
        unit = transformation, seed
        if unit not in self._states:
            refuse_other_outputs(self.study, *unit)
            drawn = not self.study.generator.recorded_languages
            self._states[unit] = self._hash(*unit) if drawn and not is_remote(self.study.folder) else ""
        return self._states[unit]

    def _hash(self, transformation: str, seed: int) -> str:
        path = self.study.transformation_file(transformation, seed)
        return cached_file_hash(path) if path.exists() else "none"


@dataclass(frozen=True)
class MemoryOutputs:
    """Outputs that are in memory, by key."""

    by_key: Mapping[str, Found]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.by_key)

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        """What stands under each key."""
        return [self.by_key.get(key) for key in keys]

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
        """The same where something stands, with the key's place."""
        yield ((index, self.by_key[key]) for index, key in enumerate(keys) if key in self.by_key)


class OutputTable:
    """Outputs in their file, of which those that are asked for are in memory."""

    def __init__(self, path: Path, command: str) -> None:
        """`command` makes the file."""
        self._table = KeyedTable(path, TransformedText, command, ("status",), _answered)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._table)

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        """What stands under each key."""
        outputs: list[Found | None] = [None] * len(keys)
        for piece in self.pieces(keys):
            for index, output in piece:
                outputs[index] = output
        return outputs

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
        """The same where something stands, with the key's place, in the file's order."""
        rows = self._table.find(keys)
        positions = np.flatnonzero(rows >= 0)
        for places, piece in self._table.rows(rows[positions], ("status", "output", "flags")):
            texts = pc.if_else(pc.equal(piece["status"], "ok"), piece["output"], None).to_pylist()
            flagged = pc.greater(pc.list_value_length(piece["flags"]), 0).to_numpy()
            flag_lists = iter(piece["flags"].filter(pa.array(flagged)).to_pylist())
            flags = (frozenset(next(flag_lists)) if some else _NO_FLAGS for some in flagged.tolist())
            yield zip(positions[places].tolist(), zip(texts, flags, strict=True), strict=True)


def _answered(piece: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pc.not_equal(piece["status"], "unanswered").to_numpy(), np.bool_)
