"""Charts from frames, and the colours that they have."""

from __future__ import annotations

import pytest

from plumbline.exhibits.charts import COLOURS, SHAPES, colours, shapes
from plumbline.study.transformations import AXES


def test_colours_and_shapes_are_one_to_an_axis() -> None:
    assert list(COLOURS) == list(SHAPES) == list(AXES)
    assert len({*COLOURS.values()}) == len({*SHAPES.values()}) == len(AXES)


OWN = colours(("one", "two", "three"))


def test_own_axes_have_colours_and_shapes_that_htebs_do_not_have() -> None:
    axes = ("noise", "length", "syntax")
    assert colours(axes)["length"] == COLOURS["length"] and shapes(axes)["length"] == SHAPES["length"]
    assert len({*COLOURS.values(), *OWN.values()}) == len({*SHAPES.values(), *shapes(OWN).values()}) == 6


@pytest.mark.parametrize("colour", [*COLOURS.values(), *OWN.values()])
@pytest.mark.parametrize("page", ["#FFFFFF", "#171614"])  # Streamlit's
def test_colours_stand_out_on_light_and_dark_pages(colour: str, page: str) -> None:
    """WCAG 2.1: graphics need a contrast of 3 to 1."""
    light, dark = sorted((luminance(colour), luminance(page)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def luminance(colour: str) -> float:
    """WCAG 2.1's relative luminance."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
