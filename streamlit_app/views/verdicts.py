"""The page on verdicts and the ratings behind them (HTEB, Table 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from annotation.campaign.rubric import load_rubric
from annotation.records import P_IS, Verdict
from annotation.report import exhibits
from annotation.report.charts import mean_intervals, means_in_words, rating_shares, shares_in_words
from annotation.verdicts.rules import unchecked
from annotation.verdicts.systems import best_first
from annotation.verdicts.tables import CARDS, joined, means_frame
from plumbline.words import count, sentence
from streamlit_app.elements import (
    DECISIONS,
    choose,
    complain,
    exhibit,
    figure,
    heading,
    in_short,
    limits,
    report,
    sections,
)
from streamlit_app.readers.campaign import CampaignReader

READER = CampaignReader
SHOWS = "each verdict with its means, intervals and reasons"


def draw(reader: CampaignReader) -> None:
    """Draw the page."""
    verdicts, changes = reader.concluded()
    if changes:
        complain(changes, title="The verdicts are no longer valid")
        return
    if not verdicts:
        st.caption("The study has no verdicts.")
        return
    decisions = Counter(verdict.decision for verdict in verdicts)
    parts_of = ", ".join(f"{number:,} {decision}" for decision, number in decisions.most_common())
    in_short([f"{count(len(verdicts), 'verdict')}: {parts_of}."])
    rubric = load_rubric(reader.study)
    names = rubric.rating_names()
    question = choose("Question", names, "question") if names else ""
    parts = [partial(_verdicts, reader)]
    if question:
        parts += [partial(_means, reader, rubric.scale_of(question), question), partial(_agreement, reader)]
    sections(*parts, partial(_labels, reader), shows=SHOWS)
    report(reader, "campaign", "every coefficient of agreement, raters, judges, examples, methods and rules")


def _limits(reader: CampaignReader) -> str:
    verdicts = reader.verdicts()
    return limits(
        simulated=reader.simulates(),
        n=min(verdict.n_pairs for verdict in verdicts),
        noun=f"{reader.study.called.item}s for a verdict",
        warnings=reader.late(),
    )


def _verdicts(reader: CampaignReader) -> None:
    verdicts = reader.verdicts()
    decided = reader.table(exhibits.verdicts_exhibit)
    heading("Decisions")
    used = f"A {reader.study.called.judged} is {'accepted' if reader.study.subject else 'used only'}"
    note = unchecked(verdicts)
    st.caption(f"{used} if {_rule(verdicts[0])}.{f' {note}' if note else ''} {P_IS}{_limits(reader)}")
    marked = decided.printed.assign(Decision=decided.printed["Decision"].map(DECISIONS))
    exhibit(reader.name, replace(decided, printed=marked), captioned=False)


def _rule(verdict: Verdict) -> str:
    if verdict.result.rules:
        return "people's answers meet the study's rules (see each verdict's reasons)"
    condition = (
        "people's mean rating"
        if verdict.result.rule == "mean"
        else "the lower end of the interval of people's mean rating"
    )
    return f"{condition} on each question is at least {verdict.result.threshold:g}"


def _means(reader: CampaignReader, scale: Sequence[float], question: str) -> None:
    """Draw the question's means, and below them how often each point of its scale was given."""
    shown = joined(best_first(reader.verdicts(), reader.side_by_side()[0]))
    frames = means_frame(shown), reader.shares()
    means, shares = (frame[frame["question"] == question] for frame in frames)
    heading("Means against the threshold")
    text, decides = f"Mean {question} of each verdict with its 95% interval", means["threshold"].notna().any()
    text += "; the dashed line is the threshold." if decides else "."
    if len(means) > CARDS:
        far = (means["mean"] - means["threshold"]).abs() if decides else means["mean"]
        means = means.loc[far.nsmallest(CARDS).index.sort_values()]
        text += f" The {len(means)} {'verdicts nearest to it' if decides else 'lowest'} are drawn."
    name, chart = f"{reader.name}-means-{question}", mean_intervals(means, scale)
    figure(name, chart, text + _limits(reader), alt_text=means_in_words(means))
    heading("Ratings given")
    text = f"{question.capitalize()}: how often each point was given; n counts single ratings that count."
    name, chart = f"{reader.name}-shares-{question}", rating_shares(shares, scale)
    figure(name, chart, text + _limits(reader), alt_text=shares_in_words(shares))


def _agreement(reader: CampaignReader) -> None:
    table = reader.table(exhibits.table_two_exhibit)
    heading(table.caption.partition(";")[0])
    st.caption("n counts single ratings. AC2 (Gwet's, with ordinal weights): 1 is complete agreement, 0 chance.")
    exhibit(reader.name, table, captioned=False)


def _labels(reader: CampaignReader) -> None:
    answered = reader.table(exhibits.labels_exhibit)
    if not answered.frame.empty:
        title, _, what = answered.caption.partition(": ")
        heading(title)
        st.caption(sentence(what))
        exhibit(reader.name, answered, captioned=False)
