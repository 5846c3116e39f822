"""A study's embedding models, and the settings of their evaluation."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

from pydantic import Field, field_validator, model_validator

from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.resources import version_of
from plumbline.study.base import Line, PartOfKinds, StudyPart, distinct
from plumbline.study.engines import Address, HttpSettings

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


class ModelSpec(PartOfKinds):
    """One embedding model; `kind` determines the software that runs it, and which of the keys it has."""

    KINDS: ClassVar[dict[str, type[Any]]] = {}
    NOUN: ClassVar[str] = "a model"
    RUNS: ClassVar[str]  #: the `evaluation.models.text_models.TextModel` that runs it, as module:class
    PACKAGES: ClassVar[tuple[str, ...]] = ()  #: packages whose versions decide its embeddings
    LIGHT: ClassVar[bool] = True  #: whether it needs neither a GPU nor many CPUs
    PAID: ClassVar[bool] = False  #: whether texts cost money or time of others, so that none may be encoded in vain
    FROM_HUB: ClassVar[bool] = False  #: whether it is on a hub, unless its files are local

    name: Line = Field(description="the model's name on the hub, in mteb or on the server; also its name in tables")
    kind: str = Field(
        default="sentence_transformers",
        description=(
            "the software that runs the model: sentence_transformers; mteb, with mteb's prompts for the model; openai:"
            " an OpenAI-compatible server; word_vectors: averaged word vectors; lexical: hashed character n-grams"
        ),
    )
    revision: str = Field(default="", description="revision on the hub, or your own version label for local files")
    instruction_template: str = Field(
        default="",
        description=(
            "the prefix of each text, with {instruction} in it (docs/instructions.md); default: mteb's template for"
            " the model, else the instruction and a space"
        ),
    )

    @field_validator("instruction_template")
    @classmethod
    def _has_a_place(cls, value: str) -> str:
        if value and INSTRUCTION not in value:
            raise ValueError(f"must contain {INSTRUCTION}, the place of the instruction")
        return value

    def __hash__(self) -> int:
        """Hash name and revision, by which most of a study's models differ."""
        return hash((self.name, self.revision))

    @property
    def variant(self) -> str:
        """Its revision, and the settings that make several models of one name and revision; empty for none."""
        return self.revision

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prompts that the study gives it, by name."""
        return {}

    @property
    def requests(self) -> int:
        """The number of batches that it encodes at the same time."""
        return 1

    @property
    def from_hub(self) -> bool:
        """Whether its files come from a hub."""
        return self.FROM_HUB

    @property
    def is_for_anybody(self) -> bool:
        """Whether anybody can load it by these keys: it comes from a hub, or needs no files."""
        return self.from_hub

    def refuse_unloadable(self) -> None:
        """Raise StudyError for a name that cannot be loaded, before anything is."""

    def location(self, base: Path) -> str:
        """Return the local folder or the hub's name to load from. Raises StudyError if a local folder is missing."""
        return self.name

    def fingerprint(self, base: Path, hash_of: Callable[[Path], str]) -> str:
        """Return the identity of what it is made of on this machine; empty if its name and revision say all.

        `base` is the study file's folder, `hash_of` gives the hash of a folder's files.
        """
        return ""

    def identity(self, fingerprint: str, precision: str) -> list[Any]:
        """Return what decides its embeddings; `precision` is that of weights."""
        return [self.name, self.revision, fingerprint, {**self._of_prompts(), "kind": self.kind}]

    def _of_prompts(self) -> dict[str, Any]:
        return {"prompts": self.prefixes} if self.prefixes else {}


class _PromptedSpec(ModelSpec):
    """A model that the study may give prompts."""

    prompts: dict[str, str] = Field(
        default={}, description="prefixes, by the name that mteb uses: a task, a task type, `query` or `document`"
    )

    @property
    def prefixes(self) -> Mapping[str, str]:
        return self.prompts


class _OwnCodeSpec(ModelSpec):
    """A model whose files may have code of its own; torch runs it in this process."""

    PACKAGES: ClassVar[tuple[str, ...]] = ("sentence-transformers", "transformers", "torch")
    LIGHT: ClassVar[bool] = False
    FROM_HUB: ClassVar[bool] = True

    remote_code: bool = Field(default=False, description="allow the model to run its own Python code")


class _FilesSpec(ModelSpec):
    """A model that may be in a local folder."""

    path: str = Field(
        default="",
        description=(
            "the model's local folder; default: the model is loaded from the hub, by name and revision. For"
            " word_vectors: a folder with one .npy array, a row for each word, and the rows' words in a .txt file,"
            " one a line, or in a .parquet file's first column"
        ),
    )
    package: str = Field(default="", description="installed Python package that `path` is relative to")

    @property
    def local(self) -> bool:
        """Whether its files are in a folder or package of this machine."""
        return bool(self.path or self.package)

    @property
    def from_hub(self) -> bool:
        return self.FROM_HUB and not self.local

    def location(self, base: Path) -> str:
        if not self.local:
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
        return str(folder)

    def fingerprint(self, base: Path, hash_of: Callable[[Path], str]) -> str:
        """Return the hash of a local model's files; `missing` for a missing folder, which loading reports."""
        if not self.local:
            return ""
        try:
            return hash_of(Path(self.location(base)))
        except StudyError:
            return "missing"


class SentenceTransformersSpec(_FilesSpec, _PromptedSpec, _OwnCodeSpec):
    """A model of sentence-transformers."""

    RUNS: ClassVar[str] = "evaluation.models.in_process:SentenceTransformerModel"

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    truncate_dim: int | None = Field(
        default=None,
        ge=1,
        description="of an embedding only so many first dimensions, for models trained for that (Matryoshka)",
    )

    @property
    def variant(self) -> str:
        dimensions = f"dim={self.truncate_dim}" if self.truncate_dim else ""
        return ",".join(filter(None, (self.revision, dimensions)))

    def refuse_unloadable(self) -> None:
        if self.from_hub:
            refuse_no_repository(self.name)

    def location(self, base: Path) -> str:
        """Return the folder or the hub's name. Raises StudyError if the folder or name can have no model."""
        self.refuse_unloadable()
        folder_or_name = super().location(base)
        if self.local:
            refuse_no_model(Path(folder_or_name), self.name)
        return folder_or_name

    def identity(self, fingerprint: str, precision: str) -> list[Any]:
        """Return what decides its embeddings: of the usual kind, which has no name here, so also the precision."""
        parts = [self.name, self.revision, fingerprint]
        settings = {**self._of_prompts(), **({"truncate_dim": self.truncate_dim} if self.truncate_dim else {})}
        return [*parts, *([precision] if precision != "float32" else []), *([settings] if settings else [])]


class MtebSpec(_OwnCodeSpec):
    """A model registered in mteb, which loads and prompts it."""

    RUNS: ClassVar[str] = "evaluation.models.registered:MtebModel"

    kind: Literal["mteb"] = "mteb"

    def identity(self, fingerprint: str, precision: str) -> list[Any]:
        settings = {"kind": self.kind, "mteb": version_of("mteb")}
        return [self.name, self.revision, fingerprint, settings]


class EmbeddingServerSpec(_PromptedSpec):
    """A model behind an OpenAI-compatible server."""

    RUNS: ClassVar[str] = "evaluation.models.server:ServerModel"
    PAID: ClassVar[bool] = True

    kind: Literal["openai"] = "openai"
    base_url: Address = Field(description="the server's address, ending in /v1")
    settings: HttpSettings = Field(default=HttpSettings(), description="openai: the server's settings")

    @property
    def requests(self) -> int:
        return self.settings.concurrency or 8

    @property
    def by_role(self) -> bool:
        """Whether a field of requests depends on the texts' role."""
        return any(map(_is_by_role, self.settings.request.values()))

    def fields(self, role: str) -> dict[str, Any]:
        """Return the study's fields of requests, for texts of a role; those without one are documents, as in mteb."""
        return {
            name: (value.get(role) if role else value.get("text", value.get("document")))
            if _is_by_role(value)
            else value
            for name, value in self.settings.request.items()
        }

    def identity(self, fingerprint: str, precision: str) -> list[Any]:
        request = self.settings.request
        return [*super().identity(fingerprint, precision), *([{"request": request}] if request else [])]


def _is_by_role(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and bool(value) and value.keys() <= {"query", "document", "text"}


class WordVectorsSpec(_FilesSpec):
    """Averaged word vectors."""

    RUNS: ClassVar[str] = "evaluation.models.server:WordVectors"

    kind: Literal["word_vectors"] = "word_vectors"

    @model_validator(mode="after")
    def _has_files(self) -> WordVectorsSpec:
        if not self.local:
            raise ValueError("a model of kind word_vectors needs `path`, the folder of its files")
        return self


class LexicalSpec(ModelSpec):
    """Hashed character n-grams."""

    RUNS: ClassVar[str] = "evaluation.models.server:CharacterNgrams"
    NGRAMS: ClassVar[tuple[int, int]] = (3, 5)  #: shortest and longest n-gram, in characters
    DIMENSIONS: ClassVar[int] = 2048  #: buckets that n-grams are hashed into

    kind: Literal["lexical"] = "lexical"

    @property
    def is_for_anybody(self) -> bool:
        return True

    def fingerprint(self, base: Path, hash_of: Callable[[Path], str]) -> str:
        return identity("lexical-v1", list(self.NGRAMS), self.DIMENSIONS)


class EvaluationSpec(StudyPart):
    """The models to score on accepted transformations, and the settings of the scoring."""

    models: Annotated[
        tuple[ModelSpec, ...],
        Field(min_length=1, description="the models to score"),
        distinct("model", lambda model: f"{model.name}@{model.variant}"),
    ]
    protocol: Literal["paper", "mteb"] = Field(
        default="paper", description="paper: classification on the full train split, as in HTEB; mteb: mteb's default"
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
