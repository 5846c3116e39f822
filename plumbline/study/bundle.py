"""What a study says of itself when it is handed on as a bundle (docs/bundle.md). No number hangs on it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.study.base import Line, Part


class RightsSpec(Part):
    """Whose a data set's texts are, and whether they may be handed on."""

    licence: Line = Field(description="of the texts, such as cc-by-4.0; mteb's own word for a task of mteb if unset")
    texts: Literal["include", "reference"] = Field(
        default="include",
        description="`reference` where the texts may not be handed on: they stay out, and whoever uses the bundle"
        " has them from the hub, or from a file of their own, held against their hashes",
    )
    citation: str = Field(default="", description="BibTeX")
    reference: str = Field(default="", description="address of a page about it")
    domains: tuple[str, ...] = Field(default=(), description="what the texts are, in mteb's words, such as News")


class BundleSpec(Part):
    """What a bundle says beside the records."""

    edition: Line = Field(default="1", description="of this bundle, such as 1 or 2026-03")
    licence: str = Field(default="", description="of outputs and ratings, such as cc-by-4.0")
    citation: str = Field(default="", description="BibTeX")
    contact: str = Field(default="", description="whom to write to")
    creators: tuple[Line, ...] = Field(default=(), description="who made it, as they want to be named")
    reference: str = Field(default="", description="address of a page about it")
    published: str = Field(
        default="", pattern=r"^(\d{4}-\d{2}-\d{2})?$", description="the day of its publication, such as 2026-03-01"
    )
    datasets: dict[str, RightsSpec] = Field(default={}, description="by the data set's name in the study")
