"""What transformations do to scores (HTEB, Figures 4, 6 and 7), English and multilingual data sets side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import altair as alt
import streamlit as st

from evaluation.report import charts
from plumbline.exhibits.table import Exhibit
from streamlit_app.elements import (
    complain,
    exhibit,
    figure,
    file_name,
    filtered,
    limits,
    lines,
    section,
    show,
    with_refused,
)
from streamlit_app.records import Records

FEW = 8  # models, whose data sets are shown without being asked for
NAMES = 110  # pixels for models' names: half of a laptop's page, or a phone's, has to hold eight numbers beside them


def draw(records: Records) -> None:
    """The page."""
    choices = records.score_choices()
    if not choices["models"]:
        st.caption("No model has a score.")
        return
    if why := records.scores_outrun():
        complain(why, what="These scores no longer hold")
    refused = with_refused(records)
    chosen = filtered("Data sets", choices["groups"], "group")
    groups = [chosen] if chosen or len(choices["groups"]) < 2 else list(choices["groups"])
    if len(choices["groups"]) == 1:
        st.caption(f"All data sets are {choices['groups'][0]}: there is nothing to show beside them.")
    st.page_link("views/model.py", label="One model's profile")
    section("By axis (Figure 4)", partial(_beside, groups, partial(_axes, records, refused)))
    section("By transformation (Figure 6)", partial(_beside, groups, partial(_transformations, records, refused)))
    section("Shifts (Figure 7)", partial(_beside, groups, partial(_shifts, records)))
    section("Data sets (Tables 17 to 21)", partial(_datasets, records, groups))
    section("Left out, failed, or included against the verdict, and why", partial(_left_out, records))


def _beside(groups: list[str], draw_group: Callable[[str], None]) -> None:
    """The same for each group of data sets, in columns."""
    for group, column in zip(groups, st.columns(len(groups)), strict=True):
        with column:
            if len(groups) > 1:
                st.text(f"{group} data sets".capitalize())
            draw_group(group)


def _limits(records: Records, n: int, what: str, *, refused: bool) -> str:
    verdicts = records.verdicts()
    said = limits(
        simulated=any(verdict.simulated for verdict in verdicts),
        n=n,
        what=what,
        undecided=sum(verdict.decision == "undecided" for verdict in verdicts),
    )
    return f"{said} With what NO VERDICT ACCEPTS." if refused else said


def _drawn(records: Records, group: str, name: str, chart: alt.TopLevelMixin, says: str, **options: Any) -> None:
    """A figure of a group of data sets; `options` are those of `figure`."""
    figure(file_name(records, name, group), chart, says, **options)


def _axes(records: Records, refused: bool, group: str) -> None:
    one = records.tables("axes", group=group, refused=refused)[0]
    frame = one.frame
    says = (
        "Each model's scores on the original texts and, by axis, on the transformed ones; the total is the mean of the"
        " axes. A tick is the original of the data sets and items that an axis rests on, where these are not all."
        + _limits(records, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(records, group, "axes", charts.axis_shifts(frame, NAMES), says, paper=charts.axis_shifts(frame))
    exhibit(records, one, group)


def _transformations(records: Records, refused: bool, group: str) -> None:
    one = records.tables("transformations", group=group, refused=refused)[0]
    frame = one.frame
    if frame.empty:
        st.caption("No transformation was evaluated.")
        return
    says = (
        "Mean difference from the original of the same items in points; a star marks what no verdict accepts."
        + _limits(records, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(records, group, "transformations", charts.delta_map(frame, NAMES), says, paper=charts.delta_map(frame))
    exhibit(records, one, group)


def _shifts(records: Records, group: str) -> None:
    one = records.tables("shifts", group=group)[0]  # of what counts alone, as the papers have it
    frame = one.frame
    if frame["shift"].notna().any():
        says = (
            "How far each transformation moves scores over data sets (means over models): Hodges-Lehmann shifts with"
            " 95% intervals (the typical change of a data set's score); grey where the change may be chance (Wilcoxon's"
            " p, corrected by Holm for many tests, is at least .05)."
            + _limits(records, int(frame.loc[frame["shift"].notna(), "n"].max()), "data sets", refused=False)
        )
        _drawn(records, group, "shifts", charts.shift_intervals(frame), says, columns=1)
    else:
        st.caption("There is no shift to draw; the table says why.")
    exhibit(records, one, group)


def _datasets(records: Records, groups: list[str]) -> None:
    # Many models' tables are long and take a while: they are made when they are asked for.
    few = len(records.score_choices()["models"]) <= FEW
    if not few and not st.toggle("Show them", key="sets", bind="query-params"):
        return
    for group in groups:
        parts = records.tables("datasets", group=group)
        if not parts:
            st.caption("No data set has a score on a transformed text.")
            continue
        number = 0
        if len(parts) > 1:
            heads = [_part(number, part) for number, part in enumerate(parts, start=1)]
            chosen = st.selectbox("Part", heads, key=f"part{group}", bind="query-params")
            number = heads.index(chosen)
        exhibit(records, parts[number], group)


def _part(number: int, part: Exhibit) -> str:
    return f"{number}: {', '.join(part.frame['model'].drop_duplicates())}"


def _left_out(records: Records) -> None:
    for one in records.tables("left_out"):
        exhibit(records, one)
    lines(records.notes())


if __name__ == "__main__":
    show("Robustness", draw)
