"""What `manifest.json` of a bundle says: the members' hashes, and in words what one must know before using them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plumbline.errors import DataError
from plumbline.reading import MalformedError, parse_json
from plumbline.study.base import first_complaint

FORMAT: Literal["plumbline bundle"] = "plumbline bundle"
VERSION = 1


class _Statement(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArchiveMember(_Statement):
    """One file in the archive."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of its bytes")
    size: int = Field(ge=0, description="its bytes")


class DatasetSource(_Statement):
    """A data set that the bundle's outputs are of."""

    name: str = Field(description="its name in every record")
    kind: Literal["local", "mteb"] = Field(description="a file of the maker's, or a task of mteb")
    task: str = Field(description="its task")
    revision: str = Field(description="of a file the hash of its bytes; of mteb's repository@commit on the hub")
    texts: Literal["include", "reference"] = Field(description="whether its texts are in the bundle")
    n_texts: int = Field(ge=0, description="distinct texts that were transformed")
    languages: tuple[str, ...] = Field(description="codes of these")
    licence: str = Field(description="of its texts")
    citation: str = Field(default="", description="BibTeX")
    reference: str = Field(default="", description="address of a page about it")
    domains: tuple[str, ...] = Field(default=(), description="what the texts are, in mteb's words")


class BundleManifest(_Statement):
    """The whole of it. Its own hash is the bundle's identity."""

    format: Literal["plumbline bundle"] = Field(default=FORMAT, description="what this is")
    version: int = Field(default=VERSION, ge=1, le=VERSION, strict=True, description="of the format")
    made_with: str = Field(description="version of Plumbline")
    study: str = Field(description="name of the study")
    description: str = Field(description="the study's own")
    edition: str = Field(description="the maker's own version of it")
    licence: str = Field(description="of outputs and ratings")
    citation: str = Field(description="BibTeX")
    contact: str = Field(description="whom to write to")
    creators: tuple[str, ...] = Field(default=(), description="who made it")
    reference: str = Field(default="", description="address of a page about it")
    published: str = Field(default="", description="the day of its publication")
    simulated: bool = Field(description="true if any rating is a program's and no person's")
    comments: bool = Field(description="whether raters' free words are in it")
    datasets: tuple[DatasetSource, ...] = Field(description="what was transformed")
    generator: dict[str, Any] = Field(description="kind (`recorded`: replayed from files), model, revision, sampling")
    rated: tuple[str, str] = Field(description="days of the first and of the last rating")
    members: dict[str, ArchiveMember] = Field(description="every other file in the archive")

    def to_bytes(self) -> bytes:
        """It as it stands in the archive."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def read_manifest(content: bytes, where: str) -> tuple[BundleManifest, str]:
    """(a manifest, the bundle's identity). Raises DataError for what is none, and for one of a later format."""
    advice = "get it again from where it came from"
    try:
        said = parse_json(content)
    except MalformedError as error:
        raise DataError(f"{where}: its manifest is damaged ({error}); {advice}") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise DataError(f"{where} is no bundle (its manifest does not say {FORMAT!r}); {advice}")
    if isinstance(said.get("version"), int) and said["version"] > VERSION:
        raise DataError(
            f"{where} is of format {said['version']}, and this version reads {VERSION} and earlier: update Plumbline"
        )
    try:
        return BundleManifest.model_validate(said), hashlib.sha256(content).hexdigest()
    except ValidationError as error:
        raise DataError(f"{where}: its manifest is damaged ({first_complaint(error)}); {advice}") from None
