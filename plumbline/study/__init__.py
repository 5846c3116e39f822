"""A study: one YAML file with all settings that the stages share, read into one frozen model.

Unknown keys are refused with the nearest valid name, paths are relative to the study file, and the file never holds
secrets (a study names the environment variable that holds them).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.reading import read_yaml, with_lines
from plumbline.resources import IN_CHECKOUT, resource, working
from plumbline.resources import ROOT as ROOT
from plumbline.study.base import (
    Code,
    Contradiction,
    Name,
    Seed,
    StudyPart,
    as_is,
    complaints,
    distinct,
    refuse_duplicates,
    without_faults,
)
from plumbline.study.campaign import AcceptanceSpec, Ethics, RatersSpec, SampleSpec, undecidable
from plumbline.study.crowd import CrowdSpec
from plumbline.study.datasets import DatasetSpec
from plumbline.study.engines import NO_ENGINE, TAKE_GENERATOR, Engine, EngineSpec, JudgeSpec, unfit_judges
from plumbline.study.evaluation import BundleSpec, EvaluationSpec, NoEvaluation
from plumbline.study.human import HUMAN, with_human
from plumbline.study.places import file_hash as file_hash
from plumbline.study.places import place, resolved
from plumbline.study.reach import known_texts, refuse_unreachable
from plumbline.study.subject import ItemNames, PairSubject, Subject, VerdictUnit
from plumbline.study.subjects import SubjectSpec
from plumbline.study.transformations import EIGHT, Transformation, own_transformations, within_languages


class Study(StudyPart):
    """A study: everything decided before it runs, and the files it needs; `load_study` reads it."""

    name: Name = Field(description="the study's name; its records are in exports/<name>/")
    description: str = Field(default="", description="the study's purpose in one line, shown in reports")
    engines: dict[Name, EngineSpec] = Field(
        default={}, description="language models by name; `generator`, `candidates` and `judges` refer to these names"
    )
    subject: SubjectSpec | None = Field(
        default=None, description="the subject that raters judge; default: pairs of a text and its transformed text"
    )
    datasets: Annotated[tuple[DatasetSpec, ...], Field(min_length=1), distinct("data set", lambda spec: spec.name)] = (
        Field(default=(), description="the data sets; not allowed with subject texts")
    )
    transformations: tuple[Annotated[str, BeforeValidator(as_is, json_schema_input_type=str | Transformation)], ...] = (
        Field(
            default_factory=lambda before: () if before.get("subject") else tuple(EIGHT),
            min_length=1,
            description="HTEB's transformations by name; your own by the path of a YAML file, or defined here",
        )
    )
    prompts: str = Field(
        default="",
        pattern=r"^([a-z0-9][a-z0-9_-]{0,63})?$",
        description="a folder in prompts/ whose prompts replace the default prompts of the same name",
    )
    languages: Annotated[tuple[Code, ...], distinct("language")] = Field(
        default=(),
        description="target languages (codes) that raters can read; default: all languages of each transformation",
    )
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), distinct("seed")] = Field(
        default_factory=lambda before: () if before.get("subject") else (1337, 1338, 1339),
        description="random seeds: one output per text, transformation and seed; PTEB and HTEB use three",
    )
    generator: Engine = Field(
        default=NO_ENGINE,
        description=(
            "the engine that generates outputs or wordings; required for transformations with `calls`, and for"
            " `contexts` of subject instructions"
        ),
    )
    candidates: Annotated[
        tuple[Engine, ...], distinct("candidate", lambda engine: f"{engine.model}@{engine.revision}")
    ] = Field(default=(), description="other generators to compare with `generator`")
    sample: SampleSpec = Field(default=SampleSpec(), description="the sample of pairs that people rate")
    rubric: Name = Field(default="hteb", description="questions and guidelines: prompts/rubrics/<rubric>.yaml")
    wordings: Annotated[tuple[Code, ...], distinct("language")] = Field(
        default=(),
        description="further languages (codes) of the rubric's texts for raters: prompts/rubrics/<rubric>/<code>.yaml",
    )
    training: str = Field(
        default="", description="a file of pairs with right answers, for practice; answers to them never count"
    )
    raters: RatersSpec = Field(default=RatersSpec(), description="the raters, and their number per pair")
    acceptance: AcceptanceSpec = Field(
        default=AcceptanceSpec(), description="the rule by which a transformation is accepted"
    )
    judges: tuple[JudgeSpec, ...] = Field(
        default=(), description="language models that rate outputs or do tasks as people do"
    )
    crowd: Annotated[CrowdSpec | None, BeforeValidator(as_is, json_schema_input_type=CrowdSpec | str | None)] = Field(
        default=None, description="settings for crowd workers, or the path of a YAML file with them"
    )
    evaluation: EvaluationSpec = Field(
        default=NoEvaluation(), description="embedding models and their scoring; leave out for a study of ratings alone"
    )
    bundle: Annotated[BundleSpec, BeforeValidator(as_is, json_schema_input_type=BundleSpec | str)] = Field(
        default=BundleSpec(),
        description="licences and description for users of the bundle, or the path of a YAML file with them",
    )
    ethics: Ethics = Field(
        default={}, description="answers about the evaluation that only people can give, by question (docs/sheets.md)"
    )

    _file: Path = PrivateAttr(default=Path("study.yaml"))
    _exports: Path = PrivateAttr(default_factory=lambda: working("exports"))
    _options: tuple[str, ...] = PrivateAttr(default=("--study", "FILE"))
    _outputs: str = PrivateAttr(default="transformations")
    _by_candidate: bool = PrivateAttr(default=False)
    _own: Mapping[str, Transformation] = PrivateAttr(default_factory=dict)
    _groups: Mapping[str, VerdictUnit] = PrivateAttr(default_factory=dict)

    @field_validator("transformations")
    @classmethod
    def _known(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        transformations = {**EIGHT, **(info.context or {}).get("transformations", {})}
        for name in value:
            if name not in transformations:
                hints = " ".join(
                    dict.fromkeys((nearest(name, list(transformations)), f"known: {', '.join(transformations)}"))
                )
                raise ValueError(f"unknown transformation {name!r}; {hints}")
        refuse_duplicates(list(value), "transformation")
        return value

    @model_validator(mode="after")
    def _without_contradictions(self, info: ValidationInfo) -> Study:
        context = info.context or {}
        left_out, custom = context.get("left_out", ()), {**EIGHT, **context.get("transformations", {})}
        kinds = [custom[name] for name in self.transformations]
        contradictions = [
            *self._of_subject(),
            *self._of_transformations(kinds),
            *undecidable(self.acceptance, self.raters, crowd=bool(self.crowd)),
            *unfit_judges(self.judges, self.raters),
        ]
        faults = [line for keys, fault in contradictions if _are_known(keys, left_out) for line in fault.split("\n")]
        if "contradictions" in context:
            context["contradictions"][:] = faults  # of `read_study`, which checks more in spite of them
        elif faults:
            raise ValueError("\n".join(faults))
        return self

    def _of_subject(self) -> Iterator[Contradiction]:
        keys, subject = self.model_fields_set, self.subject
        if self.judging.needs_datasets and "datasets" not in keys:
            yield ("subject", "datasets"), "datasets: Field required"
        if subject and self.sample.without:
            fault = "sample.without: only outputs of transformations have error types; take it out"
            yield ("subject", "sample.without"), fault
        try:
            self._groups = self.judging.units(self.datasets, keys) if subject else {}
        except (StudyError, ValueError) as error:
            yield ("subject", "datasets"), str(error)
        names = self.judging.model_names()  # tables list them and embedding models by name
        for name in [model.name for model in self.evaluation.models if model.name in names]:
            fault = f"judges: {name!r} is also the name of an embedding model; rename one of them"
            yield ("subject", "judges", "evaluation.models"), fault
        reason = self.judging.refusals.get("raters.blocks", "")
        if self.judging.systems_by_label:
            reason = "choices between systems (subject.systems) are compared once all are collected; leave blocks out"
        if self.raters.blocks and reason:
            yield ("subject", "raters.blocks"), f"raters.blocks: {reason}"

    def _of_transformations(self, kinds: Sequence[Transformation]) -> Iterator[Contradiction]:
        if asking := [(number, kind.name) for number, kind in enumerate(kinds) if kind.calls]:
            try:
                self.generator.refuse_absence(f"{asking[0][1]} needs one")
            except (StudyError, ValueError) as error:
                yield ("generator", "engines", "transformations"), f"transformations.{asking[0][0]}: {error}"
        queues = [kind.queue for kind in kinds if kind.queue]
        if self.sample.together and len(set(queues)) == len(queues):
            fault = "sample.together: no two transformations share a queue; give them the same `queue`"
            yield ("sample.together", "transformations"), fault
        if self.sample.together and self.raters.blocks:
            fault = "sample.together: raters.blocks deal out controls and repeats one by one; use one of the two"
            yield ("sample.together", "raters.blocks"), fault
        for kind in kinds:
            if kind.meaning == "changed" and not any(kind.pool in clause.pools for clause in self.acceptance.rules):
                fault = (
                    f"{kind.name!r} changes the meaning on purpose and needs a rule of its own in acceptance.rules,"
                    f" such as {{question: quality, at_most: 2, pools: [{kind.pool}]}}"
                )
                yield ("transformations", "acceptance.rules"), fault

    @property
    def file(self) -> Path:
        """The YAML file that this study was read from."""
        return self._file

    @property
    def kinds(self) -> Mapping[str, VerdictUnit]:
        """The units that get verdicts, by name: the study's transformations, or the groups of its subject."""
        return self._groups if self.subject else self.transforming

    @property
    def transforming(self) -> Mapping[str, Transformation]:
        """The study's transformations by name, in its order: HTEB's, and those of its own; none of another subject."""
        return {name: self._own.get(name) or EIGHT[name] for name in self.transformations}

    def raters_of(self, name: str) -> int:
        """Return the number of raters for each item of a unit."""
        _, raters = self.judging.sizes(name) or (0, self.raters.per_pair)
        return raters

    def shown_together(self, pool: str) -> int:
        """Return how many outputs of an original raters see on one page of a queue or pool; 1 if they come singly."""
        queues = {kind.queue for kind in self.kinds.values() if kind.queue and pool in (kind.queue, kind.pool)}
        systems = sum(kind.queue in queues for kind in self.kinds.values()) if self.sample.together else 0
        return max(1, systems)

    @property
    def judging(self) -> Subject:
        """The subject that people judge."""
        return self.subject or PairSubject()

    @property
    def called(self) -> ItemNames:
        """The names for people of the study's units and items: transformations that all share a queue are systems."""
        names, kinds = self.judging.names, self.kinds.values()
        return (
            names._replace(judged="system") if self.judging.transforms and all(kind.queue for kind in kinds) else names
        )

    @property
    def arguments(self) -> str:
        """The options that name this study on a command line, for commands in messages."""
        return shlex.join(self._options)

    def command(self, name: str) -> str:
        """Return a command to paste: `accept` gives `plumbline accept` with the options that name this study."""
        by = ["--generator", self.generator.model] if self._by_candidate and name in TAKE_GENERATOR else []
        return shlex.join(["plumbline", *name.split(), *self._options, *by])

    def refuse_unfit(self, name: str) -> None:
        """Raise StudyError if the study's subject has no use for a command or setting."""
        if reason := self.judging.refusals.get(name):
            commands = re.sub(r"`plumbline ([^`]+)`", lambda match: f"`{self.command(match[1])}`", reason)
            raise StudyError(f"{self.file}: {commands.replace('{kind}', self.judging.kind)}")

    @property
    def folder(self) -> Path:
        """The folder of all records: `exports/<name>/`."""
        return self._exports / self.name

    @property
    def scratch(self) -> Path:
        """The folder for journals and locks: the records', or `exports/.remote/` for remote records."""
        folder = self.folder
        if isinstance(folder, Path):
            return folder
        options = {name: str(value) for name, value in folder.storage_options.items()}  # host and port if any
        return working("exports") / ".remote" / identity("remote-v1", str(folder), options)[:16]

    def resolve(self, path: str) -> Path:
        """Return a path of the study file, taken relative to that file. Raises StudyError for circular links."""
        return resolved(self._file.parent / path, str(self._file))

    def transformation_file(self, transformation: str, seed: int) -> Path:
        """Return the path of a unit's outputs."""
        return self.outputs / transformation / f"{seed}.parquet"

    def journal_file(self, transformation: str, seed: int, shard: str = "") -> Path:
        """Return the path of the journal of a unit's outputs (or a shard's), always on this machine."""
        return self.scratch / self._outputs / transformation / f"{seed}{shard and f'.{shard}'}.journal"

    @property
    def outputs(self) -> Path:
        """The folder of the generator's outputs."""
        return self.folder / self._outputs

    def data_files(self) -> list[Path]:
        """The files and folders that hold the study's local data sets, texts, and its own transformations."""
        data = [self.resolve(spec.path) for spec in self.datasets if not spec.mteb]
        data += [file] if (file := self.judging.file_of(self)) else []
        return [*data, *(file for transformation in self._own.values() for file in transformation.files())]

    def generator_called(self, model: str) -> EngineSpec:
        """The generator or candidate with a model's name. Raises StudyError unless the study has exactly one."""
        every = dict.fromkeys((*self.candidates, self.generator))
        specs = [spec for spec in every if spec.model == model]
        if not specs:
            raise StudyError(f"{self.file}: no generator {model!r}; {nearest(model, [spec.model for spec in every])}")
        if len(specs) > 1:
            raise StudyError(f"{self.file}: {len(specs)} generators are called {model!r}; give each a study of its own")
        return specs[0]

    @property
    def judgements(self) -> Path:
        """The folder of judges' ratings of the generator's outputs."""
        return self.folder / "judgements" / (Path(self._outputs).name if self._by_candidate else "")

    def by(self, generator: EngineSpec) -> Study:
        """Return the study with one of its `candidates` as generator; its outputs have a folder of their own."""
        if generator == self.generator:
            return self
        study = self.model_copy(update={"generator": generator})
        plain = re.sub(r"[^a-z0-9]+", "-", generator.model.lower()).strip("-")
        study._by_candidate = True
        study._outputs = f"candidates/{plain}-{identity('candidate-v1', *generator.identity())[:8]}"
        return study


@dataclass(frozen=True)
class StudyReading:
    """A study file as far as it can be read, and its faults."""

    faults: list[str]  #: each in a line, with the file
    study: Study | None = None  #: without the settings that have faults; None if nothing can be said of the others
    left_out: frozenset[str] = frozenset()  #: the keys of these settings, such as sample.pairs

    def knows(self, *keys: str) -> bool:
        """Return whether the study has all settings below these keys as its file says them."""
        return self.study is not None and _are_known(keys, self.left_out)


def _are_known(keys: Iterable[str], left_out: Collection[str]) -> bool:
    """Return whether no setting below these keys, or above them, was left out."""
    return not any(
        f"{key}.".startswith(f"{faulty}.") or f"{faulty}.".startswith(f"{key}.") for key in keys for faulty in left_out
    )


def load_study(file: str | Path, exports: str | Path | None = None) -> Study:
    """Read a study.

    `exports` is the folder that holds the studies' records (default: `exports/`, see plumbline.resources). Raises
    StudyError with the file, the field and what to do for anything that is not a valid study.

    >>> from plumbline import load_study
    >>> study = load_study("studies/demo.yaml")
    >>> study.acceptance.threshold, study.raters.per_pair
    (3.0, 4)
    """
    reading = read_study(file, exports)
    if reading.faults or reading.study is None:
        raise StudyError(*reading.faults)
    return reading.study


def read_study(file: str | Path, exports: str | Path | None = None) -> StudyReading:
    """Read a study file that may have faults; raises StudyError if it is missing or not a mapping in YAML."""
    try:
        data = read_yaml(path := Path(file))
    except FileNotFoundError:
        hint = f"samples: {resource('studies')}" if IN_CHECKOUT else "`plumbline studies` copies samples to studies/"
        raise StudyError(f"no study file {file} on this machine; {hint}") from None
    if not isinstance(data, dict):
        raise StudyError(f"{path}: a study is a mapping of keys to values; see {resource('studies/demo.yaml')}")
    faults, left_out = list[str](), set[str]()
    data = _with_files(data, path.parent, faults, left_out)
    context: dict[str, Any] = {"transformations": {}, "engines": data.get("engines"), "contradictions": []}
    context["left_out"] = left_out
    try:
        if isinstance(data.get("subject"), dict) and data["subject"].get("kind") == HUMAN:
            data = with_human(data, context)
    except (ValidationError, StudyError) as error:
        faults += complaints(error) if isinstance(error, ValidationError) else error.args
        return StudyReading(with_lines(path, faults))
    if isinstance(data.get("transformations"), list):
        try:
            names, context["transformations"] = own_transformations(data["transformations"], path.resolve().parent)
            data["transformations"] = names
        except StudyError as error:
            faults += error.args
            del data["transformations"]
            left_out.add("transformations")
    study = _validated(data, context, faults, left_out)
    if study is None:
        return StudyReading(with_lines(path, faults))
    study._file = path.resolve()
    study._options = ("--study", str(file))
    reading = StudyReading(faults, study, frozenset(left_out))
    try:
        study._own = {**study._own, **within_languages(study.transforming, study.languages, study.generator)}
        if reading.knows("sample.pairs", "acceptance.min_pairs", "acceptance.scope", "raters.blocks", *JUDGED):
            refuse_unreachable(study, known_texts(study))
    except StudyError as error:
        faults += error.args
    faults[:] = with_lines(path, faults)
    if exports is not None:
        study._options += ("--exports", str(exports))
        folder = place(exports, "--exports")  # a local one, or any that fsspec knows (`s3://bucket/studies`)
        study._exports = folder if "://" in str(exports) else resolved(folder, "--exports")
    return reading


def _with_files(data: Mapping[str, Any], folder: Path, faults: list[str], left_out: set[str]) -> dict[str, Any]:
    """Return a study's settings with those in files of their own, which add `faults`, and keys to `left_out`."""
    data = dict(data)
    for part in ("crowd", "bundle"):
        if isinstance(data.get(part), str):
            named = data.pop(part)
            left_out.add(part)
            try:
                data[part] = read_yaml(folder / named)
                left_out.remove(part)
            except FileNotFoundError:
                faults.append(f"{part}: no file {folder / named}; correct its path")
            except StudyError as error:
                faults += error.args
    return data


#: The settings that say what gets verdicts.
JUDGED = ("subject", "transformations")
_PASSES = 5  # a setting that is left out may leave another one incomplete


def _validated(data: dict[str, Any], context: dict[str, Any], faults: list[str], left_out: set[str]) -> Study | None:
    """Return the study without settings at fault, which go to `faults` and `left_out`; None if too little remains."""
    for number in range(_PASSES):
        try:
            study = Study.model_validate(data, context=context)
        except ValidationError as error:
            faults += [] if number else complaints(error)
            data, keys = without_faults(data, error)
            data = {"name": "unnamed", **data}
            context["engines"] = data.get("engines")
            left_out |= keys or {"name"}
        else:
            faults += context["contradictions"]
            study._own = context["transformations"]
            return study if study.kinds or not faults else None
    return None
