"""Write a report as one self-contained HTML file; every text in it is data, never HTML.

The answer comes first, then the contents; each note of a table appears once, at the foot.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from plumbline.exhibits.table import UNDEFINED, Exhibit, Table, is_numeric, write_files
from plumbline.exhibits.templates import environment, html, source
from plumbline.importing import altair as alt
from plumbline.importing import vl_convert
from plumbline.store import atomic
from plumbline.words import count, sentence

_FILES = (
    "Each table is also a file in tables/ (CSV with all digits, Markdown, LaTeX), each figure a file in figures/ (SVG,"
    " PNG)."
)
_LETTERS: dict[str, object] = {"labelColor": "currentColor", "titleColor": "currentColor"}
_GREY = "#7f7f7f"  # seen on light and dark pages
_LINES: dict[str, object] = {"gridColor": _GREY, "gridOpacity": 0.25, "domainColor": _GREY, "tickColor": _GREY}
#: Settings of Vega-Lite for all charts; a chart's own come first.
_LOOK: dict[str, dict[str, object]] = {
    "axis": _LETTERS | _LINES,
    "legend": _LETTERS,
    "header": _LETTERS,
    "title": {"color": "currentColor", "subtitleColor": "currentColor"},
    "text": {"color": "currentColor"},
    "view": {"stroke": None},
}
#: Figures that follow one another and are seen at once; a reader unfolds the others.
OPEN = 2
#: Figures of a section that a page holds: with more it would be too large to send.
MOST_FIGURES = 5


@dataclass(frozen=True)
class Figure:
    """A chart with its caption and a description for those who cannot see it."""

    chart: alt.TopLevelMixin
    caption: str
    alt: str

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, drawn once."""
        return svg(self.chart)

    @property
    def width(self) -> int:
        """The chart's width in pixels."""
        return round(float(self.svg.partition(' width="')[2].partition('"')[0]))

    def png(self, scale: float = 2.0) -> bytes:
        """The chart as PNG, at `scale` times 72 dots an inch."""
        drawn: bytes = vl_convert.svg_to_png(self.svg, scale=scale)
        return drawn


@dataclass(frozen=True)
class CardMean:
    """A mean with its interval on its question's scale: places from 0 to 100, none where a number is undefined."""

    question: str
    words: str
    at: float | None
    low: float | None
    high: float | None
    limit: float | None


@dataclass(frozen=True)
class Card:
    """What was decided on one transformation or system; `facts` follow the decision in its line."""

    title: str
    decision: str
    facts: str
    means: Sequence[CardMean]
    reason: str


Part = str | tuple[str, ...] | Table | Figure | Card


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it, in order; a string is a paragraph, a tuple a list, and cards stand together.

    A `folded` section shows its heading alone until a reader opens it.
    """

    heading: str
    parts: Sequence[Part]
    folded: bool = False


def write_page(path: Path, title: str, warning: str, sections: Sequence[Section]) -> None:
    """Write a report atomically. `warning` comes first (simulated ratings); empty for none."""
    noted = [part.notes for section in sections for part in section.parts if isinstance(part, Table) and part.notes]
    shared = set.intersection(*map(set, noted)) if noted[1:] else set[str]()  # said once, and not at each table
    notes = list(dict.fromkeys(note for part in noted for note in part))
    notes.sort(key=lambda note: note not in shared)
    blocks = [
        {
            "heading": section.heading,
            "id": re.sub(r"[^a-z0-9]+", "-", section.heading.lower()).strip("-"),
            "folded": section.folded,
            "parts": _shown_parts(section.parts, notes, shared),
        }
        for section in sections
    ]
    script = source("plumbline/exhibits/page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    facts = {"title": title, "warning": warning, "sections": blocks, "notes": notes, "n_shared": len(shared)}
    facts |= {"script": script, "script_hash": f"sha256-{digest}"}
    with atomic(path) as file:
        file.write(html("plumbline/exhibits/page.html", facts).encode())


@dataclass(frozen=True)
class PageWords:
    """The words of a page: a warning (empty for none), the answer, and a description of the report.

    `doubts` are reservations about the answer, one line each, without a full stop.
    """

    title: str
    warning: str
    headline: Sequence[str]
    doubts: Sequence[str]
    about: str


def write_outlined(
    folder: Path,
    words: PageWords,
    outline: Mapping[str, Sequence[str]],
    exhibits: Mapping[str, Exhibit],
    figures: Mapping[str, Figure],
    folded: Collection[str] = (),
) -> Path:
    """Write a report into a folder, each file atomically, and return its page. Files of the previous report go.

    `outline` maps headings to names of figures and tables; a heading with none of them is left out, and so are a table
    without a number and a section's figures after the first few. The first figure stands with the answer. Sections of
    `folded` headings are closed until a reader opens them.
    """
    files: dict[str, bytes] = {}
    for exhibit in exhibits.values():
        files |= exhibit.files()
    for name, figure in figures.items():
        files |= {f"figures/{name}.svg": figure.svg.encode(), f"figures/{name}.png": figure.png()}
    write_files(folder, files)
    doubtful = tuple(map(sentence, words.doubts)) or "Nothing stands out."
    first, *others = figures or [""]
    shown = {name: exhibit for name, exhibit in exhibits.items() if not exhibit.is_undefined}
    sections = [
        Section("In short", [*words.headline, *([figures[first]] if first else [])]),
        Section("What is doubtful", [doubtful]),
    ]
    for heading, names in outline.items():
        drawn = [name for name in names if name in others]
        parts: list[Part] = [figures[name] for name in drawn[:MOST_FIGURES]]
        if further := drawn[MOST_FIGURES:]:
            parts.append(f"{count(len(further), 'further figure')} in files alone, from figures/{further[0]}.svg on.")
        tables = [shown[name].table(cut=True) for name in names if name in shown]
        if parts or tables:
            sections.append(Section(heading, [*parts, *tables], heading in folded))
    files_alone = ", ".join(f"{name}.csv" for name in exhibits if name not in shown)
    undefined = f" No number is known in {files_alone}, which the page leaves out." if files_alone else ""
    sections.append(Section("This report", [f"{words.about} {_FILES}{undefined}"], folded=True))
    write_page(folder / "index.html", words.title, words.warning, sections)
    return folder / "index.html"


def svg(chart: alt.TopLevelMixin) -> str:
    """Return the chart as SVG, with its text as text. Vega escapes the texts.

    Letters have the colour of the text around them, so that a page in dark colours can show them.
    """
    with alt.data_transformers.disable_max_rows():  # they keep notebooks small; a page holds no data
        specification = chart.to_dict(validate=False)  # half of the time, and the tests draw every chart
    config = specification.get("config", {})
    looks = {part: look | config.get(part, {}) for part, look in _LOOK.items()}
    specification["config"] = config | looks | {"aria": False}  # the page describes the chart as a whole
    drawn: str = vl_convert.vegalite_to_svg(json.dumps(specification, sort_keys=True))  # Altair's own is slow
    return drawn


def _shown_parts(parts: Sequence[Part], notes: Sequence[str], shared: Collection[str]) -> list[dict[str, object]]:
    """Return the blocks of a section for the template; figures, or cards, that follow one another are one block."""
    blocks: list[dict[str, object]] = []
    for kind, run in groupby(parts, type):
        if kind is Figure:
            figures = [*run]
            blocks.append({"kind": "figures", "open": figures[:OPEN], "folded": figures[OPEN:]})
        elif kind is Card:
            blocks.append({"kind": "cards", "cards": [*run]})
        else:
            blocks += [
                _shown(part, notes, shared)
                if isinstance(part, Table)
                else {"kind": "words" if isinstance(part, str) else "list", "words": part}
                for part in run
                if isinstance(part, str | tuple | Table)
            ]
    return blocks


def part_html(part: Table | Sequence[Card]) -> str:
    """Return a table, or cards, as they stand on a report's page."""
    drawn: Any = environment("html").get_template("plumbline/exhibits/parts.html").module
    return str(drawn.table(_shown(part, part.notes)) if isinstance(part, Table) else drawn.cards(part))


def _shown(table: Table, notes: Sequence[str], shared: Collection[str] = ()) -> dict[str, object]:
    """Return a table for its template; `notes` are numbered, and those that noted tables share are not repeated."""
    rows = [
        [UNDEFINED if cell is None or (isinstance(cell, float) and math.isnan(cell)) else str(cell) for cell in row]
        for row in table.frame.itertuples(index=False)
    ]
    head = list(map(str, table.frame.columns))
    columns = [[row[column] for row in rows] for column in range(len(head))]
    numeric = [bool(cells) and is_numeric(cells) for cells in columns]
    listed = [note for note in table.notes if note not in shared] or table.notes
    numbers = sorted({1 + notes.index(note) for note in listed})
    return {"kind": "table", "head": head, "rows": rows, "numeric": numeric, "caption": table.caption, "notes": numbers}
