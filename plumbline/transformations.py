"""HTEB's eight transformations and three axes, and their order, among others, in tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from plumbline.study import judged
from plumbline.study import transformations as data

ORIGINAL = judged.ORIGINAL
TRANSFORMATIONS = data.EIGHT
HTEB_TOTAL, OWN_TOTAL = "hteb_total", "total"
AXES: tuple[str, ...] = tuple(dict.fromkeys(transformation.axis for transformation in TRANSFORMATIONS.values()))


def in_order(names: Iterable[str]) -> list[str]:
    """Return transformations, each once: HTEB's in its order, then others in the given order."""
    return _first(TRANSFORMATIONS, names)


def axes_in_order(axes: Iterable[str]) -> list[str]:
    """Return axes, each once: HTEB's in its order, then others in the given order; originals have no axis."""
    return _first(AXES, (axis for axis in axes if axis != ORIGINAL))


def total_axes(transformations: Iterable[str], axes: Iterable[str]) -> tuple[str, ...]:
    """Return the axes whose mean is the total.

    `transformations` and `axes` are those that results have. With any of HTEB's eight transformations these are HTEB's
    three axes, unless results have own axes and only one or two of these; then, and without HTEB's eight, they are all
    axes of the results.
    """
    present = tuple(axes_in_order(axes))
    missing, further = set(AXES) - set(present), set(present) - set(AXES)
    if any(name in TRANSFORMATIONS for name in transformations) and not (missing and further):
        return AXES
    return present or AXES


@dataclass(frozen=True)
class Axes:
    """The axes of some results: those that are `shown`, and those whose mean is the total (`total_axes`)."""

    shown: tuple[str, ...] = AXES
    of_total: tuple[str, ...] = AXES

    @classmethod
    def of(cls, frame: Any) -> Axes:
        """Return the axes of a frame with columns transformation and axis: HTEB's in its order, then others."""
        axes = axes_in_order(frame["axis"].unique())
        total = total_axes(frame["transformation"].unique(), axes)
        return cls(tuple(axes_in_order((*total, *axes))), total)

    @classmethod
    def of_columns(cls, table: Any) -> Axes:
        """Return the axes of a table with a column for each, between `original` and the total."""
        names = [str(name) for name in table.columns]
        end = next(position for position, name in enumerate(names) if name in (HTEB_TOTAL, OWN_TOTAL))
        axes = [name for name in names[names.index("original") + 1 : end] if not name.endswith(judged.ENDS)]
        return cls(tuple(axes), AXES if names[end] == HTEB_TOTAL else tuple(axes))

    @property
    def total(self) -> str:
        """The total's name: HTEB's is of its three axes."""
        return HTEB_TOTAL if self.of_total == AXES else OWN_TOTAL

    @property
    def names(self) -> tuple[str, ...]:
        """The axes, then the total."""
        return *self.shown, self.total

    @property
    def are_htebs(self) -> bool:
        """Whether there is no axis beside HTEB's three."""
        return self.shown == AXES


def _first(order: Iterable[str], names: Iterable[str]) -> list[str]:
    columns = dict.fromkeys(names)
    return [*(name for name in order if name in columns), *(name for name in columns if name not in set(order))]
