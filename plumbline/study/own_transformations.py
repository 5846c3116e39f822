"""Transformations of a study's own: written out in it, or in files that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plumbline.errors import DataError, StudyError
from plumbline.reading import read_yaml
from plumbline.study.base import first_complaint
from plumbline.study.generator import GeneratorSpec, RecordedGenerator
from plumbline.study.transformations import EIGHT, Transformation


def own_transformations(entries: Sequence[Any], base: Path) -> tuple[list[Any], dict[str, Transformation]]:
    """The names of a study's `transformations`, and those of its own that stand in it or in files that it names.

    What is no entry of one's own (a name, or what is none) is left as it is. Raises StudyError with the place.
    """
    names, own = list[Any](), dict[str, Transformation]()
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict):
            names.append(entry)
            continue
        one = _read(entry, base, f"transformations.{place}")
        if one.name in own:
            raise StudyError(f"transformations.{place}: {one.name!r} appears twice; give each its own name")
        names.append(one.name)
        own[one.name] = one
    refuse_mixed_up(own)
    return names, own


def within_languages(
    kinds: Mapping[str, Transformation], codes: Sequence[str], generator: GeneratorSpec
) -> dict[str, Transformation]:
    """Those of a study's transformations that put texts into its `languages` (codes), limited to these.

    Raises StudyError where none does, and where recordings say the languages.
    """
    if not codes:
        return {}
    if isinstance(generator, RecordedGenerator) and generator.languages == "recorded":
        raise StudyError("languages: generator.languages takes those of the recordings; leave one of the two out")
    found = {name: kind.within(codes) for name, kind in kinds.items()}
    limited = {name: kind for name, kind in found.items() if kind is not kinds[name]}
    if not limited:
        raise StudyError("languages: no transformation of the study puts texts into another language; leave it out")
    return limited


def _read(entry: dict[Any, Any], base: Path, where: str) -> Transformation:
    """A transformation of one's own, from a mapping or the file that it names."""
    file = None
    if set(entry) == {"path"} and isinstance(entry["path"], str):
        file = base / entry["path"]
        where = f"{where}: {file}"
        try:
            entry = read_yaml(file)
        except FileNotFoundError:
            raise StudyError(f"{where}: there is no such file; correct its `path`") from None
        except DataError as error:
            raise StudyError(str(error)) from None
        if not isinstance(entry, dict):
            raise StudyError(f"{where}: a transformation is a mapping with a name, an axis and what makes its texts")
    try:
        found = Transformation.model_validate(entry)
    except ValidationError as error:
        raise StudyError(f"{where}: {first_complaint(error)}") from None
    if found.order is not None:
        raise StudyError(f"{where}: `order` is for HTEB's transformations; take it out")
    return found.placed(file.parent if file else base, file)


def refuse_mixed_up(own: Mapping[str, Transformation]) -> None:
    """Raise StudyError for what would make a number of HTEB's another one, or one name two things."""
    axes = {one.axis for one in EIGHT.values()}
    for name, one in own.items():
        where = f"transformation {name!r}"
        if name in EIGHT:
            raise StudyError(f"{where} is one of HTEB's eight; give yours another name")
        if name in axes or one.axis in axes:
            what = f"axis {one.axis!r}" if one.axis in axes else "its name"
            raise StudyError(
                f"{where}: {what} is an axis of HTEB, which holds HTEB's transformations alone; choose another"
            )
        if one.axis in EIGHT or one.axis in own:
            raise StudyError(
                f"{where}: its axis {one.axis!r} is also a transformation's name; call one of them otherwise"
            )
        other = own.get(one.rated_with)
        if one.rated_with and (other is None or other is one or other.rated_with or other.axis != one.axis):
            raise StudyError(
                f"{where}: rated_with {one.rated_with!r} must be another of the study's own, of the same axis and rated"
                " by itself"
            )
