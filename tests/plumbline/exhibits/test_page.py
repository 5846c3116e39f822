"""Reports in one file: what is text stays text, and nothing is fetched from elsewhere."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from plumbline.exhibits.page import MOST_FIGURES, Figure, PageWords, Section, write_outlined, write_page
from plumbline.exhibits.table import Table
from plumbline.exhibits.templates import source
from tests.conftest import browsing

SCRIPT = '<script>alert("1")</script> {{ 7 * 7 }}'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One for all tests here, which start no event loop."""
    with browsing() as browser:
        yield browser


class Reader(HTMLParser):
    """Which elements a page has, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs), (tag, attrs)
        assert all((value or "").startswith("#") for name, value in attrs if name == "href"), (tag, attrs)

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
    assert reader.tags.count("script") == 1 and {"svg", "table", "figcaption"} <= set(reader.tags)
    own = source("plumbline/exhibits/page.js").encode()  # no other script is run
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(own).digest()).decode()}'" in html.unescape(page)
    # Title, heading, warning, section, paragraph, table's caption, head and cell, figure's caption: 9, and the chart.
    assert reader.words.count('alert("1")') >= 9 and "49" not in reader.words
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", page)
    assert 'class="number short">1.50</td>' in page and 'class="number short">–</td>' in page  # undefined: a dash


def test_behind_the_answer_stand_the_contents_and_each_note_once_at_the_foot(tmp_path: Path) -> None:
    frame, notes = pd.DataFrame({"n": ["1"]}), [f"note {letter}" for letter in "abcde"]
    tables = [
        Table(frame, "first", (notes[0], notes[1], notes[2])),
        Table(frame, "second", (notes[4], notes[1], notes[0], notes[2])),  # e is the fourth to come: 1 to 4
        Table(frame, "third", (notes[3], notes[1], SCRIPT)),  # 2, and two new ones: 5 and 6
        Table(frame, "with the common note alone", (notes[1],)),
        Table(frame, "without a note, as a list of reasons"),
    ]
    sections = [Section("In short", ["answer"]), Section("By axis (Figure 4)", tables[:1]), Section("More", tables[1:])]
    write_page(tmp_path / "index.html", "t", "", sections)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    places = [
        page.index(part) for part in ("answer", "Contents", '<a href="#by-axis-figure-4">', '<section id="by-axis')
    ]
    assert places == sorted(places)
    assert re.findall(r'<p class="notes">Notes? (.*)</p>', page) == [  # b, which all have, stands where it is alone
        ", ".join(f'<a href="#note-{number}">{number}</a>' for number in numbers)
        for numbers in ((2, 3), (2, 3, 4), (5, 6), (1,))
    ]
    assert "Note 1 is about every table with notes." in page
    assert re.findall(r'<li id="note-(\d)">(.*)</li>', page)[:5] == [
        (str(number), notes[letter]) for number, letter in enumerate((1, 0, 2, 4, 3), 1)
    ]
    write_page(tmp_path / "index.html", "t", "", sections[:1])
    alone = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Contents" not in alone and "Notes" not in alone  # nothing to lead to


def test_what_follows_two_figures_and_a_folded_section_wait_for_a_reader(tmp_path: Path) -> None:
    chart = alt.Chart(pd.DataFrame({"n": [1]})).mark_point().encode(x="n:Q")
    figures = [Figure(chart, f"figure {number}", "a point") for number in range(4)]
    sections = [Section("In short", figures), Section("Methods", ["words"], folded=True)]
    write_page(tmp_path / "index.html", "t", "", sections)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    folded = re.findall(r"<details>(.*?)</details>", page, re.DOTALL)
    assert ["2 more figures" in part for part in folded] == [True, False]
    assert [number for number in range(4) if f"figure {number}" in folded[0]] == [2, 3]
    assert "<h2>Methods</h2>" in folded[1] and "words" in folded[1]


def test_a_page_holds_the_first_figures_of_a_section_and_names_the_files_of_others(tmp_path: Path) -> None:
    chart = alt.Chart(pd.DataFrame({"n": [1]})).mark_point().encode(x="n:Q")
    names = ["answer", *(f"drift_{number}" for number in range(MOST_FIGURES + 2))]
    figures = {name: Figure(chart, f"caption of {name}.", "a point") for name in names}
    page = write_outlined(tmp_path, PageWords("t", "", ["answer"], [], ""), {"Drift": names}, {}, figures).read_text()
    assert [name for name in names if f"caption of {name}." in page] == names[:-2]
    assert "2 further figures in files alone, from figures/drift_5.svg on." in page
    assert {path.stem for path in (tmp_path / "figures").glob("*.svg")} == {*names}


def test_a_table_is_sorted_by_its_numbers_and_downloaded_without_formulas(tmp_path: Path, page: Page) -> None:
    names = ["=1+1", "b, or c", 'd "quoted"', "e"]
    frame = pd.DataFrame({"Name": names, "Mean": ["+10.5 [−1.0, 20.0]", "–", "−2.0 [−3.0, −1.0]", "9.00"]})
    write_page(tmp_path / "index.html", "t", "", [Section("In short", [Table(frame, "Means")])])
    page.goto((tmp_path / "index.html").as_uri())

    def column(place: int) -> list[str]:
        return page.locator(f"tbody td:nth-child({place})").all_inner_texts()

    head = page.get_by_role("button", name="Mean")
    head.click()
    assert column(1) == ['d "quoted"', "e", "=1+1", "b, or c"]  # what is undefined stays at the end
    head.click()
    assert column(1) == ["=1+1", "e", 'd "quoted"', "b, or c"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "Means.csv"
    rows = list(csv.reader(download.value.path().read_text(encoding="utf-8-sig").splitlines()))
    assert [row[0] for row in rows] == ["Name", "'=1+1", "e", 'd "quoted"', "b, or c"]
    assert rows[1][1] == "+10.5 [−1.0, 20.0]"


def test_a_chart_of_half_a_page_fits_a_phone(tmp_path: Path, page: Page) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1, 2]})).mark_point().encode(x="x:Q").properties(width=450)
    write_page(tmp_path / "index.html", "t", "", [Section("In short", [Figure(chart, "Points", "Two points")])])
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((tmp_path / "index.html").as_uri())
    assert page.locator("figure > div").evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize(
    "cells", [["GPT-3", "GPT-4.1", "GPT-10", "Llama 2"], ["2026-02-01", "2026-02-03", "2026-11-02"]]
)
def test_a_table_is_sorted_by_names_and_days(tmp_path: Path, page: Page, cells: list[str]) -> None:
    frame = pd.DataFrame({"Cell": cells[::-1]})
    write_page(tmp_path / "index.html", "t", "", [Section("In short", [Table(frame, "Cells")])])
    page.goto((tmp_path / "index.html").as_uri())
    page.get_by_role("button", name="Cell").click()
    assert page.locator("tbody td").all_inner_texts() == cells
