"""Frame in, chart out: people among models, how far they are apart, agreement beside scores."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from evaluation.human.cells import first_of
from evaluation.human.material import EMBEDS, PEOPLE, HumanMaterial
from plumbline.exhibits.charts import NAMES, ROW, WIDTH, figure
from plumbline.exhibits.page import Figure
from plumbline.exhibits.palette import COLOURS, NEUTRAL

_BLUE, _ORANGE, _GREEN = COLOURS.values()
_KINDS = {"rater": "A rater", PEOPLE: "Raters' mean", "aggregate": "Raters together", "model": "A model",
          "llm": "A language model", "trivial": "Without reading"}  # fmt: skip
_LOOK = {
    "A rater": ("circle", _ORANGE),
    "Raters' mean": ("diamond", _ORANGE),
    "Raters together": ("triangle-up", _ORANGE),
    "A model": ("circle", _BLUE),
    "A language model": ("square", _GREEN),
    "Without reading": ("cross", NEUTRAL),
}
_AGAINST = {"over_best": "Best model", "over_median": "Median model"}


def all_figures(one: HumanMaterial) -> dict[str, Figure]:
    """The figures by name, in the page's order; those that would show nothing are left away."""
    found = {}
    if one.main["score"].notna().any():
        caption = "Scores times 100: people, models, answers without reading; bar: the range of embedding models"
        found["ranges"] = figure(ranges(one), caption)
    if not one.gaps.empty:
        caption = "Points by which the raters' mean is above (right) or below (left) the best and the median model"
        found["gaps"] = figure(gap_bars(one), caption)
    agreed = alike(one)
    if len(agreed) > 1:
        caption = "Agreement of raters (the first measure of the table) beside their mean score, a point a task"
        found["agreement"] = figure(agreement_scores(agreed), caption)
    return found


def ranges(one: HumanMaterial) -> alt.LayerChart:
    """A row a task: the models' range as a bar, and everybody's score (HUME, Figure 2)."""
    own = one.main[one.main["scorer_kind"].isin(_KINDS) & one.main["score"].notna()]
    own = own[own.index.isin(one.compared.index) | (own["scorer_kind"] == "rater")]
    frame = own[["where", "scorer", "score"]].assign(
        kind=own["scorer_kind"].map(_KINDS), score=100 * own["score"], order=own["scorer_kind"].map(list(_KINDS).index)
    )
    row = alt.Y("where:N", sort=list(frame["where"].unique()), title=None).axis(labelLimit=NAMES)
    across = alt.X("score:Q", title="Score times 100").scale(zero=False)
    models = frame[frame["kind"] == _KINDS[EMBEDS]]
    bars = (
        alt.Chart(models)
        .mark_bar(height=10, opacity=0.25, color=_BLUE)
        .encode(y=row, x=alt.X("min(score):Q", title="Score times 100").scale(zero=False), x2="max(score):Q")
    )
    there = [name for name in _LOOK if name in set(frame["kind"])]
    shapes, colours = zip(*(_LOOK[name] for name in there), strict=True)
    legend = alt.Legend(orient="top", columns=1, symbolOpacity=1, labelLimit=NAMES)
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            y=row,
            x=across,
            shape=alt.Shape("kind:N", title=None, legend=legend).scale(domain=there, range=list(shapes)),
            color=alt.Color("kind:N", title=None, legend=legend).scale(domain=there, range=list(colours)),
            tooltip=["where:N", "kind:N", "scorer:N", alt.Tooltip("score:Q", format=".2f")],
        )
    )
    return alt.LayerChart(layer=[bars, points]).properties(width=WIDTH, height=ROW * frame["where"].nunique())


def gap_bars(one: HumanMaterial) -> alt.LayerChart:
    """A row a task: people less the best and less the median model (HUME, Figures 13 and 14)."""
    columns = ["task", *_AGAINST]
    long = one.gaps[columns].melt(id_vars="task", var_name="over", value_name="points")
    frame = long.assign(points=100 * long["points"], against=long["over"].map(_AGAINST))
    order = list(one.gaps.sort_values("over_best", ascending=False, kind="stable")["task"])
    names = list(_AGAINST.values())
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("task:N", sort=order, title=None).axis(labelLimit=NAMES),
            yOffset=alt.YOffset("against:N", sort=names),
            x=alt.X("points:Q", title="Raters' mean less model, points"),
            color=alt.Color("against:N", title=None, legend=alt.Legend(orient="top")).scale(
                domain=names, range=[_ORANGE, _BLUE]
            ),
            tooltip=["task:N", "against:N", alt.Tooltip("points:Q", format="+.2f")],
        )
    )
    nought = alt.Chart(pd.DataFrame({"points": [0.0]})).mark_rule(color=NEUTRAL).encode(x="points:Q")
    return alt.LayerChart(layer=[bars, nought]).properties(width=WIDTH, height=ROW * len(order))


def alike(one: HumanMaterial) -> pd.DataFrame:
    """The first measure of agreement of each task beside raters' mean score: where, measure, agreement, score."""
    rows = []
    for where, own in one.main[one.main["scorer_kind"] == PEOPLE].groupby("where", sort=False):
        first, score = first_of(one.agreement, str(where)), own["score"].iloc[0]
        if first is not None and not math.isnan(first["value"] + score):
            rows.append(
                {"where": where, "measure": first["measure"], "agreement": first["value"], "score": 100 * score}
            )
    return pd.DataFrame(rows)


def agreement_scores(frame: pd.DataFrame) -> alt.LayerChart:
    """A point a task, by measure; where raters agree little, a score of theirs is no ceiling."""
    base = alt.Chart(frame).encode(
        x=alt.X("agreement:Q", title="Agreement of raters").scale(zero=False, nice=True),
        y=alt.Y("score:Q", title="Raters' mean score times 100").scale(zero=False, nice=True),
    )
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        shape=alt.Shape("measure:N", title=None, legend=alt.Legend(orient="top", columns=1)),
        color=alt.Color("measure:N", title=None).scale(range=[_BLUE, _ORANGE, _GREEN, NEUTRAL]),
        tooltip=[
            "where:N",
            "measure:N",
            alt.Tooltip("agreement:Q", format=".2f"),
            alt.Tooltip("score:Q", format=".2f"),
        ],
    )
    names = base.mark_text(align="left", dx=8, limit=NAMES, color=NEUTRAL).encode(text="where:N")
    return alt.LayerChart(layer=[points, names]).properties(width=WIDTH, height=ROW * 9)
