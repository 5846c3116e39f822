"""The answer in three sentences, where the study stands, what people decided and what was evaluated."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

import streamlit as st

from annotation.records import Verdict
from annotation.status.text import headline
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.judged import deciders
from annotation.verdicts.tables import SIMULATED, display, number, rated
from plumbline.transformations import in_order
from streamlit_app import frames
from streamlit_app.elements import complain, heading, link, sections, table
from streamlit_app.readers import OverviewReader

READER = OverviewReader


_COMMAND = re.compile(r"(?:python -m|plumbline) [^,;(]+")
_BESIDE = 4  # tiles
WORDS = {
    "Transformation": "a way to change a text, mostly so that its meaning stays; HTEB has eight, in three axes.",
    "Axis": "lexical and stylistic changes, changes of length, changes of language, and what a study adds.",
    "Pair": "a text and what became of it; people rate pairs.",
    "Rating": "one person's answer to one question (quality, fluency) on one pair.",
    "Verdict": "whether a transformation's mean ratings reach the threshold: accepted, rejected or undecided.",
    "Drift": "how far a text moves in a model's space when it is transformed: one minus the cosine, 0 for not at all.",
    "Score": "a model's result on a data set, times 100 on these pages; differences are in points.",
    "HTEB total": "the mean of HTEB's three axes' scores; without them it is of a study's own.",
    "Seed": "one run of the random choices; scores are averaged over seeds.",
}
# Of another subject than pairs.
ITEM_WORDS = {
    "Group": "texts of one source, or the items of one data set, which get a verdict together.",
    "Rating": "one person's answer to one question on one text or item.",
    "Known item": "one whose right answer its file names: it tells about raters and is no part of the sample.",
    "Verdict": "whether what people say of a group keeps to the study's rules: accepted, rejected or undecided.",
}


def draw_overview(reader: OverviewReader) -> None:
    """The page."""
    st.caption(
        f"People judge {reader.study.called.item}s one by one, and a verdict says of each group whether they accept it."
        if reader.study.subject
        else "Do embedding models hold when a text changes and its meaning does not? Texts are transformed, people say"
        " whether each transformation keeps the meaning, and only what they accept is evaluated."
    )
    with st.expander("Words used here"):
        words = ITEM_WORDS if reader.study.subject else WORDS
        st.text("\n".join(f"{word}: {meaning}" for word, meaning in words.items()))
    # What is not there yet stands in the table of stages, with the next step.
    scored = (_people,) if reader.study.judging.does_tasks else (_coverage,) if reader.study.evaluation.models else ()
    parts = (_short, _stages, _doubts, _tiles, *scored, _rules)
    sections(*(partial(part, reader) for part in parts), not_yet=False)


def _short(reader: OverviewReader) -> None:
    """As `accept` and the campaign's report open."""
    status = reader.status()
    holding = () if status.stages["verdicts"].state != "done" else reader.verdicts()
    sentences = list(headline(status, holding))
    heading("In short")
    st.text("\n".join(sentences))
    for command in _COMMAND.findall(sentences[-1]):
        st.code(command.strip().removesuffix("."), language=None, wrap_lines=True)


def _stages(reader: OverviewReader) -> None:
    status = reader.status()
    heading("How it stands")
    table(f"{reader.name}-stages", frames.stage_frame(status.stages, items=reader.study.subject is not None))
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
        complain(stale, what="These verdicts no longer hold")
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
        reached = "what people say of it keeps to the study's rules" if by_rules else "its means reach the threshold"
        st.caption(f"A group is accepted where {reached}." + (" The answers are SIMULATED." if raters else ""))
    else:
        who = deciders(verdicts)[0]
        st.caption(f"A transformation is used only where {who} accept it: the means{raters} must reach the threshold.")
    link("verdicts", "All verdicts, with their intervals")


def _tile(name: str, verdicts: list[Verdict]) -> None:
    """One transformation: its decision and means, or how many of its languages have which decision."""
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
    st.caption("Scores there are, by transformation: models × data sets × seeds. Left out is what no verdict accepts.")
    table(f"{reader.name}-coverage", counts, frames.coverage_frame(counts))
    link("robustness", "What was left out, and why")


def _people(reader: OverviewReader) -> None:
    """Of a study whose people do tasks: where they stand among models."""
    from streamlit_app.readers.scores import ReportReader  # noqa: PLC0415 (other studies' first page goes without)

    report = ReportReader(reader.study).people()
    heading("People and models")
    if report.simulated and not reader.simulated():  # else it stands above
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
    st.caption("Each time that verdicts were reached on other ratings or by other rules is a look at results.")
    table(f"{reader.name}-looks", looks)
