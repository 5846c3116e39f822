"""The report on people and models: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

from pathlib import Path

from annotation.verdicts.tables import SIMULATED
from evaluation.human.charts import all_figures
from evaluation.human.exhibits import all_exhibits
from evaluation.human.headline import doubts, headline
from evaluation.human.material import read_material
from evaluation.human.models import refuse_changed_files
from plumbline.exhibits.page import PageWords, write_outlined
from plumbline.study import Study

FOLDER = "report_human"
#: Headings, and what stands below them by name: figures first.
OUTLINE = {
    "People and models": ("ranges", "ceiling"),
    "Differences": ("gaps", "models"),
    "Where people stand": ("groups", "standing"),
    "Agreement": ("agreement",),
    "Language models as annotators": ("annotators", "annotators_by_type", "difficulty"),
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

    Raises DataError before the study is evaluated, for edited tables, and where a data set's file is another by now.
    """
    refuse_changed_files(study)
    one = read_material(study)
    title = f"People and models on the same items: study {study.name}"
    told = PageWords(title, SIMULATED if one.simulated else "", headline(one), doubts(one), _ABOUT)
    return write_outlined(study.folder / FOLDER, told, OUTLINE, all_exhibits(one), all_figures(one))
