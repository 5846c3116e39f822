"""The section on judges: after people's verdicts, beside them, down to the pair. Left out where no judge has spoken."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from annotation.verdicts.tables import display
from plumbline.study import Study
from streamlit_app import pair
from streamlit_app.elements import complain, download_csv, exhibit, heading, lines
from streamlit_app.readers import verdicts as read


def draw(study: Study) -> None:
    """The section."""
    judges = read.judges(study)
    if judges is None:
        return
    heading("Judges beside people")
    if judges.left_out:
        complain(judges.left_out, what="Judges are left out")
        return
    st.caption(
        "Beside what people's ratings alone decide stands what the same rule says of people and judges, and how far"
        " each judge agrees with people. Gap: judge minus people."
    )
    lines(judges.lines)
    for table in judges.exhibits:
        exhibit(study, table)
    _itself(study, judges.itself)
    _far(study, judges.far)


def _itself(study: Study, preferences: pd.DataFrame) -> None:
    """Self-preference, where the study's candidates were judged too."""
    if preferences.empty:
        return
    st.caption(
        "How much better models rate their own outputs than what others say lets expect (`judge select`); a part may be"
        " deserved."
    )
    columns = {"model": "Model", "self_preference": "Self-preference", "low": "From", "high": "To"}
    shown = preferences[list(columns)].rename(columns=columns).round(2)
    st.dataframe(shown, hide_index=True, alt="Self-preference of models that judge themselves")
    download_csv(f"{study.name}-self-preference", preferences)


def _far(study: Study, far: pd.DataFrame) -> None:
    """Ratings to read; a tick opens the pair with all its ratings, and what judges said."""
    if far.empty:
        st.caption("No rating is more than 2 points from any judge.")
        return
    item = study.called.item
    st.caption(
        f"Ratings that lie more than 2 points from a judge, the farthest first: to be read, since either may be wrong."
        f" They decide nothing. Tick a row (or press Shift and Space) to see the {item}."
    )
    ids, key = list(far["pair_id"]), pair.fresh("far-from-judges")
    st.dataframe(
        _far_frame(far, study),
        hide_index=True,
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt="Ratings far from judges",
    )
    download_csv(f"{study.name}-far-from-judges", far)


def _far_frame(far: pd.DataFrame, study: Study) -> pd.DataFrame:
    judged, item = study.called
    return pd.DataFrame(
        {
            judged.capitalize(): [display(name, pooled=False) for name in far["transformation"]],
            item.capitalize(): far["pair_id"].str[:8],
            "Rater": far["rater_id"],
            "Question": far["question"],
            "Rating": far["value"].astype(int),
            "Nearest judge": (far["value"] + far["nearest"]).round(2),
            "Farthest judge": (far["value"] + far["farthest"]).round(2),
        }
    )
