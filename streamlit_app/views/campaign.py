"""The page on the campaign: progress, agreement, pace, raters, signs of careless answers, and what a crowd costs."""

from __future__ import annotations

from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from annotation.report.exhibits import asked_exhibit
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.status.monitoring import agreement_exhibit
from annotation.verdicts.tables import display, scoped
from plumbline.exhibits.charts import NEUTRAL, WIDTH, Kinds, colours, rows, tips
from plumbline.exhibits.table import Cell, Exhibit, cell
from plumbline.study.transformations import EIGHT, Axes, in_order
from streamlit_app.elements import exhibit, figure, heading, lines, link, report, sections
from streamlit_app.readers import NotYetError
from streamlit_app.readers.campaign import CampaignReader

READER = CampaignReader
_ROW = 26  # pixels


def draw(reader: CampaignReader) -> None:
    """Draw the page."""
    sections(*(partial(part, reader) for part in (_progress, _going, _raters, _quality, _crowd)))
    report(reader, "campaign", "every rater, sign and decision, and which ratings count")


def _progress(reader: CampaignReader) -> None:
    status, study = reader.status(), reader.study
    progress = status.progress
    if progress.empty:
        raise NotYetError(f"no pairs are drawn yet; run `{study.command(SAMPLE)}`")
    heading("Progress")
    simulated, item = " of SIMULATED raters" if status.simulated else "", study.called.item
    text = (
        f"Answers{simulated} that count, against {study.raters.per_pair} wanted for each {item}; an answer is one"
        f" rater's submission for one {item}. Answers given since the last collection are not included."
    )
    kinds = [study.kinds.get(name) or EIGHT.get(name) for name in progress["transformation"]]
    axes = [kind.axis if kind else "not in the study" for kind in kinds]
    figure(f"{reader.name}-progress", progress_bars(progress.assign(axis=axes)), text)
    items = f"{item}s".capitalize()
    columns: dict[str, Cell] = {
        study.called.judged.capitalize(): cell("transformation", lambda name: display(name, pooled=False)),
        "Language": "language",
        "Verdict": "verdict",
        items: "pairs",
        f"{items} with all raters": "complete",
        "Answers that count": "counting",
        "Wanted": "wanted",
        "Still open": "open",
        "Surplus": "surplus",
        "Excluded": "excluded",
        f"{items} withdrawn": "withdrawn",
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


def progress_bars(progress: pd.DataFrame) -> alt.LayerChart:
    """Answers that count beside those wanted, a row a transformation and language, from `by_transformation`."""
    order = {name: position for position, name in enumerate(in_order(progress["transformation"].unique()))}
    axes = Axes.of(progress).shown
    # A categorical column would be sorted in the order of its categories.
    ordered = progress.sort_values("transformation", key=lambda names: names.astype(object).map(order), kind="stable")
    ordered = ordered.assign(
        row=[
            scoped(name, language)
            for name, language in zip(ordered["transformation"], ordered["language"], strict=True)
        ],
        axis=ordered["axis"].map(display),
    )
    inks = dict(zip(map(display, axes), colours(axes).values(), strict=True))
    kinds = Kinds("axis", inks, {})
    hover = tips("row:N", "counting:Q", "wanted:Q", "open:Q", "complete:Q", "pairs:Q")
    base = alt.Chart(ordered).encode(y=rows("row", ordered["row"], limit=220), tooltip=hover)
    answers = alt.X("wanted:Q", title="Answers (pale: wanted)").axis(tickMinStep=1)
    wanted = base.mark_bar(color=NEUTRAL, opacity=0.3).encode(x=answers)
    counted = base.mark_bar(height={"band": 0.5}).encode(x=alt.X("counting:Q"), color=kinds.colour)
    return alt.LayerChart(layer=[wanted, counted], width=WIDTH * 2 // 3, height=_ROW * len(ordered))


def _going(reader: CampaignReader) -> None:
    going = reader.status().going
    if going.agreement.empty and going.pace is None:
        return
    heading("While ratings come")
    if going.pace is not None:
        st.text(str(going.pace))
    if len(going.agreement):
        exhibit(reader.name, agreement_exhibit(going.agreement, reader.study.called))


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
        "Drafts": "drafts",
        "Discarded": "discarded",
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
