"""Forms of charts: frame in, chart out. Reports and the dashboard share them, so that all look alike.

Texts go into tooltips and labels as data: Vega escapes them, and no text becomes an expression. The page's theme, light
or dark, sets backgrounds, grids and letters; colours keep a contrast of 3 to 1 on both. An axis of transformations has
the same colour and shape everywhere (Okabe and Ito's colours, safe for colour-blind readers).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

from plumbline.exhibits.page import Figure

COLOURS = {"lexical_stylistic": "#0072B2", "length": "#D55E00", "language": "#009E73"}
SHAPES = {"lexical_stylistic": "circle", "length": "square", "language": "triangle-up"}
NEUTRAL = "#7F7F7F"

# Colours of a study's own axes, reused from the start after the last one; as dark and light as those above.
OWN_COLOURS = ("#A6761D", "#8C6BB1", "#E7298A")
_OWN_SHAPES = ("triangle-down", "triangle-right", "triangle-left")

ROW = 34  # height in pixels of a row with a name beside it
MOST_ROWS = 24  # of that height
WIDTH = 620  # width of such a chart
PANEL_WIDTH = 280  # width of one chart of several
NAMES = 260  # width of the names of models
_LETTER = 6.5  # its width, of a name of a row
_LETTERS = 80  # in a row of a legend
_PADDING = {"left": 55, "right": 40, "top": 5, "bottom": 15}

Chart = alt.Chart | alt.LayerChart | alt.ConcatChart | alt.FacetChart


def colours(axes: Iterable[str]) -> dict[str, str]:
    """Return the colour of each axis; HTEB's axes have fixed ones."""
    return _with_own(COLOURS, OWN_COLOURS, axes)


def shapes(axes: Iterable[str]) -> dict[str, str]:
    """Return the shape of each axis."""
    return _with_own(SHAPES, _OWN_SHAPES, axes)


def _with_own(htebs: Mapping[str, str], of_study: tuple[str, ...], axes: Iterable[str]) -> dict[str, str]:
    names = list(dict.fromkeys(axes))
    further = [axis for axis in names if axis not in htebs]
    return {axis: htebs.get(axis) or of_study[further.index(axis) % len(of_study)] for axis in names}


@dataclass(frozen=True)
class Kinds:
    """The look of the names in a column: a colour and a shape for each, so that nothing depends on colour alone.

    The legend stands above the chart in as few rows as it can, unless there is one kind alone; `legend` holds more of
    Vega-Lite's settings for it, and `hidden` leaves it out. `in_rows` puts the marks of different kinds in a row below
    one another.
    """

    column: str
    colours: Mapping[str, str]
    shapes: Mapping[str, str]
    legend: Mapping[str, Any] | None = None
    hidden: bool = False
    in_rows: bool = False

    @property
    def colour(self) -> alt.Color:
        """The channel for colours."""
        channel = alt.Color(f"{self.column}:N", title=None)
        colour: alt.Color = self._with_legend(channel.scale(domain=[*self.colours], range=[*self.colours.values()]))
        return colour

    @property
    def shape(self) -> alt.Shape:
        """The channel for shapes."""
        channel = alt.Shape(f"{self.column}:N", title=None)
        shape: alt.Shape = self._with_legend(channel.scale(domain=[*self.shapes], range=[*self.shapes.values()]))
        return shape

    def of(self, names: Iterable[str]) -> Kinds:
        """Return those kinds alone that occur among the names, so that the legend has no other."""
        present = set(names)
        colours = {name: colour for name, colour in self.colours.items() if name in present}
        shapes = {name: shape for name, shape in self.shapes.items() if name in present}
        return replace(self, colours=colours, shapes=shapes)

    @property
    def settings(self) -> dict[str, Any]:
        """Vega-Lite's settings of the legend."""
        return legend_above(self.colours) | dict(self.legend or {})

    def _with_legend(self, channel: Any) -> Any:
        return channel.legend(None) if self.hidden or len(self.colours) == 1 else channel.legend(**self.settings)


def legend_above(names: Iterable[str]) -> dict[str, Any]:
    """Return Vega-Lite's settings of a legend above a chart, in as few rows as it can stand in."""
    columns = columns_of_legend(names, _LETTERS)
    return {"orient": "top", "columns": columns, "columnPadding": 24, "labelLimit": NAMES, "symbolStrokeWidth": 1}


def columns_of_legend(names: Iterable[str], letters: int) -> int:
    """Return how many columns a legend of these names has where a row has room for so many letters."""
    lengths = [len(name) + 4 for name in names]  # with the symbol
    columns = len(lengths) or 1
    while columns > 1 and sum(max(lengths[start::columns]) for start in range(columns)) > letters:
        columns -= 1
    return columns


def tips(*columns: str) -> list[alt.Tooltip]:
    """Return tooltips from `name:N`, `score:Q:.2f` (a format) or `score:Q:.2f:Score of all` (a title)."""
    tooltips = []
    for column in columns:
        name, kind, *rest = column.split(":", 3)
        options: dict[str, Any] = {key: value for key, value in zip(("format", "title"), rest, strict=False) if value}
        tooltips.append(alt.Tooltip(f"{name}:{kind}", **options))
    return tooltips


def rows(column: str, order: Iterable[str], limit: int = NAMES) -> alt.Y:
    """Return a row axis for names in this order; the middle of one over `limit` pixels is left out of its label.

    Names that would have one label stay whole.
    """
    names, letters = list(dict.fromkeys(order)), int(limit / _LETTER)
    labels = {(name[: letters // 3], name[int(1 - letters * 2 / 3) :]) for name in names if len(name) > letters}
    if len(labels) < sum(len(name) > letters for name in names):
        limit = math.ceil(_LETTER * (max(map(len, names)) + 1))
    row: alt.Y = alt.Y(f"{column}:N", sort=names, title=None)
    return row.axis(labelLimit=limit, labelExpr=shortened(str(limit)))


def shortened(limit: str) -> str:
    """Return Vega's expression for a label of `limit` pixels, itself an expression.

    Of a longer name the first third and the end stay: many models' names begin alike, and end in their versions.
    """
    letters = f"floor({limit} / {_LETTER})"
    ends = f"slice(datum.label, 0, {letters} / 3) + '…' + slice(datum.label, 1 - {letters} * 2 / 3)"
    return f"length(datum.label) > {letters} ? {ends} : datum.label"


def heads(column: str, order: Iterable[str], *, above: bool = False) -> alt.X:
    """Return a column axis for names in this order, slanted, or upright `above` the cells of a tall chart."""
    turned: dict[str, Any] = {"orient": "top", "labelAngle": -90} if above else {"labelAngle": -40}
    head: alt.X = alt.X(f"{column}:N", sort=list(order), title=None).axis(labelLimit=160, **turned)
    return head


def upright(value: float, across: alt.X | None = None) -> alt.Chart:
    """Return a broken vertical line: no change, or a threshold on the axis `across`."""
    across = alt.X("value:Q") if across is None else across
    line = alt.Chart(pd.DataFrame({str(across.shorthand).split(":")[0]: [value]}))
    rule: alt.Chart = line.mark_rule(color=NEUTRAL, strokeDash=[4, 4]).encode(x=across)
    return rule


def dots(
    frame: pd.DataFrame,
    across: alt.X,
    row: alt.Y,
    kinds: Kinds,
    *,
    intervals: bool = False,
    tooltip: Sequence[alt.Tooltip] = (),
) -> list[alt.Chart]:
    """Return layers with a dot for each name; with `intervals`, on a line from `low` to `high` if it has these ends."""
    encodings: dict[str, Any] = {"y": row, "color": kinds.colour}
    if kinds.in_rows:
        encodings["yOffset"] = alt.YOffset(f"{kinds.column}:N", sort=[*kinds.colours])
    layers = []
    if intervals:
        start = across.copy()
        start.shorthand = "low:Q"
        lines = alt.Chart(frame.dropna(subset=["low", "high"])).mark_rule(strokeWidth=2)
        layers.append(lines.encode(x=start, x2=alt.X2("high:Q"), **encodings))
    points = alt.Chart(frame).mark_point(size=80, filled=True, opacity=1)
    hover: dict[str, Any] = {"tooltip": list(tooltip)} if tooltip else {}
    layers.append(points.encode(x=across, shape=kinds.shape, **encodings, **hover))
    return layers


def across_of(column: str, title: str, *, zero: bool = True) -> alt.X:
    """Return a horizontal axis of numbers; without `zero` it begins at the smallest number."""
    across: alt.X = alt.X(f"{column}:Q", title=title)
    return across if zero else across.scale(zero=False)


def layered(layers: Sequence[alt.Chart], n_rows: int) -> alt.LayerChart:
    """Return layers as one chart with this many rows."""
    return alt.LayerChart(layer=[*layers], width=WIDTH, height=ROW * n_rows)


def figure(chart: Chart, caption: str) -> Figure:
    """Return a figure of the chart with wide margins: a browser's letters may be wider than those used for layout."""
    return Figure(chart.properties(padding=_PADDING), caption, f"{caption}; see the tables for the numbers")
