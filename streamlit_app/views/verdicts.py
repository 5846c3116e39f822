"""The page on verdicts: their ratings (HTEB, Table 2), judges, and the decisions at another threshold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from annotation.human.tasks import read_tasks
from annotation.records import P_IS, Verdict
from annotation.report import exhibits
from annotation.report.charts import mean_intervals, means_in_words, rating_shares, shares_in_words
from annotation.report.raters import SEVERITY_IS, adjusted_exhibit, severity_exhibit, severity_figures
from annotation.rubric import load_rubric
from annotation.verdicts.by_task import verdicts_by_task
from annotation.verdicts.judged import deciders
from annotation.verdicts.tables import display, rated, verdict_table
from evaluation.report.charts import threshold_decisions, threshold_scores
from evaluation.tables.sensitivity import thresholds_of
from plumbline.exhibits.charts import first_panel
from plumbline.transformations import Axes
from streamlit_app import charts, frames, pair
from streamlit_app.elements import (
    choose,
    complain,
    download_csv,
    exhibit,
    figure,
    filtered,
    heading,
    limits,
    lines,
    sections,
    table,
)
from streamlit_app.readers import OverviewReader
from streamlit_app.readers.campaign import CampaignReader
from streamlit_app.readers.scores import ScoreReader

READER = CampaignReader


def draw_verdicts(reader: CampaignReader) -> None:
    """Draw the page on verdicts."""
    if not reader.verdicts():
        st.caption("The study has no verdicts: its sample contains no pairs.")
        return
    if stale := reader.verdicts_hold():
        complain(stale, what="These verdicts are no longer valid")
    rubric = load_rubric(reader.study)
    names = rubric.rating_names()
    question = choose("Question", names, "question") if names else ""
    languages = sorted({verdict.language for verdict in reader.verdicts()})
    language = filtered("Language", languages, "language")
    parts = [partial(_verdicts, reader, language)]
    if question:
        scale = rubric.scale_of(question)
        parts += [partial(_means, reader, scale, question, language), partial(_shares, reader, scale, question)]
    parts += [partial(_labels, reader), *([partial(_agreement, reader)] if names else [])]
    parts += [partial(_severity, reader, question)] if question else []
    parts.append(partial(_judges, reader))
    if question and not reader.study.acceptance.rules:  # rules have no single threshold to vary
        parts.append(partial(_another, ScoreReader(reader.study), rubric.scale))
    sections(*parts)
    pair.open_chosen(reader)


def _limits(reader: OverviewReader) -> str:
    verdicts = reader.verdicts()
    least = min(verdict.n_pairs for verdict in verdicts)
    undecided = sum(verdict.decision == "undecided" for verdict in verdicts)
    return limits(
        simulated=reader.simulates(),
        n=least,
        what=f"{reader.study.called.item}s for a verdict",
        undecided=undecided,
        late=reader.late(),
    )


def _verdicts(reader: CampaignReader, language: str) -> None:
    verdicts = [verdict for verdict in reader.verdicts() if language in ("", verdict.language)]
    pooled = any(verdict.pool != verdict.transformation for verdict in verdicts)
    tasks = read_tasks(reader.study) if reader.study.judging.does_tasks else ()
    whole = verdict_table(verdicts_by_task(tasks, reader.verdicts()))
    whole = whole[whole["language"] == language] if language else whole
    heading("Decisions")
    item = reader.study.called.item
    who, note = deciders(verdicts)
    used = (
        f"Verdicts are decisions of {who}"
        if reader.study.subject
        else f"A transformation is used only if {who} accept it"
    )
    means = (
        f" Means are over single ratings, their 95% intervals over {item}s. AC2 (Gwet's, with ordinal weights)"
        " measures agreement beyond chance: 1 is complete agreement, 0 no more than chance."
    )
    st.caption(
        f"{used}: {_rule(verdicts[0])}."
        + (means if any(rated(verdict.questions) for verdict in verdicts) else "")
        + (" Translation and cross-translation share their ratings and verdict." if pooled else "")
        + (f" {note}" if note else "")
        + f" {P_IS}"
        + _limits(reader)
    )
    config = {"Reasons": st.column_config.TextColumn(width="large")}
    shown = frames.verdict_frame(whole, verdicts, reader.study.called)
    table(f"{reader.name}-verdicts", whole, shown, column_config=config)
    lines(frames.refusals(whole), "verdicts other than accepted, with their reasons")


def _rule(verdict: Verdict) -> str:
    if verdict.rules:
        return "the study's rules must be met (see each verdict's reasons)"
    return f"a mean of at least {verdict.threshold:g} on each question"


def _means(reader: CampaignReader, scale: Sequence[float], question: str, language: str) -> None:
    means = reader.means()
    means = means[means["question"] == question]
    means = means[means["language"] == language] if language else means
    heading("Means against the threshold")
    note = deciders(reader.verdicts())[1]
    says = f"Mean {question} of each verdict with its 95% interval; the dashed line is the threshold."
    says += f" {note}" if note else ""
    alt_text = means_in_words(means)
    chart = charts.means_panel(means, scale, dark=st.context.theme.type == "dark")
    name, paper = f"{reader.name}-means-{question}", partial(mean_intervals, means, scale)
    figure(name, chart, says + _limits(reader), alt_text=alt_text, paper=paper)


def _shares(reader: CampaignReader, scale: Sequence[float], question: str) -> None:
    shares = reader.shares()
    shares = shares[shares["question"] == question]
    heading("Ratings given")
    says = f"{question.capitalize()}: how often each point was given; n counts single ratings that count."
    chart = rating_shares(shares, scale)
    alt_text = shares_in_words(shares)
    figure(f"{reader.name}-shares-{question}", chart, says + _limits(reader), alt_text=alt_text)


def _agreement(reader: CampaignReader) -> None:
    table = reader.table(exhibits.table_two_exhibit)
    heading("Ratings and agreement (HTEB, Table 2)")
    st.caption("n counts single ratings.")
    exhibit(reader.name, table, captioned=False)
    with st.expander("Every coefficient of agreement, with its interval"):
        exhibit(reader.name, reader.table(exhibits.agreement_exhibit))


def _severity(reader: CampaignReader, question: str) -> None:
    """Draw means adjusted for raters' severity beside the plain ones, and each rater's severity."""
    raters = reader.severity()
    if raters.empty:
        return
    heading("Raters' severity")
    st.caption(SEVERITY_IS)
    exhibit(reader.name, reader.table(adjusted_exhibit))
    of_question = raters[raters["question"] == question]
    for drawn in severity_figures(of_question):
        name, says = f"{reader.name}-severity-{question}", f"{drawn.caption}{_limits(reader)}"
        figure(name, drawn.chart, says, alt_text=drawn.alt)
    with st.expander("Every rater's severity, with its interval"):
        exhibit(reader.name, reader.table(severity_exhibit))


def _labels(reader: CampaignReader) -> None:
    table = reader.table(exhibits.labels_exhibit)
    if not table.frame.empty:
        heading("What people answered" if reader.study.judging.does_tasks else "Labels, rankings and texts")
        exhibit(reader.name, table)


def _another(reader: ScoreReader, scale: Sequence[float]) -> None:
    steps, study_threshold = thresholds_of(scale), reader.study.acceptance.threshold
    heading("Another threshold")
    threshold = st.slider(
        "Threshold",
        steps[0],
        steps[-1],
        float(study_threshold),
        steps[1] - steps[0],
        key="threshold",
        bind="query-params",
    )
    now, then = reader.decisions_at(study_threshold), reader.decisions_at(threshold)
    turned = int((now["decision"] != then["decision"]).sum())
    st.caption(
        f"By the study's rule, with a threshold of {threshold:g} instead of {study_threshold:g}, {turned} of"
        f" {len(now)} verdicts would change. This shows how much depends on the threshold: the rule was fixed"
        " before the first rating, and choosing a threshold by its results would make it worthless." + _limits(reader)
    )
    table(f"{reader.name}-decisions-at-{threshold:g}", then, frames.turned_frame(now, then, reader.study.called))
    says = f"The decisions at each threshold; the dashed line is the study's own threshold, {study_threshold:g}."
    chart = threshold_decisions(reader.decisions_at(*steps), study_threshold)
    figure(f"{reader.name}-decisions-by-threshold", chart, says + _limits(reader))
    if reader.study.folder.joinpath("scores.parquet").exists():
        _scores_at(reader, scale, study_threshold, threshold)


def _scores_at(reader: ScoreReader, scale: Sequence[float], study_threshold: float, threshold: float) -> None:
    """Show the scores at another threshold, and one model's scores at each threshold."""
    scores = reader.scores_at(*dict.fromkeys((study_threshold, threshold)))
    if scores.empty:
        return
    st.caption("Scores times 100 under the verdicts of each threshold. Scores that were never computed are missing.")
    shown = frames.rescored_frame(scores, Axes.of_columns(scores).names)
    table(f"{reader.name}-scores-at-{threshold:g}", scores, shown)
    _scores(reader, scale, study_threshold)


def _scores(reader: ScoreReader, scale: Sequence[float], study_threshold: float) -> None:
    """Draw one model's scores at each threshold."""
    grid = reader.scores_at(*thresholds_of(scale))
    model = choose("Model of the figure", list(grid["model"].drop_duplicates()), "model")
    mine = grid[grid["model"] == model]
    if mine[[*Axes.of_columns(mine).names]].isna().all(axis=None):
        return
    says = (
        "The chosen model's scores at each threshold; the dashed line is the study's own threshold. A line ends"
        " where the threshold accepts nothing, or accepts transformations without scores."
    )
    figure(
        f"{reader.name}-scores-by-threshold",
        first_panel(threshold_scores(mine, study_threshold)),
        says + _limits(reader),
    )


def _judges(reader: CampaignReader) -> None:
    """Draw the section on judges."""
    judges = reader.judges()
    if judges is None:
        return
    heading("Judges beside people")
    if judges.left_out:
        complain(judges.left_out, what="Judges are left out")
        return
    st.caption(
        "The decision by people's ratings alone beside the decision by people and judges under the same rule, and each"
        " judge's agreement with people. Gap: judge minus people."
    )
    lines(judges.lines)
    for judge_table in judges.exhibits:
        exhibit(reader.name, judge_table)
    _itself(reader, judges.itself)
    _far(reader, judges.far)


def _itself(reader: CampaignReader, preferences: pd.DataFrame) -> None:
    """Draw self-preference, if the study's candidates were judged too."""
    if preferences.empty:
        return
    st.caption(
        "How much better models rate their own outputs than the other ratings predict (`judge select`); part of it may"
        " be justified, as the outputs may be better."
    )
    columns = {"model": "Model", "self_preference": "Self-preference", "low": "From", "high": "To"}
    shown = preferences[list(columns)].rename(columns=columns).round(2)
    st.dataframe(shown, hide_index=True, alt="Self-preference of models that judge themselves")
    download_csv(f"{reader.name}-self-preference", preferences)


def _far(reader: CampaignReader, far: pd.DataFrame) -> None:
    """Draw the ratings to read; a tick opens the pair with all ratings, judges' included."""
    if far.empty:
        st.caption("No rating is more than 2 points from any judge.")
        return
    item = reader.study.called.item
    st.caption(
        f"Ratings more than 2 points from a judge's, the farthest first. Read the rating and the judge's rating, as"
        f" either may be wrong. This decides nothing. Tick a row (or press Shift and Space) to see the {item}."
    )
    ids, key = list(far["pair_id"]), pair.fresh("far-from-judges")
    st.dataframe(
        _far_frame(far, reader),
        hide_index=True,
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt="Ratings far from judges",
    )
    download_csv(f"{reader.name}-far-from-judges", far)


def _far_frame(far: pd.DataFrame, reader: CampaignReader) -> pd.DataFrame:
    judged, item = reader.study.called
    return pd.DataFrame(
        {
            judged.capitalize(): [display(name, pooled=False) for name in far["transformation"]],
            item.capitalize(): far["pair_id"].str[:8],
            "Rater": far["rater_id"],
            "Question": far["question"],
            "Rating": far["value"].astype(int),
            "Nearest judge": (far["value"] + far["nearest"]).round(2),
            "Farthest judge": (far["value"] + far["farthest"]).round(2),
        }
    )
