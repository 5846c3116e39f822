"""Whether rankings of models hold when texts change: ranks, Kendall's tau, split-half reliability, Borda counts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from plumbline.study import Study
from streamlit_app import charts
from streamlit_app.elements import complain, exhibit, figure, filtered, limits, section, show
from streamlit_app.readers import ratings, scores


def draw(study: Study) -> None:
    """The page."""
    choices = scores.choices(study)
    if not choices.models:
        st.caption("No model has a score.")
        return
    if why := scores.outrun(study):
        complain(why, what="These scores no longer hold")
    group = filtered("Data sets", choices.groups, "group")
    section("Original against transformed ranks", partial(_slopes, study, group))
    section("Kendall's tau (Table 4)", partial(_kendall, study, group))
    section("Split-half reliability (Table 3)", partial(_split_half, study, group))
    section("Borda ranks", partial(_borda, study, group))


def _slopes(study: Study, group: str) -> None:
    ranks = scores.ranks(study, group)
    scored = ranks[ranks["n_datasets_transformed"] > 0]
    if len(scored) < 2:
        st.caption("Ranks need two models with scores on transformed texts; there are fewer.")
        return
    simulated = any(verdict.simulated for verdict in ratings.verdicts(study))
    says = (
        "Borda ranks of models by their original and by their axis-balanced transformed scores, of the same data sets"
        " and items; a line that falls is a model that loses when texts change."
    )
    said = says + limits(simulated=simulated, n=len(scored), what="models")
    chart = charts.rank_slopes(scored, dark=st.context.theme.type == "dark")
    figure(f"{study.name}-ranks", chart, said, paper=charts.rank_slopes(scored, dark=False))


def _kendall(study: Study, group: str) -> None:
    st.caption("Whether models keep their order when texts change: 1 is the same order, 0 no relation, −1 the reverse.")
    exhibit(study, scores.kendall(study, group), group)


def _split_half(study: Study, group: str) -> None:
    st.caption("Whether one half of the data sets ranks models as the other half does, from 0 (not at all) to 1.")
    exhibit(study, scores.split_half(study, group), group)


def _borda(study: Study, group: str) -> None:
    st.caption("Each data set gives a model a point for each model that it beats, half for a tie; ranks are by points.")
    for one in scores.rankings(study, group):
        exhibit(study, one, group)


if __name__ == "__main__":
    show("Rankings", draw)
