"""Rating scales: points in order, at any distances, or every number between two ends."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

Floats = NDArray[np.float64]
MOST_LEVELS = 20  # a scale with more points is treated as continuous: two raters hardly ever agree exactly
MOST_POINTS = 1001
EQUAL = 1e-9  # smaller differences between points are rounding errors
DECIMAL = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_ENDS = ("from", "to", "step")
_MOST_MARKS = 11
_CLASSES = 5  # classes in which a fine scale is shown
_PRECISION = 10  # decimals of points from a step


class Continuous(tuple[float, ...]):
    """The two ends of a scale whose points are all numbers between them.

    Like every scale it is a tuple whose first and last are the ends; `in` tells whether a number lies between them.

    >>> 37.5 in Continuous((0, 100)), 101 in Continuous((0, 100)), Continuous((0, 100)) == (0, 100)
    (True, False, False)
    """

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self[0] <= value <= self[-1]

    def __eq__(self, scale: object) -> bool:
        """Compare; a scale of two points is never equal to a continuous one."""
        return isinstance(scale, Continuous) and tuple.__eq__(self, scale)

    def __ne__(self, scale: object) -> bool:
        return not self == scale

    def __hash__(self) -> int:
        return hash((type(self), *self))


def as_number(value: Any) -> float:
    """Return a number, or a text that is one; a whole number as int. Raises ValueError for anything else.

    >>> as_number("1.50"), as_number(2.0), as_number("-2")
    (1.5, 2, -2)
    """
    is_text = isinstance(value, str) and DECIMAL.fullmatch(value.strip())
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_text and not is_number:
        raise ValueError(f"{str(value)[:60]!r} is not a number")
    read = float(value)
    return int(read) if read.is_integer() else read


def points_of(scale: Sequence[float]) -> tuple[float, ...]:
    """Return the scale's points. Raises ValueError unless they are two or more numbers in ascending order."""
    points = scale if isinstance(scale, tuple) else tuple(scale) if np.iterable(scale) else (scale,)
    numbers = [float(point) if isinstance(point, (int, float, np.number)) else math.nan for point in points]
    if len(points) < 2 or not all(-math.inf < low < high < math.inf for low, high in itertools.pairwise(numbers)):
        raise ValueError(f"a scale needs two or more points in ascending order, such as (1, 2, 3, 4, 5), not {scale!r}")
    return points


def _as_scale(value: Any) -> tuple[float, ...]:
    """Return a scale from a file: its points, or `{from, to}`, with points at each `step` if given."""
    if isinstance(value, Continuous):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(as_number, value))
    if not isinstance(value, Mapping) or not set(_ENDS[:2]) <= set(value) <= set(_ENDS):
        raise ValueError(
            "a scale must be a list of points, or {from: 0, to: 100}, with `step` to allow only points at that distance"
        )
    low, high = as_number(value["from"]), as_number(value["to"])
    if low >= high:
        raise ValueError(f"a scale must go from a lower to a higher number, not from {low:g} to {high:g}")
    if value.get("step") is None:
        return Continuous((low, high))
    step = as_number(value["step"])
    steps = round((high - low) / step) if step > 0 else 0
    if not 1 <= steps < MOST_POINTS or not math.isclose(low + steps * step, high):
        raise ValueError(
            f"steps of {step:g} from {low:g} do not reach {high:g} exactly, or there are more than"
            f" {MOST_POINTS - 1} of them; correct the step, or leave it out"
        )
    return tuple(as_number(round(low + index * step, _PRECISION)) for index in range(steps + 1))


#: A point, for models: a whole one is an int, so that its JSON and hashes are those of scales of whole numbers.
Point = Annotated[int | float, BeforeValidator(as_number), Field(allow_inf_nan=False)]
#: A scale, for models.
Scale = Annotated[
    tuple[int | float, ...],
    PlainValidator(_as_scale),
    PlainSerializer(lambda scale: dict(zip(_ENDS, scale, strict=False)) if isinstance(scale, Continuous) else scale),
]


def is_fine(scale: Sequence[float]) -> bool:
    """Tell whether a scale is continuous, or has so many points that it is treated as continuous."""
    return isinstance(scale, Continuous) or len(scale) > MOST_LEVELS


def is_whole(scale: Sequence[float]) -> bool:
    """Tell whether the points are consecutive whole numbers."""
    return not isinstance(scale, Continuous) and list(scale) == list(range(int(scale[0]), int(scale[-1]) + 1))


def on_scale(values: Floats, scale: Sequence[float]) -> NDArray[np.bool_]:
    """Tell which numbers are points of the scale."""
    if isinstance(scale, Continuous):
        return (values >= scale[0]) & (values <= scale[-1])
    return np.isin(values, np.array(scale, np.float64))


def nearest_points(values: Floats, scale: Sequence[float]) -> Floats:
    """Return the nearest points of the scale, halves upwards; NaN stays NaN.

    >>> nearest_points(np.array([1.2, 1.25, 9.0]), (1, 1.5, 2)).tolist()
    [1.0, 1.5, 2.0]
    """
    points = np.array(scale, np.float64)
    if isinstance(scale, Continuous):
        return np.clip(values, points[0], points[-1])
    limits = (points[:-1] + points[1:]) / 2
    nearest: Floats = np.where(np.isnan(values), np.nan, points[np.searchsorted(limits, values, side="right")])
    return nearest


def classes_of(values: Floats, scale: Sequence[float]) -> tuple[list[float | str], NDArray[np.int64]]:
    """Return a scale's class names, and each value's class by number: the points, or fifths of a fine scale.

    >>> names, places = classes_of(np.array([0, 20, 100]), Continuous((0, 100)))
    >>> names, places.tolist()
    (['0 to under 20', '20 to under 40', '40 to under 60', '60 to under 80', '80 to 100'], [0, 1, 4])
    """
    if not is_fine(scale):
        return [*scale], np.searchsorted(np.array(scale, np.float64), values).astype(np.int64)
    ends = np.linspace(scale[0], scale[-1], _CLASSES + 1)
    places = np.minimum(np.searchsorted(ends, values, side="right") - 1, _CLASSES - 1)
    names = [f"{low:g} to {'under ' if high < ends[-1] else ''}{high:g}" for low, high in itertools.pairwise(ends)]
    return [*names], places.astype(np.int64)


def marks(scale: Sequence[float]) -> list[float]:
    """Return the points that an axis shows: all of a few, else the ends and the middle."""
    few = not isinstance(scale, Continuous) and len(scale) <= _MOST_MARKS
    return list(scale) if few else [scale[0], as_number((scale[0] + scale[-1]) / 2), scale[-1]]
