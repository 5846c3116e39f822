"""A study: one YAML file that says everything that the stages share, read into one frozen model.

Unknown keys are refused with the nearest valid name, paths are relative to the study file, secrets never
stand in it (a study names the environment variable that holds them).
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import yaml
from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from generation.crowd_spec import CrowdSpec
from generation.datasets.specs import DatasetSpec, LocalDataset
from generation.exceptions import StudyError
from generation.generator_specs import GeneratorSpec, RetrySpec
from generation.identity import identity
from generation.parts import Name, Part, first_complaint, nearest, refuse_duplicates
from generation.transformations import TRANSFORMATIONS

ROOT = Path(__file__).resolve().parents[1]
EXPORTS = ROOT / "exports"
_FIELDS = {
    "sentence_transformers": ("path", "package", "remote_code", "prompts"),
    "mteb": ("remote_code",),
    "openai": ("base_url", "api_key_env", "concurrency", "timeout_seconds", "retries", "prompts"),
}
_ADDRESS = re.compile(r"[a-z0-9][a-z0-9+.-]*://([^:@/?]+@)?[^:@/?]*(:\d+)?(/[^@?]*)?")


class ControlsSpec(Part):
    """Pairs whose answers are known beforehand, so many in each batch of each queue (PTEB, appendix B: one of each)."""

    positive: int = Field(default=1, ge=0, description="almost identical texts")
    negative: int = Field(default=1, ge=0, description="unrelated texts")


class SampleSpec(Part):
    """Which pairs people rate (HTEB, section 2.4: 100 a transformation), and what tells about the raters."""

    pairs: int = Field(default=100, ge=1, description="pairs for each transformation")
    seed: int = Field(default=1337, description="decides which")
    controls: ControlsSpec = ControlsSpec()
    repeats: int = Field(default=1, ge=0, description="pairs of each batch that are shown a second time")
    batch: int = Field(default=50, ge=1, description="pairs of a queue that so many controls and repeats go with")


class SimulatedRater(Part):
    """A made-up rater: the author's own rating, plus this bias, plus normal noise, rounded to the scale."""

    name: Name
    bias: float = 0.0
    noise: float = Field(default=0.5, ge=0)


class RatersSpec(Part):
    """Who rates, and how many for each pair (HTEB, section 2.4: three)."""

    per_pair: int = Field(default=3, ge=1, description="ratings a pair gets; the first ones by time count")
    simulated: tuple[SimulatedRater, ...] = Field(default=(), description="raters for rehearsals; empty in real life")
    simulation_seed: int = 1337

    @field_validator("simulated")
    @classmethod
    def _distinct(cls, value: tuple[SimulatedRater, ...]) -> tuple[SimulatedRater, ...]:
        refuse_duplicates([rater.name for rater in value], "simulated rater")
        return value


class AcceptanceSpec(Part):
    """When a transformation is accepted (HTEB, section 2.4: mean rating of at least 3 on the scale 1 to 5)."""

    threshold: float = Field(default=3.0, description="what the mean must reach, on each question")
    rule: Literal["mean", "lower_bound"] = Field(
        default="mean", description="the mean itself must reach it, or the lower end of its 95% interval"
    )
    interval: Literal["pairs", "pairs_and_raters"] = Field(
        default="pairs", description="of what the ratings are a sample: of pairs alone, or of raters too"
    )
    stop: Literal["fixed", "anytime"] = Field(
        default="fixed", description="judged once, at the end; or by an interval that allows to look after every rating"
    )
    scope: Literal["transformation", "language", "task"] = Field(
        default="language", description="judged on the ratings of all languages, of each, or of each and each task"
    )
    min_pairs: int = Field(default=20, ge=1, description="fewer rated pairs leave the verdict undecided")
    min_raters: int = Field(default=2, ge=1, description="a pair counts as rated from so many ratings on")
    min_ratings: int = Field(default=1, ge=1, description="fewer ratings on any question leave it undecided")
    min_ac2: float | None = Field(
        default=None, ge=-1, le=1, description="less agreement (Gwet's AC2) on any question leaves it undecided"
    )

    @model_validator(mode="after")
    def _has_an_interval(self) -> AcceptanceSpec:
        if self.stop == "anytime" and (self.rule, self.interval) != ("lower_bound", "pairs"):
            raise ValueError("stop 'anytime' goes by an interval over pairs: it needs rule lower_bound, interval pairs")
        return self


class QualitySpec(Part):
    """When a rater's answers are put before a person (PTEB, appendix B), fixed before the first rating."""

    within: int = Field(default=1, ge=0, description="how far answers to controls and repeats may be off")
    least_answers: int = Field(default=20, ge=2, description="pairs that a rater needs before habits are looked at")
    same_answer: float = Field(default=0.95, gt=0, le=1, description="share of pairs with one and the same answer")
    words_a_second: float = Field(default=10.0, gt=0, description="nobody reads faster: 600 words a minute")
    too_fast: float = Field(default=0.25, ge=0, lt=1, description="share of pairs that may be answered faster")
    apart: float = Field(default=1.0, gt=0, description="mean distance from the other raters' mean")
    least_rho: float = Field(default=0.1, ge=-1, le=1, description="least rank correlation with the others' mean")
    low: float = Field(default=2.0, description="pairs with a mean up to this are listed for review")


class ModelSpec(Part):
    """One embedding model. `kind` says what runs it, and which of the fields below it may have (`_FIELDS`)."""

    name: str = Field(description="as the hub, mteb or the server calls it; also the name in tables")
    kind: Literal["sentence_transformers", "mteb", "openai"] = Field(
        default="sentence_transformers",
        description="the library; mteb's model of that name with its own prompts; or any OpenAI-compatible server",
    )
    revision: str = Field(default="", description="hub revision, or the version of local files")
    path: str = Field(default="", description="local folder; empty loads from the hub by name and revision")
    package: str = Field(default="", description="installed Python package that `path` is relative to")
    remote_code: bool = Field(default=False, description="the model may run the Python code that it brings along")
    prompts: dict[str, str] = Field(
        default={}, description="text put before others, by mteb's names: a task, a type of tasks, query or document"
    )
    base_url: str = Field(default="", description="the server's address, ending in /v1")
    api_key_env: str = Field(default="OPENAI_API_KEY", description="environment variable with the key, if it needs one")
    concurrency: int = Field(default=8, ge=1, le=1000, description="requests in flight at once")
    timeout_seconds: float = Field(default=300.0, gt=0, description="for one request")
    retries: int = Field(default=6, ge=0, description="on 429, 5xx and broken connections, with backoff")

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        place = urlsplit(value)
        if place.username or place.password or place.query:  # not quoted: it may hold a key
            raise ValueError("an address with a key in it; the key goes into the variable that api_key_env names")
        if value and (place.scheme not in ("http", "https") or not place.hostname):
            raise ValueError(f"{value!r} is no address; write it like http://127.0.0.1:8000/v1")
        return value

    @model_validator(mode="after")
    def _has_what_its_kind_has(self) -> ModelSpec:
        foreign = sorted(self.model_fields_set - {"name", "kind", "revision", *_FIELDS[self.kind]})
        if foreign:
            raise ValueError(
                f"a model of kind {self.kind} has no {foreign[0]!r}; it has: {', '.join(_FIELDS[self.kind])}"
            )
        if self.kind == "openai" and not self.base_url:
            raise ValueError("a model of kind openai needs `base_url`, such as http://127.0.0.1:8000/v1")
        return self

    def __hash__(self) -> int:
        """Of name and revision, which differ between a study's models."""
        return hash((self.name, self.revision))

    def location(self, base: Path) -> str:
        """Where to load from: a local folder, or the hub's name. Raises StudyError if a local one is missing."""
        if not self.path and not self.package:
            return self.name
        if self.package:
            found = importlib.util.find_spec(self.package)
            if found is None or found.origin is None:
                raise StudyError(f"model {self.name!r}: package {self.package!r} is not installed; pip install it")
            base = Path(found.origin).parent
        folder = base / self.path
        if not folder.is_dir():
            raise StudyError(f"model {self.name!r}: no folder {folder}; correct its `path` in the study")
        return str(folder)


class EvaluationSpec(Part):
    """What the accepted transformations are used for."""

    models: tuple[ModelSpec, ...] = Field(min_length=1)
    protocol: Literal["paper", "mteb"] = Field(
        default="paper", description="classification on the full train split (HTEB), or mteb's own default"
    )
    batch_size: int = Field(default=32, ge=1, description="texts at once; halved where memory does not suffice")
    device: str = Field(default="", description="of torch, such as cuda:1 or cpu; empty: the best there is")
    precision: Literal["float32", "float16", "bfloat16"] = Field(
        default="float32", description="of the models' numbers; embeddings are kept as float32"
    )
    embeddings_gb: float = Field(default=20.0, gt=0, description="disk that the embeddings of all models may take")
    failed: Literal["drop", "original"] = Field(
        default="drop", description="an item whose output failed is dropped, or scored with its original text"
    )

    @field_validator("models")
    @classmethod
    def _distinct(cls, value: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        refuse_duplicates([f"{model.name}@{model.revision}" for model in value], "model")
        return value


class Study(Part):
    """Everything that one round needs; `load_study` reads it."""

    name: Name = Field(description="names the folder exports/<name>/")
    description: str = ""
    datasets: tuple[DatasetSpec, ...] = Field(min_length=1)
    transformations: tuple[str, ...] = tuple(TRANSFORMATIONS)
    prompts: str = Field(default="", description="a folder below prompts/ whose wordings go before the others")
    seeds: tuple[int, ...] = Field(default=(1337, 1338, 1339), min_length=1)
    generator: GeneratorSpec
    candidates: tuple[GeneratorSpec, ...] = Field(default=(), description="other generators, to compare with it")
    retry: RetrySpec = RetrySpec()
    sample: SampleSpec = SampleSpec()
    rubric: str = Field(default="hteb", description="questions and guidelines: prompts/rubrics/<rubric>.yaml")
    raters: RatersSpec = RatersSpec()
    acceptance: AcceptanceSpec = AcceptanceSpec()
    quality: QualitySpec = QualitySpec()
    crowd: CrowdSpec | None = Field(default=None, description="crowd workers, where they are asked")
    evaluation: EvaluationSpec

    _file: Path = PrivateAttr(default=Path("study.yaml"))
    _exports: Path = PrivateAttr(default=EXPORTS)
    _outputs: str = PrivateAttr(default="transformations")

    @field_validator("transformations")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in TRANSFORMATIONS:
                raise ValueError(f"unknown transformation {name!r}; {nearest(name, list(TRANSFORMATIONS))}")
        refuse_duplicates(list(value), "transformation")
        return value

    @field_validator("datasets")
    @classmethod
    def _distinct(cls, value: tuple[DatasetSpec, ...]) -> tuple[DatasetSpec, ...]:
        refuse_duplicates([dataset.name for dataset in value], "data set")
        return value

    @field_validator("candidates")
    @classmethod
    def _distinct_candidates(cls, value: tuple[GeneratorSpec, ...]) -> tuple[GeneratorSpec, ...]:
        refuse_duplicates([f"{spec.model}@{spec.revision}" for spec in value], "candidate")
        return value

    @field_validator("seeds")
    @classmethod
    def _distinct_seeds(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        refuse_duplicates([str(seed) for seed in value], "seed")
        return value

    @model_validator(mode="after")
    def _can_be_decided(self) -> Study:
        rule = self.acceptance
        if rule.min_raters > self.raters.per_pair:
            raise ValueError(
                f"acceptance.min_raters {rule.min_raters} is more than raters.per_pair {self.raters.per_pair}:"
                " no pair would ever count; lower the one or raise the other"
            )
        if rule.min_pairs > self.sample.pairs:
            raise ValueError(
                f"acceptance.min_pairs {rule.min_pairs} is more than sample.pairs {self.sample.pairs}:"
                " every verdict would stay undecided; lower the one or raise the other"
            )
        return self

    @property
    def file(self) -> Path:
        """The YAML file that this study was read from."""
        return self._file

    @property
    def folder(self) -> Path:
        """Where every stage leaves its records: `exports/<name>/`."""
        return self._exports / self.name

    @property
    def scratch(self) -> Path:
        """What must be on this machine (journals, locks): the same folder, or `exports/.remote/` for a remote one."""
        folder = self.folder
        if isinstance(folder, Path):
            return folder
        place = {name: str(value) for name, value in folder.storage_options.items()}  # host and port, where it has them
        return EXPORTS / ".remote" / identity("remote-v1", str(folder), place)[:16]

    def resolve(self, path: str) -> Path:
        """A path of the study file, taken relative to that file."""
        return (self._file.parent / path).resolve()

    def transformation_file(self, transformation: str, seed: int) -> Path:
        """Where the outputs of one unit of generation stand."""
        return self.outputs / transformation / f"{seed}.parquet"

    def journal_file(self, transformation: str, seed: int) -> Path:
        """Where one unit's outputs stand while they come in: always on this machine."""
        return self.scratch / self._outputs / transformation / f"{seed}.journal"

    @property
    def outputs(self) -> Path:
        """The folder of the generator's outputs."""
        return self.folder / self._outputs

    def data_files(self) -> list[Path]:
        """The files and folders that hold the study's local data sets."""
        return [self.resolve(spec.path) for spec in self.datasets if isinstance(spec, LocalDataset)]

    def generator_called(self, model: str) -> GeneratorSpec:
        """The generator or candidate with a model's name. Raises StudyError for one that the study does not have."""
        known = {spec.model: spec for spec in (*self.candidates, self.generator)}
        if model not in known:
            raise StudyError(f"{self.file}: no generator {model!r}; {nearest(model, list(known))}")
        return known[model]

    def by(self, generator: GeneratorSpec) -> Study:
        """The same study with one of its `candidates` for a generator; its outputs have a folder of their own."""
        if generator == self.generator:
            return self
        study = self.model_copy(update={"generator": generator})
        plain = re.sub(r"[^a-z0-9]+", "-", generator.model.lower()).strip("-")
        study._outputs = f"candidates/{plain}-{identity('candidate-v1', *generator.identity())[:8]}"
        return study


def load_study(file: str | Path, exports: str | Path | None = None) -> Study:
    """Read a study.

    `exports` is the folder that holds the studies' records (default: `exports/` of this checkout). Raises
    StudyError with the file, the field and what to do for anything that is not a study.
    """
    path = Path(file)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise StudyError(f"no study file {path}; the samples are in studies/") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: cannot be read: {error}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none, such as 2024-13-45
        raise StudyError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise StudyError(f"{path}: a study is a mapping of keys to values; see studies/demo.yaml")
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        raise StudyError(f"{path}: {first_complaint(error)}") from None
    study._file = path.resolve()
    if exports is not None:
        study._exports = _exports(exports)
    return study


def _exports(exports: str | Path) -> Path:
    """The folder for records: a local one, or any that fsspec knows (`s3://bucket/studies`)."""
    if "://" not in str(exports):
        return Path(exports).resolve()
    if not _ADDRESS.fullmatch(str(exports)):  # not quoted: it may hold a key
        raise StudyError(
            "--exports: an address is like s3://bucket/folder; keys, passwords and options do not belong into it,"
            " the protocol's package takes them from the environment (docs/cluster.md)"
        )
    from upath import UPath  # noqa: PLC0415 (most studies stay on their machine)

    try:
        place = UPath(exports)
        place.exists()  # asks for the protocol's package and for rights, before any work is done
    except ImportError as error:
        raise StudyError(f"--exports {exports}: {error}; `pip install` what it names") from None
    except Exception as error:  # each protocol has errors of its own
        raise StudyError(f"--exports {exports}: {error or type(error).__name__}") from None
    return Path(place.path) if place.protocol in ("file", "local") else cast("Path", place)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, or of a folder's files with their names, in order."""
    digest = hashlib.sha256()
    files = sorted((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.parts) if path.is_dir() else [path]
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class _StrictLoader(yaml.SafeLoader):
    """YAML as safe as PyYAML's, that also refuses a key given twice (PyYAML silently takes the last)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep=deep)
