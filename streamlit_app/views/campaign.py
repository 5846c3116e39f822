"""The page on the campaign: progress, looks, agreement, pace, raters, signs of careless answers, and a crowd's cost."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from annotation.campaign.rubric import load_rubric
from annotation.report.charts import looks_charts, progress_bars
from annotation.report.exhibits import asked_exhibit
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.status.monitoring import agreement_exhibit
from annotation.verdicts.tables import CARDS, display, looks_exhibit
from plumbline.exhibits.table import Cell, Exhibit, cell
from plumbline.study.transformations import EIGHT
from streamlit_app.elements import exhibit, figure, heading, lines, link, numbers, report, sections
from streamlit_app.readers import NotYetError
from streamlit_app.readers.campaign import CampaignReader

READER = CampaignReader
SHOWS = "progress, pace, agreement and raters"


def draw(reader: CampaignReader) -> None:
    """Draw the page."""
    if reader.status().progress.empty:
        raise NotYetError(f"no pairs are drawn yet; run `{reader.study.command(SAMPLE)}`")
    sections(*(partial(part, reader) for part in (_progress, _looks, _going, _raters, _quality, _crowd)), shows=SHOWS)
    report(reader, "campaign", "every rater, sign and decision, and which ratings count")


def _progress(reader: CampaignReader) -> None:
    status, study = reader.status(), reader.study
    progress = status.progress
    heading("Progress")
    numbers(reader.so_far())
    simulated, item = " of SIMULATED raters" if status.simulated else "", study.called.item
    text = (
        f"Answers{simulated} that count, against {study.raters.per_pair} wanted for each {item}; an answer is one"
        f" rater's submission for one {item}. Answers given since the last collection are not included."
    )
    open_first = progress.nlargest(CARDS, "open") if len(progress) > CARDS else progress
    text += f" The {CARDS} rows with most open answers are drawn." if len(progress) > CARDS else ""
    kinds = [study.kinds.get(name) or EIGHT.get(name) for name in open_first["transformation"]]
    axes = [kind.axis if kind else "not in the study" for kind in kinds]
    figure(f"{reader.name}-progress", progress_bars(open_first.assign(axis=axes)), text)
    items = f"{item}s".capitalize()
    seldom = [name for name in ("surplus", "excluded", "withdrawn") if progress[name].any()]
    columns: dict[str, Cell] = {
        study.called.judged.capitalize(): cell("transformation", lambda name: display(name, pooled=False)),
        "Language": "language",
        "Verdict": "verdict",
        items: "pairs",
        f"{items} with all raters": "complete",
        "Answers that count": "counting",
        "Wanted": "wanted",
        "Still open": "open",
        **{f"{items} withdrawn" if name == "withdrawn" else name.capitalize(): name for name in seldom},
    }
    exhibit(reader.name, Exhibit.of("progress", "", progress, columns), captioned=False)
    for line in status.blocks:
        st.text(line)
    if status.asked_for is not None:
        exhibit(reader.name, asked_exhibit(status.asked_for))
    if status.raters.empty:
        st.text("Nobody has answered yet. This command writes the pages that raters will see:")
        st.code(study.command("preview"), language=None, wrap_lines=True)
    link("texts", f"The {item}s, those to read first on top")


def _looks(reader: CampaignReader) -> None:
    """Draw the path of each mean over the looks after blocks."""
    looks = reader.status().looks
    if looks.empty:
        return
    heading("Looks after blocks")
    for number, (chart, text) in enumerate(looks_charts(looks, load_rubric(reader.study)), 1):
        figure(f"{reader.name}-looks-{number}", chart, text)
    exhibit(reader.name, looks_exhibit(looks, reader.study.called), captioned=False)


def _going(reader: CampaignReader) -> None:
    going = reader.status().going
    if going.agreement.empty:
        return
    table = agreement_exhibit(going.agreement, reader.study.called)
    heading(table.caption)
    exhibit(reader.name, table, captioned=False)


def _raters(reader: CampaignReader) -> None:
    raters = reader.status().raters
    if raters.empty:
        return
    heading("Raters")
    called = reader.study.called
    st.caption(f"By pseudonym. Answers include those to {called.known} and to {called.item}s that a rater sees twice.")
    columns: dict[str, Cell] = {
        "Rater": "rater_id",
        "Who": lambda row: "simulated" if row["simulated"] else "person",
        "Answers": "answers",
        "Left to answer": cell("open", lambda n: "" if pd.isna(n) else str(n)),  # unknown if the study names no raters
        **{name.capitalize(): name for name in ("drafts", "discarded") if raters[name].any()},
        "Last answer (UTC)": cell("last", lambda at: "" if pd.isna(at) else f"{at:%Y-%m-%d %H:%M}"),
        "Signs": "signs",
        "Decision": lambda row: "excluded" if row["excluded"] else "removed" if row["out"] else "",
    }
    exhibit(reader.name, Exhibit.of("raters", "", raters, columns), captioned=False)


def _quality(reader: CampaignReader) -> None:
    if reader.status().raters.empty:
        return
    signs = reader.signs()
    heading("Signs of careless answers")
    st.caption("A sign decides nothing: people decide whose ratings count, and their reasons are recorded.")
    lines([f"{sign.rater_id}, {sign.rule}: {sign.evidence}" for sign in signs] or ["No rater shows a sign."], "signs")
    if unreviewed := reader.status().unreviewed:
        st.text(f"To be decided: {', '.join(unreviewed)}")
        st.code(reader.study.command("review"), language=None, wrap_lines=True)


def _crowd(reader: CampaignReader) -> None:
    """Draw cost against plan; workers have pseudonyms here too."""
    costs = reader.crowd()
    if costs is not None:
        heading("Crowd work")
        st.caption("In dollars, fees included, as of the latest entry in the ledger. Rehearsals cost nothing.")
        exhibit(reader.name, costs, captioned=False)
