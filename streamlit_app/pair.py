"""One pair with every rating and comment, in a dialog that opens after a click on a point or a tick in a table.

The page's address names the open pair, so that a shared link opens it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from annotation.verdicts.tables import display
from plumbline.errors import PlumblineError
from plumbline.exhibits.table import Cell, Exhibit, cell
from plumbline.fields import fields_of
from plumbline.words import HAN_AND_KANA, THAI_LAO_KHMER_MYANMAR
from streamlit_app.elements import complain, exhibit
from streamlit_app.readers.campaign import CampaignReader

LONGEST = 3000  # mean tokens of the two texts; longer ones are not compared, as the time grows with the square
# In scripts without spaces each character counts as a word, as in `plumbline compare`.
_TOKEN = re.compile(rf"\s+|[{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]|[^\s{HAN_AND_KANA}{THAI_LAO_KHMER_MYANMAR}]+")
_BOX = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0"
# Tints with readable text on light and dark pages; lines distinguish them without colour.
_GONE = "background-color: #D55E0040; text-decoration: line-through; color: inherit"
_NEW = "background-color: #0072B240; text-decoration: underline; color: inherit"


def marked(original: str, transformed: str) -> tuple[str, str]:
    """Return both texts as HTML: removed words struck out in the first, added ones underlined in the second."""
    first, second = _TOKEN.findall(original), _TOKEN.findall(transformed)
    if len(first) + len(second) > 2 * LONGEST:
        return _box(escape(original)), _box(escape(transformed))
    first_parts, second_parts = [], []
    for change, start, end, begin, finish in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        removed, after = escape("".join(first[start:end])), escape("".join(second[begin:finish]))
        first_parts.append(removed if change == "equal" or not removed else f'<del style="{_GONE}">{removed}</del>')
        second_parts.append(after if change == "equal" or not after else f'<ins style="{_NEW}">{after}</ins>')
    return _box("".join(first_parts)), _box("".join(second_parts))


def _text(column: Any, name: str, content: str) -> None:
    with column.container(border=True):
        st.text(name)
        st.html(content)


def _box(content: str) -> str:
    return f'<p dir="auto" style="{_BOX}">{content}</p>'


CHOSEN = "chosen_pair"  # of the session: the pair to open, and how many had been closed when it was chosen
SELECTION = "pair"  # the name of a chart's selection; its points carry `pair_id`
CLOSED = "closed_pairs"  # of the session: how many were closed
ADDRESS = "pair"  # of the page's address: the pair that is open


def choose_point(key: str, closed: int) -> None:
    """Note the clicked point of the chart `key`."""
    points = st.session_state[key].selection.get(SELECTION, [])
    st.session_state[CHOSEN] = (points[0]["pair_id"] if points else None, closed)


def choose_row(key: str, ids: Sequence[str], closed: int) -> None:
    """Note the ticked row of the table `key`; `ids` are its rows' pairs."""
    rows = st.session_state[key].selection.rows
    st.session_state[CHOSEN] = (ids[rows[0]] if rows else None, closed)


def fresh(key: str) -> str:
    """Return a widget's key, which changes when a pair is closed: this clears the selection, so it can open again."""
    return f"{key}-{closed()}"


def closed() -> int:
    """Return the number of pairs that were closed in this session."""
    return int(st.session_state.get(CLOSED, 0))


def open_chosen(reader: CampaignReader) -> None:
    """Open the pair that was chosen, or that the page's address names, until it is closed."""
    pair_id, n_closed = st.session_state.pop(CHOSEN, (None, 0))
    # If closing the pair interrupts a run, Streamlit reports its choice once more, which must not open the pair again.
    if pair_id is not None and n_closed == closed():
        st.query_params[ADDRESS] = pair_id
    if ADDRESS in st.query_params:
        _show(reader, st.query_params[ADDRESS])


def _close() -> None:
    st.session_state[CLOSED] = closed() + 1
    st.query_params.pop(ADDRESS, None)


@st.dialog("One pair and its ratings", width="large", on_dismiss=_close)
def _show(reader: CampaignReader, pair_id: str) -> None:
    try:
        pair, ratings = reader.pair(pair_id), reader.answers_to(pair_id)
    except (PlumblineError, OSError) as error:
        complain(str(error))
        return
    if pair is None:
        st.text("The sample no longer contains this pair.")
        return
    st.text(f"{display(pair.transformation, pooled=False)}, from {pair.dataset}")
    if pair.fields:
        for field in fields_of(pair):
            _text(st, f"{field.name} ({field.language})", _box(escape(field.text)))
    else:
        names = f"Original ({pair.language})", f"Transformed ({pair.output_language})"
        for column, name, content in zip(st.columns(2), names, marked(pair.original, pair.transformed), strict=True):
            _text(column, name, content)
    if ratings.empty:
        st.text("Nobody has rated it yet.")
        return
    columns: dict[str, Cell] = {
        "Rater": "rater_id",
        "Question": "question",
        "Rating": cell("value", lambda value: "" if pd.isna(value) else f"{value:g}"),
        **{name.capitalize(): name for name in ("answer", "status", "comment", "excluded", "withdrawn")},
        "Answered (UTC)": cell("submitted_at", lambda at: "" if pd.isna(at) else f"{at:%Y-%m-%d %H:%M}"),
        "Simulated": cell("simulated", lambda simulated: "simulated" if simulated else ""),
    }
    exhibit(reader.name, Exhibit.of(f"pair-{pair_id[:8]}", "", ratings, columns), captioned=False)
