"""Drift against ratings (HTEB, Figure 3): do models see what people see? A click on a point opens its pair."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from annotation.rubric import load_rubric
from annotation.verdicts.tables import display, number
from evaluation.report.charts import text_drifts
from evaluation.report.drift_charts import drawn_points, drift_figure, left_undrawn
from plumbline.exhibits.charts import first_panel
from plumbline.exhibits.table import with_minus
from plumbline.languages import language_name
from streamlit_app import charts, pair
from streamlit_app.elements import (
    choose,
    download_csv,
    download_svg,
    exhibit,
    figure,
    filtered,
    heading,
    limits,
    sections,
    table,
    unchecked,
)
from streamlit_app.readers.campaign import CampaignReader
from streamlit_app.readers.scores import ScoreReader

READER = ScoreReader


PANELS = 3  # beside one another, as many as the longest axis has transformations


def draw_drift(reader: ScoreReader) -> None:
    """The page."""
    options = reader.drift_choices()
    if not options.models:
        st.caption("No pair has a drift.")
        return
    rubric = load_rubric(reader.study)
    names = rubric.rating_names()
    if not names:
        st.caption("No question of the rubric is answered on a scale, so that there is no mean to set beside drift.")
        return
    question = choose("Question", names, "question")
    model = choose("Model", options.models, "model")
    language = filtered("Language", options.languages, "language", shown=language_name)
    task = filtered("Task", options.tasks, "task", shown=lambda name: name.replace("_", " "))
    frame, correlations = reader.against_ratings(question, model, language=language, task=task)
    if frame.empty:
        st.caption("No pair has both a rating that counts and a drift.")
        return
    simulated, most = bool(frame["simulated"].any()), int(correlations["n"].max())
    st.caption(
        "Each point is a rated pair: how far the transformation moved the text in the model's space (drift: one minus"
        " the cosine), against what raters made of it. A model that sees meaning as people do moves badly rated pairs"
        " most: ρ, Spearman's rank correlation, is then below 0; its 95% bootstrap interval is over pairs. Hover over a"
        " point for its texts, click it for its ratings."
        + limits(simulated=simulated, n=most, what="pairs in each panel")
    )
    drawn = drawn_points(frame)
    if says := left_undrawn(frame):
        st.caption(f"{says}.")
    scale = rubric.scale_of(question)[0], rubric.scale_of(question)[-1]
    _panels(drawn, correlations, question, scale)
    name = f"{reader.name}-drift-{question}"
    download_svg(name, lambda: drift_figure(drawn, correlations, question=question, scale=scale))
    pair.open_chosen(CampaignReader(reader.study))
    with st.expander("The same as tables"):
        _tables(reader, frame, correlations, question)
    sections(partial(_all_texts, reader, model))


def _all_texts(reader: ScoreReader, model: str) -> None:
    """The drift of all texts of the data sets, which no filter of pairs touches."""
    drifts = reader.table_of_texts(model)
    if drifts.frame.empty:
        return
    heading("All texts, rated or not")
    says = (
        "How far each transformation moves all texts of the data sets in the model's space, of accepted transformations"
        " alone: the point is the median, the thick line the middle half of the texts, the thin one 5% to 95%;"
        " averaged over data sets. It says nothing about meaning: a small drift may hide a change, and a translation"
        " moves far in a model that knows one language."
        + limits(simulated=False, n=int(drifts.frame["n"].min()), what="texts")
    )
    if reader.simulates():
        says += " Which are accepted rests on SIMULATED ratings."
    says += "".join(f" {line}" for line in reader.late())
    figure(f"{reader.name}-text-drift", first_panel(text_drifts(drifts.frame), titled=False), says)
    exhibit(reader.name, drifts)


def _panels(frame: pd.DataFrame, correlations: pd.DataFrame, question: str, scale: tuple[float, float]) -> None:
    dark = st.context.theme.type == "dark"
    panels = charts.drift_panels(frame, correlations, question=question, scale=scale, dark=dark)
    for axis in dict.fromkeys(panel.axis for panel in panels):
        st.header(display(axis), anchor=False)
        of_axis = [panel for panel in panels if panel.axis == axis]
        for panel, column in zip(of_axis, st.columns(max(PANELS, len(of_axis))), strict=False):
            key = pair.fresh(f"panel-{panel.transformation}")
            on_select = partial(pair.choose_point, key, pair.closed())
            column.altair_chart(
                unchecked(panel.chart), key=key, on_select=on_select, selection_mode=charts.SELECTION, alt=panel.alt
            )


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(transformation=[display(name, pooled=False) for name in frame["transformation"]])


def _tables(reader: ScoreReader, frame: pd.DataFrame, correlations: pd.DataFrame, question: str) -> None:
    shown = _named(correlations)
    cells = {name: shown[name].map(number) for name in shown.select_dtypes("float").columns}
    table(f"{reader.name}-drift-correlations-{question}", correlations, with_minus(shown.assign(**cells)))
    st.caption("Tick a row (or press Shift and Space) to see the pair's ratings.")
    mean = f"mean_{question}"
    named = frame.rename(columns={"mean_quality": mean})
    ids, key = list(frame["pair_id"]), pair.fresh("pair-table")
    st.dataframe(
        _named(named),
        hide_index=True,
        column_order=["transformation", "language", mean, "drift", "n_ratings", "original", "transformed"],
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt="Pairs with their drift and mean rating",
    )
    download_csv(f"{reader.name}-drift-{question}", named)
