"""Ranks of models with what they could be as well, drawn."""

from __future__ import annotations

import altair as alt
import pandas as pd

from evaluation.report.charts import NAMES, ROW, WIDTH
from plumbline.exhibits.palette import COLOURS

CAPTION = (
    "ranks by Borda count, and between which ranks each model's lies with 95% confidence for all at once: models whose"
    " lines overlap may not be told apart"
)


def rank_limits(table: pd.DataFrame) -> alt.LayerChart:
    """A row a model, best first: its rank as a point, its limits as a line, from `evaluation.tables.boards.board`.

    A model without limits has its point alone.
    """
    shown = table[["model", "rank", "rank_low", "rank_high", "borda", "group"]]
    row = alt.Y("model:N", sort=list(shown["model"]), title=None).axis(labelLimit=NAMES)
    ends = alt.Scale(domain=[0.5, len(shown) + 0.5], nice=False)
    across = alt.X("rank_low:Q", title="Rank").scale(ends).axis(tickMinStep=1, format="d")
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("rank:Q"),
        alt.Tooltip("rank_low:Q"),
        alt.Tooltip("rank_high:Q"),
        alt.Tooltip("borda:Q", format=".1f"),
        alt.Tooltip("group:N"),
    ]
    base, colour = alt.Chart(shown), COLOURS["lexical_stylistic"]
    known = base.transform_filter("isValid(datum.rank_low)")
    limits = known.mark_rule(strokeWidth=3, color=colour).encode(x=across, x2=alt.X2("rank_high:Q"), y=row)
    points = base.mark_point(size=90, filled=True, opacity=1, shape="diamond", color=colour).encode(
        x=alt.X("rank:Q", title="Rank").scale(ends), y=row, tooltip=tooltip
    )
    return alt.LayerChart(layer=[limits, points], width=WIDTH * 3 // 4, height=ROW * len(shown) * 2 // 3)
