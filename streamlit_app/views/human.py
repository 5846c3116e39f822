"""People and models on the same items: scores, differences, agreement, and items that they see differently."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from annotation.verdicts.tables import SIMULATED
from evaluation.human.page import OUTLINE
from plumbline.study import Study
from streamlit_app.elements import choose, exhibit, figure, file_name, heading, lines, sections, show, table
from streamlit_app.readers import models
from streamlit_app.readers.ratings import simulated

_COLUMNS = {
    "item": "Item",
    "text": "Text",
    "right": "Right",
    "said": "People said",
    "people": "People",
    "model": "Best model",
    "apart": "Apart",
}


def draw(study: Study) -> None:
    """The page."""
    parts: list[Callable[[], None]] = [partial(_answer, study)]
    parts += [partial(_section, study, title, names) for title, names in OUTLINE.items()]
    sections(*parts)


def _answer(study: Study) -> None:
    report = models.people(study)
    if report.simulated and not simulated(study):  # else it stands above
        st.warning(SIMULATED, icon=":material/science:")
    heading("In short")
    st.text("\n\n".join(report.sentences))
    lines(report.doubtful)


def _section(study: Study, title: str, names: tuple[str, ...]) -> None:
    report = models.people(study)
    if "items" in names and report.apart:
        heading(title)
        _items(study, report)
    if not {*names} & {*report.exhibits, *report.figures}:
        return
    heading(title)
    for name in names:
        if name in report.figures:
            drawn = report.figures[name]
            figure(file_name(study, name), drawn.chart, f"{drawn.caption}.", alt_text=drawn.alt, columns=1)
    for name in names:
        if name in report.exhibits:
            exhibit(study, report.exhibits[name])


def _items(study: Study, report: models.PeopleReport) -> None:
    """All items of one task that people and its best model see differently."""
    task = choose("Task", list(report.apart), "task")
    frame = report.apart[task]
    best = frame["best_model"].iloc[0]
    st.text(f"Items of {task} by how far people are above its best model, {best}; 0 is wrong, 1 right.")
    shown = frame[list(_COLUMNS)].rename(columns=_COLUMNS).round({"People": 2, "Best model": 2, "Apart": 2})
    table(file_name(study, f"items of {task}"), frame, shown)


if __name__ == "__main__":
    show(draw)
