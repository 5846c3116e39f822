"""What transformations do to scores (HTEB, Figures 4, 6 and 7), English and multilingual data sets side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

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
    heading,
    limits,
    lines,
    link,
    sections,
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
    link("model", "One model's profile")
    axes = partial(scores.axes, study, refused=refused)
    transformations = partial(scores.transformations, study, refused=refused)
    beside = partial(partial, _beside, study, groups)
    sections(
        beside("By axis (Figure 4)", axes, partial(_axes, study, refused)),
        beside("By transformation (Figure 6)", transformations, partial(_moves, study, refused)),
        beside("Shifts (Figure 7)", partial(scores.shifts, study), partial(_shifts, study)),
        partial(_datasets, study, groups),
        partial(_left_out, study),
    )


class _Read(Protocol):
    """Reads the table of a group of data sets."""

    def __call__(self, *, group: str) -> Exhibit: ...


def _beside(
    study: Study, groups: list[str], title: str, read: _Read, draw_group: Callable[[str, Exhibit], None]
) -> None:
    """A figure and its table for each group of data sets that has something to show, in columns."""
    tables = {group: exhibit_of for group in groups if not (exhibit_of := read(group=group)).frame.empty}
    if not tables:
        return
    heading(title)
    for (group, exhibit_of), column in zip(tables.items(), st.columns(len(tables)), strict=True):
        with column:
            if len(groups) > 1:
                st.text(f"{group} data sets".capitalize())
            draw_group(group, exhibit_of)
            exhibit(study, exhibit_of, group)


def _limits(study: Study, n: int, what: str, *, refused: bool) -> str:
    verdicts = ratings.verdicts(study)
    caption = limits(
        simulated=any(verdict.simulated for verdict in verdicts),
        n=n,
        what=what,
        late=ratings.late(study),
        undecided=sum(verdict.decision == "undecided" for verdict in verdicts),
    )
    return f"{caption} With what NO VERDICT ACCEPTS." if refused else caption


def _drawn(study: Study, group: str, name: str, chart: alt.TopLevelMixin, says: str, **options: Any) -> None:
    """A figure of a group of data sets; `options` are those of `figure`."""
    figure(file_name(study, name, group), chart, says, **options)


def _axes(study: Study, refused: bool, group: str, table: Exhibit) -> None:
    frame = table.frame
    says = (
        "Each model's scores on the original texts and, by axis, on the transformed ones; the total is the mean of the"
        " axes. A tick is the original of the data sets and items that an axis rests on, where these are not all."
        + _limits(study, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(study, group, "axes", charts.axis_shifts(frame, NAMES), says, paper=partial(charts.axis_shifts, frame))


def _moves(study: Study, refused: bool, group: str, table: Exhibit) -> None:
    frame = table.frame
    says = (
        "Mean difference from the original of the same items in points; a star marks what no verdict accepts."
        + _limits(study, int(frame["n_datasets"].max()), "data sets", refused=refused)
    )
    _drawn(
        study, group, "transformations", charts.delta_map(frame, NAMES), says, paper=partial(charts.delta_map, frame)
    )


def _shifts(study: Study, group: str, table: Exhibit) -> None:
    """Of what counts alone, as the papers have it; where there is no shift the table says why."""
    frame = table.frame
    if frame["shift"].isna().all():
        return
    says = (
        "How far each transformation moves scores over data sets (means over models): Hodges-Lehmann shifts with"
        " 95% intervals (the typical change of a data set's score); grey where the change may be chance (Wilcoxon's"
        " p, corrected by Holm for many tests, is at least .05)."
        + _limits(study, int(frame.loc[frame["shift"].notna(), "n"].max()), "data sets", refused=False)
    )
    _drawn(study, group, "shifts", charts.shift_intervals(frame), says, columns=1)


def _datasets(study: Study, groups: list[str]) -> None:
    # Many models' tables are long and take a while: they are made when they are asked for.
    few, title = len(scores.choices(study).models) <= FEW, "Data sets (Tables 17 to 21)"
    if not few:
        heading(title)
        if not st.toggle("Show them", key="sets", bind="query-params"):
            return
    parts_of = {group: parts for group in groups if (parts := scores.datasets(study, group=group))}
    if few and parts_of:
        heading(title)
    for group, parts in parts_of.items():
        number = 0
        if len(parts) > 1:
            heads = [_part(number, part) for number, part in enumerate(parts, start=1)]
            chosen = st.selectbox("Part", heads, key=f"part{group}", bind="query-params")
            number = heads.index(chosen)
        exhibit(study, parts[number], group)


def _part(number: int, part: Exhibit) -> str:
    return f"{number}: {', '.join(part.frame['model'].drop_duplicates())}"


def _left_out(study: Study) -> None:
    omissions, notes = scores.left_out(study), scores.notes(study)
    if omissions.frame.empty and not notes:
        return
    heading("Left out, failed, or included against the verdict, and why")
    exhibit(study, omissions, captioned=False)
    lines(notes)


if __name__ == "__main__":
    show(draw)
