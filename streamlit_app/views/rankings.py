"""Whether rankings of models hold when texts change: ranks, Kendall's tau, split-half reliability, Borda counts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from streamlit_app import charts
from streamlit_app.elements import complain, exhibit, figure, filtered, limits, section, show
from streamlit_app.records import Records

_TITLES = {
    "kendall": "Kendall's tau (Table 4)",
    "split_half": "Split-half reliability (Table 3)",
    "ranking": "Borda ranks",
}
_SAYS = {
    "kendall": "Whether models keep their order when texts change: 1 is the same order, 0 no relation, −1 the reverse.",
    "split_half": "Whether one half of the data sets ranks models as the other half does, from 0 (not at all) to 1.",
    "ranking": "Each data set gives a model a point for each model that it beats, half for a tie; ranks are by points.",
}


def draw(records: Records) -> None:
    """The page."""
    choices = records.score_choices()
    if not choices["models"]:
        st.caption("No model has a score.")
        return
    if why := records.scores_outrun():
        complain(why, what="These scores no longer hold")
    group = filtered("Data sets", choices["groups"], "group")
    section("Original against transformed ranks", partial(_slopes, records, group))
    for name, title in _TITLES.items():
        section(title, partial(_tables, records, name, group))


def _slopes(records: Records, group: str) -> None:
    ranks = records.ranks(group)
    scored = ranks[ranks["n_datasets_transformed"] > 0]
    if len(scored) < 2:
        st.caption("Ranks need two models with scores on transformed texts; there are fewer.")
        return
    simulated = any(verdict.simulated for verdict in records.verdicts())
    says = (
        "Borda ranks of models by their original and by their axis-balanced transformed scores, of the same data sets"
        " and items; a line that falls is a model that loses when texts change."
    )
    said = says + limits(simulated=simulated, n=len(scored), what="models")
    chart = charts.rank_slopes(scored, dark=st.context.theme.type == "dark")
    figure(f"{records.study.name}-ranks", chart, said, paper=charts.rank_slopes(scored, dark=False))


def _tables(records: Records, name: str, group: str) -> None:
    st.caption(_SAYS[name])
    for one in records.tables(name, group=group):
        exhibit(records, one, group)


if __name__ == "__main__":
    show("Rankings", draw)
