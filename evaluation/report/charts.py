"""Figures of HTEB and the other papers, drawn from the tables of `evaluation.tables`; drift against ratings."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from annotation.verdicts.tables import display
from evaluation.report.paper_tables import SIGNIFICANT, p_value
from evaluation.tables.datasets import ENGLISH, OTHERS
from plumbline.exhibits.charts import (
    COLOURS,
    MOST_ROWS,
    NEUTRAL,
    OWN_COLOURS,
    PANEL_WIDTH,
    ROW,
    SHAPES,
    WIDTH,
    Kinds,
    colours,
    dots,
    heads,
    rows,
    shapes,
    tips,
    upright,
)
from plumbline.exhibits.table import in_prose, interval, number
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import HTEB_TOTAL, Axes, axes_in_order, in_order
from plumbline.words import count

TOTAL_COLOUR = "#CC79A7"
_SAME = 1e-9  # scores that differ by less differ only by rounding


def axis_shifts(table: pd.DataFrame) -> alt.LayerChart:
    """Return HTEB's Figure 4: each model's original, axes and total on one line, from `axis_table`.

    The model with the highest total comes first. A tick in an axis's colour marks the original score on the axis's data
    sets and items, if the axis does not cover all.
    """
    axes, many = Axes.of_columns(table), len(table) > MOST_ROWS
    table = table.sort_values([axes.total, ORIGINAL], ascending=False, kind="stable")
    series, row = _series(table, axes, "model"), rows("model", table["model"])
    kinds, scores = series_kinds(axes).of(series["series"]), alt.Chart(series)
    spans = scores.mark_rule(color=NEUTRAL, opacity=0.5).encode(
        x=alt.X("min(score):Q"), x2=alt.X2("max(score):Q"), y=row
    )
    marks = scores.mark_point(size=110, strokeWidth=2, filled=True, opacity=1).encode(
        x=alt.X("score:Q", title="Score times 100")
        .scale(zero=False, nice=True)
        .axis(orient="top" if many else "bottom"),
        y=row,
        color=kinds.colour,
        shape=kinds.shape,
        tooltip=tips("model:N", "series:N", "score:Q:.2f"),
    )
    parts = [  # the originals on which differences rest, where they differ from the common original
        table[["model"]].assign(series=series_name(name), original=100 * table[f"{name}_original"])[
            (table[f"{name}_original"] - table["original"]).abs() > _SAME
        ]
        for name in axes.names
    ]
    originals = pd.concat(parts, ignore_index=True)
    ticks = alt.Chart(originals).mark_tick(thickness=3, size=18)
    hover = tips("model:N", "series:N", "original:Q:.2f:Original, same items")
    ticks_of_axes = ticks.encode(x=alt.X("original:Q"), y=row, color=kinds.colour, tooltip=hover)
    layer = [spans, *([ticks_of_axes] if len(originals) else []), marks]
    return alt.LayerChart(layer=layer, width=WIDTH, height=(ROW * 3 // 5 if many else ROW) * len(table))


def size_lines(table: pd.DataFrame) -> alt.FacetChart:
    """Return HTEB's Figure 5: scores by model size, a panel a family, from `size_table`."""
    axes = Axes.of_columns(table)
    series = _series(table, axes, "family", "parameters", "model")
    kinds = series_kinds(axes).of(series["series"])
    chart = alt.Chart(series, width=PANEL_WIDTH * 3 // 4, height=PANEL_WIDTH)
    lines = chart.mark_line(point={"size": 80, "filled": True}).encode(
        x=alt.X("parameters:Q", title="Million parameters").scale(type="log", nice=False).axis(tickCount=4),
        y=alt.Y("score:Q", title="Score times 100").scale(zero=False),
        color=kinds.colour,
        shape=kinds.shape,
        tooltip=tips("model:N", "series:N", "score:Q:.2f"),
    )
    figure: alt.FacetChart = lines.facet(column=alt.Column("family:N", title=None)).resolve_scale(x="independent")
    return figure


def delta_map(table: pd.DataFrame) -> alt.LayerChart:
    """Return HTEB's Figure 6: mean differences by model and transformation, from `transformation_table`.

    Blue is a gain, red a loss, white no change; the model with the best mean difference comes first. Each cell has its
    number, with a star where no verdict accepts the transformation.
    """
    labelled = table.assign(
        name=table["transformation"].map(_named),
        label=[
            in_prose(number(value, 1, "+")) + ("*" if refused else "")
            for value, refused in zip(table["difference"], table["included_rejected"].astype(bool), strict=True)
        ],
        included_rejected=table["included_rejected"].astype(bool),
    )
    reach = float(labelled["difference"].abs().max()) or 1.0
    order = [_named(name) for name in in_order(table["transformation"].unique())]
    means = table.groupby("model", sort=False)["difference"].mean().sort_values(ascending=False, kind="stable")
    grid = alt.Chart(labelled).encode(
        x=heads("name", order, above=len(means) > MOST_ROWS),
        y=rows("model", means.index),
        tooltip=tips("model:N", "name:N", "difference:Q:+.2f"),
    )
    colour = alt.Color("difference:Q", title="Points").scale(scheme="redblue", domain=[-reach, reach], domainMid=0)
    on_pale = alt.condition(f"abs(datum.difference) < {0.6 * reach}", alt.value("#000000"), alt.value("#FFFFFF"))
    letters = grid.mark_text(fontSize=12).encode(text=alt.Text("label:N"), color=alt.ColorValue(**on_pale))
    cells = grid.mark_rect().encode(color=colour)
    return alt.LayerChart(layer=[cells, letters], width=62 * len(order), height=ROW * table["model"].nunique())


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
    layers = dots(labelled, across, rows("label", labelled["label"], limit=360), kinds, intervals=True)
    return alt.LayerChart(layer=[upright(0.0), *layers], width=WIDTH * 2 // 3, height=ROW * len(labelled))


def drops(table: pd.DataFrame) -> alt.LayerChart:
    """Return HTEB's Figure 9: a point a data set, model and transformation, from `score_drops`.

    Lines are the mean drops of the settings, of points that are not drawn too.
    """
    kinds = Kinds(
        "setting",
        {ENGLISH: COLOURS["lexical_stylistic"], OTHERS: COLOURS["length"]},
        {ENGLISH: "circle", OTHERS: "triangle-up"},
    ).of(table["setting"])
    table = table.assign(original=100 * table["original"], name=table["transformation"].map(_named))
    drawn = alt.Chart(drawn_points(table)).mark_point(filled=True, opacity=0.4, size=35)
    points = drawn.encode(
        x=alt.X("original:Q", title="Original score times 100").scale(zero=False),
        y=alt.Y("drop:Q", title="Drop (points)"),
        color=kinds.colour,
        shape=kinds.shape,
        tooltip=tips("dataset:N", "model:N", "name:N", "drop:Q:+.2f"),
    )
    means = alt.Chart(table).mark_rule(strokeWidth=2.5).encode(y=alt.Y("mean(drop):Q"), color=kinds.colour)
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


def _named(transformation: str) -> str:
    return display(transformation, pooled=False)


PANEL_HEIGHT = 340  # with title and axes
LETTERS = "currentColor"  # of the text around the chart
_SUBTITLE = 44  # characters that fit under a panel's title, on a third of a laptop's page
_MOST_STEPS = 10  # on the axis of ratings
POINTS = 2000  # most in a figure: more take a browser seconds, and a quarter of a kilobyte each
_GOLDEN = 0.618034  # the golden ratio: its multiples spread evenly
_WINDOWS = 8  # a median is over the points whose ratings lie within this part of all ratings on each side
_FEWEST = 5  # points for a median
_EIGHT = (*COLOURS.values(), TOTAL_COLOUR, *OWN_COLOURS, NEUTRAL)  # colours that are told apart
_FORMS = (*SHAPES.values(), "diamond", "cross", "triangle-down")
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


def drift_overview(points: pd.DataFrame, correlation: Mapping[Any, Any], scales: DriftScales) -> alt.LayerChart:
    """Return drift against mean ratings in one picture: a point a pair, and the median with the quartiles around it.

    `points` are rows of `drift_by_quality` for one model, and `correlation` a row of `drift_correlations` over all of
    them. Ratings of few raters share few means: points are moved aside a little, the same way each time.
    """
    across, up = _across_and_up(scales)
    level, drawn = points["mean_quality"].round(1), drawn_points(points)
    step = max(float(np.diff(np.unique(level)).min(initial=np.inf)), 0.05) if level.nunique() > 1 else 0.5
    aside = (np.arange(len(drawn)) * _GOLDEN % 1 - 0.5) * min(step, 0.34) * 0.8
    drawn = drawn.assign(name=drawn["transformation"].map(_named), mean_quality=drawn["mean_quality"] + aside)
    names = [_named(name) for name in in_order(points["transformation"].unique())]
    told_apart = len(names) <= len(_EIGHT)
    kinds = Kinds("name", dict(zip(names, itertools.cycle(_EIGHT))), dict(zip(names, itertools.cycle(_FORMS))))
    marks = alt.Chart(drawn).mark_point(filled=True, opacity=0.65, size=45)
    marks = marks.encode(x=across, y=up, tooltip=tips("name:N", "drift:Q:.3f", "original:N", "transformed:N"))
    worst, best = level.min(), level.max()
    near = {
        at: points.loc[(level - at).abs() <= (best - worst) / _WINDOWS, "drift"] for at in np.linspace(worst, best, 25)
    }
    middle = pd.DataFrame(
        [[at, *drift.quantile([0.25, 0.5, 0.75])] for at, drift in near.items() if len(drift) >= _FEWEST],
        columns=["mean_quality", "low", "drift", "high"],
    )
    line = alt.Chart(middle).encode(x=across)
    layers = [
        line.mark_area(color=NEUTRAL, opacity=0.25).encode(y=alt.Y("low:Q"), y2="high:Q"),
        marks.encode(color=kinds.colour, shape=kinds.shape) if told_apart else marks.encode(color=alt.value(_EIGHT[0])),
        line.mark_line(color="currentColor", strokeWidth=2.5).encode(y=up),
    ]
    title = alt.TitleParams(
        f"Drift against mean {scales.question}", subtitle=caption(correlation), anchor="start", offset=8
    )
    return alt.LayerChart(layer=layers, width=WIDTH, height=PANEL_HEIGHT, title=title)


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
    """Return a figure's points for a page: all, or `POINTS` random ones of them, always the same."""
    return frame if len(frame) <= POINTS else frame.sample(POINTS, random_state=POINTS).sort_index()


def left_undrawn(frame: pd.DataFrame) -> str:
    """Return a sentence on points that a page does not draw; "" if it draws all."""
    if len(frame) <= POINTS:
        return ""
    return f"{POINTS:,} of {len(frame):,} points are drawn, at random; all numbers are over all points"


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
