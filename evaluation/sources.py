"""Sources of a study's data sets and outputs, read only when needed."""

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
from generation.jobs import COMMAND as GENERATE
from generation.jobs import Job, Plan, refuse_other_outputs
from plumbline.errors import DataError
from plumbline.file_hashes import cached_file_hash
from plumbline.hashes import KeyedTable
from plumbline.records import Text, TransformedText
from plumbline.store import is_remote
from plumbline.study import Study, file_hash
from plumbline.study.datasets import DatasetSpec

_NO_FLAGS: frozenset[str] = frozenset()
Found = tuple[str | None, frozenset[str]]  # an output, None if it failed, with its error types


class OutputLookup(Protocol):
    """The outputs of a transformation with a seed, including failed ones but not unanswered ones."""

    def __len__(self) -> int:
        """Return the number of outputs."""

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        """Return the output of each key, or None."""

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
        """Yield the existing outputs with the index of their key, piece by piece in any order."""


class JobTexts(gate.Makers, Protocol):
    """Input of the gate, and the job of each text."""

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """Return the job whose output replaces this text of this data set."""


class OutputSource(Protocol):
    """The source of a study's data sets and outputs: its folder, or a bundle of it."""

    @property
    def plan(self) -> JobTexts:
        """The makers of the outputs, and the job of each text."""

    @property
    def study(self) -> Study:
        """The study."""

    @property
    def remembers(self) -> bool:
        """True if facts may be cached in the study's scratch folder."""

    def dataset(self, spec: DatasetSpec) -> Dataset:
        """Return a data set of the study."""

    def revision(self, spec: DatasetSpec) -> str:
        """Return a data set's revision, if it is known without reading its texts; else empty."""

    def outputs(self, transformation: str, seed: int) -> OutputLookup:
        """Return a unit's outputs."""

    def state(self, transformation: str, seed: int) -> str:
        """Return a value that changes with a unit's outputs; empty if facts about them must not be cached."""


@dataclass(frozen=True)
class Folder:
    """A study's own folder. Raises as `Plan`."""

    study: Study
    remembers: ClassVar[bool] = True
    _tables: dict[tuple[str, int], OutputLookup] = field(default_factory=dict)
    _states: dict[tuple[str, int], str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the tables: another process reads them itself, and checks them against the states."""
        return Folder, (self.study, {}, self._states)

    @functools.cached_property
    def plan(self) -> Plan:
        return Plan(self.study)

    def dataset(self, spec: DatasetSpec) -> Dataset:
        return load_dataset(spec, self.study.file.parent)

    def revision(self, spec: DatasetSpec) -> str:
        """Return the hash of a local data set's files; empty for mteb's."""
        path = None if spec.mteb else self.study.resolve(spec.path)
        try:
            if path is not None and path.is_dir():
                return file_hash(path)
            return spec.revision_of(cached_file_hash(path)) if path is not None and path.is_file() else ""
        except OSError:  # reading the data set reports the error
            return ""

    def outputs(self, transformation: str, seed: int) -> OutputLookup:
        """Return the generator's outputs. Raises DataError for a table changed after it was written."""
        unit = transformation, seed
        if unit not in self._tables:
            file = self.study.transformation_file(*unit)
            table = OutputTable(file, self.study.command(GENERATE)) if file.exists() else MemoryOutputs({})
            refuse_other_outputs(self.study, *unit)
            if self._states.get(unit) not in (None, "", self._hash(*unit)):
                raise DataError(f"{file} changed while it was read; run again when generation has ended")
            self._tables[unit] = table
        return self._tables[unit]

    def state(self, transformation: str, seed: int) -> str:
        """Return the table's hash; empty for a remote one, and if recordings decide the languages.

        Raises DataError for a table changed after it was written.
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
    """Outputs in memory, by key."""

    by_key: Mapping[str, Found]

    def __len__(self) -> int:
        return len(self.by_key)

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        return [self.by_key.get(key) for key in keys]

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
        yield ((index, self.by_key[key]) for index, key in enumerate(keys) if key in self.by_key)


class OutputTable:
    """Outputs in their file, of which only those in use are in memory."""

    def __init__(self, path: Path, command: str) -> None:
        self._table = KeyedTable(path, TransformedText, command, ("status",), _answered)

    def __len__(self) -> int:
        return len(self._table)

    def of(self, keys: Sequence[str]) -> list[Found | None]:
        outputs: list[Found | None] = [None] * len(keys)
        for piece in self.pieces(keys):
            for index, output in piece:
                outputs[index] = output
        return outputs

    def pieces(self, keys: Sequence[str]) -> Iterator[Iterable[tuple[int, Found]]]:
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
