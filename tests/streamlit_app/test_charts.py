"""Charts from frames, and the colours that they have."""

from __future__ import annotations

import re

import altair as alt
import pandas as pd
import pytest

from generation.output_tables import RATES
from plumbline.exhibits.charts import Kinds, columns_of_legend, rows
from plumbline.exhibits.page import svg
from plumbline.exhibits.palette import COLOURS, SHAPES, colours, shapes
from plumbline.transformations import AXES
from streamlit_app import charts
from streamlit_app.elements import fitted, unchecked


def test_colours_and_shapes_are_one_to_an_axis() -> None:
    assert list(COLOURS) == list(SHAPES) == list(AXES)
    assert len({*COLOURS.values()}) == len({*SHAPES.values()}) == len(AXES)
    assert len({shape for _, shape in charts.MOVES.values()}) == len(charts.MOVES)


OWN = colours(("one", "two", "three"))


def test_own_axes_have_colours_and_shapes_that_htebs_do_not_have() -> None:
    axes = ("noise", "length", "syntax")
    assert colours(axes)["length"] == COLOURS["length"] and shapes(axes)["length"] == SHAPES["length"]
    assert len({*COLOURS.values(), *OWN.values()}) == len({*SHAPES.values(), *shapes(OWN).values()}) == 6


@pytest.mark.parametrize("colour", [*COLOURS.values(), *OWN.values(), *(colour for colour, _ in charts.MOVES.values())])
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


def test_caption_says_why_there_is_no_interval() -> None:
    nan = float("nan")
    row = {"rho": -0.5, "low": nan, "high": nan, "n": 4, "reason": "no interval: why", "simulated": False}
    assert charts.caption(row) == ["ρ = −0.50, n = 4 pairs", "no interval: why"]


def test_a_legend_stands_in_as_few_rows_as_its_place_has_room_for() -> None:
    frame = pd.DataFrame({"axis": ["Lexical/Stylistic", "Length", "Language"], "n": [1, 2, 3]})
    inks = dict.fromkeys(frame["axis"], "#000000")
    row = rows("axis", ["a name of 20 letters"])
    chart = alt.Chart(frame).mark_bar().encode(x="n:Q", y=row, color=Kinds("axis", inks, {}).colour)
    columns = [part.to_dict()["encoding"]["color"]["legend"]["columns"] for part in (chart, unchecked(chart))]
    assert columns == [3, 2]  # on paper, on a phone
    assert columns_of_legend(["a name that is longer than all the room there is"], 10) == 1
    assert list(Kinds("axis", inks, {}).of(["Length"]).colours) == ["Length"]


def test_slopes_tell_up_from_down_and_equal_ranks_apart() -> None:
    """a falls from 1 to 2, b rises from 2 to 1, c and d share rank 3 and stay."""
    ranks = pd.DataFrame(
        {"model": ["a", "b", "c", "d"], "rank_original": [1, 2, 3, 3], "rank_transformed": [2, 1, 3, 3]}
    )
    spec = charts.rank_slopes(ranks, dark=False).to_dict()
    on_a_page = fitted(charts.rank_slopes(ranks, dark=False))
    assert on_a_page.to_dict() == unchecked(on_a_page).to_dict()  # the first is held to Vega-Lite's schema
    assert spec["width"] > 400  # on paper there is no page whose width it could take
    rows = pd.DataFrame(next(iter(spec["datasets"].values())))
    assert dict(zip(rows["model"], rows["moved"], strict=True)) == {
        "a": "down",
        "b": "up",
        "c": "as before",
        "d": "as before",
    }
    assert sorted(rows.loc[rows["side"] == "Original", "place"]) == [1, 2, 3, 4]
    assert "3. d" in set(rows["label"])


def test_errors_have_a_cell_for_each_type_and_a_dash_for_none() -> None:
    rates = {rate: [1.0, float("nan")] for rate in RATES}
    table = pd.DataFrame({"generator": ["g", "g"], "transformation": ["expansion", "style_change"], **rates})
    spec = charts.error_map(table, "transformation").to_dict()
    rows = pd.DataFrame(next(iter(spec["datasets"].values())))
    assert set(rows["row"]) == {"Expansion", "Style change"}
    assert set(rows.loc[rows["row"] == "Style change", "words"]) == {"–"}
    assert len(rows) == 2 * len(RATES)


@pytest.mark.parametrize("most", [1, 2, 3, 12])
def test_counts_have_ticks_at_whole_numbers_alone(most: int) -> None:
    raters = pd.DataFrame({"rater_id": ["a", "b"], "simulated": [True, False], "answers": [1, most]})
    letters = re.findall(r">([^<>]+)</text>", svg(charts.rater_bars(raters, "answers", "Answers")))
    ticks = [tick for tick in letters if tick not in ("a", "b", "Answers")]
    assert ticks[0] == "0" and int(ticks[-1]) == most and len(ticks) > 1
    assert all(tick.isdecimal() for tick in ticks)
