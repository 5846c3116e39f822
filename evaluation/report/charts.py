"""Figures of HTEB and the other papers, drawn from the tables of `evaluation.tables`."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from annotation.verdicts.tables import display
from evaluation.report.paper_tables import SIGNIFICANT, p_value
from evaluation.tables.datasets import ENGLISH, OTHERS
from plumbline.exhibits.charts import (
    COLOURS,
    NAMES,
    NEUTRAL,
    PANEL_WIDTH,
    ROW,
    WIDTH,
    Interval,
    Kinds,
    colours,
    dots,
    heads,
    heat_map,
    lines,
    rows,
    shapes,
    tips,
    upright,
)
from plumbline.exhibits.table import number
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import HTEB_TOTAL, Axes, axes_in_order, in_order

TOTAL_COLOUR = "#CC79A7"
_SAME = 1e-9  # scores that differ by less differ only by rounding


def axis_shifts(table: pd.DataFrame, names: int = NAMES) -> alt.LayerChart:
    """Return HTEB's Figure 4: each model's original, axes and total on one line, from `axis_table`.

    A tick in an axis's colour marks the original score on the axis's data sets and items, if the axis does not cover
    all. Models' names longer than `names` pixels are cut; tooltips have them whole.

    """
    axes = Axes.of_columns(table)
    series, row = _series(table, axes, "model"), rows("model", table["model"], names)
    kinds, scores = series_kinds(axes).of(series["series"]), alt.Chart(series)
    spans = scores.mark_rule(color=NEUTRAL, opacity=0.5).encode(
        x=alt.X("min(score):Q"), x2=alt.X2("max(score):Q"), y=row
    )
    marks = scores.mark_point(size=110, strokeWidth=2, filled=True, opacity=1).encode(
        x=alt.X("score:Q", title="Score times 100").scale(zero=False, nice=True),
        y=row,
        color=kinds.colour,
        shape=kinds.shape,
        tooltip=tips("model:N", "series:N", "score:Q:.2f"),
    )
    originals = _own_originals(table, axes)
    ticks = alt.Chart(originals).mark_tick(thickness=3, size=18)
    hover = tips("model:N", "series:N", "original:Q:.2f:Original, same items")
    ticks_of_axes = ticks.encode(x=alt.X("original:Q"), y=row, color=kinds.colour, tooltip=hover)
    layer = [spans, *([ticks_of_axes] if len(originals) else []), marks]
    return alt.LayerChart(layer=layer, width=WIDTH, height=ROW * len(table))


def size_lines(table: pd.DataFrame) -> alt.FacetChart:
    """Return HTEB's Figure 5: scores by model size, a panel a family, from `size_table`."""
    axes = Axes.of_columns(table)
    series = _series(table, axes, "family", "parameters", "model")
    chart = lines(
        series,
        alt.X("parameters:Q", title="Million parameters").scale(type="log", nice=False).axis(tickCount=4),
        alt.Y("score:Q", title="Score times 100").scale(zero=False),
        series_kinds(axes).of(series["series"]),
        tips("model:N", "series:N", "score:Q:.2f"),
        point={"size": 80, "filled": True},
    ).properties(width=PANEL_WIDTH * 3 // 4, height=PANEL_WIDTH)
    figure: alt.FacetChart = chart.facet(column=alt.Column("family:N", title=None)).resolve_scale(x="independent")
    return figure


def delta_map(table: pd.DataFrame, names: int = NAMES) -> alt.LayerChart:
    """Return HTEB's Figure 6: mean differences by model and transformation, from `transformation_table`.

    Blue is a gain, red a loss, white no change. Each cell has its number, with a star where no verdict accepts the
    transformation. Models' names longer than `names` pixels are cut, as in `axis_shifts`.

    """
    labelled = table.assign(
        name=table["transformation"].map(_named),
        label=[
            ("–" if math.isnan(value) else f"{value:+.1f}".replace("-", "−")) + ("*" if refused else "")
            for value, refused in zip(table["difference"], table["included_rejected"].astype(bool), strict=True)
        ],
        included_rejected=table["included_rejected"].astype(bool),
    )
    reach = float(labelled["difference"].abs().max()) or 1.0
    order = [_named(name) for name in in_order(table["transformation"].unique())]
    grid = alt.Chart(labelled).encode(
        x=heads("name", order),
        y=rows("model", table["model"].drop_duplicates(), names),
        tooltip=tips("model:N", "name:N", "difference:Q:+.2f"),
    )
    cells = heat_map(
        grid,
        alt.Color("difference:Q", title="Points").scale(scheme="redblue", domain=[-reach, reach], domainMid=0),
        "label:N",
        dark_letters=f"abs(datum.difference) < {0.6 * reach}",
    )
    return cells.properties(width=62 * len(order), height=ROW * table["model"].nunique())


def shift_intervals(table: pd.DataFrame) -> alt.LayerChart:
    """Return HTEB's Figure 7: Hodges-Lehmann shifts with 95% intervals, from `shift_table`.

    Shifts that are not significant at 5% after Holm's correction are grey. Rows without a shift are left out.

    """
    table = table[table["shift"].notna()]
    labelled = table.assign(
        label=[
            f"{_named(row['name'])} ({p_value(row['p_holm'])}, |Δ| {number(row['median_absolute'])})"
            for row in table.to_dict(orient="records")
        ],
        series=[
            display(axis) if p < SIGNIFICANT else "Not significant"
            for axis, p in zip(table["axis"], table["p_holm"], strict=True)
        ],
    )
    axes = axes_in_order(table["axis"])
    names = [*map(display, axes), "Not significant"]
    kinds = Kinds(
        "series",
        dict(zip(names, [*colours(axes).values(), NEUTRAL], strict=True)),
        dict(zip(names, [*shapes(axes).values(), "cross"], strict=True)),
    ).of(labelled["series"])
    across = alt.X("shift:Q", title="Shift (points)").axis(tickCount=8)
    layers = dots(labelled, across, rows("label", labelled["label"], limit=360), kinds, Interval())
    return alt.LayerChart(layer=[upright(0.0), *layers], width=WIDTH * 2 // 3, height=ROW * len(labelled))


def drops(table: pd.DataFrame) -> alt.LayerChart:
    """Return HTEB's Figure 9: a point a data set, model and transformation, from `score_drops`.

    Lines are the mean drops of the settings.

    """
    kinds = Kinds(
        "setting",
        {ENGLISH: COLOURS["lexical_stylistic"], OTHERS: COLOURS["length"]},
        {ENGLISH: "circle", OTHERS: "triangle-up"},
    ).of(table["setting"])
    base = alt.Chart(table.assign(original=100 * table["original"], name=table["transformation"].map(_named)))
    points = base.mark_point(filled=True, opacity=0.4, size=35).encode(
        x=alt.X("original:Q", title="Original score times 100").scale(zero=False),
        y=alt.Y("drop:Q", title="Drop (points)"),
        color=kinds.colour,
        shape=kinds.shape,
        tooltip=tips("dataset:N", "model:N", "name:N", "drop:Q:+.2f"),
    )
    means = base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("mean(drop):Q"), color=kinds.colour)
    return alt.LayerChart(layer=[points, means], width=WIDTH, height=PANEL_WIDTH)


def axis_sizes(table: pd.DataFrame) -> alt.FacetChart:
    """Return HTEB's Figures 10 and 11: the axes' effects, a bar a model, from `profile_table`.

    Parts of a bar go from the model's largest effect to its smallest. Models with the same order share a panel.

    """
    ordering = table["ordering"].map(lambda names: " > ".join(map(display, names.split(" > "))))
    labelled = table.assign(name=table["axis"].map(display), ordering=ordering)
    axes = axes_in_order(table["axis"].unique())
    kinds = Kinds("name", dict(zip(map(display, axes), colours(axes).values(), strict=True)), {})
    bars = (
        alt.Chart(labelled)
        .mark_bar()
        .encode(
            x=alt.X("size:Q", title="Size of the difference, axes summed (points)"),
            y=rows("model", labelled["model"].unique()),
            color=kinds.colour,
            order=alt.Order("rank:Q"),
            tooltip=tips("model:N", "name:N", "size:Q:.2f"),
        )
        .properties(width=WIDTH, height={"step": ROW * 2 // 3})
    )
    header = alt.Header(labelAngle=0, labelOrient="top", labelAnchor="start")
    panel = alt.Row("ordering:N", title=None, sort=list(labelled["ordering"].unique())).header(header)
    figure: alt.FacetChart = bars.facet(row=panel).resolve_scale(y="independent")
    return figure


def series_name(name: str) -> str:
    """Return a readable name of the original, an axis or the total."""
    return "HTEB total" if name == HTEB_TOTAL else display(name)


def series_kinds(axes: Axes) -> Kinds:
    """Return the series' colours and shapes, which all figures share."""
    names = list(map(series_name, (ORIGINAL, *axes.names)))
    inks = [NEUTRAL, *colours(axes.shown).values(), TOTAL_COLOUR]
    forms = ["cross", *shapes(axes.shown).values(), "diamond"]
    return Kinds("series", dict(zip(names, inks, strict=False)), dict(zip(names, forms, strict=False)))


def _series(table: pd.DataFrame, axes: Axes, *keys: str) -> pd.DataFrame:
    """Return a row for each of a model's series (original, axes, total): its name and its score times 100."""
    long = table.melt(id_vars=list(keys), value_vars=[ORIGINAL, *axes.names], var_name="series", value_name="score")
    return long[long["score"].notna()].assign(score=100 * long["score"], series=long["series"].map(series_name))


def _own_originals(table: pd.DataFrame, axes: Axes) -> pd.DataFrame:
    """Return the originals on which axes' and totals' differences rest, where they differ from the common original."""
    parts = [
        table[["model"]].assign(series=series_name(name), original=100 * table[f"{name}_original"])[
            (table[f"{name}_original"] - table["original"]).abs() > _SAME
        ]
        for name in axes.names
    ]
    return pd.concat(parts, ignore_index=True)


def _named(transformation: str) -> str:
    return display(transformation, pooled=False)
