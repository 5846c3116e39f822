"""How the campaign goes: progress against plan, pairs to read, raters by pseudonym, their time, signs, decisions."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from annotation.sampling.sample import COMMAND as SAMPLE
from plumbline.study import Study
from plumbline.study.transformations import EIGHT
from streamlit_app import charts, frames, pair
from streamlit_app.elements import download_csv, exhibit, figure, filtered, heading, lines, link, sections, show, table
from streamlit_app.readers import campaign, overview
from streamlit_app.records import NotYetError


def draw(study: Study) -> None:
    """The page."""
    sections(*(partial(part, study) for part in (_progress, _to_read, _raters, _time, _quality, _crowd)))
    pair.open_chosen(study)


def _axis(study: Study, transformation: str) -> str:
    """Its axis, as the study has it now."""
    kind = study.kinds.get(transformation) or EIGHT.get(transformation)
    return kind.axis if kind else "none of the study's"


def _progress(study: Study) -> None:
    status = overview.status(study)
    progress = status.progress
    if progress.empty:
        raise NotYetError(f"no pairs are drawn yet; run `{study.command(SAMPLE)}`")
    heading("Progress")
    language = filtered("Language", list(progress["language"].drop_duplicates()), "language")
    progress = progress[progress["language"] == language] if language else progress
    simulated, item = " of SIMULATED raters" if status.simulated else "", study.called.item
    says = (
        f"Answers{simulated} that count, against {status.study.raters.per_pair} for each {item}; an answer is one"
        f" rater's to one {item}. What was collected last is known, and nothing that came later."
    )
    figure(
        f"{study.name}-progress",
        charts.progress_bars(progress.assign(axis=[_axis(study, name) for name in progress["transformation"]])),
        says,
    )
    table(f"{study.name}-progress", progress, frames.progress_frame(progress, study.called))


def _to_read(study: Study) -> None:
    """The pairs that a coordinator reads first; a tick opens one with all its ratings."""
    rows = campaign.to_read(study)
    if rows.empty:
        return
    judged, item = study.called
    heading(f"{item}s to read".capitalize())
    st.caption(
        f"{item.capitalize()}s that raters commented on, whose ratings lie far apart, or whose mean is low: what is"
        f" wrong with a {judged}, or with the guidelines, shows here first. Tick a row (or press Shift and Space) to"
        f" see the {item} with all its ratings."
    )
    ids, key = list(rows["pair_id"]), pair.fresh("pairs-to-read")
    st.dataframe(
        frames.to_read_frame(rows, study.called),
        hide_index=True,
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt=f"{item}s to read".capitalize(),
    )
    download_csv(f"{study.name}-pairs-to-read", rows)
    if study.evaluation.models and (study.folder / "drift.parquet").exists():
        link("drift", "Every pair, by its drift and its mean rating")


def _raters(study: Study) -> None:
    status = overview.status(study)
    if status.raters.empty:
        return
    heading("Raters")
    item, known_items = study.called.item, study.called.known
    says = (
        f"Answers of each rater, by pseudonym. Among them are {known_items} ({item}s whose right answer is known) and"
        f" repeats ({item}s that a rater sees twice), which tell how carefully a rater answers."
        + _made_up(status.raters)
    )
    figure(f"{study.name}-answers", charts.rater_bars(status.raters, "answers", "Answers"), says)
    table(f"{study.name}-rater-progress", status.raters, frames.rater_frame(status.raters))


def _time(study: Study) -> None:
    raters = campaign.tables(study).raters
    if raters.frame["median_seconds"].isna().all():
        return
    heading("Time on task")
    says = "Median seconds from a rater's answer before to this one; a pause counts, and unknown times do not."
    says += _made_up(raters.frame)
    title = "Median seconds" if study.subject else "Median seconds for a pair"
    chart = charts.rater_bars(raters.frame, "median_seconds", title)
    figure(f"{study.name}-seconds", chart, says)


def _made_up(raters: pd.DataFrame) -> str:
    """Who of the raters is no person, to stand behind what a figure shows; empty where all are people."""
    if not raters["simulated"].any():
        return ""
    return " They are SIMULATED." if raters["simulated"].all() else " Some of them are SIMULATED."


def _quality(study: Study) -> None:
    tables = campaign.tables(study)
    heading("Signs and decisions")
    st.caption(
        f"A sign is something odd in a rater's answers (missed {study.called.known}, haste, one answer for all). It"
        " decides nothing:"
        " people decide whose ratings count, and why is kept."
    )
    lines([f"To be decided: {name}" for name in overview.status(study).unreviewed])
    for table_of in (tables.raters, tables.signs, tables.decisions, tables.exclusions):
        exhibit(study, table_of)


def _crowd(study: Study) -> None:
    """Cost against plan, and decisions about submissions; workers have pseudonyms here too."""
    crowd = campaign.tables(study).crowd
    if not crowd:
        return
    heading("Crowd work")
    st.caption(
        "Cost against plan in dollars, fees included; planned is all batches without bonuses. Rehearsals (not live)"
        " cost nothing. It is what the ledger knew last, and no worker's id is in it."
    )
    for crowd_table in crowd:
        exhibit(study, crowd_table)


if __name__ == "__main__":
    show(draw)
