"""A bundle's data sets and outputs, as evaluation reads them.

Texts that may not be shared come from the hub, at the bundle's revision, or from the user's own copy of the file. Each
must be the text that was transformed, position by position.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from evaluation.bundle import records, tables
from evaluation.bundle.bundle import Bundle
from evaluation.sources import MemoryOutputs
from generation.datasets.dataset import Dataset
from generation.datasets.local import load_local
from generation.datasets.mteb_tasks import load_mteb
from generation.jobs import Job, Maker
from plumbline.errors import DataError, StudyError, nearest
from plumbline.records import Pair, Text, text_id
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec
from plumbline.words import trim

_COLUMNS = ("key", "text_id", "datasets", "source_language", "language", "output", "status", "flags", records.COPY)
_Jobs = dict[tuple[str, str], tuple[str, str, str]]  # by data set and text: key, its language, the output's
_OTHER = "use the revision or file that the bundle was made from"


@dataclass
class BundleSource:
    """A bundle's data sets and outputs, with their makers (`evaluation.sources.JobTexts`).

    `files` are the user's copies of texts that may not be shared, by data set.
    Raises StudyError for a copy that is not needed; `loaded` raises it for a missing copy, DataError for a different
    one, and the errors of loading.
    """

    bundle: Bundle
    study: Study
    files: Mapping[str, Path] = field(default_factory=dict)
    remembers: ClassVar[bool] = False
    _jobs: dict[tuple[str, int], _Jobs] = field(default_factory=dict)
    _tables: dict[tuple[str, int], MemoryOutputs] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)  # by key

    def __post_init__(self) -> None:
        facts = self.bundle.manifest.datasets
        local = [spec.name for spec in self.study.datasets if not spec.mteb and facts[spec.name].texts == "reference"]
        for name in self.files:
            if name not in local:
                hint = nearest(name, local) if local else "this bundle has all its texts"
                raise StudyError(f"--data {name}: no data set of that name needs a copy; {hint}")

    @property
    def plan(self) -> BundleSource:
        return self

    @functools.cached_property
    def makers(self) -> Mapping[str, Maker]:
        """The source of each transformation's texts."""
        return {name: Maker(o.kind, o.model, o.generator_hash) for name, o in self.bundle.transformations.items()}

    @functools.cached_property
    def prompts(self) -> Mapping[str, Sequence[object]]:
        """The prompts of each transformation."""
        return {name: transformation.prompts for name, transformation in self.bundle.transformations.items()}

    @functools.cached_property
    def prompt_hashes(self) -> Mapping[str, str]:
        """The identities of the prompts."""
        return {name: transformation.prompt_hash for name, transformation in self.bundle.transformations.items()}

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """Return the job whose output replaces a text; its key is empty if the bundle has none."""
        self.outputs(transformation, seed)
        nothing = ("", text.language, text.language)
        key, source, language = self._jobs[transformation, seed].get((text.dataset, text.text_id), nothing)
        return Job(key, text.text_id, text.text, source, transformation, seed, None, (language,))

    def outputs(self, transformation: str, seed: int) -> MemoryOutputs:
        """Return a unit's outputs by key, read once."""
        unit = transformation, seed
        if unit not in self._tables:
            rows = self.bundle.outputs(*unit, _COLUMNS).to_pylist()
            for row in rows:
                if row[records.COPY]:
                    row["output"] = self._copied(row[records.COPY], records.outputs_of(*unit))
            self._tables[unit] = MemoryOutputs({
                row["key"]: (row["output"] if row["status"] == "ok" else None, frozenset(row["flags"])) for row in rows
            })  # fmt: skip
            self._jobs[unit] = {
                (name, row["text_id"]): (row["key"], row["source_language"], row["language"])
                for row in rows
                for name in row["datasets"]
            }
            self._texts |= {row["key"]: row["text_id"] for row in rows}
        return self._tables[unit]

    def _copied(self, copy: str, file: str) -> str:
        try:
            return self._words[copy]
        except KeyError:
            raise DataError(
                f"{self.bundle.path / file}: an output is a copy of text {copy}, which is in no data set"
            ) from None

    def dataset(self, spec: DatasetSpec) -> Dataset:
        return next(dataset for dataset in self.loaded if dataset.name == spec.name)

    def revision(self, _: DatasetSpec) -> str:
        """Return an empty text: the revision is unknown until the data set is read."""
        return ""

    def state(self, _: str, __: int) -> str:
        """Return an empty text: facts about a bundle are not cached."""
        return ""

    def pairs(self) -> list[Pair]:
        """Return the sample, with texts that are not in the bundle taken from the data sets."""
        return [
            pair if pair.original and pair.transformed else self._completed(pair)
            for pair in self.bundle.evidence.collected.sample_pairs
        ]

    def _completed(self, pair: Pair) -> Pair:
        """Return a pair with both of its texts. Raises DataError if the bundle lacks its output."""
        output = self.outputs(pair.transformation, pair.seed).by_key.get(pair.key)
        original = pair.original or (self._words.get(self._texts[pair.key], "") if output else "")
        if output is None or not original:
            raise DataError(f"{self.bundle.path}: pair {pair.pair_id} has no output or text in the bundle")
        return pair.model_copy(update={"original": original, "transformed": pair.transformed or output[0] or ""})

    @functools.cached_property
    def _words(self) -> dict[str, str]:
        """The data sets' texts by hash."""
        return {
            text_id(words, text.language): words
            for dataset in self.loaded
            for text in dataset.texts()
            for words in (text.text, trim(text.text))
        }

    @functools.cached_property
    def loaded(self) -> list[Dataset]:
        """All data sets, in the study's order."""
        return [self._load(spec) for spec in self.study.datasets]

    def _load(self, spec: DatasetSpec) -> Dataset:
        facts = self.bundle.manifest.datasets[spec.name]
        dataset: Dataset
        if spec.mteb:
            dataset = load_mteb(spec)
        elif facts.texts == "include":
            parts = self.bundle.dataset_tables(spec.name)
            dataset = tables.dataset_of(spec, facts.revision, parts, self.bundle.path)
        elif spec.name in self.files:
            dataset = load_local(spec, self.files[spec.name])
        else:
            raise StudyError(
                f"{self.bundle.path}: the texts of {spec.name!r} may not be shared ({facts.licence}); name your"
                f" copy of {spec.path} with --data {spec.name}=FILE"
            )
        if dataset.revision != facts.revision:
            raise DataError(
                f"data set {spec.name!r} has revision {dataset.revision[:60]}, but the bundle has"
                f" {facts.revision[:60]}; {_OTHER}"
            )
        file = records.texts_of(dataset.name)
        table = self.bundle.table(file, Text)
        expected = zip(*(table[name].to_pylist() for name in ("split", "item", "field", "text_id")), strict=True)
        for text in dataset.texts():
            if next(expected, None) != (text.split, text.item, text.field, text.text_id):
                position = f"{text.split} split, item {text.item}, {text.field}"
                raise DataError(f"data set {dataset.name!r}: {position} differs from {file}; {_OTHER}")
        if next(expected, None) is not None:
            raise DataError(f"data set {dataset.name!r} lacks texts of {file}; {_OTHER}")
        return dataset
