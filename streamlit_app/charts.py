"""Frame in, chart out, in the colours and shapes of `generation.palette`.

Texts go into tooltips as data: Vega escapes them, and no expression is made of them. Backgrounds, grids and
letters are the page's theme's, light or dark; the colours keep a contrast of 3 to 1 on both.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from annotation.tables import display
from generation.palette import COLOURS, NEUTRAL, SHAPES
from generation.transformations import AXES, TRANSFORMATIONS
from streamlit_app.frames import with_interval

INK = {False: "#31333F", True: "#FAFAFA"}  # letters on a light and on a dark page
PANEL_HEIGHT = 340  # with title and axes
SELECTION = "pair"  # the name of a panel's selection; its points carry `pair_id`
_SUBTITLE = 44  # letters that fit under the title of a third of a laptop's page


@dataclass(frozen=True)
class Panel:
    """A chart and what it shows, for where it is put and for those who cannot see it."""

    axis: str
    transformation: str
    chart: alt.Chart
    alt: str


def drift_panels(
    frame: pd.DataFrame, correlations: pd.DataFrame, *, question: str, scale: tuple[int, int], dark: bool
) -> list[Panel]:
    """HTEB's Figure 3 for one model: a panel a transformation, by axis, all with the same scales.

    `frame` and `correlations` are the model's rows of `evaluation.tables.drift_by_quality` and
    `drift_correlations`; `scale` holds the ends of the rating scale. `dark` says what
    page they stand on: subtitles are the one thing that the page's theme does not colour.
    """
    highest = float(frame["drift"].max())
    rows = sorted(
        correlations.to_dict(orient="records"), key=lambda row: list(TRANSFORMATIONS).index(row["transformation"])
    )
    return [
        Panel(
            axis=str(row["axis"]),
            transformation=str(row["transformation"]),
            chart=_drift_panel(
                frame[frame["transformation"] == row["transformation"]], row, question, scale, highest, dark
            ),
            alt=f"{display(str(row['transformation']), pooled=False)}: {', '.join(caption(row))}",
        )
        for row in rows
    ]


def _drift_panel(
    points: pd.DataFrame,
    correlation: Mapping[Any, Any],
    question: str,
    scale: tuple[int, int],
    highest: float,
    dark: bool,
) -> alt.Chart:
    """One panel: a point a pair, mean rating against drift. Hovering shows both texts, a click selects."""
    axis = str(correlation["axis"])
    title = alt.TitleParams(
        display(str(correlation["transformation"]), pooled=False),
        subtitle=caption(correlation),
        subtitleColor=INK[dark],
        subtitlePadding=4,
        subtitleFontSize=12,
        anchor="start",
    )
    chosen = alt.selection_point(name=SELECTION, fields=["pair_id"], on="click", toggle=False)
    points = points.assign(raters=points["simulated"].map({True: "simulated", False: "people"}))
    tooltip = [
        alt.Tooltip("original:N", title="Original"),
        alt.Tooltip("transformed:N", title="Transformed"),
        alt.Tooltip("mean_quality:Q", title=f"Mean {question}", format=".2f"),
        alt.Tooltip("drift:Q", title="Drift", format=".3f"),
        alt.Tooltip("n_ratings:Q", title="Ratings"),
        alt.Tooltip("raters:N", title="Raters"),
    ]
    marks = alt.Chart(points).mark_point(
        filled=True, color=COLOURS[axis], shape=SHAPES[axis], strokeWidth=1.5, cursor="pointer"
    )
    panel: alt.Chart = marks.encode(
        x=alt.X("mean_quality:Q")
        .title(f"Mean {question}")
        .scale(domain=[scale[0] - 0.2, scale[1] + 0.2], nice=False)  # room for points at the ends
        .axis(values=list(range(scale[0], scale[1] + 1)), format="d"),
        y=alt.Y("drift:Q").title("Drift (1 − cos)").scale(domain=[0.0, highest or 1.0]),
        opacity=alt.condition(chosen, alt.value(0.75), alt.value(0.2)),
        size=alt.value(60),
        tooltip=tooltip,
    )
    return panel.add_params(chosen).properties(title=title, height=PANEL_HEIGHT)


def caption(correlation: Mapping[Any, Any]) -> list[str]:
    """What a panel says under its title: rho with its interval and n, or why there is none."""
    n, reason = f"n = {correlation['n']} pairs", str(correlation["reason"])
    if pd.isna(correlation["rho"]):
        lines = [f"no ρ: {reason}", n]
    else:
        rho = with_interval(correlation["rho"], correlation["low"], correlation["high"])
        lines = [f"ρ = {rho}, {n}".replace("-", "−"), *([reason] if reason else [])]
    if correlation["simulated"]:
        lines.append("simulated ratings")
    return [short for line in lines for short in textwrap.wrap(line, _SUBTITLE)]


def score_shifts(table: pd.DataFrame) -> alt.LayerChart:
    """Original against transformed score for each transformation of one model (a dumbbell a row).

    `table` are one model's rows of `evaluation.tables.transformation_table`. What the gate refused is hollow.
    """
    shown = table.assign(
        name=[
            display(name, pooled=False) + (" (not accepted)" if refused else "")
            for name, refused in zip(table["transformation"], table["included_rejected"].astype(bool), strict=True)
        ],
        axis_name=table["axis"].map(display),
        original=100 * table["original"],
        score=100 * table["score"],
        included_rejected=table["included_rejected"].astype(bool),
    )
    rank = {name: number for number, name in enumerate(TRANSFORMATIONS)}
    order = list(shown.sort_values("transformation", key=lambda names: names.map(rank))["name"])
    names = [display(axis) for axis in AXES]
    colour = (
        alt.Color("axis_name:N", title=None)
        .scale(domain=names, range=[COLOURS[axis] for axis in AXES])
        .legend(orient="top", columns=1)
    )
    shape = (
        alt.Shape("axis_name:N", title=None)
        .scale(domain=names, range=[SHAPES[axis] for axis in AXES])
        .legend(orient="top", columns=1)
    )
    hollow = alt.condition(alt.datum["included_rejected"], alt.value(0), alt.value(1))
    tooltip = [
        alt.Tooltip("name:N", title="Transformation"),
        alt.Tooltip("original:Q", title="Original", format=".2f"),
        alt.Tooltip("score:Q", title="Transformed", format=".2f"),
        alt.Tooltip("difference:Q", title="Difference (points)", format="+.2f"),
        alt.Tooltip("n_datasets:Q", title="Data sets"),
    ]
    row = alt.Y("name:N", sort=order, title=None).axis(labelLimit=160)
    extent = alt.X("original:Q", title="Score times 100 (grey bar: original)").scale(zero=False, nice=True)
    extent = extent.axis(tickCount=6)
    base = alt.Chart(shown)
    lines = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=extent, x2="score:Q", y=row, color=colour)
    before = base.mark_tick(color=NEUTRAL, thickness=3, size=16).encode(x=extent, y=row, tooltip=tooltip)
    after = base.mark_point(size=110, strokeWidth=2, filled=False).encode(
        x=alt.X("score:Q"), y=row, color=colour, fill=colour, fillOpacity=hollow, shape=shape, tooltip=tooltip
    )
    return alt.LayerChart(layer=[lines, before, after]).properties(height=34 * len(shown) + 90)
