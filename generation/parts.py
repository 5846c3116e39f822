"""What all parts of a study share: strict and frozen models, and complaints in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_KINDS = ("local", "mteb", "recorded", "openai", "vllm")
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


def first_complaint(error: ValidationError) -> str:
    """The first complaint of a validation in one line: where, then what."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in _plain(first["loc"]))
    what = first["msg"].removeprefix("Value error, ")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {what}{more}" if where else f"{what}{more}"


def _plain(place: tuple[int | str, ...]) -> Iterator[int | str]:
    """A place in a study as its file has it: pydantic adds which kind of data set or generator it took it for."""
    for before, part in zip((None, *place), place, strict=False):
        if not (part in _KINDS and (isinstance(before, int) or before == "generator")):
            yield part


def refuse_duplicates(names: list[str], what: str) -> None:
    """Raise ValueError for a name that stands there twice; `what` says what is named."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} stands there twice; give each its own name")
