"""One model's profile: its scores, what each transformation does to them, its data sets and its ranks."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st

from evaluation.display import hundred, points, worded
from evaluation.report.charts import score_shifts, series_name
from plumbline.study import Study
from plumbline.transformations import Axes
from streamlit_app.elements import (
    choose,
    complain,
    exhibit,
    figure,
    heading,
    limits,
    lines,
    link,
    sections,
    show,
    with_refused,
)
from streamlit_app.readers import ratings, scores


def draw(study: Study) -> None:
    """The page."""
    choices = scores.choices(study)
    if not choices.models:
        st.caption("No model has a score.")
        return
    model = choose("Model", choices.models, "model")
    refused = with_refused(choices.refused)
    st.text(model)
    if why := scores.outrun(study):
        complain(why, what="These scores no longer hold")
    sections(
        partial(_tiles, study, model, refused),
        partial(_shifts, study, model, refused),
        partial(_datasets, study, model),
        partial(_ranks, study, model),
    )
    if (study.folder / "drift.parquet").exists():
        link("drift", "Its drift against ratings", model=model)


def _tiles(study: Study, model: str, refused: bool) -> None:
    frame = scores.axes(study, model=model, refused=refused).frame
    row, axes = frame.iloc[0], Axes.of_columns(frame)
    heading("Scores")
    columns = st.columns(1 + len(axes.names))
    columns[0].metric("Original", hundred(row["original"]), border=True)
    for name, column in zip(axes.names, columns[1:], strict=True):
        difference = row[f"{name}_difference"]
        if math.isnan(difference):
            column.metric(series_name(name), hundred(row[name]), border=True)
            continue
        down = difference < 0  # said to Streamlit, which reads it from a hyphen alone
        column.metric(
            series_name(name),
            hundred(row[name]),
            f"{points(difference)} points".replace("-", "−"),
            delta_color="red" if down else "normal",
            delta_arrow="down" if down else "auto",
            border=True,
        )
    says = (
        "Scores times 100; below them the difference from the original of the same data sets and items. An axis is the"
        f" mean of its transformations, the {series_name(axes.total)} the mean of"
        f" {'the three axes' if axes.are_htebs else ', '.join(map(series_name, axes.of_total))}."
    )
    st.caption(
        says
        + limits(simulated=bool(row["simulated"]), n=int(row["n_datasets"]), what="data sets", late=ratings.late(study))
    )
    reasons = {series_name(name): worded(row[f"{name}_reason"]) for name in axes.names}
    lines([f"{head}: {reason}" for head, reason in reasons.items() if reason])


def _shifts(study: Study, model: str, refused: bool) -> None:
    frame = scores.transformations(study, model=model, refused=refused).frame
    if frame.empty:
        return
    heading("What each transformation does")
    simulated = any(verdict.simulated for verdict in ratings.verdicts(study))
    says = "Original (grey bar) and transformed score of the same items; hollow is what no verdict accepts."
    caption = says + limits(
        simulated=simulated, n=int(frame["n_datasets"].max()), what="data sets", late=ratings.late(study)
    )
    figure(f"{study.name}-profile", score_shifts(frame), caption)


def _datasets(study: Study, model: str) -> None:
    if parts := scores.datasets(study, model=model):
        heading("Data sets")
        for part in parts:
            exhibit(study, part)


def _ranks(study: Study, model: str) -> None:
    frame = scores.ranks(study)
    if model not in set(frame["model"]) or len(frame) < 2:
        return
    row = frame[frame["model"] == model].iloc[0]
    before, after = int(row["rank_original"]), int(row["rank_transformed"])
    heading("Ranks")
    st.text(
        f"Of {len(frame)} models: rank {before} on the original texts, rank {after} on the transformed ones (Borda)."
    )
    link("rankings", "All ranks")


if __name__ == "__main__":
    show(draw)
