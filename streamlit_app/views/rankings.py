"""Whether rankings of models hold when texts change: ranks, Kendall's tau, split-half reliability, Borda counts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from streamlit_app import charts
from streamlit_app.data import Records
from streamlit_app.elements import complain, exhibit, figure, filtered, limits, section, show


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
    section("Kendall's tau (Table 4)", partial(_tables, records, "kendall", group))
    section("Split-half reliability (Table 3)", partial(_tables, records, "split_half", group))
    section("Borda ranks", partial(_tables, records, "ranking", group))


def _slopes(records: Records, group: str) -> None:
    ranks = records.ranks(group)
    scored = ranks[ranks["n_datasets_transformed"] > 0]
    if len(scored) < 2:
        st.caption("Ranks need two models with scores on transformed texts; there are fewer.")
        return
    simulated = any(verdict.simulated for verdict in records.verdicts())
    says = (
        "Borda ranks of models by their original and by their axis-balanced transformed scores; a line that falls is a"
        " model that loses when texts change."
    )
    said = says + limits(simulated=simulated, n=len(scored), what="models")
    chart = charts.rank_slopes(scored, dark=st.context.theme.type == "dark")
    figure(f"{records.study.name}-ranks", chart, said)


def _tables(records: Records, name: str, group: str) -> None:
    for one in records.tables(name, group=group):
        exhibit(records, one, group)


if __name__ == "__main__":
    show("Rankings", draw)
