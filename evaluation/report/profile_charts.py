"""Frame in, chart out: what disrupts models, and how far texts drift (HTEB, Figures 9 to 11)."""

from __future__ import annotations

import altair as alt
import pandas as pd

from annotation.verdicts.tables import display
from evaluation.report.charts import ROW, WIDTH
from evaluation.report.drift_charts import PANEL_WIDTH
from evaluation.tables.profiles import ENGLISH, OTHERS
from plumbline.exhibits.palette import COLOURS, colours, shapes
from plumbline.transformations import AXES, Axes, axes_in_order, in_order

_SETTINGS = {ENGLISH: COLOURS["lexical_stylistic"], OTHERS: COLOURS["length"]}
_SETTING_SHAPES = {ENGLISH: "circle", OTHERS: "triangle-up"}


def drops(table: pd.DataFrame) -> alt.LayerChart:
    """HTEB's Figure 9: a point a data set, model and transformation, from `evaluation.tables.drop_table`.

    The lines are each setting's mean drop.
    """
    shown = table.assign(
        original=100 * table["original"], name=table["transformation"].map(lambda name: display(name, pooled=False))
    )
    colour = alt.Color("setting:N", title=None).scale(domain=list(_SETTINGS), range=list(_SETTINGS.values()))
    shape = alt.Shape("setting:N", title=None).scale(domain=list(_SETTING_SHAPES), range=list(_SETTING_SHAPES.values()))
    base = alt.Chart(shown)
    points = base.mark_point(filled=True, opacity=0.4, size=35).encode(
        x=alt.X("original:Q", title="Original score times 100").scale(zero=False),
        y=alt.Y("drop:Q", title="Drop (points)"),
        color=colour,
        shape=shape,
        tooltip=[
            alt.Tooltip("dataset:N"),
            alt.Tooltip("model:N"),
            alt.Tooltip("name:N"),
            alt.Tooltip("drop:Q", format="+.2f"),
        ],
    )
    means = base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("mean(drop):Q"), color=colour)
    return alt.LayerChart(layer=[points, means], width=WIDTH, height=PANEL_WIDTH)


def axis_sizes(table: pd.DataFrame) -> alt.FacetChart:
    """HTEB's Figures 10 and 11: what each axis moves, a bar a model, from `evaluation.tables.profile_table`.

    The parts of a bar stand from the axis that moves the model most to the one that moves it least; models with the
    same order are a panel.
    """
    shown = table.assign(name=table["axis"].map(display), ordering=table["ordering"].map(_ordering))
    axes = axes_in_order(table["axis"].unique())
    axes = list(AXES) if set(axes) <= set(AXES) else axes
    names = [display(axis) for axis in axes]
    colour = alt.Color("name:N", title=None).scale(domain=names, range=list(colours(axes).values()))
    bars = (
        alt.Chart(shown)
        .mark_bar()
        .encode(
            x=alt.X("size:Q", title="Size of the difference, axes summed (points)"),
            y=alt.Y("model:N", sort=list(shown["model"].unique()), title=None).axis(labelLimit=260),
            color=colour,
            order=alt.Order("rank:Q"),
            tooltip=[alt.Tooltip("model:N"), alt.Tooltip("name:N"), alt.Tooltip("size:Q", format=".2f")],
        )
        .properties(width=WIDTH, height={"step": ROW * 2 // 3})
    )
    header = alt.Header(labelAngle=0, labelOrient="top", labelAnchor="start")
    row = alt.Row("ordering:N", title=None, sort=list(shown["ordering"].unique())).header(header)
    figure: alt.FacetChart = bars.facet(row=row).resolve_scale(y="independent")
    return figure


def text_drifts(table: pd.DataFrame) -> alt.ConcatChart:
    """The drift of all texts by transformation, a panel a model, from `evaluation.tables.text_drift_table`.

    A thin line goes from 5% to 95% of the texts, a thick one over the middle half, a point is the median.
    """
    shown = table.assign(name=table["transformation"].map(lambda name: display(name, pooled=False)))
    names = [display(name, pooled=False) for name in in_order(table["transformation"].unique())]
    axes = Axes.of(table).shown
    colour = alt.Color("axis:N", legend=None).scale(domain=list(axes), range=list(colours(axes).values()))
    shape = alt.Shape("axis:N", legend=None).scale(domain=list(axes), range=list(shapes(axes).values()))
    tooltip = [
        alt.Tooltip("name:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("median", "mean", "low", "high")),
        alt.Tooltip("n:Q"),
    ]
    extent = alt.X("median:Q", title="Drift (1 − cos)").scale(domain=[0, float(shown["high"].max()) or 1.0])
    panels = []
    for model, part in shown.groupby("model", sort=False):
        row = alt.Y("name:N", sort=names, title=None).axis(labelLimit=160)
        base = alt.Chart(part)
        thin = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=row, color=colour)
        thick = base.mark_rule(strokeWidth=7, opacity=0.5).encode(
            x=alt.X("lower_quartile:Q"), x2=alt.X2("upper_quartile:Q"), y=row, color=colour
        )
        points = base.mark_point(size=80, filled=True, opacity=1).encode(
            x=extent, y=row, color=colour, shape=shape, tooltip=tooltip
        )
        panel = alt.LayerChart(layer=[thin, thick, points], title=str(model))
        panels.append(panel.properties(width=PANEL_WIDTH, height=ROW * len(part)))
    figure: alt.ConcatChart = alt.concat(*panels, columns=2)
    return figure


def _ordering(ordering: str) -> str:
    return " > ".join(display(axis) for axis in ordering.split(" > "))
