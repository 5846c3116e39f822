"""Verdicts and what they rest on (HTEB, Table 2), and what another threshold would make of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from annotation.records import P_IS, Verdict
from annotation.report.charts import mean_intervals, means_in_words, rating_shares, shares_in_words
from annotation.rubric import load_rubric
from annotation.verdicts.by_task import does_tasks, verdicts_by_task
from annotation.verdicts.judged import deciders
from annotation.verdicts.tables import rated, verdict_table
from evaluation.report.charts import threshold_decisions, threshold_scores
from evaluation.tables.sensitivity import thresholds_of
from plumbline.exhibits.charts import first_panel
from plumbline.study import Study
from plumbline.transformations import Axes
from streamlit_app import charts, frames, judges, pair
from streamlit_app.elements import choose, complain, exhibit, figure, filtered, heading, limits, sections, show, table
from streamlit_app.readers import ratings
from streamlit_app.readers import verdicts as read


def draw(study: Study) -> None:
    """The page."""
    if not ratings.verdicts(study):
        st.caption("There are no verdicts: the sample holds no pairs.")
        return
    if stale := ratings.verdicts_hold(study):
        complain(stale, what="These verdicts no longer hold")
    rubric = load_rubric(study)
    names = rubric.rating_names()
    question = choose("Question", names, "question") if names else ""
    languages = sorted({verdict.language for verdict in ratings.verdicts(study)})
    language = filtered("Language", languages, "language")
    parts = [partial(_verdicts, study, language)]
    if question:
        scale = rubric.scale_of(question)
        parts += [partial(_means, study, scale, question, language), partial(_shares, study, scale, question)]
    parts += [partial(_labels, study), *([partial(_agreement, study)] if names else [])]
    parts.append(partial(judges.draw, study))
    if question and not study.acceptance.rules:  # which have no one threshold that could be another
        parts.append(partial(_another, study, rubric.scale))
    sections(*parts)
    pair.open_chosen(study)


def _limits(study: Study) -> str:
    verdicts = ratings.verdicts(study)
    least = min(verdict.n_pairs for verdict in verdicts)
    undecided = sum(verdict.decision == "undecided" for verdict in verdicts)
    simulated = any(verdict.simulated for verdict in verdicts)
    return limits(
        simulated=simulated,
        n=least,
        what=f"{study.called.item}s for a verdict",
        undecided=undecided,
        late=ratings.late(study),
    )


def _verdicts(study: Study, language: str) -> None:
    verdicts = [verdict for verdict in ratings.verdicts(study) if language in ("", verdict.language)]
    pooled = any(verdict.pool != verdict.transformation for verdict in verdicts)
    whole = verdict_table(verdicts_by_task(study, ratings.verdicts(study)))
    whole = whole[whole["language"] == language] if language else whole
    heading("Decisions")
    item = study.called.item
    who, note = deciders(verdicts)
    used = (
        f"Verdicts are what {who} decide" if study.subject else f"A transformation is used only where {who} accept it"
    )
    means = (
        f" Means are over single ratings, their 95% intervals over {item}s. AC2 (Gwet's, with ordinal weights) says how"
        " far raters agree beyond chance: 1 is always, 0 no more than chance."
    )
    st.caption(
        f"{used}: {_rule(verdicts[0])}."
        + (means if any(rated(verdict.questions) for verdict in verdicts) else "")
        + (" Translation and cross-translation are judged as one: both have the numbers of both." if pooled else "")
        + (f" {note}" if note else "")
        + f" {P_IS}"
        + _limits(study)
    )
    config = {"Reasons": st.column_config.TextColumn(width="large")}
    shown = frames.verdict_frame(whole, verdicts, study.called)
    table(f"{study.name}-verdicts", whole, shown, column_config=config)
    for line in frames.refusals(whole):
        st.text(line)


def _rule(verdict: Verdict) -> str:
    if verdict.rules:
        return "the rules say of each what it must reach (see its reasons)"
    return f"a mean of at least {verdict.threshold:g} on each question"


def _means(study: Study, scale: Sequence[int], question: str, language: str) -> None:
    means = read.means(study)
    means = means[means["question"] == question]
    means = means[means["language"] == language] if language else means
    heading("Means against the threshold")
    note = deciders(ratings.verdicts(study))[1]
    says = f"Mean {question} of each verdict with its 95% interval; the dashed line is the threshold."
    says += f" {note}" if note else ""
    alt_text = means_in_words(means)
    chart = charts.means_panel(means, scale, dark=st.context.theme.type == "dark")
    name, paper = f"{study.name}-means-{question}", partial(mean_intervals, means, scale)
    figure(name, chart, says + _limits(study), alt_text=alt_text, columns=1, paper=paper)


def _shares(study: Study, scale: Sequence[int], question: str) -> None:
    shares = read.shares(study)
    shares = shares[shares["question"] == question]
    heading("Ratings given")
    says = f"{question.capitalize()}: how often each point was given; n counts single ratings that count."
    chart = rating_shares(shares, scale)
    alt_text = shares_in_words(shares)
    figure(f"{study.name}-shares-{question}", chart, says + _limits(study), alt_text=alt_text, columns=3)


def _agreement(study: Study) -> None:
    table = read.table_two(study)
    heading("Ratings and agreement (HTEB, Table 2)")
    st.caption("n counts single ratings.")
    exhibit(study, table, captioned=False)
    with st.expander("Every coefficient of agreement, with its interval"):
        exhibit(study, read.agreement(study))


def _labels(study: Study) -> None:
    table = read.labels(study)
    if not table.frame.empty:
        heading("What people answered" if does_tasks(study) else "Labels, rankings and texts")
        exhibit(study, table)


def _another(study: Study, scale: Sequence[int]) -> None:
    steps, study_threshold = thresholds_of(scale), study.acceptance.threshold
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
    now, then = read.decisions_at(study, study_threshold), read.decisions_at(study, threshold)
    turned = int((now["decision"] != then["decision"]).sum())
    st.caption(
        f"By the study's rule, at a threshold of {threshold:g} in place of {study_threshold:g}, {turned} of"
        f" {len(now)} verdicts would turn. This is to see how much hangs on the threshold: the rule was fixed"
        " before the first rating, and choosing one by its results would make it worthless." + _limits(study)
    )
    table(f"{study.name}-decisions-at-{threshold:g}", then, frames.turned_frame(now, then, study.called))
    says = f"What would be decided at each threshold; the broken line is the study's own, {study_threshold:g}."
    chart = threshold_decisions(read.decisions_at(study, *steps), study_threshold)
    figure(f"{study.name}-decisions-by-threshold", chart, says + _limits(study), columns=1)
    if study.folder.joinpath("scores.parquet").exists():
        _scores_at(study, scale, study_threshold, threshold)


def _scores_at(study: Study, scale: Sequence[int], study_threshold: float, threshold: float) -> None:
    """What scores there would be at another threshold, and one model's at each."""
    scores = read.scores_at(study, *dict.fromkeys((study_threshold, threshold)))
    if scores.empty:
        return
    st.caption("Scores times 100 as they would be: the same scores, other verdicts. What was not scored is not known.")
    shown = frames.rescored_frame(scores, Axes.of_columns(scores).names)
    table(f"{study.name}-scores-at-{threshold:g}", scores, shown)
    _scores(study, scale, study_threshold)


def _scores(study: Study, scale: Sequence[int], study_threshold: float) -> None:
    """One model's scores at each threshold."""
    grid = read.scores_at(study, *thresholds_of(scale))
    model = choose("Model of the figure", list(grid["model"].drop_duplicates()), "model")
    mine = grid[grid["model"] == model]
    if mine[[*Axes.of_columns(mine).names]].isna().all(axis=None):
        return
    says = (
        "The chosen model's scores at each threshold; the broken line is the study's own. Lines end where scores are"
        " missing that a threshold would let in, or where it lets nothing in."
    )
    figure(
        f"{study.name}-scores-by-threshold", first_panel(threshold_scores(mine, study_threshold)), says + _limits(study)
    )


if __name__ == "__main__":
    show(draw)
