"""How the campaign goes: progress against plan, raters by pseudonym and their time, signs and decisions."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from plumbline.study import Study
from plumbline.study.transformations import EIGHT
from streamlit_app import charts, frames
from streamlit_app.elements import exhibit, figure, filtered, lines, section, show, table
from streamlit_app.readers import campaign, overview


def draw(study: Study) -> None:
    """The page."""
    section("Progress", partial(_progress, study))
    section("Raters", partial(_raters, study))
    section("Time on task", partial(_time, study))
    section("Signs and decisions", partial(_quality, study))
    section("Crowd work", partial(_crowd, study))


def _axis(study: Study, transformation: str) -> str:
    """Its axis, as the study has it now."""
    kind = study.kinds.get(transformation) or EIGHT.get(transformation)
    return kind.axis if kind else "none of the study's"


def _progress(study: Study) -> None:
    status = overview.status(study)
    progress = status.progress
    if progress.empty:
        st.caption("There is no sample yet.")
        lines([f"{stage.name}: {stage.state}" for stage in status.stages.values()])
        return
    language = filtered("Language", list(progress["language"].drop_duplicates()), "language")
    progress = progress[progress["language"] == language] if language else progress
    simulated = " of SIMULATED raters" if status.simulated else ""
    says = (
        f"Answers{simulated} that count, against {status.study.raters.per_pair} for each pair; an answer is one rater's"
        " to one pair. What was collected last is known, and nothing that came later."
    )
    figure(
        f"{study.name}-progress",
        charts.progress_bars(progress.assign(axis=[_axis(study, name) for name in progress["transformation"]])),
        says,
    )
    table(f"{study.name}-progress", progress, frames.progress_frame(progress))


def _raters(study: Study) -> None:
    status = overview.status(study)
    if status.raters.empty:
        st.caption("No rater is known yet.")
        return
    says = (
        "Answers of each rater, by pseudonym. Among them are controls (pairs whose right answer is known) and repeats"
        " (pairs that a rater sees twice), which tell how carefully a rater answers." + _made_up(status.raters)
    )
    figure(f"{study.name}-answers", charts.rater_bars(status.raters, "answers", "Answers"), says)
    table(f"{study.name}-rater-progress", status.raters, frames.rater_frame(status.raters))


def _time(study: Study) -> None:
    raters = campaign.tables(study).raters
    if raters.frame["median_seconds"].isna().all():
        st.caption("No rater's time is known: answers from files and of simulated raters come without one.")
    else:
        says = "Median seconds from a rater's answer before to this one; a pause counts, and unknown times do not."
        says += _made_up(raters.frame)
        chart = charts.rater_bars(raters.frame, "median_seconds", "Median seconds for a pair")
        figure(f"{study.name}-seconds", chart, says)
    exhibit(study, raters)


def _made_up(raters: pd.DataFrame) -> str:
    """Who of the raters is no person, to stand behind what a figure shows; empty where all are people."""
    if not raters["simulated"].any():
        return ""
    return " They are SIMULATED." if raters["simulated"].all() else " Some of them are SIMULATED."


def _quality(study: Study) -> None:
    st.caption(
        "A sign is something odd in a rater's answers (missed controls, haste, one answer for all). It decides nothing:"
        " people decide whose ratings count, and why is kept."
    )
    lines([f"To be decided: {name}" for name in overview.status(study).unreviewed])
    found = campaign.tables(study)
    for one in (found.signs, found.decisions, found.exclusions):
        exhibit(study, one)


def _crowd(study: Study) -> None:
    """Cost against plan, and decisions about submissions; workers have pseudonyms here too."""
    crowd = campaign.tables(study).crowd
    if not crowd:
        st.caption("No crowd workers were asked.")
        return
    st.caption(
        "Cost against plan in dollars, fees included; planned is all batches without bonuses. Rehearsals (not live)"
        " cost nothing. It is what the ledger knew last, and no worker's id is in it."
    )
    for one in crowd:
        exhibit(study, one)


if __name__ == "__main__":
    show("Campaign", draw)
