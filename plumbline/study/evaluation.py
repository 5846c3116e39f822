"""A study's embedding models, and the settings of their evaluation."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from plumbline.addresses import refuse_no_address
from plumbline.errors import StudyError, nearest
from plumbline.study.base import Line, StudyPart, refuse_duplicates
from plumbline.study.engines import HttpSettings

_FIELDS = {
    "sentence_transformers": ("path", "package", "prompts", "instruction_template", "remote_code"),
    "mteb": ("instruction_template", "remote_code"),
    "word_vectors": ("path", "package", "instruction_template"),
    "lexical": ("instruction_template",),
    "openai": ("base_url", "prompts", "instruction_template", "settings"),
}
_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]{0,95}(/[A-Za-z0-9_][\w.-]{0,95})?", re.ASCII)
CROISSANT_FIELDS = ("creator", "datePublished", "url", "version", "citeAs")
INSTRUCTION = "{instruction}"  # its place in a template


def refuse_no_repository(name: str) -> None:
    """Raise StudyError for a name that no model on the hub can have."""
    if not _REPOSITORY.fullmatch(name) or ".." in name or "--" in name or name.endswith(".git"):
        raise StudyError(f"model {name!r} is not a valid name on the hub; write OWNER/NAME, or give it a `path`")


def refuse_no_model(folder: Path, name: str, files: Sequence[str] = ("config.json", "modules.json")) -> None:
    """Raise StudyError for a folder that contains no model (none of these files), before its files are read."""
    if not any((folder / file).is_file() for file in files):
        raise StudyError(f"model {name!r}: {folder} contains no model (no {' or '.join(files)}); correct the path")


class ModelSpec(StudyPart):
    """One embedding model; `kind` determines the software that runs it, and the keys that it may have (`_FIELDS`)."""

    name: Line = Field(description="the model's name on the hub, in mteb or on the server; also its name in tables")
    kind: Literal["sentence_transformers", "mteb", "openai", "word_vectors", "lexical"] = Field(
        default="sentence_transformers",
        description=(
            "the software that runs the model: sentence_transformers; mteb, with mteb's prompts for the model; openai:"
            " an OpenAI-compatible server; word_vectors: averaged word vectors; lexical: hashed character n-grams"
        ),
    )
    revision: str = Field(default="", description="revision on the hub, or your own version label for local files")
    path: str = Field(
        default="",
        description=(
            "the model's local folder; default: the model is loaded from the hub, by name and revision. For"
            " word_vectors: a folder with one .npy array, a row for each word, and the rows' words in a .txt file,"
            " one a line, or in a .parquet file's first column"
        ),
    )
    package: str = Field(default="", description="installed Python package that `path` is relative to")
    remote_code: bool = Field(default=False, description="allow the model to run its own Python code")
    prompts: dict[str, str] = Field(
        default={}, description="prefixes, by the name that mteb uses: a task, a task type, `query` or `document`"
    )
    instruction_template: str = Field(
        default="",
        description=(
            "the prefix of each text, with {instruction} in it (docs/instructions.md); default: mteb's template for"
            " the model, else the instruction and a space"
        ),
    )
    base_url: str = Field(default="", description="the server's address, ending in /v1")
    settings: HttpSettings = Field(default=HttpSettings(), description="openai: the server's settings")

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        if value:
            refuse_no_address(value, "http://127.0.0.1:8000/v1 (put a key into the variable that api_key_env names)")
        return value

    @model_validator(mode="after")
    def _has_what_its_kind_has(self) -> ModelSpec:
        foreign = sorted(self.model_fields_set - {"name", "kind", "revision", *_FIELDS[self.kind]})
        if foreign:
            raise ValueError(
                f"a model of kind {self.kind} takes no {foreign[0]!r}; it takes: {', '.join(_FIELDS[self.kind])}"
            )
        if self.instruction_template and INSTRUCTION not in self.instruction_template:
            raise ValueError(f"instruction_template: must contain {INSTRUCTION}, the place of the instruction")
        if self.kind == "openai" and not self.base_url:
            raise ValueError("a model of kind openai needs `base_url`, such as http://127.0.0.1:8000/v1")
        if self.kind == "word_vectors" and not (self.path or self.package):
            raise ValueError("a model of kind word_vectors needs `path`, the folder of its files")
        return self

    def __hash__(self) -> int:
        """Hash name and revision, which differ between a study's models."""
        return hash((self.name, self.revision))

    @property
    def requests(self) -> int:
        """The number of requests in flight to a model behind a server."""
        return self.settings.concurrency or 8

    @property
    def from_hub(self) -> bool:
        """Whether its files come from a hub."""
        return self.kind in ("sentence_transformers", "mteb") and not (self.path or self.package)

    def location(self, base: Path) -> str:
        """Return the local folder or the hub's name to load from. Raises StudyError if a local folder is missing."""
        if not self.path and not self.package:
            if self.kind == "sentence_transformers":
                refuse_no_repository(self.name)
            return self.name
        if self.package:
            try:
                module_spec = importlib.util.find_spec(self.package)
            except (ImportError, ValueError, TypeError, AttributeError):  # of a package in one that is not there
                module_spec = None
            if module_spec is None or module_spec.origin is None:
                raise StudyError(f"model {self.name!r}: package {self.package!r} is not installed; install it with pip")
            base = Path(module_spec.origin).parent
        folder = base / self.path
        if not folder.is_dir():
            raise StudyError(f"model {self.name!r}: no folder {folder}; correct its `path` in the study")
        if self.kind == "sentence_transformers":
            refuse_no_model(folder, self.name)
        return str(folder)


class EvaluationSpec(StudyPart):
    """The models to score on accepted transformations, and the settings of the scoring."""

    models: tuple[ModelSpec, ...] = Field(min_length=1, description="the models to score")
    protocol: Literal["paper", "mteb"] = Field(
        default="paper", description=("paper: classification on the full train split, as in HTEB; mteb: mteb's default")
    )
    batch_size: int = Field(
        default=32, ge=1, le=10**6, description="texts per forward pass; halved when memory runs out"
    )
    precision: Literal["float32", "float16", "bfloat16"] = Field(
        default="float32", description="data type of the models' weights; embeddings are stored as float32"
    )
    abstention: bool = Field(
        default=False,
        description=(
            "also measure abstention: whether a model's confidence shows which queries to leave unanswered (curves and"
            " nAUC)"
        ),
    )

    carry_over: bool = Field(
        default=False,
        description=(
            "also score accepted transformations on data sets and seeds that no sample was drawn from; every table says"
            " so"
        ),
    )

    @field_validator("models")
    @classmethod
    def _distinct(cls, value: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        refuse_duplicates([f"{model.name}@{model.revision}" for model in value], "model")
        return value


class NoEvaluation(EvaluationSpec):
    """No evaluation: the study scores no models on transformed texts."""

    models: tuple[ModelSpec, ...] = ()


class BundleSpec(StudyPart):
    """The facts that a bundle adds to the records."""

    licence: str = Field(default="", description="licence of outputs and ratings, such as cc-by-4.0")
    licences: dict[str, Line] = Field(
        default={},
        description="licence of each data set's texts, by its name in the study; default for a task of mteb: mteb's",
    )
    withheld: tuple[str, ...] = Field(
        default=(),
        description=(
            "data sets whose texts may not be redistributed: the bundle omits them, and its users supply them from the"
            " hub or a file, checked against hashes"
        ),
    )
    metadata: dict[str, str] = Field(
        default={},
        description=(
            "further facts about the bundle in Croissant's words: creator, datePublished (such as 2026-03-01), url,"
            " version, citeAs (BibTeX)"
        ),
    )

    @field_validator("metadata")
    @classmethod
    def _known_fields(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name not in CROISSANT_FIELDS:
                raise ValueError(f"unknown field {name!r}; {nearest(name, list(CROISSANT_FIELDS))}")
        if not re.fullmatch(r"(\d{4}-\d{2}-\d{2})?", value.get("datePublished", "")):
            raise ValueError("datePublished: must be a date such as 2026-03-01")
        return value
