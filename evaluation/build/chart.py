"""The curve of agreement against size, and what it shows in words."""

from __future__ import annotations

import altair as alt
import pandas as pd

from plumbline.exhibits.page import Figure
from plumbline.exhibits.palette import COLOURS, NEUTRAL

_NAMES = {"agreement": "Chosen for agreement", "backward": "MMTEB's backward", "random": "Random (median)"}
_COLOURS = [COLOURS["lexical_stylistic"], COLOURS["length"], NEUTRAL]
_SHAPES = ["circle", "square", "cross"]


def curve(table: pd.DataFrame, held: int) -> Figure:
    """Tau with all tasks on `held` held-out models by number of tasks; the band holds 95% of random selections.

    `table` is `evaluation.build.selection.Selection.curve`, or the file of it (`curve.csv`).
    """
    shown = table.assign(way=table["method"].map(_NAMES))
    names = list(_NAMES.values())
    across = alt.X("tasks:Q", title="Tasks").scale(type="log", nice=False)
    up = alt.Y("tau:Q", title="Kendall's tau with all tasks").scale(zero=False)
    colour = alt.Color("way:N", title=None).scale(domain=names, range=_COLOURS).legend(orient="top")
    shape = alt.Shape("way:N", title=None).scale(domain=names, range=_SHAPES).legend(orient="top")
    band = (
        alt.Chart(shown[shown["method"] == "random"])
        .mark_area(color=NEUTRAL, opacity=0.25)
        .encode(x=across, y=alt.Y("tau_low:Q"), y2=alt.Y2("tau_high:Q"))
    )
    base = alt.Chart(shown).encode(x=across, y=up, color=colour)
    marks = base.mark_point(size=70, filled=True, opacity=1).encode(
        shape=shape,
        tooltip=[
            alt.Tooltip("way:N"),
            alt.Tooltip("tasks:Q"),
            alt.Tooltip("tau:Q", format=".3f"),
            alt.Tooltip("rho:Q", format=".3f"),
        ],
    )
    caption = (
        f"Kendall's tau with the ranking by all tasks, on {held} held-out models;"
        " the band holds 95% of random selections."
    )
    words = caption + " " + " ".join(_said(shown, way) for way in names)
    chart = alt.LayerChart(layer=[band, base.mark_line(), marks], description=words, width=560, height=320)
    return Figure(chart, caption, words)


def _said(shown: pd.DataFrame, way: str) -> str:
    own = shown[shown["way"] == way].drop_duplicates("tasks").sort_values("tasks")
    points = ", ".join(f"{row.tau:.2f} with {row.tasks}" for row in own.itertuples())
    return f"{way}: tau {points} tasks." if points else ""
