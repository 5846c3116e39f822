"""What differs between two sets of rules, in words that name the place in the study's file or in its rubric."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from plumbline.study.base import Part
from plumbline.study.campaign import AcceptanceSpec, QualitySpec

_LONGEST = 80  # characters of a wording that are quoted
_BEFORE = 20  # of them, those before the first that differs
_SPECS: dict[str, type[Part]] = {"acceptance": AcceptanceSpec, "quality": QualitySpec}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs: `acceptance.threshold 3.0, now 2.5`, `rubric.questions.quality is gone`.

    What the earlier set does not know at all (the rubric, which earlier versions did not fix; a rule that they did not
    have, where it has its default) is no change.
    """
    found: list[str] = []
    for part in before:
        old = {**_defaults(part), **before[part]} if isinstance(before[part], dict) else before[part]
        found += _differences(part, _named(old), _named(after.get(part, {})))
    return found


def _defaults(part: str) -> dict[str, Any]:
    return _SPECS[part]().model_dump(mode="json") if part in _SPECS else {}


def _named(value: Any) -> Any:
    """The value with lists of things that have names as mappings by name, in their order."""
    if isinstance(value, Mapping):
        return {str(key): _named(one) for key, one in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, dict) and "name" in one for one in value):
        return {str(one["name"]): _named(one) for one in value}
    return value


def _differences(place: str, old: Any, new: Any) -> Iterator[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield f"{place} {from_to(old, new)}"
        return
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{place}.{name} is gone"
        elif name not in old:
            yield f"{place}.{name} is new"
        else:
            yield from _differences(f"{place}.{name}", old[name], new[name])
    if place == "rubric.questions" and list(old) != list(new) and set(old) == set(new):
        yield f"{place} {from_to(list(old), list(new))}"


def from_to(old: Any, new: Any) -> str:
    """Both values in a line, `3.0, now 2.5`; of long wordings the part in which they differ."""
    before, after = _plain(old), _plain(new)
    start = 0
    if max(len(before), len(after)) > _LONGEST:
        pairs = itertools.takewhile(lambda both: both[0] == both[1], zip(before, after, strict=False))
        same = sum(1 for _ in pairs)
        start = before.rfind(" ", 0, max(0, same - _BEFORE)) + 1
    return f"{_part(before, start)}, now {_part(after, start)}"


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value).replace("\n", " ") or "none"


def _part(text: str, start: int) -> str:
    """A long wording's part from a place on."""
    end = start + _LONGEST
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
