"""Pages on scores: changes by transformation (HTEB, Figures 4, 6 and 7), one model's profile, and rankings.

The page on drift against ratings (HTEB, Figure 3) shows whether models see what people see; a click opens a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from annotation.rubric import load_rubric
from annotation.verdicts.tables import display, number
from evaluation.display import hundred, points, worded
from evaluation.report import charts, paper_tables
from evaluation.report.charts import text_drifts
from evaluation.report.drift_charts import drawn_points, drift_figure, left_undrawn
from plumbline.exhibits.charts import first_panel
from plumbline.exhibits.table import Exhibit, with_minus
from plumbline.languages import language_name
from plumbline.transformations import Axes
from streamlit_app import pair
from streamlit_app.charts import SELECTION, drift_panels, rank_slopes
from streamlit_app.elements import (
    choose,
    complain,
    download_csv,
    download_svg,
    exhibit,
    figure,
    file_name,
    filtered,
    heading,
    limits,
    lines,
    link,
    sections,
    table,
    unchecked,
    with_refused,
)
from streamlit_app.readers.campaign import CampaignReader
from streamlit_app.readers.scores import ScoreReader

READER = ScoreReader


FEW = 8  # most models whose data sets are shown at once
NAMES = 110  # pixels for models' names: half of a laptop's page, or a phone's, must fit eight numbers beside them


def draw_robustness(reader: ScoreReader) -> None:
    """Draw the page on changes by transformation."""
    choices = reader.choices()
    if not choices.models:
        st.caption("No model has a score.")
        return
    if why := reader.outrun():
        complain(why, what="These scores are no longer valid")
    refused = with_refused(choices.refused)
    chosen = filtered("Data sets", choices.groups, "group")
    groups = [chosen] if chosen or len(choices.groups) < 2 else list(choices.groups)
    link("model", "One model's profile")
    axes = partial(reader.table, paper_tables.axes, include_rejected=refused)
    transformations = partial(reader.table, paper_tables.transformations, include_rejected=refused)
    beside = partial(partial, _beside, reader, groups)
    sections(
        beside("By axis (HTEB, Figure 4)", axes, partial(_axis_figure, reader, refused)),
        beside("By transformation (HTEB, Figure 6)", transformations, partial(_transformation_figure, reader, refused)),
        beside("Shifts (HTEB, Figure 7)", partial(reader.table, paper_tables.shifts), partial(_shift_figure, reader)),
        partial(_dataset_tables, reader, groups),
        partial(_left_out, reader),
    )


def _beside(
    reader: ScoreReader,
    groups: list[str],
    title: str,
    read: Callable[..., Exhibit],
    draw_group: Callable[[str, Exhibit], None],
) -> None:
    """Draw a figure and its table for each group of data sets with results, in columns."""
    tables = {group: exhibit_of for group in groups if not (exhibit_of := read(group=group)).frame.empty}
    if not tables:
        return
    heading(title)
    for (group, exhibit_of), column in zip(tables.items(), st.columns(len(tables)), strict=True):
        with column:
            if len(groups) > 1:
                st.text(f"{group} data sets".capitalize())
            draw_group(group, exhibit_of)
            exhibit(reader.name, exhibit_of, group)


def _limits(reader: ScoreReader, n: int, what: str, *, refused: bool) -> str:
    undecided = sum(verdict.decision == "undecided" for verdict in reader.verdicts())
    caption = limits(simulated=reader.simulates(), n=n, what=what, late=reader.late(), undecided=undecided)
    return f"{caption} It includes scores that NO VERDICT ACCEPTS." if refused else caption


def _axis_figure(reader: ScoreReader, refused: bool, group: str, table: Exhibit) -> None:
    frame = table.frame
    says = (
        "Each model's scores on the original texts and, by axis, on the transformed ones; the total is the mean of the"
        " axes. A tick is the original score on an axis's own data sets and items, if it does not cover all."
        + _limits(reader, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    figure(
        file_name(reader.name, "axes", group),
        charts.axis_shifts(frame, NAMES),
        says,
        paper=partial(charts.axis_shifts, frame),
    )


def _transformation_figure(reader: ScoreReader, refused: bool, group: str, table: Exhibit) -> None:
    frame = table.frame
    says = (
        "Mean difference in points from the original score of the same items; a star marks scores that no verdict"
        " accepts." + _limits(reader, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    figure(
        file_name(reader.name, "transformations", group),
        charts.delta_map(frame, NAMES),
        says,
        paper=partial(charts.delta_map, frame),
    )


def _shift_figure(reader: ScoreReader, group: str, table: Exhibit) -> None:
    """Draw the shifts of accepted transformations alone, as in the papers; without a shift the table says why."""
    frame = table.frame
    if frame["shift"].isna().all():
        return
    says = (
        "The typical change of a data set's score (mean over models) by each transformation: Hodges-Lehmann shifts with"
        " 95% intervals; grey if the change may be due to chance (Wilcoxon's p, with Holm's correction for many tests,"
        " is at least .05)."
        + _limits(reader, int(frame.loc[frame["shift"].notna(), "n"].max()), "data sets", refused=False)
    )
    figure(file_name(reader.name, "shifts", group), charts.shift_intervals(frame), says)


def _dataset_tables(reader: ScoreReader, groups: list[str]) -> None:
    # Tables of many models are long and take a while, so they are made on demand.
    few, title = len(reader.choices().models) <= FEW, "Data sets (HTEB, Tables 17 to 21)"
    if not few:
        heading(title)
        if not st.toggle("Show data sets", key="sets", bind="query-params"):
            return
    parts_of = {group: parts for group in groups if (parts := reader.datasets(group=group))}
    if few and parts_of:
        heading(title)
    for group, parts in parts_of.items():
        number = 0
        if len(parts) > 1:
            heads = [_part(number, part) for number, part in enumerate(parts, start=1)]
            chosen = st.selectbox("Part", heads, key=f"part{group}", bind="query-params")
            number = heads.index(chosen)
        exhibit(reader.name, parts[number], group)


def _part(number: int, part: Exhibit) -> str:
    return f"{number}: {', '.join(part.frame['model'].drop_duplicates())}"


def _left_out(reader: ScoreReader) -> None:
    omissions, notes = reader.table(paper_tables.left_out), reader.notes()
    if omissions.frame.empty and not notes:
        return
    heading("Left out, failed, or included despite the verdict, with reasons")
    exhibit(reader.name, omissions, captioned=False)
    lines(notes)


def draw_model(reader: ScoreReader) -> None:
    """Draw the page on one model."""
    choices = reader.choices()
    if not choices.models:
        st.caption("No model has a score.")
        return
    model = choose("Model", choices.models, "model")
    refused = with_refused(choices.refused)
    st.text(model)
    if why := reader.outrun():
        complain(why, what="These scores are no longer valid")
    sections(
        partial(_tiles, reader, model, refused),
        partial(_profile, reader, model, refused),
        partial(_datasets, reader, model),
        partial(_own_ranks, reader, model),
    )
    if (reader.study.folder / "drift.parquet").exists():
        link("drift", "Its drift against ratings", model=model)


def _tiles(reader: ScoreReader, model: str, refused: bool) -> None:
    frame = reader.table(paper_tables.axes, model=model, include_rejected=refused).frame
    row, axes = frame.iloc[0], Axes.of_columns(frame)
    heading("Scores")
    columns = st.columns(1 + len(axes.names))
    columns[0].metric("Original", hundred(row["original"]), border=True)
    for name, column in zip(axes.names, columns[1:], strict=True):
        difference = row[f"{name}_difference"]
        if math.isnan(difference):
            column.metric(charts.series_name(name), hundred(row[name]), border=True)
            continue
        down = difference < 0  # Streamlit would detect a loss only by a hyphen
        column.metric(
            charts.series_name(name),
            hundred(row[name]),
            f"{points(difference)} points".replace("-", "−"),
            delta_color="red" if down else "normal",
            delta_arrow="down" if down else "auto",
            border=True,
        )
    says = (
        "Scores times 100; below each the difference from the original score on the same data sets and items. An axis"
        f" is the mean of its transformations, the {charts.series_name(axes.total)} the mean of"
        f" {'the three axes' if axes.are_htebs else ', '.join(map(charts.series_name, axes.of_total))}."
    )
    st.caption(
        says + limits(simulated=bool(row["simulated"]), n=int(row["n_datasets"]), what="data sets", late=reader.late())
    )
    reasons = {charts.series_name(name): worded(row[f"{name}_reason"]) for name in axes.names}
    lines([f"{head}: {reason}" for head, reason in reasons.items() if reason])


def _profile(reader: ScoreReader, model: str, refused: bool) -> None:
    frame = reader.table(paper_tables.transformations, model=model, include_rejected=refused).frame
    if frame.empty:
        return
    heading("What each transformation does")
    says = (
        "Original (grey bar) and transformed score of the same items; hollow marks are scores that no verdict accepts."
    )
    caption = says + limits(
        simulated=reader.simulates(), n=int(frame["n_datasets"].max()), what="data sets", late=reader.late()
    )
    figure(f"{reader.name}-profile", charts.score_shifts(frame), caption)


def _datasets(reader: ScoreReader, model: str) -> None:
    if parts := reader.datasets(model=model):
        heading("Data sets")
        for part in parts:
            exhibit(reader.name, part)


def _own_ranks(reader: ScoreReader, model: str) -> None:
    frame = reader.ranks()
    if model not in set(frame["model"]) or len(frame) < 2:
        return
    row = frame[frame["model"] == model].iloc[0]
    before, after = int(row["rank_original"]), int(row["rank_transformed"])
    heading("Ranks")
    st.text(
        f"Of {len(frame)} models: rank {before} on the original texts, rank {after} on the transformed ones (Borda)."
    )
    link("rankings", "All ranks")


def draw_rankings(reader: ScoreReader) -> None:
    """Draw the page on rankings."""
    choices = reader.choices()
    if len(choices.models) < 2:
        st.caption(f"Ranks need two models with scores; the study has {'one' if choices.models else 'none'}.")
        return
    if why := reader.outrun():
        complain(why, what="These scores are no longer valid")
    group = filtered("Data sets", choices.groups, "group")
    kendall = "Whether models keep their order when texts change: 1 is the same order, 0 no relation, −1 the reverse."
    halves = "Whether two halves of the data sets rank models alike, from 0 (not at all) to 1 (the same)."
    titles = "Kendall's tau (HTEB, Table 4)", "Split-half reliability (HTEB, Table 3)"
    sections(
        partial(_slopes, reader, group),
        partial(_stability, reader, group, paper_tables.kendall, "tau", titles[0], kendall),
        partial(_stability, reader, group, paper_tables.split_half, "rho", titles[1], halves),
        partial(_borda, reader, group),
    )


def _slopes(reader: ScoreReader, group: str) -> None:
    ranks = reader.ranks(group)
    scored = ranks[ranks["n_datasets_transformed"] > 0]
    if len(scored) < 2:
        return
    heading("Original against transformed ranks")
    says = (
        "Borda ranks of models by their original and by their axis-balanced transformed scores on the same data sets"
        " and items; a falling line is a model that loses ranks when texts change."
    )
    caption = says + limits(simulated=reader.simulates(), n=len(scored), what="models", late=reader.late())
    chart = rank_slopes(scored, dark=st.context.theme.type == "dark")
    figure(f"{reader.name}-ranks", chart, caption, paper=partial(rank_slopes, scored, dark=False))


def _stability(
    reader: ScoreReader, group: str, make: Callable[..., Exhibit], coefficient: str, title: str, text: str
) -> None:
    """Draw a table on the stability of models' order, unless its `coefficient` is undefined everywhere."""
    table = reader.table(make, group)
    if table.frame[coefficient].notna().any():
        heading(title)
        st.caption(text)
        exhibit(reader.name, table, group)


def _borda(reader: ScoreReader, group: str) -> None:
    tables = [reader.table(paper_tables.ranking, group, transformed=transformed) for transformed in (False, True)]
    heading("Borda ranks")
    st.caption("On each data set a model gets a point for each model that it beats, half for a tie; points give ranks.")
    for ranking in tables:
        exhibit(reader.name, ranking, group)


PANELS = 3  # beside one another, as many as the longest axis has transformations


def draw_drift(reader: ScoreReader) -> None:
    """Draw the page on drift and ratings."""
    options = reader.drift_choices()
    if not options.models:
        st.caption("No pair has a drift.")
        return
    rubric = load_rubric(reader.study)
    names = rubric.rating_names()
    if not names:
        st.caption("The rubric has no question with a scale, so drift has no mean rating to be compared with.")
        return
    question = choose("Question", names, "question")
    model = choose("Model", options.models, "model")
    language = filtered("Language", options.languages, "language", shown=language_name)
    task = filtered("Task", options.tasks, "task", shown=lambda name: name.replace("_", " "))
    frame, correlations = reader.against_ratings(question, model, language=language, task=task)
    if frame.empty:
        st.caption("No pair has both a drift and a rating that counts.")
        return
    simulated, most = bool(frame["simulated"].any()), int(correlations["n"].max())
    st.caption(
        "Each point is a rated pair: the drift of its text in the model's space (one minus the cosine) against its mean"
        " rating. In a model that sees meaning as people do, badly rated pairs drift most: ρ, Spearman's rank"
        " correlation, is then below 0; its 95% bootstrap interval is over pairs. Hover over a point for its texts,"
        " click it for its ratings." + limits(simulated=simulated, n=most, what="pairs in each panel")
    )
    drawn = drawn_points(frame)
    if says := left_undrawn(frame):
        st.caption(f"{says}.")
    scale = rubric.scale_of(question)[0], rubric.scale_of(question)[-1]
    _panels(drawn, correlations, question, scale)
    name = f"{reader.name}-drift-{question}"
    download_svg(name, lambda: drift_figure(drawn, correlations, question=question, scale=scale))
    pair.open_chosen(CampaignReader(reader.study))
    with st.expander("Tables of this figure"):
        _tables(reader, frame, correlations, question)
    sections(partial(_all_texts, reader, model))


def _all_texts(reader: ScoreReader, model: str) -> None:
    """Draw the drift of all texts of the data sets; filters of pairs do not apply."""
    drifts = reader.table_of_texts(model)
    if drifts.frame.empty:
        return
    heading("All texts, rated or not")
    says = (
        "Drift of all texts of the data sets in the model's space, for accepted transformations alone: the point is the"
        " median, the thick line covers the middle half of the texts, the thin line 5% to 95%; averaged over data sets."
        " Drift alone does not measure meaning: a small drift may hide a change, and a translation drifts far in a"
        " model that knows one language." + limits(simulated=False, n=int(drifts.frame["n"].min()), what="texts")
    )
    if reader.simulates():
        says += " The verdicts rest on SIMULATED ratings."
    says += "".join(f" {line}" for line in reader.late())
    figure(f"{reader.name}-text-drift", first_panel(text_drifts(drifts.frame), titled=False), says)
    exhibit(reader.name, drifts)


def _panels(frame: pd.DataFrame, correlations: pd.DataFrame, question: str, scale: tuple[float, float]) -> None:
    dark = st.context.theme.type == "dark"
    panels = drift_panels(frame, correlations, question=question, scale=scale, dark=dark)
    for axis in dict.fromkeys(panel.axis for panel in panels):
        st.header(display(axis), anchor=False)
        of_axis = [panel for panel in panels if panel.axis == axis]
        for panel, column in zip(of_axis, st.columns(max(PANELS, len(of_axis))), strict=False):
            key = pair.fresh(f"panel-{panel.transformation}")
            on_select = partial(pair.choose_point, key, pair.closed())
            column.altair_chart(
                unchecked(panel.chart), key=key, on_select=on_select, selection_mode=SELECTION, alt=panel.alt
            )


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(transformation=[display(name, pooled=False) for name in frame["transformation"]])


def _tables(reader: ScoreReader, frame: pd.DataFrame, correlations: pd.DataFrame, question: str) -> None:
    shown = _named(correlations)
    cells = {name: shown[name].map(number) for name in shown.select_dtypes("float").columns}
    table(f"{reader.name}-drift-correlations-{question}", correlations, with_minus(shown.assign(**cells)))
    st.caption("Tick a row (or press Shift and Space) to see the pair's ratings.")
    mean = f"mean_{question}"
    named = frame.rename(columns={"mean_quality": mean})
    ids, key = list(frame["pair_id"]), pair.fresh("pair-table")
    st.dataframe(
        _named(named),
        hide_index=True,
        column_order=["transformation", "language", mean, "drift", "n_ratings", "original", "transformed"],
        key=key,
        on_select=partial(pair.choose_row, key, ids, pair.closed()),
        selection_mode="single-row",
        alt="Pairs with their drift and mean rating",
    )
    download_csv(f"{reader.name}-drift-{question}", named)
