"""JSON's objects under keys, `{"model1": {...}, "model2": {...}}`, as a list of them, each with its key.

Objects with the same fields are rows, one under a key or a list of them. Their key becomes a column of its own; what it
is, `columns` finds out or asks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.imports.columns import by_name, role_of_keys
from annotation.imports.tables import MARK
from annotation.imports.tool_exports import ANSWERS_OF

KEY = f"{MARK}key"
_DEEPEST = 6
_FEW = 100  # keys that may be the names of fields


@dataclass(frozen=True)
class Shape:
    """What the objects at one place of a file have in common: how many keys stand above them, and their fields."""

    depth: int  #: keys above each object; 0 if the fields stand there
    fields: Mapping[str, Shape]  #: those that hold objects

    def listed(self, value: Any) -> Any:
        """Return a value of this place with objects under keys as a list."""
        if isinstance(value, list):
            return [self.listed(element) for element in value]
        if not isinstance(value, dict):
            return value
        return list(self._rows(value)) if self.depth else self._of_fields(value)

    def _rows(self, value: Mapping[str, Any], depth: int = 1) -> Iterator[dict[str, Any]]:
        name = KEY if depth == 1 else f"{KEY} {depth}"
        for key, inner in value.items():
            for entry in _objects(inner):
                for row in self._rows(entry, depth + 1) if depth < self.depth else [self._of_fields(entry)]:
                    yield {name: key, **row}

    def _of_fields(self, value: Mapping[str, Any]) -> dict[str, Any]:
        inner = self.fields
        return {name: inner[name].listed(cell) if name in inner else cell for name, cell in value.items()}


def shape_of(values: Sequence[Mapping[str, Any]], *, rated: bool = False, level: int = 0) -> Shape:
    """Return what the objects at one place have in common; they are `rated` if an answer stands beside them."""
    levels = _levels(values)
    depth = next((depth for depth in range(len(levels) - 1, 0, -1) if _are_rows(levels[: depth + 1])), 0)
    of_raters = any(role_of_keys(_names(keyed)) == "rater" for keyed in levels[:depth])
    if rated and not of_raters and not any(by_name(name) == "answer" for name in _names(levels[depth][:1])):
        depth = 0  # facts beside an answer, which is not to be repeated for each of them
    if level and depth and _lists_answers(levels[depth][0]) and not role_of_keys(_names(levels[depth - 1])):
        depth = 0  # a question each, with the answers of all raters
    inner = defaultdict[str, list[Mapping[str, Any]]](list)
    for value in levels[depth]:
        for name, cell in value.items():
            inner[name] += _objects(cell)
    answered = any(by_name(name) == "answer" and not objects for name, objects in inner.items())
    fields = {} if level > _DEEPEST else {
        name: shape_of(objects, rated=answered, level=level + 1) for name, objects in inner.items() if objects
    }  # fmt: skip
    return Shape(depth, fields)


def _levels(values: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Return the objects, and those under one key, two keys and so on, as long as nothing else stands there."""
    levels = [values]
    while levels[-1] and all(map(_holds_objects, levels[-1])):
        levels.append([entry for value in levels[-1] for inner in value.values() for entry in _objects(inner)])
    return levels


def _objects(cell: Any) -> list[Mapping[str, Any]]:
    """Return the object that a cell is, or the objects that it lists."""
    return [entry for entry in (cell if isinstance(cell, list) else [cell]) if isinstance(entry, dict)]


def _holds_objects(value: Mapping[str, Any]) -> bool:
    """Return whether an object holds objects, or nulls, under keys that are no names of a record's own fields."""
    if len(value) <= _FEW and any(by_name(str(key)) for key in value):
        return False
    cells = [cell for cell in value.values() if cell is not None]
    return all(len(_objects(cell)) == (len(cell) if isinstance(cell, list) else 1) for cell in cells)


def _are_rows(levels: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    """Return whether the last objects have the same fields, and each level above them several keys."""
    filled = [set(value) for value in levels[-1] if value]
    same = len(filled) > 1 and 2 * len(set.intersection(*filled)) >= len(set.union(*filled))
    holders = ({name for value in values for name, cell in value.items() if _objects(cell)} for values in levels[:-1])
    return same and all(len(names) > 1 for names in holders)


def _lists_answers(value: Mapping[str, Any]) -> bool:
    return any(isinstance(cell, list) and cell and ANSWERS_OF.search(name) and not _objects(cell)
               for name, cell in value.items())  # fmt: skip


def _names(values: Sequence[Mapping[str, Any]]) -> set[str]:
    return {name for value in values for name in value}
