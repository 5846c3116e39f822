"""Charts that only the dashboard draws, in the palette's colours: each function turns a frame into a chart.

Texts go into tooltips and labels as data. Text drawn by marks has the page's text colour (`INK`), all other text the
theme's. Colours mean axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from annotation.verdicts.tables import display, scoped
from evaluation.report.drift_charts import LETTERS, drift_panels
from plumbline.exhibits.charts import WIDTH, Kinds, rows, tips
from plumbline.exhibits.palette import NEUTRAL, colours
from plumbline.transformations import Axes, in_order

INK = {False: LETTERS, True: "#FAFAFA"}  # colours of text on a light and on a dark page
SELECTION = "pair"  # the name of a panel's selection; its points carry `pair_id`
_TOOLTIP = 300  # characters of a text in a tooltip; the pair's own view shows all
_ROW = 26  # pixels


def selectable_panels(
    frame: pd.DataFrame, correlations: pd.DataFrame, *, question: str, scale: tuple[float, float], dark: bool
) -> list[tuple[Mapping[Any, Any], alt.Chart]]:
    """Return `drift_panels` whose points can be selected by a click; `dark` is True for a dark page."""
    short = frame.assign(original=_short(frame["original"]), transformed=_short(frame["transformed"]))
    chosen = alt.selection_point(name=SELECTION, fields=["pair_id"], on="click", toggle=False)
    panels = drift_panels(short, correlations, question=question, scale=scale, letters=INK[dark], chosen=chosen)
    return [(row, panel.add_params(chosen)) for row, panel in panels]


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
    answers = alt.X("wanted:Q", title="Answers (pale: wanted)").axis(tickMinStep=1)
    wanted = base.mark_bar(color=NEUTRAL, opacity=0.3).encode(x=answers)
    counted = base.mark_bar(height={"band": 0.5}).encode(x=alt.X("counting:Q"), color=kinds.colour)
    return alt.LayerChart(layer=[wanted, counted], width=WIDTH * 2 // 3, height=_ROW * len(shown))


def _short(texts: pd.Series[str]) -> pd.Series[str]:
    return texts.where(texts.str.len() <= _TOOLTIP, texts.str.slice(0, _TOOLTIP) + " …")
