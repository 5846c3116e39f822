"""Reports in one file: what is text stays text, and nothing is fetched from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pandas as pd

from plumbline.exhibits.page import Figure, Section, Table, png, write_page

SCRIPT = '<script>alert("1")</script> {{ 7 * 7 }}'


class Reader(HTMLParser):
    """Which elements a page has, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs), (tag, attrs)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_texts_are_data_and_the_page_needs_nothing_else(tmp_path: Path) -> None:
    chart = alt.Chart(pd.DataFrame({"name": [SCRIPT], "n": [3]})).mark_bar().encode(x="n:Q", y="name:N")
    frame = pd.DataFrame({SCRIPT: [SCRIPT, "b"], "n": ["1.50", None]})
    sections = [Section(SCRIPT, [SCRIPT, Table(frame, SCRIPT), Figure(chart, SCRIPT, SCRIPT)])]
    write_page(tmp_path / "index.html", SCRIPT, SCRIPT, sections)

    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags and {"svg", "table", "figcaption"} <= set(reader.tags)
    # Title, heading, warning, section, paragraph, table's caption, head and cell, figure's caption: 9, and the chart.
    assert reader.words.count('alert("1")') >= 9 and "49" not in reader.words
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", page)
    assert '<td class="number">1.50</td>' in page and '<td class="number">–</td>' in page  # undefined is a dash


def test_a_chart_is_a_picture_too() -> None:
    chart = alt.Chart(pd.DataFrame({"n": [1, 2]})).mark_point().encode(x="n:Q")
    assert png(chart).startswith(b"\x89PNG\r\n\x1a\n")
