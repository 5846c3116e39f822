"""Charts from frames and their colours, and a pair's words that differ, which stay text."""

from __future__ import annotations

import html
import math
import re
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.exhibits.charts import COLOURS, SHAPES, colours, shapes
from plumbline.study.transformations import AXES
from streamlit_app.pair import marked
from streamlit_app.views import verdicts


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


_MARKS = re.compile(r"</?(?:p|del|ins)(?: [^<>]*)?>")


def plain(content: str) -> str:
    return html.unescape(_MARKS.sub("", content))


def test_what_is_gone_and_what_is_new() -> None:
    first, second = marked("a cat sat", "a dog sat")
    assert re.findall(r"<del[^>]*>(.*?)</del>", first) == ["cat"]
    assert re.findall(r"<ins[^>]*>(.*?)</ins>", second) == ["dog"]
    assert "<ins" not in first
    assert "<del" not in second


def test_equal_texts_have_no_marks_and_characters_count_where_words_have_no_spaces() -> None:
    assert not any("<del" in part or "<ins" in part for part in marked("same words", "same words"))
    assert re.findall(r"<ins[^>]*>(.*?)</ins>", marked("我爱猫", "我爱狗")[1]) == ["狗"]


@given(st.text(), st.text())
def test_every_letter_is_there_and_none_is_markup(original: str, transformed: str) -> None:
    for text, content in zip((original, transformed), marked(original, transformed), strict=True):
        assert plain(content) == text
        assert set(re.findall(r"<(/?\w+)", content)) <= {"p", "/p", "del", "/del", "ins", "/ins"}


@pytest.mark.parametrize(("limit", "first"), [(None, 0), (2.5, 3)])
def test_of_many_means_those_nearest_to_the_threshold_are_drawn_and_without_one_the_lowest(
    limit: float | None, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"system{number:02}" for number in range(30)]
    means = pd.DataFrame({"transformation": names, "mean": [1 + number / 10 for number in range(30)]}, dtype=object)
    means = means.astype({"mean": float}).assign(question="quality", threshold=math.nan if limit is None else limit)
    drawn: list[tuple[pd.DataFrame, str]] = []
    quiet: dict[str, Any] = dict.fromkeys(
        ("heading", "figure", "rating_shares", "shares_in_words"), lambda *_, **__: ""
    )
    quiet |= {"joined": list, "best_first": lambda verdicts, _: verdicts, "means_frame": lambda _: means}
    quiet |= {"_limits": lambda _: "", "mean_intervals": lambda rows, _: rows, "means_in_words": lambda _: ""}
    quiet["figure"] = lambda _, chart, text, **__: drawn.append((chart, text))
    for name, instead in quiet.items():
        monkeypatch.setattr(verdicts, name, instead)
    reader: Any = SimpleNamespace(verdicts=list, side_by_side=lambda: [()], shares=lambda: means, name="many")
    verdicts._means(reader, (1, 5), "quality")
    (chart, text), _ = drawn
    assert list(chart["transformation"]) == names[first : first + verdicts.CARDS]
    assert ("threshold" in text) == (limit is not None)
