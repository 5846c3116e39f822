"""What transformations do to scores (HTEB, Figures 4, 6 and 7), English and multilingual data sets side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import altair as alt
import streamlit as st

from evaluation.report import charts
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
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
from streamlit_app.readers import ratings, scores

FEW = 8  # models, whose data sets are shown without being asked for
NAMES = 110  # pixels for models' names: half of a laptop's page, or a phone's, has to hold eight numbers beside them


def draw(study: Study) -> None:
    """The page."""
    choices = scores.choices(study)
    if not choices.models:
        st.caption("No model has a score.")
        return
    if why := scores.outrun(study):
        complain(why, what="These scores no longer hold")
    refused = with_refused(choices.refused)
    chosen = filtered("Data sets", choices.groups, "group")
    groups = [chosen] if chosen or len(choices.groups) < 2 else list(choices.groups)
    if len(choices.groups) == 1:
        st.caption(f"All data sets are {choices.groups[0]}: there is nothing to show beside them.")
    st.page_link("views/model.py", label="One model's profile")
    section("By axis (Figure 4)", partial(_beside, groups, partial(_axes, study, refused)))
    section("By transformation (Figure 6)", partial(_beside, groups, partial(_transformations, study, refused)))
    section("Shifts (Figure 7)", partial(_beside, groups, partial(_shifts, study)))
    section("Data sets (Tables 17 to 21)", partial(_datasets, study, groups))
    section("Left out, failed, or included against the verdict, and why", partial(_left_out, study))


def _beside(groups: list[str], draw_group: Callable[[str], None]) -> None:
    """The same for each group of data sets, in columns."""
    for group, column in zip(groups, st.columns(len(groups)), strict=True):
        with column:
            if len(groups) > 1:
                st.text(f"{group} data sets".capitalize())
            draw_group(group)


def _limits(study: Study, n: int, what: str, *, refused: bool) -> str:
    verdicts = ratings.verdicts(study)
    said = limits(
        simulated=any(verdict.simulated for verdict in verdicts),
        n=n,
        what=what,
        undecided=sum(verdict.decision == "undecided" for verdict in verdicts),
    )
    return f"{said} With what NO VERDICT ACCEPTS." if refused else said


def _drawn(study: Study, group: str, name: str, chart: alt.TopLevelMixin, says: str, **options: Any) -> None:
    """A figure of a group of data sets; `options` are those of `figure`."""
    figure(file_name(study, name, group), chart, says, **options)


def _axes(study: Study, refused: bool, group: str) -> None:
    one = scores.axes(study, group=group, refused=refused)
    frame = one.frame
    says = (
        "Each model's scores on the original texts and, by axis, on the transformed ones; the total is the mean of the"
        " axes. A tick is the original of the data sets and items that an axis rests on, where these are not all."
        + _limits(study, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(study, group, "axes", charts.axis_shifts(frame, NAMES), says, paper=charts.axis_shifts(frame))
    exhibit(study, one, group)


def _transformations(study: Study, refused: bool, group: str) -> None:
    one = scores.transformations(study, group=group, refused=refused)
    frame = one.frame
    if frame.empty:
        st.caption("No transformation was evaluated.")
        return
    says = (
        "Mean difference from the original of the same items in points; a star marks what no verdict accepts."
        + _limits(study, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(study, group, "transformations", charts.delta_map(frame, NAMES), says, paper=charts.delta_map(frame))
    exhibit(study, one, group)


def _shifts(study: Study, group: str) -> None:
    one = scores.shifts(study, group)  # of what counts alone, as the papers have it
    frame = one.frame
    if frame["shift"].notna().any():
        says = (
            "How far each transformation moves scores over data sets (means over models): Hodges-Lehmann shifts with"
            " 95% intervals (the typical change of a data set's score); grey where the change may be chance (Wilcoxon's"
            " p, corrected by Holm for many tests, is at least .05)."
            + _limits(study, int(frame.loc[frame["shift"].notna(), "n"].max()), "data sets", refused=False)
        )
        _drawn(study, group, "shifts", charts.shift_intervals(frame), says, columns=1)
    else:
        st.caption("There is no shift to draw; the table says why.")
    exhibit(study, one, group)


def _datasets(study: Study, groups: list[str]) -> None:
    # Many models' tables are long and take a while: they are made when they are asked for.
    few = len(scores.choices(study).models) <= FEW
    if not few and not st.toggle("Show them", key="sets", bind="query-params"):
        return
    for group in groups:
        parts = scores.datasets(study, group=group)
        if not parts:
            st.caption("No data set has a score on a transformed text.")
            continue
        number = 0
        if len(parts) > 1:
            heads = [_part(number, part) for number, part in enumerate(parts, start=1)]
            chosen = st.selectbox("Part", heads, key=f"part{group}", bind="query-params")
            number = heads.index(chosen)
        exhibit(study, parts[number], group)


def _part(number: int, part: Exhibit) -> str:
    return f"{number}: {', '.join(part.frame['model'].drop_duplicates())}"


def _left_out(study: Study) -> None:
    exhibit(study, scores.left_out(study))
    lines(scores.notes(study))


if __name__ == "__main__":
    show("Robustness", draw)
