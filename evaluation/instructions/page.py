"""The report on wordings: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from annotation.verdicts.tables import count
from evaluation.display import hundred, points
from evaluation.instructions.analysis import PUBLISHED, SIMULATED, Analysis
from evaluation.instructions.boards import AGAINST_WORST
from evaluation.instructions.charts import all_figures
from evaluation.instructions.exhibits import all_exhibits
from evaluation.instructions.spread import above_median
from evaluation.instructions.tables import compared_default
from plumbline.exhibits.page import PageWords, write_outlined

_FEW_WORDINGS, _FEW_TASKS = 10, 5


def headline(analysis: Analysis) -> tuple[str, ...]:
    """How far scores move, where the defaults lie, and what ranks are worth."""
    return _moves(analysis), _defaults(analysis), _ranks(analysis)


def _moves(analysis: Analysis) -> str:
    grid, table = analysis.grid, analysis.distribution
    n = table.loc[table["n"] > 0, "n"]
    each = f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    of = f"{count(len(grid.models), 'model')} on {count(len(grid.tasks), 'task')}"
    cells = table[table["cv"].notna()]
    if cells.empty:
        return f"Of {of}, with {each} wordings each, no coefficient of variation is defined."
    most = cells.iloc[int(cells["range"].argmax())]
    cv, sd = (100 * float(cells[name].median()) for name in ("cv", "sd"))
    return (
        f"Over {each} wordings a task, the scores of {of} vary by {cv:.1f}% (median coefficient of variation;"
        f" standard deviation {sd:.1f} points),"
        f" and by up to {100 * most['range']:.1f} points ({most['model']} on {most['task']})."
    )


def _defaults(analysis: Analysis) -> str:
    compared = analysis.distribution[analysis.distribution["difference"].notna() & (analysis.distribution["n"] > 1)]
    if compared.empty:
        return "Where the defaults lie is not known: none was scored in the same run on the same part of a task."
    whose = "published default" if analysis.settings.defaults == PUBLISHED else "default"
    above = int(np.nansum(above_median(analysis.grid.scores, compared_default(analysis.grid))))
    counts = compared["verdict"].value_counts()
    counted = ", ".join(f"{counts[name]} {name}" for name in ("inflated", "typical", "deflated") if name in counts)
    return (
        f"The {whose} scores above the median wording in {above} of {len(compared)} cases (model and task), by"
        f" {points(float(compared['difference'].mean()))} points on average: {counted}."
    )


def _ranks(analysis: Analysis) -> str:
    board = analysis.recommended
    best = board.iloc[0]
    mean, low, high = (hundred(best[f"wordings_{name}"]) for name in ("mean", "low", "high"))
    ends = "" if math.isnan(best["wordings_low"]) else f" [{low}, {high}]"
    accepted = "accepted wordings" if analysis.whole.gated else "all wordings"
    sentence = f"By the recommended score, the mean over {accepted}, {best['model']} has {mean}{ends}"
    if len(board) < 2:
        return f"{sentence}; of one model there is no rank."
    of_model = analysis.boards[
        (analysis.boards["scenario"] == AGAINST_WORST) & (analysis.boards["chosen"] == analysis.boards["model"])
    ]
    first = int((of_model["rank"] == 1).sum())
    tau = analysis.drawn.attrs["tau"][0]
    level = int((board["rank"] == best["rank"]).sum()) - 1
    shared = f", as {count(level, 'other model')} {'is' if level == 1 else 'are'}" if level else ""
    ranked = board[board["default_rank"].notna()]
    moved = int((ranked["rank"] != ranked["default_rank"]).sum())
    differ = f"{moved} of {len(ranked)} ranks differ from the defaults', " if len(ranked) else ""
    same = "" if math.isnan(tau) else f", and random wordings keep the defaults' order with tau {tau:.2f} on average"
    return (
        f"{sentence} and is first of {len(board)}{shared}; {differ}{count(first, 'model')} can be first with the"
        f" best wordings against the others' worst{same}."
    )


def doubts(analysis: Analysis) -> list[str]:
    """A line for each thing that is doubtful."""
    lines = [SIMULATED.rstrip(".")] if analysis.simulated else []
    lines += list(analysis.notes)
    n = analysis.distribution["n"]
    if n[n > 0].min() < _FEW_WORDINGS:
        lines.append(f"some models' tasks have only {n[n > 0].min()} wordings: their spread is uncertain")
    if len(analysis.grid.tasks) < _FEW_TASKS:
        lines.append(
            f"with {count(len(analysis.grid.tasks), 'task')} no interval over tasks says much; ranks have none below"
            f" {_FEW_TASKS} tasks"
        )
    if not analysis.gate.empty:
        lines.append("wordings that were not accepted count only in the tables of the gate and of kinds of wordings")
    return lines + fallen(analysis.published)


def fallen(table: pd.DataFrame) -> list[str]:
    """Which conclusions from published defaults fall once these are of the same run, split and subset."""
    if table.empty:
        return []
    above = {name: int(table[f"above_{name}"].sum()) for name in ("published", "matched")}
    n = {name: int(table[f"n_{name}"].sum()) for name in ("published", "matched")}
    lines = [
        f"the published defaults are above the median wording in {above['published']} of {n['published']} cases, those"
        f" of the same run, split and subset in {above['matched']} of {n['matched']}"
    ]
    moves = {}
    for name in ("published", "matched"):
        moved = table[table[f"best_{name}"] != table[f"rank_{name}"]]
        moves[name] = "; ".join(
            f"{row['model']} {row[f'rank_{name}']} to {row[f'best_{name}']}" for row in moved.to_dict(orient="records")
        )
    if moves["published"] != moves["matched"]:
        lines.append(
            "with its best wordings against the others' defaults a model moves in rank by published defaults"
            f" ({moves['published'] or 'none'}) otherwise than by matched ones ({moves['matched'] or 'none'})"
        )
    fewer = np.flatnonzero(table["n_published"] < table["n_matched"])
    if len(fewer):
        names = ", ".join(table["model"].iloc[fewer])
        lines.append(f"published defaults are missing on some tasks of {names}: ranks by them rest on fewer tasks")
    return lines


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


def write_report(folder: Path, analysis: Analysis, title: str) -> Path:
    """Write the report into a folder, each file atomically; returns its page. Those of the report before go."""
    words = PageWords(title, SIMULATED if analysis.simulated else "", headline(analysis), doubts(analysis), _ABOUT)
    return write_outlined(folder, words, OUTLINE, all_exhibits(analysis), all_figures(analysis))
