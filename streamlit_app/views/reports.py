"""Pages from other commands' reports: the benchmark, wordings of instructions, people and models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from annotation.verdicts.tables import SIMULATED
from evaluation.display import BOARD_CAPTION
from evaluation.human import report as people_page
from evaluation.instructions import analysis
from evaluation.instructions import page as wording_page
from evaluation.report import charts, paper_tables, sensitivity_tables
from plumbline.exhibits.charts import first_panel
from plumbline.words import count
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
    lines,
    link,
    sections,
    table,
)
from streamlit_app.readers.scores import ReportParts, ReportReader

READER = ReportReader


VERDICTS = ("fail", "look", "pass")
_COLUMNS = {
    "item": "Item",
    "text": "Text",
    "right": "Right",
    "said": "People said",
    "people": "People",
    "model": "Best model",
    "apart": "Apart",
}


def draw_benchmark(reader: ReportReader) -> None:
    """Draw the page on the benchmark."""
    sections(*(partial(part, reader) for part in (_board, _agreement, _abstention, _quality)))


def _board(reader: ReportReader) -> None:
    board = reader.table(paper_tables.ranking, transformed=False)
    if why := reader.outrun():
        complain(why, what="These scores are no longer valid")
    heading("Board")
    if "rank_low" in board.frame and board.frame["rank_low"].notna().any():
        few = limits(simulated=False, n=int(board.frame["n_datasets"].max()), what="data sets")
        says = f"Original scores: {BOARD_CAPTION}.{few}"
        figure(file_name(reader.name, "rank limits"), charts.rank_limits(board.frame), says)
    exhibit(reader.name, board)
    link("rankings", "Stability of ranks when texts change")


def _agreement(reader: ReportReader) -> None:
    selection = reader.agreement()
    if selection is None:
        return
    heading("Smallest sufficient number of tasks")
    st.text(selection.answer)
    figure(
        file_name(reader.name, "size agreement"),
        selection.figure.chart,
        selection.figure.caption,
        alt_text=selection.figure.alt,
    )
    download_csv(file_name(reader.name, "size agreement"), selection.table)


def _abstention(reader: ReportReader) -> None:
    exhibits, curves = reader.abstaining()
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
    drawn = charts.abstention_curves(curves[curves["model"] == model], reader.results().axes, name)
    panel = first_panel(drawn)
    figure(file_name(reader.name, f"abstention {name}"), panel, sensitivity_tables.curve_caption(name) + ".")
    for table_of in exhibits:
        exhibit(reader.name, table_of)


def _quality(reader: ReportReader) -> None:
    checks = reader.quality()
    if checks.empty:
        return
    heading("Task quality")
    counts = checks["verdict"].value_counts()
    words = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name in counts)
    st.text(
        f"{count(checks['task'].nunique(), 'task')} checked: {words}."
        " A person must review each check that does not pass."
    )
    table(file_name(reader.name, "task quality"), checks, frames.quality_frame(checks))


def draw_instructions(reader: ReportReader) -> None:
    """Draw the page on wordings: how scores, defaults and ranks change with the instruction."""
    answer = partial(_answer, reader.wordings, analysis.SIMULATED)
    parts = (partial(_section, reader.study.name, reader.wordings, *part) for part in wording_page.OUTLINE.items())
    sections(answer, *parts)


def draw_human(reader: ReportReader) -> None:
    """People and models on the same items: scores, differences, agreement, and items that they see differently."""
    # The app shows the warning above.
    answer = partial(_answer, reader.people, "" if reader.simulated() else SIMULATED)
    parts = (partial(_section, reader.study.name, reader.people, *part) for part in people_page.OUTLINE.items())
    sections(answer, *parts)


def _answer(read: Callable[[], ReportParts], simulated: str) -> None:
    """Draw a report's sentences, below a warning if it rests on simulated answers."""
    report = read()
    if report.simulated and simulated:
        st.warning(simulated, icon=":material/science:")
    heading("In short")
    st.text("\n\n".join(report.sentences))
    lines(report.doubtful)


def _section(study_name: str, read: Callable[[], ReportParts], title: str, names: tuple[str, ...]) -> None:
    """Draw the figures and tables below a heading of the report."""
    report = read()
    figures = {name: report.figures[name] for name in names if name in report.figures}
    exhibits = [report.exhibits[name] for name in names if name in report.exhibits]
    apart = report.apart if "items" in names else {}
    if not (figures or exhibits or apart):
        return
    heading(title)
    if apart:
        _items(study_name, apart)
    if "distribution" in names:
        model = choose("Model", list(report.panels), "model")
        says = "Scores times 100 under each wording (ticks) and the default (diamond if above the median, else square)."
        figure(file_name(study_name, f"wordings of {model}"), report.panels[model], says)
    for name, drawn in figures.items():
        figure(file_name(study_name, name), drawn.chart, f"{drawn.caption}.", alt_text=drawn.alt)
    for table_of in exhibits:
        exhibit(study_name, table_of)


def _items(study_name: str, apart: dict[str, pd.DataFrame]) -> None:
    """Draw all items of one task that people and its best model see differently."""
    task = choose("Task", list(apart), "task")
    frame = apart[task]
    best = frame["best_model"].iloc[0]
    st.text(f"Items of {task}, ordered by people's score minus that of the best model, {best}; 0 is wrong, 1 is right.")
    shown = frame[list(_COLUMNS)].rename(columns=_COLUMNS).round({"People": 2, "Best model": 2, "Apart": 2})
    table(file_name(study_name, f"items of {task}"), frame, shown)
