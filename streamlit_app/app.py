"""The dashboard's page: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`.

It calls, and computes nothing. What a study says in its own words (texts, names, descriptions, errors) is shown
as text or in a table's cell, never as Markdown.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import pandas as pd
import streamlit as st

from annotation.tables import SIMULATED, display
from annotation.verdicts import refuse_stale
from evaluation.charts import score_shifts
from generation.command import add_study_options, study_of
from generation.exceptions import DataError, PlumblineError, StudyError
from generation.spreadsheet import csv_bytes
from streamlit_app import charts, frames
from streamlit_app.data import NotYetError, Records

START = "streamlit run streamlit_app/app.py -- --study studies/demo.yaml"
PANELS = 3  # beside one another, as many as the longest axis has transformations
CHOSEN = "chosen_pair"  # of the session: the pair to open, and how many had been closed when it was chosen
CLOSED = "closed_pairs"  # of the session: how many were closed


class _Parser(argparse.ArgumentParser):
    """A parser that complains on the page instead of ending the server."""

    def error(self, message: str) -> NoReturn:
        raise StudyError(f"{message}; start the dashboard with `{START}`")


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="Plumbline", layout="wide")
    try:
        records = Records(study_of(_options(sys.argv[1:])))
        st.title(f"Plumbline: {records.study.name}", anchor=False)
    except (PlumblineError, OSError) as error:
        st.title("Plumbline", anchor=False)
        _complain(error)
        return
    if records.study.description:
        st.text(records.study.description)
    if records.simulated():
        st.warning(SIMULATED, icon=":material/science:")
    _section("How it stands", partial(_stages, records))
    _section("Verdicts", partial(_verdicts, records))
    _section("Drift against ratings", partial(_drift, records))
    _section("Scores, original against transformed", partial(_scores, records))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="app.py", add_help=False)
    add_study_options(parser)
    return parser.parse_args(arguments)


def _section(title: str, draw: Callable[[], None]) -> None:
    """One part of the page; what keeps it from being drawn is said in its place, and the others go on."""
    st.header(title, anchor=False, divider="gray")
    try:
        draw()
    except (PlumblineError, OSError) as error:
        _complain(error)


def _complain(error: Exception) -> None:
    """What is missing or wrong, in the error's own line, and the command that helps, ready to be copied."""
    line = str(error).replace("--study ...", _study_arguments())
    with st.container(border=True):
        if isinstance(error, NotYetError):
            st.markdown(":material/hourglass_empty: **Not there yet**")
        else:
            st.markdown(":material/error: **This cannot be shown**")
        st.text(line)
        for command in re.findall(r"`((?:python|streamlit) [^`]+)`", line):
            st.code(command, language=None, wrap_lines=True)


def _study_arguments() -> str:
    """The options that this page was started with, for the commands that it names."""
    return shlex.join(sys.argv[1:]) or "--study FILE"


def _stages(records: Records) -> None:
    stages = records.stages()
    waiting = next((stage for stage in stages if stage.command and not stage.finished_at), None)
    st.dataframe(frames.stage_frame(stages), hide_index=True, width="content", alt="The stages of the flow")
    if waiting is None:
        st.caption("Every stage of the flow has run. Times are those of the last run that ended well.")
    else:
        st.caption("Next:")
        st.code(f"{waiting.command} {_study_arguments()}", language=None, wrap_lines=True)


def _verdicts(records: Records) -> None:
    verdicts = records.verdicts()
    if not verdicts:
        st.caption("There are no verdicts: the sample holds no pairs.")
        return
    try:
        refuse_stale(records.study, verdicts)
    except DataError as error:
        _complain(error)
    table = records.verdict_table()
    questions = [summary.question for summary in verdicts[0].questions]
    st.caption(
        f"A transformation is used only where people accept it: a mean of at least {verdicts[0].threshold:g} on each"
        " question. Means are over single ratings, their 95% intervals over pairs; AC2 is Gwet's, with ordinal weights."
        + _limits(table)
    )
    shown = frames.verdict_frame(table, questions)
    config = {"Reasons": st.column_config.TextColumn(width="large")}
    st.dataframe(shown, hide_index=True, column_config=config, height="content", alt="Verdicts by transformation")
    for line in frames.refusals(table):
        st.text(line)
    _download(table, f"{records.study.name}-verdicts.csv")


def _drift(records: Records) -> None:
    questions = records.questions()
    with st.sidebar:
        # Select boxes show their options as they are; radio buttons would read them as Markdown.
        question = st.selectbox("Question", questions, key="question")
    frame, correlations = records.drift(question), records.correlations(question)
    models = list(correlations["model"].drop_duplicates())
    if not models:
        st.caption("No pair has both a rating that counts and a drift.")
        return
    with st.sidebar:
        model = st.selectbox("Model", models, key="model")
    frame, correlations = frame[frame["model"] == model], correlations[correlations["model"] == model]
    st.caption(
        "Each point is a rated pair: how far the transformation moved the text in the model's space, against what"
        " raters made of it. ρ is Spearman's, with its 95% bootstrap interval over pairs. Hover over a point for its"
        " texts, click it for its ratings." + _limits(frame)
    )
    _panels(records, frame, correlations, question)
    pair_id, closed = st.session_state.pop(CHOSEN, (None, 0))
    # A run that was cut short by closing the pair has its choice reported once more, which must not open it again.
    if pair_id is not None and closed == _closed():
        _show_pair(records, pair_id)
    with st.expander("The same as tables"):
        _drift_tables(records, frame, correlations)


def _panels(records: Records, frame: pd.DataFrame, correlations: pd.DataFrame, question: str) -> None:
    panels = charts.drift_panels(
        frame, correlations, question=question, scale=records.scale(), dark=st.context.theme.type == "dark"
    )
    for axis in dict.fromkeys(panel.axis for panel in panels):
        st.subheader(display(axis), anchor=False)
        own = [panel for panel in panels if panel.axis == axis]
        for panel, column in zip(own, st.columns(max(PANELS, len(own))), strict=False):
            key = _fresh(f"panel-{panel.transformation}")
            choose = partial(_choose_point, key, _closed())
            column.altair_chart(panel.chart, key=key, on_select=choose, selection_mode=charts.SELECTION, alt=panel.alt)


def _drift_tables(records: Records, frame: pd.DataFrame, correlations: pd.DataFrame) -> None:
    st.dataframe(correlations, hide_index=True, alt="Correlations of drift and mean rating")
    _download(correlations, f"{records.study.name}-drift-correlations.csv")
    st.caption("Tick a row to see the pair's ratings.")
    order = ["transformation", "mean_quality", "drift", "n_ratings", "original", "transformed"]
    ids, key = list(frame["pair_id"]), _fresh("pair-table")
    st.dataframe(
        frame,
        hide_index=True,
        column_order=order,
        key=key,
        on_select=partial(_choose_row, key, ids, _closed()),
        selection_mode="single-row",
        alt="Pairs with their drift and mean rating",
    )
    _download(frame, f"{records.study.name}-drift.csv")


def _choose_point(key: str, closed: int) -> None:
    points = st.session_state[key].selection.get(charts.SELECTION, [])
    st.session_state[CHOSEN] = (points[0]["pair_id"] if points else None, closed)


def _choose_row(key: str, ids: Sequence[str], closed: int) -> None:
    rows = st.session_state[key].selection.rows
    st.session_state[CHOSEN] = (ids[rows[0]] if rows else None, closed)


def _fresh(key: str) -> str:
    """A widget's key that changes when a pair is closed: its selection is gone, and the pair can be opened again."""
    return f"{key}-{_closed()}"


def _closed() -> int:
    """How many pairs were closed in this session."""
    return int(st.session_state.get(CLOSED, 0))


def _close_pair() -> None:
    st.session_state[CLOSED] = _closed() + 1


@st.dialog("One pair and its ratings", width="large", on_dismiss=_close_pair)
def _show_pair(records: Records, pair_id: str) -> None:
    try:
        pair, ratings = records.pair(pair_id), records.ratings_of(pair_id)
    except (PlumblineError, OSError) as error:
        _complain(error)
        return
    if pair is None:
        st.text("The sample no longer holds this pair.")
        return
    _pair(pair, ratings)


def _pair(pair: dict[str, Any], ratings: pd.DataFrame) -> None:
    st.text(f"{display(pair['transformation'], pooled=False)}, from {pair['dataset']}")
    for column, part, language in zip(
        st.columns(2), ("original", "transformed"), (pair["language"], pair["output_language"]), strict=True
    ):
        with column.container(border=True):
            st.text(f"{part.capitalize()} ({language})")
            st.code(pair[part], language=None, wrap_lines=True)
    config: dict[str, Any] = {
        "rater_id": "Rater",
        "question": "Question",
        "value": "Rating",
        "status": "Status",
        "submitted_at": st.column_config.DatetimeColumn("Answered", format="YYYY-MM-DD HH:mm", timezone="UTC"),
        "simulated": "Simulated",
    }
    st.dataframe(
        ratings, hide_index=True, height="content", column_config=config, alt="Ratings of this pair, by pseudonym"
    )


def _scores(records: Records) -> None:
    scores = records.scores()
    refused = bool((scores["status"] == "included_rejected").any())
    include = refused and st.toggle("With what no verdict accepts", value=False)
    table = records.axes(include_rejected=include)
    st.caption(
        "Scores times 100; in brackets the difference from the original in points, over the same data sets. An axis is"
        " the mean over its transformations, the total the mean of the three axes." + _limits(table)
    )
    shown_axes = frames.axis_frame(table)
    st.dataframe(shown_axes, hide_index=True, height="content", alt="Scores by model and axis")
    for model, note in zip(shown_axes["Model"], shown_axes["Notes"], strict=True):
        if note:  # a cell would cut it
            st.text(f"{model}: {note}")
    _download(table, f"{records.study.name}-scores.csv")
    shifts = records.transformations(include_rejected=include)
    for model in shifts["model"].drop_duplicates():
        st.text(model)
        st.altair_chart(score_shifts(shifts[shifts["model"] == model]))
    if shifts.empty:
        st.caption("No transformation was evaluated.")
    st.subheader("Left out, failed, or included against the verdict, and why", anchor=False)
    missing = records.left_out()
    if missing.empty:
        st.caption("Nothing was left out.")
        return
    config = {"Reason": st.column_config.TextColumn(width="large")}
    shown = frames.left_out_frame(missing)
    st.dataframe(shown, hide_index=True, column_config=config, height="content", alt="What was left out, and why")
    _download(missing, f"{records.study.name}-left-out.csv")


def _limits(frame: pd.DataFrame) -> str:
    return " These rest on simulated ratings." if bool(frame["simulated"].any()) else ""


def _download(frame: pd.DataFrame, name: str) -> None:
    st.download_button(
        "Download as CSV",
        partial(csv_bytes, frame),
        file_name=name,
        mime="text/csv",
        key=f"download-{name}",
        on_click="ignore",
        icon=":material/download:",
    )


if __name__ == "__main__":
    main()
