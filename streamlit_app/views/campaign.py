"""Pages on the campaign: progress and raters, the preview, raters' names for a coordinator, and the texts.

The page on texts shows generators' error rates and a search, and marks the words that differ in a text and its output.
"""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from annotation.annotators import AnnotatorProgress, standings
from annotation.names import known_names
from annotation.report.charts import looks_in_words, looks_panels
from annotation.rubric import load_rubric
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.verdicts.tables import display
from generation.unit import COMMAND
from plumbline.errors import StudyError
from plumbline.exhibits.charts import first_panel
from plumbline.study.transformations import EIGHT
from plumbline.transformations import ORIGINAL
from plumbline.words import count
from streamlit_app import charts, frames, pair
from streamlit_app.elements import (
    download_csv,
    download_svg,
    exhibit,
    figure,
    filtered,
    fitted,
    heading,
    lines,
    link,
    sections,
    table,
    unchecked,
)
from streamlit_app.frames import error_frame, length_frame
from streamlit_app.pair import side_by_side
from streamlit_app.readers import NotYetError
from streamlit_app.readers.campaign import CampaignReader
from streamlit_app.start import names_home

READER = CampaignReader


def draw_campaign(reader: CampaignReader) -> None:
    """Draw the page on progress and raters."""
    sections(*(partial(part, reader) for part in (_progress, _looks, _to_read, _raters, _time, _quality, _crowd)))
    pair.open_chosen(reader)


def _axis(reader: CampaignReader, transformation: str) -> str:
    """Return a transformation's axis in the study as it is now."""
    kind = reader.study.kinds.get(transformation) or EIGHT.get(transformation)
    return kind.axis if kind else "not in the study"


def _progress(reader: CampaignReader) -> None:
    status = reader.status()
    progress = status.progress
    if progress.empty:
        raise NotYetError(f"no pairs are drawn yet; run `{reader.study.command(SAMPLE)}`")
    heading("Progress")
    language = filtered("Language", list(progress["language"].drop_duplicates()), "language")
    progress = progress[progress["language"] == language] if language else progress
    simulated, item = " of SIMULATED raters" if status.simulated else "", reader.study.called.item
    says = (
        f"Answers{simulated} that count, against {status.study.raters.per_pair} wanted for each {item}; an answer is"
        f" one rater's submission for one {item}. Answers given since the last collection are not included."
    )
    figure(
        f"{reader.name}-progress",
        charts.progress_bars(progress.assign(axis=[_axis(reader, name) for name in progress["transformation"]])),
        says,
    )
    table(f"{reader.name}-progress", progress, frames.progress_frame(progress, reader.study.called))


def _looks(reader: CampaignReader) -> None:
    """Draw the progress of a rule by blocks, and each verdict's mean over its looks."""
    status = reader.status()
    if not status.blocks:
        return
    heading("Looks after blocks")
    for line in status.blocks:
        st.text(line)
    rubric = load_rubric(reader.study)
    for question in rubric.rating_names():
        looks = status.looks[(status.looks["question"] == question) & (status.looks["label"] == "")]
        if len(looks):
            says = (
                f"{question.capitalize()}: mean after each block, with an interval valid for all looks together."
                " A look decides if its interval excludes the dashed limit."
            )
            says += " The ratings are SIMULATED." if status.simulated else ""
            scale = rubric.scale_of(question)
            columns = st.columns(2)
            for number, (_, path) in enumerate(looks.groupby("verdict", sort=False)):
                # Several panels at once would have no width in Streamlit.
                panel = fitted(first_panel(looks_panels(path, scale)))
                columns[number % 2].altair_chart(unchecked(panel), width="stretch", alt=looks_in_words(path))
            st.caption(says)
            download_svg(f"{reader.name}-looks-{question}", partial(looks_panels, looks, scale))
    if len(status.looks):
        table(f"{reader.name}-looks", status.looks, status.looks.drop(columns=["verdict", "most"]))


def _to_read(reader: CampaignReader) -> None:
    """Draw the pairs that a coordinator reads first; a tick opens a pair with all its ratings."""
    rows = reader.to_read()
    if rows.empty:
        return
    judged, item = reader.study.called
    heading(f"{item}s to read".capitalize())
    st.caption(
        f"{item.capitalize()}s with comments, with ratings far apart, or with a low mean: faults of a"
        f" {judged} or of the guidelines show here first. Tick a row (or press Shift and Space) to see the {item}'s"
        " ratings."
    )
    ids, key = list(rows["pair_id"]), pair.fresh("pairs-to-read")
    st.dataframe(
        frames.to_read_frame(rows, reader.study.called),
        hide_index=True,
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt=f"{item}s to read".capitalize(),
    )
    download_csv(f"{reader.name}-pairs-to-read", rows)
    if reader.study.evaluation.models and (reader.study.folder / "drift.parquet").exists():
        link("drift", "Every pair, by its drift and its mean rating")


def _raters(reader: CampaignReader) -> None:
    status = reader.status()
    if status.raters.empty:
        return
    heading("Raters")
    item, known_items = reader.study.called.item, reader.study.called.known
    says = (
        f"Answers of each rater, by pseudonym. They include answers to {known_items} ({item}s whose right answer is"
        f" known) and to repeats ({item}s that a rater sees twice), which show how carefully a rater answers."
        + _made_up(status.raters)
    )
    figure(f"{reader.name}-answers", charts.rater_bars(status.raters, "answers", "Answers"), says)
    table(f"{reader.name}-rater-progress", status.raters, frames.rater_frame(status.raters))


def _time(reader: CampaignReader) -> None:
    raters = reader.tables().raters
    if raters.frame["median_seconds"].isna().all():
        return
    heading("Time on task")
    says = "Median seconds between a rater's successive answers; pauses count, unknown times do not."
    says += _made_up(raters.frame)
    title = "Median seconds" if reader.study.subject else "Median seconds for a pair"
    chart = charts.rater_bars(raters.frame, "median_seconds", title)
    figure(f"{reader.name}-seconds", chart, says)


def _made_up(raters: pd.DataFrame) -> str:
    """Return a sentence that some or all raters are simulated, for a caption; empty if all are people."""
    if not raters["simulated"].any():
        return ""
    return " They are SIMULATED." if raters["simulated"].all() else " Some of them are SIMULATED."


def _quality(reader: CampaignReader) -> None:
    tables = reader.tables()
    heading("Signs and decisions")
    st.caption(
        f"A sign is something odd in a rater's answers (missed {reader.study.called.known}, haste, one answer for all)."
        " It decides nothing: people decide whose ratings count, and their reasons are recorded."
    )
    lines([f"To be decided: {name}" for name in reader.status().unreviewed])
    for table_of in (tables.raters, tables.signs, tables.decisions, tables.exclusions):
        exhibit(reader.name, table_of)


def _crowd(reader: CampaignReader) -> None:
    """Draw cost against plan, and decisions about submissions; workers have pseudonyms here too."""
    crowd = reader.tables().crowd
    if not crowd:
        return
    heading("Crowd work")
    st.caption(
        "Cost against plan in dollars, fees included; the plan covers all batches without bonuses. Rehearsals (not"
        " live) cost nothing. The numbers are the latest in the ledger; no table contains a worker's id."
    )
    for crowd_table in crowd:
        exhibit(reader.name, crowd_table)


_HEIGHT = 1200  # pixels; the page scrolls in it


def draw_preview(reader: CampaignReader) -> None:
    """Draw the page that `plumbline preview` writes, isolated from this one."""
    html = escape(reader.preview())
    frame = f'<iframe sandbox="allow-scripts allow-forms" title="The preview" srcdoc="{html}"'
    inner = f'{frame} style="border: 0; width: 100%; height: {_HEIGHT - 20}px"></iframe>'
    st.iframe(f'<!doctype html><html lang="en"><title>What raters will see</title>{inner}</html>', height=_HEIGHT)


def draw_people(reader: CampaignReader) -> None:
    """Draw the table of people, those with most left to do first."""
    home = names_home()
    if home is None:
        raise StudyError("the dashboard was started without --names; start it again with --names to see this page")
    people = standings(reader.status(), reader.signs(), known_names(home, reader.study.name))
    st.caption("Names appear on this page and on your terminal, but in no record, report or export.")
    if not people:
        raise StudyError(
            f"no rater's name is stored on this machine; `{reader.study.command('collect')}` fetches the"
            " names with the answers"
        )
    st.dataframe(_people_frame(people), hide_index=True, alt="People")


def _people_frame(people: list[AnnotatorProgress]) -> pd.DataFrame:
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


BY = {"generator": "", "transformation": "transformation", "data set": "dataset", "language": "language"}
_FOUND = {
    "transformation": "Transformation",
    "seed": "Seed",
    "dataset": "Data set",
    "text": "Original",
    "output": "Output",
    "status": "Status",
    "flags": "Error types",
    "model": "Generator",
}
LARGE = 64 * 2**20  # bytes of outputs; errors in more are counted only on demand


def draw_texts(reader: CampaignReader) -> None:
    """Draw the page on texts and outputs."""
    if not reader.units():
        raise NotYetError(f"the study has no outputs yet; run `{reader.study.command(COMMAND)}`")
    sections(*(partial(part, reader) for part in (_search, _errors, _lengths)))


def _search(reader: CampaignReader) -> None:
    units = reader.units()
    heading("Search")
    names = [ORIGINAL, *dict.fromkeys(name for name, _ in units)]
    wide, right = st.columns([2, 1])
    query = wide.text_input("Words in a text or an output", key="q", bind="query-params").strip()
    where = right.selectbox("In", ["all outputs", *names], key="in", format_func=_place, bind="query-params")
    if not query:
        st.caption(
            "Finds texts of the data sets and the generator's outputs, and marks the words that differ. The search is"
            " for a literal piece of text, in upper or lower case."
        )
        return
    with st.spinner("searching"):
        frame, more = reader.find(query, "" if where == "all outputs" else str(where))
    if frame.empty:
        st.text("Nothing found.")
        return
    st.caption(f"{'The first ' if more else ''}{count(len(frame), 'text')} found. Tick a row to see the whole text.")
    # A new search has a table of its own, so that no row of the last one stays ticked.
    chosen: Any = st.dataframe(
        _named(frame),
        hide_index=True,
        column_order=list(_FOUND),
        column_config=_FOUND,
        key=f"found {where} {query}",
        on_select="rerun",
        selection_mode="single-row",
        alt="Search results",
    )
    download_csv(f"{reader.name}-found", frame)
    if chosen.selection.rows:
        _whole(frame.iloc[chosen.selection.rows[0]])


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    if "transformation" not in frame:
        return frame
    return frame.assign(transformation=[_place(name) for name in frame["transformation"]])


def _whole(row: pd.Series[Any]) -> None:
    """Draw one text, or one output beside its original."""
    if "output" not in row.index:
        st.text(f"{row['dataset']}, {row['split']}, {row['item']}, {row['field']} ({row['language']})")
        st.code(row["text"], language=None, wrap_lines=True)
        return
    flags = ", ".join(row["flags"]) or "none"
    st.text(
        f"{_place(row['transformation'])}, seed {row['seed']}, {row['model']}; {row['status']}; error types: {flags}"
    )
    if row["reason"]:
        st.text(row["reason"])
    language = row["language"] or row["source_language"]
    side_by_side(row["text"], row["output"], (f"Original ({row['source_language']})", f"Output ({language})"))


def _errors(reader: CampaignReader) -> None:
    if not _wanted(reader, "Error types by generator (HTEB, Table 5)"):
        return
    wide, right = st.columns([2, 1])
    by = BY[str(wide.selectbox("One row per", list(BY), key="by", bind="query-params"))]
    after = right.toggle("After retries", key="after", bind="query-params")
    with st.spinner("counting errors"):
        frame = reader.errors(by, after_retries=after)
    attempts = "last" if after else "first"
    says = (
        f"Share of outputs with each error type, in %, on the {attempts} attempt; a text counts once for each of its"
        f" occurrences in the data. n = {count(int(frame['n'].sum()), 'output')}."
    )
    unanswered = int(frame["unanswered"].sum())
    says += f" The rates leave out {count(unanswered, 'unanswered text')}." if unanswered else ""
    name = f"{reader.name}-errors"
    figure(name, charts.error_map(frame, by or "generator"), says)
    table(name, frame, error_frame(frame, by))


def _lengths(reader: CampaignReader) -> None:
    if not _wanted(reader, "Lengths and edits (HTEB, Table 23)"):
        return
    with st.spinner("counting words"):
        frame = reader.lengths()
    st.caption(
        "Mean numbers of words over texts, seeds and data sets. Ratio: words after / words before. Edit distance: the"
        " share of words that were added, removed or replaced, from 0 (equal) to 1. It measures how much of a text"
        " changed, not whether its meaning did."
    )
    table(f"{reader.name}-lengths", frame, length_frame(frame))


def _wanted(reader: CampaignReader, title: str) -> bool:
    """Draw the section's heading; return whether to read all outputs: many are read on demand."""
    size = sum(reader.study.transformation_file(*unit).stat().st_size for unit in reader.units())
    heading(title)
    if size < LARGE or st.session_state.get("count") or reader.counted():
        return True
    st.caption(f"This reads {size / 1e6:,.0f} MB of outputs and takes minutes.")
    st.button("Count", key=f"count {st.session_state.get('count')}", on_click=_count)
    return False


def _count() -> None:
    st.session_state["count"] = True


def _place(name: str) -> str:
    return name if name == "all outputs" else ("original texts" if name == ORIGINAL else display(name, pooled=False))
