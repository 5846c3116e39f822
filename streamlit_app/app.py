"""The dashboard: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`.

Draws the parts that every page has: the study's name, the page's title, the warning of simulated ratings, navigation.
The pages are functions of the modules in `views/`, each with its own address; they compute nothing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Literal

import streamlit as st

from plumbline.errors import PlumblineError
from plumbline.study import Study
from streamlit_app import server
from streamlit_app.elements import complain, sections
from streamlit_app.readers import OF_PEOPLE, PROMPTED, OverviewReader
from streamlit_app.start import opened


@dataclass(frozen=True)
class PageEntry:
    """A page: its address, the module in `views/` that draws it, and its subject.

    The module's function `draw_<address>` draws it from the records that the module's `READER` reads.
    """

    address: str
    view: str
    about: Literal["", "models", "outputs", "wordings", "people", "names"] = ""


#: The pages by name. An icon would be fetched from another host.
PAGES = {
    "Overview": PageEntry("overview", "overview"),
    "Drift and ratings": PageEntry("drift", "scores", "models"),
    "Verdicts": PageEntry("verdicts", "verdicts"),
    "What raters see": PageEntry("preview", "campaign"),
    "Campaign": PageEntry("campaign", "campaign"),
    "Robustness": PageEntry("robustness", "scores", "models"),
    "One model": PageEntry("model", "scores", "models"),
    "Rankings": PageEntry("rankings", "scores", "models"),
    "Benchmark": PageEntry("benchmark", "reports", "models"),
    "Wordings": PageEntry("instructions", "reports", "wordings"),
    "People and models": PageEntry("human", "reports", "people"),
    "Errors and texts": PageEntry("texts", "campaign", "outputs"),
    "People": PageEntry("people", "campaign", "names"),
}


_SIDE = 230  # pixels for the pages' names and for filters
#: Streamlit leaves margins of 80 pixels, with which wide tables would be cut off.
_EDGES = (
    "[data-testid=stMainBlockContainer] {padding: 3.5rem 2rem 4rem}"
    " @media (max-width: 640px) {[data-testid=stMainBlockContainer] {padding: 3.5rem 1rem 4rem}}"
)


def main() -> None:
    """Draw the page that the address names."""
    study, why = _study()
    # If the study cannot be read, every page keeps its address.
    left_out = _left_out(study) if study else set[str]()
    left_out |= set() if "--names" in sys.argv[1:] else {"names"}  # names of raters: only with --names
    entries = [
        st.Page(partial(_draw, entry), title=title, url_path=entry.address)
        for title, entry in PAGES.items()
        if entry.about not in left_out
    ]
    page = st.navigation(entries)
    st.set_page_config(page_title=f"{page.title} - Plumbline", layout="wide", initial_sidebar_state=_SIDE)
    st.html(f"<style>{_EDGES}</style>")
    if study is None:
        st.title("Plumbline", anchor=False)
        complain(why)
        return
    try:
        st.text(": ".join(filter(None, (study.name, study.description))))
        st.title(page.title, anchor=False)
        reader = OverviewReader(study)
        if reader.simulated():
            from annotation.verdicts.tables import SIMULATED  # noqa: PLC0415 (most of the time at the start is imports)

            st.warning(SIMULATED, icon=":material/science:")
        for line in reader.late():
            st.warning(line, icon=":material/history:")
    except (PlumblineError, OSError) as error:
        st.title("Plumbline", anchor=False)
        complain(str(error))
        return
    first = not page.url_path
    if not first:
        server.import_all()
    page.run()
    if first:
        server.import_soon()


def _draw(entry: PageEntry) -> None:
    view = import_module(f"streamlit_app.views.{entry.view}")
    draw = getattr(view, f"draw_{entry.address}")
    sections(lambda: draw(view.READER(opened())))


def _study() -> tuple[Study | None, str]:
    """Return the study and an empty string, or None and the reason why it cannot be read."""
    try:
        return opened(), ""
    except (PlumblineError, OSError) as error:
        return None, str(error)


def _left_out(study: Study) -> set[str]:
    """Return the subjects that have no page, as the study has none of them."""
    shown = {
        "models": bool(study.evaluation.models) and not study.subject,
        "outputs": not study.subject,
        "wordings": (study.folder / PROMPTED[0]).exists(),
        "people": (study.folder / OF_PEOPLE[0]).exists(),
    }
    return {about for about, there_are in shown.items() if not there_are}


if __name__ == "__main__":
    main()
