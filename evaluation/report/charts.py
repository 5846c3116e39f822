"""Frame in, chart out: the figures of HTEB, in the colours and shapes of `plumbline.exhibits.palette`.

Texts go into tooltips and labels as data: Vega escapes them, and no expression is made of them. Backgrounds, grids and
letters are the page's theme's, light or dark; the colours keep a contrast of 3 to 1 on both.
"""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from annotation.report.charts import DECISIONS
from annotation.verdicts.tables import display, number, scoped
from evaluation.report.drift_charts import PANEL_WIDTH
from evaluation.tables.datasets import ENGLISH, OTHERS
from plumbline.exhibits.palette import COLOURS, GAIN, LOSS, NEUTRAL, colours, shapes
from plumbline.transformations import AXES, HTEB_TOTAL, ORIGINAL, OWN_TOTAL, Axes, axes_in_order, in_order, total_axes

SIGNIFICANT = 0.05
ROW = 34  # pixels for a row of a chart with names beside it
WIDTH = 620  # of such a chart
NAMES = 260  # for the names of models
_SAME = 1e-9  # scores that differ by less differ by rounding alone
_POINT = 1.0  # Vega-Lite's points are see-through, which a dark page makes too dim
TOTAL_COLOUR = "#CC79A7"


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
    rank = {name: number for number, name in enumerate(in_order(shown["transformation"].unique()))}
    order = list(shown.sort_values("transformation", key=lambda names: names.map(rank))["name"])
    axes = Axes.of(table).shown
    names = [display(axis) for axis in axes]
    colour = (
        alt.Color("axis_name:N", title=None)
        .scale(domain=names, range=list(colours(axes).values()))
        .legend(orient="top", columns=1, symbolOpacity=1)
    )
    shape = (
        alt.Shape("axis_name:N", title=None)
        .scale(domain=names, range=list(shapes(axes).values()))
        .legend(orient="top", columns=1, symbolOpacity=1)
    )
    hollow = alt.FillOpacityValue(**alt.condition(alt.datum["included_rejected"], alt.value(0), alt.value(1)))
    tooltip = [
        alt.Tooltip("name:N", title="Transformation"),
        alt.Tooltip("original:Q", title="Original, same items", format=".2f"),
        alt.Tooltip("score:Q", title="Transformed", format=".2f"),
        alt.Tooltip("difference:Q", title="Difference (points)", format="+.2f"),
        alt.Tooltip("n_datasets:Q", title="Data sets"),
    ]
    row = alt.Y("name:N", sort=order, title=None).axis(labelLimit=160)
    extent = alt.X("original:Q", title="Score times 100 (grey bar: original)").scale(zero=False, nice=True)
    extent = extent.axis(tickCount=6)
    base = alt.Chart(shown)
    lines = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=extent, x2=alt.X2("score:Q"), y=row, color=colour)
    before = base.mark_tick(color=NEUTRAL, thickness=3, size=16).encode(x=extent, y=row, tooltip=tooltip)
    after = base.mark_point(size=110, strokeWidth=2, filled=False, opacity=_POINT).encode(
        x=alt.X("score:Q"), y=row, color=colour, fill=colour, fillOpacity=hollow, shape=shape, tooltip=tooltip
    )
    return alt.LayerChart(layer=[lines, before, after], height=ROW * len(shown) + 90)


def axis_shifts(table: pd.DataFrame, names: int = NAMES) -> alt.LayerChart:
    """HTEB's Figure 4: original, axes and total of each model on one line, from `evaluation.tables.axis_table`.

    A tick in an axis's colour is the original of the data sets and items that it rests on, where these are not all.
    `names` are the pixels for models' names; a longer one is cut, and the tooltip has it whole.
    """
    axes = Axes.of_columns(table)
    shown = _series(table, axes, "model")
    models = list(table["model"])
    row = alt.Y("model:N", sort=models, title=None).axis(labelLimit=names)
    extent = alt.X("score:Q", title="Score times 100").scale(zero=False, nice=True)
    base = alt.Chart(shown)
    lines = base.mark_rule(color=NEUTRAL, opacity=0.5).encode(x=alt.X("min(score):Q"), x2=alt.X2("max(score):Q"), y=row)
    marks = base.mark_point(size=110, strokeWidth=2, filled=True, opacity=_POINT).encode(
        x=extent,
        y=row,
        color=series_colour(axes),
        shape=series_shape(axes),
        tooltip=[alt.Tooltip("model:N"), alt.Tooltip("series:N"), alt.Tooltip("score:Q", format=".2f")],
    )
    originals = _own_originals(table, axes)
    ticks = (
        alt.Chart(originals)
        .mark_tick(thickness=3, size=18)
        .encode(
            x=alt.X("original:Q"),
            y=row,
            color=series_colour(axes),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("series:N"),
                alt.Tooltip("original:Q", title="Original, same items", format=".2f"),
            ],
        )
    )
    layer = [lines, *([ticks] if len(originals) else []), marks]
    return alt.LayerChart(layer=layer, width=WIDTH, height=ROW * len(models))


def size_lines(table: pd.DataFrame) -> alt.FacetChart:
    """HTEB's Figure 5: scores by model size, a panel a family, from `evaluation.tables.size_table`."""
    axes = Axes.of_columns(table)
    shown = _series(table, axes, "family", "parameters", "model")
    lines = (
        alt.Chart(shown)
        .mark_line(point={"size": 80, "filled": True})
        .encode(
            x=alt.X("parameters:Q", title="Million parameters").scale(type="log", nice=False).axis(tickCount=4),
            y=alt.Y("score:Q", title="Score times 100").scale(zero=False),
            color=series_colour(axes),
            shape=series_shape(axes),
            tooltip=[alt.Tooltip("model:N"), alt.Tooltip("series:N"), alt.Tooltip("score:Q", format=".2f")],
        )
        .properties(width=PANEL_WIDTH * 3 // 4, height=PANEL_WIDTH)
    )
    figure: alt.FacetChart = lines.facet(column=alt.Column("family:N", title=None)).resolve_scale(x="independent")
    return figure


def delta_map(table: pd.DataFrame, names: int = NAMES) -> alt.LayerChart:
    """HTEB's Figure 6: mean difference by model and transformation, from `evaluation.tables.transformation_table`.

    Blue gains, red loses, white is no change; the number stands in each cell, with a star where the gate refused it.
    `names` are the pixels for models' names, as in `axis_shifts`.
    """
    shown = table.assign(
        name=table["transformation"].map(lambda name: display(name, pooled=False)),
        label=[
            ("–" if math.isnan(value) else f"{value:+.1f}".replace("-", "−")) + ("*" if refused else "")
            for value, refused in zip(table["difference"], table["included_rejected"].astype(bool), strict=True)
        ],
        included_rejected=table["included_rejected"].astype(bool),
    )
    reach = float(shown["difference"].abs().max()) or 1.0
    heads = [display(name, pooled=False) for name in in_order(table["transformation"].unique())]
    base = alt.Chart(shown).encode(
        x=alt.X("name:N", sort=heads, title=None).axis(labelAngle=-40, labelLimit=160),
        y=alt.Y("model:N", sort=list(table["model"].drop_duplicates()), title=None).axis(labelLimit=names),
        tooltip=[alt.Tooltip("model:N"), alt.Tooltip("name:N"), alt.Tooltip("difference:Q", format="+.2f")],
    )
    colour = alt.Color("difference:Q", title="Points").scale(scheme="redblue", domain=[-reach, reach], domainMid=0)
    pale = f"abs(datum.difference) < {0.6 * reach}"
    cells = base.mark_rect().encode(color=colour)
    words = base.mark_text(fontSize=12).encode(
        text=alt.Text("label:N"),
        color=alt.ColorValue(**alt.condition(pale, alt.value("#000000"), alt.value("#FFFFFF"))),
    )
    return alt.LayerChart(layer=[cells, words], width=62 * len(heads), height=ROW * table["model"].nunique())


def shift_intervals(table: pd.DataFrame) -> alt.LayerChart:
    """HTEB's Figure 7: Hodges-Lehmann shifts with 95% intervals, from `evaluation.tables.shift_table`.

    What is not significant at 5% after Holm's correction is grey. Rows without a shift are not in it.
    """
    table = table[table["shift"].notna()]
    shown = table.assign(
        label=[
            f"{display(row['name'], pooled=False)} ({p_value(row['p_holm'])}, |Δ| {number(row['median_absolute'])})"
            for row in table.to_dict(orient="records")
        ],
        series=[
            display(axis) if p < SIGNIFICANT else "Not significant"
            for axis, p in zip(table["axis"], table["p_holm"], strict=True)
        ],
    )
    axes = axes_in_order((*total_axes(table["name"], table["axis"]), *table["axis"]))
    names = [*map(display, axes), "Not significant"]
    colour = alt.Color("series:N", title=None).scale(domain=names, range=[*colours(axes).values(), NEUTRAL])
    shape = alt.Shape("series:N", title=None).scale(domain=names, range=[*shapes(axes).values(), "cross"])
    row = alt.Y("label:N", sort=list(shown["label"]), title=None).axis(labelLimit=360)
    base = alt.Chart(shown)
    zero = (
        alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=NEUTRAL, strokeDash=[4, 4]).encode(x=alt.X("zero:Q"))
    )
    intervals = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=row, color=colour)
    points = base.mark_point(size=90, filled=True, opacity=1).encode(
        x=alt.X("shift:Q", title="Shift (points)"), y=row, color=colour, shape=shape
    )
    return alt.LayerChart(layer=[zero, intervals, points], width=WIDTH * 2 // 3, height=ROW * len(shown))


def p_value(p: float) -> str:
    """A p-value in words as papers print it."""
    if math.isnan(p):
        return "no p"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def _series(table: pd.DataFrame, axes: Axes, *keys: str) -> pd.DataFrame:
    """A row for each of a model's series (original, axes, total): its name and its score times 100."""
    long = table.melt(id_vars=list(keys), value_vars=[ORIGINAL, *axes.names], var_name="series", value_name="score")
    return long[long["score"].notna()].assign(score=100 * long["score"], series=long["series"].map(series_name))


def _own_originals(table: pd.DataFrame, axes: Axes) -> pd.DataFrame:
    """The originals that an axis's, or the total's, difference is from, where it is not the one that all share."""
    names = {name: f"{name}_original" for name in axes.names}
    parts = [
        table[["model"]].assign(series=series_name(name), original=100 * table[column])[
            (table[column] - table["original"]).abs() > _SAME
        ]
        for name, column in names.items()
    ]
    return pd.concat(parts, ignore_index=True)


def series_name(name: str) -> str:
    """Original, an axis or the total as people read it."""
    return "HTEB total" if name == HTEB_TOTAL else display(name)


def series_colour(axes: Axes) -> alt.Color:
    """The colour of each series, the same in all figures."""
    names = list(map(series_name, (ORIGINAL, *axes.names)))
    shown = [NEUTRAL, *colours(axes.shown).values(), TOTAL_COLOUR]
    return alt.Color("series:N", title=None).scale(domain=names, range=shown)


def series_shape(axes: Axes) -> alt.Shape:
    """Its shape."""
    names = list(map(series_name, (ORIGINAL, *axes.names)))
    shown = ["cross", *shapes(axes.shown).values(), "diamond"]
    return alt.Shape("series:N", title=None).scale(domain=names, range=shown)


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


#: The shapes are those of the campaign's report.
_DECISIONS = {"accepted": GAIN, "undecided": NEUTRAL, "rejected": LOSS}


def threshold_decisions(table: pd.DataFrame, threshold: float) -> alt.LayerChart:
    """What would be accepted at each threshold: a row a scope, from `evaluation.tables.threshold_decisions`.

    The broken line is the study's own threshold.
    """
    shown = table.assign(name=list(map(scoped, table["transformation"], table["language"], table["task_type"])))
    order = {name: position for position, name in enumerate(in_order(table["transformation"].unique()))}
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
    rule: alt.Chart = line.encode(x=x)
    return rule


def _thresholds(table: pd.DataFrame, threshold: float) -> alt.X:
    """The thresholds that were tried: the whole scale of the rubric, with room for points at its ends."""
    tried = sorted({*table["threshold"], threshold})
    room = (tried[-1] - tried[0]) / 50
    axis = alt.X("threshold:Q", title="Threshold of the mean rating").axis(values=tried, format=".2~f")
    return axis.scale(domain=[tried[0] - room, tried[-1] + room], nice=False)
