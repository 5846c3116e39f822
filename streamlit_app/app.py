"""The dashboard: `streamlit run streamlit_app/app.py -- --study studies/demo.yaml`.

What every page has (the study's name, its own title, the warning of simulated ratings, the way to the others); the
pages are functions of the modules in `views/`, each with an address of its own. They call, and compute nothing.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module

import streamlit as st

from plumbline.errors import PlumblineError
from plumbline.study import Study
from streamlit_app import warm
from streamlit_app.elements import complain, show
from streamlit_app.readers.overview import OverviewReader
from streamlit_app.records import OF_PEOPLE, PROMPTED
from streamlit_app.start import opened

#: The pages: their names and addresses. An icon would be fetched from another host.
PAGES = {
    "Overview": "overview",
    "Drift and ratings": "drift",
    "Verdicts": "verdicts",
    "What raters see": "preview",
    "Campaign": "campaign",
    "Robustness": "robustness",
    "One model": "model",
    "Rankings": "rankings",
    "Benchmark": "benchmark",
    "Wordings": "instructions",
    "People and models": "human",
    "Errors and texts": "texts",
}


#: The module in `views/` of each address, whose function `draw_` and the address draws the page.
VIEWS = {
    "overview": "overview",
    "drift": "drift",
    "verdicts": "verdicts",
    "preview": "campaign",
    "campaign": "campaign",
    "people": "campaign",
    "robustness": "scores",
    "model": "scores",
    "rankings": "scores",
    "benchmark": "reports",
    "instructions": "reports",
    "human": "reports",
    "texts": "texts",
}
SCORED = ("drift", "robustness", "model", "rankings", "benchmark")  # of PAGES those about models
TRANSFORMED = ("texts",)  # and those about outputs
#: Who is who: only where the dashboard was started with `--names`.
NAMES = {"People": "people"}


def main() -> None:
    """Draw the page that the address names."""
    study, why = _study()
    # Whatever can fail: an address stays what it was.
    left_out = _left_out(study) if study else ()
    pages = {title: name for title, name in PAGES.items() if name not in left_out}
    pages |= NAMES if "--names" in sys.argv[1:] else {}
    entries = [st.Page(partial(_draw, name), title=title, url_path=name) for title, name in pages.items()]
    page = st.navigation(entries)
    st.set_page_config(page_title=f"{page.title} - Plumbline", layout="wide")
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
        warm.import_all()
    page.run()
    if first:
        warm.import_soon()


def _draw(address: str) -> None:
    """The page at an address."""
    view = import_module(f"streamlit_app.views.{VIEWS[address]}")
    show(getattr(view, f"draw_{address}"))


def _study() -> tuple[Study | None, str]:
    """The study, or why it cannot be read."""
    try:
        return opened(), ""
    except (PlumblineError, OSError) as error:
        return None, str(error)


def _left_out(study: Study) -> tuple[str, ...]:
    """The pages that cannot be: where no model is evaluated, nothing transformed, no prompt or people scored."""
    unscored = () if study.evaluation.models and not study.subject else SCORED
    unprompted = () if (study.folder / PROMPTED[0]).exists() else ("instructions",)
    undone = () if (study.folder / OF_PEOPLE[0]).exists() else ("human",)
    return (*unscored, *(TRANSFORMED if study.subject else ()), *unprompted, *undone)


if __name__ == "__main__":
    main()
