"""Build pages: sections, tables and figures with downloads, links, filters.

An empty section is left out with its heading. A record that no stage has written yet is named once.

A study's own words (texts, names, descriptions, errors) are shown as text or in a table's cell, never as Markdown.
The page's address includes the filters.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, cast

import pandas as pd
import streamlit as st

from annotation.verdicts.preferences import choices_exhibit, preferences_exhibit
from annotation.verdicts.systems import differences_exhibit, systems_exhibit
from plumbline.errors import PlumblineError
from plumbline.exhibits.page import part_html, svg
from plumbline.exhibits.table import CODE, Exhibit, csv_bytes, in_prose
from plumbline.importing import altair as alt
from plumbline.resources import installing
from streamlit_app.readers import OF_PEOPLE, PROMPTED, NotYetError, PageReader, StudyReader

#: A mark and a word for each decision: never colour alone.
DECISIONS = {"accepted": "✔ accepted", "rejected": "✘ rejected", "undecided": "? undecided"}
FEW = 30  # a figure with fewer observations says so
_COMMAND = re.compile(r"`((?:plumbline|streamlit) [^`]+)`")
_ICON = ":material/download:"
_FIT = {"type": "fit-x", "contains": "padding"}
_MARGINS = {"left": 45, "right": 30, "top": 5, "bottom": 5}
_NAMES = 240, 340  # pixels for the names of a chart's rows, on a phone and on a laptop
_PHONE = 600  # pixels: a chart that is narrower is on a phone
_ON_PHONE, _WHOLE = 120, 25  # pixels for rows' names there, if one has more letters than stay whole
_ROOM = 40  # characters in a row of a legend on a phone
_LETTERS = 56  # characters in a row's name and a row of a legend together, on a phone
_LONG = 400  # rows of a table, above which it scrolls without breaking lines


def sections(*draws: Callable[[], None], shows: str = "") -> None:
    """Draw the parts of a page: each reads its content, and writes its `heading` if it has any.

    An error in one part is shown in its place, once for all parts, and the other parts are drawn. If records are
    missing because their stages have not run, only the first is named, with what the page `shows` once it is there;
    none is named on a page that shows something all the same, for which `shows` is empty.
    """
    said_lines = set[str]() if shows else {NotYetError.__name__}
    for draw in draws:
        try:
            draw()
        except (PlumblineError, OSError) as error:
            missing = isinstance(error, NotYetError)
            line = NotYetError.__name__ if missing else str(error)
            if line not in said_lines:
                _not_yet(str(error), shows) if missing else complain(str(error))
            said_lines.add(line)


def _not_yet(line: str, shows: str) -> None:
    """Say what a page will show once the command that an error's `line` names has run; others may come before it."""
    reason, _, command = line.partition("; run `")
    name = " ".join(command.split()[:2])
    with st.container(border=True):
        st.markdown(":material/hourglass_empty: **Not available yet**")
        st.text(f"This page will show {shows}, once “{name}” has run: {quoted(reason)}.")
        link("answer", "The next step")


def heading(title: str) -> None:
    """The heading of a section."""
    st.header(title, anchor=False, divider="gray")


def in_short(sentences: Sequence[str]) -> None:
    """Draw the answer of a page, its first sentence the largest."""
    st.html("".join(f'<p class="answer">{escape(in_prose(sentence))}</p>' for sentence in sentences))


def link(page: str, label: str, **address: str) -> None:
    """Draw a link to another page, named by its address; `label` may be Markdown, so it must be ours."""
    target = st.Page(lambda: None, title=label, url_path=page)
    st.page_link(target, label=f":blue[{label}]", icon=":material/arrow_forward:", query_params=address)


def complain(line: str, *, title: str = "This cannot be shown") -> None:
    """Show an error's line in a box called `title`, and below it each command that it names, to copy."""
    with st.container(border=True):
        st.markdown(f":material/error: **{title}**")
        st.text(in_prose(quoted(line)))
        for command in dict.fromkeys(_COMMAND.findall(line)):
            st.code(command, language=None, wrap_lines=True)


def figure(name: str, chart: alt.TopLevelMixin, text: str, *, alt_text: str = "") -> None:
    """Draw a chart with its caption and the button for its SVG; `name` is the file's."""
    st.altair_chart(cast(Any, UncheckedChart(fitted(chart))), width="stretch", alt=alt_text or text)
    st.caption(text)
    download_svg(name, lambda: chart)


def fitted(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """Return the chart with the page's width and its own height; Streamlit would squeeze axes and legends."""
    drawing: Any = chart
    config = {
        "axisBand": {"labelOverlap": False, "labelLimit": _by_width(*_NAMES)},
        "axis": {"labelFlush": False},  # or the first and the last label leave their ticks
        "axisQuantitative": {"tickCount": _by_width(5, 10)},
        "legend": {"orient": "top", "symbolStrokeWidth": 1},  # beside the chart it would take half of a phone's width
    }
    fit: alt.TopLevelMixin = drawing.properties(autosize=_FIT, config=config)  # in place of its own letters
    drawn: Any = fit
    drawn.padding, drawn.description = {"right": 15}, alt.Undefined  # for half a tick's label; `alt_text` describes it
    return fit


class UncheckedChart:
    """A chart that Streamlit draws without a check against Vega-Lite's schema, which would take most of the time.

    Tests check the schema of the pages' charts.
    """

    def __init__(self, chart: alt.TopLevelMixin) -> None:
        self.chart = chart

    def to_dict(self) -> dict[str, Any]:
        """Return the specification, with names and legends that fit a phone if the page is one."""
        specification = self.chart.to_dict(validate=False)
        names = max(map(len, _row_names(specification)), default=0)
        _narrow(specification, min(_ROOM, _LETTERS - names))
        return specification


def _row_names(part: Any) -> Iterator[str]:
    """Yield the names of a chart's rows."""
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _row_names(inner)
    if isinstance(part, dict) and isinstance(up := part.get("y"), dict) and isinstance(up.get("sort"), list):
        yield from map(str, up["sort"])


def _narrow(part: Any, letters: int) -> None:
    """Cut rows' names for a phone, and give legends as many columns as fit there beside the rows' names."""
    from plumbline.exhibits.charts import columns_of_legend, shortened  # noqa: PLC0415 (the first page goes without)

    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _narrow(inner, letters)
    if isinstance(part, dict) and isinstance(legend := part.get("legend"), dict) and "columns" in legend:
        names = map(str, part.get("scale", {}).get("domain", []))
        legend |= {"columns": _by_width(columns_of_legend(names, letters), legend["columns"]), "columnPadding": 12}
    if isinstance(part, dict) and "labelExpr" in (axis := part.get("axis") or {}):
        limit = _by_width(_ON_PHONE if max(map(len, part["sort"])) > _WHOLE else axis["labelLimit"], axis["labelLimit"])
        axis |= {"labelLimit": limit, "labelExpr": shortened(limit["expr"])}


def _by_width(phone: int, laptop: int) -> dict[str, str]:
    """Return Vega's expression for a number that is another one on a phone."""
    return {"expr": f"(containerSize()[0] < {_PHONE} ? {phone} : {laptop})"}


def exhibit(study_name: str, table: Exhibit, *, captioned: bool = True) -> None:
    """Draw a report's table with its caption, notes and the button for its CSV with all digits, unless it is empty.

    `captioned` is False if the heading already says the caption.
    """
    if table.frame.empty:
        return
    if captioned:
        st.text(table.caption)
    shown, name = table.table(), file_name(study_name, table.name)
    if len(shown.frame) > _LONG:
        st.dataframe(shown.frame, hide_index=True, alt=name.replace("-", " "))
    else:
        st.html(part_html(replace(shown, caption=name.replace("-", " "))))
    download_csv(name, table.frame)
    lines(table.notes)


def side_by_side(reader: StudyReader) -> None:
    """Draw the systems' means, ranks and differences on the same originals, and how often each was preferred."""
    (compared, preferred), called = reader.side_by_side(), reader.study.called
    tables = [systems_exhibit(compared, called), differences_exhibit(compared, called)]
    for table in [*tables, preferences_exhibit(preferred), choices_exhibit(preferred)]:
        if len(table.frame):
            heading(table.caption)
            exhibit(reader.name, table, captioned=False)


def file_name(study_name: str, title: str) -> str:
    """Return the file name of a table or figure."""
    return f"{study_name}-{title}".replace("_", "-").replace(" ", "-").lower()


#: The reports: folder, command, and the record without which the command has nothing to show.
REPORTS = {
    "campaign": ("report", "ratings-report", "looks.json"),
    "scores": ("report_evaluation", "scores-report", "scores.parquet"),
    "wordings": ("report_instructions", "sensitivity-report", PROMPTED[0]),
    "people": ("report_human", "human-report", OF_PEOPLE[0]),
}


def report(reader: PageReader, name: str, shows: str) -> None:
    """Draw the link to one of the `REPORTS`: what it `shows`, its path and a button; the command if it is missing."""
    folder, command, needs = REPORTS[name]
    page = reader.study.folder / folder / "index.html"
    if needs not in reader:
        return
    heading("In full")
    if not page.exists():
        st.text(f"The report shows {shows}. This command writes it:")
        st.code(reader.study.command(command), language=None, wrap_lines=True)
        return
    st.text(f"The report shows {shows}: {page}")
    _download("Download the report", page.read_bytes, f"{reader.name}-{folder}.html".replace("_", "-"), "text/html")


def lines(notes: Sequence[str], called: str = "notes on these numbers") -> None:
    """Show notes as text; more than three are folded under their number and `called`."""
    if notes:
        with st.expander(f"{len(notes)} {called}") if len(notes) > 3 else st.container():
            st.text(quoted("\n".join(notes)))


def numbers(facts: Mapping[str, str]) -> None:
    """Draw numbers beside one another, each below its name."""
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    st.html(f'<dl class="facts">{shown}</dl>')


def quoted(line: str) -> str:
    """Return a line as text, with quotation marks instead of backticks."""
    return CODE.sub(r"“\1”", line)


def download_csv(name: str, frame: pd.DataFrame) -> None:
    """Draw the button for a table's CSV, in which a spreadsheet runs no formula."""
    _download("Download as CSV", partial(csv_bytes, frame), f"{name}.csv", "text/csv")


def download_svg(name: str, draw: Callable[[], alt.TopLevelMixin]) -> None:
    """Draw the button for a figure's SVG, which is made on demand; without the package for it, the button says so.

    The figure has margins: text may be wider in a viewer than in the layout, and would be cut off.
    """

    def content() -> bytes:
        chart: Any = draw()
        return svg(chart.properties(padding=_MARGINS) if chart.padding is alt.Undefined else chart).encode()

    installed = importlib.util.find_spec("vl_convert") is not None
    label = "Download as SVG" if installed else f"SVG needs the extra `report`: {installing('report')}"
    _download(label, content, f"{name}.svg", "image/svg+xml", disabled=not installed)


def _download(label: str, content: Callable[[], bytes], file: str, mime: str, *, disabled: bool = False) -> None:
    options: dict[str, Any] = {"on_click": "ignore", "icon": _ICON, "type": "tertiary", "disabled": disabled}
    st.download_button(label, content, file, mime, key=f"download-{file}", **options)


def limits(*, simulated: bool, n: int | None = None, noun: str = "pairs", warnings: Sequence[str] = ()) -> str:
    """Return the limits of a figure as sentences for its caption; empty if there are none."""
    sentences = [" SIMULATED ratings: this measures nothing."] if simulated else []
    sentences += [f" {line}" for line in warnings]
    if n is not None and n < FEW:
        sentences.append(f" Few {noun}: n = {n}.")
    return "".join(sentences)


def choose(label: str, options: Sequence[str], key: str, *, words: Callable[[str], str] = str) -> str:
    """Draw a select box at the side and return its choice (default: the first); the address has it as `key`."""
    # Select boxes show their options as they are; radio buttons would read them as Markdown.
    with st.sidebar:
        chosen: str | None = st.selectbox(label, options, key=key, format_func=words, bind="query-params")
    return options[0] if chosen is None else chosen


def filtered(label: str, options: Sequence[str], key: str, *, words: Callable[[str], str] = str) -> str:
    """Draw a filter at the side and return its choice, empty for all; with fewer than two options nothing is drawn."""
    if len(options) < 2:
        return ""
    chosen = choose(label, ["all", *options], key, words=lambda name: "all" if name == "all" else words(name))
    return "" if chosen == "all" else chosen
