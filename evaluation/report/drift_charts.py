"""Charts of drift against ratings (HTEB, Figure 3)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from annotation.verdicts.tables import display
from plumbline.exhibits.charts import PANEL_WIDTH, colours, shapes, tips
from plumbline.exhibits.table import interval
from plumbline.study.transformations import axes_in_order, in_order
from plumbline.words import count

PANEL_HEIGHT = 340  # with title and axes
LETTERS = "#31333F"  # on a light page
_SUBTITLE = 44  # characters that fit under a panel's title, on a third of a laptop's page
_MOST_STEPS = 10  # on the axis of ratings
POINTS = 4000  # most in all panels: more take a browser seconds, and half a kilobyte each
_DRAWN = ["transformation", "drift", "mean_quality", "n_ratings", "simulated", "original", "transformed"]


@dataclass(frozen=True)
class DriftScales:
    """Settings that panels of drift share: the question, the ends of its scale, the maximum of drift, the axes' looks.

    Without `axes` a panel's own axis has the first look.
    """

    question: str
    ratings: tuple[float, float]
    drift: float
    axes: tuple[str, ...] = ()


def drift_panel(
    points: pd.DataFrame,
    correlation: Mapping[Any, Any],
    scales: DriftScales,
    *,
    letters: str = LETTERS,
    chosen: alt.Parameter | None = None,
) -> alt.Chart:
    """Return one panel of Figure 3: a point a pair, mean rating against drift. Tooltips have both texts.

    `points` and `correlation` are a transformation's rows of `evaluation.tables.datasets.drift_by_quality` and
    `drift_correlations` for one model. `letters` is the subtitle's colour, which a page's theme does not set.
    `chosen` is a selection of points, which the caller adds to the chart; other points fade.

    """
    axis = str(correlation["axis"])
    axes = scales.axes or (axis,)
    question, (x, y) = scales.question, _across_and_up(scales)
    points = points.assign(raters=points["simulated"].map({True: "simulated", False: "people"}))
    marks = alt.Chart(points).mark_point(
        color=colours(axes)[axis],
        fill=colours(axes)[axis],
        fillOpacity=0.6,  # points that lie on one another are told by their fill; the rim stands out on a dark page
        shape=shapes(axes)[axis],
        strokeWidth=1.5,
        cursor="pointer" if chosen else "default",
    )
    panel: alt.Chart = marks.encode(
        x=x,
        y=y,
        opacity=alt.OpacityValue(**alt.condition(chosen, alt.value(1), alt.value(0.25)))
        if chosen
        else alt.OpacityValue(1),
        size=alt.SizeValue(60),
        tooltip=tips(
            "original:N::Original",
            "transformed:N::Transformed",
            f"mean_quality:Q:.2f:Mean {question}",
            "drift:Q:.3f:Drift",
            "n_ratings:Q::Ratings",
            "raters:N::Raters",
        ),
    )
    title = alt.TitleParams(
        display(str(correlation["transformation"]), pooled=False),
        subtitle=caption(correlation),
        subtitleColor=letters,
        subtitlePadding=4,
        subtitleFontSize=12,
        anchor="start",
    )
    return panel.properties(title=title, height=PANEL_HEIGHT)


def _across_and_up(scales: DriftScales) -> tuple[alt.X, alt.Y]:
    """Return the channels of mean ratings and of drift, the same in all panels."""
    worst, best = scales.ratings
    room = 0.2 * max(1.0, (best - worst) / 5)  # for points at the ends
    steps = np.arange(worst, best + 1) if best - worst <= _MOST_STEPS else np.linspace(worst, best, 3)
    across: alt.X = (
        alt.X("mean_quality:Q")
        .title(f"Mean {scales.question}")
        .scale(domain=[worst - room, best + room], nice=False)
        .axis(values=steps.tolist(), format="~g")
    )
    up: alt.Y = alt.Y("drift:Q").title("Drift (1 − cos)").scale(domain=[0.0, scales.drift or 1.0])
    return across, up.axis(labelFlush=False)


def drift_panels(
    frame: pd.DataFrame,
    correlations: pd.DataFrame,
    *,
    question: str,
    scale: tuple[float, float],
    letters: str = LETTERS,
    chosen: alt.Parameter | None = None,
) -> list[tuple[Mapping[Any, Any], alt.Chart]]:
    """Return HTEB's Figure 3 for one model: a panel for each transformation, after its row of `correlations`.

    All have the same scales; `scale` has the ends of the rating scale. `letters` and `chosen` are `drift_panel`'s.
    """
    scales = DriftScales(question, scale, float(frame["drift"].max()), tuple(axes_in_order(correlations["axis"])))
    order = {name: position for position, name in enumerate(in_order(correlations["transformation"].unique()))}
    rows = sorted(correlations.to_dict(orient="records"), key=lambda row: order[row["transformation"]])
    return [
        (
            row,
            drift_panel(
                frame[frame["transformation"] == row["transformation"]], row, scales, letters=letters, chosen=chosen
            ),
        )
        for row in rows
    ]


def drift_figure(
    frame: pd.DataFrame, correlations: pd.DataFrame, *, question: str, scale: tuple[float, float]
) -> alt.ConcatChart:
    """Return the panels of `drift_panels` as one figure."""
    panels = drift_panels(drawn_points(frame)[_DRAWN], correlations, question=question, scale=scale)
    sized = [panel.properties(width=PANEL_WIDTH, height=PANEL_WIDTH * 3 // 4) for _, panel in panels]
    figure: alt.ConcatChart = alt.concat(*sized, columns=3)
    return figure


def drawn_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a model's points for a page: all, or `POINTS` random ones of them, always the same."""
    return frame if len(frame) <= POINTS else frame.sample(POINTS, random_state=POINTS).sort_index()


def left_undrawn(frame: pd.DataFrame) -> str:
    """Return a sentence on points that a page does not draw; "" if it draws all."""
    if len(frame) <= POINTS:
        return ""
    return f"{POINTS:,} of {len(frame):,} points are drawn, at random; ρ and the tables include all"


def caption(correlation: Mapping[Any, Any]) -> list[str]:
    """Return a panel's subtitle: rho with its interval and n, or why there is none."""
    n, reason = f"n = {count(correlation['n'], 'pair')}", str(correlation["reason"])
    if pd.isna(correlation["rho"]):
        lines = [f"no ρ: {reason}", n]
    else:
        rho = interval(correlation["rho"], correlation["low"], correlation["high"])
        lines = [f"ρ = {rho}, {n}".replace("-", "−"), *([reason] if reason else [])]
    if correlation["simulated"]:
        lines.append("simulated ratings")
    return [short for line in lines for short in textwrap.wrap(line, _SUBTITLE)]
