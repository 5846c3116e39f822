"""The page on texts: what people read, with ratings and drift, those to read first on top; a tick opens one."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from annotation.verdicts.tables import display
from plumbline.languages import language_name
from streamlit_app import pair
from streamlit_app.elements import choose, download_csv, filtered
from streamlit_app.readers.scores import ScoreReader

READER = ScoreReader
SHOWS = "what people rate, with their ratings"
MOST = 500  # rows that a browser shows quickly; the CSV file has all
_TEXT, _LINES = 156, 92  # pixels: a phone shows both texts of a pair, in rows of four lines
_NUMBER = st.column_config.NumberColumn
_COLUMNS: dict[str, Any] = {
    "original": st.column_config.TextColumn("Original", width=_TEXT),
    "transformed": st.column_config.TextColumn("Transformed", width=_TEXT),
    "mean": _NUMBER("Mean", format="%.2f"),
    "lowest": "Lowest",
    "highest": "Highest",
    "question": "Question",
    "kind": "",
    "language": "Language",
    "n_ratings": "Ratings",
    "comments": "Comments",
    "drift": _NUMBER("Drift", format="%.3f"),
    "dataset": "Data set",
}


def draw(reader: ScoreReader) -> None:
    """Draw the page."""
    sample, (judged, item) = reader.browsed(), reader.study.called
    drifts = "drift.parquet" in reader and len(reader.measured())
    model = choose("Model of the drift", list(reader.measured()["model"].unique()), "model") if drifts else ""
    named = partial(display, pooled=False)
    kind = filtered(judged.capitalize(), list(sample["transformation"].unique()), "kind", words=named)
    language = filtered("Language", sorted(set(sample["language"])), "language", words=language_name)
    dataset = filtered("Data set", sorted(set(sample["dataset"])), "dataset")
    query = st.text_input(f"Search the {item}s", key="q", bind="query-params").strip()
    table = reader.found(query, transformation=kind, language=language, dataset=dataset)
    if table.empty:
        st.text("Nothing found.")
        return
    if model:
        table = table.assign(drift=table["pair_id"].map(reader.drift_of(model)))
    rows = table.head(MOST).assign(kind=[display(name, pooled=False) for name in table["transformation"].head(MOST)])
    same = {name for name in ("question", "language", "n_ratings", "dataset") if sample[name].nunique() < 2}
    same |= set() if sample["comments"].any() else {"comments"}
    names = [name for name in _COLUMNS if name in rows and name not in same]  # a laptop's window has no room for these
    filled = [name for name in names if rows[name].notna().any() and (rows[name] != "").any()]
    by_means = ", then those with ratings far apart, then low means (on the question on which ratings differ most)"
    st.caption(
        f"{f'The first {MOST:,} of ' if len(table) > MOST else ''}{len(table):,} {item}s: those with comments first"
        f"{by_means * ('mean' in filled)}. Tick a row (or press Shift and Space) to see the {item} with all answers."
        + (" Some answers are SIMULATED." if reader.simulated() else "")
    )
    text = {} if "transformed" in filled else {"original": st.column_config.TextColumn("Text", width=2 * _TEXT)}
    ids, key = list(rows["pair_id"]), pair.fresh("texts")
    st.dataframe(
        rows,
        hide_index=True,
        column_order=filled,
        column_config=_COLUMNS | text | {"kind": judged.capitalize()},
        height=600 if len(rows) > 5 else "content",
        row_height=_LINES,
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt=f"The {item}s",
    )
    download_csv(f"{reader.name}-texts", table)
    pair.open_chosen(reader)
