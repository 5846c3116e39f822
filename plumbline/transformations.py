"""HTEB's eight transformations and three axes, and in which order tables have these and others."""

from __future__ import annotations

from collections.abc import Iterable

from plumbline.study import transformations as data

ORIGINAL = data.ORIGINAL
TRANSFORMATIONS = data.EIGHT
AXES: tuple[str, ...] = tuple(dict.fromkeys(one.axis for one in TRANSFORMATIONS.values()))


def in_order(names: Iterable[str]) -> list[str]:
    """Transformations, each once: HTEB's in its order, then others as they come."""
    return _first(TRANSFORMATIONS, names)


def axes_in_order(axes: Iterable[str]) -> list[str]:
    """Axes, each once: HTEB's in its order, then others as they come; what is an original's is none."""
    return _first(AXES, (axis for axis in axes if axis != ORIGINAL))


def total_axes(transformations: Iterable[str], axes: Iterable[str]) -> tuple[str, ...]:
    """The axes whose mean is a total: HTEB's three where any of its eight is there, else those of one's own.

    `transformations` and `axes` are those that results have. Where there is none, HTEB's.
    """
    if any(name in TRANSFORMATIONS for name in transformations):
        return AXES
    return tuple(axes_in_order(axes)) or AXES


def _first(known: Iterable[str], names: Iterable[str]) -> list[str]:
    there = dict.fromkeys(names)
    return [*(name for name in known if name in there), *(name for name in there if name not in set(known))]
