"""The report on wordings: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evaluation.instructions.analysis import SIMULATED, Analysis
from evaluation.instructions.charts import all_figures
from evaluation.instructions.exhibits import all_exhibits
from evaluation.instructions.headline import doubts, headline
from evaluation.report.page import drawn, forms
from plumbline.exhibits.folder import write_files
from plumbline.exhibits.page import Figure, Section, Table, write_page
from plumbline.exhibits.table import Exhibit

FOLDER = "report_instructions"
MOST_ROWS = 120  # of a table on the page; its file has all
#: Headings, and what stands below them by name: figures first.
OUTLINE = {
    "The recommended score": ("recommended", "ranks"),
    "Where defaults lie": ("inflation", "published"),
    "Scores over wordings": ("distribution",),
    "How far scores move": ("variation",),
    "Boards": ("boards", "random_wordings"),
    "Best and worst wordings": ("best_worst", "split_halves"),
    "People against machines": ("sources",),
    "Kinds of wordings": ("contexts", "gate"),
    "Coverage": ("coverage", "aside"),
}
_ABOUT = (
    "How far scores of instruction embedders hang on the wording of the instruction, after arXiv 2605.22544. A wording"
    " counts where people found it acceptable; scores stand beside each other where run, revision, split, subset, data"
    " and mteb are the same. Each table is a file in tables/ (CSV with all digits, Markdown, LaTeX), each figure one in"
    " figures/ (SVG, PNG)."
)


def write_report(folder: Path, one: Analysis, title: str) -> Path:
    """Write the report into a folder, each file atomically; returns its page. Those of the report before go."""
    exhibits, figures = all_exhibits(one), all_figures(one)
    made = {name: content for table in exhibits.values() for name, content in forms(table)}
    made |= {name: content for key, figure in figures.items() for name, content in drawn(key, figure)}
    write_files(folder, made)
    warning = SIMULATED if one.simulated else ""
    write_page(folder / "index.html", title, warning, sections(one, exhibits, figures))
    return folder / "index.html"


def sections(one: Analysis, exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> list[Section]:
    """What the page says, in order."""
    doubtful = "\n".join(f"– {line}." for line in doubts(one)) or "Nothing that was looked at."
    made = [
        Section("In short", headline(one)),
        Section("What is doubtful", [doubtful]),
        Section("This report", [_ABOUT]),
    ]
    for heading, names in OUTLINE.items():
        parts = [figures[name] for name in names if name in figures]
        tables = [on_page(exhibits[name]) for name in names if name in exhibits]
        if parts or tables:
            made.append(Section(heading, [*parts, *tables]))
    return made


def on_page(exhibit: Exhibit) -> Table:
    """A table as the page has it: a long one is cut, and says so."""
    if len(exhibit.printed) <= MOST_ROWS:
        return exhibit.table()
    caption = f"{exhibit.caption}; the first {MOST_ROWS} of {len(exhibit.printed):,} rows, the file has all"
    return replace(exhibit, printed=exhibit.printed.head(MOST_ROWS), caption=caption).table()
