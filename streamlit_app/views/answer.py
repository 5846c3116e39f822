"""The first page: the answer, doubts about it, verdicts, the study's progress, and its rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from annotation.records import Verdict
from annotation.status.next_step import next_step
from annotation.status.text import headline
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.tables import display, rated
from plumbline.exhibits.table import Exhibit, number
from plumbline.study.transformations import in_order
from streamlit_app import server
from streamlit_app.elements import DECISIONS, complain, exhibit, heading, link, sections
from streamlit_app.readers import StudyReader

READER = StudyReader
STATES = {"done": "✔ done", "stale": "⚠ stale", "under way": "… running", "not yet": "– not yet"}
_BESIDE = 4  # tiles


def draw(reader: StudyReader) -> None:
    """Draw the page."""
    # The table of stages names missing records, with the next step.
    room: list[st.delta_generator.DeltaGenerator] = []
    sections(
        lambda: _short(reader),
        lambda: room.append(st.container()),
        lambda: _doubts(reader),
        lambda: _tiles(reader),
        lambda: _stages(reader),
        lambda: _rules(reader),
        # Scores need libraries whose import takes longer than the rest of the page, so they come last.
        lambda: _scores(reader, room),
        not_yet=False,
    )


def _short(reader: StudyReader) -> None:
    """Show the first sentences of `plumbline accept` and of the campaign's report."""
    status = reader.status()
    holding = () if status.stages["verdicts"].state != "done" else reader.verdicts()
    sentences = list(headline(status, holding, *(reader.side_by_side() if holding else ())))
    heading("In short")
    st.text("\n".join(sentences))
    if command := next_step(status).command:
        st.code(command, language=None, wrap_lines=True)


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
        st.text("\n\n".join(sentences))
        link("scores", "The scores")


def _doubts(reader: StudyReader) -> None:
    status = reader.status()
    if not status.sources:
        return
    heading("What is doubtful")
    if status.doubts:
        complain("\n".join(status.doubts), title="This needs care")
    else:
        st.text(doubts_text((), reader.study.judging, judged=status.judged))


def _tiles(reader: StudyReader) -> None:
    """Show each transformation: its decision and means, or the number of its languages with each decision."""
    verdicts, changes = reader.concluded()
    if not verdicts and not changes:
        return
    heading("Verdicts")
    if changes:
        complain(changes, title="The verdicts are no longer valid")
    by_name: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_name.setdefault(verdict.transformation, []).append(verdict)
    columns: list[st.delta_generator.DeltaGenerator] = []
    for position, name in enumerate(in_order(by_name)):
        if position % _BESIDE == 0:
            columns = list(st.columns(_BESIDE))
        first, *further = by_name[name]
        if further:
            counts = Counter[str](verdict.decision for verdict in by_name[name])
            rows = [f"{word}: {counts[decision]}" for decision, word in DECISIONS.items() if counts[decision]]
        else:
            means = [f"{mean.question.capitalize()} {number(mean.mean)}" for mean in rated(first.questions)]
            rows = [DECISIONS[first.decision], *means]
        with columns[position % _BESIDE].container(border=True):
            st.text(display(name, pooled=False))
            st.text("\n".join(rows))
    link("verdicts", "All verdicts, with their intervals and reasons")


def _stages(reader: StudyReader) -> None:
    status = reader.status()
    heading("Progress")
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
            "Ratings": look.n_ratings,
            "Verdicts": ", ".join(f"{n} {name}" for name, n in look.decisions.items()),
            "Rule": look.rests_on["rule"][:8],
        }
        for look in looks
    ]
    if rows:
        st.caption("Computing verdicts from new ratings or by new rules is a look at results.")
        frame = pd.DataFrame(rows)
        exhibit(reader.name, Exhibit("looks", "", frame, frame), captioned=False)
