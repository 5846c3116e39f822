"""Whether rankings of models hold when texts change: ranks, Kendall's tau, split-half reliability, Borda counts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from plumbline.study import Study
from streamlit_app import charts
from streamlit_app.elements import complain, exhibit, figure, filtered, heading, limits, sections, show
from streamlit_app.readers import ratings, scores


def draw(study: Study) -> None:
    """The page."""
    choices = scores.choices(study)
    if len(choices.models) < 2:
        st.caption(f"Ranks need two models with scores; there is {'one' if choices.models else 'none'}.")
        return
    if why := scores.outrun(study):
        complain(why, what="These scores no longer hold")
    group = filtered("Data sets", choices.groups, "group")
    sections(*(partial(part, study, group) for part in (_slopes, _kendall, _split_half, _borda)))


def _slopes(study: Study, group: str) -> None:
    ranks = scores.ranks(study, group)
    scored = ranks[ranks["n_datasets_transformed"] > 0]
    if len(scored) < 2:
        return
    heading("Original against transformed ranks")
    simulated = any(verdict.simulated for verdict in ratings.verdicts(study))
    says = (
        "Borda ranks of models by their original and by their axis-balanced transformed scores, of the same data sets"
        " and items; a line that falls is a model that loses when texts change."
    )
    caption = says + limits(simulated=simulated, n=len(scored), what="models", late=ratings.late(study))
    chart = charts.rank_slopes(scored, dark=st.context.theme.type == "dark")
    figure(f"{study.name}-ranks", chart, caption, paper=partial(charts.rank_slopes, scored, dark=False))


def _kendall(study: Study, group: str) -> None:
    table = scores.kendall(study, group)
    if table.frame["tau"].isna().all():
        return
    heading("Kendall's tau (Table 4)")
    st.caption("Whether models keep their order when texts change: 1 is the same order, 0 no relation, −1 the reverse.")
    exhibit(study, table, group)


def _split_half(study: Study, group: str) -> None:
    table = scores.split_half(study, group)
    if table.frame["rho"].isna().all():
        return
    heading("Split-half reliability (Table 3)")
    st.caption("Whether one half of the data sets ranks models as the other half does, from 0 (not at all) to 1.")
    exhibit(study, table, group)


def _borda(study: Study, group: str) -> None:
    tables = scores.rankings(study, group)
    heading("Borda ranks")
    st.caption("Each data set gives a model a point for each model that it beats, half for a tie; ranks are by points.")
    for ranking in tables:
        exhibit(study, ranking, group)


if __name__ == "__main__":
    show(draw)
