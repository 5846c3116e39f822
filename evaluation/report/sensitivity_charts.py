"""Frame in, chart out: how far scores hang on the threshold and on the ratings."""

from __future__ import annotations

import altair as alt
import pandas as pd

from annotation.report.charts import DECISIONS
from annotation.verdicts.tables import scoped
from evaluation.report.charts import ROW, WIDTH, series_colour, series_name, series_shape
from evaluation.report.drift_charts import PANEL_WIDTH
from plumbline.exhibits.palette import GAIN, LOSS, NEUTRAL
from plumbline.transformations import HTEB_TOTAL, ORIGINAL, OWN_TOTAL, Axes, in_order

#: The shapes are those of the campaign's report.
_DECISIONS = {"accepted": GAIN, "undecided": NEUTRAL, "rejected": LOSS}


def threshold_decisions(table: pd.DataFrame, threshold: float) -> alt.LayerChart:
    """What would be accepted at each threshold: a row a scope, from `evaluation.tables.threshold_decisions`.

    The broken line is the study's own threshold.
    """
    shown = table.assign(name=list(map(scoped, table["transformation"], table["language"], table["task_type"])))
    order = {name: place for place, name in enumerate(in_order(table["transformation"].unique()))}
    names = list(
        shown.sort_values("transformation", key=lambda names: names.map(order), kind="stable")["name"].unique()
    )
    colour = alt.Color("decision:N", title=None).scale(domain=list(_DECISIONS), range=list(_DECISIONS.values()))
    shape = alt.Shape("decision:N", title=None).scale(domain=list(DECISIONS), range=list(DECISIONS.values()))
    x = _thresholds(table, threshold)
    marks = (
        alt.Chart(shown)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=x,
            y=alt.Y("name:N", sort=names, title=None).axis(labelLimit=260),
            color=colour,
            shape=shape,
            tooltip=[alt.Tooltip("name:N"), alt.Tooltip("threshold:Q"), alt.Tooltip("decision:N")],
        )
    )
    height = ROW * len(names) * 2 // 3
    return alt.LayerChart(layer=[_own(threshold, x), marks], width=WIDTH * 3 // 4, height=height)


def threshold_scores(table: pd.DataFrame, threshold: float) -> alt.ConcatChart:
    """Scores at each threshold, a panel a model, from `evaluation.tables.threshold_table`.

    Lines end where a score is not known or nothing counts. The broken line is the study's own threshold.
    """
    axes = Axes.of_columns(table)
    series = [ORIGINAL, *axes.names]
    long = table.melt(["threshold", "model"], series, var_name="series", value_name="score")
    long = long.assign(score=100 * long["score"], series=long["series"].map(series_name))
    panels, x = [], _thresholds(table, threshold)
    for model, part in long.groupby("model", sort=False):
        lines = (
            alt.Chart(part)
            .mark_line(
                interpolate="step-before", invalid="break-paths-show-path-domains", point={"size": 40, "filled": True}
            )
            .encode(
                x=x,
                y=alt.Y("score:Q", title="Score times 100").scale(zero=False),
                color=series_colour(axes),
                shape=series_shape(axes),
                tooltip=[alt.Tooltip("threshold:Q"), alt.Tooltip("series:N"), alt.Tooltip("score:Q", format=".2f")],
            )
        )
        panel = alt.LayerChart(layer=[_own(threshold, x), lines], title=str(model))
        panels.append(panel.properties(width=PANEL_WIDTH, height=PANEL_WIDTH * 3 // 4))
    figure: alt.ConcatChart = alt.concat(*panels, columns=2)
    return figure


def total_intervals(table: pd.DataFrame) -> alt.LayerChart:
    """The total of each model with the interval that shaky verdicts give it, from `uncertainty_table`."""
    shown = table[table["name"].isin((HTEB_TOTAL, OWN_TOTAL)) & table["value"].notna()]
    total = "HTEB total" if HTEB_TOTAL in set(table["name"]) else "Total"
    shown = shown.assign(**{name: 100 * shown[name] for name in ("value", "low", "high")})
    row = alt.Y("model:N", sort=list(shown["model"]), title=None).axis(labelLimit=260)
    base, colour = alt.Chart(shown), "#CC79A7"
    tooltip = [alt.Tooltip("model:N"), *(alt.Tooltip(f"{name}:Q", format=".2f") for name in ("value", "low", "high"))]
    extent = alt.X("value:Q", title=f"{total} times 100").scale(zero=False)
    intervals = base.mark_rule(strokeWidth=3, color=colour).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=row)
    points = base.mark_point(size=90, filled=True, opacity=1, shape="diamond", color=colour).encode(
        x=extent, y=row, tooltip=tooltip
    )
    return alt.LayerChart(layer=[intervals, points], width=WIDTH, height=ROW * len(shown))


def _own(threshold: float, x: alt.X) -> alt.Chart:
    """The study's threshold."""
    line = alt.Chart(pd.DataFrame({"threshold": [threshold]})).mark_rule(color=NEUTRAL, strokeDash=[4, 4])
    made: alt.Chart = line.encode(x=x)
    return made


def _thresholds(table: pd.DataFrame, own: float) -> alt.X:
    """The thresholds that were tried: the whole scale of the rubric, with room for points at its ends."""
    tried = sorted({*table["threshold"], own})
    room = (tried[-1] - tried[0]) / 50
    axis = alt.X("threshold:Q", title="Threshold of the mean rating").axis(values=tried, format=".2~f")
    return axis.scale(domain=[tried[0] - room, tried[-1] + room], nice=False)
