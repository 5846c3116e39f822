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
from evaluation.report.folder import PageWords, write_outlined

_FEW_WORDINGS, _FEW_TASKS = 10, 5


def headline(one: Analysis) -> tuple[str, ...]:
    """How far scores move, where the defaults lie, and what ranks are worth."""
    return _moves(one), _defaults(one), _ranks(one)


def _moves(one: Analysis) -> str:
    grid, table = one.grid, one.distribution
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


def _defaults(one: Analysis) -> str:
    known = one.distribution[one.distribution["difference"].notna() & (one.distribution["n"] > 1)]
    if known.empty:
        return "Where the defaults lie is not known: none was scored in the same run on the same part of a task."
    whose = "published default" if one.settings.defaults == PUBLISHED else "default"
    above = int(np.nansum(above_median(one.grid.scores, compared_default(one.grid))))
    counts = known["verdict"].value_counts()
    told = ", ".join(f"{counts[name]} {name}" for name in ("inflated", "typical", "deflated") if name in counts)
    return (
        f"The {whose} scores above the median wording in {above} of {len(known)} cases (model and task), by"
        f" {points(float(known['difference'].mean()))} points on average: {told}."
    )


def _ranks(one: Analysis) -> str:
    board = one.recommended
    best = board.iloc[0]
    mean, low, high = (hundred(best[f"wordings_{name}"]) for name in ("mean", "low", "high"))
    ends = "" if math.isnan(best["wordings_low"]) else f" [{low}, {high}]"
    accepted = "accepted wordings" if one.whole.gated else "all wordings"
    told = f"By the recommended score, the mean over {accepted}, {best['model']} has {mean}{ends}"
    if len(board) < 2:
        return f"{told}; of one model there is no rank."
    own = one.boards[(one.boards["scenario"] == AGAINST_WORST) & (one.boards["chosen"] == one.boards["model"])]
    first = int((own["rank"] == 1).sum())
    tau = one.drawn.attrs["tau"][0]
    level = int((board["rank"] == best["rank"]).sum()) - 1
    shared = f", as {count(level, 'other model')} {'is' if level == 1 else 'are'}" if level else ""
    known = board[board["default_rank"].notna()]
    moved = int((known["rank"] != known["default_rank"]).sum())
    differ = f"{moved} of {len(known)} ranks differ from the defaults', " if len(known) else ""
    same = "" if math.isnan(tau) else f", and random wordings keep the defaults' order with tau {tau:.2f} on average"
    return (
        f"{told} and is first of {len(board)}{shared}; {differ}{count(first, 'model')} can be first with the"
        f" best wordings against the others' worst{same}."
    )


def doubts(one: Analysis) -> list[str]:
    """A line for each thing that is doubtful."""
    found = [SIMULATED.rstrip(".")] if one.simulated else []
    found += list(one.said)
    n = one.distribution["n"]
    if n[n > 0].min() < _FEW_WORDINGS:
        found.append(f"some models' tasks have only {n[n > 0].min()} wordings: their spread is uncertain")
    if len(one.grid.tasks) < _FEW_TASKS:
        found.append(
            f"with {count(len(one.grid.tasks), 'task')} no interval over tasks says much; ranks have none below"
            f" {_FEW_TASKS} tasks"
        )
    if not one.gate.empty:
        found.append("wordings that were not accepted count only in the tables of the gate and of kinds of wordings")
    return found + fallen(one.published)


def fallen(table: pd.DataFrame) -> list[str]:
    """Which conclusions from published defaults fall once these are of the same run, split and subset."""
    if table.empty:
        return []
    above = {name: int(table[f"above_{name}"].sum()) for name in ("published", "matched")}
    n = {name: int(table[f"n_{name}"].sum()) for name in ("published", "matched")}
    said = [
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
        said.append(
            "with its best wordings against the others' defaults a model moves in rank by published defaults"
            f" ({moves['published'] or 'none'}) otherwise than by matched ones ({moves['matched'] or 'none'})"
        )
    fewer = np.flatnonzero(table["n_published"] < table["n_matched"])
    if len(fewer):
        names = ", ".join(table["model"].iloc[fewer])
        said.append(f"published defaults are missing on some tasks of {names}: ranks by them rest on fewer tasks")
    return said


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
    told = PageWords(title, SIMULATED if one.simulated else "", headline(one), doubts(one), _ABOUT)
    return write_outlined(folder, told, OUTLINE, all_exhibits(one), all_figures(one))
