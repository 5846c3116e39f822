"""The first page: the answer, drift against ratings, verdicts, doubts, scores, stages and rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

import streamlit as st

from annotation.records import Verdict
from annotation.status.text import headline
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.judged import deciders
from annotation.verdicts.tables import SIMULATED, display, number, rated
from plumbline.exhibits.table import read_by_people
from plumbline.transformations import in_order
from streamlit_app import frames, server
from streamlit_app.elements import complain, figure, heading, limits, link, sections, table
from streamlit_app.readers import OverviewReader

READER = OverviewReader


_COMMAND = re.compile(r"plumbline [^,;(]+")
_BESIDE = 4  # tiles
WORDS = {
    "Transformation": "a way to change a text, usually without changing its meaning; HTEB has eight, on three axes.",
    "Axis": "a kind of transformation: lexical and stylistic, length, language, or an axis that a study adds.",
    "Pair": "an original text and its transformed text; people rate pairs.",
    "Rating": "one person's answer to one question (quality, fluency) on one pair.",
    "Verdict": "whether a transformation's mean ratings reach the threshold: accepted, rejected or undecided.",
    "Drift": "how far a text moves in a model's space when it is transformed: one minus the cosine; 0 is no movement.",
    "Score": "a model's result on a data set, times 100 on these pages; differences are in points.",
    "HTEB total": "the mean of the scores on HTEB's three axes; a study without them has a total of its own axes.",
    "Seed": "one run of the random choices; scores are averaged over seeds.",
}
# For a subject other than pairs.
ITEM_WORDS = {
    "Group": "texts of one source, or items of one data set, which get a verdict together.",
    "Rating": "one person's answer to one question on one text or item.",
    "Known item": "an item with a known right answer, which checks raters; it does not belong to the sample.",
    "Verdict": "whether people's answers on a group meet the study's rules: accepted, rejected or undecided.",
}


def draw_overview(reader: OverviewReader) -> None:
    """Draw the page on the study as a whole."""
    # The table of stages names missing records, with the next step.
    room: list[st.delta_generator.DeltaGenerator] = []
    scored = (_people,) if reader.study.judging.does_tasks else (_coverage,) if reader.study.evaluation.models else ()
    parts = (_tiles, _doubts, *scored, _stages, _rules, _words)
    # The figure needs libraries whose import takes longer than the rest of the page, so it is drawn last.
    figures = [partial(_drift, reader, room)] if reader.study.evaluation.models and not reader.study.subject else []
    sections(
        partial(_short, reader),
        lambda: room.append(st.container()),
        *(partial(part, reader) for part in parts),
        *figures,
        not_yet=False,
    )


def _words(reader: OverviewReader) -> None:
    with st.expander("The study's question and its terms"):
        st.text(
            f"People judge {reader.study.called.item}s one by one; each group's verdict says whether they accept it."
            if reader.study.subject
            else "Do embedding models stay accurate when a text changes but its meaning does not? Texts are"
            " transformed, people rate whether each transformation keeps the meaning, and models are evaluated on"
            " accepted ones only."
        )
        words = ITEM_WORDS if reader.study.subject else WORDS
        st.text("\n".join(f"{word}: {meaning}" for word, meaning in words.items()))


def _drift(reader: OverviewReader, room: Sequence[st.delta_generator.DeltaGenerator]) -> None:
    """Draw drift against ratings of the first model, all pairs in one panel, into the room left for it."""
    if "drift.parquet" not in reader:
        return
    server.import_all()
    from annotation.rubric import load_rubric  # noqa: PLC0415 (imported by now)
    from evaluation.report.drift_charts import OVERVIEW, drift_overview, left_undrawn  # noqa: PLC0415
    from streamlit_app.readers.scores import ScoreReader  # noqa: PLC0415

    scores, rubric = ScoreReader(reader.study), load_rubric(reader.study)
    models, names = scores.drift_choices().models, rubric.rating_names()
    if not models or not names:
        return
    frame, correlations = scores.against_ratings(names[0], models[0])
    if frame.empty:
        return
    says = (
        "Each point is a rated pair: the drift of its text in the model's space against its mean rating. In a model"
        " that sees meaning as people do, badly rated pairs drift most."
    )
    if undrawn := left_undrawn(frame, OVERVIEW):
        says += f" {undrawn}."
    says += limits(simulated=bool(frame["simulated"].any()), late=reader.late())
    scale = rubric.scale_of(names[0])
    chart = drift_overview(frame, correlations, question=names[0], scale=(scale[0], scale[-1]))
    with room[0]:
        heading("Drift against ratings")
        st.text(models[0])
        figure(f"{reader.name}-drift-overview", chart, says)
        link("drift", "Each transformation by itself, and the other models")


def _short(reader: OverviewReader) -> None:
    """Show the first sentences of `plumbline accept` and of the campaign's report."""
    status = reader.status()
    holding = () if status.stages["verdicts"].state != "done" else reader.verdicts()
    sentences = list(headline(status, holding))
    heading("In short")
    st.text("\n".join(sentences))
    for command in _COMMAND.findall(sentences[-1]):
        st.code(command.strip().removesuffix("."), language=None, wrap_lines=True)


def _stages(reader: OverviewReader) -> None:
    status = reader.status()
    heading("Progress")
    stages = frames.stage_frame(status.stages, items=reader.study.subject is not None)
    table(f"{reader.name}-stages", stages, read_by_people(stages))
    for line in status.warnings:
        complain(line, what="This needs care")


def _doubts(reader: OverviewReader) -> None:
    status = reader.status()
    if not status.sources:
        return
    heading("What is doubtful")
    if status.doubts:
        complain("\n".join(status.doubts), what="This needs care")
    else:
        st.text(doubts_text((), reader.study.judging, judged=status.judged))


def _tiles(reader: OverviewReader) -> None:
    verdicts = reader.verdicts()
    if not verdicts:
        return
    heading("Verdicts")
    if stale := reader.verdicts_hold():
        complain(stale, what="These verdicts are no longer valid")
    by_name: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_name.setdefault(verdict.transformation, []).append(verdict)
    names = in_order(by_name)
    columns: list[st.delta_generator.DeltaGenerator] = []
    for position, name in enumerate(names):
        if position % _BESIDE == 0:
            columns = list(st.columns(_BESIDE))
        with columns[position % _BESIDE].container(border=True):
            _tile(name, by_name[name])
    raters = " of SIMULATED ratings" if any(verdict.simulated for verdict in verdicts) else ""
    if reader.study.subject:
        by_rules = bool(reader.study.acceptance.rules)
        reached = "people's answers meet the study's rules" if by_rules else "its means reach the threshold"
        st.caption(f"A group is accepted if {reached}." + (" The answers are SIMULATED." if raters else ""))
    else:
        who = deciders(verdicts)[0]
        st.caption(f"A transformation is used only if {who} accept it: the means{raters} must reach the threshold.")
    link("verdicts", "All verdicts, with their intervals")


def _tile(name: str, verdicts: list[Verdict]) -> None:
    """Show one transformation: its decision and means, or the number of its languages with each decision."""
    st.text(display(name, pooled=False))
    if len(verdicts) == 1:
        st.text(frames.DECISIONS[verdicts[0].decision])
        st.text(
            "\n".join(
                f"{question.question.capitalize()} {number(question.mean)}" for question in rated(verdicts[0].questions)
            )
        )
        return
    counts = Counter[str](verdict.decision for verdict in verdicts)
    st.text("\n".join(f"{word}: {counts[decision]}" for decision, word in frames.DECISIONS.items() if counts[decision]))


def _coverage(reader: OverviewReader) -> None:
    counts = reader.coverage()
    heading("What was evaluated")
    st.caption("Number of scores by transformation (models × data sets × seeds). Left out: no verdict accepts them.")
    table(f"{reader.name}-coverage", counts, frames.coverage_frame(counts))
    link("robustness", "Scores left out, with reasons")


def _people(reader: OverviewReader) -> None:
    """Show people's scores among models', for a study whose people do tasks."""
    from streamlit_app.readers.scores import ReportReader  # noqa: PLC0415 (other studies' first page goes without)

    report = ReportReader(reader.study).people()
    heading("People and models")
    if report.simulated and not reader.simulated():  # else the warning is above
        st.warning(SIMULATED, icon=":material/science:")
    st.text("\n\n".join(report.sentences))
    link("human", "People and models, task by task")


def _rules(reader: OverviewReader) -> None:
    rules, amended = reader.status().rules, reader.amendments()
    looks = frames.look_frame(reader.looks())
    if not rules and looks.empty:
        return
    heading("Rules and looks at results")
    for line in rules:  # when they were fixed, and each amendment
        st.text(line)
    for changed, what in amended:
        st.warning(f"The rules were changed after the first rating, on {changed.fixed_at:%Y-%m-%d at %H:%M} UTC.")
        st.text(f"{changed.reason} ({'; '.join(what)})")
    if looks.empty:
        return
    st.caption("Computing verdicts from new ratings or by new rules is a look at results.")
    table(f"{reader.name}-looks", looks)
