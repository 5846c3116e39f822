"""Who is who among a study's annotators, and how each gets on: for the coordinator, on this machine alone."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from annotation.letters import AnnotatorProgress, standings
from annotation.names import known_names
from plumbline.errors import StudyError
from plumbline.study import Study
from streamlit_app.elements import show
from streamlit_app.readers import overview
from streamlit_app.readers.ratings import signs
from streamlit_app.start import names_home


def draw(study: Study) -> None:
    """The table of people, those with most left to do first."""
    home = names_home()
    if home is None:
        raise StudyError("names are shown where the dashboard was started with --names; add it")
    people = standings(overview.status(study), signs(study), known_names(home, study))
    st.caption("Names stand here and on your terminal, and in no record, report or export.")
    if not people:
        raise StudyError(
            f"nobody is known by name on this machine; `{study.command('annotation collect')}` brings the names, of"
            " answers in Argilla and in files"
        )
    st.dataframe(_frame(people), hide_index=True, alt="People")
    st.code(study.command("annotation users remind"), language=None)


def _frame(people: list[AnnotatorProgress]) -> pd.DataFrame:
    rows = [
        {
            "Name": annotator.name,
            "Rater": annotator.rater_id,
            "Answers": annotator.answers,
            "Open": annotator.open,
            "Last answer (UTC)": f"{annotator.last:%Y-%m-%d %H:%M}" if annotator.last else "",
            "Remarks": annotator.said,
        }
        for annotator in people
    ]
    return pd.DataFrame(rows).astype({"Open": "Int64"})


if __name__ == "__main__":
    show(draw)
