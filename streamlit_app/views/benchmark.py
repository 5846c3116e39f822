"""The tasks as a benchmark: how models rank, how few tasks would do, abstention, and whether tasks are worth having."""

from __future__ import annotations

from functools import partial

import streamlit as st

from evaluation.report import boards, charts, sensitivity_tables
from plumbline.exhibits.charts import first_panel
from plumbline.study import Study
from streamlit_app import frames
from streamlit_app.elements import (
    choose,
    complain,
    download_csv,
    exhibit,
    figure,
    file_name,
    heading,
    limits,
    link,
    sections,
    show,
    table,
)
from streamlit_app.readers import models, scores

VERDICTS = ("fail", "look", "pass")


def draw(study: Study) -> None:
    """The page."""
    sections(*(partial(part, study) for part in (_board, _agreement, _abstention, _quality)))


def _board(study: Study) -> None:
    board = models.board(study)
    if why := scores.outrun(study):
        complain(why, what="These scores no longer hold")
    heading("Board")
    if "rank_low" in board.frame and board.frame["rank_low"].notna().any():
        few = limits(simulated=False, n=int(board.frame["n_datasets"].max()), what="data sets")
        says = f"Original scores: {boards.CAPTION}.{few}"
        figure(file_name(study, "rank limits"), charts.rank_limits(board.frame), says)
    exhibit(study, board)
    link("rankings", "Whether ranks hold when texts change")


def _agreement(study: Study) -> None:
    selection = models.agreement(study)
    if selection is None:
        return
    heading("How few tasks would do")
    st.text(selection.answer)
    figure(
        file_name(study, "size agreement"),
        selection.figure.chart,
        selection.figure.caption,
        alt_text=selection.figure.alt,
        columns=1,
    )
    download_csv(file_name(study, "size agreement"), selection.table)


def _abstention(study: Study) -> None:
    exhibits, curves = models.abstaining(study)
    if not exhibits:
        return
    heading("When models should not answer")
    model = choose("Model", list(curves["model"].unique()), "model")
    name = choose(
        "Confidence",
        list(curves["confidence"].unique()),
        "confidence",
        shown=lambda measure: sensitivity_tables.CALLED[measure],
    )
    drawn = charts.abstention_curves(curves[curves["model"] == model], scores.results(study).axes, name)
    panel = first_panel(drawn)
    figure(file_name(study, f"abstention {name}"), panel, sensitivity_tables.curve_caption(name) + ".")
    for table_of in exhibits:
        exhibit(study, table_of)


def _quality(study: Study) -> None:
    checks = models.quality(study)
    if checks.empty:
        return
    heading("Task quality")
    counts = checks["verdict"].value_counts()
    words = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name in counts)
    st.text(f"{checks['task'].nunique()} tasks checked: {words}. A check that does not pass is a question to a person.")
    table(file_name(study, "task quality"), checks, frames.quality_frame(checks))


if __name__ == "__main__":
    show(draw)
