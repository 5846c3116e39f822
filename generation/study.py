"""A study: one YAML file that says everything that the stages share, read into one frozen model.

Unknown keys are refused with the nearest valid name, paths are relative to the study file, secrets never
stand in it (a study names the environment variable that holds them).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from generation.exceptions import StudyError
from generation.languages import language_code
from generation.transformations import TRANSFORMATIONS

ROOT = Path(__file__).resolve().parents[1]
EXPORTS = ROOT / "exports"

TaskType = Literal["sts", "pair_classification", "classification", "clustering", "reranking", "retrieval"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


def nearest(name: str, known: list[str]) -> str:
    """A hint for a wrong name: the nearest known one, or all of them where none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"


class Part(BaseModel):
    """Base of all parts of a study: frozen, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}; {nearest(str(key), list(cls.model_fields))}")
        return data


class DatasetSpec(Part):
    """One local data set; `generation.datasets` reads it and says which columns each task needs."""

    name: Name = Field(description="the data set's name in every record and table")
    task: TaskType = Field(description="what embeddings are used for; decides columns, metric and evaluator")
    path: str = Field(description="a CSV, TSV, JSONL or Parquet file, or a folder in BEIR's layout for retrieval")
    language: str = Field(description="language of the texts, BCP 47 or ISO 639-3")
    rows: Literal["test", "all"] = Field(default="test", description="score the test split alone, or all rows as one")
    columns: dict[str, str] = Field(default={}, description="needed column: the file's own name for it")

    @field_validator("language")
    @classmethod
    def _one_code(cls, value: str) -> str:
        return _known_language(value)


class Sampling(Part):
    """How the generator picks tokens; part of every output's identity. Defaults: HTEB, appendix A.1."""

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=1024, ge=1)


class RecordedGenerator(Part):
    """Serves outputs that stand in files (`generation.generators.recorded`)."""

    kind: Literal["recorded"]
    model: str = Field(description="what wrote the outputs")
    revision: str = Field(default="", description="its version")
    path: str = Field(description="a JSONL file of outputs, or a folder of such files")
    sampling: Sampling = Sampling()


class OpenAIGenerator(Part):
    """Any OpenAI-compatible chat server: vLLM's, Ollama's, llama.cpp's (`generation.generators.openai`)."""

    kind: Literal["openai"]
    model: str = Field(description="the model's name as the server knows it")
    revision: str = Field(default="", description="the model's revision, for the record: servers do not tell it")
    base_url: str = Field(description="the server's address, ending in /v1")
    api_key_env: str = Field(default="OPENAI_API_KEY", description="environment variable with the key, if it needs one")
    sampling: Sampling = Sampling()
    concurrency: int = Field(default=32, ge=1, le=1000, description="requests in flight at once")
    timeout_seconds: float = Field(default=300.0, gt=0, description="for one request")
    retries: int = Field(default=6, ge=0, description="on 429, 5xx and broken connections, with backoff")


GeneratorSpec = Annotated[RecordedGenerator | OpenAIGenerator, Field(discriminator="kind")]


class SampleSpec(Part):
    """Which pairs people rate (HTEB, section 2.4: 100 a transformation)."""

    pairs: int = Field(default=100, ge=1, description="pairs for each transformation")
    seed: int = Field(default=1337, description="decides which")


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
        _refuse_duplicates([rater.name for rater in value], "simulated rater")
        return value


class AcceptanceSpec(Part):
    """When a transformation is accepted (HTEB, section 2.4: mean rating of at least 3 on the scale 1 to 5)."""

    threshold: float = Field(default=3.0, description="least mean rating, for each question")
    min_pairs: int = Field(default=20, ge=1, description="fewer rated pairs leave the verdict undecided")
    min_raters: int = Field(default=2, ge=1, description="a pair counts as rated from so many ratings on")


class ModelSpec(Part):
    """One embedding model, loaded by sentence-transformers."""

    name: str = Field(description="hub name; also the name in tables")
    revision: str = Field(default="", description="hub revision, or the version of local files")
    path: str = Field(default="", description="local folder; empty loads from the hub by name and revision")
    package: str = Field(default="", description="installed Python package that `path` is relative to")

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
    batch_size: int = Field(default=32, ge=1)

    @field_validator("models")
    @classmethod
    def _distinct(cls, value: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        _refuse_duplicates([f"{model.name}@{model.revision}" for model in value], "model")
        return value


class Study(Part):
    """Everything that one round needs; `load_study` reads it."""

    name: Name = Field(description="names the folder exports/<name>/")
    description: str = ""
    datasets: tuple[DatasetSpec, ...] = Field(min_length=1)
    transformations: tuple[str, ...] = tuple(TRANSFORMATIONS)
    seeds: tuple[int, ...] = Field(default=(1337, 1338, 1339), min_length=1)
    generator: GeneratorSpec
    sample: SampleSpec = SampleSpec()
    rubric: str = Field(default="hteb", description="questions and guidelines: prompts/rubrics/<rubric>.yaml")
    raters: RatersSpec = RatersSpec()
    acceptance: AcceptanceSpec = AcceptanceSpec()
    evaluation: EvaluationSpec

    _file: Path = PrivateAttr(default=Path("study.yaml"))
    _exports: Path = PrivateAttr(default=EXPORTS)

    @field_validator("transformations")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in TRANSFORMATIONS:
                raise ValueError(f"unknown transformation {name!r}; {nearest(name, list(TRANSFORMATIONS))}")
        _refuse_duplicates(list(value), "transformation")
        return value

    @field_validator("datasets")
    @classmethod
    def _distinct(cls, value: tuple[DatasetSpec, ...]) -> tuple[DatasetSpec, ...]:
        _refuse_duplicates([dataset.name for dataset in value], "data set")
        return value

    @field_validator("seeds")
    @classmethod
    def _distinct_seeds(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        _refuse_duplicates([str(seed) for seed in value], "seed")
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

    def resolve(self, path: str) -> Path:
        """A path of the study file, taken relative to that file."""
        return (self._file.parent / path).resolve()

    def transformation_file(self, transformation: str, seed: int) -> Path:
        """Where the outputs of one unit of generation stand."""
        return self.folder / "transformations" / transformation / f"{seed}.parquet"


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
        study._exports = Path(exports).resolve()
    return study


def first_complaint(error: ValidationError) -> str:
    """The first complaint of a validation in one line: where, then what."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {what}{more}" if where else f"{what}{more}"


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, or of a folder's files with their names, in order."""
    digest = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        digest.update(str(file.relative_to(path)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _refuse_duplicates(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} stands there twice; give each its own name")


def _known_language(value: str) -> str:
    try:
        return language_code(value)
    except StudyError as error:
        raise ValueError(str(error)) from None


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
