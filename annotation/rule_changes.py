"""What differs between two sets of rules, in words that name the place in the study's file or in its rubric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generation.campaign_specs import AcceptanceSpec, QualitySpec
from generation.parts import Part

_LONGEST = 80  # characters of a wording that are quoted
_SPECS: dict[str, type[Part]] = {"acceptance": AcceptanceSpec, "quality": QualitySpec}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs: `acceptance.threshold 3.0, now 2.5`, `rubric.questions.quality is gone`.

    What the earlier set does not know at all (the rubric, which earlier versions did not fix; a rule that they did not
    have, where it has its default) is no change.
    """
    found: list[str] = []
    for part in before:
        old = {**_defaults(part), **before[part]} if isinstance(before[part], dict) else before[part]
        found += _differences(part, _named(old), _named(after.get(part)))
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
            yield f"{place} {_quoted(old)}, now {_quoted(new)}"
        return
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{place}.{name} is gone"
        elif name not in old:
            yield f"{place}.{name} is new"
        else:
            yield from _differences(f"{place}.{name}", old[name], new[name])
    if place == "rubric.questions" and list(old) != list(new) and set(old) == set(new):
        yield f"{place} {_quoted(list(old))}, now {_quoted(list(new))}"


def _quoted(value: Any) -> str:
    """The value in a line; a long wording's beginning."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
