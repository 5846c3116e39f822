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
    report = instructions.wordings(study)
    if report.simulated:
        st.warning(SIMULATED, icon=":material/science:")
    heading("In short")
    st.text("\n\n".join(report.sentences))
    lines(report.doubtful)


def _section(study: Study, title: str, names: tuple[str, ...]) -> None:
    report = instructions.wordings(study)
    if not {*names} & {*report.exhibits, *report.figures}:
        return
    heading(title)
    if "distribution" in names:
        model = choose("Model", list(report.panels), "model")
        says = "Scores times 100 under each wording (ticks) with the default (diamond: above the median, square: not)."
        figure(file_name(study, f"wordings of {model}"), report.panels[model], says, columns=1)
    for name in names:
        if name in report.figures:
            drawn = report.figures[name]
            figure(file_name(study, name), drawn.chart, f"{drawn.caption}.", alt_text=drawn.alt, columns=1)
    for name in names:
        if name in report.exhibits:
            exhibit(study, report.exhibits[name])


if __name__ == "__main__":
    show(draw)
