"""Tables and charts from frames; what a spreadsheet gets."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st

from generation.palette import COLOURS, SHAPES
from generation.study import ROOT, Study
from generation.transformations import AXES
from streamlit_app import charts
from streamlit_app.data import NotYetError, Records


def test_colours_and_shapes_are_one_to_an_axis() -> None:
    assert list(COLOURS) == list(SHAPES) == list(AXES)
    assert len({*COLOURS.values()}) == len({*SHAPES.values()}) == len(AXES)


@pytest.mark.parametrize("colour", COLOURS.values())
@pytest.mark.parametrize("page", ["#FFFFFF", "#0E1117"])
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
    row = {
        "rho": -0.5,
        "low": float("nan"),
        "high": float("nan"),
        "n": 4,
        "reason": "no interval: why",
        "simulated": False,
    }
    assert charts.caption(row) == ["ρ = −0.50, n = 4 pairs", "no interval: why"]


def test_records_that_are_missing_are_told_from_damaged_ones(study: Study) -> None:
    records = Records(study)
    (study.folder / "drift.parquet").unlink()
    with pytest.raises(NotYetError, match=r"drift\.parquet is not there yet"):
        records.drift("quality")
    (study.folder / "drift.parquet").write_bytes(b"")
    with pytest.raises(Exception, match=r"drift\.parquet is damaged") as caught:
        records.drift("quality")
    assert not isinstance(caught.value, NotYetError)


def test_frames_are_copies(study: Study) -> None:
    records = Records(study)
    scores = records.scores()
    scores["score"] = 0.0
    assert (records.scores()["score"] != 0.0).any()


def test_correlations_are_the_same_each_time(study: Study) -> None:
    first = Records(study).correlations("quality")
    st.cache_data.clear()
    pd.testing.assert_frame_equal(first, Records(study).correlations("quality"))


def test_it_binds_to_this_machine_and_tells_nobody() -> None:
    file = Path(ROOT) / "streamlit_app" / ".streamlit" / "config.toml"
    config = tomllib.loads(file.read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["disableDataExport"] is True
