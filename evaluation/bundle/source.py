"""Use a bundle: its data sets and outputs for evaluation, or its pairs for a new study.

Texts that may not be shared come from the hub, at the bundle's revision, or from the user's own copy of the file. Each
must be the text that was transformed, position by position.

A study that starts from a bundle has the same pairs, for other people to rate, without the first study's answers. The
pairs are copied, not drawn again, so that data, prompts and outputs are not needed, and both campaigns rate pairs of
equal ids.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from annotation.campaign_records import SUPPLY, CampaignRecords
from annotation.offering import refuse_other_prompts
from annotation.rubric import load_rubric
from annotation.sampling.sample import sample_settings
from evaluation.bundle import records, tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import FOLDER, DatasetSource
from evaluation.sources import Found, MemoryOutputs
from generation.datasets.dataset import Dataset
from generation.datasets.local import load_local
from generation.datasets.mteb_tasks import load_mteb
from generation.jobs import Job, Maker, generator_hash
from plumbline.errors import DataError, PlumblineError, StudyError, nearest
from plumbline.manifest import Manifest, stage
from plumbline.reading import read_bytes
from plumbline.records import SUGGESTED, Pair, Text, text_id
from plumbline.store import atomic, write_table
from plumbline.study import Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.transformations import EIGHT
from plumbline.words import trim

_COLUMNS = ("key", "text_id", "datasets", "source_language", "language", "output", "status", "flags", records.COPY)
_Made = dict[tuple[str, str], tuple[str, str, str]]  # by data set and text: key, its language, the output's
OTHER = "use the revision or file that the bundle was made from"


@dataclass
class BundlePlan:
    """The makers of a bundle's outputs, and each text's output (`evaluation.sources.JobTexts`)."""

    bundle: Bundle
    words: Callable[[], Mapping[str, str]]  #: by hash, for outputs that are texts which may not be shared
    _made: dict[tuple[str, int], _Made] = field(default_factory=dict)
    _tables: dict[tuple[str, int], MemoryOutputs] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)  #: by key

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
        key, source, language = self._made[transformation, seed].get((text.dataset, text.text_id), nothing)
        return Job(key, text.text_id, text.text, source, transformation, seed, None, (language,))

    def text_of(self, pair: Pair) -> str:
        """Return the id of a pair's original."""
        self.outputs(pair.transformation, pair.seed)
        return self._texts[pair.key]

    def outputs(self, transformation: str, seed: int) -> MemoryOutputs:
        """Return a unit's outputs by key, read once."""
        unit = transformation, seed
        if unit not in self._tables:
            rows = self.bundle.outputs(*unit, _COLUMNS).to_pylist()
            for row in rows:
                if row[records.COPY]:
                    row["output"] = self._copied(row[records.COPY], records.outputs_of(*unit))
            self._tables[unit] = MemoryOutputs({row["key"]: _found(row) for row in rows})
            self._made[unit] = {
                (name, row["text_id"]): (row["key"], row["source_language"], row["language"])
                for row in rows
                for name in row["datasets"]
            }
            self._texts |= {row["key"]: row["text_id"] for row in rows}
        return self._tables[unit]

    def _copied(self, copy: str, member: str) -> str:
        try:
            return self.words()[copy]
        except KeyError:
            raise DataError(
                f"{self.bundle.path / member}: an output is a copy of text {copy}, which is in no data set"
            ) from None


@dataclass
class BundleSource:
    """A bundle's data sets and outputs. `files` are the user's copies of texts that may not be shared, by data set.

    Raises StudyError for a copy that is not needed; `loaded` raises it for a missing copy, DataError for a different
    one, and the errors of loading.
    """

    bundle: Bundle
    study: Study
    files: Mapping[str, Path] = field(default_factory=dict)
    remembers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        local = [
            dataset.name
            for dataset in self.bundle.manifest.datasets
            if dataset.kind == "local" and dataset.texts == "reference"
        ]
        for name in self.files:
            if name not in local:
                hint = nearest(name, local) if local else "this bundle has all its texts"
                raise StudyError(f"--data {name}: no data set of that name needs a copy; {hint}")

    @functools.cached_property
    def plan(self) -> BundlePlan:
        """The makers of the outputs."""
        return BundlePlan(self.bundle, lambda: self._words)

    def dataset(self, spec: DatasetSpec) -> Dataset:
        """Return a data set of the study."""
        return next(dataset for dataset in self.loaded if dataset.name == spec.name)

    def revision(self, _: DatasetSpec) -> str:
        """Return an empty text: the revision is unknown until the data set is read."""
        return ""

    def outputs(self, transformation: str, seed: int) -> MemoryOutputs:
        """Return a unit's outputs."""
        return self.plan.outputs(transformation, seed)

    def state(self, _: str, __: int) -> str:
        """Return an empty text: facts about a bundle are not cached."""
        return ""

    def pairs(self) -> list[Pair]:
        """Return the sample, with texts that are not in the bundle taken from the data sets."""
        return [
            pair if pair.original and pair.transformed else self._whole(pair)
            for pair in self.bundle.evidence.collected.sample_pairs
        ]

    def _whole(self, pair: Pair) -> Pair:
        """Return a pair with both of its texts."""
        output, _ = self.outputs(pair.transformation, pair.seed).by_key[pair.key]
        original = pair.original or self._words[self.plan.text_of(pair)]
        return pair.model_copy(update={"original": original, "transformed": pair.transformed or output or ""})

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
        both = zip(self.study.datasets, self.bundle.manifest.datasets, strict=True)
        return [self._load(spec, source) for spec, source in both]

    def _load(self, spec: DatasetSpec, source: DatasetSource) -> Dataset:
        dataset: Dataset
        if spec.mteb:
            dataset = load_mteb(spec)
        elif source.texts == "include":
            members = self.bundle.dataset_tables(spec.name)
            dataset = tables.dataset_of(spec, source.revision, members, self.bundle.path)
        elif source.name in self.files:
            dataset = load_local(spec, self.files[source.name])
        else:
            raise StudyError(
                f"{self.bundle.path}: the texts of {source.name!r} may not be shared ({source.licence}); name your"
                f" copy of {spec.path} with --data {source.name}=FILE"
            )
        if dataset.revision != source.revision:
            raise DataError(
                f"data set {source.name!r} has revision {dataset.revision[:60]}, but the bundle has"
                f" {source.revision[:60]}; {OTHER}"
            )
        self._refuse_others(dataset)
        return dataset

    def _refuse_others(self, dataset: Dataset) -> None:
        """Raise DataError if a position has another text than the one transformed."""
        table = self.bundle.texts(dataset.name)
        due = zip(*(table[name].to_pylist() for name in ("split", "item", "field", "text_id")), strict=True)
        for text in dataset.texts():
            position = (text.split, text.item, text.field, text.text_id)
            if next(due, None) != position:
                raise DataError(
                    f"data set {dataset.name!r}: {text.split} split, item {text.item}, {text.field} differs from"
                    f" {records.texts_of(dataset.name)}; {OTHER}"
                )
        if next(due, None) is not None:
            raise DataError(f"data set {dataset.name!r} lacks texts of {records.texts_of(dataset.name)}; {OTHER}")


def _found(row: Mapping[str, Any]) -> Found:
    return row["output"] if row["status"] == "ok" else None, frozenset(row["flags"])


_KEPT = ("datasets", "seeds", "prompts", "languages", "sample", "rubric", "wordings", "raters", "acceptance", "quality")
_WRITTEN = {"pairs.parquet", "controls.parquet", SUPPLY.name, "manifest.json"}


@dataclass(frozen=True)
class Again:
    """The written study."""

    study: Study
    pairs: int
    controls: int
    left_out: int  #: controls whose texts the bundle may not share


def study_again(
    bundle: Bundle, out: Path, exports: str | Path | None = None, files: Mapping[str, Path] | None = None
) -> Again:
    """Write the study `out` (a YAML file) with a bundle's pairs, controls and rules, and no answers.

    The bundle should have been checked; `files` are copies of texts that may not be shared, by data set. Raises
    StudyError if the file or its records exist already, and for pairs that cannot belong to such a study: made by
    functions or files of outputs, by other prompts, or rated by another rubric than the one here.
    """
    if out.suffix not in (".yaml", ".yml"):
        raise StudyError(f"--out {out}: study files end in .yaml; name it {out}.yaml")
    content = yaml.safe_dump(_settings(bundle, out), allow_unicode=True, sort_keys=False).encode()
    begun = out.exists() and read_bytes(out) == content  # by an interrupted run
    if out.exists() and not begun:
        raise StudyError(f"--out {out}: this file exists; name another, so that its study stays unchanged")
    source = BundleSource(bundle, bundle.study(), files or {})
    sample = source.pairs()
    with atomic(out, public=True) as file:
        file.write(content)
    try:
        study = load_study(out, exports)
        if study.folder.exists() and not (begun and _unasked(study.folder)):
            raise StudyError(f"{study.folder} has records of a study with that name; choose another name for --out")
        if load_rubric(study).identity() != bundle.rubric.identity():
            raise StudyError(
                f"{bundle.path}: its rubric {study.rubric!r} differs from yours, so ratings could not be compared; get"
                " the maker's rubric"
            )
        maker = generator_hash(study.generator) if bundle.settings["generator"].get(FOLDER) else ""
        pairs, controls, n_left_out = _pairs(bundle, sample, maker)
        refuse_other_prompts(CampaignRecords.open(study), [*pairs, *controls])
    except PlumblineError:
        if not begun:
            out.unlink()
        raise
    files_of_study = [study.folder / name for name in ("pairs.parquet", "controls.parquet", SUPPLY.name)]
    with stage(study, "sample", [bundle.path], files_of_study, sample_settings(study.sample, study.judging)):
        Manifest.of(study).write_models(SUPPLY.name, bundle.evidence.supply)
        write_table(files_of_study[1], controls, Pair)
        write_table(files_of_study[0], pairs, Pair)
    return Again(study, len(pairs), len(controls), n_left_out)


def _unasked(folder: Path) -> bool:
    """Return whether a study's folder has only the files written here."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} <= _WRITTEN


def _settings(bundle: Bundle, out: Path) -> dict[str, Any]:
    """Return the study's settings: the raters' questions and the rules, as in the bundle."""
    settings = bundle.settings
    rules = settings.get("acceptance", {})  # judges that decided are only reported: the new campaign has none yet
    decided = rules.get("judges") == "decide"
    generator = {name: value for name, value in settings["generator"].items() if name != FOLDER}
    generator["settings"] = {name: generator.pop(name) for name in records.OF_GENERATORS if name in generator}
    if generator["kind"] in ("recorded", "openai"):  # an equal identity, without a server's address
        generator = {**generator, "kind": "recorded", "path": "outputs"}
    datasets = [
        dataset if "mteb" in dataset else {**dataset, "path": Path(dataset["path"]).name}
        for dataset in settings["datasets"]
    ]
    return {
        "name": out.stem,
        "description": f"The pairs of {bundle.manifest.study}, bundle {bundle.short}, rated again",
        **{name: settings[name] for name in _KEPT if name in settings},
        **({"acceptance": {**rules, "judges": "report"}} if decided else {}),
        "datasets": datasets,
        "transformations": list(_transformations(bundle)),
        "generator": generator,
    }


def _transformations(bundle: Bundle) -> Iterator[Any]:
    """Yield HTEB's transformations by name, others in full with their prompts."""
    for name, transformation in bundle.transformations.items():
        if name in EIGHT:
            yield name
        elif not transformation.prompts:
            raise StudyError(
                f"{bundle.path}: {name} was made by {transformation.model}, which is not in the bundle; only"
                " transformations made by prompts can be rated again from it"
            )
        else:
            yield {
                **transformation.definition,
                "calls": [{"text": p.text, "language": p.language} for p in transformation.prompts],
            }


def _pairs(bundle: Bundle, sample: list[Pair], maker: str) -> tuple[list[Pair], list[Pair], int]:
    """Return the sample and the controls in one wave, and the number of controls left out."""
    kind = bundle.evidence.study.generator.kind
    by_key = {pair.key: pair.original for pair in sample}
    controls, of_bundle = [], bundle.evidence.collected.control_pairs
    shown = {
        control.pair_id for control in of_bundle if control.control == SUGGESTED
    }  # part of an experiment, which is not repeated
    for control in of_bundle:
        if {control.pair_id, control.repeats} & shown:
            continue
        original = control.original or (by_key.get(control.key, "") if control.control == "repeat" else "")
        controls.append(control.model_copy(update={"original": original}))
    whole = [control for control in controls if control.original and control.transformed]
    again = [[_first(pair, kind, maker) for pair in rows] for rows in (sample, whole)]
    return again[0], again[1], len(controls) - len(whole)


def _first(pair: Pair, kind: str, named: str) -> Pair:
    """Return a pair in the first wave, with the generator as the new study names it."""
    changed: dict[str, Any] = {"generator_kind": kind} if pair.generator_kind == "openai" else {}
    if named and pair.generator_kind in ("vllm", "openai", "recorded"):
        changed["generator_hash"] = named
    return pair.model_copy(update={"wave": 1, **changed})
