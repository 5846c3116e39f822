"""The page on scores: the main tables of robustness (HTEB), and of reports on people and on wordings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from evaluation.report import charts, paper_tables
from plumbline.exhibits.charts import Chart
from plumbline.exhibits.table import Exhibit
from streamlit_app.elements import (
    complain,
    exhibit,
    figure,
    file_name,
    filtered,
    heading,
    in_short,
    limits,
    lines,
    report,
    sections,
)
from streamlit_app.readers.scores import WORDINGS, ReportParts, ScoreReader

READER = ScoreReader
SHOWS = "the scores, with their tables and figures"
#: Title, table, chart and caption.
_CHARTS: tuple[tuple[str, Callable[..., Exhibit], Callable[..., Chart], str], ...] = (
    (
        "By axis (HTEB, Tables 14 and 15)",
        paper_tables.axes,
        charts.axis_shifts,
        "Each model's scores on the original texts and, by axis, on the transformed ones; the total is the mean of the"
        " axes. A tick is the original score on an axis's own data sets and items, if it does not cover all.",
    ),
    (
        "By transformation (HTEB, Figure 6)",
        paper_tables.transformations,
        charts.delta_map,
        "Mean difference in points from the original score of the same items.",
    ),
)


def draw(reader: ScoreReader) -> None:
    """Draw the page, as the study's subject wants it."""
    judging = reader.study.judging
    if judging.does_tasks:
        sections(lambda: _parts(reader, reader.people()), shows=SHOWS)
        report(reader, "people", "each rater, language models as annotators, and items answered differently")
    elif judging.scored_by == WORDINGS:
        sections(lambda: _parts(reader, reader.wordings()), shows=SHOWS)
        report(
            reader, "wordings", "scores under each wording, best and worst wordings, boards, and authors of wordings"
        )
    else:
        sections(lambda: _models(reader), shows=SHOWS)
        shows = "data sets, comparisons of models, sensitivity, abstention and what was left out"
        report(reader, "scores", shows)


def _parts(reader: ScoreReader, parts: ReportParts) -> None:
    """Draw a report's answer, doubts, main figures and tables."""
    if parts.warning and not reader.simulated():  # else the warning is above
        st.warning(parts.warning, icon=":material/science:")
    in_short(parts.sentences)
    lines(parts.doubts, "doubts")
    for name, drawn in parts.figures.items():
        figure(file_name(reader.name, name), drawn.chart, f"{drawn.caption}.", alt_text=drawn.alt)
    for table_of in parts.exhibits:
        exhibit(reader.name, table_of)


def _models(reader: ScoreReader) -> None:
    groups = reader.groups()
    if not groups:
        st.caption("No model has a score.")
        return
    if reason := reader.outrun():
        complain(reason, title="These scores are no longer valid")
    group = filtered("Data sets", groups, "group")
    in_short(reader.answer())
    parts = [partial(_drawn, reader, group, *chart) for chart in _CHARTS]
    sections(*parts, partial(_tables, reader, group), partial(_left_out, reader), shows=SHOWS)


def _drawn(
    reader: ScoreReader, group: str, title: str, make: Callable[..., Exhibit], draw_it: Callable[..., Chart], text: str
) -> None:
    """Draw a table with its chart, unless it has no number."""
    table = reader.scored(make, group)
    if table.frame.empty or table.is_undefined:
        return
    heading(title)
    name = file_name(reader.name, f"{table.name} {group}".strip())
    remarks = limits(
        simulated=reader.simulates(),
        n=int(table.frame["n_datasets"].max()),
        noun="data sets",
        warnings=reader.late(),
    )
    figure(name, draw_it(table.frame), text + remarks)
    exhibit(reader.name, table)


def _tables(reader: ScoreReader, group: str) -> None:
    """Draw shifts, and how stable ranks are; coefficients that are undefined everywhere are left out."""
    for title, make, coefficient in (
        ("Shifts (HTEB, Figure 7)", paper_tables.shifts, "shift"),
        ("Stability of ranks: Kendall's tau (HTEB, Table 4)", paper_tables.kendall, "tau"),
        ("Split-half reliability (HTEB, Table 3)", paper_tables.split_half, "rho"),
    ):
        table = reader.scored(make, group)
        if table.frame[coefficient].notna().any():
            heading(title)
            exhibit(reader.name, table)
    boards = [reader.scored(paper_tables.ranking, group, transformed=transformed) for transformed in (False, True)]
    if any(len(board.frame) for board in boards):
        heading("Borda ranks")
    for board, later in zip(boards, [boards[1].notes, ()], strict=True):  # what holds of both is said once
        exhibit(reader.name, replace(board, notes=tuple(note for note in board.notes if note not in later)))


def _left_out(reader: ScoreReader) -> None:
    omissions, notes = reader.scored(paper_tables.left_out), reader.notes()
    if omissions.frame.empty and not notes:
        return
    heading("Left out, failed, or included despite the verdict, with reasons")
    exhibit(reader.name, omissions, captioned=False)
    lines(notes)
