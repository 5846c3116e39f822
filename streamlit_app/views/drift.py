"""The page on drift against ratings (HTEB, Figure 3): whether models see what people see; a click opens a pair."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import altair as alt
import pandas as pd
import streamlit as st

from annotation.campaign.rubric import load_rubric
from annotation.verdicts.tables import display
from evaluation.report import paper_tables
from evaluation.report.charts import caption, drawn_points, drift_figure, drift_panels, left_undrawn
from plumbline.languages import language_name
from plumbline.words import count
from streamlit_app import pair
from streamlit_app.elements import (
    UncheckedChart,
    choose,
    download_svg,
    exhibit,
    filtered,
    heading,
    in_short,
    limits,
    link,
    report,
)
from streamlit_app.readers.scores import ScoreReader

READER = ScoreReader
SHOWS = "the drift of each rated pair against its mean rating"
PANELS = 3  # beside one another
INK = {False: "#31333F", True: "#FAFAFA"}  # colours of text on a light and on a dark page
_TOOLTIP = 300  # characters of a text in a tooltip; the pair's own view shows all


def draw(reader: ScoreReader) -> None:
    """Draw the page."""
    models, names = list(reader.measured()["model"].unique()), load_rubric(reader.study).rating_names()
    if not models or not names:
        st.caption("No pair has a drift." if names else "No question has a scale.")
        return
    sampled = reader.pairs()
    languages, tasks = (sorted(set(sampled[column])) for column in ("language", "task_type"))
    question = choose("Question", names, "question")
    model = choose("Model", models, "model")
    language = filtered("Language", languages, "language", words=language_name)
    task = filtered("Task", tasks, "task", words=lambda name: name.replace("_", " "))
    frame, correlations = reader.against_ratings(question, model, language=language, task=task)
    if frame.empty:
        st.caption("No pair has both a drift and a rating that counts.")
        return
    most, defined = int(correlations["n"].max()), correlations.dropna(subset=["high"])
    below = defined.loc[defined["high"] < 0, "transformation"]
    where = f" ({', '.join(display(name, pooled=False) for name in below)})" if len(below) else ""
    several = f"{count(len(defined), reader.study.called.judged)}{where}"
    if len(defined):
        in_short(
            [f"In {model}, pairs rated lower drift farther in {len(below)} of {several}, by the 95% intervals of ρ."]
        )
    st.caption(
        "Each point is a rated pair: the drift of its text in the model's space (one minus the cosine) against its mean"
        " rating. In a model that sees meaning as people do, badly rated pairs drift most: ρ, Spearman's rank"
        " correlation, is then below 0 (above 0 if less is better); its 95% bootstrap interval is over pairs. Hover"
        " over a point for its texts, click it for its ratings."
        + limits(simulated=bool(frame["simulated"].any()), n=most, noun="pairs in each panel")
    )
    drawn = drawn_points(frame)
    if remark := left_undrawn(frame):
        st.caption(f"{remark}.")
    scale = load_rubric(reader.study).scale_of(question)
    ends = scale[0], scale[-1]
    _panels(drawn, correlations, question, ends)
    name = f"{reader.name}-drift-{question}"
    download_svg(name, lambda: drift_figure(drawn, correlations, question=question, scale=ends))
    pair.open_chosen(reader)
    heading("Correlations")
    exhibit(reader.name, paper_tables.drift(correlations, question), captioned=False)
    link("texts", "Every pair with its texts, ratings and drift")
    report(reader, "scores", "all models")


def _panels(frame: pd.DataFrame, correlations: pd.DataFrame, question: str, scale: tuple[float, float]) -> None:
    """Draw the panels of `drift_panels` by axis; their points can be selected by a click."""
    short = {
        name: frame[name].where(frame[name].str.len() <= _TOOLTIP, frame[name].str.slice(0, _TOOLTIP) + " …")
        for name in ("original", "transformed")
    }
    chosen = alt.selection_point(name=pair.SELECTION, fields=["pair_id"], on="click", toggle=False)
    letters = INK[st.context.theme.type == "dark"]
    panels = drift_panels(
        frame.assign(**short), correlations, question=question, scale=scale, letters=letters, chosen=chosen
    )
    for axis in dict.fromkeys(row["axis"] for row, _ in panels):
        st.header(display(axis), anchor=False)
        of_axis = [panel for panel in panels if panel[0]["axis"] == axis]
        columns = [column for _ in of_axis[::PANELS] for column in st.columns(PANELS)]
        for (row, chart), column in zip(of_axis, columns, strict=False):
            key = pair.fresh(f"panel-{row['transformation']}")
            on_select = partial(pair.choose_point, key, pair.closed())
            description = f"{display(row['transformation'], pooled=False)}: {', '.join(caption(row))}"
            column.altair_chart(
                cast(Any, UncheckedChart(chart.add_params(chosen))),
                key=key,
                on_select=on_select,
                selection_mode=pair.SELECTION,
                alt=description,
            )
