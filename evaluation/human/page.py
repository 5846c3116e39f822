"""The report on people and models: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from annotation.verdicts.tables import SIMULATED
from evaluation.human.charts import all_figures
from evaluation.human.exhibits import all_exhibits
from evaluation.human.headline import doubts, headline
from evaluation.human.material import Material, read_material
from evaluation.report.page import drawn, forms
from plumbline.exhibits.folder import write_files
from plumbline.exhibits.page import Figure, Section, Table, write_page
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study

FOLDER = "report_human"
MOST_ROWS = 120  # of a table on the page; its file has all
#: Headings, and what stands below them by name: figures first.
OUTLINE = {
    "People and models": ("ranges", "ceiling"),
    "Differences": ("gaps", "models"),
    "Where people stand": ("standing",),
    "Agreement": ("agreement",),
    "Language models as annotators": ("annotators", "difficulty"),
    "Raters": ("raters",),
    "Items seen differently": ("items",),
    "Other metrics": ("other_metrics",),
    "As HUME has it": ("as_hume",),
    "What was asked": ("tasks",),
}
_ABOUT = (
    "People did tasks that embedding models are scored on, on the very same items and candidates, after HUME;"
    " docs/human.md says where this differs, and why. Each table is a file in tables/ (CSV with all"
    " digits, Markdown, LaTeX), each figure one in figures/ (SVG, PNG)."
)


def write_report(study: Study) -> Path:
    """Write the report of an evaluated human study; returns its page. Those of the report before go.

    Raises DataError before the study is evaluated, and for edited tables.
    """
    one, folder = read_material(study), study.folder / FOLDER
    exhibits, figures = all_exhibits(one), all_figures(one)
    made = {name: content for table in exhibits.values() for name, content in forms(table)}
    made |= {name: content for key, figure in figures.items() for name, content in drawn(key, figure)}
    write_files(folder, made)
    title = f"People and models on the same items: study {study.name}"
    write_page(folder / "index.html", title, SIMULATED if one.simulated else "", _sections(one, exhibits, figures))
    return folder / "index.html"


def _sections(one: Material, exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> list[Section]:
    doubtful = "\n".join(f"– {line}." for line in doubts(one)) or "Nothing that was looked at."
    made = [
        Section("In short", headline(one)),
        Section("What is doubtful", [doubtful]),
        Section("This report", [_ABOUT]),
    ]
    for heading, names in OUTLINE.items():
        parts = [figures[name] for name in names if name in figures]
        tables = [_on_page(exhibits[name]) for name in names if name in exhibits]
        if parts or tables:
            made.append(Section(heading, [*parts, *tables]))
    return made


def _on_page(exhibit: Exhibit) -> Table:
    """A table as the page has it: a long one is cut, and says so."""
    if len(exhibit.printed) <= MOST_ROWS:
        return exhibit.table()
    caption = f"{exhibit.caption}; the first {MOST_ROWS} of {len(exhibit.printed):,} rows, the file has all"
    return replace(exhibit, printed=exhibit.printed.head(MOST_ROWS), caption=caption).table()
