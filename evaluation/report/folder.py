"""What reports leave in their folder: tables and figures as files, and a page whose sections an outline names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.exhibits.csv import csv_bytes
from plumbline.exhibits.folder import write_files
from plumbline.exhibits.page import Figure, Section, Table, write_page
from plumbline.exhibits.table import Exhibit

MOST_ROWS = 120  # of a table on the page; its file has all


@dataclass(frozen=True)
class PageWords:
    """What a page says in words: a warning above all else (empty where there is none), the answer, and what it is.

    `doubts` are what is doubtful about the answer, a line each, without its full stop.
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
) -> Path:
    """Write a report into a folder, each file atomically; returns its page. Those of the report before go.

    `outline` has headings, and the names of the figures and tables below each; a heading that has none is left out.
    """
    write_exhibits(folder, exhibits, figures)
    doubtful = "\n".join(f"– {line}." for line in words.doubts) or "Nothing that was looked at."
    sections = [
        Section("In short", words.headline),
        Section("What is doubtful", [doubtful]),
        Section("This report", [words.about]),
    ]
    for heading, names in outline.items():
        parts = [figures[name] for name in names if name in figures]
        tables = [_on_page(exhibits[name]) for name in names if name in exhibits]
        if parts or tables:
            sections.append(Section(heading, [*parts, *tables]))
    write_page(folder / "index.html", words.title, words.warning, sections)
    return folder / "index.html"


def write_exhibits(folder: Path, exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> None:
    """Write each table as CSV (all digits), Markdown and LaTeX in `tables/`, each figure as SVG and PNG in `figures/`.

    Those of the report before go.
    """
    files = {}
    for exhibit in exhibits.values():
        files[f"tables/{exhibit.name}.csv"] = csv_bytes(exhibit.frame)
        files[f"tables/{exhibit.name}.md"] = exhibit.markdown().encode()
        files[f"tables/{exhibit.name}.tex"] = exhibit.latex().encode()
    for name, figure in figures.items():
        files[f"figures/{name}.svg"] = figure.svg.encode()
        files[f"figures/{name}.png"] = figure.png()
    write_files(folder, files)


def _on_page(exhibit: Exhibit) -> Table:
    """A table as the page has it: a long one is cut, and says so."""
    if len(exhibit.printed) <= MOST_ROWS:
        return exhibit.table()
    caption = f"{exhibit.caption}; the first {MOST_ROWS} of {len(exhibit.printed):,} rows, the file has all"
    return replace(exhibit, printed=exhibit.printed.head(MOST_ROWS), caption=caption).table()
