"""What other wordings of the instruction make of scores, defaults and ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from evaluation.instructions.analysis import SIMULATED
from evaluation.instructions.page import OUTLINE
from plumbline.study import Study
from streamlit_app.elements import choose, exhibit, figure, file_name, heading, lines, sections, show
from streamlit_app.readers import instructions


def draw(study: Study) -> None:
    """The page."""
    parts: list[Callable[[], None]] = [partial(_answer, study)]
    parts += [partial(_section, study, title, names) for title, names in OUTLINE.items()]
    sections(*parts)


def _answer(study: Study) -> None:
    found = instructions.wordings(study)
    if found.simulated:
        st.warning(SIMULATED, icon=":material/science:")
    heading("In short")
    st.text("\n\n".join(found.told))
    lines(found.doubtful)


def _section(study: Study, title: str, names: tuple[str, ...]) -> None:
    found = instructions.wordings(study)
    if not {*names} & {*found.exhibits, *found.figures}:
        return
    heading(title)
    if "distribution" in names:
        model = choose("Model", list(found.panels), "model")
        says = "Scores times 100 under each wording (ticks) with the default (diamond: above the median, square: not)."
        figure(file_name(study, f"wordings of {model}"), found.panels[model], says, columns=1)
    for name in names:
        if name in found.figures:
            one = found.figures[name]
            figure(file_name(study, name), one.chart, f"{one.caption}.", alt_text=one.alt, columns=1)
    for name in names:
        if name in found.exhibits:
            exhibit(study, found.exhibits[name])


if __name__ == "__main__":
    show(draw)
