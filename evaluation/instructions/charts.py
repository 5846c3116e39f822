"""Frame in, chart out: distributions, variation, inflation, ranks, people against machines, coverage."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from evaluation.instructions.analysis import Analysis
from evaluation.instructions.boards import AGAINST_DEFAULTS, AGAINST_WORST
from evaluation.instructions.tables import coverage_table
from evaluation.report.paper_tables import SIGNIFICANT
from plumbline.exhibits.charts import NAMES, ROW, WIDTH, figure
from plumbline.exhibits.page import Figure
from plumbline.exhibits.palette import COLOURS, GAIN, LOSS, NEUTRAL

MOST_MODELS, MOST_TASKS = 12, 12  # in figures that have something for each model and task
_BLUE, _ORANGE, _GREEN = COLOURS.values()
_PANEL = 260
_STEPS = 64  # points of a violin's outline
_SERIES = ["Share of tasks", "Median of the ECDF (Figure 5)"]


def all_figures(analysis: Analysis) -> dict[str, Figure]:
    """The figures by name, in the page's order; those that would show nothing are left away."""
    models, tasks, few = shown(analysis)
    figures = {}
    if len(analysis.grid.models) > 1:
        figures["ranks"] = figure(
            bumps(analysis, models), f"Ranks by four ways to take the wording; 1 is the best{few}"
        )
    if analysis.inflation["share"].notna().any():
        caption = "Tasks whose default is above the median wording, and the default's median ECDF, with 95% over tasks"
        figures["inflation"] = figure(
            inflation(analysis.inflation[analysis.inflation["model"].isin(models)]), caption + few
        )
    caption = "Scores times 100 under each wording (ticks) with the default (diamond: above the median, square: not)"
    figures["distribution"] = figure(distributions(analysis, models, tasks), caption + few)
    cells = analysis.distribution[analysis.distribution["cv"].notna() & analysis.distribution["model"].isin(models)]
    if len(cells):
        caption = "Coefficients of variation over wordings, a point a task; outline: their density, line: the median"
        figures["variation"] = figure(violins(cells), caption + few)
    if len(analysis.origins):
        rows = analysis.origins[analysis.origins["model"].isin(models)]
        figures["sources"] = figure(origins(rows), f"People's wordings less machines', medians{few}")
    figures["coverage"] = figure(
        coverage(analysis, models, tasks), f"Wordings with a score that counts; red: no default{few}"
    )
    return figures


def shown(analysis: Analysis) -> tuple[list[str], list[str], str]:
    """Models and tasks in figures, those with the largest variation first taken, and what to say where some lack."""
    table = analysis.distribution
    models = _most(table, "model", MOST_MODELS, analysis.grid.models)
    tasks = _most(table[table["model"].isin(models)], "task", MOST_TASKS, analysis.grid.tasks)
    both = ((models, analysis.grid.models, "models"), (tasks, analysis.grid.tasks, "tasks"))
    lacks = [f"{len(present)} of {len(every)} {what}" for present, every, what in both if len(present) < len(every)]
    return models, tasks, f"; {' and '.join(lacks)}: those that vary most" if lacks else ""


def _most(table: pd.DataFrame, by: str, number: int, names: tuple[str, ...]) -> list[str]:
    largest = table.groupby(by)["sd"].median().sort_values(ascending=False, kind="stable").head(number)
    return [name for name in names if name in largest.index]


def distributions(analysis: Analysis, models: list[str], tasks: list[str]) -> alt.FacetChart:
    """A panel a model, a row a task: a tick for each wording, the default in its own shape."""
    panel = panel_of(analysis, models, tasks)
    chart: alt.FacetChart = panel.facet(alt.Facet("model:N", sort=models, title=None), columns=2)
    return chart


def panel_of(analysis: Analysis, models: list[str], tasks: list[str]) -> alt.LayerChart:
    """One panel of these, with the rows of all these models."""
    rows = []
    for m, model in enumerate(analysis.grid.models):
        for t, task in enumerate(analysis.grid.tasks):
            if model not in models or task not in tasks:
                continue
            scores = analysis.grid.scores[m, t]
            for k in np.flatnonzero(~np.isnan(scores)):
                rows.append((model, task, "wording", 100 * scores[k], str(analysis.grid.prompts[t, k])))
            if not np.isnan(analysis.grid.default[m, t]):
                above = analysis.grid.default[m, t] > np.nanmedian(scores) if (~np.isnan(scores)).any() else False
                rows.append((model, task, "above" if above else "below", 100 * analysis.grid.default[m, t], "default"))
    frame = pd.DataFrame(rows, columns=["model", "task", "kind", "score", "wording"])
    base = alt.Chart(frame).encode(
        x=alt.X("score:Q", title="Score times 100").scale(zero=False),
        y=alt.Y("task:N", sort=tasks, title=None).axis(labelLimit=NAMES),
        tooltip=["model:N", "task:N", "wording:N", alt.Tooltip("score:Q", format=".2f")],
    )
    ticks = base.transform_filter("datum.kind == 'wording'").mark_tick(thickness=2, size=14, color=_BLUE, opacity=0.7)
    named = ["above", "below"]
    defaults = (
        base.transform_filter("datum.kind != 'wording'")
        .mark_point(filled=True, size=80, opacity=1)
        .encode(
            shape=alt.Shape("kind:N", legend=None).scale(domain=named, range=["diamond", "square"]),
            color=alt.Color("kind:N", legend=None).scale(domain=named, range=[_ORANGE, NEUTRAL]),
        )
    )
    chart = alt.LayerChart(layer=[ticks, defaults])
    return chart.properties(width=_PANEL, height=ROW * 2 // 3 * len(tasks))


def variation_dots(cells: pd.DataFrame) -> alt.LayerChart:
    """A row a model: a point for each task's coefficient of variation in percent, a line at their median."""
    frame = cells.assign(percent=100 * cells["cv"])
    row = alt.Y("model:N", sort=list(cells["model"].unique()), title=None).axis(labelLimit=NAMES)
    base = alt.Chart(frame)
    tooltip = ["model:N", "task:N", alt.Tooltip("percent:Q", format=".2f")]
    across = alt.X("percent:Q", title="Coefficient of variation (%)").scale(domainMin=0)
    dots = base.mark_point(filled=True, size=40, color=_BLUE, opacity=1).encode(x=across, y=row, tooltip=tooltip)
    middle = base.mark_tick(thickness=3, size=ROW * 2 // 3, color=_ORANGE).encode(x="median(percent):Q", y=row)
    chart = alt.LayerChart(layer=[dots, middle])
    return chart.properties(width=WIDTH * 3 // 4, height=ROW * cells["model"].nunique())


def violins(cells: pd.DataFrame) -> alt.FacetChart:
    """A row a model: the density of its tasks' coefficients of variation, in percent, with each task as a point."""
    rows = []
    for model, of_model in cells.groupby("model", sort=False):
        values = 100 * of_model["cv"].to_numpy(np.float64)
        middle = float(np.median(values))
        rows += [(model, "task", value, 0.0, task) for value, task in zip(values, of_model["task"], strict=True)]
        rows.append((model, "median", middle, 0.0, ""))
        rows += [(model, "density", x, y, "") for x, y in _density(values)]
    frame = pd.DataFrame(rows, columns=["model", "kind", "cv", "density", "task"]).assign(low=lambda t: -t["density"])
    across = alt.X("cv:Q", title="Coefficient of variation (%)").scale(domainMin=0)
    up = alt.Y("density:Q", axis=None).scale(domain=[-1.1, 1.1])
    base = alt.Chart(frame)
    outline = (
        base.transform_filter("datum.kind == 'density'")
        .mark_area(color=_BLUE, opacity=0.3)
        .encode(x=across, y=up, y2="low:Q")
    )
    tooltip = ["task:N", alt.Tooltip("cv:Q", format=".2f")]
    dots = base.transform_filter("datum.kind == 'task'").mark_point(filled=True, size=30, color=_BLUE, opacity=1)
    middle_line = base.transform_filter("datum.kind == 'median'").mark_tick(thickness=3, size=34, color=_ORANGE)
    layers = [outline, dots.encode(x=across, y=up, tooltip=tooltip), middle_line.encode(x=across, y=up)]
    header = alt.Header(labelAngle=0, labelAlign="left", labelLimit=NAMES)
    panel = alt.LayerChart(layer=layers).properties(width=WIDTH * 3 // 4, height=ROW + 8)
    chart: alt.FacetChart = panel.facet(
        row=alt.Row("model:N", title=None, sort=list(cells["model"].unique())).header(header)
    )
    return chart.properties(spacing=2)


def _density(values: np.ndarray) -> list[tuple[float, float]]:
    """A violin's outline, largest 1; none for fewer than 3 tasks, or where nothing varies."""
    if len(values) < 3 or np.ptp(values) == 0:
        return []
    from scipy import stats  # noqa: PLC0415 (half a second)

    at = np.linspace(max(0.0, values.min()), values.max(), _STEPS)
    density = stats.gaussian_kde(values)(at)
    return list(zip(at.tolist(), (density / density.max()).tolist(), strict=True))


def inflation(table: pd.DataFrame) -> alt.LayerChart:
    """Two points a model with their intervals: the share of tasks, and the paper's quantity."""
    parts = [
        table[["model"]].assign(series=series, **{end: 100 * table[name] for end, name in columns.items()})
        for series, columns in zip(
            _SERIES,
            ({"value": "share", "low": "share_low", "high": "share_high"},
             {"value": "figure5", "low": "figure5_low", "high": "figure5_high"}),
            strict=True,
        )
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)
    row = alt.Y("model:N", sort=list(table["model"]), title=None).axis(labelLimit=NAMES)
    offset = alt.YOffset("series:N", sort=_SERIES)
    ends = alt.Scale(domain=[0, 100], nice=False)
    colour = alt.Color("series:N", title=None, sort=_SERIES).scale(domain=_SERIES, range=[_BLUE, _ORANGE])
    shape = alt.Shape("series:N", title=None, sort=_SERIES).scale(domain=_SERIES, range=["circle", "square"])
    base = alt.Chart(frame)
    across = alt.X("low:Q", title="Percent").scale(ends)
    defined = base.transform_filter("isValid(datum.low)")
    rules = defined.mark_rule(strokeWidth=2).encode(x=across, x2="high:Q", y=row, yOffset=offset, color=colour)
    legend = alt.Legend(orient="top", columns=1, symbolOpacity=1, labelLimit=NAMES)
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("value:Q", title="Percent").scale(ends), y=row, yOffset=offset,
        color=colour.legend(legend), shape=shape.legend(legend),
        tooltip=["model:N", "series:N", *(alt.Tooltip(f"{name}:Q", format=".1f") for name in ("value", "low", "high"))],
    )  # fmt: skip
    half = alt.Chart(pd.DataFrame({"half": [50.0]})).mark_rule(color=NEUTRAL, strokeDash=[4, 4]).encode(x="half:Q")
    return alt.LayerChart(layer=[half, rules, dots]).properties(width=WIDTH * 3 // 4, height=ROW * len(table))


def bumps(analysis: Analysis, models: list[str]) -> alt.LayerChart:
    """A line a model over four rankings: defaults, means over wordings, its own best against defaults, and worst."""
    ranks: dict[str, Mapping[str, float]] = {
        "Defaults": dict(zip(analysis.drawn["model"], analysis.drawn["rank"], strict=True))
    }
    ranks["Mean over wordings"] = dict(zip(analysis.recommended["model"], analysis.recommended["rank"], strict=True))
    of_model = analysis.boards[analysis.boards["chosen"] == analysis.boards["model"]]
    for title, scenario in (
        ("Own best, others' defaults", AGAINST_DEFAULTS),
        ("Own best, others' worst", AGAINST_WORST),
    ):
        part = of_model[of_model["scenario"] == scenario]
        ranks[title] = dict(zip(part["model"], part["rank"], strict=True))
    rows = [
        (title, name, rank_of[name])
        for title, rank_of in ranks.items()
        for name in models
        if not pd.isna(rank_of[name])
    ]
    frame = pd.DataFrame(rows, columns=["way", "model", "rank"])
    across = alt.X("way:N", sort=list(ranks), title=None).axis(labelAngle=-20, labelLimit=NAMES)
    up = alt.Y("rank:Q", title="Rank").scale(reverse=True, domain=[0.5, len(analysis.grid.models) + 0.5], nice=False)
    up = up.axis(values=_whole_ranks(len(analysis.grid.models)), format="d")
    legend = alt.Legend(labelLimit=NAMES, symbolOpacity=1)
    colour = alt.Color("model:N", title=None).scale(domain=models).legend(legend)
    shape = alt.Shape("model:N", title=None).scale(domain=models).legend(legend)
    base = alt.Chart(frame).encode(x=across, y=up, color=colour, tooltip=["way:N", "model:N", "rank:Q"])
    lines, dots = base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=110, opacity=1).encode(shape=shape)
    return alt.LayerChart(layer=[lines, dots]).properties(
        width=WIDTH * 3 // 4, height=max(180, ROW * len(analysis.grid.models))
    )


def _whole_ranks(n: int) -> list[int]:
    """Ticks from 1 to n, at most a dozen."""
    step = -(-n // 12)
    return [1, *range(step if step > 1 else 2, n + 1, step)]


def origins(table: pd.DataFrame) -> alt.LayerChart:
    """A point for each model and task: the difference of medians; what Holm leaves significant is coloured."""
    names = ["Significant (Holm)", "Not significant"]
    frame = table.assign(told=np.where(table["p_holm"] < SIGNIFICANT, *names))
    colour = alt.Color("told:N", title=None).scale(domain=names, range=[_ORANGE, NEUTRAL]).legend(orient="top")
    shape = alt.Shape("told:N", title=None).scale(domain=names, range=["diamond", "circle"]).legend(orient="top")
    tooltip = ["model:N", "task:N", alt.Tooltip("difference:Q", format="+.2f"), alt.Tooltip("p_holm:Q", format=".3f")]
    dots = alt.Chart(frame).mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("difference:Q", title="Human less machine (points)"), color=colour, shape=shape, tooltip=tooltip,
        y=alt.Y("task:N", sort=list(table["task"].unique()), title=None).axis(labelLimit=NAMES),
        yOffset=alt.YOffset("model:N"),
    )  # fmt: skip
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=NEUTRAL, strokeDash=[4, 4]).encode(x="zero:Q")
    height = ROW * table["task"].nunique()
    return alt.LayerChart(layer=[zero, dots]).properties(width=WIDTH * 3 // 4, height=height)


def coverage(analysis: Analysis, models: list[str], tasks: list[str]) -> alt.LayerChart:
    """A cell for each model and task with its number of wordings; red where the default is missing."""
    frame = coverage_table(analysis.grid)
    frame = frame[frame["model"].isin(models) & frame["task"].isin(tasks)]
    base = alt.Chart(frame).encode(
        x=alt.X("task:N", sort=tasks, title=None).axis(labelAngle=-40, labelLimit=160),
        y=alt.Y("model:N", sort=models, title=None).axis(labelLimit=NAMES),
        tooltip=["model:N", "task:N", "wordings:Q", "of:Q", "default:N", "none:N", "reported:N"],
    )
    colour = alt.Color("default:N", legend=None).scale(domain=[True, False], range=[GAIN, LOSS])
    cells, words = (
        base.mark_rect().encode(color=colour),
        base.mark_text(fontSize=12, color="#000000").encode(text="wordings:Q"),
    )
    return alt.LayerChart(layer=[cells, words]).properties(width=46 * len(tasks), height=ROW * 2 // 3 * len(models))
