"""A colour and a shape for each axis, the same everywhere (Okabe and Ito's colours, safe for colour-blind readers)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COLOURS = {"lexical_stylistic": "#0072B2", "length": "#D55E00", "language": "#009E73"}
SHAPES = {"lexical_stylistic": "circle", "length": "square", "language": "triangle-up"}
NEUTRAL = "#7F7F7F"

# Colours of a study's own axes, reused from the start after the last one; as dark and light as those above.
_OWN_COLOURS = ("#A6761D", "#8C6BB1", "#E7298A")
_OWN_SHAPES = ("triangle-down", "triangle-right", "triangle-left")


def colours(axes: Iterable[str]) -> dict[str, str]:
    """Return the colour of each axis; HTEB's axes have fixed ones."""
    return _with_own(COLOURS, _OWN_COLOURS, axes)


def shapes(axes: Iterable[str]) -> dict[str, str]:
    """Return the shape of each axis."""
    return _with_own(SHAPES, _OWN_SHAPES, axes)


def _with_own(htebs: Mapping[str, str], of_study: tuple[str, ...], axes: Iterable[str]) -> dict[str, str]:
    names = list(dict.fromkeys(axes))
    further = [axis for axis in names if axis not in htebs]
    return {axis: htebs.get(axis) or of_study[further.index(axis) % len(of_study)] for axis in names}
