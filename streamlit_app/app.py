"""The dashboard: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`.

Draws the parts that every page has: the study's name, the page's title, the warning of simulated ratings, navigation.
The pages are the modules in `views/`, each with its own address; they compute nothing.
"""

from __future__ import annotations

import contextlib
from functools import partial
from importlib import import_module

import streamlit as st

from annotation.status.status import Status
from annotation.verdicts.tables import SIMULATED
from plumbline.errors import PlumblineError
from plumbline.exhibits.templates import source
from streamlit_app import server
from streamlit_app.elements import complain, sections
from streamlit_app.readers import StudyReader
from streamlit_app.start import opened

#: The pages' titles by address, which is also the name of the module in `views/` whose `draw` draws the page from the
#: records that its `READER` reads; until they are there, the page says what it `SHOWS`. An icon would be fetched from
#: another host.
PAGES = {
    "answer": "The answer",
    "drift": "Drift and ratings",
    "verdicts": "Verdicts",
    "campaign": "Campaign",
    "scores": "Scores",
    "texts": "Texts",
}
_AGAIN = 20  # seconds between looks at the records
#: Streamlit leaves margins of 80 pixels and 300 for the pages' names, with which wide tables would be cut off.
_EDGES = (
    "[data-testid=stMainBlockContainer] {padding: 3.5rem 2rem 4rem}"
    " @media (min-width: 641px) {[data-testid=stSidebar][data-collapsed=false] {max-width: 230px}}"
    " @media (max-width: 640px) {[data-testid=stMainBlockContainer] {padding: 3.5rem 1rem 4rem}}"
    " :root {--page: light-dark(#fff, #171614); --line: light-dark(#dde1e8, #333947);"
    " --faint: light-dark(#5b6475, #a3abbb); --shade: light-dark(rgb(31 36 48 / 18%), rgb(163 171 187 / 45%));"
    " --accepted: light-dark(#00704a, #4cc596); --rejected: light-dark(#b34700, #ff9d57); --undecided: var(--faint)}"
    " .stApp .cards {grid-template-columns: repeat(auto-fill, minmax(min(17.5rem, 100%), 1fr)); margin: 0}"
    " .stApp .cards, .stApp dl {padding: 0} .stApp .cards li, .stApp dl, .stApp dd {margin-left: 0}"
    " @media (min-width: 641px) {.wide {width: fit-content; max-width: 100%}}"
)


def main() -> None:
    """Draw the page that the address names."""
    study, reason = None, ""
    try:
        study = opened()
    except (PlumblineError, OSError) as error:
        reason = str(error)
    # A study without models, or with another subject than pairs, does not have the pages about models; if the study
    # cannot be read, every page keeps its address.
    models = not study or bool(study.evaluation.models and study.judging.scored_by)
    has = {"drift": models and not (study and study.subject), "scores": models or (study and study.judging.does_tasks)}
    entries = [
        st.Page(partial(_draw, address), title=title, url_path=address)
        for address, title in PAGES.items()
        if has.get(address, True)
    ]
    page = st.navigation(entries)
    st.set_page_config(page_title=f"{page.title} - Plumbline", layout="wide")
    scheme = st.context.theme.type or "light dark"  # dialogs are outside of what Streamlit gives its own
    st.html(f"<style>:root {{color-scheme: {scheme}}}{_EDGES}{source('plumbline/exhibits/parts.css')}</style>")
    if study is None:
        st.title("Plumbline", anchor=False)
        complain(reason)
        return
    try:
        st.text(": ".join(filter(None, (study.name, study.description))))
        st.title(page.title, anchor=False)
        reader = StudyReader(study)
        if reader.simulated():
            st.warning(SIMULATED, icon=":material/science:")
        for line in reader.late():
            st.warning(line, icon=":material/history:")
    except (PlumblineError, OSError) as error:
        st.title("Plumbline", anchor=False)
        complain(str(error))
        return
    if page.url_path:  # all but the first page
        server.import_all()
    page.run()


def _draw(address: str) -> None:
    view = import_module(f"streamlit_app.views.{address}")
    sections(lambda: view.draw(view.READER(opened())), shows=view.SHOWS)
    if address in ("answer", "campaign"):  # these follow the campaign while they are open
        with contextlib.suppress(PlumblineError, OSError):  # which the page has reported
            reader = StudyReader(opened())
            _follow(reader, reader.status())


@st.fragment(run_every=_AGAIN)
def _follow(reader: StudyReader, status: Status) -> None:
    """Draw the page anew once the study's records have changed."""
    with contextlib.suppress(PlumblineError, OSError):
        if reader.status() is not status:
            st.rerun()


if __name__ == "__main__":
    main()
