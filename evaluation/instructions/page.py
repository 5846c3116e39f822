"""The report on wordings: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

from pathlib import Path

from evaluation.instructions.analysis import SIMULATED, Analysis
from evaluation.instructions.charts import all_figures
from evaluation.instructions.exhibits import all_exhibits
from evaluation.instructions.headline import doubts, headline
from evaluation.report.folder import Told, write_outlined

FOLDER = "report_instructions"
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
    told = Told(title, SIMULATED if one.simulated else "", headline(one), doubts(one), _ABOUT)
    return write_outlined(folder, told, OUTLINE, all_exhibits(one), all_figures(one))
