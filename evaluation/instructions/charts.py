"""Charts of a report on wordings: distributions, variation, inflation, ranks, sources."""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from evaluation.instructions import spread
from evaluation.instructions.analysis import Analysis
from evaluation.instructions.boards import AGAINST_DEFAULTS, AGAINST_WORST
from evaluation.report.paper_tables import SIGNIFICANT
from plumbline.exhibits.charts import COLOURS, NAMES, NEUTRAL, ROW, WIDTH, Kinds, dots, figure, rows, tips, upright
from plumbline.exhibits.page import Figure

MOST_MODELS, MOST_TASKS = 12, 12  # in figures by model and task
_BLUE, _ORANGE, _GREEN = COLOURS.values()
_PANEL = 260
_SERIES = ["Share of tasks", "Median of the ECDF (Figure 5)"]


def all_figures(analysis: Analysis) -> dict[str, Figure]:
    """Return the figures by name, in the page's order, without empty ones."""
    models, tasks, few = charted(analysis)
    figures = {}
    if len(analysis.grid.models) > 1:
        figures["ranks"] = figure(bumps(analysis, models), f"Ranks by four ways to choose wordings; 1 is the best{few}")
    if analysis.inflation["share"].notna().any():
        caption = (
            "Share of tasks whose default is above the median wording, and the default's median ECDF (lines: 95%"
            " intervals over tasks)"
        )
        figures["inflation"] = figure(
            inflation(analysis.inflation[analysis.inflation["model"].isin(models)]), caption + few
        )
    caption = "Scores times 100 under each wording (ticks) and the default (diamond: above the median, square: not)"
    figures["distribution"] = figure(distributions(analysis, models, tasks), caption + few)
    cells = analysis.distribution[analysis.distribution["cv"].notna() & analysis.distribution["model"].isin(models)]
    if len(cells):
        caption = f"Coefficients of variation over wordings, one point per task; line: the median{few}"
        figures["variation"] = figure(variation_dots(cells), caption)
    if len(analysis.origins):
        rows = analysis.origins[analysis.origins["model"].isin(models)]
        figures["sources"] = figure(origins(rows), f"People's wordings minus machines' wordings, medians{few}")
    return figures


def charted(analysis: Analysis) -> tuple[list[str], list[str], str]:
    """Return the models and tasks of figures, those with the largest variation, and a note if some are left out."""
    table = analysis.distribution
    models = _most(table, "model", MOST_MODELS, analysis.grid.models)
    tasks = _most(table[table["model"].isin(models)], "task", MOST_TASKS, analysis.grid.tasks)
    both = ((models, analysis.grid.models, "models"), (tasks, analysis.grid.tasks, "tasks"))
    lacks = [f"the {len(present)} of {len(every)} {noun}" for present, every, noun in both if len(present) < len(every)]
    return models, tasks, f"; shown: {' and '.join(lacks)} whose scores vary most" if lacks else ""


def _most(table: pd.DataFrame, by: str, number: int, names: tuple[str, ...]) -> list[str]:
    largest = table.groupby(by)["sd"].median().sort_values(ascending=False, kind="stable").head(number)
    return [name for name in names if name in largest.index]


def distributions(analysis: Analysis, models: list[str], tasks: list[str]) -> alt.FacetChart:
    """Return a chart with a panel a model and a row a task: a tick for each wording, a mark for the default."""
    records, grid = [], analysis.grid
    middles = spread.median(grid.scores)
    for (m, t), default in np.ndenumerate(grid.default):
        names = grid.models[m], grid.tasks[t]
        if names[0] not in models or names[1] not in tasks:
            continue
        for score, prompt_id in zip(grid.scores[m, t], grid.facts["prompt_id"][t], strict=True):
            if not np.isnan(score):
                records.append((*names, "wording", 100 * score, prompt_id))
        if not np.isnan(default):
            records.append((*names, "above" if default > middles[m, t] else "below", 100 * default, "default"))
    frame = pd.DataFrame(records, columns=["model", "task", "kind", "score", "wording"])
    base = alt.Chart(frame).encode(
        x=alt.X("score:Q", title="Score times 100").scale(zero=False),
        y=rows("task", tasks),
        tooltip=tips("model:N", "task:N", "wording:N", "score:Q:.2f"),
    )
    ticks = base.transform_filter("datum.kind == 'wording'").mark_tick(thickness=2, size=14, color=_BLUE, opacity=0.7)
    kinds = Kinds("kind", {"above": _ORANGE, "below": NEUTRAL}, {"above": "diamond", "below": "square"}, hidden=True)
    marks = base.transform_filter("datum.kind != 'wording'").mark_point(filled=True, size=80, opacity=1)
    defaults = marks.encode(shape=kinds.shape, color=kinds.colour)
    panel = alt.LayerChart(layer=[ticks, defaults], width=_PANEL, height=ROW * 2 // 3 * len(tasks))
    chart: alt.FacetChart = panel.facet(alt.Facet("model:N", sort=models, title=None), columns=2)
    return chart


def variation_dots(cells: pd.DataFrame) -> alt.LayerChart:
    """Return a chart with a row a model: a point for each task's coefficient of variation, a line at the median."""
    frame = cells.assign(percent=100 * cells["cv"])
    row, base = rows("model", cells["model"].unique()), alt.Chart(frame)
    across = alt.X("percent:Q", title="Coefficient of variation (%)").scale(domainMin=0)
    hover = tips("model:N", "task:N", "percent:Q:.2f")
    points = base.mark_point(filled=True, size=40, color=_BLUE, opacity=1).encode(x=across, y=row, tooltip=hover)
    middle = base.mark_tick(thickness=3, size=ROW * 2 // 3, color=_ORANGE).encode(x="median(percent):Q", y=row)
    return alt.LayerChart(layer=[points, middle], width=WIDTH * 3 // 4, height=ROW * cells["model"].nunique())


def inflation(table: pd.DataFrame) -> alt.LayerChart:
    """Return a chart with two points a model and their intervals: the share of tasks, and the paper's quantity."""
    parts = [
        table[["model"]].assign(series=series, **{end: 100 * table[name] for end, name in columns.items()})
        for series, columns in zip(
            _SERIES,
            ({"value": "share", "low": "share_low", "high": "share_high"},
             {"value": "figure5", "low": "figure5_low", "high": "figure5_high"}),
            strict=True,
        )
    ]  # fmt: skip
    kinds = Kinds(
        "series",
        dict(zip(_SERIES, (_BLUE, _ORANGE), strict=True)),
        dict(zip(_SERIES, ("circle", "square"), strict=True)),
        {"symbolOpacity": 1},
        in_rows=True,
    )
    across = alt.X("value:Q", title="Percent").scale(domain=[0, 100], nice=False)
    hover = tips("model:N", "series:N", "value:Q:.1f", "low:Q:.1f", "high:Q:.1f")
    frame = pd.concat(parts, ignore_index=True)
    # An interval from 0 to 100%, as of two tasks, says nothing: its line would look like a result.
    frame.loc[(frame["low"] <= 0) & (frame["high"] >= 100), ["low", "high"]] = math.nan
    layers = dots(frame, across, rows("model", table["model"]), kinds, intervals=True, tooltip=hover)
    return alt.LayerChart(layer=[upright(50.0), *layers], width=WIDTH * 3 // 4, height=ROW * len(table))


def bumps(analysis: Analysis, models: list[str]) -> alt.LayerChart:
    """Return a chart with a line a model over four rankings: defaults, means, its best against defaults and worst."""
    ranks: dict[str, Mapping[str, float]] = {
        "Defaults": dict(zip(analysis.recommended["model"], analysis.recommended["default_rank"], strict=True))
    }
    ranks["Mean over wordings"] = dict(zip(analysis.recommended["model"], analysis.recommended["rank"], strict=True))
    of_model = analysis.boards[analysis.boards["chosen"] == analysis.boards["model"]]
    for title, scenario in (
        ("Own best, others' defaults", AGAINST_DEFAULTS),
        ("Own best, others' worst", AGAINST_WORST),
    ):
        part = of_model[of_model["scenario"] == scenario]
        ranks[title] = dict(zip(part["model"], part["rank"], strict=True))
    records = [
        (title, name, rank_of[name])
        for title, rank_of in ranks.items()
        for name in models
        if not pd.isna(rank_of[name])
    ]
    frame = pd.DataFrame(records, columns=["way", "model", "rank"])
    across = alt.X("way:N", sort=list(ranks), title=None).axis(labelAngle=-20, labelLimit=NAMES)
    up = alt.Y("rank:Q", title="Rank").scale(reverse=True, domain=[0.5, len(analysis.grid.models) + 0.5], nice=False)
    step = max(2, -(-len(analysis.grid.models) // 12))  # at most a dozen ticks
    up = up.axis(values=[1, *range(step, len(analysis.grid.models) + 1, step)], format="d")
    legend = alt.Legend(labelLimit=NAMES, symbolOpacity=1)
    colour = alt.Color("model:N", title=None).scale(domain=models).legend(legend)
    shape = alt.Shape("model:N", title=None).scale(domain=models).legend(legend)
    base = alt.Chart(frame).encode(x=across, y=up, color=colour, tooltip=tips("way:N", "model:N", "rank:Q"))
    points = base.mark_point(filled=True, size=110, opacity=1).encode(shape=shape)
    height = max(180, ROW * len(analysis.grid.models))
    return alt.LayerChart(layer=[base.mark_line(strokeWidth=2), points], width=WIDTH * 3 // 4, height=height)


def origins(table: pd.DataFrame) -> alt.LayerChart:
    """Return a chart with a point for each model and task: the difference of medians, coloured if significant."""
    names = ["Significant (Holm)", "Not significant"]
    frame = table.assign(verdict=np.where(table["p_holm"] < SIGNIFICANT, *names))
    inks, forms = (
        dict(zip(names, (_ORANGE, NEUTRAL), strict=True)),
        dict(zip(names, ("diamond", "circle"), strict=True)),
    )
    kinds = Kinds("verdict", inks, forms).of(frame["verdict"])
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=alt.X("difference:Q", title="Human minus machine (points)"),
            y=rows("task", table["task"].unique()),
            yOffset=alt.YOffset("model:N"),
            color=kinds.colour,
            shape=kinds.shape,
            tooltip=tips("model:N", "task:N", "difference:Q:+.2f", "p_holm:Q:.3f"),
        )
    )
    return alt.LayerChart(layer=[upright(0.0), points], width=WIDTH * 3 // 4, height=ROW * table["task"].nunique())
