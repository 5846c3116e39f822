"""Charts that only the dashboard draws, in the palette's colours: each function turns a frame into a chart.

Texts go into tooltips and labels as data. Text drawn by marks has the page's text colour (`INK`), all other text the
theme's. Models are distinguished by name and position, never by colour: colours mean axes, or up and down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from annotation.report.charts import mean_intervals
from annotation.verdicts.tables import display, scoped
from evaluation.report.drift_charts import LETTERS, DriftScales, caption, drift_panel, ranked
from generation.output_tables import RATES
from plumbline.error_types import LABELS
from plumbline.exhibits.charts import WIDTH, Kinds, heads, heat_map, rows, tips
from plumbline.exhibits.palette import GAIN, LOSS, NEUTRAL, colours
from plumbline.transformations import Axes, axes_in_order, in_order

INK = {False: LETTERS, True: "#FAFAFA"}  # colours of text on a light and on a dark page
SELECTION = "pair"  # the name of a panel's selection; its points carry `pair_id`
#: Blue gains and red loses, as in Figure 6; each has a shape too.
MOVES = {"up": (GAIN, "triangle-up"), "as before": (NEUTRAL, "circle"), "down": (LOSS, "triangle-down")}
_GAP = 10  # pixels between a point and its name
_EDGE = 0.9
_SIDES: tuple[tuple[str, Literal["left", "right"], int], ...] = (
    ("Original", "right", -_GAP),
    ("Transformed", "left", _GAP),
)
_TOOLTIP = 300  # characters of a text in a tooltip; the pair's own view shows all
_ROW = 26  # pixels


@dataclass(frozen=True)
class Panel:
    """A chart with its axis and transformation, and a text that describes it (`alt`)."""

    axis: str
    transformation: str
    chart: alt.Chart
    alt: str


def drift_panels(
    frame: pd.DataFrame, correlations: pd.DataFrame, *, question: str, scale: tuple[float, float], dark: bool
) -> list[Panel]:
    """HTEB's Figure 3 for one model: a panel a transformation, by axis, all with the same scales.

    `frame` and `correlations` are the model's rows of `evaluation.tables.drift_by_quality` and
    `drift_correlations`; `scale` has the ends of the rating scale. `dark` is True for a dark page.
    """
    scales = DriftScales(question, scale, float(frame["drift"].max()), tuple(axes_in_order(correlations["axis"])))
    frame = frame.assign(original=_short(frame["original"]), transformed=_short(frame["transformed"]))
    return [
        Panel(
            axis=str(row["axis"]),
            transformation=str(row["transformation"]),
            chart=_selectable(frame[frame["transformation"] == row["transformation"]], row, scales, dark),
            alt=f"{display(str(row['transformation']), pooled=False)}: {', '.join(caption(row))}",
        )
        for row in ranked(correlations)
    ]


def means_panel(means: pd.DataFrame, scale: Sequence[float], *, dark: bool) -> alt.LayerChart:
    """`annotation.report.charts.mean_intervals` with a threshold that can be seen on a dark page too."""
    panel = mean_intervals(means, scale)
    panel.layer[0].mark.color = INK[dark]
    return panel


def rank_slopes(ranks: pd.DataFrame, *, dark: bool) -> alt.LayerChart:
    """Original against transformed ranks: a line a model, from `ranking_table` of both kinds, merged by model."""
    sides = {f"rank_{side.lower()}": side for side, *_ in _SIDES}
    step = (ranks["rank_original"] - ranks["rank_transformed"]).clip(-1, 1)
    long = ranks.assign(moved=step.map({1: "up", 0: "as before", -1: "down"})).melt(
        id_vars=["model", "moved"], value_vars=list(sides), var_name="side", value_name="rank"
    )
    long = long.sort_values(["side", "rank"], kind="stable")
    # Models that share a rank are drawn below one another.
    long["place"] = long.groupby("side")["rank"].rank(method="first")
    long["label"] = [f"{rank:g}. {model}" for rank, model in zip(long["rank"], long["model"], strict=True)]
    long["side"] = long["side"].map(sides)
    # Two points with `_EDGE` of their distance on both sides, which leaves room for the names even on a phone.
    edge = _EDGE / (1 + 2 * _EDGE)
    heads = alt.X("side:N", sort=list(sides.values()), title=None).axis(orient="top", labelAngle=0, labelOverlap=False)
    base = alt.Chart(long).encode(
        x=heads.scale(padding=_EDGE),
        y=alt.Y("place:Q", title=None, axis=None).scale(reverse=True, nice=False, zero=False, padding=16),
    )
    inks, forms = ({name: look[part] for name, look in MOVES.items()} for part in (0, 1))
    kinds = Kinds("moved", inks, forms).of(long["moved"])
    lines = base.mark_line(strokeWidth=2).encode(detail=alt.Detail("model:N"), color=kinds.colour)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        color=kinds.colour, shape=kinds.shape, tooltip=tips("model:N", "side:N", "rank:Q")
    )
    words = [
        base.transform_filter(alt.datum.side == side)
        .mark_text(align=align, dx=dx, color=INK[dark], limit=alt.expr(f"{edge:.3f} * width - {_GAP + 2}"))
        .encode(text=alt.Text("label:N"))
        for side, align, dx in _SIDES
    ]
    # The page stretches it to its own width; the SVG has this width.
    return alt.LayerChart(layer=[lines, points, *words], width=WIDTH, height=_ROW * len(ranks))


def error_map(table: pd.DataFrame, by: str) -> alt.LayerChart:
    """Error rates as a heat map: `by` (generator or another column of `error_rates`) by error type, in %."""
    labels = {str(flag): label.removesuffix(" Rate") for flag, label in LABELS.items()} | {RATES[-1]: "Total"}
    long = table.melt(id_vars=["generator", by] if by != "generator" else [by], value_vars=list(RATES), var_name="type")
    several = by != "generator" and table["generator"].nunique() > 1
    long["row"] = long["generator"] + ", " + long[by] if several else long[by]
    if by == "transformation":
        long["row"] = long["row"].map(lambda name: name if several else display(name, pooled=False))
    long = long.assign(type=long["type"].map(labels))
    long["words"] = [f"{value:.1f}" if value == value else "–" for value in long["value"]]  # noqa: PLR0124 (NaN)
    reach = max(float(long["value"].max()), 1.0)
    grid = alt.Chart(long).encode(
        x=heads("type", labels.values()),
        y=rows("row", long["row"].drop_duplicates(), limit=160),
        tooltip=tips("row:N", "type:N", "value:Q:.2f"),
    )
    colour = alt.Color("value:Q", title="%").scale(scheme="oranges", domain=[0, reach])
    cells = heat_map(grid, colour, "words:N", dark_letters=f"!(datum.value > {0.6 * reach})")
    return cells.properties(width=WIDTH, height=_ROW * long["row"].nunique())


def progress_bars(progress: pd.DataFrame) -> alt.LayerChart:
    """Answers that count beside those wanted, a row a transformation and language, from `by_transformation`."""
    order = {name: position for position, name in enumerate(in_order(progress["transformation"].unique()))}
    axes = Axes.of(progress).shown
    # A categorical column would be sorted in the order of its categories.
    shown = progress.sort_values("transformation", key=lambda names: names.astype(object).map(order), kind="stable")
    shown = shown.assign(
        row=[scoped(name, language) for name, language in zip(shown["transformation"], shown["language"], strict=True)],
        axis=shown["axis"].map(display),
    )
    inks = dict(zip(map(display, axes), colours(axes).values(), strict=True))
    kinds = Kinds("axis", inks, {})
    hover = tips("row:N", "counting:Q", "wanted:Q", "open:Q", "complete:Q", "pairs:Q")
    base = alt.Chart(shown).encode(y=rows("row", shown["row"], limit=220), tooltip=hover)
    answers = alt.X("wanted:Q", title="Answers (pale: wanted)").axis(**_whole(shown["wanted"].max()))
    wanted = base.mark_bar(color=NEUTRAL, opacity=0.3).encode(x=answers)
    counted = base.mark_bar(height={"band": 0.5}).encode(x=alt.X("counting:Q"), color=kinds.colour)
    return alt.LayerChart(layer=[wanted, counted], width=WIDTH * 2 // 3, height=_ROW * len(shown))


def rater_bars(raters: pd.DataFrame, column: str, title: str) -> alt.Chart:
    """One number of each rater, by pseudonym, from the frame of `raters_exhibit` or `by_rater`."""
    shown = raters[raters[column].notna()].sort_values(column, ascending=False)
    shown = shown.assign(who=shown["simulated"].astype(bool).map({True: "simulated", False: "person"}))
    ticks = _whole(shown[column].max()) if pd.api.types.is_integer_dtype(shown[column]) else {}
    chart: alt.Chart = (
        alt.Chart(shown)
        .mark_bar(color=NEUTRAL)
        .encode(
            x=alt.X(f"{column}:Q", title=title).axis(**ticks),
            y=rows("rater_id", shown["rater_id"], limit=220),
            tooltip=tips("rater_id:N", "who:N", f"{column}:Q"),
        )
        .properties(height=_ROW * len(shown))
    )
    return chart


def _selectable(points: pd.DataFrame, correlation: Mapping[Any, Any], scales: DriftScales, dark: bool) -> alt.Chart:
    """One panel whose points can be selected by a click."""
    chosen = alt.selection_point(name=SELECTION, fields=["pair_id"], on="click", toggle=False)
    return drift_panel(points, correlation, scales, letters=INK[dark], chosen=chosen).add_params(chosen)


def _whole(most: int) -> dict[str, Any]:
    """Return an axis of counts with ticks only at whole numbers; below three Vega's least step would allow halves."""
    return {"values": list(range(most + 1)), "format": "d"} if most < 3 else {"tickMinStep": 1}


def _short(texts: pd.Series[str]) -> pd.Series[str]:
    return texts.where(texts.str.len() <= _TOOLTIP, texts.str.slice(0, _TOOLTIP) + " …")
