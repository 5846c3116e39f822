"""What generators get wrong, and the texts themselves: search, and both sides with the words that differ marked."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from annotation.verdicts.tables import display
from generation.unit import COMMAND
from plumbline.transformations import ORIGINAL
from streamlit_app import charts
from streamlit_app.elements import download_csv, figure, heading, sections, table
from streamlit_app.frames import error_frame, length_frame
from streamlit_app.pair import side_by_side
from streamlit_app.readers.campaign import CampaignReader
from streamlit_app.records import NotYetError

READER = CampaignReader


BY = {"generator": "", "transformation": "transformation", "data set": "dataset", "language": "language"}
_FOUND = {
    "transformation": "Transformation",
    "seed": "Seed",
    "dataset": "Data set",
    "text": "Original",
    "output": "Output",
    "status": "Status",
    "flags": "Error types",
    "model": "Generator",
}
LARGE = 64 * 2**20  # bytes of outputs, from which their errors are counted only when asked for


def draw_texts(reader: CampaignReader) -> None:
    """The page."""
    if not reader.units():
        raise NotYetError(f"there are no outputs yet; run `{reader.study.command(COMMAND)}`")
    sections(*(partial(part, reader) for part in (_search, _errors, _lengths)))


def _search(reader: CampaignReader) -> None:
    units = reader.units()
    heading("Search")
    names = [ORIGINAL, *dict.fromkeys(name for name, _ in units)]
    wide, right = st.columns([2, 1])
    query = wide.text_input("Words in a text or an output", key="q", bind="query-params").strip()
    where = right.selectbox("In", ["all outputs", *names], key="in", format_func=_place, bind="query-params")
    if not query:
        st.caption(
            "Finds data sets' texts and what the generator made of them, with the words that differ marked. Letter case"
            " does not matter; what is searched for is a piece of text."
        )
        return
    with st.spinner("searching"):
        frame, more = reader.find(query, "" if where == "all outputs" else str(where))
    if frame.empty:
        st.text("Nothing is found.")
        return
    st.caption(f"{'The first ' if more else ''}{len(frame)} found. Tick a row to see it whole.")
    # A new search has a table of its own, so that no row of the last one stays ticked.
    chosen: Any = st.dataframe(
        _named(frame),
        hide_index=True,
        column_order=list(_FOUND),
        column_config=_FOUND,
        key=f"found {where} {query}",
        on_select="rerun",
        selection_mode="single-row",
        alt="What was found",
    )
    download_csv(f"{reader.name}-found", frame)
    if chosen.selection.rows:
        _whole(frame.iloc[chosen.selection.rows[0]])


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    if "transformation" not in frame:
        return frame
    return frame.assign(transformation=[_place(name) for name in frame["transformation"]])


def _whole(row: pd.Series[Any]) -> None:
    """One text, or one output beside its original."""
    if "output" not in row.index:
        st.text(f"{row['dataset']}, {row['split']}, {row['item']}, {row['field']} ({row['language']})")
        st.code(row["text"], language=None, wrap_lines=True)
        return
    flags = ", ".join(row["flags"]) or "none"
    st.text(
        f"{_place(row['transformation'])}, seed {row['seed']}, {row['model']}; {row['status']}; error types: {flags}"
    )
    if row["reason"]:
        st.text(row["reason"])
    language = row["language"] or row["source_language"]
    side_by_side(row["text"], row["output"], (f"Original ({row['source_language']})", f"Output ({language})"))


def _errors(reader: CampaignReader) -> None:
    if not _wanted(reader, "Error types by generator (HTEB, Table 5)"):
        return
    wide, right = st.columns([2, 1])
    by = BY[str(wide.selectbox("A row for each", list(BY), key="by", bind="query-params"))]
    after = right.toggle("After retries", key="after", bind="query-params")
    with st.spinner("counting errors"):
        frame = reader.errors(by, after_retries=after)
    attempts = "last" if after else "first"
    says = (
        f"Share of outputs, in %, of the {attempts} attempts that have each error type; a text counts once for each of"
        f" its places. n = {int(frame['n'].sum()):,} outputs."
    )
    unanswered = int(frame["unanswered"].sum())
    says += f" {unanswered:,} are unanswered and in no rate." if unanswered else ""
    name = f"{reader.name}-errors"
    figure(name, charts.error_map(frame, by or "generator"), says)
    table(name, frame, error_frame(frame, by))


def _lengths(reader: CampaignReader) -> None:
    if not _wanted(reader, "Lengths and edits (HTEB, Table 23)"):
        return
    with st.spinner("counting words"):
        frame = reader.lengths()
    st.caption(
        "Mean numbers of words over texts, seeds and data sets; ratio: words after to words before; edit distance:"
        " words that were put in, taken out or changed, from 0 (equal) to 1. It says how much was changed, and not"
        " whether the meaning was."
    )
    table(f"{reader.name}-lengths", frame, length_frame(frame))


def _wanted(reader: CampaignReader, title: str) -> bool:
    """The section's heading, and whether all outputs are to be read: many only when asked for."""
    size = sum(reader.study.transformation_file(*unit).stat().st_size for unit in reader.units())
    heading(title)
    if size < LARGE or st.session_state.get("count") or reader.counted():
        return True
    st.caption(f"{size / 1e6:,.0f} MB of outputs are read for this, which takes minutes.")
    st.button("Count", key=f"count {st.session_state.get('count')}", on_click=_count)
    return False


def _count() -> None:
    st.session_state["count"] = True


def _place(name: str) -> str:
    return name if name == "all outputs" else ("original texts" if name == ORIGINAL else display(name, pooled=False))
