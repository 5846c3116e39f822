"""The first page: the answer, what it rests on, doubts about it, what to do next, progress, and the study's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from annotation.campaign.rubric import load_rubric
from annotation.status.next_step import next_step
from annotation.status.text import headline
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.systems import best_first
from annotation.verdicts.tables import cards, legend_of
from plumbline.exhibits.page import part_html
from plumbline.exhibits.table import Exhibit, in_prose
from streamlit_app import server
from streamlit_app.elements import complain, exhibit, heading, in_short, link, numbers, quoted, sections, side_by_side
from streamlit_app.readers import StudyReader

READER = StudyReader
SHOWS = ""  # the table of stages names missing records
STATES = {"done": "✔ done", "stale": "⚠ stale", "under way": "… running", "not yet": "– not yet"}


def draw(reader: StudyReader) -> None:
    """Draw the page."""
    room: list[st.delta_generator.DeltaGenerator] = []
    sections(
        partial(_short, reader),
        lambda: room.append(st.container()),
        *(partial(part, reader) for part in (_doubts, side_by_side, _verdicts, _next, _progress, _rules)),
        partial(_scores, reader, room),  # last: their libraries take longer than the rest of the page
    )


def _short(reader: StudyReader) -> None:
    """Show the first sentences of `plumbline accept` and of the campaign's report; doubts and next steps follow."""
    status = reader.status()
    holding = () if status.stages["verdicts"].state != "done" else reader.verdicts()
    *answer, _, _ = headline(status, holding, *(reader.side_by_side() if holding else ()))
    in_short(answer)
    if not holding:
        numbers(reader.so_far())


def _scores(reader: StudyReader, room: Sequence[st.delta_generator.DeltaGenerator]) -> None:
    """Show the answer of the scores' report, in the room left for it."""
    judging = reader.study.judging
    if not judging.scored_by or judging.scores[0] not in reader:
        return
    server.import_all()
    from streamlit_app.readers.scores import ScoreReader  # noqa: PLC0415 (imported by now)

    sentences, warning = ScoreReader(reader.study).sentences()
    with room[0]:
        if warning and not reader.simulated():  # else the warning is above
            st.warning(warning, icon=":material/science:")
        st.text(in_prose(" ".join(sentences)))
        link("scores", "The scores")


def _verdicts(reader: StudyReader) -> None:
    """Show a card for each verdict, with its means on their scales; of many the answer has the numbers."""
    verdicts, changes = reader.concluded()
    if not verdicts and not changes:
        return
    heading("Verdicts")
    if changes:
        complain(changes, title="The verdicts are no longer valid")
    ordered = best_first(verdicts, reader.side_by_side()[0]) if verdicts else ()
    if shown := cards(ordered, load_rubric(reader.study), reader.study.called):
        st.html(part_html(shown))
        st.caption("".join(legend_of(shown)))
    link("verdicts", "All verdicts, with their intervals and reasons")


def _doubts(reader: StudyReader) -> None:
    status = reader.status()
    if not status.sources:
        return
    heading("What is doubtful")
    if status.doubts:
        complain("\n".join(f"– {line}." for line in status.doubts), title="This needs care")
    else:
        st.text(doubts_text((), reader.study.judging, judged=status.judged))


def _next(reader: StudyReader) -> None:
    step = next_step(replace(reader.status(), writes="dashboard"))  # which is open
    heading("Next")
    if step.command:
        st.code(step.command, language=None, wrap_lines=True)
    st.text(quoted(step.words))


def _progress(reader: StudyReader) -> None:
    status = reader.status()
    heading("Progress")
    if status.stages["verdicts"].state == "done":  # else they stand above
        numbers(reader.so_far())
    rows = [
        {
            "Stage": stage.name,
            "State": STATES[stage.state],
            "Last ended": f"{stage.at:%Y-%m-%d %H:%M} UTC" if stage.at else "",
            "Note": stage.note,
        }
        for stage in status.stages.values()
        if stage.wanted
    ]
    frame = pd.DataFrame(rows)
    with st.expander("Stages of the study", expanded=not status.sources):
        exhibit(reader.name, Exhibit("stages", "", frame, frame), captioned=False)
    for line in status.warnings:
        complain(line, title="This needs care")


def _rules(reader: StudyReader) -> None:
    """Show when the rules were fixed and changed, and when somebody looked at results."""
    rules, looks = reader.status().rules, reader.looks()
    if not rules and not looks:
        return
    heading("Rules and looks at results")
    for line in rules:
        st.text(line)
    for changed, changes in reader.amendments():
        st.warning(f"The rules were changed after the first rating, on {changed.fixed_at:%Y-%m-%d at %H:%M} UTC.")
        st.text(f"{changed.reason} ({'; '.join(changes)})")
    rows = [
        {
            "When": f"{look.at:%Y-%m-%d %H:%M} UTC",
            "Ratings": f"{look.n_ratings:,}",
            "Verdicts": ", ".join(f"{n} {name}" for name, n in look.decisions.items()),
            "Rule": look.rests_on["rule"][:8],
        }
        for look in looks
    ]
    if rows:
        st.caption("Computing verdicts from new ratings or by new rules is a look at results.")
        frame = pd.DataFrame(rows)
        exhibit(reader.name, Exhibit("looks", "", frame, frame), captioned=False)
