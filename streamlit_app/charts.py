"""The charts of `evaluation.charts` as the page has them: a click on a point selects its pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from annotation.tables import display
from evaluation.charts import LETTERS, DriftScales, caption, drift_panel, ranked

INK = {False: LETTERS, True: "#FAFAFA"}  # letters on a light and on a dark page
SELECTION = "pair"  # the name of a panel's selection; its points carry `pair_id`


@dataclass(frozen=True)
class Panel:
    """A chart and what it shows, for where it is put and for those who cannot see it."""

    axis: str
    transformation: str
    chart: alt.Chart
    alt: str


def drift_panels(
    frame: pd.DataFrame, correlations: pd.DataFrame, *, question: str, scale: tuple[int, int], dark: bool
) -> list[Panel]:
    """HTEB's Figure 3 for one model: a panel a transformation, by axis, all with the same scales.

    `frame` and `correlations` are the model's rows of `evaluation.tables.drift_by_quality` and
    `drift_correlations`; `scale` holds the ends of the rating scale. `dark` says what page they stand on.
    """
    scales = DriftScales(question, scale, float(frame["drift"].max()))
    return [
        Panel(
            axis=str(row["axis"]),
            transformation=str(row["transformation"]),
            chart=_selectable(frame[frame["transformation"] == row["transformation"]], row, scales, dark),
            alt=f"{display(str(row['transformation']), pooled=False)}: {', '.join(caption(row))}",
        )
        for row in ranked(correlations)
    ]


def _selectable(points: pd.DataFrame, correlation: Mapping[Any, Any], scales: DriftScales, dark: bool) -> alt.Chart:
    """One panel whose points can be selected by a click."""
    chosen = alt.selection_point(name=SELECTION, fields=["pair_id"], on="click", toggle=False)
    return drift_panel(points, correlation, scales, letters=INK[dark], chosen=chosen).add_params(chosen)
