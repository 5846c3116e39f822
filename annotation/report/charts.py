"""The report's figures: charts of frames, and their descriptions in words.

Colours of axes are those of `exhibits.charts`; those of ratings are ColorBrewer's PuOr, which all eyes tell apart.
A decision has a shape and a word, so that nothing depends on colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from annotation.campaign.rubric import Rubric
from annotation.verdicts.tables import display, interval_of, scoped
from plumbline.exhibits.charts import MOST_ROWS, NEUTRAL, WIDTH, Kinds, colours, legend_above, rows, tips
from plumbline.exhibits.table import number
from plumbline.scales import classes_of, is_whole, marks
from plumbline.study.transformations import Axes, in_order

DECISIONS = {"accepted": "circle", "undecided": "diamond", "rejected": "cross"}
_WIDTH = 280  # with the labels beside it, two charts stand side by side, and one can be read on a telephone
_ROW = 24
_BAR = 26
_FAINT = 0.07  # smaller shares have no number in them
_PUOR = ((230, 97, 1), (253, 184, 99), (247, 247, 247), (178, 171, 210), (94, 60, 153))
_INK = "#1f2430"
_PATHS = {"accepted": "#009E73", "undecided": NEUTRAL, "rejected": "#D55E00"}


def rating_shares(shares: pd.DataFrame, scale: Sequence[float]) -> alt.LayerChart:
    """Chart the shares of each point of the scale for one question.

    Each bar is a transformation, from the lowest point to the highest.

    `shares` has the columns transformation, value, share (0 to 1) and total (ratings), a row for each transformation
    and point (or fifth of a scale with many), in the order in which they are shown.
    """
    classes = classes_of(np.array([]), scale)[0]
    at = np.linspace(0, len(_PUOR) - 1, len(classes))  # between PuOr's five stops
    channels = [np.interp(at, range(len(_PUOR)), channel).round().astype(int) for channel in zip(*_PUOR, strict=True)]
    red, green, blue = channels
    # On these, white letters are easier to read than black ones (weights of ITU-R BT.601).
    dark = dict(zip(classes, (0.299 * red + 0.587 * green + 0.114 * blue < 110).tolist(), strict=True))
    ends = shares.groupby("transformation", sort=False)["share"].cumsum()
    bars = shares.assign(
        name=_bar_names(shares),
        start=ends - shares["share"],
        end=ends,
        middle=ends - shares["share"] / 2,
        words=[f"{share:.0%}" if share >= _FAINT else "" for share in shares["share"]],
        dark=shares["value"].map(dark),
    )
    row = alt.Y("name:N", sort=list(dict.fromkeys(bars["name"])), title=None)
    colour = alt.Color("value:O", title="Rating").scale(
        domain=classes, range=["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in zip(*channels, strict=True)]
    )
    base = alt.Chart(bars)
    parts = base.mark_bar(stroke=NEUTRAL, strokeWidth=0.5).encode(
        x=alt.X("start:Q", title="Share of ratings").scale(domain=[0, 1]).axis(format="%", tickCount=5),
        x2=alt.X2("end:Q"),
        y=row,
        color=colour.legend(**legend_above(map(str, classes))),
    )
    letters = base.mark_text(fontSize=11).encode(
        x=alt.X("middle:Q"),
        y=row,
        text=alt.Text("words:N"),
        opacity=alt.condition("datum.share * width > 26", alt.value(1), alt.value(0)),  # a phone's bars are narrow
        color=alt.ColorValue(**alt.condition("datum.dark", alt.value("white"), alt.value(_INK))),
    )
    return _finished([parts, letters], bars["name"])


def shares_in_words(shares: pd.DataFrame) -> str:
    """Describe `rating_shares` in words, for screen readers."""
    parts = []
    for name, group in shares.assign(name=_bar_names(shares)).groupby("name", sort=False):
        points = ", ".join(
            f"{share:.0%} are {value}" for value, share in zip(group["value"], group["share"], strict=True)
        )
        parts.append(f"{name}: {points}" if group["total"].iloc[0] else f"{name}: no ratings")
    return f"{'; '.join(parts)}."


def mean_intervals(means: pd.DataFrame, scale: Sequence[float]) -> alt.LayerChart:
    """Chart one question's means with their intervals against the threshold: a row for each verdict, with its decision.

    `means` has the columns transformation, language, task_type, axis, decision, mean, low, high and threshold, in the
    order in which they are shown. A mean without an interval is a point alone.
    """
    rows = means.assign(name=_verdict_names(means), axis_name=means["axis"].map(display))
    ends = [float(scale[0]), float(scale[-1])]

    def across(column: str) -> alt.X:
        # A phone has no room for a longer title; the caption says what the lines are.
        extent = alt.X(f"{column}:Q", title="Mean rating").scale(domain=ends, nice=False)
        where: Literal["top", "bottom"] = "top" if len(rows) > MOST_ROWS else "bottom"  # the end is out of sight
        placed: alt.X = extent.axis(values=marks(scale), format="d" if is_whole(scale) else "~g", orient=where)
        return placed

    row = alt.Y("name:N", sort=list(rows["name"]), title=None)
    inks = {display(axis): ink for axis, ink in colours(Axes.of(means).shown).items() if axis in {*means["axis"]}}
    colour = Kinds("axis_name", inks, {}).colour
    shapes = alt.Scale(domain=list(DECISIONS), range=list(DECISIONS.values()))
    lines = alt.Chart(rows.dropna(subset=["low", "high"])).mark_rule(strokeWidth=2)
    points = alt.Chart(rows.dropna(subset=["mean"])).mark_point(size=110, filled=True, opacity=1)
    limits = alt.Chart(pd.DataFrame({"threshold": sorted(rows["threshold"].dropna().unique())}))
    layers = [
        limits.mark_rule(strokeDash=[5, 4], color=NEUTRAL).encode(x=across("threshold")),
        lines.encode(x=across("low"), x2=alt.X2("high:Q"), y=row, color=colour),
        points.encode(
            x=across("mean"),
            y=row,
            color=colour,
            shape=alt.Shape("decision:N", scale=shapes, legend=None),  # the row's name says it
        ),
    ]
    return _finished(layers, rows["name"])


def looks_charts(looks: pd.DataFrame, rubric: Rubric) -> Iterator[tuple[alt.LayerChart, str]]:
    """Yield a chart with its caption for each question with looks after blocks: the path of each verdict's mean.

    `looks` has the columns of `annotation.verdicts.tables.looks_frame`.
    """
    for question in rubric.rating_names():
        of_question = looks[(looks["question"] == question) & (looks["label"] == "")]
        if len(of_question):
            yield (
                look_paths(of_question, rubric.scale_of(question)),
                f"Mean {question} at each look, with the interval that is valid at all looks; the dashed line is the"
                " limit.",
            )


def look_paths(looks: pd.DataFrame, scale: Sequence[float]) -> alt.LayerChart:
    """Chart the mean of each verdict at each look, with its interval, against the limit."""
    places = sorted(map(int, looks["pairs"].unique()))
    across = alt.X("pairs:Q", title="Pairs rated by the look").axis(values=places).scale(zero=False, padding=12)
    extent = alt.Scale(domain=[float(scale[0]), float(scale[-1])], nice=False)  # of each layer, or one would add a zero
    colour = Kinds("decision", _PATHS, {}).of(looks["decision"]).colour
    base = alt.Chart(looks).encode(x=across, detail="verdict:N", color=colour)
    limits = alt.Chart(looks[["limit"]].drop_duplicates()).mark_rule(strokeDash=[5, 4], color=NEUTRAL)
    layers = [
        limits.encode(y=alt.Y("limit:Q", scale=extent)),
        base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", scale=extent), y2="high:Q"),
        base.mark_line(point={"size": 60, "filled": True}).encode(
            y=alt.Y("mean:Q", title="Mean rating", scale=extent), tooltip=tips("verdict:N", "look:Q", "mean:Q:.2f")
        ),
    ]
    return alt.LayerChart(layer=layers, width=_WIDTH, height=_WIDTH)


def progress_bars(progress: pd.DataFrame) -> alt.LayerChart:
    """Answers that count beside those wanted, a row a transformation and language, from `by_transformation`."""
    order = {name: position for position, name in enumerate(in_order(progress["transformation"].unique()))}
    # A categorical column would be sorted in the order of its categories.
    ordered = progress.sort_values("transformation", key=lambda names: names.astype(object).map(order), kind="stable")
    ordered = ordered.assign(
        row=[
            scoped(name, language)
            for name, language in zip(ordered["transformation"], ordered["language"], strict=True)
        ],
        axis=ordered["axis"].map(display),
    )
    inks = {display(axis): ink for axis, ink in colours(Axes.of(progress).shown).items() if axis in {*progress["axis"]}}
    kinds = Kinds("axis", inks, {})
    hover = tips("row:N", "counting:Q", "wanted:Q", "open:Q", "complete:Q", "pairs:Q")
    base = alt.Chart(ordered).encode(y=rows("row", ordered["row"], limit=220), tooltip=hover)
    answers = alt.X("wanted:Q", title="Answers (pale: wanted)").axis(tickMinStep=1)
    wanted = base.mark_bar(color=NEUTRAL, opacity=0.3).encode(x=answers)
    counted = base.mark_bar(height={"band": 0.5}).encode(x=alt.X("counting:Q"), color=kinds.colour)
    return alt.LayerChart(layer=[wanted, counted], width=WIDTH * 2 // 3, height=_BAR * len(ordered))


def means_in_words(means: pd.DataFrame) -> str:
    """Describe `mean_intervals` in words, for screen readers."""
    parts = []
    for name, row in zip(_verdict_names(means), means.to_dict(orient="records"), strict=True):
        parts.append(f"{name}, mean {interval_of(row)}")
    limits = " and ".join(number(limit) for limit in sorted(means["threshold"].dropna().unique()))
    return f"{f'Threshold {limits}. ' if limits else ''}{'; '.join(parts)}."


def _finished(layers: list[alt.Chart], names: pd.Series[str]) -> alt.LayerChart:
    """Return the layers as one chart in its size and font; `names` are its rows' names."""
    # Browsers' letters are wider than those that the layout assumes.
    padding = {"left": 8 + 1.2 * names.str.len().max(), "right": 16, "top": 5, "bottom": 5}
    config = alt.Config(
        font="sans-serif",
        axis=alt.AxisConfig(labelFontSize=12, titleFontSize=12, labelLimit=460, titleFontWeight="normal"),
        legend=alt.LegendConfig(labelFontSize=12, titleFontSize=12, titleFontWeight="normal"),
        view=alt.ViewConfig(stroke=None),
    )
    return alt.LayerChart(layer=layers, width=_WIDTH, height=_ROW * names.nunique(), padding=padding, config=config)


def _bar_names(shares: pd.DataFrame) -> list[str]:
    names = zip(shares["transformation"], shares["total"], strict=True)
    return [f"{display(name, pooled=False)} (n = {total:,})" for name, total in names]


def _verdict_names(means: pd.DataFrame) -> list[str]:
    """Return the names of verdicts: `Paraphrasing (en): accepted`."""
    places = zip(means["transformation"], means["language"], means["task_type"], means["decision"], strict=True)
    return [f"{scoped(name, language, task)}: {decision}" for name, language, task, decision in places]
