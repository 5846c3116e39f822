"""Reports as one HTML file that needs nothing else: tables, figures and words; every text in it is data, never HTML.

The first section is the answer; the list of contents stands behind it, and each note of a table once, at the foot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from plumbline.store import atomic

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Figure:
    """A chart with its caption, and what it shows in words for those who cannot see it."""

    chart: alt.TopLevelMixin
    caption: str
    alt: str

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, drawn once."""
        return svg(self.chart)

    def png(self, scale: float = 2.0) -> bytes:
        """The chart as PNG, at `scale` times 72 dots an inch."""
        import vl_convert  # noqa: PLC0415 (extra `report`)

        drawn: bytes = vl_convert.svg_to_png(self.svg, scale=scale)
        return drawn


@dataclass(frozen=True)
class Table:
    """A frame as it is printed: cells are words already, or whole numbers; `caption` says what it shows.

    `notes` say what its numbers lack, and why; the page has those of all tables once.
    """

    frame: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, in order; a string is a paragraph."""

    heading: str
    parts: Sequence[str | Table | Figure]


def write_page(path: Path, title: str, warning: str, sections: Sequence[Section]) -> None:
    """Write a report, atomically. `warning` stands above all else (simulated ratings), empty where there is none."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 (extra `report`)

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("plumbline.exhibits").joinpath("page.html").read_text(encoding="utf-8"))
    tables = [part for section in sections for part in section.parts if isinstance(part, Table)]
    notes = list(dict.fromkeys(note for table in tables for note in table.notes))
    shown = [
        {
            "heading": section.heading,
            "id": _address(section.heading),
            "parts": [_shown(part, notes) for part in section.parts],
        }
        for section in sections
    ]
    with atomic(path) as file:
        file.write(template.render(title=title, warning=warning, sections=shown, notes=notes).encode())


def svg(chart: alt.TopLevelMixin) -> str:
    """The chart as SVG; letters are letters in it. Vega escapes the texts."""
    import altair as alt  # noqa: PLC0415 (extra `report`)
    import vl_convert  # noqa: PLC0415 (extra `report`)

    with alt.data_transformers.disable_max_rows():  # which keep notebooks small; here no data stay in the page
        drawn: str = vl_convert.vegalite_to_svg(chart.to_json())
    return drawn


def _address(heading: str) -> str:
    """A heading as the part of an address that leads to it."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers as (first, last), in order."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return spans


def _shown(part: str | Table | Figure, notes: Sequence[str]) -> dict[str, object]:
    if isinstance(part, str):
        return {"kind": "words", "words": part}
    if isinstance(part, Figure):
        return {"kind": "figure", "svg": part.svg, "caption": part.caption, "alt": part.alt}
    rows = [[_cell(value) for value in row] for row in part.frame.itertuples(index=False)]
    head = list(map(str, part.frame.columns))
    # A column with a letter in any of its cells is one of words, as in the tables that commands print.
    columns = [[row[column] for row in rows] for column in range(len(head))]
    numeric = [bool(cells) and not any(map(str.isalpha, "".join(cells))) for cells in columns]
    spans = _spans([1 + notes.index(note) for note in dict.fromkeys(part.notes)])
    return {"kind": "table", "head": head, "rows": rows, "numeric": numeric, "caption": part.caption, "notes": spans}


def _cell(value: object) -> str:
    return "–" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
